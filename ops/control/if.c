/* if: one of two bodies. */
#include "ops/card/shapes.h"
#include "ops/control/unwind.h"

enum { BRANCH_THEN, BRANCH_ELSE };

static const Type *infer_if(Infer *q)
{
    const Type *cond = infer_tensor(q, 0);
    if (!cond)
        return NULL;
    if (cond->dtype != BOOL || !dims_fit(type_elements(cond), 1))
        return infer_fail(q, "needs one bool to decide, not %s", type_text(q->scratch, cond));
    const Graph *body[2];
    for (int r = BRANCH_THEN; r <= BRANCH_ELSE; r++) {
        body[r] = infer_region(q, r, q->n_in - 1, q->n_out);
        if (!body[r] || !infer_captures(q, body[r], 1, 0))
            return NULL;
    }
    const Type **types = NEWS(q->scratch, const Type *, q->n_out);
    for (int i = 0; i < q->n_out; i++) {
        const Type *yes = graph_result(body[0], i)->type, *no = graph_result(body[1], i)->type;
        types[i] = type_join(q->types, yes, no);
        if (!types[i])
            return infer_fail(q, "gives %s or %s as result %d", type_text(q->scratch, yes), type_text(q->scratch, no),
                              i);
    }
    return infer_results(q, q->n_out, types);
}

static Status eval_if(Eval *e)
{
    Graph *body = e->node->regions[eval_int(e, 0, 0) ? BRANCH_THEN : BRANCH_ELSE];
    const int n = graph_n_results(body);
    Tensor **results = NEWS(e->scratch, Tensor *, n);
    const Tensor **values = NEWS(e->scratch, const Tensor *, e->n_in);
    for (int i = 1; i < e->n_in; i++)
        values[i - 1] = e->in[i];
    TRY(eval_body(e, body, TURN_NONE, e->n_in - 1, values, results));
    for (int i = 0; i < n; i++) {
        if (i < e->n_out)
            eval_give(e, i, results[i]);
        tensor_drop(eval_heap(e), results[i]);
    }
    return OK;
}

/* Two bodies over one capture: the one doubles it along its last axis, the other transposes it. */
static Node *sample_if(Build *b, Rng *rng, int variant)
{
    const int64_t n = rng_range(rng, 1, 3), dims[] = { n, n };
    Node *x = sample_tensor(b, rng, variant % 2 ? F32 : I64, 2, dims, -3, 3);
    Graph *bodies[2];
    for (int r = 0; r < 2; r++) {
        bodies[r] = region_new(b->graph);
        Build in = build_at_end(bodies[r]);
        Node *p = graph_input(bodies[r], "x", x->type);
        Node *y = r == 0 ? CALL(&in, transpose, p) : CALL(&in, tile, p, build_i64s(&in, 2, (int64_t[]){ 1, 2 }));
        Node *results[] = { y, CALL(&in, size, p) };
        if (in.status != OK)
            b->status = in.status;
        graph_return(bodies[r], 2, results, NULL);
    }
    Node *ins[] = { sample_tensor(b, rng, BOOL, 0, NULL, 0, 1), x };
    return build_with_regions(b, OP_if, NULL, 2, ins, 1 + variant / 2 % 2, 2, bodies);
}

const OpDef op_if = {
    .name = "if",
    .min_in = 1,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .n_regions = 2,
    .infer = infer_if,
    .eval = eval_if,
    .adjoint = adjoint_if,
    .differentiable = ~1u,
    .sample = sample_if,
    .n_variants = 8,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "it runs a body",
    .body = { .open = true, .first_operand = 1 },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "If", 25, NULL },
};
