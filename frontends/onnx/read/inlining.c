/* How many nodes a model has once its functions are inlined, found without inlining any: ten functions that call each
 * other ten times are a few hundred bytes and ten thousand million nodes. */
#include <inttypes.h>

#include "frontends/onnx/read/importer.h"

/* A function, or the model itself: the last of them. */
typedef struct Body {
    Onnx__NodeProto *const *nodes;
    size_t n_nodes;
    size_t *calls; /* which functions, once for each call */
    size_t n_calls, cap_calls, next;
    int64_t size; /* nodes of its own, those of regions included; at the end, of all it calls */
    enum { FRESH, OPEN, DONE } state;
} Body;

typedef struct Counter {
    Importer *im;
    Arena *arena;
    Body *bodies;
    size_t n;
    int64_t limit;
} Counter;

static int64_t capped_sum(int64_t a, int64_t b, int64_t cap)
{
    return a > cap - b ? cap : a + b;
}

/* Graphs that wait for their nodes to be looked at. */
typedef struct Waiting {
    Onnx__GraphProto **graphs;
    size_t n, cap;
} Waiting;

static void push_graph(Counter *c, Waiting *w, Onnx__GraphProto *g)
{
    if (!g)
        return;
    GROW(c->arena, w->graphs, w->n, w->cap);
    w->graphs[w->n++] = g;
}

static void look_at(Counter *c, Waiting *w, Body *b, const Onnx__NodeProto *o)
{
    size_t index;
    for (size_t i = 0; i < o->n_attribute; i++) {
        push_graph(c, w, o->attribute[i]->g);
        for (size_t k = 0; k < o->attribute[i]->n_graphs; k++)
            push_graph(c, w, o->attribute[i]->graphs[k]);
    }
    if (!function_index(c->im, c->arena, o, &index))
        return;
    GROW(c->arena, b->calls, b->n_calls, b->cap_calls);
    b->calls[b->n_calls++] = index;
}

static void collect_calls(Counter *c, Body *b)
{
    Waiting w = { 0 };
    Onnx__NodeProto *const *nodes = b->nodes;
    size_t n = b->n_nodes;
    for (;;) {
        b->size = capped_sum(b->size, (int64_t)n, c->limit);
        for (size_t i = 0; i < n; i++)
            look_at(c, &w, b, nodes[i]);
        if (!w.n)
            return;
        const Onnx__GraphProto *g = w.graphs[--w.n];
        nodes = g->node;
        n = g->n_node;
    }
}

/* Adds up what a body calls, the deepest first.  A call of what is still open is recursion: whoever inlines it says
 * so, at its place. */
static void add_up(Counter *c, Body *root)
{
    Body **open = NEWS(c->arena, Body *, c->n + 1);
    size_t n = 0;
    open[n++] = root;
    root->state = OPEN;
    while (n) {
        Body *b = open[n - 1];
        if (b->next == b->n_calls) {
            b->state = DONE;
            n--;
            continue;
        }
        Body *called = &c->bodies[b->calls[b->next]];
        if (called->state == FRESH) {
            called->state = OPEN;
            open[n++] = called;
            continue;
        }
        b->size = capped_sum(b->size, called->state == DONE ? called->size : 0, c->limit);
        b->next++;
    }
}

static Status count(Counter *c, const Onnx__ModelProto *model)
{
    const size_t n = model->n_functions;
    c->bodies = NEWS(c->arena, Body, n + 1);
    c->n = n + 1;
    for (size_t i = 0; i < n; i++)
        c->bodies[i] = (Body){ .nodes = model->functions[i]->node, .n_nodes = model->functions[i]->n_node };
    Body *root = &c->bodies[n];
    *root = (Body){ .nodes = model->graph->node, .n_nodes = model->graph->n_node };
    for (size_t i = 0; i <= n; i++)
        collect_calls(c, &c->bodies[i]);
    const int64_t own = root->size;
    add_up(c, root);
    if (root->size - own < c->im->ir->limits.inlined_nodes)
        return OK;
    return fail(c->im->ir->diag, NOWHERE,
                "inlining its functions gives more nodes than the limit inlined_nodes (%" PRId64 ")",
                c->im->ir->limits.inlined_nodes);
}

Status check_inlining(Importer *im, const Onnx__ModelProto *model)
{
    Arena scratch;
    if (!model->n_functions)
        return OK;
    arena_open(&scratch, im->ir->memory);
    Counter c = { .im = im, .arena = &scratch, .limit = INT64_MAX / 2 };
    const Status status = count(&c, model);
    arena_close(&scratch);
    return status;
}
