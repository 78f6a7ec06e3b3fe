/* fold_norm: the weight and the bias of a product with the normalization behind it, by running statistics.
 *
 * With k = scale / sqrt(var + epsilon) for each channel these are w k and shift + (b - mean) k: what deploys is a product
 * alone.  A step that trains through batches puts the normalization back (train-norms), which divides by k: a scale nearer
 * to 0 than 2^-12 is moved away from it, and learns as it is. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/norm/norm.h"

static const AttrSpec fold_norm_attrs[] = {
    ATTR(FoldNormAttr, epsilon, FLOAT, 1e-5f),
    ATTR(FoldNormAttr, momentum, FLOAT, 0.9f),
    ATTR(FoldNormAttr, axis, INT, 0),
    ATTR_LAST,
};

static const Type *infer_fold_norm(Infer *q)
{
    const FoldNormAttr *at = q->attr;
    const Type *w = infer_floats(q, 1);
    if (!w)
        return NULL;
    if (at->axis < 0 || (w->rank >= 0 && at->axis >= w->rank))
        return infer_fail(q, "axis %" PRId64 " is none of the weight", at->axis);
    const int64_t channels = w->rank < 0 ? DIM_UNKNOWN : w->dims[at->axis];
    for (int i = FOLD_NORM_SCALE; i < q->n_in; i++)
        if (q->in[i] && !infer_vector(q, i, channels))
            return NULL;
    return infer_results(q, 2, (const Type *const[]){ w, type_vector(q->types, w->dtype, channels) });
}

Node *fold_norm_scale(Build *b, Node *scale, DType t)
{
    scale = make_cast(b, scale, t);
    Node *size = CALL(b, abs, scale), *least = build_scalar(b, t, 0x1p-12);
    Node *away = build_scalar(b, t, 0x1p-11), *nothing = build_scalar(b, t, 0);
    Node *lost = CALL(b, less, size, least);
    return CALL(b, add, scale, CALL(b, where, lost, away, nothing));
}

Node *fold_norm_gain(Build *b, Node *const *in, DType t, double epsilon)
{
    Node *var = make_cast(b, in[FOLD_NORM_VAR], t);
    Node *root = CALL(b, sqrt, CALL(b, add, var, build_scalar(b, t, epsilon)));
    Node *scale = fold_norm_scale(b, in[FOLD_NORM_SCALE], t);
    return CALL(b, div, scale, root);
}

Node *fold_norm_spread(Build *b, Node *x, const Type *w, int64_t axis)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < w->rank; i++)
        dims[i] = i == axis ? w->dims[i] : 1;
    return make_reshape(b, x, w->rank, dims);
}

static Node *expand_fold_norm(Build *b, const Site *s)
{
    const FoldNormAttr *at = s->attr;
    const Type *w = s->in[FOLD_NORM_W]->type;
    const DType t = w->dtype;
    if (!make_ready(b, s))
        return NULL;
    Node *gain = fold_norm_gain(b, s->in, t, (double)at->epsilon);
    Node *shift = make_cast(b, s->in[FOLD_NORM_SHIFT], t), *mean = make_cast(b, s->in[FOLD_NORM_MEAN], t);
    Node *weight = CALL(b, mul, s->in[FOLD_NORM_W], fold_norm_spread(b, gain, w, at->axis));
    const bool biased = s->n_in > FOLD_NORM_BIAS && s->in[FOLD_NORM_BIAS];
    Node *from = biased ? CALL(b, sub, s->in[FOLD_NORM_BIAS], mean) : CALL(b, neg, mean);
    Node *parts[] = { weight, CALL(b, add, shift, CALL(b, mul, from, gain)) };
    return b->status != OK ? NULL : s->n_out == 1 ? parts[0] : build_tuple(b, s->n_out, parts);
}

static Node *sample_fold_norm(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 4;
    sample_dims(rng, rank, 4, dims);
    const FoldNormAttr at = { .epsilon = 1e-3f, .momentum = 0.75f, .axis = (int64_t)rng_below(rng, (uint64_t)rank) };
    const int64_t c = dims[at.axis];
    Node *in[FOLD_NORM_OPERANDS];
    in[FOLD_NORM_W] = sample_tensor(b, rng, F32, rank, dims, -2, 2);
    for (int i = FOLD_NORM_SCALE; i < FOLD_NORM_OPERANDS; i++)
        in[i] = sample_tensor(b, rng, F32, 1, &c, i == FOLD_NORM_VAR ? 0.5 : -2, 2);
    const int n_in = variant % 8 < 4 ? FOLD_NORM_OPERANDS : FOLD_NORM_BIAS;
    return build_node_n(b, OP_fold_norm, &at, n_in, in, 1 + (int)rng_below(rng, 2));
}

const OpDef op_fold_norm = {
    .name = "fold_norm",
    .min_in = FOLD_NORM_BIAS,
    .max_in = FOLD_NORM_OPERANDS,
    .min_out = 1,
    .max_out = 2,
    .attrs = fold_norm_attrs,
    .infer = infer_fold_norm,
    .expand = expand_fold_norm,
    .sample = sample_fold_norm,
    .n_variants = 16,
    .differentiable = 63,
    .trainable = 1 | 2 | 4 | 32,
    .weight = 4,
    .access.kind = ACCESS_COMPOSITE,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief =
        "The weight and the bias of a product that has taken a normalization by running statistics in: w k and "
        "shift + (b - mean) k, with k = scale / sqrt(var + epsilon) for each index of axis; 2^-11 is added to a scale below "
        "2^-12.",
};
