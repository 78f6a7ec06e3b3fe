/* global_average_pool, global_max_pool and global_lp_pool: reductions over everything spatial. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/window/window.h"

static const AttrSpec global_lp_pool_attrs[] = { ATTR(PoolAttr, p, INT, 2), ATTR_LAST };

static const Type *infer_global_pool(Infer *q)
{
    const Type *x = infer_floats(q, 3);
    int64_t dims[MAX_RANK];
    if (!x || x->rank < 0)
        return x;
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : 1;
    return type_tensor(q->types, x->dtype, x->rank, dims);
}

static const Type *infer_global_lp_pool(Infer *q)
{
    const int64_t p = ((const PoolAttr *)q->attr)->p;
    return p < 1 ? infer_fail(q, "p is %" PRId64 ", wanted is at least 1", p) : infer_global_pool(q);
}

static Node *expand_global_pool(Build *b, const Site *s, Op op)
{
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[0]->type;
    Node *y = make_reduce_from(b, op, make_cast(b, s->in[0], make_width(x->dtype)), 2, x->rank);
    return make_cast(b, y, x->dtype);
}

static Node *expand_global_average_pool(Build *b, const Site *s)
{
    return expand_global_pool(b, s, OP_reduce_mean);
}

static Node *expand_global_max_pool(Build *b, const Site *s)
{
    return expand_global_pool(b, s, OP_reduce_max);
}

static Node *expand_global_lp_pool(Build *b, const Site *s)
{
    const int64_t p = ((const PoolAttr *)s->attr)->p;
    if (p <= 2)
        return expand_global_pool(b, s, p == 1 ? OP_reduce_l1 : OP_reduce_l2);
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[0]->type;
    const DType t = make_width(x->dtype);
    Node *powers = CALL(b, pow, CALL(b, abs, make_cast(b, s->in[0], t)), build_scalar(b, t, (double)p));
    Node *sum = make_reduce_from(b, OP_reduce_sum, powers, 2, x->rank);
    return make_cast(b, CALL(b, pow, sum, build_scalar(b, t, 1 / (double)p)), x->dtype);
}

static Node *sample_global_pool(Build *b, Rng *rng, int variant, Op op)
{
    int64_t dims[MAX_RANK];
    const int rank = 3 + variant % 3;
    const PoolAttr at = { .p = 1 + variant % 4 };
    sample_dims(rng, 2, 3, dims);
    for (int i = 2; i < rank; i++)
        dims[i] = rng_range(rng, 1, 5);
    Node *x = sample_tensor(b, rng, sample_float(rng), rank, dims, -2, 2);
    return build_node(b, op, op == OP_global_lp_pool ? &at : NULL, 1, &x);
}

#define GLOBAL_CARD(word, list, ask, class, why, opset, onnx_name)                                                     \
    static Node *sample_##word(Build *b, Rng *rng, int variant)                                                        \
    {                                                                                                                  \
        return sample_global_pool(b, rng, variant, OP_##word);                                                         \
    }                                                                                                                  \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = 1,                                                                                                   \
        .max_in = 1,                                                                                                   \
        .attrs = list,                                                                                                 \
        .infer = ask,                                                                                                  \
        .expand = expand_##word,                                                                                       \
        .sample = sample_##word,                                                                                       \
        .n_variants = 24,                                                                                              \
        .adjoint = ADJOINT_OF_##word,                                                                                  \
        .differentiable = 1,                                                                                           \
        .weight = 4,                                                                                                   \
        .access.kind = ACCESS_FOLD,                                                                                    \
        .amp = { AMP_##class, AMP_##class, 0, REASON_##why, NULL },                                                    \
        .quant = { QUANT_OF_##word },                                                                                  \
        .onnx = { onnx_name, opset, NULL },                                                                            \
    }
#define ADJOINT_OF_global_average_pool adjoint_global_average_pool
#define ADJOINT_OF_global_max_pool     NULL /* that of reduce_max */
#define ADJOINT_OF_global_lp_pool      adjoint_global_lp_pool
#define QUANT_OF_global_average_pool   .in = { QUANT_INPUT }, .out = { QUANT_INPUT }, .integer = OP_qglobal_average_pool
#define QUANT_OF_global_max_pool       .in = { QUANT_AGNOSTIC }, .out = { QUANT_AGNOSTIC }, .same_scale = true
#define QUANT_OF_global_lp_pool        .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT }
GLOBAL_CARD(global_average_pool, NULL, infer_global_pool, S, NONE, 22, "GlobalAveragePool");
GLOBAL_CARD(global_max_pool, NULL, infer_global_pool, PM, NONE, 22, "GlobalMaxPool");
GLOBAL_CARD(global_lp_pool, global_lp_pool_attrs, infer_global_lp_pool, FO, RANGE, 22, "GlobalLpPool");
#undef GLOBAL_CARD
