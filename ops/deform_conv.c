/* deform_conv: a convolution whose taps look where offsets send them, between the elements by interpolation. */
#include <string.h>

#include "ops/contract.h"
#include "ops/shapes.h"
#include "ops/window.h"

static const AttrSpec deform_conv_attrs[] = {
    WINDOW_INTS(DeformConvAttr, dilations),
    ATTR(DeformConvAttr, group, INT, 1),
    WINDOW_INTS(DeformConvAttr, kernel_shape),
    ATTR(DeformConvAttr, offset_group, INT, 1),
    WINDOW_INTS(DeformConvAttr, pads),
    WINDOW_INTS(DeformConvAttr, strides),
    ATTR_LAST,
};

/* offset and mask: [N, offset_group * taps * each, out..]. */
static bool infer_steering(Infer *q, int i, const Type *x, const Window *w, int64_t each)
{
    const DeformConvAttr *at = q->attr;
    int64_t wanted = at->offset_group;
    if (!infer_has(q, i))
        return true;
    const Type *t = infer_tensor(q, i);
    if (!t || !dtype_is_float(t->dtype) || (t->rank >= 0 && t->rank != x->rank)) {
        if (t)
            infer_fail(q, "operand %d is %s, wanted are floats of rank %d", i, type_text(q->scratch, t), x->rank);
        return false;
    }
    bool fits = !__builtin_mul_overflow(wanted, each, &wanted), known = true;
    for (int k = 0; k < w->rank; k++) {
        known = known && w->kernel[k] >= 0;
        fits = fits && (!known || !__builtin_mul_overflow(wanted, w->kernel[k], &wanted));
        fits = fits && (t->rank < 0 || w->out[k] < 0 || t->dims[k + 2] < 0 || t->dims[k + 2] == w->out[k]);
    }
    fits = fits && (t->rank < 0 || t->dims[0] < 0 || x->dims[0] < 0 || t->dims[0] == x->dims[0]);
    if (!fits || (known && t->rank >= 0 && t->dims[1] >= 0 && t->dims[1] != wanted)) {
        infer_fail(q, "operand %d is %s, which does not fit %" PRId64 " values at each window", i,
                   type_text(q->scratch, t), wanted);
        return false;
    }
    return true;
}

static const Type *infer_deform_conv(Infer *q)
{
    const DeformConvAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *w = x ? infer_tensor(q, 1) : NULL;
    if (!w || !infer_filter(q, x, w, at->group) || !infer_tensor(q, 2))
        return NULL;
    if (x->rank < 0 || w->rank < 0)
        return type_unranked(q->types, x->dtype);

    int64_t dims[MAX_RANK], fed;
    Window win;
    const int64_t c = x->dims[1], m = w->dims[0];
    if (__builtin_mul_overflow(w->dims[1], at->group, &fed) || (c >= 0 && w->dims[1] >= 0 && fed != c))
        return infer_fail(q, "data has %" PRId64 " channels, the weights take %" PRId64 " in %" PRId64 " groups", c,
                          w->dims[1], at->group);
    if (m >= 0 && m % at->group)
        return infer_fail(q, "%" PRId64 " result channels do not split into %" PRId64 " groups", m, at->group);
    if (at->offset_group < 1 || (c >= 0 && c % at->offset_group))
        return infer_fail(q, "%" PRId64 " channels do not split into %" PRId64 " offset groups", c, at->offset_group);
    if (!infer_window(q, &at->window, x, w->dims + 2, &win) || !infer_steering(q, 2, x, &win, win.rank) ||
        !infer_bias(q, 3, m) || !infer_steering(q, 4, x, &win, 1))
        return NULL;
    dims[0] = x->dims[0];
    dims[1] = m;
    memcpy(dims + 2, win.out, (size_t)win.rank * sizeof *dims);
    return infer_dims(q, x->dtype, x->rank, dims);
}

typedef struct SteeredRun {
    const Kernels *kernels;
    Window w;
    int64_t groups, channels, results, taps, in, out, per_offset, offset_groups;
    bool f64;
    const void *x, *filter, *offset, *bias, *mask;
    void *y;
    char *columns;
    size_t columns_bytes;
} SteeredRun;

#define STEERED(T, MULTIPLY)                                                                                           \
    /* The value of one channel at a point, linear between elements, zero outside. */                                  \
    static T sample_at_##T(const Window *w, const T *x, const T *point)                                                \
    {                                                                                                                  \
        T sum = 0;                                                                                                     \
        for (int64_t corner = 0; corner < (int64_t)1 << w->rank; corner++) {                                           \
            T share = 1;                                                                                               \
            int64_t at = 0;                                                                                            \
            bool inside = true;                                                                                        \
            for (int i = 0; i < w->rank; i++) {                                                                        \
                const bool inner = point[i] > -1 && point[i] < (T)w->in[i];                                            \
                const T low = inner ? q_floor(point[i]) : 0, rest = point[i] - low;                                    \
                const bool upper = corner >> (w->rank - 1 - i) & 1;                                                    \
                const int64_t p = (int64_t)low + upper;                                                                \
                inside = inside && inner && p >= 0 && p < w->in[i];                                                    \
                share *= upper ? rest : 1 - rest;                                                                      \
                at = at * w->in[i] + p;                                                                                \
            }                                                                                                          \
            if (inside)                                                                                                \
                sum = q_fma(share, x[at], sum);                                                                        \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    /* One row of the window matrix: channel c, tap number k at `tap`. */                                              \
    static void steer_##T(const SteeredRun *r, int64_t image, int64_t c, int64_t k, const int64_t *tap, T *to)         \
    {                                                                                                                  \
        const Window *w = &r->w;                                                                                       \
        const int64_t row = (image * r->offset_groups + c / r->per_offset) * r->taps + k;                              \
        const T *offset = (const T *)r->offset + row * w->rank * r->out;                                               \
        const T *mask = r->mask ? (const T *)r->mask + row * r->out : NULL;                                            \
        const T *x = (const T *)r->x + (image * r->groups * r->channels + c) * r->in;                                  \
        int64_t at[MAX_SPATIAL] = { 0 };                                                                               \
        T point[MAX_SPATIAL];                                                                                          \
        for (int64_t j = 0; j < r->out; j++) {                                                                         \
            for (int i = 0; i < w->rank; i++)                                                                          \
                point[i] = (T)(at[i] * w->stride[i] - w->begin[i] + tap[i] * w->dilation[i]) + offset[i * r->out + j]; \
            to[j] = sample_at_##T(w, x, point) * (mask ? mask[j] : 1);                                                 \
            position_next(w->rank, w->out, at);                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void steered_##T(const SteeredRun *r, int64_t image, int64_t g, T *columns)                                 \
    {                                                                                                                  \
        const int64_t k = r->channels * r->taps;                                                                       \
        const Panel p = { .m = (size_t)r->results,                                                                     \
                          .n = (size_t)r->out,                                                                         \
                          .k = (size_t)k,                                                                              \
                          .ai = (size_t)k,                                                                             \
                          .ap = 1,                                                                                     \
                          .bp = (size_t)r->out,                                                                        \
                          .bj = 1 };                                                                                   \
        T *y = (T *)r->y + (image * r->groups + g) * r->results * r->out, *to = columns;                               \
        for (int64_t c = 0; c < r->channels; c++) {                                                                    \
            int64_t tap[MAX_SPATIAL] = { 0 };                                                                          \
            for (int64_t i = 0; i < r->taps; i++, to += r->out) {                                                      \
                steer_##T(r, image, g * r->channels + c, i, tap, to);                                                  \
                position_next(r->w.rank, r->w.kernel, tap);                                                            \
            }                                                                                                          \
        }                                                                                                              \
        MULTIPLY(&p, (const T *)r->filter + g * r->results * k, columns, y);                                           \
        add_bias_##T(y, r->bias ? (const T *)r->bias + g * r->results : NULL, r->results, r->out, r->out);             \
    }                                                                                                                  \
    static void steered_operands_##T(Eval *e, SteeredRun *r)                                                           \
    {                                                                                                                  \
        r->x = eval_##T(e, 0), r->filter = eval_##T(e, 1), r->offset = eval_##T(e, 2);                                 \
        r->bias = eval_has(e, 3) ? eval_##T(e, 3) : NULL;                                                              \
        r->mask = eval_has(e, 4) ? eval_##T(e, 4) : NULL;                                                              \
        r->y = eval_out_##T(e, 0);                                                                                     \
        r->columns_bytes = (size_t)(r->channels * r->taps) * (size_t)r->out * sizeof(T);                               \
    }
#define MULTIPLY_F32(p, a, b, c) panel_f32(r->kernels, p, a, b, c)
STEERED(f32, MULTIPLY_F32)
STEERED(f64, panel_f64)
#undef MULTIPLY_F32
#undef STEERED

static void steered_groups(void *arg, int64_t begin, int64_t end, int worker)
{
    const SteeredRun *r = arg;
    void *columns = r->columns + (size_t)worker * r->columns_bytes;
    for (int64_t t = begin; t < end; t++) {
        if (r->f64)
            steered_f64(r, t / r->groups, t % r->groups, columns);
        else
            steered_f32(r, t / r->groups, t % r->groups, columns);
    }
}

static Status eval_deform_conv(Eval *e)
{
    const DeformConvAttr *at = e->attr;
    const Type *x = e->in[0]->type, *filter = e->in[1]->type;
    SteeredRun r = { .kernels = e->kernels, .groups = at->group, .f64 = eval_is_f64(e) };
    eval_window(e, &at->window, 0, filter->dims + 2, &r.w);
    if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    r.channels = filter->dims[1];
    r.results = filter->dims[0] / at->group;
    r.taps = window_product(r.w.rank, r.w.kernel);
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    r.offset_groups = at->offset_group;
    r.per_offset = x->dims[1] / at->offset_group;
    (r.f64 ? steered_operands_f64 : steered_operands_f32)(e, &r);
    r.columns = eval_scratch(e, (size_t)parallel_threads(e->pool), r.columns_bytes);
    parallel(e->pool, x->dims[0] * r.groups, steered_groups, &r);
    return OK;
}

static Node *sample_deform_conv(Build *b, Rng *rng, int variant)
{
    int64_t x[MAX_RANK], w[MAX_RANK], steering[MAX_RANK];
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    DeformConvAttr at = { .group = rng_range(rng, 1, 2), .offset_group = rng_range(rng, 1, 2) };
    Window win;
    x[0] = rng_range(rng, 1, 2);
    w[1] = 2 * rng_range(rng, 1, 2);
    x[1] = w[1] * at.group;
    w[0] = rng_range(rng, 1, 3) * at.group;
    for (int i = 0; i < rank; i++)
        x[2 + i] = rng_range(rng, 2, 5);
    sample_window(rng, b->graph->arena, rank, x + 2, w + 2, &at.window);
    at.window.auto_pad = PAD_NOTSET;
    BUG_IF(b->graph->ir->memory, window_place(&win, b->graph->arena, &at.window, rank, x + 2, w + 2));
    memcpy(steering + 2, win.out, (size_t)rank * sizeof *steering);
    steering[0] = x[0];
    steering[1] = at.offset_group * rank * window_product(rank, w + 2);
    Node *data = sample_tensor(b, rng, dtype, rank + 2, x, -2, 2),
         *filter = sample_tensor(b, rng, dtype, rank + 2, w, -2, 2);
    Node *offset = sample_tensor(b, rng, dtype, rank + 2, steering, -1.5, 1.5);
    steering[1] /= rank;
    Node *bias = rng_below(rng, 2) ? sample_tensor(b, rng, dtype, 1, w, -1, 1) : NULL;
    Node *mask = rng_below(rng, 2) ? sample_tensor(b, rng, dtype, rank + 2, steering, 0, 1) : NULL;
    return CALL_ATTR(b, deform_conv, at, data, filter, offset, bias, mask);
}

const OpDef op_deform_conv = {
    .name = "deform_conv",
    .min_in = 3,
    .max_in = 5,
    .attrs = deform_conv_attrs,
    .infer = infer_deform_conv,
    .eval = eval_deform_conv,
    .sample = sample_deform_conv,
    .n_variants = 24,
    .differentiable = 31,
    .trainable = 10,
    .weight = 60,
    .fuse = FUSE_OPAQUE,
    .amp = { AMP_F, AMP_F, 28, REASON_INDEX, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = QUANT_FLOAT },
    .onnx = { "DeformConv", 22, NULL },
};
