#include "api/make/launch_nodes.h"

#include <stdlib.h>

#include "ir/heirs.h"

/* The nodes of a graph and of its bodies under numbers from 1, as their copies have them. */
typedef struct Numbers {
    const Node **node;
    uint32_t n;
} Numbers;

/* A node that runs in a launch. */
typedef struct Pair {
    uint32_t number;
    uint32_t as; /* the number of the node that it became one with; its own where it is there itself */
    int launch;
} Pair;

/* Numbers of nodes that became one with a node of the lowered graph, each before the next. */
typedef struct Joined {
    uint32_t number;
    const struct Joined *next;
} Joined;

typedef struct Tracer {
    LaunchMap *map;
    Arena *arena;
    Numbers numbers;
    Pair *pairs;
    size_t n_pairs, cap_pairs;
    size_t *last;          /* by number: its last pair, from 1 */
    const Joined **joined; /* by id in the lowered graph */
    uint32_t n_ids;
} Tracer;

/* ---- numbers ---- */

static Graph *walked(const Graph *g)
{
    return (Graph *)(uintptr_t)g; /* a walk does not change it */
}

/* Passes hand Node.src on from what they open, move or copy to what comes of it, and look at it only for messages. */
static Graph *numbered_copy(Tracer *t, const Graph *g)
{
    Graph *copy = graph_copy(g, t->arena);
    const size_t n = graph_count(copy);
    Numbers *all = &t->numbers;
    *all = (Numbers){ NEWS(t->arena, const Node *, n + 1), 0 };
    copy->code_places = (CodePlaces){ .n = 0 };
    Node *c = walk_first(copy);
    for (Node *k = walk_first(walked(g)); k; k = walk_next(walked(g), k), c = walk_next(copy, c)) {
        all->node[++all->n] = k;
        c->src = all->n;
    }
    for (size_t i = 0; i < copy->n_inputs; i++)
        copy->inputs[i]->src = 0;
    heirs_keep(copy);
    return copy;
}

/* ---- launches ---- */

static bool computes(const Node *n)
{
    return !node_is_holder(n) && !node_is_input(n) && n->op != OP_const && n->op != OP_param && n->op != OP_state;
}

static bool is_counted(const Tracer *t, uint32_t number)
{
    return number && number <= t->numbers.n && computes(t->numbers.node[number]);
}

/* Who stands for a node in the end; all on the way there know it then. */
static uint32_t last_heir(uint32_t *by, uint32_t id, size_t most)
{
    uint32_t end = id;
    for (size_t i = 0; i <= most && by[end]; i++)
        end = by[end] - 1;
    while (id != end && by[id]) {
        const uint32_t next = by[id] - 1;
        by[id] = end + 1;
        id = next;
    }
    return end;
}

static void find_joined(Tracer *t)
{
    const Heirs *h = t->map->low.graph->heirs;
    t->n_ids = t->map->low.graph->n_ids;
    t->joined = NEWS(t->arena, const Joined *, t->n_ids + 1);
    uint32_t *by = NEWS(t->arena, uint32_t, t->n_ids + 1);
    for (size_t i = 0; h && i < h->n; i++)
        by[h->list[i].id] = h->list[i].by + 1;
    for (size_t i = h ? h->n : 0; i-- > 0;) {
        const uint32_t id = last_heir(by, h->list[i].id, h->n);
        Joined *j = NEW(t->arena, Joined);
        *j = (Joined){ h->list[i].src, t->joined[id] };
        t->joined[id] = j;
    }
}

static void add_pair(Tracer *t, uint32_t number, uint32_t as, int launch)
{
    if (!is_counted(t, number))
        return;
    Pair *last = t->last[number] ? &t->pairs[t->last[number] - 1] : NULL;
    if (last && last->launch == launch) {
        last->as = number == as ? as : last->as;
        return;
    }
    GROW(t->arena, t->pairs, t->n_pairs, t->cap_pairs);
    t->pairs[t->n_pairs++] = (Pair){ number, as, launch };
    t->last[number] = t->n_pairs;
}

/* A node of the lowered graph stands for those that it was made of, and that it took the place of. */
static void add(Tracer *t, const Node *n, int launch)
{
    if (!computes(n))
        return;
    add_pair(t, n->src, n->src, launch);
    for (const Joined *j = n->id < t->n_ids ? t->joined[n->id] : NULL; j; j = j->next)
        add_pair(t, j->number, n->src, launch);
}

static int by_number(const void *x, const void *y)
{
    const Pair *a = x, *b = y;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* A call, or the calls of its body; of what has bodies itself they are there, too. */
static void add_launch(Tracer *t, const Launch *l, int launch)
{
    const size_t first = t->n_pairs;
    add(t, l->node, launch);
    for (int r = 0; r < l->node->n_regions; r++)
        for (Node *n = walk_first(l->node->regions[r]); n; n = walk_next(l->node->regions[r], n))
            add(t, n, launch);
    if (t->n_pairs > first)
        qsort(t->pairs + first, t->n_pairs - first, sizeof *t->pairs, by_number);
}

static void list_launches(Tracer *t, const Program *p)
{
    LaunchNodes *list = NEWS(t->arena, LaunchNodes, p->n_launches + 1);
    size_t *end = NEWS(t->arena, size_t, p->n_launches + 1);
    t->last = NEWS(t->arena, size_t, t->numbers.n + 1);
    find_joined(t);
    for (int i = 0; i < p->n_launches; i++) {
        add_launch(t, &p->launches[i], i);
        end[i] = t->n_pairs;
    }
    const Node **nodes = NEWS(t->arena, const Node *, t->n_pairs + 1);
    for (size_t i = 0; i < t->n_pairs; i++)
        nodes[i] = t->numbers.node[t->pairs[i].number];
    for (int i = 0; i < p->n_launches; i++) {
        const size_t first = i ? end[i - 1] : 0;
        list[i] = (LaunchNodes){ nodes + first, (int)(end[i] - first) };
    }
    t->map->list = list;
}

/* ---- nodes ---- */

static NodeLaunches *at(Tracer *t, uint32_t number)
{
    return fact(&t->map->nodes, t->numbers.node[number]);
}

static void list_nodes(Tracer *t)
{
    const Program *program = t->map->low.program;
    int *launches = NEWS(t->arena, int, t->n_pairs + 1);
    for (size_t i = 0; i < t->n_pairs; i++)
        at(t, t->pairs[i].number)->n++;
    for (uint32_t k = 1; k <= t->numbers.n; k++) {
        NodeLaunches *n = at(t, k);
        n->launches = launches;
        launches += n->n;
        n->n = 0;
    }
    for (size_t i = 0; i < t->n_pairs; i++) {
        const Pair *p = &t->pairs[i];
        NodeLaunches *n = at(t, p->number);
        ((int *)(uintptr_t)n->launches)[n->n++] = p->launch;
        n->one = p->as == p->number || (n->run == RUN_LAUNCHED && !n->one) ? NULL : t->numbers.node[p->as];
        n->run = RUN_LAUNCHED;
        if (program->launches[p->launch].part == program->launches[n->launches[0]].part)
            n->main = p->launch;
    }
}

static void note_shown(Tracer *t, uint32_t number)
{
    if (is_counted(t, number) && at(t, number)->run == RUN_NOTHING)
        at(t, number)->run = RUN_SHOWN;
}

/* Whether anything is left of who reads a node. */
static bool is_read(const Tracer *t, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next) {
        const NodeLaunches *reader = launch_map_node(t->map, u->user);
        if (node_is_return(u->user) || (reader->run != RUN_UNREAD && !reader->one))
            return true;
    }
    return false;
}

/* Of what no launch computes, what is left in the lowered graph only shows what others made. */
static void find_idle(Tracer *t)
{
    for (const Node *n = t->map->low.graph->first; n; n = n->next) {
        if (!computes(n))
            continue;
        note_shown(t, n->src);
        for (const Joined *j = n->id < t->n_ids ? t->joined[n->id] : NULL; j; j = j->next)
            note_shown(t, j->number);
    }
    for (uint32_t k = t->numbers.n; k > 0; k--)
        if (at(t, k)->run == RUN_NOTHING && is_counted(t, k))
            at(t, k)->run = is_read(t, t->numbers.node[k]) ? RUN_FOLDED : RUN_UNREAD;
}

LaunchMap launch_map(const Graph *g, const Lowering *how, Arena *arena)
{
    LaunchMap m = { .graph = g, .nodes = facts_open(arena, sizeof(NodeLaunches)) };
    Tracer t = { .map = &m, .arena = arena };
    m.low = lower_graph_for(numbered_copy(&t, g), NULL, how, arena);
    for (uint32_t k = 1; k <= t.numbers.n; k++)
        (void)at(&t, k);
    if (!m.low.program)
        return m;
    list_launches(&t, m.low.program);
    list_nodes(&t);
    find_idle(&t);
    return m;
}

const NodeLaunches *launch_map_node(const LaunchMap *m, const Node *n)
{
    static const NodeLaunches nothing = { .run = RUN_NOTHING };
    const NodeLaunches *known = fact_known(&m->nodes, n);
    return known ? known : &nothing;
}

const char *node_run_text(NodeRun run)
{
    static const char *const texts[] = {
        [RUN_SHOWN] = "nothing runs: it shows elements that lie elsewhere",
        [RUN_FOLDED] = "folded: its readers read what it is made of",
        [RUN_UNREAD] = "nothing runs: those that read it became one with others",
    };
    return run < COUNT(texts) ? texts[run] : NULL;
}
