/* deform_columns: the window matrix of a deform_conv, [N, C, taps, positions], before its mask; and deform_columns_grad
 * and deform_columns_offset_grad, what reaches data and offsets from what reaches that.
 *
 * An element of the data is the sum over taps and positions, one of the offsets over its channels, ascending, by fused
 * multiply-adds; threads share out channels and taps. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/window/deform.h"

#define COLUMNS_ATTRS                                                                                                  \
    WINDOW_INTS(DeformConvAttr, dilations), WINDOW_REQUIRED_INTS(DeformConvAttr, kernel_shape),                        \
        ATTR(DeformConvAttr, offset_group, INT, 1), WINDOW_INTS(DeformConvAttr, pads),                                 \
        WINDOW_INTS(DeformConvAttr, strides)
static const AttrSpec columns_attrs[] = { COLUMNS_ATTRS, ATTR_LAST };
static const AttrSpec columns_grad_attrs[] = { COLUMNS_ATTRS, ATTR_REQUIRED(ColumnsAttr, extents, INTS), ATTR_LAST };
#undef COLUMNS_ATTRS

bool infer_steering(Infer *q, int i, const Type *x, const Window *w, int64_t groups, int64_t each)
{
    int64_t wanted = groups;
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

/* The type of the columns of x under the offsets in operand 1; null after a complaint. */
static const Type *infer_columns_of(Infer *q, const Type *x)
{
    const DeformConvAttr *at = q->attr;
    Window w;
    if (!x || !infer_tensor(q, 1))
        return NULL;
    if (!dtype_is_float(x->dtype))
        return infer_fail(q, "needs floats, got %s", type_text(q->scratch, x));
    if (x->rank < 0)
        return infer_unknown_dims(q, x->dtype, 4);
    if (x->rank < 3)
        return infer_fail(q, "needs at least 3 dimensions, got %d", x->rank);
    if (at->offset_group < 1 || (x->dims[1] >= 0 && x->dims[1] % at->offset_group))
        return infer_fail(q, "%" PRId64 " channels do not split into %" PRId64 " offset groups", x->dims[1],
                          at->offset_group);
    if (!infer_window(q, &at->window, x, NULL, &w) || !infer_steering(q, 1, x, &w, at->offset_group, w.rank))
        return NULL;
    int64_t dims[] = { x->dims[0], x->dims[1], 1, 1 };
    for (int i = 0; i < w.rank; i++) {
        const bool known = dims[3] >= 0 && w.out[i] >= 0;
        if (__builtin_mul_overflow(dims[2], w.kernel[i], &dims[2]) ||
            (known && __builtin_mul_overflow(dims[3], w.out[i], &dims[3])))
            return infer_fail(q, "has more windows than the limit elements");
        dims[3] = known ? dims[3] : DIM_UNKNOWN;
    }
    return infer_dims(q, x->dtype, 4, dims);
}

static const Type *infer_deform_columns(Infer *q)
{
    return infer_columns_of(q, infer_tensor(q, 0));
}

/* Whether operand i is what the columns of x are; false after a complaint. */
static bool infer_is_columns(Infer *q, int i, const Type *x)
{
    const Type *d = infer_tensor(q, i), *columns = d ? infer_columns_of(q, x) : NULL;
    if (columns && (!dtype_is_float(d->dtype) || !type_agrees(columns, type_with_dtype(q->types, d, x->dtype))))
        columns = infer_fail(q, "%s are no columns of %s", type_text(q->scratch, d), type_text(q->scratch, x));
    return columns;
}

static const Type *infer_deform_columns_grad(Infer *q)
{
    const Ints extents = ((const ColumnsAttr *)q->attr)->extents;
    const Type *d = infer_tensor(q, 0);
    int64_t dims[MAX_RANK];
    if (!d)
        return NULL;
    if (extents.n > MAX_SPATIAL || (d->rank >= 0 && d->rank != 4))
        return infer_fail(q, "has %d extents for %s", extents.n, type_text(q->scratch, d));
    dims[0] = d->rank < 0 ? DIM_UNKNOWN : d->dims[0];
    dims[1] = d->rank < 0 ? DIM_UNKNOWN : d->dims[1];
    for (int i = 0; i < extents.n; i++) {
        dims[2 + i] = extents.v[i];
        if (extents.v[i] < 0)
            return infer_fail(q, "extents holds %" PRId64, extents.v[i]);
    }
    const Type *x = infer_dims(q, d->dtype, 2 + extents.n, dims);
    return x && infer_is_columns(q, 0, x) ? x : NULL;
}

static const Type *infer_deform_columns_offset_grad(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    return x && infer_is_columns(q, 2, x) ? q->in[1] : NULL;
}

Steering steering_of(const Window *w, int64_t groups, int64_t channels)
{
    return (Steering){ .w = *w,
                       .channels = channels,
                       .groups = groups,
                       .per_group = channels / groups,
                       .taps = window_product(w->rank, w->kernel),
                       .in = window_product(w->rank, w->in),
                       .out = window_product(w->rank, w->out) };
}

int64_t steering_row(const Steering *s, int64_t image, int64_t c, int64_t k)
{
    return (image * s->groups + c / s->per_group) * s->taps + k;
}

typedef struct ColumnsRun {
    Steering s;
    const void *d; /* what reaches the columns */
    void *result;
} ColumnsRun;

#define STEERING(T)                                                                                                       \
    /* Where tap number k looks from position `at`, which is number j. */                                                 \
    static void point_##T(const Steering *s, int64_t row, const int64_t *tap, const int64_t *at, int64_t j, T *point)     \
    {                                                                                                                     \
        const Window *w = &s->w;                                                                                          \
        const T *offset = (const T *)s->offset + row * w->rank * s->out + j;                                              \
        for (int i = 0; i < w->rank; i++)                                                                                 \
            point[i] = (T)(at[i] * w->stride[i] - w->begin[i] + tap[i] * w->dilation[i]) + offset[i * s->out];            \
    }                                                                                                                     \
    /* One of the elements around a point and its share, or how fast that grows along axis `moved` (-1: none); false    \
     * outside. */ \
    static bool corner_##T(const Window *w, const T *point, int64_t corner, int moved, int64_t *at, T *share)             \
    {                                                                                                                     \
        *share = 1;                                                                                                       \
        *at = 0;                                                                                                          \
        for (int i = 0; i < w->rank; i++) {                                                                               \
            if (!(point[i] > -1 && point[i] < (T)w->in[i]))                                                               \
                return false;                                                                                             \
            const T low = q_floor(point[i]), rest = point[i] - low;                                                       \
            const bool upper = corner >> (w->rank - 1 - i) & 1;                                                           \
            const int64_t p = (int64_t)low + upper;                                                                       \
            if (p < 0 || p >= w->in[i])                                                                                   \
                return false;                                                                                             \
            *share *= i == moved ? (upper ? 1 : -1) : upper ? rest : 1 - rest;                                            \
            *at = *at * w->in[i] + p;                                                                                     \
        }                                                                                                                 \
        return true;                                                                                                      \
    }                                                                                                                     \
    static T look_##T(const Window *w, const T *x, const T *point, int moved)                                             \
    {                                                                                                                     \
        T sum = 0, share;                                                                                                 \
        int64_t at;                                                                                                       \
        for (int64_t corner = 0; corner < (int64_t)1 << w->rank; corner++)                                                \
            if (corner_##T(w, point, corner, moved, &at, &share))                                                         \
                sum = q_fma(share, x[at], sum);                                                                           \
        return sum;                                                                                                       \
    }                                                                                                                     \
    void steering_look_##T(const Steering *s, int64_t image, int64_t c, int64_t k, T *to)                                 \
    {                                                                                                                     \
        const int64_t row = steering_row(s, image, c, k);                                                                 \
        const T *x = (const T *)s->x + (image * s->channels + c) * s->in;                                                 \
        int64_t at[MAX_SPATIAL] = { 0 }, tap[MAX_SPATIAL];                                                                \
        T point[MAX_SPATIAL];                                                                                             \
        position_of(s->w.rank, s->w.kernel, k, tap);                                                                      \
        for (int64_t j = 0; j < s->out; j++) {                                                                            \
            point_##T(s, row, tap, at, j, point);                                                                         \
            to[j] = look_##T(&s->w, x, point, -1);                                                                        \
            position_next(s->w.rank, s->w.out, at);                                                                       \
        }                                                                                                                 \
    }                                                                                                                     \
    /* Channels [begin, end) of all images. */                                                                            \
    static void columns_##T(void *arg, int64_t begin, int64_t end, int worker)                                            \
    {                                                                                                                     \
        const ColumnsRun *r = arg;                                                                                        \
        const Steering *s = &r->s;                                                                                        \
        (void)worker;                                                                                                     \
        for (int64_t i = begin * s->taps; i < end * s->taps; i++)                                                         \
            steering_look_##T(s, i / s->taps / s->channels, i / s->taps % s->channels, i % s->taps,                       \
                              (T *)r->result + i * s->out);                                                               \
    }                                                                                                                     \
    static void spread_##T(void *arg, int64_t begin, int64_t end, int worker)                                             \
    {                                                                                                                     \
        const ColumnsRun *r = arg;                                                                                        \
        const Steering *s = &r->s;                                                                                        \
        (void)worker;                                                                                                     \
        memset((T *)r->result + begin * s->in, 0, (size_t)((end - begin) * s->in) * sizeof(T));                           \
        for (int64_t i = begin * s->taps; i < end * s->taps; i++) {                                                       \
            const int64_t c = i / s->taps, row = steering_row(s, c / s->channels, c % s->channels, i % s->taps);          \
            T *dx = (T *)r->result + c * s->in, point[MAX_SPATIAL], share;                                                \
            int64_t at[MAX_SPATIAL] = { 0 }, tap[MAX_SPATIAL], to;                                                        \
            position_of(s->w.rank, s->w.kernel, i % s->taps, tap);                                                        \
            for (int64_t j = 0; j < s->out; j++) {                                                                        \
                point_##T(s, row, tap, at, j, point);                                                                     \
                for (int64_t corner = 0; corner < (int64_t)1 << s->w.rank; corner++)                                      \
                    if (corner_##T(&s->w, point, corner, -1, &to, &share))                                                \
                        dx[to] = q_fma(share, ((const T *)r->d)[i * s->out + j], dx[to]);                                 \
                position_next(s->w.rank, s->w.out, at);                                                                   \
            }                                                                                                             \
        }                                                                                                                 \
    }                                                                                                                     \
    /* Rows [begin, end) of the offsets: a tap of a group of channels of an image each. */                                \
    static void steer_##T(void *arg, int64_t begin, int64_t end, int worker)                                              \
    {                                                                                                                     \
        const ColumnsRun *r = arg;                                                                                        \
        const Steering *s = &r->s;                                                                                        \
        (void)worker;                                                                                                     \
        for (int64_t row = begin; row < end; row++) {                                                                     \
            const int64_t k = row % s->taps, c = row / s->taps * s->per_group;                                            \
            T *to = (T *)r->result + row * s->w.rank * s->out, point[MAX_SPATIAL];                                        \
            int64_t at[MAX_SPATIAL] = { 0 }, tap[MAX_SPATIAL];                                                            \
            position_of(s->w.rank, s->w.kernel, k, tap);                                                                  \
            for (int64_t j = 0; j < s->out; j++) {                                                                        \
                point_##T(s, row, tap, at, j, point);                                                                     \
                for (int i = 0; i < s->w.rank; i++) {                                                                     \
                    T sum = 0;                                                                                            \
                    for (int64_t n = c; n < c + s->per_group; n++)                                                        \
                        sum = q_fma(((const T *)r->d)[(n * s->taps + k) * s->out + j],                                    \
                                    look_##T(&s->w, (const T *)s->x + n * s->in, point, i), sum);                         \
                    to[i * s->out + j] = sum;                                                                             \
                }                                                                                                         \
                position_next(s->w.rank, s->w.out, at);                                                                   \
            }                                                                                                             \
        }                                                                                                                 \
    }
STEERING(f32)
STEERING(f64)
#undef STEERING

/* x, d: operands (-1: none) */
static ColumnsRun columns_run(Eval *e, int x, int d, int64_t channels, const int64_t *extents, int rank)
{
    const DeformConvAttr *at = e->attr;
    const bool wide = eval_is_f64(e);
    ColumnsRun r = { 0 };
    Window w;
    BUG_IF(e->ir->memory, window_place(&w, e->scratch, &at->window, rank, extents, NULL));
    r.s = steering_of(&w, at->offset_group, channels);
    r.s.offset = wide ? (const void *)eval_f64(e, 1) : eval_f32(e, 1);
    if (x >= 0)
        r.s.x = wide ? (const void *)eval_f64(e, x) : eval_f32(e, x);
    if (d >= 0)
        r.d = wide ? (const void *)eval_f64(e, d) : eval_f32(e, d);
    r.result = wide ? (void *)eval_out_f64(e, 0) : eval_out_f32(e, 0);
    return r;
}

static Status eval_deform_columns(Eval *e)
{
    const Type *x = e->in[0]->type;
    ColumnsRun r = columns_run(e, 0, -1, x->dims[1], x->dims + 2, x->rank - 2);
    if (tensor_elements(e->out[0]))
        eval_parallel(e, x->dims[0] * x->dims[1], eval_is_f64(e) ? columns_f64 : columns_f32, &r);
    return OK;
}

static Status eval_deform_columns_grad(Eval *e)
{
    const Ints extents = ((const ColumnsAttr *)e->attr)->extents;
    const int64_t *d = e->in[0]->type->dims;
    ColumnsRun r = columns_run(e, -1, 0, d[1], extents.v, extents.n);
    if (tensor_elements(e->out[0]))
        eval_parallel(e, d[0] * d[1], eval_is_f64(e) ? spread_f64 : spread_f32, &r);
    return OK;
}

static Status eval_deform_columns_offset_grad(Eval *e)
{
    const Type *x = e->in[0]->type;
    ColumnsRun r = columns_run(e, 0, 2, x->dims[1], x->dims + 2, x->rank - 2);
    if (tensor_elements(e->out[0]))
        eval_parallel(e, x->dims[0] * r.s.groups * r.s.taps, eval_is_f64(e) ? steer_f64 : steer_f32, &r);
    return OK;
}

/* Data, offsets, and what reaches the columns. */
static void sample_columns_of(Build *b, Rng *rng, int variant, ColumnsAttr *at, Node **ins)
{
    const Node *y = op_deform_conv.sample(b, rng, variant);
    const Type *x = in(y, 0)->type, *filter = in(y, 1)->type;
    Window w;
    at->deform = *(const DeformConvAttr *)y->attr;
    at->deform.window.kernel_shape = (Ints){ x->rank - 2, filter->dims + 2 };
    at->extents = (Ints){ x->rank - 2, x->dims + 2 };
    BUG_IF(b->graph->ir->memory, window_place(&w, b->graph->arena, &at->deform.window, x->rank - 2, x->dims + 2, NULL));
    const int64_t dims[] = { x->dims[0], x->dims[1], window_product(w.rank, w.kernel), window_product(w.rank, w.out) };
    ins[0] = in(y, 0);
    ins[1] = in(y, 2);
    ins[2] = sample_tensor(b, rng, x->dtype, 4, dims, -2, 2);
}

static Node *sample_deform_columns(Build *b, Rng *rng, int variant)
{
    ColumnsAttr at;
    Node *ins[3];
    sample_columns_of(b, rng, variant, &at, ins);
    return build_node(b, OP_deform_columns, &at.deform, 2, ins);
}

static Node *sample_deform_columns_grad(Build *b, Rng *rng, int variant)
{
    ColumnsAttr at;
    Node *ins[3];
    sample_columns_of(b, rng, variant, &at, ins);
    return CALL_ATTR(b, deform_columns_grad, at, ins[2], ins[1]);
}

static Node *sample_deform_columns_offset_grad(Build *b, Rng *rng, int variant)
{
    ColumnsAttr at;
    Node *ins[3];
    sample_columns_of(b, rng, variant, &at, ins);
    return build_node(b, OP_deform_columns_offset_grad, &at.deform, 3, ins);
}

#define COLUMNS_CARD(word, n, reads, list, about)                                                                      \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = n,                                                                                                   \
        .max_in = n,                                                                                                   \
        .attrs = list,                                                                                                 \
        .infer = infer_##word,                                                                                         \
        .eval = eval_##word,                                                                                           \
        .sample = sample_##word,                                                                                       \
        .n_variants = 24,                                                                                              \
        .weight = 30,                                                                                                  \
        .access.kind = ACCESS_##reads,                                                                                 \
        .amp = { AMP_F, AMP_F, 2, REASON_INDEX, NULL },                                                                \
        .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },                                                    \
        .brief = about,                                                                                                \
    }
COLUMNS_CARD(deform_columns, 2, WINDOW, columns_attrs, "What each tap of a deform_conv sees of x at each position.");
COLUMNS_CARD(deform_columns_grad, 2, SCATTER, columns_grad_attrs,
             "What reaches the data of deform_columns, from what reaches its result.");
COLUMNS_CARD(deform_columns_offset_grad, 3, WINDOW, columns_attrs,
             "What reaches the offsets of deform_columns over x, from what reaches its result.");
#undef COLUMNS_CARD
