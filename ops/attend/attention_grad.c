/* attention_grad: what reaches queries, keys and values of attention, and a mask of floats, from what reaches its result.
 *
 * The scores are computed again.  Of f16 and bf16 every product is of operands of that type, probabilities and what
 * reaches the scores rounded to it; what comes of queries and keys is scaled last. */
#include "ops/attend/attend_kernels.h"
#include "ops/attend/heads.h"
#include "ops/card/make.h"
#include "ops/contract/work.h"

static const AttrSpec attention_grad_attrs[] = {
    ATTENTION_HEAD_ATTRS,
    ATTENTION_SCORE_ATTRS,
    ATTR_LAST,
};

static const Type *infer_mask_back(Infer *q)
{
    const Type *t = infer_has(q, GRAD_MASK) ? infer_tensor(q, GRAD_MASK) : NULL;
    if (!t || !dtype_is_float(t->dtype))
        return infer_fail(q, "gives what reaches the mask only where that is a tensor of floats");
    return type_with_dtype(q->types, t, make_width(t->dtype));
}

static const Type *infer_attention_grad(Infer *q)
{
    const Type *ins[] = { q->in[GRAD_Q],
                          q->in[GRAD_K],
                          q->in[GRAD_V],
                          infer_has(q, GRAD_MASK) ? q->in[GRAD_MASK] : NULL,
                          NULL,
                          NULL,
                          infer_has(q, GRAD_LENGTHS) ? q->in[GRAD_LENGTHS] : NULL };
    Infer forward = *q;
    forward.in = ins;
    forward.n_in = (int)COUNT(ins);
    forward.n_out = 1;
    const Type *y = infer_attention(&forward), *dy = y ? infer_tensor(q, GRAD_DY) : NULL;
    q->complaint = forward.complaint ? forward.complaint : q->complaint;
    if (!dy)
        return NULL;
    if (!type_agrees(dy, y))
        return infer_fail(q, "operand %d is %s, wanted is %s", GRAD_DY, type_text(q->scratch, dy),
                          type_text(q->scratch, y));
    for (int i = GRAD_K; i <= GRAD_V; i++)
        if (q->in[i]->dtype != y->dtype)
            return infer_fail(q, "operand %d is %s beside queries of %s", i, type_text(q->scratch, q->in[i]),
                              dtype_name(y->dtype));
    const Type *results[] = { ins[0], ins[1], ins[2], q->n_out > 3 ? infer_mask_back(q) : NULL };
    return q->n_out > 3 && !results[3] ? NULL : infer_results(q, q->n_out, results);
}

void adjoint_attention(Build *b, const Site *s, Node **dx)
{
    AttentionAttr at = *(const AttentionAttr *)s->attr;
    Node *ins[] = { s->in[IN_Q], s->in[IN_K], s->in[IN_V], s->dout[0], site_in(s, IN_MASK), site_in(s, IN_LENGTHS) };
    const bool mask = ins[GRAD_MASK] && s->want[IN_MASK];
    const int n_in = ins[GRAD_LENGTHS] ? GRAD_OPERANDS : ins[GRAD_MASK] ? GRAD_MASK + 1 : GRAD_DY + 1;
    at.qk_matmul_output_mode = 0;
    Node *call = build_node_n(b, OP_attention_grad, &at, n_in, ins, mask ? 4 : 3);
    for (int i = IN_Q; i <= IN_V; i++)
        if (s->want[i])
            dx[i] = build_part(b, call, i);
    if (mask)
        dx[IN_MASK] = build_part(b, call, 3);
}

static Node *sample_attention_grad(Build *b, Rng *rng, int variant)
{
    Node *y = sample_attention(b, rng, variant / 2 * 3 + 2 * (variant % 2)); /* those without a past */
    if (!y)
        return NULL;
    const DType own = in(y, IN_Q)->type->dtype;
    AttentionAttr at = *(const AttentionAttr *)y->attr;
    Node *mask = y->n_in > IN_MASK ? in(y, IN_MASK) : NULL;
    const bool back = mask && dtype_is_float(mask->type->dtype) && rng_below(rng, 2);
    Node *ins[] = { in(y, IN_Q), in(y, IN_K),
                    in(y, IN_V), sample_tensor(b, rng, own, y->type->rank, y->type->dims, -1, 1),
                    mask,        y->n_in > IN_LENGTHS ? in(y, IN_LENGTHS) : NULL };
    at.qk_matmul_output_mode = 0;
    return build_node_n(b, OP_attention_grad, &at, GRAD_OPERANDS, ins, back ? 4 : 3);
}

static bool serves_attention_grad(const Node *n)
{
    return attention_grad_in_blocks(n->attr, in(n, GRAD_Q)->type->dtype, type_results(n->type));
}

const OpDef op_attention_grad = {
    .name = "attention_grad",
    .min_in = 4,
    .max_in = GRAD_OPERANDS,
    .min_out = 3,
    .max_out = 4,
    .attrs = attention_grad_attrs,
    .infer = infer_attention_grad,
    .expand = expand_attention_grad,
    .fast = fast_attention_grad,
    .sample = sample_attention_grad,
    .n_variants = 60,
    .differentiable = 1 | 2 | 4 | 8 | 16,
    .weight = 160,
    .work = work_attention_grad,
    .access.kind = ACCESS_COMPOSITE,
    .access.served_whole = true,
    .access.serves = serves_attention_grad,
    .access.kernels = kernels_attention_grad,
    .amp = { AMP_T, AMP_T, 16, REASON_NONE, NULL, .wide_out = 8 },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the operands of attention, from the operands and what reaches its result.",
};
