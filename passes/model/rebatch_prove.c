/* The proof that a graph computes for each row of another batch what it did. */
#include <inttypes.h>

#include "ops/card/eval.h"
#include "passes/model/modes.h"
#include "passes/model/rebatch.h"

static Tensor *seeded(Graph *g, const Type *type, Rng *rng)
{
    Tensor *t = tensor_new(g->arena, type);
    const int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(type->dtype))
            tensor_set_f64(t, i, 2 * rng_unit(rng) - 1);
        else
            tensor_set_i64(t, i, rng_below(rng, 2));
    }
    return t;
}

/* The part of a value that belongs to chunk k of `chunks` along dimension 0, as a tensor of `type`. */
static Tensor *chunk_of(Graph *g, const Tensor *whole, const Type *type, int64_t k)
{
    Tensor *t = tensor_new(g->arena, type);
    const int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(type->dtype))
            tensor_set_f64(t, i, tensor_get_f64(whole, k * n + i));
        else
            tensor_set_i64(t, i, tensor_get_i64(whole, k * n + i));
    }
    return t;
}

static const char *value_named(const Graph *g, const char *what, const char *name)
{
    return name ? arena_printf(g->arena, "%s %s", what, name) : arena_printf(g->arena, "%s without name", what);
}

static Status prove_chunk(Graph *original, Heap *heap, const Tensor *const *inputs, Tensor *const *results, Graph *g,
                          int64_t k)
{
    const int n = graph_n_results(original);
    const Tensor **part = NEWS(g->arena, const Tensor *, original->n_inputs + 1);
    Tensor **want = NEWS(g->arena, Tensor *, n + 1);
    for (size_t i = 0; i < original->n_inputs; i++)
        part[i] = inputs[i]->type == original->inputs[i]->type ? inputs[i]
                                                               : chunk_of(g, inputs[i], original->inputs[i]->type, k);
    TRY(evaluate(original, NULL, heap, part, want));
    for (int i = 0; i < n; i++) {
        const bool follows = results[i]->type != want[i]->type;
        if (follows)
            TRY(tensor_wants_numbers(g->ir->diag, (Place){ .where = "--batch", .byte = -1 },
                                     value_named(g, "result", graph_result_name(g, i)), want[i]->type));
        const Tensor *got = follows ? chunk_of(g, results[i], want[i]->type, k) : results[i];
        if (!tensor_same(got, want[i]))
            return fail_as(g->ir->diag, UNSUPPORTED, NOWHERE,
                           "--batch: rows of %s differ from what the file's own batch gives",
                           graph_result_name(g, i) ? graph_result_name(g, i) : "a result");
    }
    return OK;
}

/* How many times the rows of `small` go into `big`; 0 when big has fewer. */
static int64_t times(const Graph *big, const Graph *small)
{
    for (size_t i = 0; i < big->n_inputs; i++)
        if (big->inputs[i]->type != small->inputs[i]->type)
            return big->inputs[i]->type->dims[0] / small->inputs[i]->type->dims[0];
    return 1;
}

static Status prove(Graph *big, Graph *small, uint64_t seed)
{
    Heap heap;
    Rng rng = { seed };
    const int64_t chunks = times(big, small);
    heap_open(&heap, big->ir->memory);
    const Tensor **inputs = NEWS(big->arena, const Tensor *, big->n_inputs + 1);
    Tensor **results = NEWS(big->arena, Tensor *, graph_n_results(big) + 1);
    Status status = OK;
    for (size_t i = 0; i < big->n_inputs && status == OK; i++) {
        const Node *in = big->inputs[i];
        status = tensor_wants_numbers(big->ir->diag, (Place){ .where = "--batch", .byte = -1 },
                                      value_named(big, "input", in->name), in->type);
        inputs[i] = status == OK ? seeded(big, in->type, &rng) : NULL;
    }
    if (status == OK)
        status = evaluate(big, NULL, &heap, inputs, results);
    for (int64_t k = 0; k < chunks && status == OK; k++)
        status = prove_chunk(small, &heap, inputs, results, big, k);
    heap_close(&heap);
    return status;
}

/* What is proved: the model as it is deployed.  Training looks at the other rows of a batch, and draws. */
static Status deployed(Graph *g, Graph **copy)
{
    Arena scratch;
    PassRun run = { .diag = g->ir->diag, .scratch = &scratch };
    arena_open(&scratch, g->ir->memory);
    *copy = graph_copy(g, g->arena);
    const Status status = modes_infer(*copy, &run, true, true);
    arena_close(&scratch);
    return status;
}

/* What grows many times is proved at twice the old batch: the constants that follow are the same ones. */
static Status prove_deployed(Graph *g, Graph *original, uint64_t seed)
{
    enum { MANY = 2 };
    if (times(g, original) == 0)
        return prove(original, g, seed);
    if (times(g, original) <= MANY)
        return prove(g, original, seed);
    int64_t old = 0;
    Graph *twice = graph_copy(original, g->arena);
    for (size_t i = 0; i < original->n_inputs; i++)
        if (g->inputs[i]->type != original->inputs[i]->type)
            old = original->inputs[i]->type->dims[0];
    TRY(rebatch(twice, MANY * old, &old));
    return prove(twice, original, seed);
}

Status rebatch_prove(Graph *g, Graph *original, uint64_t seed)
{
    Graph *big, *small;
    TRY(deployed(g, &big));
    TRY(deployed(original, &small));
    return prove_deployed(big, small, seed);
}
