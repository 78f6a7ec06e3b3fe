/* instance, layer, rms and group normalization: statistics over part of each sample.
 *
 * The variance is the mean of squared differences from the mean, which is taken first.  Of a group, each channel is
 * taken first and then the channels, so that what is laid out with channels innermost has the same statistics. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/norm/norm.h"

static const AttrSpec instance_normalization_attrs[] = { ATTR(NormAttr, epsilon, FLOAT, 1e-5f), ATTR_LAST };

static const AttrSpec layer_normalization_attrs[] = {
    ATTR(NormAttr, axis, INT, -1),
    ATTR(NormAttr, epsilon, FLOAT, 1e-5f),
    ATTR(NormAttr, stash_type, DTYPE, F32 + 1),
    ATTR_LAST,
};

static const AttrSpec group_normalization_attrs[] = {
    ATTR(NormAttr, epsilon, FLOAT, 1e-5f),
    ATTR_REQUIRED(NormAttr, num_groups, INT),
    ATTR(NormAttr, stash_type, DTYPE, F32 + 1),
    ATTR_LAST,
};

Node *build_mean(Build *b, Node *x, Over over)
{
    if (!over.in_steps)
        return build_reduce(b, OP_reduce_mean, x, over.n, over.axes);
    for (int i = over.n - 1; i >= 0; i--)
        x = build_reduce(b, OP_reduce_mean, x, 1, &over.axes[i]);
    return x;
}

Over group_dims(const Type *x, int64_t groups, int64_t *dims)
{
    static const int64_t axes[] = { 2, 3 };
    dims[0] = x->dims[0];
    dims[1] = groups;
    dims[2] = x->dims[1] / groups;
    dims[3] = 1;
    for (int i = 2; i < x->rank; i++)
        dims[3] *= x->dims[i];
    if (dims[2] == 1) /* a channel each */
        return (Over){ 1, axes + 1, false };
    return (Over){ 2, axes, true };
}

Standard build_standard(Build *b, DType width, Node *x, Over over, float epsilon)
{
    Standard d;
    d.mean = build_mean(b, x, over);
    d.centered = CALL(b, sub, x, d.mean);
    Node *var = build_mean(b, CALL(b, mul, d.centered, d.centered), over);
    d.scale = CALL(b, reciprocal, CALL(b, sqrt, CALL(b, add, var, build_scalar(b, width, (double)epsilon))));
    return d;
}

/* The axes from `first` to the last; returns how many. */
static int axes_from(int first, int rank, int64_t *axes)
{
    for (int i = first; i < rank; i++)
        axes[i - first] = i;
    return rank - first;
}

/* The type statistics are computed in: that of the data at least, never below f32. */
static DType width_of(const NormAttr *at, DType x)
{
    return x == F64 || at->stash_type == F64 + 1 ? F64 : F32;
}

/* ---- instance_normalization ---- */

static const Type *infer_instance_normalization(Infer *q)
{
    const Type *x = infer_floats(q, 3);
    if (!x)
        return NULL;
    const int64_t channels = x->rank < 0 ? DIM_UNKNOWN : x->dims[1];
    return infer_vector(q, 1, channels) && infer_vector(q, 2, channels) ? x : NULL;
}

static Node *expand_instance_normalization(Build *b, const Site *s)
{
    const NormAttr *at = s->attr;
    int64_t axes[MAX_RANK];
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[0]->type;
    const DType t = make_width(x->dtype);
    Node *scale = make_channels(b, make_cast(b, s->in[1], t), x->dims[1], x->rank);
    Node *bias = make_channels(b, make_cast(b, s->in[2], t), x->dims[1], x->rank);
    const Over space = { axes_from(2, x->rank, axes), axes, false };
    const Standard d = build_standard(b, t, make_cast(b, s->in[0], t), space, at->epsilon);
    Node *y = CALL(b, add, CALL(b, mul, d.centered, CALL(b, mul, d.scale, scale)), bias);
    return make_cast(b, y, x->dtype);
}

static Node *sample_instance_normalization(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 3 + variant % 3;
    const DType dtype = sample_float(rng);
    const NormAttr at = { .epsilon = 1e-3f };
    sample_dims(rng, rank, 4, dims);
    return CALL_ATTR(b, instance_normalization, at, sample_tensor(b, rng, dtype, rank, dims, -2, 2),
                     sample_tensor(b, rng, dtype, 1, dims + 1, -2, 2),
                     sample_tensor(b, rng, dtype, 1, dims + 1, -2, 2));
}

/* ---- layer_normalization and rms_normalization ---- */

/* Operand i must broadcast to the data. */
static bool infer_scale(Infer *q, int i, const Type *x)
{
    int64_t dims[MAX_RANK];
    int rank = x->rank;
    if (!infer_has(q, i))
        return true;
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    bool fits = dtype_is_float(t->dtype) && (x->rank < 0 || t->rank <= x->rank);
    for (int k = 0; k < rank; k++)
        dims[k] = x->dims[k];
    if (fits && rank >= 0 && t->rank >= 0) {
        fits = broadcast_dims(&rank, dims, t);
        for (int k = 0; fits && k < rank; k++)
            fits = dims_fit(dims[k], x->dims[k]);
    }
    if (!fits)
        infer_fail(q, "operand %d is %s, which does not broadcast to %s", i, type_text(q->scratch, t),
                   type_text(q->scratch, x));
    return fits;
}

static const Type *infer_layer_normalization(Infer *q)
{
    const NormAttr *at = q->attr;
    const Type *x = infer_floats(q, 1);
    DType stash;
    if (!x)
        return NULL;
    if (!attr_dtype(at->stash_type, &stash) || !dtype_is_float(stash))
        return infer_fail(q, "stash_type is no float type");
    if (!infer_scale(q, 1, x) || !infer_scale(q, 2, x))
        return NULL;
    const Type *kept = type_unranked(q->types, stash);
    if (x->rank >= 0) {
        int64_t dims[MAX_RANK];
        int axis;
        if (!infer_axis(q, at->axis, x->rank, &axis))
            return NULL;
        for (int i = 0; i < x->rank; i++)
            dims[i] = i < axis ? x->dims[i] : 1;
        kept = type_tensor(q->types, stash, x->rank, dims);
    }
    return infer_results(q, 3, (const Type *const[]){ x, kept, kept });
}

static Node *expand_layer_normalization(Build *b, const Site *s)
{
    const NormAttr *at = s->attr;
    int64_t axes[MAX_RANK];
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[0]->type;
    const DType t = width_of(at, x->dtype), stash = (DType)(at->stash_type - 1);
    const int n = axes_from(axis_wrap(at->axis, x->rank), x->rank, axes);
    const Standard d = build_standard(b, t, make_cast(b, s->in[0], t), (Over){ n, axes, false }, at->epsilon);
    Node *y = CALL(b, mul, CALL(b, mul, d.centered, d.scale), make_cast(b, s->in[1], t));
    if (site_in(s, 2))
        y = CALL(b, add, y, make_cast(b, s->in[2], t));
    y = make_cast(b, y, x->dtype);
    if (s->n_out == 1)
        return y;
    Node *parts[] = { y, make_cast(b, d.mean, stash), make_cast(b, d.scale, stash) };
    return b->status == OK ? build_tuple(b, s->n_out, parts) : NULL;
}

static const Type *infer_rms_normalization(Infer *q)
{
    const NormAttr *at = q->attr;
    const Type *x = infer_floats(q, 1);
    DType stash;
    int axis;
    if (!x || !infer_scale(q, 1, x) || (x->rank >= 0 && !infer_axis(q, at->axis, x->rank, &axis)))
        return NULL;
    if (!attr_dtype(at->stash_type, &stash) || !dtype_is_float(stash))
        return infer_fail(q, "stash_type is no float type");
    return x;
}

static Node *expand_rms_normalization(Build *b, const Site *s)
{
    const NormAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Type *type = s->in[0]->type;
    const DType t = width_of(at, type->dtype);
    Node *x = make_cast(b, s->in[0], t);
    Node *mean = make_reduce_from(b, OP_reduce_mean, CALL(b, mul, x, x), axis_wrap(at->axis, type->rank), type->rank);
    Node *root = CALL(b, sqrt, CALL(b, add, mean, build_scalar(b, t, (double)at->epsilon)));
    Node *y = CALL(b, mul, CALL(b, mul, x, CALL(b, reciprocal, root)), make_cast(b, s->in[1], t));
    return make_cast(b, y, type->dtype);
}

/* Data, and a scale over its axes from the attribute's on. */
static Node *sample_scale(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims, int axis)
{
    int64_t some[MAX_RANK];
    for (int i = axis; i < rank; i++)
        some[i - axis] = rng_below(rng, 5) ? dims[i] : 1;
    return sample_tensor(b, rng, dtype, rank - axis, some, -2, 2);
}

static Node *sample_layer_normalization(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 5, axis = (int)rng_below(rng, rank);
    const DType dtype = sample_float(rng);
    const NormAttr at = { .epsilon = 1e-3f, .axis = variant % 2 ? axis : axis - rank, .stash_type = F32 + 1 };
    sample_dims(rng, rank, 4, dims);
    Node *in[] = { sample_tensor(b, rng, dtype, rank, dims, -2, 2), sample_scale(b, rng, dtype, rank, dims, axis),
                   rng_below(rng, 2) ? sample_scale(b, rng, dtype, rank, dims, axis) : NULL };
    return build_node_n(b, OP_layer_normalization, &at, in[2] ? 3 : 2, in, 1 + (int)rng_below(rng, 3));
}

static Node *sample_rms_normalization(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 5, axis = (int)rng_below(rng, rank);
    const DType dtype = sample_float(rng);
    const NormAttr at = { .epsilon = 1e-3f, .axis = variant % 2 ? axis : axis - rank, .stash_type = F32 + 1 };
    sample_dims(rng, rank, 4, dims);
    return CALL_ATTR(b, rms_normalization, at, sample_tensor(b, rng, dtype, rank, dims, -2, 2),
                     sample_scale(b, rng, dtype, rank, dims, axis));
}

/* ---- group_normalization ---- */

static const Type *infer_group_normalization(Infer *q)
{
    const NormAttr *at = q->attr;
    const Type *x = infer_floats(q, 2);
    DType stash;
    if (!x)
        return NULL;
    const int64_t channels = x->rank < 0 ? DIM_UNKNOWN : x->dims[1];
    if (at->num_groups < 1 || (channels >= 0 && channels % at->num_groups))
        return infer_fail(q, "%" PRId64 " channels do not split into %" PRId64 " groups", channels, at->num_groups);
    if (!attr_dtype(at->stash_type, &stash) || !dtype_is_float(stash))
        return infer_fail(q, "stash_type is no float type");
    return infer_vector(q, 1, channels) && infer_vector(q, 2, channels) ? x : NULL;
}

static Node *expand_group_normalization(Build *b, const Site *s)
{
    const NormAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[0]->type;
    const DType t = width_of(at, x->dtype);
    int64_t split[4];
    const Over over = group_dims(x, at->num_groups, split);
    Node *groups = make_reshape(b, make_cast(b, s->in[0], t), 4, split);
    const Standard d = build_standard(b, t, groups, over, at->epsilon);
    Node *y = make_reshape(b, CALL(b, mul, d.centered, d.scale), x->rank, x->dims);
    y = CALL(b, mul, y, make_channels(b, make_cast(b, s->in[1], t), x->dims[1], x->rank));
    y = CALL(b, add, y, make_channels(b, make_cast(b, s->in[2], t), x->dims[1], x->rank));
    return make_cast(b, y, x->dtype);
}

static Node *sample_group_normalization(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant % 4;
    const DType dtype = sample_float(rng);
    const NormAttr at = { .epsilon = 1e-3f, .num_groups = rng_range(rng, 1, 3), .stash_type = F32 + 1 };
    sample_dims(rng, rank, 4, dims);
    dims[1] = at.num_groups * rng_range(rng, 1, 2);
    return CALL_ATTR(b, group_normalization, at, sample_tensor(b, rng, dtype, rank, dims, -2, 2),
                     sample_tensor(b, rng, dtype, 1, dims + 1, -2, 2),
                     sample_tensor(b, rng, dtype, 1, dims + 1, -2, 2));
}

#define NORM_CARD(word, n_least, n_most, n_results, bits, fills, opset, onnx_name)                                     \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = n_least,                                                                                             \
        .max_in = n_most,                                                                                              \
        .min_out = 1,                                                                                                  \
        .max_out = n_results,                                                                                          \
        .infer = infer_##word,                                                                                         \
        .expand = expand_##word,                                                                                       \
        .adjoint = adjoint_##word,                                                                                     \
        .sample = sample_##word,                                                                                       \
        .n_variants = 30,                                                                                              \
        .differentiable = 1 | (bits),                                                                                  \
        .trainable = bits,                                                                                             \
        .filled = fills,                                                                                               \
        .weight = 6,                                                                                                   \
        .access.kind = ACCESS_COMPOSITE,                                                                               \
        .amp = { AMP_S, AMP_S, bits, REASON_NONE, NULL, .wide_out = (1u << (n_results)) - 2, .bounded = true },        \
        .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },                                                    \
        .onnx = { onnx_name, opset, NULL },                                                                            \
        .attrs = word##_attrs,                                                                                         \
    }
#define rms_normalization_attrs layer_normalization_attrs
NORM_CARD(instance_normalization, 3, 3, 1, 6, 6, 22, "InstanceNormalization");
NORM_CARD(layer_normalization, 2, 3, 3, 6, 0, 17, "LayerNormalization");
NORM_CARD(rms_normalization, 2, 2, 1, 2, 0, 23, "RMSNormalization");
NORM_CARD(group_normalization, 3, 3, 1, 6, 0, 21, "GroupNormalization");
#undef rms_normalization_attrs
#undef NORM_CARD
