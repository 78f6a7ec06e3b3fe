/* The elementwise ops that are made of others: mean of many, swiglu, cast_like. */
#include "ops/card/attrs.h"
#include "ops/card/cards.h"
#include "ops/card/make.h"
#include "ops/card/signature.h"

static const Type *infer_mean(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    for (int i = 0; i < q->n_in; i++) {
        const Type *t = infer_tensor(q, i);
        if (!t)
            return NULL;
        if (!dtype_is_float(t->dtype) || t->dtype != x->dtype)
            return infer_fail(q, "operands must be floats of one type: %s and %s", dtype_name(x->dtype),
                              dtype_name(t->dtype));
    }
    return infer_broadcast(q, 0, x->dtype);
}

static Node *expand_mean(Build *b, const Site *s)
{
    const DType wide = dtype_wide(s->type->dtype);
    Node **in = NEWS(b->graph->arena, Node *, s->n_in);
    for (int i = 0; i < s->n_in; i++)
        in[i] = make_cast(b, s->in[i], wide);
    Node *sum = build_node(b, OP_sum, NULL, s->n_in, in);
    return make_cast(b, CALL(b, div, sum, build_scalar(b, wide, s->n_in)), s->type->dtype);
}

static Node *sample_mean(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, BF16, F64, F16 };
    enum { MOST = 5 };
    const int rank = variant % MOST, n = 1 + variant % MOST;
    const DType dtype = types[variant % (int)COUNT(types)];
    int64_t dims[MAX_RANK], own[MAX_RANK];
    Node *in[MOST];
    sample_dims(rng, rank, MOST, dims);
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < rank; d++)
            own[d] = i > 0 && dims[d] && rng_below(rng, 3) == 0 ? 1 : dims[d];
        in[i] = sample_tensor(b, rng, dtype, rank, own, -4, 4);
    }
    return build_node(b, OP_mean, NULL, n, in);
}

const OpDef op_mean = {
    .name = "mean",
    .min_in = 1,
    .max_in = -1,
    .infer = infer_mean,
    .expand = expand_mean,
    .sample = sample_mean,
    .n_variants = 20,
    .differentiable = ~0u,
    .weight = 2,
    .access.kind = ACCESS_ROW,
    .amp = { AMP_W, AMP_W, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT }, .out = { QUANT_INPUT } },
    .onnx = { "Mean", 13, NULL },
};

/* ---- swiglu: swish(a) b, a and b of one shape: nothing is broadcast ---- */

static const AttrSpec swiglu_attrs[] = { ATTR(AlphaAttr, alpha, FLOAT, 1), ATTR_LAST };

static Node *expand_swiglu(Build *b, const Site *s)
{
    const DType t = s->type->dtype, wide = dtype_wide(t);
    Node *gate = CALL_ATTR(b, swish, *(const AlphaAttr *)s->attr, make_cast(b, s->in[0], wide));
    return make_cast(b, CALL(b, mul, gate, make_cast(b, s->in[1], wide)), t);
}

static Node *sample_swiglu(Build *b, Rng *rng, int variant)
{
    const AlphaAttr at = { rng_below(rng, 2) ? 1 : 1.702f };
    return sample_by_signature(b, rng, variant, OP_swiglu, &at);
}

const OpDef op_swiglu = {
    .name = "swiglu",
    .min_in = 2,
    .max_in = 2,
    .attrs = swiglu_attrs,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "F[*]", "F[*]" }, .out = { "F[*]" } },
    .expand = expand_swiglu,
    .sample = sample_swiglu,
    .n_variants = 20,
    .differentiable = 3,
    .trainable = 3,
    .weight = 7,
    .access.kind = ACCESS_ROW,
    .amp = { AMP_W, AMP_W, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "SwiGLU", 28, NULL },
};

typedef struct CastLikeAttr {
    bool saturate;
    int round_mode;
} CastLikeAttr;

static const char *const round_modes[] = { "up", "down", "nearest", NULL };
static const AttrSpec cast_like_attrs[] = {
    ATTR(CastLikeAttr, saturate, BOOL, true),
    ATTR_CHOICE(CastLikeAttr, round_mode, round_modes, 0),
    ATTR_LAST,
};

static const Type *infer_cast_like(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *like = infer_tensor(q, 1);
    return x && like ? type_with_dtype(q->types, x, like->dtype) : NULL;
}

static Node *expand_cast_like(Build *b, const Site *s)
{
    const CastLikeAttr *at = s->attr;
    const CastAttr cast = { (int)s->in[1]->type->dtype + 1, at->saturate, at->round_mode };
    return build_node(b, OP_cast, &cast, 1, s->in);
}

static Node *sample_cast_like(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, F16, BF16, I32, U8, BOOL, I64, F8E4M3, F8E5M2, I4, U4 };
    int64_t dims[MAX_RANK];
    sample_dims(rng, variant % 4, 4, dims);
    Node *x = sample_tensor(b, rng, types[variant % (int)COUNT(types)], variant % 4, dims, 0, 6);
    const CastLikeAttr at = { .saturate = rng_below(rng, 2) };
    const int64_t one = 1;
    return CALL_ATTR(b, cast_like, at, x, sample_tensor(b, rng, types[rng_below(rng, COUNT(types))], 1, &one, 0, 1));
}

const OpDef op_cast_like = {
    .name = "cast_like",
    .min_in = 2,
    .max_in = 2,
    .attrs = cast_like_attrs,
    .infer = infer_cast_like,
    .expand = expand_cast_like,
    .sample = sample_cast_like,
    .n_variants = 24,
    .differentiable = 1,
    .access.kind = ACCESS_ROW,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .access.type_only = 2,
    .onnx = { "CastLike", 25, NULL },
};
