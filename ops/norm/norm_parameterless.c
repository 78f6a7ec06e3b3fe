/* mean_variance_normalization, lp_normalization and lrn: normalizations without parameters. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/norm/norm.h"
#include "ops/window/window.h"

static const AttrSpec mean_variance_normalization_attrs[] = { ATTR_OPTIONAL(MvnAttr, axes, INTS), ATTR_LAST };

static const AttrSpec lp_normalization_attrs[] = {
    ATTR(LpNormAttr, axis, INT, -1),
    ATTR(LpNormAttr, p, INT, 2),
    ATTR_LAST,
};

static const AttrSpec lrn_attrs[] = {
    ATTR(LrnAttr, alpha, FLOAT, 1e-4f),
    ATTR(LrnAttr, beta, FLOAT, 0.75f),
    ATTR(LrnAttr, bias, FLOAT, 1),
    ATTR_REQUIRED(LrnAttr, size, INT),
    ATTR_LAST,
};

/* ---- mean_variance_normalization ---- */

static const int64_t usual_axes[] = { 0, 2, 3 };

static Ints mvn_axes(const MvnAttr *at)
{
    return at->axes.v ? at->axes : (Ints){ COUNT(usual_axes), usual_axes };
}

static const Type *infer_mean_variance_normalization(Infer *q)
{
    const Ints axes = mvn_axes(q->attr);
    const Type *x = infer_floats(q, 0);
    Axes checked;
    return x && (x->rank < 0 || infer_axes(q, axes.v, axes.n, x->rank, &checked)) ? x : NULL;
}

/* (x - mean) / (sqrt(variance) + 1e-9): that constant is the operator's own. */
static Node *expand_mean_variance_normalization(Build *b, const Site *s)
{
    const Ints axes = mvn_axes(s->attr);
    if (!make_ready(b, s))
        return NULL;
    const Type *type = s->in[0]->type;
    const DType t = make_width(type->dtype);
    Node *x = make_cast(b, s->in[0], t);
    if (axes.n == 0) /* over no axis every element is its own mean */
        return make_cast(b, CALL(b, sub, x, x), type->dtype);
    Node *d = CALL(b, sub, x, build_reduce(b, OP_reduce_mean, x, axes.n, axes.v));
    Node *deviation = CALL(b, sqrt, build_reduce(b, OP_reduce_mean, CALL(b, mul, d, d), axes.n, axes.v));
    return make_cast(b, CALL(b, div, d, CALL(b, add, deviation, build_scalar(b, t, 1e-9))), type->dtype);
}

static Node *sample_mean_variance_normalization(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], *axes = NEWS(b->graph->arena, int64_t, MAX_RANK);
    const int rank = 4 + variant % 2;
    MvnAttr at = { { 0 } };
    sample_dims(rng, rank, 4, dims);
    if (variant % 3) {
        sample_order(rng, rank, axes);
        at.axes = (Ints){ (int)rng_below(rng, rank), axes };
    }
    return CALL_ATTR(b, mean_variance_normalization, at, sample_tensor(b, rng, sample_float(rng), rank, dims, -2, 2));
}

/* ---- lp_normalization ---- */

static const Type *infer_lp_normalization(Infer *q)
{
    const LpNormAttr *at = q->attr;
    const Type *x = infer_floats(q, 1);
    int axis;
    if (!x || (x->rank >= 0 && !infer_axis(q, at->axis, x->rank, &axis)))
        return NULL;
    return at->p == 1 || at->p == 2 ? x : infer_fail(q, "p is %" PRId64 ", wanted is 1 or 2", at->p);
}

/* What has norm zero stays zero. */
static Node *expand_lp_normalization(Build *b, const Site *s)
{
    const LpNormAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Type *type = s->in[0]->type;
    const DType t = make_width(type->dtype);
    const int64_t axis = axis_wrap(at->axis, type->rank);
    Node *x = make_cast(b, s->in[0], t);
    Node *norm = build_reduce(b, at->p == 1 ? OP_reduce_l1 : OP_reduce_l2, x, 1, &axis);
    Node *none = CALL(b, equal, norm, build_scalar(b, t, 0));
    Node *y = CALL(b, div, x, CALL(b, where, none, build_scalar(b, t, 1), norm));
    return make_cast(b, y, type->dtype);
}

static Node *sample_lp_normalization(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 4;
    const LpNormAttr at = { .axis = rng_range(rng, -rank, rank - 1), .p = 1 + variant % 2 };
    sample_dims(rng, rank, 4, dims);
    return CALL_ATTR(b, lp_normalization, at, sample_tensor(b, rng, sample_float(rng), rank, dims, -2, 2));
}

/* ---- lrn ---- */

static const Type *infer_lrn(Infer *q)
{
    const int64_t size = ((const LrnAttr *)q->attr)->size;
    const Type *x = infer_floats(q, 2);
    if (size < 1 || size > q->ir->limits.dim)
        return infer_fail(q, "size is %" PRId64 ", wanted is at least 1", size);
    return x;
}

/* The mean over `size` channels, absent ones counting as zero, is an average pool along the channels.  `back` turns the
 * window round: every channel then gathers from those that it was part of. */
static Node *window_mean(Build *b, const LrnAttr *at, const Type *type, Node *v, bool back)
{
    const int64_t before = back ? at->size / 2 : (at->size - 1) / 2;
    const int64_t kernel[] = { at->size, 1 }, pads[] = { before, 0, at->size - 1 - before, 0 };
    int64_t dims[] = { type->dims[0], 1, type->dims[1], 1 };
    for (int i = 2; i < type->rank; i++)
        dims[3] *= type->dims[i];
    const PoolAttr pool = { .window = { .kernel_shape = { 2, kernel }, .pads = { 4, pads } },
                            .count_include_pad = true };
    return make_reshape(b, CALL_ATTR(b, average_pool, pool, make_reshape(b, v, 4, dims)), type->rank, type->dims);
}

/* bias + alpha mean(x^2) */
static Node *lrn_base(Build *b, const LrnAttr *at, const Type *type, DType t, Node *x)
{
    Node *mean = window_mean(b, at, type, CALL(b, mul, x, x), false);
    return CALL(b, add, CALL(b, mul, mean, build_scalar(b, t, (double)at->alpha)),
                build_scalar(b, t, (double)at->bias));
}

static Node *expand_lrn(Build *b, const Site *s)
{
    const LrnAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Type *type = s->in[0]->type;
    const DType t = make_width(type->dtype);
    Node *x = make_cast(b, s->in[0], t);
    if (type_elements(type) == 0)
        return s->in[0];
    Node *base = lrn_base(b, at, type, t, x);
    Node *y = CALL(b, div, x, CALL(b, pow, base, build_scalar(b, t, (double)at->beta)));
    return make_cast(b, y, type->dtype);
}

/* dy base^-beta - 2 alpha beta x mean(dy y / base) */
static void adjoint_lrn(Build *b, const Site *s, Node **dx)
{
    const LrnAttr *at = s->attr;
    const Type *type = s->in[0]->type;
    const DType t = type->dtype;
    Node *x = s->in[0], *dy = s->dout[0];
    if (type_elements(type) == 0)
        return;
    Node *base = lrn_base(b, at, type, t, x);
    Node *own = CALL(b, div, dy, CALL(b, pow, base, build_scalar(b, t, (double)at->beta)));
    Node *others = window_mean(b, at, type, CALL(b, div, CALL(b, mul, dy, s->y[0]), base), true);
    Node *factor = build_scalar(b, t, 2 * (double)at->alpha * (double)at->beta);
    dx[0] = CALL(b, sub, own, CALL(b, mul, CALL(b, mul, factor, x), others));
}

static Node *sample_lrn(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant % 4;
    const LrnAttr at = { .alpha = 0.5f, .beta = 0.75f, .bias = 1, .size = rng_range(rng, 1, 4) };
    sample_dims(rng, rank, 4, dims);
    return CALL_ATTR(b, lrn, at, sample_tensor(b, rng, sample_float(rng), rank, dims, -2, 2));
}

#define NORM_CARD(word, back, limited, opset, onnx_name)                                                               \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = 1,                                                                                                   \
        .max_in = 1,                                                                                                   \
        .attrs = word##_attrs,                                                                                         \
        .infer = infer_##word,                                                                                         \
        .expand = expand_##word,                                                                                       \
        .adjoint = back,                                                                                               \
        .sample = sample_##word,                                                                                       \
        .n_variants = 24,                                                                                              \
        .differentiable = 1,                                                                                           \
        .weight = 12,                                                                                                  \
        .access.kind = ACCESS_COMPOSITE,                                                                               \
        .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL, .bounded = limited },                                             \
        .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },                                                    \
        .onnx = { onnx_name, opset, NULL },                                                                            \
    }
NORM_CARD(mean_variance_normalization, NULL, true, 13, "MeanVarianceNormalization");
NORM_CARD(lp_normalization, NULL, true, 22, "LpNormalization");
NORM_CARD(lrn, adjoint_lrn, false, 13, "LRN");
#undef NORM_CARD
