/* The evaluator for values that lie in a space.  It runs on the host: what a graph reads goes there as the run begins, and what
 * is asked of it comes back, once for each part that has run. */
#include "runtime/host/host.h"

typedef struct Staged {
    GraphRunner runner;
    GraphRunner *inner;
    const Graph *graph;
    Space *space;
    Heap *heap;
    Tensor **read;         /* by input: its copy on the host; null: none, so far */
    const Tensor **values; /* by input: what the evaluator reads */
    Tensor **results;      /* by result: its copy in the space, */
    bool *fresh;           /* which has the bytes that the evaluator has now */
} Staged;

static Staged *of(const GraphRunner *r)
{
    return (Staged *)(uintptr_t)r;
}

static void keep(GraphRunner *r)
{
    runner_keep(of(r)->inner);
}

static void drop_results(Staged *s)
{
    for (int i = 0; i < graph_n_results(s->graph); i++) {
        if (s->results[i])
            space_drop(s->space, s->heap, s->results[i]);
        s->results[i] = NULL;
        s->fresh[i] = false;
    }
}

static void close(GraphRunner *r)
{
    drop_results(of(r));
    runner_close(of(r)->inner);
}

/* What the evaluator reads of an input: it may hold the tensor that it read before, so each run has its own. */
static const Tensor *read_input(Staged *s, int input, const Tensor *value)
{
    if (s->read[input])
        tensor_drop(s->heap, s->read[input]);
    s->read[input] = NULL;
    if (!value || !space_holds(s->space, value->type))
        return value;
    s->read[input] = tensor_alloc(s->heap, value->type);
    space_read(s->space, s->read[input]->data, value->data, value->bytes);
    return s->read[input];
}

static Status begin(GraphRunner *r, uint64_t seed, uint64_t step, const Tensor *const *operands)
{
    Staged *s = of(r);
    drop_results(s);
    for (size_t i = 0; i < s->graph->n_inputs; i++)
        s->values[i] = read_input(s, (int)i, operands[i]);
    TRY(space_status(s->space));
    return s->inner->does->begin(s->inner, seed, step, s->values);
}

static bool reads(const GraphRunner *r, int input)
{
    return of(r)->inner->does->reads(of(r)->inner, input);
}

static void reread(GraphRunner *r, int input, const Tensor *value)
{
    Staged *s = of(r);
    Tensor *before = s->read[input];
    s->read[input] = NULL;
    s->inner->does->reread(s->inner, input, read_input(s, input, value));
    if (before)
        tensor_drop(s->heap, before);
}

static Status until(GraphRunner *r, int part)
{
    Staged *s = of(r);
    for (int i = 0; i < graph_n_results(s->graph); i++)
        s->fresh[i] = false;
    return s->inner->does->until(s->inner, part);
}

static const Tensor *result(const GraphRunner *r, int i)
{
    Staged *s = of(r);
    const Tensor *host = s->inner->does->result(s->inner, i);
    if (!host || !space_holds(s->space, host->type))
        return host;
    if (s->fresh[i] && s->results[i]->type == host->type)
        return s->results[i];
    if (s->results[i])
        space_drop(s->space, s->heap, s->results[i]);
    s->results[i] = space_tensor(s->space, s->heap, host->type);
    space_write(s->space, s->results[i]->data, host->data, host->bytes);
    s->fresh[i] = true;
    return s->results[i];
}

static void put(GraphRunner *r, int i, const Tensor *value)
{
    Staged *s = of(r);
    if (!value || !space_holds(s->space, value->type)) {
        s->inner->does->put(s->inner, i, value);
        return;
    }
    Tensor *host = tensor_alloc(s->heap, value->type);
    space_read(s->space, host->data, value->data, value->bytes);
    s->inner->does->put(s->inner, i, host);
    s->fresh[i] = false;
    tensor_drop(s->heap, host);
}

static void end(GraphRunner *r)
{
    Staged *s = of(r);
    s->inner->does->end(s->inner);
    drop_results(s);
}

static const GraphRunnerClass staged = {
    .keep = keep,
    .close = close,
    .begin = begin,
    .reads = reads,
    .reread = reread,
    .until = until,
    .result = result,
    .put = put,
    .end = end,
};

GraphRunner *staged_open(GraphRunner *evaluated, const Graph *g, Space *space, Arena *arena, Heap *heap)
{
    const int n = graph_n_results(g);
    Staged *s = NEW(arena, Staged);
    *s = (Staged){ .runner = { &staged },
                   .inner = evaluated,
                   .graph = g,
                   .space = space,
                   .heap = heap,
                   .read = NEWS(arena, Tensor *, g->n_inputs + 1),
                   .values = NEWS(arena, const Tensor *, g->n_inputs + 1),
                   .results = NEWS(arena, Tensor *, n + 1),
                   .fresh = NEWS(arena, bool, n + 1) };
    return &s->runner;
}
