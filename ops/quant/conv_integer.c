/* conv_integer, qlinear_conv and qconv: windows of codes times codes, accumulated in 32 bits. */
#include "ops/quant/codes_kernels.h"
#include "ops/quant/products.h"
#include "ops/quant/words.h"
#include "ops/window/window_access.h"

static const AttrSpec conv_integer_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),
    WINDOW_INTS(ConvAttr, dilations),
    WINDOW_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1),
    ATTR_LAST,
};

static const AttrSpec qconv_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),  WINDOW_INTS(ConvAttr, dilations), WINDOW_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1), CODES_ATTRS(QconvAttr),           ATTR_LAST,
};

/* The operands of qlinear_conv and qconv. */
enum {
    X = QCONV_X,
    X_SCALE = QCONV_X_SCALE,
    X_ZERO = QCONV_X_ZERO,
    W = QCONV_W,
    W_SCALE = QCONV_W_SCALE,
    W_ZERO = QCONV_W_ZERO,
    Y_SCALE = QCONV_Y_SCALE,
    Y_ZERO = QCONV_Y_ZERO,
    BIAS = QCONV_BIAS,
};

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
    if (!infer_codes(q, 0, CODES_8) || !infer_codes(q, 1, CODES_8))
        return NULL;
    if (infer_has(q, 2) && !infer_single(q, 2, 0))
        return NULL;
    if (infer_has(q, 3) && (!check_per_channel(q, 3, q->in[1]) || !infer_zero_type(q, 1, 3)))
        return NULL;
    return infer_result(q, q->in[0], q->in[1], I32);
}

/* One number a channel: i32, or of numbers f32, too. */
static bool check_bias(Infer *q, bool numbers)
{
    const Type *b = infer_tensor(q, BIAS), *w = q->in[W];
    const bool typed = b && (b->dtype == I32 || (numbers && b->dtype == F32));
    if (typed && (b->rank < 0 || b->rank == 1) &&
        (b->rank < 0 || w->rank <= 0 || b->dims[0] < 0 || w->dims[0] < 0 || b->dims[0] == w->dims[0]))
        return true;
    infer_fail(q, "wants a bias of one %s a channel", numbers ? "i32 or f32" : "i32");
    return false;
}

/* Without scale and zero point of the result these are numbers. */
static const Type *infer_codes_conv(Infer *q, CodeKinds kinds, bool numbers)
{
    if (!infer_codes(q, X, kinds) || !infer_codes(q, W, kinds) || !infer_single(q, X_SCALE, -1) ||
        !infer_single(q, X_ZERO, X) || !check_per_channel(q, W_SCALE, q->in[W]) ||
        !check_per_channel(q, W_ZERO, q->in[W]))
        return NULL;
    if (!numbers &&
        (!infer_codes(q, Y_ZERO, kinds) || !infer_single(q, Y_SCALE, X_SCALE) || !infer_single(q, Y_ZERO, Y_ZERO)))
        return NULL;
    if (q->in[X_SCALE]->dtype != F32 || q->in[W_SCALE]->dtype != F32)
        return infer_fail(q, "wants scales of f32");
    if (!infer_zero_type(q, W, W_ZERO) || (infer_has(q, BIAS) && !check_bias(q, numbers)))
        return NULL;
    return infer_result(q, q->in[X], q->in[W], numbers ? F32 : q->in[Y_ZERO]->dtype);
}

static const Type *infer_qlinear_conv(Infer *q)
{
    return infer_codes_conv(q, CODES_8, false);
}

/* The quotient lies as the codes do; what is read beside result 0 is then read for both. */
static bool iterate_qconv(const Node *n, Arena *arena, Iteration *to)
{
    if (!iterate_qlinear_conv(n, arena, to))
        return false;
    if (to->n_out > 1) {
        to->out[1] = to->out[0];
        to->in[BIAS < n->n_in ? BIAS : Y_ZERO].reach = REACH_TYPE;
        reach_rest(n, to);
    }
    return true;
}

static const Type *infer_qconv(Infer *q)
{
    const bool numbers = !infer_has(q, Y_SCALE);
    if (numbers != !infer_has(q, Y_ZERO))
        return infer_fail(q, "has a scale or a zero point of the result without the other");
    const Type *y = infer_codes_conv(q, CODES_16, numbers);
    if (!numbers || !y)
        return infer_codes_out(q, &((const QconvAttr *)q->attr)->codes, Y_ZERO, y);
    return q->n_out == 1 ? y : infer_fail(q, "gives numbers, which have no quotient");
}

/* Sums of the call whose codes are operands x and w. */
static void convolve(Eval *e, int x, int x_zero, int w, int w_zero, const SumTaker *to)
{
    const ConvAttr *at = e->attr;
    const Type *tx = e->in[x]->type, *tw = e->in[w]->type;
    const int64_t m = tw->dims[0];
    CodesConv c = { .images = tx->dims[0], .groups = at->group, .channels = tw->dims[1], .results = m / at->group };
    eval_window(e, &at->window, x, tw->dims + 2, &c.w);
    const Codes data = codes_of(e, x, x_zero), filter = codes_of(e, w, w_zero);
    codes_convolve(e, &c, &data, &filter, to);
}

static Status eval_conv_integer(Eval *e)
{
    convolve(e, 0, 2, 1, 3, &(const SumTaker){ sums_keep, eval_out(e, 0) });
    return OK;
}

/* What makes codes of sums, or numbers: of every channel the factor and the bias. */
typedef struct Requantized {
    CodesOut out; /* of codes */
    f32 *numbers; /* the result, where there are no codes */
    const f32 *addend;
    int64_t plane, channels;
    const f32 *factor;
    const i32 *bias;
} Requantized;

/* (acc + bias) times m of 31 bits. */
static void fixed_sums(const Requantized *r, int64_t first, int64_t n, const i32 *sums, u32 bias, f32 factor)
{
    const FixedFactor by = fixed_factor(factor);
    i64 v[SUMS_BLOCK];
    f32 quotients[SUMS_BLOCK];
    for (int64_t i = 0; i < n; i++) {
        const i32 sum = (i32)((u32)sums[i] + bias);
        v[i] = fixed_times(sum, by);
        quotients[i] = (f32)sum * factor;
    }
    codes_put_fixed(&r->out, first, n, v, quotients);
}

static __attribute__((noinline)) void requantize_any(const Requantized *r, int64_t first, int64_t n, const i32 *sums,
                                                     u32 bias, f32 factor)
{
    f32 v[SUMS_BLOCK];
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < SUMS_BLOCK ? n - at : SUMS_BLOCK;
        if (r->out.fixed) {
            fixed_sums(r, first + at, k, sums + at, bias, factor);
            continue;
        }
        kernels_codes(r->out.kernels)->rescale((size_t)k, sums + at, bias, factor, v);
        codes_put(&r->out, first + at, k, v);
    }
}

/* f32(acc + bias) * m, m evaluated once a channel.  Bytes need no room: what does has a function of its own. */
static void requantize_sums(const void *user, int64_t first, int64_t n, const i32 *sums)
{
    const Requantized *r = user;
    const int64_t channel = first / r->plane % r->channels;
    const f32 factor = r->factor[channel];
    const u32 bias = r->bias ? (u32)r->bias[channel] : 0;
    const CodeLoops *l = kernels_codes(r->out.kernels);
    f32 *quotients;
    u8 *bytes = codes_bytes_beside(&r->out, first, &quotients);
    if (!bytes) {
        requantize_any(r, first, n, sums, bias, factor);
        return;
    }
    l->requantize((size_t)n, sums, bias, factor, &r->out.range, bytes);
    if (quotients)
        l->rescale((size_t)n, sums, bias, factor, quotients);
}

/* The factors of all channels; sy: 1 for numbers. */
static Requantized requantized_open(Eval *e, f32 sy)
{
    const Type *y = eval_out(e, 0)->type;
    const int64_t m = y->dims[1], scales = eval_elements(e, W_SCALE);
    const f32 *sw = eval_f32(e, W_SCALE), sx = (f32)eval_float(e, X_SCALE, 0);
    f32 *factor = eval_room(e, (size_t)m, sizeof *factor);
    for (int64_t i = 0; i < m; i++)
        factor[i] = requantize_scale(sx, sw[scales == 1 ? 0 : i], sy);
    Requantized r = { .plane = window_product(y->rank - 2, y->dims + 2), .channels = m, .factor = factor };
    if (eval_has(e, BIAS) && e->in[BIAS]->type->dtype == I32)
        r.bias = eval_i32(e, BIAS);
    return r;
}

static void requantize_conv(Eval *e, const CodesAttr *at)
{
    Requantized r = requantized_open(e, (f32)eval_float(e, Y_SCALE, 0));
    r.out = codes_out(e, at, Y_ZERO);
    const SumCodes codes = { codes_bytes(&r.out, 0), r.factor, r.bias, r.out.range };
    bool small = codes.to;
    for (int64_t i = 0; i < r.channels; i++)
        small = small && r.factor[i] < 1 && r.factor[i] > -1;
    convolve(e, X, X_ZERO, W, W_ZERO, &(const SumTaker){ requantize_sums, &r, small ? &codes : NULL });
}

/* f32(acc + bias) * f32(sx * sw), or f32(acc) * f32(sx * sw) and then a bias of f32. */
static void number_sums(const void *user, int64_t first, int64_t n, const i32 *sums)
{
    const Requantized *r = user;
    const int64_t channel = first / r->plane % r->channels;
    f32 *v = r->numbers + first;
    kernels_codes(r->out.kernels)->rescale((size_t)n, sums, r->bias ? (u32)r->bias[channel] : 0, r->factor[channel], v);
    for (int64_t i = 0; i < n && r->addend; i++)
        v[i] += r->addend[channel];
}

static void number_conv(Eval *e)
{
    Requantized r = requantized_open(e, 1);
    r.out.kernels = e->kernels;
    r.numbers = eval_out_f32(e, 0);
    if (eval_has(e, BIAS) && !r.bias)
        r.addend = eval_f32(e, BIAS);
    convolve(e, X, X_ZERO, W, W_ZERO, &(const SumTaker){ number_sums, &r });
}

static Status eval_qlinear_conv(Eval *e)
{
    requantize_conv(e, &(const CodesAttr){ 0 });
    return OK;
}

static Status eval_qconv(Eval *e)
{
    if (eval_has(e, Y_SCALE))
        requantize_conv(e, &((const QconvAttr *)e->attr)->codes);
    else
        number_conv(e);
    return OK;
}

static bool kernels_conv_integer(const Node *n, OwnKernels *to)
{
    const CodesOperands p = { 0, NO_CODES, 2, 1, NO_CODES, 3, NO_CODES, NO_CODES, NO_CODES, NULL };
    return kernels_codes_conv(n, to, &p);
}

static bool kernels_of_codes(const Node *n, OwnKernels *to, const CodesAttr *at)
{
    const CodesOperands p = { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, at };
    return kernels_codes_conv(n, to, &p);
}

static bool kernels_qlinear_conv(const Node *n, OwnKernels *to)
{
    static const CodesAttr plain = { 0 };
    return kernels_of_codes(n, to, &plain);
}

static bool kernels_qconv(const Node *n, OwnKernels *to)
{
    return kernels_of_codes(n, to, &((const QconvAttr *)n->attr)->codes);
}

/* Data and weights of a valid call; `m` gets the result channels. */
static void draw_conv(Build *b, Rng *rng, int variant, DType tx, DType tw, ConvAttr *at, Node **x, Node **w, int64_t *m)
{
    int64_t dx[MAX_RANK], dw[MAX_RANK];
    const int rank = 1 + variant % 3;
    *at = (ConvAttr){ .group = rng_range(rng, 1, 3) };
    dx[0] = rng_below(rng, 8) ? rng_range(rng, 1, 2) : 0;
    dw[1] = rng_range(rng, 1, 3);
    dx[1] = dw[1] * at->group;
    *m = dw[0] = rng_range(rng, 1, 3) * at->group;
    for (int i = 0; i < rank; i++)
        dx[2 + i] = rng_range(rng, 1, 6);
    sample_window(rng, b->graph->arena, rank, dx + 2, dw + 2, &at->window);
    *x = sample_codes(b, rng, tx, rank + 2, dx);
    *w = sample_codes(b, rng, tw, rank + 2, dw);
}

static Node *sample_conv_integer(Build *b, Rng *rng, int variant)
{
    ConvAttr at;
    Node *ins[4] = { NULL };
    int64_t m;
    draw_conv(b, rng, variant, variant & 1 ? I8 : U8, variant & 2 ? I8 : U8, &at, &ins[0], &ins[1], &m);
    if (variant & 4)
        ins[2] = sample_tensor(b, rng, ins[0]->type->dtype, 0, NULL, 0, 5);
    if (variant & 8)
        ins[3] = sample_tensor(b, rng, ins[1]->type->dtype, (int)rng_below(rng, 2), &m, 0, 5);
    return build_node(b, OP_conv_integer, &at, variant & 8 ? 4 : variant & 4 ? 3 : 2, ins);
}

/* The operands of qlinear_conv and qconv; returns how many. */
static int draw_codes_conv(Build *b, Rng *rng, int variant, const DType *types, ConvAttr *at, Node **ins)
{
    int64_t m;
    draw_conv(b, rng, variant, types[0], types[1], at, &ins[X], &ins[W], &m);
    const int per_channel = (int)rng_below(rng, 2);
    ins[X_SCALE] = sample_scale(b, rng);
    ins[X_ZERO] = sample_zero_point(b, rng, types[0]);
    ins[W_SCALE] = sample_tensor(b, rng, F32, per_channel, &m, 0.125, 0.5);
    ins[W_ZERO] = sample_tensor(b, rng, types[1], per_channel, &m, 0, 3);
    ins[Y_SCALE] = sample_tensor(b, rng, F32, 0, NULL, 0.5, 2);
    ins[Y_ZERO] = sample_zero_point(b, rng, types[2]);
    if (variant & 8)
        ins[BIAS] = sample_tensor(b, rng, I32, 1, &m, -50, 50);
    return variant & 8 ? BIAS + 1 : BIAS;
}

static Node *sample_qlinear_conv(Build *b, Rng *rng, int variant)
{
    ConvAttr at;
    Node *ins[BIAS + 1];
    const DType types[] = { variant & 1 ? I8 : U8, variant & 2 ? I8 : U8, variant & 4 ? I8 : U8 };
    return build_node(b, OP_qlinear_conv, &at, draw_codes_conv(b, rng, variant, types, &at, ins), ins);
}

enum { QCONV_CODES = 96, QCONV_VARIANTS = 144 }; /* variants that give codes; the others give numbers */

static Node *sample_qconv(Build *b, Rng *rng, int variant)
{
    static const DType codes[] = { U8, I8, U8, I8, U16, I16 };
    QconvAttr at;
    Node *ins[BIAS + 1];
    DType types[3];
    for (int i = 0; i < 3; i++)
        types[i] = codes[rng_below(rng, COUNT(codes))];
    const bool numbers = variant >= QCONV_CODES;
    const int n = draw_codes_conv(b, rng, variant, types, &at.conv, ins);
    at.codes = sample_codes_attr(rng, types[2]);
    if (!numbers)
        return build_node_n(b, OP_qconv, &at, n, ins, 1 + variant % 2);
    ins[Y_SCALE] = ins[Y_ZERO] = NULL;
    if (n > BIAS && variant & 16)
        ins[BIAS] = sample_tensor(b, rng, F32, 1, &ins[BIAS]->type->dims[0], -2, 2);
    return build_node(b, OP_qconv, &at, n > BIAS ? n : Y_SCALE, ins);
}

/* Multiply-adds of a call with weights of that operand. */
static double work_weights(const Node *n, int weights)
{
    const Type *y = access_result(n, 0), *w = in(n, weights)->type;
    return type_known(y) && type_known(w) && w->dims[0] > 0
               ? (double)type_elements(y) * (double)(type_elements(w) / w->dims[0])
               : 0;
}

static double work_conv_integer(const Node *n)
{
    return work_weights(n, 1);
}

static double work_qconv(const Node *n)
{
    return work_weights(n, W);
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
    .work = work_conv_integer,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.kernels = kernels_conv_integer,
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
    .work = work_qconv,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.kernels = kernels_qlinear_conv,
    .access.iterate = iterate_qlinear_conv,
    .amp = { AMP_N, AMP_N, 1u << X_SCALE | 1u << W_SCALE | 1u << Y_SCALE, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "QLinearConv", 10, NULL },
};

const OpDef op_qconv = {
    .name = "qconv",
    .min_in = 6,
    .max_in = 9,
    .max_out = 2,
    .min_out = 1,
    .saved = codes_saved,
    .attrs = qconv_attrs,
    .infer = infer_qconv,
    .eval = eval_qconv,
    .sample = sample_qconv,
    .n_variants = QCONV_VARIANTS,
    .adjoint = adjoint_qconv,
    .differentiable = 1u << X | 1u << W | 1u << Y_SCALE | 1u << Y_ZERO | 1u << BIAS,
    .gives_codes = 1,
    .work = work_qconv,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.kernels = kernels_qconv,
    .access.iterate = iterate_qconv,
    .amp = { AMP_N, AMP_N, 1u << X_SCALE | 1u << W_SCALE | 1u << Y_SCALE | 1u << BIAS, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .brief = "A convolution of codes, which gives codes, or numbers where the result has no scale.",
};
