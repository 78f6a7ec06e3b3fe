/* col2im: blocks laid out as columns, added back into images. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/window/window.h"

static const AttrSpec col2im_attrs[] = {
    WINDOW_INTS(Col2imAttr, dilations),
    WINDOW_INTS(Col2imAttr, pads),
    WINDOW_INTS(Col2imAttr, strides),
    ATTR_LAST,
};

/* The extents in operand i, -1 where they are not known; false after a complaint. */
static bool infer_extents(Infer *q, int i, int64_t least, int rank, int64_t *extents)
{
    int64_t n;
    const int64_t *v = infer_ints(q, i, &n);
    for (int k = 0; k < rank; k++) {
        extents[k] = v ? v[k] : DIM_UNKNOWN;
        if (v && (v[k] < least || v[k] > q->ir->limits.dim)) {
            infer_fail(q, "operand %d holds %" PRId64 ", wanted is from %" PRId64 " to the limit dim (%" PRId64 ")", i,
                       v[k], least, q->ir->limits.dim);
            return false;
        }
    }
    return true;
}

/* The number of dimensions that image_shape and block_shape speak of; RANK_UNKNOWN when neither says, -2 after a
 * complaint. */
static int infer_image_rank(Infer *q)
{
    int64_t rank = RANK_UNKNOWN;
    for (int i = 1; i < 3; i++) {
        const Type *t = infer_tensor(q, i);
        if (!t)
            return -2;
        if (!dtype_is_integer(t->dtype) || (t->rank >= 0 && t->rank != 1)) {
            infer_fail(q, "operand %d is %s, wanted is a list of integers", i, type_text(q->scratch, t));
            return -2;
        }
        const int64_t n = t->rank == 1 ? t->dims[0] : DIM_UNKNOWN;
        if (n == 0 || n > MAX_SPATIAL || (n >= 0 && rank >= 0 && n != rank)) {
            infer_fail(q, "operand %d says %" PRId64 " dimensions", i, n);
            return -2;
        }
        rank = n >= 0 ? n : rank;
    }
    return (int)rank;
}

/* The columns must be one a window. */
static bool infer_counts(Infer *q, const Type *x, const Window *w, int64_t *channels)
{
    int64_t block = 1, positions = 1;
    for (int i = 0; i < w->rank; i++) {
        if (w->kernel[i] < 0 || w->out[i] < 0)
            return true;
        if (__builtin_mul_overflow(block, w->kernel[i], &block) ||
            __builtin_mul_overflow(positions, w->out[i], &positions)) {
            infer_fail(q, "has more windows than the limit elements");
            return false;
        }
    }
    if ((x->dims[1] >= 0 && x->dims[1] % block) || (x->dims[2] >= 0 && x->dims[2] != positions)) {
        infer_fail(q, "columns are %s, wanted are %" PRId64 " of a multiple of %" PRId64 " elements",
                   type_text(q->scratch, x), positions, block);
        return false;
    }
    *channels = x->dims[1] >= 0 ? x->dims[1] / block : DIM_UNKNOWN;
    return true;
}

static const Type *infer_col2im(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    if (x->dtype == STRING || x->dtype == BOOL)
        return infer_fail(q, "needs numbers, got %s", type_text(q->scratch, x));
    if (x->rank >= 0 && x->rank != 3)
        return infer_fail(q, "needs columns of 3 dimensions, got %d", x->rank);
    const int rank = infer_image_rank(q);
    if (rank < RANK_UNKNOWN)
        return NULL;
    if (rank < 0)
        return type_unranked(q->types, x->dtype);

    int64_t dims[MAX_RANK] = { DIM_UNKNOWN, DIM_UNKNOWN }, block[MAX_SPATIAL];
    Window w;
    if (!infer_extents(q, 1, 0, rank, dims + 2) || !infer_extents(q, 2, 1, rank, block))
        return NULL;
    const char *wrong = window_place(&w, q->scratch, q->attr, rank, dims + 2, block);
    if (wrong)
        return infer_fail(q, "%s", wrong);
    if (x->rank == 3 && !infer_counts(q, x, &w, &dims[1]))
        return NULL;
    dims[0] = x->rank == 3 ? x->dims[0] : DIM_UNKNOWN;
    return infer_dims(q, x->dtype, rank + 2, dims);
}

#define ASSEMBLE(T)                                                                                                    \
    static void assemble_##T(Eval *e, const Window *w, int64_t images)                                                 \
    {                                                                                                                  \
        const int64_t taps = window_product(w->rank, w->kernel), n = window_product(w->rank, w->out);                  \
        const int64_t size = window_product(w->rank, w->in);                                                           \
        const T *x = eval_##T(e, 0);                                                                                   \
        T *y = eval_out_##T(e, 0);                                                                                     \
        if (images && size)                                                                                            \
            memset(y, 0, (size_t)(images * size) * sizeof(T));                                                         \
        for (int64_t i = 0; i < images; i++) {                                                                         \
            int64_t tap[MAX_SPATIAL] = { 0 };                                                                          \
            for (int64_t k = 0; k < taps; k++) {                                                                       \
                window_scatter_##T(w, y + i * size, tap, x + (i * taps + k) * n);                                      \
                position_next(w->rank, w->kernel, tap);                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }
ASSEMBLE(f32)
ASSEMBLE(f64)
ASSEMBLE(i64)
#undef ASSEMBLE

static Status eval_col2im(Eval *e)
{
    int64_t n;
    const int64_t *image = eval_ints(e, 1, &n), *block = eval_ints(e, 2, &n);
    const DType d = e->in[0]->type->dtype;
    const int64_t images = e->type->dims[0] * e->type->dims[1];
    Window w;
    BUG_IF(e->ir->memory, window_place(&w, e->scratch, e->attr, (int)n, image, block));
    (d == F64 ? assemble_f64 : dtype_is_float(d) ? assemble_f32 : assemble_i64)(e, &w, images);
    return OK;
}

/* Cutting an image into blocks is a convolution with one kernel a tap, each of which sees nothing but its tap. */
static void adjoint_col2im(Build *b, const Site *s, Node **dx)
{
    const Col2imAttr *at = s->attr;
    const Type *y = s->type, *x = s->in[0]->type;
    Node *dy = s->dout[0];
    int64_t image[MAX_RANK] = { y->dims[0] * y->dims[1], 1 }, kernel[MAX_RANK] = { 0, 1 }, taps = 1;
    const int rank = y->rank - 2;
    const Tensor *block = make_known(b, s, 2);
    if (type_elements(x) == 0 || !block)
        return;
    for (int i = 0; i < rank; i++) {
        image[2 + i] = y->dims[2 + i];
        kernel[2 + i] = tensor_get_i64(block, i);
        taps *= kernel[2 + i];
    }
    kernel[0] = taps;
    Tensor *one = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dy->type->dtype, rank + 2, kernel));
    for (int64_t i = 0; i < taps; i++)
        tensor_set_f64(one, i * taps + i, 1);
    const ConvAttr conv = { .window = at->window, .group = 1 };
    Node *columns = CALL_ATTR(b, conv, conv, make_reshape(b, dy, rank + 2, image), build_const(b, one));
    dx[0] = make_reshape(b, columns, 3, x->dims);
}

static Node *sample_col2im(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, F16, I32, U8 };
    const int rank = 1 + variant % 3;
    int64_t image[MAX_SPATIAL], block[MAX_SPATIAL];
    Col2imAttr at = { 0 };
    Window w;
    for (int i = 0; i < rank; i++)
        image[i] = rng_range(rng, 1, 5);
    sample_window(rng, b->graph->arena, rank, image, block, &at.window);
    at.window.auto_pad = PAD_NOTSET;
    BUG_IF(b->graph->ir->memory, window_place(&w, b->graph->arena, &at.window, rank, image, block));
    const int64_t dims[] = { rng_below(rng, 3), rng_range(rng, 1, 2) * window_product(rank, block),
                             window_product(rank, w.out) };
    return CALL_ATTR(b, col2im, at, sample_tensor(b, rng, types[variant % (int)COUNT(types)], 3, dims, 0, 3),
                     build_i64s(b, rank, image), build_i64s(b, rank, block));
}

const OpDef op_col2im = {
    .name = "col2im",
    .min_in = 3,
    .max_in = 3,
    .attrs = col2im_attrs,
    .infer = infer_col2im,
    .eval = eval_col2im,
    .sample = sample_col2im,
    .n_variants = 30,
    .adjoint = adjoint_col2im,
    .differentiable = 1,
    .weight = 3,
    .access.kind = ACCESS_WINDOW,
    .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 2 | 4,
    .onnx = { "Col2Im", 18, NULL },
};
