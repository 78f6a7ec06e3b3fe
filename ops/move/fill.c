/* Tensors made from a few numbers: constant_of_shape, range, eye_like, one_hot. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"
#include "ops/move/move_kernels.h"

/* ---- constant_of_shape ---- */

static const AttrSpec constant_of_shape_attrs[] = { ATTR_OPTIONAL(ValueAttr, value, PAYLOAD), ATTR_LAST };

static const Type *infer_constant_of_shape(Infer *q)
{
    const Payload *value = ((const ValueAttr *)q->attr)->value;
    int64_t n, dims[MAX_RANK];
    if (value && (value->type->kind != TYPE_TENSOR || type_elements(value->type) != 1))
        return infer_fail(q, "value must be one element, not %s", type_text(q->scratch, value->type));
    const DType dtype = value ? value->type->dtype : F32;
    if (!infer_list(q, 0, &n))
        return NULL;
    const int64_t *v = infer_ints(q, 0, &n);
    if (!v)
        return n < 0 ? type_unranked(q->types, dtype) : infer_unknown_dims(q, dtype, n);
    for (int64_t i = 0; i < n && i < MAX_RANK; i++) {
        dims[i] = v[i];
        if (v[i] < 0)
            return infer_fail(q, "asks for a dimension %" PRId64, v[i]);
    }
    return infer_dims(q, dtype, n, dims);
}

static Status eval_constant_of_shape(Eval *e)
{
    Payload *value = ((const ValueAttr *)e->attr)->value;
    Tensor *y = eval_out(e, 0);
    const Raw to = raw_open(e, y);
    if (value) {
        const Tensor *one = payload_cached(value, e->ir->diag);
        if (!one)
            return payload_failed(value, e->ir->diag, e->node ? node_place(e->node) : NOWHERE);
        raw_fill(to.data, raw_of(e, one).data, tensor_elements(y), to.size);
    } else {
        raw_zero(to.data, tensor_elements(y), to.size);
    }
    raw_close(y, to);
    return OK;
}

static Node *sample_constant_of_shape(Build *b, Rng *rng, int variant)
{
    Arena *arena = b->graph->arena;
    int64_t dims[MAX_RANK];
    ValueAttr at = { NULL };
    const int rank = variant % 6;
    sample_dims(rng, rank, 4, dims);
    if (variant % 3) {
        const int64_t one = 1;
        Tensor *t = tensor_new(arena, type_tensor(&b->graph->ir->types, sample_dtype(variant), variant % 2, &one));
        tensor_set_i64(t, 0, rng_below(rng, 2));
        at.value = payload_of(arena, t);
    }
    return CALL_ATTR(b, constant_of_shape, at, build_i64s(b, rank, dims));
}

const OpDef op_constant_of_shape = {
    .name = "constant_of_shape",
    .min_in = 1,
    .max_in = 1,
    .attrs = constant_of_shape_attrs,
    .infer = infer_constant_of_shape,
    .eval = eval_constant_of_shape,
    .sample = sample_constant_of_shape,
    .n_variants = 18,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_filled,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 1,
    .access.shape = 1,
    .counts = true,
    .onnx = { "ConstantOfShape", 25, NULL },
};

/* ---- range ---- */

typedef struct RangeAttr {
    int64_t stash_type; /* ONNX's number of the type that narrow floats are computed in */
} RangeAttr;

static const AttrSpec range_attrs[] = { ATTR(RangeAttr, stash_type, INT, 1), ATTR_LAST };

/* How many steps lead from start to limit, without leaving 64 bits. */
static bool count_ints(int64_t start, int64_t limit, int64_t delta, uint64_t *n)
{
    if (delta == 0)
        return false;
    const uint64_t stride = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    const bool some = delta > 0 ? start < limit : start > limit;
    const uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    *n = some ? (span - 1) / stride + 1 : 0;
    return true;
}

static bool count_steps(Infer *q, int64_t *n)
{
    const double most = (double)q->ir->limits.elements;
    const Tensor *const v[] = { infer_known(q, 0), infer_known(q, 1), infer_known(q, 2) };
    uint64_t steps = 0;
    double d = 0;
    if (dtype_is_float(q->in[0]->dtype)) {
        d = ceil((tensor_get_f64(v[1], 0) - tensor_get_f64(v[0], 0)) / tensor_get_f64(v[2], 0));
        d = d < 0 ? 0 : d;
        if (!(fabs(tensor_get_f64(v[2], 0)) > 0) || !(d == d))
            return infer_fail(q, "steps by %g from %g to %g", tensor_get_f64(v[2], 0), tensor_get_f64(v[0], 0),
                              tensor_get_f64(v[1], 0)),
                   false;
    } else {
        if (!count_ints(tensor_get_i64(v[0], 0), tensor_get_i64(v[1], 0), tensor_get_i64(v[2], 0), &steps))
            return infer_fail(q, "steps by 0"), false;
        d = (double)steps;
    }
    if (d > most)
        return infer_fail(q, "has %g elements, more than the limit elements (%" PRId64 ")", d, q->ir->limits.elements),
               false;
    *n = (int64_t)d;
    return true;
}

static const Type *infer_range(Infer *q)
{
    const int64_t stash = ((const RangeAttr *)q->attr)->stash_type;
    int64_t n = DIM_UNKNOWN;
    for (int i = 0; i < 3; i++) {
        const Type *t = infer_tensor(q, i);
        if (!t || !infer_same_dtype(q, 0, i))
            return NULL;
        if (!dims_fit(type_elements(t), 1))
            return infer_fail(q, "operand %d must be one number, not %s", i, type_text(q->scratch, t));
    }
    if (!dtype_is_float(q->in[0]->dtype) && !dtype_is_integer(q->in[0]->dtype))
        return infer_fail(q, "counts in %s", dtype_name(q->in[0]->dtype));
    if (stash != dtype_onnx(F32) && stash != dtype_onnx(F64))
        return infer_fail(q, "stash_type %" PRId64 " is neither f32 (%d) nor f64 (%d)", stash, dtype_onnx(F32),
                          dtype_onnx(F64));
    if (infer_known(q, 0) && infer_known(q, 1) && infer_known(q, 2) && !count_steps(q, &n))
        return NULL;
    return infer_dims(q, q->in[0]->dtype, 1, &n);
}

static Status eval_range(Eval *e)
{
    const int64_t n = tensor_elements(eval_out(e, 0));
    const DType dtype = eval_type(e, 0)->dtype;
    const int64_t stash = ((const RangeAttr *)e->attr)->stash_type;
    if (!dtype_is_float(dtype)) {
        const uint64_t start = (uint64_t)eval_int(e, 0, 0), delta = (uint64_t)eval_int(e, 2, 0);
        for (int64_t i = 0; i < n; i++)
            tensor_set_i64(e->out[0], i, (int64_t)(start + (uint64_t)i * delta));
    } else if (dtype == F64 || (dtype != F32 && stash == dtype_onnx(F64))) {
        f64 *y = eval_out_f64(e, 0);
        const f64 start = eval_float(e, 0, 0), delta = eval_float(e, 2, 0);
        for (int64_t i = 0; i < n; i++)
            y[i] = start + (f64)i * delta;
    } else {
        f32 *y = eval_out_f32(e, 0);
        const f32 start = (f32)eval_float(e, 0, 0), delta = (f32)eval_float(e, 2, 0);
        for (int64_t i = 0; i < n; i++)
            y[i] = start + (f32)i * delta;
    }
    return OK;
}

static Node *sample_range(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, I64, F16, I32, F64, I16, BF16 };
    const DType dtype = types[variant % (int)COUNT(types)];
    double delta = (double)rng_range(rng, 1, 4), limit = (double)rng_range(rng, -9, 9);
    if (dtype_is_float(dtype))
        delta /= 4;
    if (variant % 3 == 0)
        delta = -delta;
    Node *start = build_scalar(b, dtype, (double)rng_range(rng, -9, 9));
    return CALL(b, range, start, build_scalar(b, dtype, limit), build_scalar(b, dtype, delta));
}

const OpDef op_range = {
    .name = "range",
    .min_in = 3,
    .max_in = 3,
    .attrs = range_attrs,
    .infer = infer_range,
    .eval = eval_range,
    .sample = sample_range,
    .n_variants = 28,
    .access.kind = ACCESS_ROW,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .counts = true,
    .onnx = { "Range", 27, NULL },
};

/* ---- eye_like ---- */

typedef struct EyeAttr {
    int dtype;
    int64_t k;
} EyeAttr;

static const AttrSpec eye_like_attrs[] = { ATTR_OPTIONAL(EyeAttr, dtype, DTYPE), ATTR(EyeAttr, k, INT, 0), ATTR_LAST };

static const Type *infer_eye_like(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    DType dtype = x->dtype;
    attr_dtype(((const EyeAttr *)q->attr)->dtype, &dtype);
    if (x->rank >= 0 && x->rank != 2)
        return infer_fail(q, "needs a matrix, not %s", type_text(q->scratch, x));
    return x->rank < 0 ? infer_unknown_dims(q, dtype, 2) : type_tensor(q->types, dtype, 2, x->dims);
}

static Status eval_eye_like(Eval *e)
{
    Tensor *y = eval_out(e, 0);
    const int64_t rows = y->type->dims[0], columns = y->type->dims[1], k = ((const EyeAttr *)e->attr)->k;
    if (y->bytes)
        memset(y->data, 0, y->bytes);
    if (k <= -rows || k >= columns)
        return OK;
    for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < columns; i++)
        tensor_set_i64(y, i * columns + i + k, 1);
    return OK;
}

static Node *sample_eye_like(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, I32, BOOL, F16, F64, U8 };
    int64_t dims[2];
    sample_dims(rng, 2, 5, dims);
    const EyeAttr at = { variant % 2 ? (int)types[variant % (int)COUNT(types)] + 1 : 0, rng_range(rng, -6, 6) };
    return CALL_ATTR(b, eye_like, at, sample_tensor(b, rng, types[(variant + 1) % (int)COUNT(types)], 2, dims, 0, 1));
}

const OpDef op_eye_like = {
    .name = "eye_like",
    .min_in = 1,
    .max_in = 1,
    .attrs = eye_like_attrs,
    .infer = infer_eye_like,
    .eval = eval_eye_like,
    .sample = sample_eye_like,
    .n_variants = 12,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_filled,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.type_only = 1,
    .onnx = { "EyeLike", 22, NULL },
};

/* ---- one_hot ---- */

static const AttrSpec one_hot_attrs[] = { ATTR(OneHotAttr, axis, INT, -1), ATTR_LAST };

/* A number as an integer, as Cast would: false for what has none. */
static bool whole(const Tensor *t, int64_t i, int64_t *v)
{
    if (dtype_is_float(t->type->dtype)) {
        const double d = tensor_get_f64(t, i);
        if (!(fabs(d) < 0x1p62))
            return false;
        *v = (int64_t)d;
        return true;
    }
    *v = tensor_get_i64(t, i);
    return true;
}

static const Type *infer_one_hot(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *depth = infer_tensor(q, 1), *values = infer_tensor(q, 2);
    int64_t dims[MAX_RANK + 1], n = DIM_UNKNOWN;
    int axis;
    if (!x || !depth || !values)
        return NULL;
    if (!dims_fit(type_elements(depth), 1))
        return infer_fail(q, "depth must be one number, not %s", type_text(q->scratch, depth));
    if (!dims_fit(type_elements(values), 2))
        return infer_fail(q, "values must be two elements, not %s", type_text(q->scratch, values));
    if (infer_known(q, 1) && (!whole(infer_known(q, 1), 0, &n) || n < 0))
        return infer_fail(q, "depth is %g", tensor_get_f64(infer_known(q, 1), 0));
    if (x->rank < 0)
        return type_unranked(q->types, values->dtype);
    if (!infer_axis(q, ((const OneHotAttr *)q->attr)->axis, x->rank + 1, &axis))
        return NULL;
    for (int i = 0; i <= x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : i == axis ? n : x->dims[i - 1];
    return infer_dims(q, values->dtype, x->rank + 1, dims);
}

static Status eval_one_hot(Eval *e)
{
    const Type *t = eval_type(e, 0);
    const int axis = axis_wrap(((const OneHotAttr *)e->attr)->axis, t->rank);
    const int64_t depth = t->dims[axis], inner = move_count(t->dims, axis + 1, t->rank);
    const Raw values = raw_in(e, 2), y = raw_open(e, eval_out(e, 0));
    const int64_t n = eval_elements(e, 0);
    raw_fill(y.data, values.data, tensor_elements(e->out[0]), y.size);
    for (int64_t i = 0; i < n; i++) {
        int64_t hot;
        if (!whole(e->in[0], i, &hot) || !index_wrap(&hot, depth))
            continue;
        const int64_t at = (i / inner * depth + hot) * inner + i % inner;
        memcpy(y.data + (size_t)at * y.size, values.data + values.size, y.size);
    }
    raw_close(e->out[0], y);
    return OK;
}

/* Each of the two values was copied to many places. */
static void adjoint_one_hot(Build *b, const Site *s, Node **dx)
{
    if (!s->want[2])
        return;
    const DType t = s->in[2]->type->dtype;
    Node *sums[2], *zero = build_scalar(b, t, 0);
    Tensor *choice = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, BOOL, 2));
    for (int i = 0; i < 2; i++)
        tensor_set_i64(choice, i, i);
    Node *hot = build_node(b, OP_one_hot, s->attr, 3, (Node *[]){ s->in[0], s->in[1], build_const(b, choice) });
    for (int i = 0; i < 2; i++) {
        Node *part = i ? CALL(b, where, hot, s->dout[0], zero) : CALL(b, where, hot, zero, s->dout[0]);
        sums[i] = make_reshape(b, make_reduce_all(b, OP_reduce_sum, part), 1, (const int64_t[]){ 1 });
    }
    dx[2] = make_concat(b, 0, 2, sums);
}

static Node *sample_one_hot(Build *b, Rng *rng, int variant)
{
    static const DType indices[] = { I64, I32, F32, U8, I64, F64 };
    static const DType depths[] = { I64, F32, I32, U8 };
    int64_t dims[MAX_RANK];
    const int64_t two = 2, one = 1;
    const int rank = variant % 5;
    const DType dtype = indices[variant % (int)COUNT(indices)];
    sample_dims(rng, rank, 4, dims);
    const OneHotAttr at = { rng_range(rng, -rank - 1, rank) };
    Node *x = sample_tensor(b, rng, dtype, rank, dims, dtype == U8 ? 0 : -6, 6);
    Node *depth = sample_tensor(b, rng, depths[variant % (int)COUNT(depths)], variant % 2, &one, 4, 4);
    return CALL_ATTR(b, one_hot, at, x, depth, sample_tensor(b, rng, sample_dtype(variant), 1, &two, -2, 3));
}

/* An index beside each line of the result, and one of the two values, whichever it asks for. */
static bool iterate_one_hot(const Node *n, Arena *arena, Iteration *to)
{
    if (!iterate_filled(n, arena, to))
        return false;
    const int axis = axis_wrap(((const OneHotAttr *)n->attr)->axis, to->rank);
    Access *x = reach_affine(to, arena, &to->in[0], to->rank - 1);
    for (int d = 0; d < to->rank - 1; d++)
        reach_along(to, x, d, d < axis ? d : d + 1, 1);
    to->in[2] = (Access){ .reach = REACH_WHOLE, .piece_dim = NO_PIECE };
    return true;
}

const OpDef op_one_hot = {
    .name = "one_hot",
    .min_in = 3,
    .max_in = 3,
    .attrs = one_hot_attrs,
    .infer = infer_one_hot,
    .eval = eval_one_hot,
    .access.kernels = kernels_one_hot,
    .adjoint = adjoint_one_hot,
    .differentiable = 4,
    .sample = sample_one_hot,
    .n_variants = 24,
    .access.kind = ACCESS_ROW,
    .access.iterate = iterate_one_hot,
    .amp = { AMP_P, AMP_P, 1u << 0 | 1u << 1, REASON_INDEX, NULL },
    .quant = { .in = { QUANT_NEVER, QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .access.steer = 1 | 2,
    .onnx = { "OneHot", 28, NULL },
};
