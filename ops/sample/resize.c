/* resize: nearest moves elements; linear and cubic interpolate one axis after the other, shrinking ones first. */
#include "ops/sample/resize.h"

#include <string.h>

const char *const resize_modes[] = { "nearest", "linear", "cubic", NULL };
const char *const resize_coordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
    "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", /* of versions 11 and 12 only */
    NULL
};
const char *const resize_nearest_modes[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL };
const char *const resize_policies[] = { "stretch", "not_larger", "not_smaller", NULL };

static const AttrSpec resize_attrs[] = {
    RESIZE_ATTRS,
    ATTR_LAST,
};

enum { X, ROI, SCALES, SIZES };

/* Older files say "not given" by an empty tensor. */
static bool given(const Type *t)
{
    return t && type_elements(t) != 0;
}

static bool infer_list(Infer *q, int i, bool integers)
{
    if (!infer_has(q, i))
        return true;
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (t->rank >= 0 && t->rank != 1) {
        infer_fail(q, "operand %d must be a list, got rank %d", i, t->rank);
        return false;
    }
    if (integers ? t->dtype != I64 : !dtype_is_float(t->dtype)) {
        infer_fail(q, "operand %d cannot be %s", i, dtype_name(t->dtype));
        return false;
    }
    return true;
}

/* What is certain while the sizes are not: the axes that are not resized. */
static const Type *infer_some(Infer *q, const Type *x)
{
    int axes[MAX_RANK];
    int64_t dims[MAX_RANK];
    const int n = resize_axes(q->attr, x->rank, axes);
    if (n < 0)
        return infer_fail(q, "names an axis twice or outside [%d, %d)", -x->rank, x->rank);
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    for (int i = 0; i < n; i++)
        dims[axes[i]] = DIM_UNKNOWN;
    return type_tensor(q->types, x->dtype, x->rank, dims);
}

static const Tensor *value_of(const Infer *q, int i)
{
    return infer_has(q, i) && given(q->in[i]) ? infer_known(q, i) : NULL;
}

static const Type *infer_resize(Infer *q)
{
    const ResizeAttr *at = q->attr;
    const Type *x = infer_tensor(q, X);
    if (!x || !infer_list(q, ROI, false) || !infer_list(q, SCALES, false) || !infer_list(q, SIZES, true))
        return NULL;
    if (x->dtype == STRING || dtype_bits(x->dtype) < 8)
        return infer_fail(q, "cannot resize %s", dtype_name(x->dtype));
    if (at->antialias && at->mode == RESIZE_NEAREST)
        return infer_fail(q, "has no antialiasing of the nearest element");
    if (x->rank == 0)
        return x;
    const bool scales = infer_has(q, SCALES) && given(q->in[SCALES]),
               sizes = infer_has(q, SIZES) && given(q->in[SIZES]);
    if (scales && sizes && type_elements(q->in[SCALES]) > 0 && type_elements(q->in[SIZES]) > 0)
        return infer_fail(q, "has both scales and sizes");
    if (!scales && !sizes)
        return infer_fail(q, "has neither scales nor sizes");
    if (x->rank < 0)
        return x;
    const bool crops = at->coordinate_transformation_mode == COORD_TF_CROP_AND_RESIZE;
    if ((!value_of(q, SCALES) && !value_of(q, SIZES)) || (crops && infer_has(q, ROI) && !infer_known(q, ROI)))
        return infer_some(q, x);

    ResizePlan p;
    const char *wrong =
        resize_plan(&p, q->scratch, &q->ir->limits, at, x, value_of(q, ROI), value_of(q, SCALES), value_of(q, SIZES));
    return wrong ? infer_fail(q, "%s", wrong) : type_tensor(q->types, x->dtype, x->rank, p.out);
}

/* ---- nearest: raw elements ---- */

typedef struct Move {
    const ResizePlan *p;
    ResizeTaps taps[MAX_RANK];
    int64_t stride[MAX_RANK]; /* of the data, in elements */
    size_t size;
    const char *from, *extrapolated;
    char *to;
} Move;

/* One row of the innermost axis; `from` is where its data begin, null: nowhere. */
static void move_row(Move *m, const char *from)
{
    const int last = m->p->rank - 1;
    const ResizeTaps *t = &m->taps[last];
    for (int64_t k = 0; k < m->p->out[last]; k++, m->to += m->size)
        memcpy(m->to, from && !t->outside[k] ? from + (size_t)t->at[k] * m->size : m->extrapolated, m->size);
}

static void move_rows(Move *m, int64_t rows)
{
    int64_t at[MAX_RANK] = { 0 };
    for (int64_t row = 0; row < rows; row++) {
        int64_t offset = 0;
        bool inside = true;
        for (int i = 0; i < m->p->rank - 1; i++) {
            offset += m->taps[i].at[at[i]] * m->stride[i];
            inside = inside && !m->taps[i].outside[at[i]];
        }
        move_row(m, inside ? m->from + (size_t)offset * m->size : NULL);
        for (int i = m->p->rank - 2; i >= 0 && ++at[i] == m->p->out[i]; i--)
            at[i] = 0;
    }
}

/* The table of an axis that is not resized: each position reads the element of its own number. */
static ResizeTaps same_taps(Eval *e, int64_t n)
{
    ResizeTaps t = { .taps = 1,
                     .at = eval_scratch(e, (size_t)n, sizeof *t.at),
                     .outside = eval_scratch(e, (size_t)n, sizeof *t.outside) };
    for (int64_t k = 0; k < n; k++)
        t.at[k] = k;
    return t;
}

static void resize_nearest(Eval *e, const ResizeAttr *at, const ResizePlan *p)
{
    Tensor *y = eval_out(e, 0);
    Tensor *filler = tensor_scalar(e->scratch, &e->ir->types, y->type->dtype, (double)at->extrapolation_value);
    Move m = { .p = p,
               .size = (size_t)dtype_bits(y->type->dtype) / 8,
               .from = e->in[X]->data,
               .to = y->data,
               .extrapolated = filler->data };
    int64_t stride = 1, rows = 1;
    for (int i = p->rank - 1; i >= 0; i--) {
        m.stride[i] = stride;
        stride *= p->in[i];
        m.taps[i] = resize_keeps(p, i) ? same_taps(e, p->in[i]) : resize_taps(e, at, p, i);
        rows *= i < p->rank - 1 ? p->out[i] : 1;
    }
    if (tensor_elements(y))
        move_rows(&m, rows);
}

/* ---- linear and cubic ---- */

int resize_order(const ResizePlan *p, int *axes)
{
    int n = 0;
    for (int grows = 0; grows < 2; grows++)
        for (int i = 0; i < p->rank; i++)
            if (!resize_keeps(p, i) && (p->out[i] > p->in[i]) == grows)
                axes[n++] = i;
    return n;
}

void resize_around(int rank, const int64_t *dims, int axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int i = 0; i < axis; i++)
        *outer *= dims[i];
    for (int i = axis + 1; i < rank; i++)
        *inner *= dims[i];
}

/* One axis: [outer, in, inner] becomes [outer, out, inner]; taps ascending, those of weight 0 are not read. */
#define RESIZE_AXIS(T)                                                                                                 \
    static void resize_axis_##T(const ResizeTaps *t, int64_t outer, int64_t in, int64_t out, int64_t inner, T filler,  \
                                const T *x, T *y)                                                                      \
    {                                                                                                                  \
        for (int64_t row = 0; row < outer * out; row++) {                                                              \
            const int64_t k = row % out;                                                                               \
            const T *from = x + row / out * in * inner;                                                                \
            T *to = y + row * inner;                                                                                   \
            for (int64_t i = 0; i < inner; i++)                                                                        \
                to[i] = t->outside[k] ? filler : 0;                                                                    \
            for (int64_t n = 0; n < t->taps && !t->outside[k]; n++) {                                                  \
                const T w = (T)t->weight[k * t->taps + n];                                                             \
                const T *at = from + t->at[k * t->taps + n] * inner;                                                   \
                for (int64_t i = 0; w != 0 && i < inner; i++)                                                          \
                    to[i] = q_fma(w, at[i], to[i]);                                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void resize_axes_##T(Eval *e, const ResizeAttr *a, const ResizePlan *p)                                     \
    {                                                                                                                  \
        const DType dtype = e->in[X]->type->dtype;                                                                     \
        const T *x = eval_##T(e, X);                                                                                   \
        T *y = eval_out_##T(e, 0);                                                                                     \
        int axes[MAX_RANK];                                                                                            \
        int64_t now[MAX_RANK], outer, inner;                                                                           \
        memcpy(now, p->in, (size_t)p->rank * sizeof *now);                                                             \
        for (int n = resize_order(p, axes), i = 0; i < n; i++) {                                                       \
            const int axis = axes[i];                                                                                  \
            resize_around(p->rank, now, axis, &outer, &inner);                                                         \
            now[axis] = p->out[axis];                                                                                  \
            const ResizeTaps t = resize_taps(e, a, p, axis);                                                           \
            T *next = eval_scratch(e, (size_t)(outer * now[axis]), (size_t)inner * sizeof *next);                      \
            resize_axis_##T(&t, outer, p->in[axis], now[axis], inner, (T)a->extrapolation_value, x, next);             \
            x = next;                                                                                                  \
        }                                                                                                              \
        for (int64_t i = 0; i < tensor_elements(e->out[0]); i++)                                                       \
            y[i] = dtype_is_float(dtype) ? x[i] : settle_##T(x[i], dtype);                                             \
    }

/* Integers: to the nearest, within the type. */
static f32 settle_f32(f32 v, DType to)
{
    const int bits = to == BOOL ? 1 : dtype_bits(to);
    const bool sign = dtype_class(to) == CLASS_INT;
    const f32 hi = (f32)(((int64_t)1 << (sign ? bits - 1 : bits)) - 1);
    return clamp_f32(rint_f32(v), sign ? -hi - 1 : 0, hi);
}

static f64 settle_f64(f64 v, DType to)
{
    const f64 most = to == I32 ? 2147483647.0 : to == U32 ? 4294967295.0 : 0x1p64;
    return clamp_f64(rint_f64(v), to == I32 ? -2147483648.0 : dtype_class(to) == CLASS_UINT ? 0 : -0x1p64, most);
}
RESIZE_AXIS(f32)
RESIZE_AXIS(f64)
#undef RESIZE_AXIS

/* Integers beyond 16 bits need f64 to be told apart. */
static bool needs_f64(DType d)
{
    return d == F64 || (dtype_is_integer(d) && dtype_bits(d) > 16);
}

static const Tensor *operand_of(const Eval *e, int i)
{
    return eval_has(e, i) && given(e->in[i]->type) ? e->in[i] : NULL;
}

static Status eval_resize(Eval *e)
{
    const ResizeAttr *at = e->attr;
    const Type *x = e->in[X]->type;
    ResizePlan p;
    if (x->rank == 0) {
        eval_give(e, 0, e->in[X]);
        return OK;
    }
    const char *wrong = resize_plan(&p, e->scratch, &e->ir->limits, at, x, operand_of(e, ROI), operand_of(e, SCALES),
                                    operand_of(e, SIZES));
    if (wrong)
        return eval_fail(e, "%s", wrong);
    if (at->mode == RESIZE_NEAREST)
        resize_nearest(e, at, &p);
    else if (tensor_elements(eval_out(e, 0)) == 0)
        return OK;
    else
        (needs_f64(x->dtype) ? resize_axes_f64 : resize_axes_f32)(e, at, &p);
    return OK;
}

/* ---- the card ---- */

static Node *sample_sizes(Build *b, Rng *rng, int n, const int64_t *dims)
{
    int64_t sizes[MAX_RANK];
    const int64_t count = n;
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, I64, 1, &count));
    for (int i = 0; i < n; i++) {
        sizes[i] = dims[i] ? rng_range(rng, 1, 7) : 0;
        tensor_set_i64(t, i, sizes[i]);
    }
    return build_const(b, t);
}

/* Starts before the middle, ends behind it, both sometimes outside. */
static Node *sample_roi(Build *b, Rng *rng, int n)
{
    const int64_t count = 2 * n;
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, F32, 1, &count));
    for (int i = 0; i < n; i++) {
        tensor_set_f64(t, i, rng_unit(rng) * 0.6 - 0.2);
        tensor_set_f64(t, n + i, rng_unit(rng) * 0.6 + 0.6);
    }
    return build_const(b, t);
}

static Node *sample_resize(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F16, BF16, F64, U8, I8, I32, I64, F32 };
    int64_t dims[MAX_RANK], axes[MAX_RANK], picked[MAX_RANK];
    const int rank = variant % 6, n = (int)rng_below(rng, rank + 1);
    sample_dims(rng, rank, 5, dims);
    for (int i = 0; i < n; i++) {
        axes[i] = rng_below(rng, 2) ? rank - n + i : i - n;
        picked[i] = dims[rank - n + i];
    }
    const bool chosen = n > 0 && rng_below(rng, 2);
    const int count = chosen ? n : rank;
    const ResizeAttr at = { .axes = chosen ? (Ints){ n, axes } : (Ints){ 0, NULL },
                            .mode = variant / 6 % 3,
                            .antialias = variant / 6 % 3 && rng_below(rng, 2),
                            .exclude_outside = rng_below(rng, 2),
                            .coordinate_transformation_mode = (int)rng_below(rng, 6),
                            .keep_aspect_ratio_policy = (int)rng_below(rng, 3),
                            .nearest_mode = (int)rng_below(rng, 4),
                            .cubic_coeff_a = rng_below(rng, 2) ? -0.5f : -0.75f,
                            .extrapolation_value = (float)rng_below(rng, 3) };
    const bool crops = at.coordinate_transformation_mode == COORD_TF_CROP_AND_RESIZE, sizes = rank && rng_below(rng, 2);
    const int64_t scales = count;
    Node *ins[4] = { sample_tensor(b, rng, types[rng_below(rng, COUNT(types))], rank, dims, 0, 50) };
    if (crops)
        ins[1] = sample_roi(b, rng, count);
    if (sizes)
        ins[3] = sample_sizes(b, rng, count, chosen ? picked : dims);
    else
        ins[2] = sample_tensor(b, rng, F32, 1, &scales, 0.3, 2.5);
    return build_node(b, OP_resize, &at, sizes ? 4 : 3, ins);
}

/* The nearest element is a move; interpolation sums a few products. */
static AmpClass resize_class(const Node *n, DType target)
{
    (void)target;
    return ((const ResizeAttr *)n->attr)->mode == RESIZE_NEAREST ? AMP_P : AMP_S;
}

const OpDef op_resize = {
    .name = "resize",
    .min_in = 1,
    .max_in = 4,
    .attrs = resize_attrs,
    .infer = infer_resize,
    .eval = eval_resize,
    .sample = sample_resize,
    .n_variants = 54,
    .adjoint = adjoint_resize,
    .differentiable = 1u << X,
    .weight = 10,
    .access.kind = ACCESS_WINDOW,
    .access.kernels = kernels_resize,
    .amp = { AMP_C, AMP_C, 1u << ROI | 1u << SCALES, REASON_NONE, resize_class },
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER },
               .out = { QUANT_AGNOSTIC },
               .same_scale = true },
    .access.steer = 2 | 4 | 8,
    .onnx = { "Resize", 19, NULL },
};
