/* deform_conv: a convolution each of whose taps reads at its position plus an offset, interpolating between
 * elements. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/window/correlate.h"
#include "ops/window/deform.h"

static const AttrSpec deform_conv_attrs[] = {
    WINDOW_INTS(DeformConvAttr, dilations),
    ATTR(DeformConvAttr, group, INT, 1),
    WINDOW_INTS(DeformConvAttr, kernel_shape),
    ATTR(DeformConvAttr, offset_group, INT, 1),
    WINDOW_INTS(DeformConvAttr, pads),
    WINDOW_INTS(DeformConvAttr, strides),
    ATTR_LAST,
};

static const Type *infer_deform_conv(Infer *q)
{
    const DeformConvAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *w = x ? infer_tensor(q, 1) : NULL;
    if (!w || !infer_filter(q, x, w, at->group) || !infer_tensor(q, 2))
        return NULL;
    if (x->rank < 0 || w->rank < 0)
        return type_unranked(q->types, x->dtype);

    Window win;
    const int64_t c = x->dims[1], m = w->dims[0];
    if (!infer_groups(q, x, w, at->group))
        return NULL;
    if (at->offset_group < 1 || (c >= 0 && c % at->offset_group))
        return infer_fail(q, "%" PRId64 " channels do not split into %" PRId64 " offset groups", c, at->offset_group);
    if (!infer_window(q, &at->window, x, w->dims + 2, &win) ||
        !infer_steering(q, 2, x, &win, at->offset_group, win.rank) || !infer_bias(q, 3, m) ||
        !infer_steering(q, 4, x, &win, at->offset_group, 1))
        return NULL;
    return infer_channels(q, x->dtype, x->dims[0], m, &win);
}

typedef struct SteeredRun {
    const Kernels *kernels;
    Steering s;
    int64_t groups, channels, results; /* channels and results of a group */
    bool f64;
    const void *filter, *bias, *mask;
    void *y;
    char *columns;                      /* for each worker: what the product works in, and a window matrix */
    size_t columns_bytes, filter_group; /* elements of a group's packed weights */
} SteeredRun;

/* The product of one group of one image. */
static Panel steered_panel(const SteeredRun *r)
{
    const size_t k = (size_t)(r->channels * r->s.taps), n = (size_t)r->s.out;
    const size_t tile = k * kernels_packed(r->kernels, r->f64 ? ARITH_F64 : ARITH_F32)->rows;
    return (Panel){ .m = (size_t)r->results, .n = n, .k = k, .lda = tile, .packed = true, .ldb = n, .ldc = n };
}

#define STEERED(T)                                                                                                     \
    static void steered_##T(const SteeredRun *r, int64_t image, int64_t g, T *room)                                    \
    {                                                                                                                  \
        const Steering *s = &r->s;                                                                                     \
        const Panel p = steered_panel(r);                                                                              \
        T *y = (T *)r->y + (image * r->groups + g) * r->results * s->out;                                              \
        T *columns = room + panel_room(&p), *to = columns;                                                             \
        for (int64_t i = 0; i < s->taps; i++)                                                                          \
            for (int64_t c = g * r->channels; c < (g + 1) * r->channels; c++, to += s->out) {                          \
                const T *mask = r->mask ? (const T *)r->mask + steering_row(s, image, c, i) * s->out : NULL;           \
                steering_look_##T(s, image, c, i, to);                                                                 \
                for (int64_t j = 0; mask && j < s->out; j++)                                                           \
                    to[j] *= mask[j];                                                                                  \
            }                                                                                                          \
        panel_##T(r->kernels, &p, (const T *)r->filter + (size_t)g * r->filter_group, columns, y, room);               \
        add_bias_##T(y, r->bias ? (const T *)r->bias + g * r->results : NULL, r->results, s->out, s->out);             \
    }                                                                                                                  \
    static void steered_operands_##T(Eval *e, SteeredRun *r)                                                           \
    {                                                                                                                  \
        r->s.x = eval_##T(e, 0), r->s.offset = eval_##T(e, 2);                                                         \
        r->bias = eval_has(e, 3) ? eval_##T(e, 3) : NULL;                                                              \
        r->mask = eval_has(e, 4) ? eval_##T(e, 4) : NULL;                                                              \
        r->y = eval_out_##T(e, 0);                                                                                     \
        const Panel p = steered_panel(r);                                                                              \
        r->columns_bytes = (p.k * p.n + panel_room(&p)) * sizeof(T);                                                   \
    }
STEERED(f32)
STEERED(f64)
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
    Window w;
    eval_window(e, &at->window, 0, filter->dims + 2, &w);
    if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    r.s = steering_of(&w, at->offset_group, x->dims[1]);
    r.channels = filter->dims[1];
    r.results = filter->dims[0] / at->group;
    r.filter = filter_packed(e, 1, false, r.groups, r.results, r.channels, r.s.taps);
    r.filter_group =
        filter_group(e, &(FilterPack){ .rows = r.results, .columns = r.channels, .taps = r.s.taps, .f64 = r.f64 });
    (r.f64 ? steered_operands_f64 : steered_operands_f32)(e, &r);
    r.columns = eval_scratch(e, (size_t)parallel_threads(e->pool), r.columns_bytes);
    eval_parallel(e, x->dims[0] * r.groups, steered_groups, &r);
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
    .adjoint = adjoint_deform_conv,
    .differentiable = 31,
    .trainable = 10,
    .weight = 60,
    .access.kind = ACCESS_WINDOW,
    .amp = { AMP_F, AMP_F, 28, REASON_INDEX, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "DeformConv", 22, NULL },
};
