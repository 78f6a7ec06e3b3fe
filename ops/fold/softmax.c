/* softmax, log_softmax and hardmax along one axis. */
#include <string.h>

#include "base/parallel.h"
#include "ops/card/make.h"
#include "ops/card/row.h"
#include "ops/card/shapes.h"
#include "ops/fold/fold_access.h"
#include "ops/fold/fold_kernels.h"

static const AttrSpec axis_attrs[] = { ATTR(AxisAttr, axis, INT, -1), ATTR_LAST };
static const AttrSpec log_softmax_attrs[] = {
    ATTR(LogSoftmaxAttr, axis, INT, -1),
    ATTR_OURS(LogSoftmaxAttr, out, DTYPE, 0),
    ATTR_LAST,
};

static const Type *infer_along(Infer *q, int64_t axis)
{
    const Type *x = infer_tensor(q, 0);
    int own;
    if (!x)
        return NULL;
    if (!dtype_is_float(x->dtype))
        return infer_fail(q, "does not take %s", dtype_name(x->dtype));
    return x->rank < 0 || infer_axis(q, axis, x->rank, &own) ? x : NULL;
}

static const Type *infer_softmax(Infer *q)
{
    return infer_along(q, ((const AxisAttr *)q->attr)->axis);
}

static const Type *infer_log_softmax(Infer *q)
{
    const LogSoftmaxAttr *at = q->attr;
    const Type *x = infer_along(q, at->axis);
    DType dtype;
    if (!x || !attr_dtype(at->out, &dtype))
        return x;
    if (!dtype_is_float(dtype))
        return infer_fail(q, "gives %s of %s", dtype_name(dtype), dtype_name(x->dtype));
    return type_with_dtype(q->types, x, dtype);
}

/* exp(x - max) / sum of it */
static Node *expand_softmax(Build *b, const Site *s)
{
    const int64_t axis = ((const AxisAttr *)s->attr)->axis;
    Node *x = make_cast(b, s->in[0], dtype_wide(s->in[0]->type->dtype));
    Node *e = CALL(b, exp, CALL(b, sub, x, build_reduce(b, OP_reduce_max, x, 1, &axis)));
    Node *y = CALL(b, div, e, build_reduce(b, OP_reduce_sum, e, 1, &axis));
    return make_cast(b, y, s->type->dtype);
}

/* (x - max) - log(sum of exp(x - max)) */
static Node *expand_log_softmax(Build *b, const Site *s)
{
    const int64_t axis = ((const LogSoftmaxAttr *)s->attr)->axis;
    Node *x = make_cast(b, s->in[0], dtype_wide(s->in[0]->type->dtype));
    Node *d = CALL(b, sub, x, build_reduce(b, OP_reduce_max, x, 1, &axis));
    Node *sum = build_reduce(b, OP_reduce_sum, CALL(b, exp, d), 1, &axis);
    return make_cast(b, CALL(b, sub, d, CALL(b, log, sum)), s->type->dtype);
}

/* The same over x[n, inner] for each outer index, with the loops that the expansion would run. */
typedef struct SoftmaxRun {
    const char *x;
    char *y, *room; /* room of a worker: one value per column, and for log_softmax the exponentials it does not keep */
    size_t n, inner, element, room_size;
    bool log;
    RowLoop *sub, *exp, *log_of, *div;
    const ReduceLoops *max, *sum;
} SoftmaxRun;

enum { BLOCK = 256 };

static const double none[ROW_SCALARS] = { 0 };

#define FILL(T)                                                                                                        \
    static void fill_##T(T *to, size_t n, T v)                                                                         \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            to[i] = v;                                                                                                 \
    }
FILL(f32)
FILL(f64)
#undef FILL

/* y = loop(x, v), one v for each column. */
static void with_each(const SoftmaxRun *r, RowLoop *loop, char *y, const char *x, const char *v)
{
    double filled[BLOCK];
    if (r->inner > 1) {
        for (size_t k = 0; k < r->n; k++)
            loop(r->inner, y + k * r->inner * r->element, x + k * r->inner * r->element, v, NULL, none);
        return;
    }
    const size_t width = r->n < BLOCK ? r->n : BLOCK;
    if (r->element == sizeof(f32))
        fill_f32((f32 *)(void *)filled, width, *(const f32 *)(const void *)v);
    else
        fill_f64(filled, width, *(const f64 *)(const void *)v);
    for (size_t at = 0; at < r->n; at += BLOCK)
        loop(r->n - at < BLOCK ? r->n - at : BLOCK, y + at * r->element, x + at * r->element, filled, NULL, none);
}

static void reduce_each(const SoftmaxRun *r, const ReduceLoops *loops, const char *x, char *v)
{
    if (r->inner > 1)
        loops->cols(r->n, r->inner, r->inner, x, v);
    else
        loops->rows(1, r->n, x, v);
}

static void softmax_range(void *arg, int64_t begin, int64_t end, int worker)
{
    const SoftmaxRun *r = arg;
    const size_t size = r->n * r->inner;
    char *v = r->room + (size_t)worker * r->room_size * r->element;
    for (int64_t i = begin; i < end; i++) {
        const size_t at = (size_t)i * size * r->element;
        char *y = r->y + at, *e = r->log ? v + r->inner * r->element : y;
        reduce_each(r, r->max, r->x + at, v);
        with_each(r, r->sub, y, r->x + at, v);
        r->exp(size, e, y, NULL, NULL, none);
        reduce_each(r, r->sum, e, v);
        if (r->log)
            r->log_of(r->inner, v, v, NULL, NULL, none);
        with_each(r, r->log ? r->sub : r->div, y, y, v);
    }
}

static Status softmax_along(Eval *e, int64_t axis, bool log)
{
    const Type *t = e->in[0]->type;
    const Arithmetic a = dtype_arithmetic(t->dtype);
    SoftmaxRun r = { .x = eval_wide(e, 0, a),
                     .y = eval_out_wide(e, 0, a),
                     .n = 1,
                     .inner = 1,
                     .element = a == ARITH_F32 ? sizeof(f32) : sizeof(f64),
                     .log = log,
                     .sub = kernels_row(e->kernels, ROW_sub, a),
                     .exp = kernels_row(e->kernels, ROW_exp, a),
                     .log_of = kernels_row(e->kernels, ROW_log, a),
                     .div = kernels_row(e->kernels, ROW_div, a),
                     .max = kernels_reduce(e->kernels, REDUCE_MAX, a),
                     .sum = kernels_reduce(e->kernels, REDUCE_SUM, a) };
    if (type_elements(t) == 0)
        return OK;
    for (int d = axis_wrap(axis, t->rank), k = d; t->rank > 0 && k < t->rank; k++)
        *(k == d ? &r.n : &r.inner) *= (size_t)t->dims[k];
    r.room_size = r.inner + (log ? r.n * r.inner : 0);
    r.room = eval_room(e, r.room_size * (size_t)parallel_threads(e->pool), r.element);
    eval_parallel(e, type_elements(t) / (int64_t)(r.n * r.inner), softmax_range, &r);
    return OK;
}

static Status fast_softmax(Eval *e)
{
    return softmax_along(e, ((const AxisAttr *)e->attr)->axis, false);
}

static Status fast_log_softmax(Eval *e)
{
    return softmax_along(e, ((const LogSoftmaxAttr *)e->attr)->axis, true);
}

/* 1 at the first of the greatest elements, 0 elsewhere; the first NaN is the greatest. */
static Status eval_hardmax(Eval *e)
{
    const Type *t = e->in[0]->type;
    const int own = axis_wrap(((const AxisAttr *)e->attr)->axis, t->rank);
    Tensor *y = eval_out(e, 0);
    int64_t inner = 1;
    for (int d = own + 1; d < t->rank; d++)
        inner *= t->dims[d];
    const int64_t n = t->dims[own], rows = type_elements(t) / (n > 0 ? n : 1);
    for (int64_t i = 0; i < rows && n > 0; i++) {
        const int64_t first = i / inner * n * inner + i % inner;
        int64_t best = first;
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = first + k * inner;
            const double v = eval_float(e, 0, at), top = eval_float(e, 0, best);
            best = v > top || (v != v && top == top) ? at : best;
            tensor_set_f64(y, at, 0);
        }
        tensor_set_f64(y, best, 1);
    }
    return OK;
}

static Node *sample_along(Build *b, Rng *rng, int variant, Op op)
{
    static const DType types[] = { F32, BF16, F64, F16 };
    const int rank = 1 + variant % 5;
    int64_t dims[MAX_RANK];
    sample_dims(rng, rank, 5, dims);
    const int axis = (int)rng_below(rng, rank);
    if (variant % 4 == 3)
        dims[axis] = 1 + rng_below(rng, 2000);
    const int64_t signed_axis = rng_below(rng, 2) ? axis : axis - rank;
    Node *x = sample_tensor(b, rng, types[rng_below(rng, COUNT(types))], rank, dims, -6, 6);
    if (op == OP_log_softmax) {
        const LogSoftmaxAttr log = { signed_axis, variant % 2 ? 0 : (int)(x->type->dtype == F64 ? F64 : F32) + 1 };
        return build_node(b, op, &log, 1, &x);
    }
    const AxisAttr at = { signed_axis };
    return build_node(b, op, &at, 1, &x);
}

static Node *sample_softmax(Build *b, Rng *rng, int variant)
{
    return sample_along(b, rng, variant, OP_softmax);
}

static Node *sample_log_softmax(Build *b, Rng *rng, int variant)
{
    return sample_along(b, rng, variant, OP_log_softmax);
}

static Node *sample_hardmax(Build *b, Rng *rng, int variant)
{
    return sample_along(b, rng, variant, OP_hardmax);
}

#define CARD                                                                                                           \
    .min_in = 1, .max_in = 1, .n_variants = 30, .differentiable = 1,                                                   \
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } }

const OpDef op_softmax = {
    .name = "softmax",
    .access.kind = ACCESS_COMPOSITE,
    CARD,
    .attrs = axis_attrs,
    .infer = infer_softmax,
    .expand = expand_softmax,
    .fast = fast_softmax,
    .sample = sample_softmax,
    .adjoint = adjoint_softmax,
    .open_adjoint = true,
    .weight = 8,
    .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL, .bounded = true },
    .likelihood = LIKELIHOOD_CLASSES,
    .onnx = { "Softmax", 13, NULL },
};

const OpDef op_log_softmax = {
    .name = "log_softmax",
    .access.kind = ACCESS_COMPOSITE,
    CARD,
    .attrs = log_softmax_attrs,
    .infer = infer_log_softmax,
    .expand = expand_log_softmax,
    .fast = fast_log_softmax,
    .sample = sample_log_softmax,
    .adjoint = adjoint_log_softmax,
    .open_adjoint = true,
    .weight = 10,
    .amp = { AMP_FO, AMP_FO, 0, REASON_PRECISION, NULL },
    .likelihood = LIKELIHOOD_LOGS,
    .onnx = { "LogSoftmax", 13, NULL },
};

const OpDef op_hardmax = {
    .name = "hardmax",
    .access.kind = ACCESS_FOLD,
    .access.iterate = iterate_hardmax,
    .access.kernels = kernels_hardmax,
    CARD,
    .attrs = axis_attrs,
    .infer = infer_softmax,
    .eval = eval_hardmax,
    .sample = sample_hardmax,
    .adjoint = adjoint_hardmax,
    .weight = 3,
    .amp = { AMP_FI, AMP_FI, 0, REASON_INDEX, NULL, .bounded = true },
    .onnx = { "Hardmax", 13, NULL },
};
