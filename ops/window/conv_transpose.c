/* conv_transpose: every element of the data spreads a kernel over the result.
 *
 * A result is the sum over taps, ascending, of what each tap brings: the sum over channels, ascending, by fused
 * multiply-adds from zero, rounded.  Then the bias is added. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"
#include "ops/window/window.h"

static const AttrSpec conv_transpose_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvTransposeAttr),
    WINDOW_INTS(ConvTransposeAttr, dilations),
    WINDOW_INTS(ConvTransposeAttr, kernel_shape),
    ATTR(ConvTransposeAttr, group, INT, 1),
    ATTR_OPTIONAL(ConvTransposeAttr, output_padding, INTS),
    ATTR_OPTIONAL(ConvTransposeAttr, output_shape, INTS),
    ATTR_OURS(ConvTransposeAttr, out, DTYPE, 0),
    ATTR_LAST,
};

static const Type *infer_conv_transpose(Infer *q)
{
    const ConvTransposeAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *w = x ? infer_tensor(q, 1) : NULL;
    DType dtype;
    if (!w || !infer_filter(q, x, w, at->group) || !infer_contracted(q, at->out, 0, &dtype))
        return NULL;
    if (x->rank < 0 || w->rank < 0)
        return type_unranked(q->types, dtype);

    int64_t dims[MAX_RANK], m = DIM_UNKNOWN;
    Window win;
    const int64_t c = x->dims[1];
    if (c >= 0 && w->dims[0] >= 0 && c != w->dims[0])
        return infer_fail(q, "data has %" PRId64 " channels, the weights take %" PRId64, c, w->dims[0]);
    if (w->dims[0] >= 0 && w->dims[0] % at->group)
        return infer_fail(q, "%" PRId64 " channels do not split into %" PRId64 " groups", w->dims[0], at->group);
    if (w->dims[1] >= 0 && (__builtin_mul_overflow(w->dims[1], at->group, &m) || m > q->ir->limits.dim))
        return infer_fail(q, "group %" PRId64 " is beyond the limit dim", at->group);
    const char *wrong = window_place_transposed(&win, q->scratch, at, x->rank - 2, x->dims + 2, w->dims + 2);
    if (wrong)
        return infer_fail(q, "%s", wrong);
    if (!infer_bias(q, 2, m))
        return NULL;
    dims[0] = x->dims[0];
    dims[1] = m;
    memcpy(dims + 2, win.out, (size_t)win.rank * sizeof *dims);
    return infer_dims(q, dtype, x->rank, dims);
}

typedef struct SpreadRun {
    const Kernels *kernels;
    Window w; /* of the reverse direction: from the result to the data */
    int64_t groups, channels, results, taps, in, out;
    int64_t block, blocks; /* result channels done together, and how many such blocks a group has */
    bool f64;
    const void *x, *filter, *bias; /* filter: [group, results, taps, channels] */
    void *y;
    char *columns;
    size_t columns_bytes;
} SpreadRun;

/* The weights [group, channels, results * taps] with channels innermost. */
#define TURN(T)                                                                                                        \
    static const T *turn_##T(Eval *e, const SpreadRun *r, const T *from)                                               \
    {                                                                                                                  \
        const int64_t rows = r->results * r->taps;                                                                     \
        T *to = eval_scratch(e, (size_t)eval_elements(e, 1), sizeof(T));                                               \
        for (int64_t g = 0; g < r->groups; g++)                                                                        \
            for (int64_t c = 0; c < r->channels; c++)                                                                  \
                for (int64_t i = 0; i < rows; i++)                                                                     \
                    to[(g * rows + i) * r->channels + c] = from[(g * r->channels + c) * rows + i];                     \
        return to;                                                                                                     \
    }
TURN(f32)
TURN(f64)
#undef TURN

/* Result channels [first, first + n) of one group of one image. */
#define SPREAD(T, MULTIPLY)                                                                                            \
    static void spread_##T(const SpreadRun *r, int64_t image, int64_t g, int64_t first, int64_t n, T *columns)         \
    {                                                                                                                  \
        const Panel p = { .m = (size_t)(n * r->taps),                                                                  \
                          .n = (size_t)r->in,                                                                          \
                          .k = (size_t)r->channels,                                                                    \
                          .ai = (size_t)r->channels,                                                                   \
                          .ap = 1,                                                                                     \
                          .bp = (size_t)r->in,                                                                         \
                          .bj = 1 };                                                                                   \
        const T *x = (const T *)r->x + (image * r->groups + g) * r->channels * r->in;                                  \
        const T *filter = (const T *)r->filter + (g * r->results + first) * r->taps * r->channels;                     \
        T *y = (T *)r->y + ((image * r->groups + g) * r->results + first) * r->out;                                    \
        MULTIPLY(&p, filter, x, columns);                                                                              \
        memset(y, 0, (size_t)(n * r->out) * sizeof(T));                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            int64_t tap[MAX_SPATIAL] = { 0 };                                                                          \
            for (int64_t k = 0; k < r->taps; k++) {                                                                    \
                window_scatter_##T(&r->w, y + i * r->out, tap, columns + (i * r->taps + k) * r->in);                   \
                position_next(r->w.rank, r->w.kernel, tap);                                                            \
            }                                                                                                          \
        }                                                                                                              \
        add_bias_##T(y, r->bias ? (const T *)r->bias + g * r->results + first : NULL, n, r->out, r->out);              \
    }
#define MULTIPLY_F32(p, a, b, c) panel_f32(r->kernels, p, a, b, c)
SPREAD(f32, MULTIPLY_F32)
SPREAD(f64, panel_f64)
#undef MULTIPLY_F32
#undef SPREAD

static void spread_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const SpreadRun *r = arg;
    void *columns = r->columns + (size_t)worker * r->columns_bytes;
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = t % r->blocks * r->block, g = t / r->blocks % r->groups,
                      image = t / r->blocks / r->groups;
        const int64_t n = r->results - first < r->block ? r->results - first : r->block;
        if (r->f64)
            spread_f64(r, image, g, first, n, columns);
        else
            spread_f32(r, image, g, first, n, columns);
    }
}

/* The window that leads from the result back to the data. */
static Window reversed(const Window *w)
{
    Window back = *w;
    memcpy(back.in, w->out, sizeof back.in);
    memcpy(back.out, w->in, sizeof back.out);
    return back;
}

static Status eval_conv_transpose(Eval *e)
{
    const ConvTransposeAttr *at = e->attr;
    const Type *x = e->in[0]->type, *filter = e->in[1]->type;
    SpreadRun r = { .kernels = e->kernels, .groups = at->group, .f64 = eval_is_f64(e) };
    Window w;
    BUG_IF(e->ir->memory, window_place_transposed(&w, e->scratch, at, x->rank - 2, x->dims + 2, filter->dims + 2));
    r.w = reversed(&w);
    r.channels = filter->dims[0] / at->group;
    r.results = filter->dims[1];
    r.taps = window_product(w.rank, w.kernel);
    r.in = window_product(w.rank, w.in);
    r.out = window_product(w.rank, w.out);
    if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    if (r.f64) {
        r.x = eval_f64(e, 0), r.filter = turn_f64(e, &r, eval_f64(e, 1)),
        r.bias = eval_has(e, 2) ? eval_f64(e, 2) : NULL;
        r.y = eval_out_f64(e, 0);
    } else {
        r.x = eval_f32(e, 0), r.filter = turn_f32(e, &r, eval_f32(e, 1)),
        r.bias = eval_has(e, 2) ? eval_f32(e, 2) : NULL;
        r.y = eval_out_f32(e, 0);
    }
    enum { CACHE = 128 << 10 }; /* elements */
    const int64_t each = r.taps * r.in;
    r.block = each > 0 && CACHE / each < r.results ? CACHE / each : r.results;
    r.block = r.block ? r.block : 1;
    r.blocks = (r.results + r.block - 1) / r.block;
    r.columns_bytes = (size_t)(r.block * each) * (r.f64 ? sizeof(f64) : sizeof(f32));
    r.columns = eval_room(e, (size_t)parallel_threads(e->pool), r.columns_bytes);
    eval_parallel(e, x->dims[0] * r.groups * r.blocks, spread_blocks, &r);
    return OK;
}

/* Cuts the result at its borders, or says how large it is: somewhat less or more than what is reached. */
static void sample_frame(Rng *rng, Arena *arena, int rank, const int64_t *x, const int64_t *w, ConvTransposeAttr *at)
{
    int64_t *shape = NEWS(arena, int64_t, rank), *pads = NEWS(arena, int64_t, 2 * rank), least = INT64_MAX;
    const bool says = rng_below(rng, 2);
    for (int i = 0; i < rank; i++) {
        const WindowAttr *a = &at->window;
        const int64_t stride = a->strides.v ? a->strides.v[i] : 1, dilation = a->dilations.v ? a->dilations.v[i] : 1;
        const int64_t reached = stride * (x[i] - 1) + (w[i] - 1) * dilation + 1;
        least = reached < least ? reached : least;
        shape[i] = rng_range(rng, reached > 2 ? reached - 2 : 1, reached + 2);
        pads[i] = rng_below(rng, 2);
        pads[rank + i] = rng_below(rng, 2);
    }
    if (says) {
        at->output_padding = (Ints){ 0 };
        at->output_shape = (Ints){ rank, shape };
    } else if (least > 2 && at->window.auto_pad == PAD_NOTSET) {
        at->window.pads = (Ints){ 2 * rank, pads };
    }
}

static Node *sample_conv_transpose(Build *b, Rng *rng, int variant)
{
    int64_t x[MAX_RANK], w[MAX_RANK], m;
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    ConvTransposeAttr at = { .group = rng_range(rng, 1, 3) };
    x[0] = rng_below(rng, 8) ? rng_range(rng, 1, 2) : 0;
    x[1] = w[0] = rng_range(rng, 1, 3) * at.group;
    w[1] = rng_range(rng, 1, 3);
    m = w[1] * at.group;
    for (int i = 0; i < rank; i++)
        x[2 + i] = rng_range(rng, 2, 5);
    sample_window(rng, b->graph->arena, rank, x + 2, w + 2, &at.window);
    at.window.pads = (Ints){ 0 };
    if (at.window.strides.v && rng_below(rng, 2)) {
        int64_t *more = NEWS(b->graph->arena, int64_t, rank);
        for (int i = 0; i < rank; i++)
            more[i] = rng_below(rng, at.window.strides.v[i]);
        at.output_padding = (Ints){ rank, more };
    }
    if (rng_below(rng, 2))
        sample_frame(rng, b->graph->arena, rank, x + 2, w + 2, &at);
    Node *data = sample_tensor(b, rng, dtype, rank + 2, x, -2, 2),
         *filter = sample_tensor(b, rng, dtype, rank + 2, w, -2, 2);
    if (rng_below(rng, 2))
        return CALL_ATTR(b, conv_transpose, at, data, filter);
    return CALL_ATTR(b, conv_transpose, at, data, filter, sample_tensor(b, rng, dtype, 1, &m, -1, 1));
}

/* With groups, slice j belongs to channel j of each of them. */
static int channels_of_filter(const Node *n, int operand)
{
    (void)n;
    return operand == 1 ? 1 : QUANT_WHOLE;
}

const OpDef op_conv_transpose = {
    .name = "conv_transpose",
    .min_in = 2,
    .max_in = 3,
    .attrs = conv_transpose_attrs,
    .infer = infer_conv_transpose,
    .eval = eval_conv_transpose,
    .sample = sample_conv_transpose,
    .n_variants = 60,
    .adjoint = adjoint_conv_transpose,
    .differentiable = 7,
    .trainable = 6,
    .weight = 40,
    .work = work_conv_transpose,
    .fuse = FUSE_CONTRACT,
    .amp = { AMP_T, AMP_T, 4, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT, QUANT_WEIGHT, QUANT_BIAS },
               .out = { QUANT_INPUT },
               .weight_axis = channels_of_filter },
    .onnx = { "ConvTranspose", 22, NULL },
};
