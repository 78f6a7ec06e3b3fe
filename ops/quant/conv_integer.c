/* conv_integer and qlinear_conv: windows of codes times codes, accumulated in 32 bits. */
#include "base/parallel.h"
#include "ops/quant/integer.h"
#include "ops/window/window.h"
#include "ops/window/window_access.h"

static const AttrSpec conv_integer_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),
    WINDOW_INTS(ConvAttr, dilations),
    WINDOW_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1),
    ATTR_LAST,
};

/* The operands of qlinear_conv. */
enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

/* A scale or zero point of the weights: one, or one a result channel. */
static bool check_per_channel(Infer *q, int i, const Type *w)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    const int64_t n = type_elements(t), m = w->rank > 0 ? w->dims[0] : DIM_UNKNOWN;
    const bool fits = n < 0 || n == 1 || (t->rank == 1 && (m < 0 || n == m));
    if (!fits)
        infer_fail(q, "operand %d, %s, is neither one number nor one a channel of %" PRId64, i,
                   type_text(q->scratch, t), m);
    return fits;
}

static const Type *infer_result(Infer *q, const Type *x, const Type *w, DType dtype)
{
    const ConvAttr *at = q->attr;
    Window win;
    if (!infer_filter_rank(q, x, w, at->group))
        return NULL;
    if (x->rank < 0 || w->rank < 0)
        return type_unranked(q->types, dtype);
    if (!infer_groups(q, x, w, at->group) || !infer_window(q, &at->window, x, w->dims + 2, &win))
        return NULL;
    return infer_channels(q, dtype, x->dims[0], w->dims[0], &win);
}

static const Type *infer_conv_integer(Infer *q)
{
    if (!infer_codes(q, 0, false) || !infer_codes(q, 1, false))
        return NULL;
    if (infer_has(q, 2) && !infer_single(q, 2, 0))
        return NULL;
    if (infer_has(q, 3) && !check_per_channel(q, 3, q->in[1]))
        return NULL;
    if (infer_has(q, 3) && q->in[3]->dtype != q->in[1]->dtype)
        return infer_fail(q, "has weights of %s but zero points of %s", dtype_name(q->in[1]->dtype),
                          dtype_name(q->in[3]->dtype));
    return infer_result(q, q->in[0], q->in[1], I32);
}

static const Type *infer_qlinear_conv(Infer *q)
{
    if (!infer_codes(q, X, false) || !infer_codes(q, W, false) || !infer_codes(q, Y_ZERO, false) ||
        !infer_single(q, X_SCALE, -1) || !infer_single(q, X_ZERO, X) || !infer_single(q, Y_SCALE, X_SCALE) ||
        !infer_single(q, Y_ZERO, Y_ZERO) || !check_per_channel(q, W_SCALE, q->in[W]) ||
        !check_per_channel(q, W_ZERO, q->in[W]))
        return NULL;
    if (q->in[X_SCALE]->dtype != F32 || q->in[W_SCALE]->dtype != F32)
        return infer_fail(q, "wants scales of f32");
    if (q->in[W_ZERO]->dtype != q->in[W]->dtype)
        return infer_fail(q, "has weights of %s but zero points of %s", dtype_name(q->in[W]->dtype),
                          dtype_name(q->in[W_ZERO]->dtype));
    if (infer_has(q, BIAS)) {
        const Type *b = infer_tensor(q, BIAS), *w = q->in[W];
        if (!b || b->dtype != I32 || (b->rank >= 0 && b->rank != 1) ||
            (b->rank == 1 && w->rank > 0 && b->dims[0] >= 0 && w->dims[0] >= 0 && b->dims[0] != w->dims[0]))
            return infer_fail(q, "wants a bias of one i32 a channel");
    }
    return infer_result(q, q->in[X], q->in[W], q->in[Y_ZERO]->dtype);
}

/* One call: centred codes, and every result channel of every image one item. */
typedef struct ConvCodes {
    Window w;
    int64_t groups, channels, results; /* channels and results of a group */
    int64_t taps, in, out;             /* of a kernel; spatial elements of data and result */
    const i32 *x, *filter;
    i32 *acc;
} ConvCodes;

static i32 sum_window(const ConvCodes *c, const i32 *x, const i32 *filter, const int64_t *at)
{
    Taps t;
    i32 sum = 0;
    for (bool more = taps_at(&t, &c->w, at); more; more = taps_next(&t)) {
        int64_t tap = 0;
        for (int i = 0; i < c->w.rank; i++)
            tap = tap * c->w.kernel[i] + t.tap[i];
        for (int64_t k = 0; k < c->channels; k++) {
            const i32 *from = x + k * c->in + t.offset, *by = filter + k * c->taps + tap;
            for (int64_t i = 0; i < t.n; i++)
                sum += from[i * t.step] * by[i];
        }
    }
    return sum;
}

static void conv_planes(void *arg, int64_t begin, int64_t end, int worker)
{
    const ConvCodes *c = arg;
    const int64_t m = c->groups * c->results;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t at[MAX_SPATIAL] = { 0 };
        const int64_t image = item / m, result = item % m, group = result / c->results;
        const i32 *x = c->x + (image * c->groups + group) * c->channels * c->in;
        for (int64_t k = 0; k < c->out; k++) {
            c->acc[item * c->out + k] = sum_window(c, x, c->filter + result * c->channels * c->taps, at);
            position_next(c->w.rank, c->w.out, at);
        }
    }
}

/* Codes minus their zero points: one for all, or one for each of the `channels` into which the elements fall. */
static const i32 *centred(Eval *e, int i, int zero, int64_t channels)
{
    i32 *v = eval_i32(e, i);
    if (!eval_has(e, zero))
        return v;
    const int64_t n = eval_elements(e, i), zeros = eval_elements(e, zero);
    const i32 *z = eval_i32(e, zero);
    for (int64_t k = 0; k < n; k++)
        v[k] -= z[zeros == 1 ? 0 : k / (n / channels)];
    return v;
}

/* Accumulators of the call whose codes are operands x and w; `acc` may be the result itself. */
static void accumulate(Eval *e, int x, int x_zero, int w, int w_zero, i32 *acc)
{
    const ConvAttr *at = e->attr;
    const Type *tx = e->in[x]->type, *tw = e->in[w]->type;
    ConvCodes c = { .groups = at->group, .channels = tw->dims[1], .results = tw->dims[0] / at->group, .acc = acc };
    eval_window(e, &at->window, x, tw->dims + 2, &c.w);
    c.taps = window_product(c.w.rank, c.w.kernel);
    c.in = window_product(c.w.rank, c.w.in);
    c.out = window_product(c.w.rank, c.w.out);
    c.x = centred(e, x, x_zero, 1);
    c.filter = centred(e, w, w_zero, tw->dims[0]);
    eval_parallel(e, tx->dims[0] * tw->dims[0], conv_planes, &c);
}

static Status eval_conv_integer(Eval *e)
{
    accumulate(e, 0, 2, 1, 3, eval_out(e, 0)->data);
    return OK;
}

static Status eval_qlinear_conv(Eval *e)
{
    Tensor *y = eval_out(e, 0);
    const int64_t n = tensor_elements(y), m = y->type->dims[1], plane = n ? n / y->type->dims[0] / m : 0;
    i32 *acc = eval_scratch(e, (size_t)n, sizeof *acc);
    accumulate(e, X, X_ZERO, W, W_ZERO, acc);

    const Requantizer rq = requantizer_of(y->type->dtype, (f32)eval_int(e, Y_ZERO, 0));
    const i32 *bias = eval_has(e, BIAS) ? eval_i32(e, BIAS) : NULL;
    const f32 *scales = eval_f32(e, W_SCALE);
    const f32 sx = (f32)eval_float(e, X_SCALE, 0), sy = (f32)eval_float(e, Y_SCALE, 0);
    f32 *codes = eval_scratch(e, (size_t)plane, sizeof *codes);
    for (int64_t item = 0; n && item < n / plane; item++) {
        const int64_t channel = item % m;
        const f32 by = requantize_scale(sx, scales[eval_elements(e, W_SCALE) == 1 ? 0 : channel], sy);
        for (int64_t k = 0; k < plane; k++)
            codes[k] = requantize(&rq, acc[item * plane + k] + (bias ? bias[channel] : 0), by);
        store_codes(y, item * plane, codes, plane, true);
    }
    return OK;
}

/* Data and weights of a valid call; `m` gets the result channels. */
static void draw_conv(Build *b, Rng *rng, int variant, ConvAttr *at, Node **x, Node **w, int64_t *m)
{
    int64_t dx[MAX_RANK], dw[MAX_RANK];
    const int rank = 1 + variant % 3;
    const DType tx = variant & 1 ? I8 : U8, tw = variant & 2 ? I8 : U8;
    *at = (ConvAttr){ .group = rng_range(rng, 1, 3) };
    dx[0] = rng_below(rng, 8) ? rng_range(rng, 1, 2) : 0;
    dw[1] = rng_range(rng, 1, 3);
    dx[1] = dw[1] * at->group;
    *m = dw[0] = rng_range(rng, 1, 3) * at->group;
    for (int i = 0; i < rank; i++)
        dx[2 + i] = rng_range(rng, 1, 6);
    sample_window(rng, b->graph->arena, rank, dx + 2, dw + 2, &at->window);
    *x = sample_tensor(b, rng, tx, rank + 2, dx, tx == I8 ? -9 : 0, 9);
    *w = sample_tensor(b, rng, tw, rank + 2, dw, tw == I8 ? -9 : 0, 9);
}

static Node *sample_conv_integer(Build *b, Rng *rng, int variant)
{
    ConvAttr at;
    Node *ins[4] = { NULL };
    int64_t m;
    draw_conv(b, rng, variant, &at, &ins[0], &ins[1], &m);
    if (variant & 4)
        ins[2] = sample_tensor(b, rng, ins[0]->type->dtype, 0, NULL, 0, 5);
    if (variant & 8)
        ins[3] = sample_tensor(b, rng, ins[1]->type->dtype, (int)rng_below(rng, 2), &m, 0, 5);
    return build_node(b, OP_conv_integer, &at, variant & 8 ? 4 : variant & 4 ? 3 : 2, ins);
}

static Node *sample_qlinear_conv(Build *b, Rng *rng, int variant)
{
    ConvAttr at;
    Node *x, *w;
    int64_t m;
    draw_conv(b, rng, variant, &at, &x, &w, &m);
    const int per_channel = (int)rng_below(rng, 2);
    Node *ins[9] = { x,
                     sample_tensor(b, rng, F32, 0, NULL, 0.1, 0.5),
                     sample_tensor(b, rng, x->type->dtype, 0, NULL, 0, 5),
                     w,
                     sample_tensor(b, rng, F32, per_channel, &m, 0.1, 0.5),
                     sample_tensor(b, rng, w->type->dtype, per_channel, &m, 0, 3),
                     sample_tensor(b, rng, F32, 0, NULL, 0.5, 2),
                     sample_tensor(b, rng, variant & 4 ? I8 : U8, 0, NULL, 0, 5) };
    if (variant & 8)
        ins[BIAS] = sample_tensor(b, rng, I32, 1, &m, -50, 50);
    return build_node(b, OP_qlinear_conv, &at, variant & 8 ? 9 : 8, ins);
}

const OpDef op_conv_integer = {
    .name = "conv_integer",
    .min_in = 2,
    .max_in = 4,
    .attrs = conv_integer_attrs,
    .infer = infer_conv_integer,
    .eval = eval_conv_integer,
    .sample = sample_conv_integer,
    .n_variants = 48,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_conv_integer,
    .amp = { AMP_N, AMP_N, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "ConvInteger", 10, NULL },
};

const OpDef op_qlinear_conv = {
    .name = "qlinear_conv",
    .min_in = 8,
    .max_in = 9,
    .attrs = conv_integer_attrs,
    .infer = infer_qlinear_conv,
    .eval = eval_qlinear_conv,
    .sample = sample_qlinear_conv,
    .n_variants = 48,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_qlinear_conv,
    .amp = { AMP_N, AMP_N, 1u << X_SCALE | 1u << W_SCALE | 1u << Y_SCALE, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "QLinearConv", 10, NULL },
};
