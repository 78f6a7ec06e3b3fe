/* Push-relabel, first in first out: supplies flow down levels, which bound the distance to the sink from below; a node
 * that keeps some rises above its lowest neighbour.  After a bounded amount of rising one search backwards from the sink
 * finds the exact levels again.  Augmenting path by path (Dinic) is shorter to write, but needs a search of the whole
 * network for each length of path: on 10^5 nodes in a band, 10^6 edges, it took 40 times as long, because there
 * supplies travel far; here they travel together.
 *
 * Supplies that reach the sink no more are left where they are: for the cut they need not return to the source.  The
 * last search is also the answer: what still reaches the sink is its smallest side.  Levels only rise and stop at the
 * number of nodes, and each push leaves a supply or a residual of exactly 0, so it ends whatever sums round to.
 *
 * An infinite terminal never takes part: its node, and what infinite edges join to it, is decided beforehand and becomes
 * a terminal of its neighbours.  So every amount pushed is finite. */
#include <math.h>

#include "base/min_cut.h"

enum { NOWHERE = -1 };

typedef struct Edge {
    uint32_t a, b;
    double carries[2]; /* from a to b, and back */
} Edge;

/* One of the two ways along an edge: 2 * edge + (0: from a to b, 1: back); its partner differs in the last bit. */
typedef uint32_t Arc;

typedef struct Out {
    Arc arc;
    uint32_t to;
} Out;

typedef enum Decided { OPEN, SOURCE_SIDE, SINK_SIDE } Decided;

struct MinCut {
    Arena *arena;
    size_t n, n_edges, cap_edges;
    Edge *edge;
    double *source, *sink; /* capacities of the terminals */

    Out *out;        /* the arcs that leave each node, one node after another .. */
    uint32_t *first; /* .. from here, n + 1 of them */
    double *left;    /* residual of each arc */
    double *supply;  /* of each node: what the source still offers, or, negative, the sink still takes */
    int32_t *level;  /* steps to the sink; NOWHERE: it is not reached */
    uint32_t *next;  /* the first outgoing arc of each node that may lead down */
    uint32_t *queue; /* a ring */
    size_t head, waiting;
    uint8_t *decided; /* by infinite capacities */
};

MinCut *min_cut_open(Arena *a, size_t n)
{
    MinCut *c = NEW(a, MinCut);
    BUG_IF(a->memory, n > INT32_MAX);
    c->arena = a;
    c->n = n;
    c->source = NEWS(a, double, n + 1);
    c->sink = NEWS(a, double, n + 1);
    return c;
}

void min_cut_edge(MinCut *c, size_t a, size_t b, double forward, double backward)
{
    BUG_IF(c->arena->memory, a >= c->n || b >= c->n || !(forward >= 0) || !(backward >= 0));
    BUG_IF(c->arena->memory, c->n_edges >= INT32_MAX);
    if (a == b || (forward == 0 && backward == 0))
        return;
    GROW(c->arena, c->edge, c->n_edges, c->cap_edges);
    c->edge[c->n_edges++] = (Edge){ (uint32_t)a, (uint32_t)b, { forward, backward } };
}

void min_cut_terminal(MinCut *c, size_t node, double source, double sink)
{
    BUG_IF(c->arena->memory, node >= c->n || !(source >= 0) || !(sink >= 0));
    c->source[node] += source;
    c->sink[node] += sink;
}

static uint32_t end_of(const MinCut *c, Arc r)
{
    const Edge *e = &c->edge[r >> 1];
    return r & 1 ? e->a : e->b;
}

/* Sorts the arcs by the node that they leave. */
static void list_arcs(MinCut *c)
{
    c->out = NEWS(c->arena, Out, 2 * c->n_edges + 1);
    c->first = NEWS(c->arena, uint32_t, c->n + 2);
    c->left = NEWS(c->arena, double, 2 * c->n_edges + 1);
    for (Arc r = 0; r < 2 * c->n_edges; r++) {
        c->left[r] = c->edge[r >> 1].carries[r & 1];
        c->first[end_of(c, r ^ 1) + 2]++;
    }
    for (size_t i = 2; i < c->n + 2; i++)
        c->first[i] += c->first[i - 1];
    for (Arc r = 0; r < 2 * c->n_edges; r++)
        c->out[c->first[end_of(c, r ^ 1) + 1]++] = (Out){ r, end_of(c, r) };
}

/* Decides the nodes with an infinite terminal of one side, and what infinite edges join to them: downstream of the
 * source, upstream of the sink.  Whether one was decided otherwise before. */
static bool spread(MinCut *c, const double *terminal, Decided side)
{
    bool contradicts = false;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (isinf(terminal[i]))
            c->queue[n++] = (uint32_t)i;
    for (size_t i = 0; i < n; i++) {
        contradicts |= c->decided[c->queue[i]] != OPEN;
        c->decided[c->queue[i]] = (uint8_t)side;
    }
    for (size_t at = 0; at < n; at++) {
        const uint32_t u = c->queue[at];
        memory_poll(c->arena->memory);
        for (uint32_t i = c->first[u]; i < c->first[u + 1]; i++) {
            const Arc r = c->out[i].arc, along = side == SOURCE_SIDE ? r : r ^ 1;
            const uint32_t v = c->out[i].to;
            if (c->decided[v] == side || !isinf(c->left[along]))
                continue;
            contradicts |= c->decided[v] != OPEN;
            c->decided[v] = (uint8_t)side;
            c->queue[n++] = v;
        }
    }
    return contradicts;
}

/* Makes what is decided a terminal of its neighbours, and lets what a node gets from the source go to the sink. */
static void settle_terminals(MinCut *c)
{
    for (size_t i = 0; i < c->n; i++)
        c->supply[i] = c->decided[i] ? 0 : c->source[i] - c->sink[i];
    for (Arc r = 0; r < 2 * c->n_edges; r++) {
        const uint32_t from = end_of(c, r ^ 1), to = end_of(c, r);
        if (c->decided[from] == SOURCE_SIDE && !c->decided[to])
            c->supply[to] += c->left[r];
        if (c->decided[to] == SINK_SIDE && !c->decided[from])
            c->supply[from] -= c->left[r];
    }
    for (Arc r = 0; r < 2 * c->n_edges; r++)
        if (c->decided[end_of(c, r)] || c->decided[end_of(c, r ^ 1)])
            c->left[r] = 0;
}

static void enqueue(MinCut *c, uint32_t u)
{
    const size_t at = c->head + c->waiting++;
    c->queue[at < c->n ? at : at - c->n] = u;
}

static uint32_t dequeue(MinCut *c)
{
    const uint32_t u = c->queue[c->head];
    c->head = c->head + 1 < c->n ? c->head + 1 : 0;
    c->waiting--;
    return u;
}

/* Searches backwards from the sink; whether a node with supply is reached. */
static bool find_levels(MinCut *c)
{
    bool more = false;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->level[i] = c->supply[i] < 0 ? 0 : NOWHERE;
        c->next[i] = c->first[i];
        if (c->supply[i] < 0)
            c->queue[n++] = (uint32_t)i;
    }
    for (size_t at = 0; at < n; at++) {
        const uint32_t u = c->queue[at];
        more |= c->supply[u] > 0;
        for (uint32_t i = c->first[u]; i < c->first[u + 1]; i++) {
            const uint32_t v = c->out[i].to;
            if (c->level[v] == NOWHERE && c->left[c->out[i].arc ^ 1] > 0) {
                c->level[v] = c->level[u] + 1;
                c->queue[n++] = v;
            }
        }
    }
    return more;
}

/* Pushes along the i-th outgoing arc of u what it takes, if it leads one level down. */
static void push(MinCut *c, uint32_t u, uint32_t i)
{
    const Arc r = c->out[i].arc;
    const uint32_t v = c->out[i].to;
    if (!(c->left[r] > 0) || c->level[v] != c->level[u] - 1 || c->level[u] == 0)
        return;
    const double amount = fmin(c->supply[u], c->left[r]);
    c->left[r] -= amount;
    c->left[r ^ 1] += amount;
    c->supply[u] -= amount;
    if (c->supply[v] <= 0 && c->supply[v] + amount > 0)
        enqueue(c, v);
    c->supply[v] += amount;
}

/* Pushes what a node has as far as its level lets it; whether nothing is left. */
static bool discharge(MinCut *c, uint32_t u)
{
    for (; c->next[u] < c->first[u + 1]; c->next[u]++) {
        push(c, u, c->next[u]);
        if (c->supply[u] == 0)
            return true;
    }
    return false;
}

/* Puts a node one level above the lowest that it can push to. */
static void rise(MinCut *c, uint32_t u)
{
    int32_t least = (int32_t)c->n;
    for (uint32_t i = c->first[u]; i < c->first[u + 1]; i++) {
        const int32_t level = c->level[c->out[i].to];
        if (level != NOWHERE && level < least && c->left[c->out[i].arc] > 0) {
            least = level;
            c->next[u] = i;
        }
    }
    c->level[u] = least + 1 < (int32_t)c->n ? least + 1 : NOWHERE;
}

/* Sends supplies down until none is left that reaches the sink, or the levels have risen enough to be found anew. */
static void drain(MinCut *c)
{
    enum { SEARCH = 3, RISE = 12 }; /* what a search costs at each node, and a rise, in arcs looked at */
    const size_t enough = SEARCH * c->n + c->n_edges;
    size_t done = 0;
    c->head = c->waiting = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->supply[i] > 0 && c->level[i] != NOWHERE)
            enqueue(c, (uint32_t)i);
    while (c->waiting && done < enough) {
        const uint32_t u = dequeue(c);
        memory_poll(c->arena->memory);
        while (c->level[u] != NOWHERE && !discharge(c, u)) {
            rise(c, u);
            done += RISE + c->first[u + 1] - c->first[u];
        }
    }
}

/* What the sides cost; rounding aside, the flow that was pushed. */
static double cost_of_sides(const MinCut *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->n; i++)
        sum += min_cut_sinks(c, i) ? c->source[i] : c->sink[i];
    for (size_t i = 0; i < c->n_edges; i++) {
        const Edge *e = &c->edge[i];
        const bool a = min_cut_sinks(c, e->a), b = min_cut_sinks(c, e->b);
        if (a != b)
            sum += e->carries[a];
    }
    return sum;
}

double min_cut_run(MinCut *c)
{
    list_arcs(c);
    c->supply = NEWS(c->arena, double, c->n + 1);
    c->level = NEWS(c->arena, int32_t, c->n + 1);
    c->next = NEWS(c->arena, uint32_t, c->n + 1);
    c->queue = NEWS(c->arena, uint32_t, c->n + 1);
    c->decided = NEWS(c->arena, uint8_t, c->n + 1);

    spread(c, c->source, SOURCE_SIDE);
    const bool contradicts = spread(c, c->sink, SINK_SIDE);
    settle_terminals(c);
    if (contradicts) {
        for (size_t i = 0; i < c->n; i++)
            c->level[i] = NOWHERE;
        return INFINITY;
    }
    while (find_levels(c))
        drain(c);
    return cost_of_sides(c);
}

bool min_cut_sinks(const MinCut *c, size_t node)
{
    return c->decided[node] == SINK_SIDE || c->level[node] != NOWHERE;
}
