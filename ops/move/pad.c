/* pad and center_crop_pad: a frame around a tensor, or less of it. */
#include <string.h>

#include "base/checked.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"
#include "ops/move/move_kernels.h"
#include "ops/move/pad.h"

static const char *const pad_modes[] = { "constant", "reflect", "edge", "wrap", NULL };

static const AttrSpec pad_attrs[] = { ATTR_CHOICE(PadAttr, mode, pad_modes, PAD_CONSTANT), ATTR_LAST };

/* Where element i of an axis of length `n` comes from when `before` elements stand in front of it and `after` behind;
 * negative ones are cut off first.  -1: from nowhere. */
static int64_t source(int mode, int64_t i, int64_t n, int64_t before, int64_t after)
{
    const int64_t low = before < 0 ? -before : 0, high = after < 0 ? n + after : n, left = high - low;
    int64_t at = i - (before < 0 ? 0 : before);
    if (mode == PAD_CONSTANT)
        return at >= 0 && at < left ? low + at : -1;
    if (mode == PAD_EDGE)
        return low + (at < 0 ? 0 : at >= left ? left - 1 : at);
    const int64_t period = mode == PAD_WRAP ? left : left > 1 ? 2 * (left - 1) : 1;
    at = (at % period + period) % period;
    return low + (at < left ? at : period - at);
}

/* Length of a padded axis; false when nothing sensible comes out. */
static bool padded(Infer *q, int mode, int axis, int64_t n, int64_t before, int64_t after, int64_t *out)
{
    const int64_t most = q->ir->limits.dim;
    int64_t sum, left = n;
    if (before < -most || before > most || after < -most || after > most)
        return infer_fail(q, "pads axis %d by %" PRId64 " and %" PRId64, axis, before, after), false;
    if (n < 0) {
        *out = DIM_UNKNOWN;
        return true;
    }
    if (!checked_add_i64(n, before, &sum) || !checked_add_i64(sum, after, &sum) || sum < 0)
        return infer_fail(q, "pads axis %d of length %" PRId64 " by %" PRId64 " and %" PRId64, axis, n, before, after),
               false;
    left += (before < 0 ? before : 0) + (after < 0 ? after : 0);
    if (sum > 0 && left <= 0 && mode != PAD_CONSTANT)
        return infer_fail(q, "has nothing to repeat along axis %d of length %" PRId64, axis, n), false;
    *out = sum;
    return true;
}

static bool pad_axes(Infer *q, int rank, Axes *axes, bool *known)
{
    int64_t n, all[MAX_RANK];
    *known = true;
    for (int i = 0; i < MAX_RANK; i++)
        all[i] = i;
    if (!infer_has(q, 3))
        return infer_axes(q, all, rank, rank, axes);
    if (!infer_list(q, 3, &n))
        return false;
    const int64_t *v = infer_ints(q, 3, &n);
    *known = v != NULL;
    return !v || infer_axes(q, v, n, rank, axes);
}

static bool pad_value(Infer *q, const Type *x)
{
    if (!infer_has(q, 2))
        return true;
    const Type *v = infer_tensor(q, 2);
    if (!v)
        return false;
    if (!dims_fit(type_elements(v), 1))
        return infer_fail(q, "constant_value must be one element, not %s", type_text(q->scratch, v)), false;
    if (dtype_class(v->dtype) != dtype_class(x->dtype))
        return infer_fail(q, "constant_value is %s for a tensor of %s", dtype_name(v->dtype), dtype_name(x->dtype)),
               false;
    return true;
}

static const Type *infer_pad(Infer *q)
{
    const int mode = ((const PadAttr *)q->attr)->mode;
    const Type *x = infer_tensor(q, 0);
    int64_t n, dims[MAX_RANK];
    bool known;
    Axes axes;
    if (!x || !infer_list(q, 1, &n) || !pad_value(q, x))
        return NULL;
    if (x->rank < 0)
        return x;
    if (!pad_axes(q, x->rank, &axes, &known))
        return NULL;
    const int64_t *v = infer_ints(q, 1, &n);
    if (known && n >= 0 && n != 2 * axes.n)
        return infer_fail(q, "lists %" PRId64 " pads for %d axes", n, axes.n);
    if (!known)
        return infer_unknown_dims(q, x->dtype, x->rank);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    for (int i = 0; i < axes.n; i++) {
        const int axis = axes.v[i];
        if (!v)
            dims[axis] = DIM_UNKNOWN;
        else if (!padded(q, mode, axis, x->dims[axis], v[i], v[axes.n + i], &dims[axis]))
            return NULL;
    }
    return infer_dims(q, x->dtype, x->rank, dims);
}

/* Pads every axis that changes by the map its mode gives. */
static void pad_by(Eval *e, int mode, const int64_t *before, const int64_t *after, const void *fill)
{
    const Type *x = e->in[0]->type, *y = eval_type(e, 0);
    const int64_t *maps[MAX_RANK] = { NULL };
    const Raw from = raw_in(e, 0), to = raw_open(e, eval_out(e, 0));
    for (int k = 0; k < x->rank; k++) {
        if (!before[k] && !after[k])
            continue;
        int64_t *map = eval_scratch(e, (size_t)y->dims[k], sizeof *map);
        for (int64_t i = 0; i < y->dims[k]; i++)
            map[i] = source(mode, i, x->dims[k], before[k], after[k]);
        maps[k] = map;
    }
    move_mapped(from.size, x->rank, to.data, y->dims, from.data, x->dims, maps, fill);
    raw_close(e->out[0], to);
}

/* The one element of constant_value as an element of the data. */
static const void *fill_element(Eval *e)
{
    const DType dtype = e->in[0]->type->dtype;
    Tensor *t = tensor_new(e->scratch, type_scalar(&e->ir->types, dtype));
    if (eval_has(e, 2) && e->in[2]->type->dtype == dtype)
        memcpy(t->data, e->in[2]->data, t->bytes);
    else if (eval_has(e, 2) && dtype_is_float(dtype))
        tensor_set_f64(t, 0, eval_float(e, 2, 0));
    else if (eval_has(e, 2))
        tensor_set_i64(t, 0, eval_int(e, 2, 0));
    return raw_of(e, t).data;
}

void pad_frame(int rank, int64_t n, const int64_t *pads, const int64_t *axes, int64_t *before, int64_t *after)
{
    memset(before, 0, (size_t)rank * sizeof *before);
    memset(after, 0, (size_t)rank * sizeof *after);
    for (int64_t i = 0; i < n; i++) {
        const int axis = axis_wrap(axes ? axes[i] : i, rank);
        before[axis] = pads[i];
        after[axis] = pads[n + i];
    }
}

static Status eval_pad(Eval *e)
{
    const int rank = e->in[0]->type->rank;
    int64_t n, before[MAX_RANK], after[MAX_RANK];
    const int64_t *pads = eval_ints(e, 1, &n), *axes = eval_has(e, 3) ? eval_ints(e, 3, &n) : NULL;
    pad_frame(rank, axes ? n : rank, pads, axes, before, after);
    pad_by(e, ((const PadAttr *)e->attr)->mode, before, after, fill_element(e));
    return OK;
}

static Node *sample_pad(Build *b, Rng *rng, int variant)
{
    const PadAttr at = { variant % 4 };
    const DType dtype = sample_dtype(variant / 2);
    int64_t dims[MAX_RANK], pads[2 * MAX_RANK], order[MAX_RANK];
    const int rank = 1 + variant % 5, n = variant % 3 ? rank : 1 + (int)rng_below(rng, rank);
    at.mode == PAD_CONSTANT ? sample_dims(rng, rank, 4, dims) : sample_full_dims(rng, rank, 4, dims);
    sample_order(rng, rank, order);
    for (int i = 0; i < n; i++) {
        const int64_t dim = dims[variant % 3 ? i : order[i]];
        pads[i] = rng_below(rng, 4) ? rng_range(rng, 0, 3) : -(dim / 2);
        pads[n + i] = rng_below(rng, 4) ? rng_range(rng, 0, 5) : -((dim - 1 > 0 ? dim - 1 : 0) / 2);
        order[i] -= rng_below(rng, 2) ? rank : 0;
    }
    Node *ins[] = {
        sample_tensor(b, rng, dtype, rank, dims, -3, 3),
        build_i64s(b, 2 * n, pads),
        at.mode == PAD_CONSTANT && variant % 8 ? sample_tensor(b, rng, dtype, 0, NULL, 1, 1) : NULL,
        variant % 3 ? NULL : build_i64s(b, n, order),
    };
    return build_node(b, OP_pad, &at, ins[3] ? 4 : ins[2] ? 3 : 2, ins);
}

const OpDef op_pad = {
    .name = "pad",
    .min_in = 2,
    .max_in = 4,
    .attrs = pad_attrs,
    .infer = infer_pad,
    .eval = eval_pad,
    .access.kernels = kernels_pad,
    .adjoint = adjoint_pad,
    .sample = sample_pad,
    .n_variants = 60,
    .differentiable = 1u << 0 | 1u << 2,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_pad,
    .access.alias = { { 0, 0, ALIAS_INTO } },
    .amp = { AMP_P, AMP_P, 1u << 2, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true },
    .access.steer = 2 | 8,
    .onnx = { "Pad", 25, NULL },
};

/* ---- center_crop_pad ---- */

typedef struct CenterAttr {
    Ints axes;
} CenterAttr;

static const AttrSpec center_attrs[] = { ATTR_OPTIONAL(CenterAttr, axes, INTS), ATTR_LAST };

static const Type *infer_center_crop_pad(Infer *q)
{
    const Ints given = ((const CenterAttr *)q->attr)->axes;
    const Type *x = infer_tensor(q, 0);
    int64_t n, dims[MAX_RANK];
    Axes axes = { 0 };
    if (!x || !infer_list(q, 1, &n))
        return NULL;
    if (x->rank < 0)
        return x;
    if (given.v && !infer_axes(q, given.v, given.n, x->rank, &axes))
        return NULL;
    for (int i = 0; !given.v && i < x->rank; i++)
        axes.v[axes.n++] = i;
    if (!dims_fit(n, axes.n))
        return infer_fail(q, "lists %" PRId64 " lengths for %d axes", n, axes.n);
    const int64_t *v = infer_ints(q, 1, &n);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    for (int i = 0; i < axes.n; i++) {
        dims[axes.v[i]] = v ? v[i] : DIM_UNKNOWN;
        if (v && v[i] < 0)
            return infer_fail(q, "asks for a dimension %" PRId64, v[i]);
    }
    return infer_dims(q, x->dtype, x->rank, dims);
}

void center_pads(const Type *x, const Type *y, int64_t *before, int64_t *after)
{
    for (int i = 0; i < x->rank; i++) {
        const int64_t more = y->dims[i] - x->dims[i];
        before[i] = more / 2; /* rounds to zero: the odd element is behind on both occasions */
        after[i] = more - before[i];
    }
}

static Status eval_center_crop_pad(Eval *e)
{
    static const char zero[16];
    const Type *x = e->in[0]->type, *y = eval_type(e, 0);
    int64_t before[MAX_RANK], after[MAX_RANK];
    center_pads(x, y, before, after);
    pad_by(e, PAD_CONSTANT, before, after, zero);
    return OK;
}

static Node *sample_center_crop_pad(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], want[MAX_RANK], order[MAX_RANK];
    const int rank = 1 + variant % 5, n = variant % 2 ? rank : (int)rng_below(rng, rank + 1);
    sample_dims(rng, rank, 5, dims);
    sample_dims(rng, rank, 7, want);
    sample_order(rng, rank, order);
    for (int i = 0; i < n; i++)
        order[i] -= rng_below(rng, 2) ? rank : 0;
    const CenterAttr at = { variant % 2 ? (Ints){ 0, NULL } : (Ints){ n, order } };
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    return CALL_ATTR(b, center_crop_pad, at, x, build_i64s(b, n, want));
}

const OpDef op_center_crop_pad = {
    .name = "center_crop_pad",
    .min_in = 2,
    .max_in = 2,
    .attrs = center_attrs,
    .infer = infer_center_crop_pad,
    .eval = eval_center_crop_pad,
    .adjoint = adjoint_center_crop_pad,
    .sample = sample_center_crop_pad,
    .n_variants = 30,
    .differentiable = 1,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_center_crop_pad,
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 2,
    .onnx = { "CenterCropPad", 18, NULL },
};
