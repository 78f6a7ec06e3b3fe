/* Graphs that the evaluator runs. */
#include "ops/card/eval.h"
#include "runtime/host/host.h"

typedef struct Evaluated {
    GraphRunner runner;
    const Graph *graph;
    const Node *const *ends;
    Evaluation *evaluation;
} Evaluated;

static Evaluated *of(const GraphRunner *r)
{
    return (Evaluated *)(uintptr_t)r;
}

static void keep(GraphRunner *r)
{
    evaluation_keep(of(r)->evaluation);
}

static void close(GraphRunner *r)
{
    evaluation_close(of(r)->evaluation);
}

static Status begin(GraphRunner *r, uint64_t seed, uint64_t step, const Tensor *const *operands)
{
    evaluation_set_seed(of(r)->evaluation, seed);
    evaluation_begin(of(r)->evaluation, step, operands);
    return OK;
}

static bool reads(const GraphRunner *r, int input)
{
    return evaluation_value(of(r)->evaluation, of(r)->graph->inputs[input]) != NULL;
}

static void reread(GraphRunner *r, int input, const Tensor *value)
{
    evaluation_put(of(r)->evaluation, of(r)->graph->inputs[input], value);
}

static Status until(GraphRunner *r, int part)
{
    return evaluation_until(of(r)->evaluation, of(r)->ends ? of(r)->ends[part] : NULL);
}

static const Tensor *result(const GraphRunner *r, int i)
{
    return evaluation_value(of(r)->evaluation, graph_result(of(r)->graph, i));
}

static void put(GraphRunner *r, int i, const Tensor *value)
{
    evaluation_put(of(r)->evaluation, graph_result(of(r)->graph, i), value);
}

static void end(GraphRunner *r)
{
    evaluation_end(of(r)->evaluation);
}

static const GraphRunnerClass evaluated = {
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

GraphRunner *evaluated_open(const Executable *x, const EngineOptions *o, Arena *arena, Heap *heap)
{
    Evaluated *e = NEW(arena, Evaluated);
    const EvalOptions options = { .kernels = o->kernels,
                                  .pool = o->pool,
                                  .stop = x->brief ? NULL : o->stop,
                                  .stop_too = x->brief ? NULL : o->stop_too,
                                  .rounding = x->brief ? NULL : o->rounding,
                                  .narrow = o->narrow };
    *e = (Evaluated){ .runner = { &evaluated }, .graph = x->graph, .ends = x->ends };
    e->evaluation = evaluation_open(x->graph, &options, arena, heap);
    return &e->runner;
}
