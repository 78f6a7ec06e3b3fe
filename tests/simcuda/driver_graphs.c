/* Captures, and graphs: of ops that come one behind the other only where streams and events say so. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simcuda/calls.h"

static void *room(size_t n, size_t bytes)
{
    void *p = calloc(n + 1, bytes);
    if (!p)
        abort();
    return p;
}

/* ---- captures ---- */

static Captured *captures; /* all of them stay: events may name them */

static Nodes copy_of(const Nodes *from)
{
    const Nodes to = { room((size_t)from->n, sizeof(int)), from->n };
    memcpy(to.list, from->list, (size_t)from->n * sizeof(int));
    return to;
}

static void replace(Nodes *to, Nodes by)
{
    free(to->list);
    *to = by;
}

static Nodes both(const Nodes *a, const Nodes *b)
{
    Nodes to = { room((size_t)(a->n + b->n), sizeof(int)), a->n };
    memcpy(to.list, a->list, (size_t)a->n * sizeof(int));
    for (int i = 0; i < b->n; i++) {
        int k = 0;
        while (k < to.n && to.list[k] != b->list[i])
            k++;
        if (k == to.n)
            to.list[to.n++] = b->list[i];
    }
    return to;
}

int capture_add(CudaStream *s, const Op *op)
{
    Captured *c = s->captured;
    Op *copy = queue_copy(op);
    copy->node = c->n++;
    copy->behind = s->behind;
    s->behind = (Nodes){ room(1, sizeof(int)), 1 };
    s->behind.list[0] = copy->node;
    *c->last = copy;
    c->last = &copy->next;
    return CUDA_OK;
}

void capture_record(CudaEvent *e, const CudaStream *s)
{
    e->captured = s->captured;
    replace(&e->behind, copy_of(&s->behind));
}

int capture_wait(CudaStream *s, CudaEvent *e)
{
    if (s->capture && s->captured->broken)
        return E_CAPTURE_INVALIDATED;
    if (!e->captured) {
        s->captured->broken = true;
        return E_CAPTURE_ISOLATION;
    }
    if (s->capture && s->captured != e->captured) {
        s->captured->broken = true;
        return E_CAPTURE_MERGE;
    }
    if (!s->capture) {
        s->capture = CAPTURES;
        s->captured = e->captured;
        replace(&s->behind, (Nodes){ NULL, 0 });
    }
    replace(&s->behind, both(&s->behind, &e->behind));
    return CUDA_OK;
}

static int capture(CudaStream *s, int mode)
{
    if (!s)
        return E_CAPTURE_UNSUPPORTED;
    if (!call_stream(s, "cuStreamBeginCapture"))
        return E_INVALID_HANDLE;
    if (s->capture || mode < 0 || mode > 2)
        return CUDA_INVALID;
    Captured *c = room(1, sizeof *c);
    *c = (Captured){ .origin = s, .mode = mode, .thread = pthread_self(), .last = &c->first, .older = captures };
    captures = c;
    s->capture = CAPTURES;
    s->captured = c;
    replace(&s->behind, (Nodes){ NULL, 0 });
    return CUDA_OK;
}

int cuStreamBeginCapture_v2(CudaStream *stream, int mode)
{
    CALL(NEEDS_CONTEXT, capture(stream, mode));
}

/* ---- what comes before what ---- */

/* By node and node, whether the one has to end before the other begins. */
static bool *order_of(const Op *first, int n)
{
    bool *before = room((size_t)n * (size_t)n, sizeof *before);
    for (const Op *op = first; op; op = op->next)
        for (int i = 0; i < op->behind.n; i++) {
            const int right_before = op->behind.list[i];
            before[right_before * n + op->node] = true;
            for (int k = 0; k < right_before; k++)
                before[k * n + op->node] |= before[k * n + right_before];
        }
    return before;
}

/* Whether all that a stream captured comes before where another one stands. */
static bool joined(const CudaStream *s, const CudaStream *origin, const bool *before, int n)
{
    for (int i = 0; i < s->behind.n; i++) {
        bool found = false;
        for (int k = 0; k < origin->behind.n && !found; k++)
            found =
                origin->behind.list[k] == s->behind.list[i] || before[s->behind.list[i] * n + origin->behind.list[k]];
        if (!found)
            return false;
    }
    return true;
}

/* All streams of a capture leave it; whether what each did is joined. */
static bool leave(const Captured *c)
{
    bool *before = order_of(c->first, c->n), all = true;
    for (Thing *t = world.things; t; t = t->next) {
        CudaStream *s = (CudaStream *)t;
        if (t->kind != STREAM || !s->capture || s->captured != c)
            continue;
        all = all && joined(s, c->origin, before, c->n);
        s->capture = NO_CAPTURE;
    }
    free(before);
    return all;
}

static int end_capture(CudaStream *s, CudaGraph **graph)
{
    if (!graph || !s || !call_stream(s, "cuStreamEndCapture"))
        return CUDA_INVALID;
    *graph = NULL;
    if (!s->capture)
        return CUDA_INVALID;
    Captured *c = s->captured;
    if (c->mode != 2 && !pthread_equal(c->thread, pthread_self()))
        return E_CAPTURE_WRONG_THREAD;
    if (s != c->origin) {
        c->broken = true;
        return E_CAPTURE_UNMATCHED;
    }
    const bool all = leave(c);
    if (c->broken)
        return E_CAPTURE_INVALIDATED;
    if (!all)
        return E_CAPTURE_UNJOINED;
    CudaGraph *g = thing_new(GRAPH, call_context(), sizeof *g);
    g->first = c->first;
    g->n = c->n;
    *graph = g;
    return CUDA_OK;
}

int cuStreamEndCapture(CudaStream *stream, CudaGraph **graph)
{
    CALL(NEEDS_CONTEXT, end_capture(stream, graph));
}

/* ---- graphs ---- */

/* Nodes that may run beside another one. */
static unsigned count_beside(const CudaGraphExec *e)
{
    unsigned count = 0;
    for (int i = 0; i < e->n; i++) {
        int k = 0;
        while (k < e->n && (k == i || e->before[k * e->n + i] || e->before[i * e->n + k]))
            k++;
        count += k < e->n;
    }
    return count;
}

static int instantiate(CudaGraphExec **made, CudaGraph *graph, unsigned long long flags)
{
    if (!made || flags)
        return CUDA_INVALID;
    if (!thing_lives(graph, GRAPH, "cuGraphInstantiateWithFlags"))
        return E_INVALID_HANDLE;
    CudaGraphExec *e = thing_new(MADE_GRAPH, call_context(), sizeof *e);
    e->first = graph->first;
    e->n = graph->n;
    e->before = order_of(e->first, e->n);
    e->nodes = room((size_t)e->n, sizeof *e->nodes);
    for (Op *op = e->first; op; op = op->next)
        e->nodes[op->node] = op;
    e->beside = count_beside(e);
    *made = e;
    return CUDA_OK;
}

int cuGraphInstantiateWithFlags(CudaGraphExec **made, CudaGraph *graph, unsigned long long flags)
{
    CALL(NEEDS_CONTEXT, instantiate(made, graph, flags));
}

static bool is_ready(const CudaGraphExec *e, const bool *done, int node)
{
    for (int i = 0; i < e->nodes[node]->behind.n; i++)
        if (!done[e->nodes[node]->behind.list[i]])
            return false;
    return !done[node];
}

/* Nodes in an order that they may run in: the first that is ready each time, or the last. */
static void replay(CudaGraphExec *e, CudaStream *s)
{
    bool *done = room((size_t)e->n, sizeof *done);
    const char *word = getenv("QCC_SIM_ORDER");
    const bool ascending = word && strcmp(word, "ascending") == 0, descending = word && strcmp(word, "descending") == 0;
    const bool last = descending || (!ascending && e->launched % 2);
    for (int i = 0; i < e->n; i++) {
        int node = last ? e->n - 1 : 0;
        while (!is_ready(e, done, node))
            node += last ? -1 : 1;
        Op op = *e->nodes[node];
        op.graph = e;
        op.graph_launch = e->launched + 1;
        queue_append(&op, s);
        done[node] = true;
    }
    free(done);
    e->launched++;
}

static int launch_graph(CudaGraphExec *made, CudaStream *stream)
{
    CudaStream *s = call_stream(stream, "cuGraphLaunch");
    if (!s || !thing_lives(made, MADE_GRAPH, "cuGraphLaunch"))
        return E_INVALID_HANDLE;
    if (s->capture)
        return s->captured->broken ? E_CAPTURE_INVALIDATED : E_CAPTURE_UNSUPPORTED;
    world.counts.graphs++;
    world.counts.beside += made->beside;
    replay(made, s);
    return CUDA_OK;
}

int cuGraphLaunch(CudaGraphExec *made, CudaStream *stream)
{
    CALL(NEEDS_CONTEXT, launch_graph(made, stream));
}

static int end_thing(void *handle, ThingKind kind, const char *call)
{
    if (!thing_lives(handle, kind, call))
        return E_INVALID_HANDLE;
    ((Thing *)handle)->live = false;
    return CUDA_OK;
}

int cuGraphExecDestroy(CudaGraphExec *made)
{
    GIVING_UP(NEEDS_CONTEXT, end_thing(made, MADE_GRAPH, "cuGraphExecDestroy"));
}

int cuGraphDestroy(CudaGraph *graph)
{
    GIVING_UP(NEEDS_CONTEXT, end_thing(graph, GRAPH, "cuGraphDestroy"));
}

/* ---- races between nodes ---- */

/* The launch of a graph whose kernels ran last: which node each of them is. */
static struct {
    const CudaGraphExec *graph;
    uint64_t launch;
    unsigned first; /* number of a kernel's launch */
    int *nodes, n, cap;
} ran;

void graph_begins(const Op *op, unsigned launch)
{
    if (ran.graph != op->graph || ran.launch != op->graph_launch) {
        ran.graph = op->graph;
        ran.launch = op->graph_launch;
        ran.first = launch;
        ran.n = 0;
    }
    while (ran.graph && ran.n <= (int)(launch - ran.first)) {
        if (ran.n == ran.cap) {
            ran.cap = 2 * ran.cap + 64;
            ran.nodes = realloc(ran.nodes, (size_t)ran.cap * sizeof *ran.nodes);
            if (!ran.nodes)
                abort();
        }
        ran.nodes[ran.n++] = op->node;
    }
}

bool graph_beside(unsigned launch)
{
    if (!ran.graph || launch < ran.first || launch - ran.first >= (unsigned)ran.n)
        return false;
    const int node = ran.nodes[ran.n - 1], other = ran.nodes[launch - ran.first], n = ran.graph->n;
    return node != other && !ran.graph->before[other * n + node];
}
