/* The adjoints of the normalizations: a formula with two means in place of the many nodes of the expansion.
 * Statistics that the call does not give are computed again from x; nothing but x is kept for them. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/norm/norm.h"

static Node *plus(Build *b, Node *so_far, Node *term)
{
    return so_far ? CALL(b, add, so_far, term) : term;
}

/* 1 / sqrt(v + epsilon) */
static Node *inverse_root(Build *b, Node *v, float epsilon)
{
    Node *e = v ? build_scalar(b, v->type->dtype, (double)epsilon) : NULL;
    return CALL(b, reciprocal, CALL(b, sqrt, CALL(b, add, v, e)));
}

/* From g at unit = (x - mean) * scale to x: scale (g - mean(g) - unit mean(g unit)). */
static Node *back_standard(Build *b, Node *g, Node *unit, Node *scale, Over over)
{
    Node *along = CALL(b, mul, unit, build_mean(b, CALL(b, mul, g, unit), over));
    return CALL(b, mul, scale, CALL(b, sub, CALL(b, sub, g, build_mean(b, g, over)), along));
}

/* ---- layer_normalization and rms_normalization ---- */

/* The mean and 1 / deviation are results of some calls, and good when they were not narrowed. */
static Standard layer_standard(Build *b, const Site *s, DType t, Over over)
{
    const NormAttr *at = s->attr;
    const DType stash = (DType)(at->stash_type - 1);
    if (s->n_out < 3 || (stash != t && stash != F64))
        return build_standard(b, t, s->in[0], over, at->epsilon);
    Node *mean = make_cast(b, s->y[1], t);
    return (Standard){ CALL(b, sub, s->in[0], mean), mean, make_cast(b, s->y[2], t) };
}

static int inner_axes(int64_t axis, int rank, int64_t *axes)
{
    int n = 0;
    for (int i = axis_wrap(axis, rank); i < rank; i++)
        axes[n++] = i;
    return n;
}

void adjoint_layer_normalization(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    const DType t = x->dtype;
    int64_t axes[MAX_RANK], count = 1;
    const Over over = { inner_axes(((const NormAttr *)s->attr)->axis, x->rank, axes), axes, false };
    if (type_elements(x) == 0)
        return;
    for (int i = 0; i < over.n; i++)
        count *= x->dims[axes[i]];
    const Standard d = layer_standard(b, s, t, over);
    Node *unit = CALL(b, mul, d.centered, d.scale), *dy = s->dout[0];
    if (dy && s->want[0])
        dx[0] = back_standard(b, CALL(b, mul, dy, make_cast(b, s->in[1], t)), unit, d.scale, over);
    if (dy && s->want[1])
        dx[1] = CALL(b, mul, dy, unit);
    if (dy && site_in(s, 2) && s->want[2])
        dx[2] = dy;
    if (!s->want[0])
        return;
    Node *share = build_scalar(b, t, 1.0 / (double)count);
    if (s->n_out > 1 && s->dout[1])
        dx[0] = plus(b, dx[0], CALL(b, mul, make_cast(b, s->dout[1], t), share));
    if (s->n_out > 2 && s->dout[2]) { /* -scale^3 (x - mean) / count */
        Node *steep = CALL(b, mul, CALL(b, mul, d.scale, d.scale), CALL(b, neg, share));
        dx[0] = plus(b, dx[0], CALL(b, mul, unit, CALL(b, mul, make_cast(b, s->dout[2], t), steep)));
    }
}

/* With unit = x scale: scale (g - unit mean(g unit)). */
void adjoint_rms_normalization(Build *b, const Site *s, Node **dx)
{
    const NormAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    int64_t axes[MAX_RANK];
    const Over over = { inner_axes(at->axis, x->rank, axes), axes, false };
    Node *dy = s->dout[0], *square = CALL(b, mul, s->in[0], s->in[0]);
    Node *scale = inverse_root(b, build_mean(b, square, over), at->epsilon);
    Node *unit = CALL(b, mul, s->in[0], scale);
    if (s->want[0]) {
        Node *g = CALL(b, mul, dy, make_cast(b, s->in[1], x->dtype));
        Node *along = CALL(b, mul, unit, build_mean(b, CALL(b, mul, g, unit), over));
        dx[0] = CALL(b, mul, scale, CALL(b, sub, g, along));
    }
    if (s->want[1])
        dx[1] = CALL(b, mul, dy, unit);
}

/* ---- with scale and bias of channels ---- */

/* A sum over all axes but that of the channels, as [1, C, 1, ..]. */
static Node *sum_channels(Build *b, Node *x, int rank)
{
    int64_t axes[MAX_RANK] = { 0 };
    int n = 1;
    for (int i = 2; i < rank; i++)
        axes[n++] = i;
    return build_reduce(b, OP_reduce_sum, x, n, axes);
}

static Node *as_vector(Build *b, Node *sum, const Type *like)
{
    return make_reshape(b, sum, 1, like->dims);
}

/* Statistics of `groups` parts of each sample. */
static void back_groups(Build *b, const Site *s, Node **dx, int64_t groups, float epsilon)
{
    const Type *x = s->in[0]->type, *channels = s->in[1]->type;
    int64_t split[4];
    Node *dy = s->dout[0];
    if (type_elements(x) == 0)
        return;
    const Over over = group_dims(x, groups, split);
    const Standard d = build_standard(b, x->dtype, make_reshape(b, s->in[0], 4, split), over, epsilon);
    Node *unit = CALL(b, mul, d.centered, d.scale);
    if (s->want[0]) {
        Node *scale = make_channels(b, make_cast(b, s->in[1], x->dtype), x->dims[1], x->rank);
        Node *g = make_reshape(b, CALL(b, mul, dy, scale), 4, split);
        dx[0] = make_reshape(b, back_standard(b, g, unit, d.scale, over), x->rank, x->dims);
    }
    if (s->want[1]) {
        Node *each = CALL(b, mul, dy, make_reshape(b, unit, x->rank, x->dims));
        dx[1] = as_vector(b, sum_channels(b, each, x->rank), channels);
    }
    if (s->want[2])
        dx[2] = as_vector(b, sum_channels(b, dy, x->rank), channels);
}

void adjoint_instance_normalization(Build *b, const Site *s, Node **dx)
{
    back_groups(b, s, dx, s->in[0]->type->dims[1], ((const NormAttr *)s->attr)->epsilon);
}

void adjoint_group_normalization(Build *b, const Site *s, Node **dx)
{
    const NormAttr *at = s->attr;
    back_groups(b, s, dx, at->num_groups, at->epsilon);
}

/* ---- batch_normalization ---- */

/* A call: its vectors along the channels, what is centered and scaled, sums of dy and of dy centered. */
typedef struct Batch {
    const BatchNormAttr *at;
    int rank;
    DType t;
    double rows; /* elements of a channel */
    Node *scale, *centered, *inverse, *dy, *sum, *product;
} Batch;

static Node *channel_vector(Build *b, const Site *s, int i)
{
    const Type *x = s->in[0]->type, *v = s->in[i]->type;
    return make_channels(b, make_cast(b, s->in[i], x->dtype), v->dims[0], x->rank);
}

/* The mean and 1 / deviation of the batch are results of a call that was made to be differentiated. */
static Standard batch_standard(Build *b, const Site *s)
{
    const BatchNormAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    const int64_t channels = s->in[1]->type->dims[0];
    int64_t axes[MAX_RANK] = { 0 };
    int n = 1;
    for (int i = 2; i < x->rank; i++)
        axes[n++] = i;
    if (s->n_out < BATCH_NORM_RESULTS)
        return build_standard(b, x->dtype, s->in[0], (Over){ n, axes, false }, at->epsilon);
    Node *mean = make_channels(b, s->y[BATCH_NORM_MEAN], channels, x->rank);
    Node *inverse = make_channels(b, s->y[BATCH_NORM_INVERSE], channels, x->rank);
    return (Standard){ CALL(b, sub, s->in[0], mean), mean, inverse };
}

static Batch open_batch(Build *b, const Site *s)
{
    const Type *x = s->in[0]->type;
    Batch k = { .at = s->attr, .rank = x->rank, .t = x->dtype, .dy = s->dout[0] };
    k.rows = (double)(type_elements(x) / s->in[1]->type->dims[0]);
    k.scale = channel_vector(b, s, 1);
    if (k.at->training_mode) {
        const Standard d = batch_standard(b, s);
        k.centered = d.centered;
        k.inverse = d.scale;
    } else {
        k.centered = CALL(b, sub, s->in[0], channel_vector(b, s, 3));
        k.inverse = inverse_root(b, channel_vector(b, s, 4), k.at->epsilon);
    }
    const bool vectors = s->want[1] || s->want[2] || s->want[3] || s->want[4];
    if (k.dy && (vectors || k.at->training_mode)) {
        k.sum = sum_channels(b, k.dy, x->rank);
        k.product = sum_channels(b, CALL(b, mul, k.dy, k.centered), x->rank);
    }
    return k;
}

/* scale inverse (dy - sum(dy) / rows - centered inverse^2 sum(dy centered) / rows) */
static Node *back_batch(Build *b, const Batch *k)
{
    Node *factor = CALL(b, mul, k->scale, k->inverse);
    if (!k->at->training_mode)
        return CALL(b, mul, k->dy, factor);
    Node *rows = build_scalar(b, k->t, k->rows);
    Node *steep = CALL(b, div, CALL(b, mul, CALL(b, mul, k->inverse, k->inverse), k->product), rows);
    Node *level = CALL(b, sub, k->dy, CALL(b, div, k->sum, rows));
    return CALL(b, mul, factor, CALL(b, sub, level, CALL(b, mul, k->centered, steep)));
}

/* The gradients of mean and variance where they are operands, in inference. */
static void back_given(Build *b, const Site *s, const Batch *k, Node **dx)
{
    Node *factor = CALL(b, neg, CALL(b, mul, k->scale, k->inverse));
    if (s->want[3])
        dx[3] = as_vector(b, CALL(b, mul, k->sum, factor), s->in[3]->type);
    if (s->want[4]) {
        Node *half = CALL(b, mul, build_scalar(b, k->t, 0.5), CALL(b, mul, k->inverse, k->inverse));
        dx[4] = as_vector(b, CALL(b, mul, k->product, CALL(b, mul, factor, half)), s->in[4]->type);
    }
}

/* What reaches x by the mean and 1 / deviation as results: 1 / rows, and -inverse^3 centered / rows of that. */
static void back_saved(Build *b, const Site *s, const Batch *k, Node **dx)
{
    Node *share = build_scalar(b, k->t, 1 / k->rows);
    for (int i = BATCH_NORM_MEAN; i < s->n_out; i++) {
        if (!s->dout[i])
            continue;
        Node *each = make_channels(b, CALL(b, mul, s->dout[i], share), s->in[1]->type->dims[0], k->rank);
        if (i == BATCH_NORM_INVERSE) {
            Node *cube = CALL(b, mul, k->inverse, CALL(b, mul, k->inverse, k->inverse));
            each = CALL(b, mul, k->centered, CALL(b, neg, CALL(b, mul, each, cube)));
        }
        dx[0] = plus(b, dx[0], each);
    }
}

/* What the running statistics pass on: to those before, and to the batch. */
static void back_running(Build *b, const Site *s, const Batch *k, Node **dx)
{
    const double kept = (double)k->at->momentum, fresh = (1 - kept) / k->rows;
    const double correction = batch_norm_correction(k->at, (double)k->rows);
    for (int i = 1; i < BATCH_NORM_MEAN && i < s->n_out; i++) {
        if (!s->dout[i])
            continue;
        Node *dy = make_cast(b, s->dout[i], k->t);
        if (s->want[i + 2])
            dx[i + 2] = CALL(b, mul, dy, build_scalar(b, k->t, kept));
        if (!s->want[0])
            continue;
        Node *each = make_channels(b, dy, s->in[1]->type->dims[0], k->rank);
        each = CALL(b, mul, each, build_scalar(b, k->t, i == 1 ? fresh : 2 * fresh * correction));
        dx[0] = plus(b, dx[0], i == 1 ? each : CALL(b, mul, each, k->centered));
    }
}

void adjoint_batch_normalization(Build *b, const Site *s, Node **dx)
{
    if (type_elements(s->in[0]->type) == 0)
        return;
    const Batch k = open_batch(b, s);
    if (k.dy && s->want[0])
        dx[0] = back_batch(b, &k);
    if (k.dy && s->want[1])
        dx[1] = as_vector(b, CALL(b, mul, k.product, k.inverse), s->in[1]->type);
    if (k.dy && s->want[2])
        dx[2] = as_vector(b, k.sum, s->in[2]->type);
    if (k.at->training_mode && s->want[0])
        back_saved(b, s, &k, dx);
    if (k.at->training_mode)
        back_running(b, s, &k, dx);
    else if (k.dy)
        back_given(b, s, &k, dx);
}
