/* fused: calls that run as one, over one iteration space (ops/region/region.h).
 *
 * Its meaning is its body: the evaluator runs that like any other, and so every fused graph has the bits of the graph it
 * was made from. */
#include "ops/card/reduction.h"
#include "ops/control/control.h"
#include "ops/region/region.h"

static const Type *infer_fused(Infer *q)
{
    const Graph *body = infer_region(q, 0, q->n_in, q->n_out);
    Region region;
    if (!body || !infer_captures(q, body, 0, 0))
        return NULL;
    const char *wrong = region_read_body(body, q->scratch, &region);
    if (wrong)
        return infer_fail(q, "holds %s", wrong);
    const Type **types = NEWS(q->scratch, const Type *, q->n_out + 1);
    for (int i = 0; i < q->n_out; i++)
        types[i] = graph_result(body, i)->type;
    return infer_results(q, q->n_out, types);
}

static Status eval_fused(Eval *e)
{
    Graph *body = e->node->regions[0];
    Tensor **results = NEWS(e->scratch, Tensor *, e->n_out + 1);
    const Tensor **values = NEWS(e->scratch, const Tensor *, e->n_in + 1);
    for (int i = 0; i < e->n_in; i++)
        values[i] = e->in[i];
    TRY(eval_body(e, body, TURN_NONE, e->n_in, values, results));
    for (int i = 0; i < e->n_out; i++) {
        eval_give(e, i, results[i]);
        tensor_drop(eval_heap(e), results[i]);
    }
    return OK;
}

/* A softmax-like chain over rows, with the sum of its columns where two results are wanted. */
static Node *sample_fused(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, BF16 };
    const int64_t dims[] = { rng_range(rng, 1, 70), rng_range(rng, 1, 40) };
    const bool sums = variant / 3 % 2;
    Node *x = sample_tensor(b, rng, types[variant % 3], 2, dims, -3, 3);
    Node *scale = sample_tensor(b, rng, types[variant % 3], 1, dims + 1, -2, 2);
    Graph *body = region_new(b->graph);
    Build in = build_at_end(body);
    Node *px = graph_input(body, "x", x->type), *ps = graph_input(body, "scale", scale->type);
    Node *top = build_reduce(&in, OP_reduce_max, px, 1, (int64_t[]){ 1 });
    Node *y = CALL(&in, mul, CALL(&in, exp, CALL(&in, sub, px, top)), ps);
    Node *results[] = { y, sums ? build_reduce(&in, OP_reduce_sum, y, 1, (int64_t[]){ 0 }) : NULL };
    if (in.status != OK)
        b->status = in.status;
    graph_return(body, 1 + sums, results, NULL);
    return build_with_regions(b, OP_fused, NULL, 2, (Node *[]){ x, scale }, 1 + sums, 1, &body);
}

const OpDef op_fused = {
    .name = "fused",
    .min_in = 0,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .n_regions = 1,
    .infer = infer_fused,
    .eval = eval_fused,
    .body = { .keeps_types = true },
    .sample = sample_fused,
    .n_variants = 12,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "its body is the answer",
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "Calls that run as one pass over one iteration space: rows, casts, reductions along rows and of columns.",
};
