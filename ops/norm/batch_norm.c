/* batch_normalization.
 *
 * Inference: y = (x - mean) * (scale / sqrt(var + epsilon)) + bias, the factor once per channel.
 * Training takes the statistics of the batch in one pass over d = x - k, where k is the running mean that comes in:
 * mean = k + E d, var = E d^2 - (E d)^2.  Its own mean and 1 / deviation are results behind those that ONNX has: the
 * adjoint reads them. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/norm/norm.h"

static const AttrSpec batch_normalization_attrs[] = {
    ATTR(BatchNormAttr, epsilon, FLOAT, 1e-5f),
    ATTR(BatchNormAttr, momentum, FLOAT, 0.9f),
    ATTR(BatchNormAttr, training_mode, BOOL, false),
    ATTR_OURS(BatchNormAttr, unbiased, BOOL, false),
    ATTR_LAST,
};

static int64_t channels_of(const Type *x)
{
    return x->rank < 0 ? DIM_UNKNOWN : x->rank < 2 ? 1 : x->dims[1];
}

static const Type *infer_batch_normalization(Infer *q)
{
    const BatchNormAttr *at = q->attr;
    const Type *x = infer_floats(q, 1);
    if (!x)
        return NULL;
    if (!at->training_mode && q->n_out > 1)
        return infer_fail(q, "has %d results, but only training gives statistics", q->n_out);
    for (int i = 1; i < 5; i++)
        if (!infer_vector(q, i, channels_of(x)))
            return NULL;
    const Type *own = type_vector(q->types, make_width(x->dtype), channels_of(x));
    return infer_results(q, BATCH_NORM_RESULTS, (const Type *const[]){ x, q->in[3], q->in[4], own, own });
}

/* What the statistics of the call come from: deviations d of the channel from `about`, their mean and variance. */
typedef struct Moments {
    Node *centered, *mean, *var; /* mean and var: [C, 1, ..] or [1, C, 1, ..] */
} Moments;

static Moments batch_moments(Build *b, DType t, Node *x, Node *running, int rank)
{
    int64_t axes[MAX_RANK] = { 0 };
    int n = 1;
    for (int i = 2; i < rank; i++)
        axes[n++] = i;
    Node *d = CALL(b, sub, x, running);
    Node *shift = build_reduce(b, OP_reduce_mean, d, n, axes);
    Node *square = build_reduce(b, OP_reduce_mean, CALL(b, mul, d, d), n, axes);
    Node *var = CALL(b, max, CALL(b, sub, square, CALL(b, mul, shift, shift)), build_scalar(b, t, 0));
    return (Moments){ CALL(b, sub, d, shift), CALL(b, add, running, shift), var };
}

double batch_norm_correction(const BatchNormAttr *at, double rows)
{
    return at->unbiased && rows > 1 ? rows / (rows - 1) : 1;
}

/* old * momentum + new * share, in the type of the old one. */
static Node *run_on(Build *b, DType t, Node *old, Node *fresh, float momentum, double share, const Type *type)
{
    Node *flat = make_reshape(b, fresh, 1, type->dims);
    Node *kept = CALL(b, mul, make_cast(b, old, t), build_scalar(b, t, (double)momentum));
    Node *added = CALL(b, mul, flat, build_scalar(b, t, share));
    return make_cast(b, CALL(b, add, kept, added), type->dtype);
}

static Node *expand_batch_normalization(Build *b, const Site *s)
{
    const BatchNormAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[0]->type;
    const DType t = make_width(x->dtype);
    const int64_t channels = channels_of(x);
    Node *channel[5] = { NULL };
    for (int i = 1; i < 5; i++)
        channel[i] = make_channels(b, make_cast(b, s->in[i], t), channels, x->rank);
    Node *wide = make_cast(b, s->in[0], t);
    Moments m = { NULL, channel[3], channel[4] };
    if (at->training_mode)
        m = batch_moments(b, t, wide, channel[3], x->rank);
    else
        m.centered = CALL(b, sub, wide, channel[3]);
    Node *root = CALL(b, sqrt, CALL(b, add, m.var, build_scalar(b, t, (double)at->epsilon)));
    Node *y = CALL(b, add, CALL(b, mul, m.centered, CALL(b, div, channel[1], root)), channel[2]);
    y = make_cast(b, y, x->dtype);
    if (s->n_out == 1)
        return y;
    const double share = 1 - (double)at->momentum, rows = channels ? (double)(type_elements(x) / channels) : 0;
    const double of_var = share * batch_norm_correction(at, rows);
    Node *parts[BATCH_NORM_RESULTS] = { y, run_on(b, t, s->in[3], m.mean, at->momentum, share, s->in[3]->type) };
    if (s->n_out > 2)
        parts[2] = run_on(b, t, s->in[4], m.var, at->momentum, of_var, s->in[4]->type);
    if (s->n_out > BATCH_NORM_MEAN)
        parts[BATCH_NORM_MEAN] = make_reshape(b, m.mean, 1, &channels);
    if (s->n_out > BATCH_NORM_INVERSE)
        parts[BATCH_NORM_INVERSE] = make_reshape(b, CALL(b, reciprocal, root), 1, &channels);
    return b->status == OK ? build_tuple(b, s->n_out, parts) : NULL;
}

static Node *sample_batch_normalization(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 5;
    const DType dtype = sample_float(rng), stats = dtype == F16 ? F32 : dtype;
    const BatchNormAttr at = {
        .epsilon = 1e-3f, .momentum = 0.75f, .training_mode = variant / 5 % 2, .unbiased = variant / 10 % 2
    };
    sample_dims(rng, rank, 4, dims);
    const int64_t c = rank < 2 ? 1 : dims[1];
    Node *in[] = { sample_tensor(b, rng, dtype, rank, dims, -2, 2), sample_tensor(b, rng, stats, 1, &c, -2, 2),
                   sample_tensor(b, rng, stats, 1, &c, -2, 2), sample_tensor(b, rng, stats, 1, &c, -1, 1),
                   sample_tensor(b, rng, stats, 1, &c, 0.5, 2) };
    return build_node_n(b, OP_batch_normalization, &at, 5, in,
                        at.training_mode ? 1 + (int)rng_below(rng, BATCH_NORM_RESULTS) : 1);
}

static const char *const saved[] = { "batch_mean", "batch_inverse_deviation", NULL };

const OpDef op_batch_normalization = {
    .name = "batch_normalization",
    .min_in = 5,
    .max_in = 5,
    .min_out = 1,
    .max_out = BATCH_NORM_RESULTS,
    .saved = saved,
    .attrs = batch_normalization_attrs,
    .infer = infer_batch_normalization,
    .expand = expand_batch_normalization,
    .adjoint = adjoint_batch_normalization,
    .sample = sample_batch_normalization,
    .n_variants = 40,
    .mode = MODE_TRAINING,
    .differentiable = 31,
    .trainable = 6,
    .statistics = 8 | 16,
    .weight = 12,
    .access.kind = ACCESS_COMPOSITE,
    .amp = { AMP_S, AMP_S, 2 | 4 | 8 | 16, REASON_NONE, NULL, .wide_out = 2 | 4 | 8 | 16, .bounded = true },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "BatchNormalization", 15, NULL },
};
