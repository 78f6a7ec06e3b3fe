/* max_unpool: every element goes where max_pool found it; the rest is zero. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/window/window.h"

static const AttrSpec max_unpool_attrs[] = {
    WINDOW_REQUIRED_INTS(PoolAttr, kernel_shape),
    WINDOW_INTS(PoolAttr, pads),
    WINDOW_INTS(PoolAttr, strides),
    ATTR_LAST,
};

/* The spatial extents that were pooled; null, or what is wrong. */
static const char *unpooled_extents(Window *w, Arena *arena, const PoolAttr *at, const Type *x)
{
    const ConvTransposeAttr back = { .window = at->window };
    return window_place_transposed(w, arena, &back, x->rank - 2, x->dims + 2, NULL);
}

/* What output_shape says: false after a complaint. */
static bool infer_output_shape(Infer *q, const Type *x, int64_t *dims)
{
    int64_t n;
    const Type *t = infer_tensor(q, 2);
    if (!t)
        return false;
    if (!dtype_is_integer(t->dtype) || t->rank > 1 || (t->rank == 1 && t->dims[0] >= 0 && t->dims[0] != x->rank)) {
        infer_fail(q, "output_shape is %s, wanted are %d integers", type_text(q->scratch, t), x->rank);
        return false;
    }
    const int64_t *v = infer_ints(q, 2, &n);
    for (int i = 0; i < x->rank; i++) {
        if (v && ((v[i] < dims[i] && dims[i] >= 0) || v[i] < 0 || v[i] > q->ir->limits.dim)) {
            infer_fail(q, "output_shape has %" PRId64 " where %" PRId64 " elements were pooled", v[i], dims[i]);
            return false;
        }
        dims[i] = v ? v[i] : DIM_UNKNOWN;
    }
    return true;
}

static const Type *infer_max_unpool(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *where = x ? infer_tensor(q, 1) : NULL;
    if (!where)
        return NULL;
    if (!dtype_is_float(x->dtype) && !dtype_is_integer(x->dtype))
        return infer_fail(q, "needs numbers, got %s", type_text(q->scratch, x));
    if (where->dtype != I64 || !type_agrees(where, type_with_dtype(q->types, x, I64)))
        return infer_fail(q, "indices are %s for %s", type_text(q->scratch, where), type_text(q->scratch, x));
    if (x->rank < 0)
        return x;
    if (x->rank < 3)
        return infer_fail(q, "needs at least 3 dimensions, got %d", x->rank);
    int64_t dims[MAX_RANK];
    Window w;
    const char *wrong = unpooled_extents(&w, q->scratch, q->attr, x);
    if (wrong)
        return infer_fail(q, "%s", wrong);
    memcpy(dims, x->dims, 2 * sizeof *dims);
    memcpy(dims + 2, w.out, (size_t)w.rank * sizeof *dims);
    if (infer_has(q, 2) && !infer_output_shape(q, x, dims))
        return NULL;
    return infer_dims(q, x->dtype, x->rank, dims);
}

/* Indices count in the extents that follow from the attributes; the result may be larger than those. */
static Status eval_max_unpool(Eval *e)
{
    const Type *x = e->in[0]->type, *y = e->type;
    const size_t size = (size_t)dtype_bits(x->dtype) / 8;
    const int64_t n = eval_elements(e, 0), *where = eval_i64(e, 1);
    int64_t dims[MAX_RANK], at[MAX_RANK];
    Window w;
    if (dtype_bits(x->dtype) < 8)
        return eval_fail(e, "elements of %d bits are not unpooled", dtype_bits(x->dtype));
    BUG_IF(e->ir->memory, unpooled_extents(&w, e->scratch, e->attr, x));
    memcpy(dims, x->dims, 2 * sizeof *dims);
    memcpy(dims + 2, w.out, (size_t)w.rank * sizeof *dims);
    const int64_t most = window_product(x->rank, dims);
    const char *from = e->in[0]->data;
    Tensor *out = eval_out(e, 0);
    if (out->bytes)
        memset(out->data, 0, out->bytes);
    for (int64_t i = 0; i < n; i++) {
        if (where[i] < 0 || where[i] >= most)
            return eval_fail(e, "index %" PRId64 " at %" PRId64 " is outside [0, %" PRId64 ")", where[i], i, most);
        int64_t to = 0;
        position_of(x->rank, dims, where[i], at);
        for (int k = 0; k < x->rank; k++)
            to = to * y->dims[k] + at[k];
        memcpy((char *)out->data + (size_t)to * size, from + (size_t)i * size, size);
    }
    return OK;
}

/* Of two elements that go to one place the later one stays: the earlier reaches nothing. */
static void adjoint_max_unpool(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    Node *dy = s->dout[0];
    int64_t n = type_elements(x), most = 1;
    Window w;
    BUG_IF(b->graph->ir->memory, unpooled_extents(&w, b->graph->arena, s->attr, x));
    for (int i = 0; i < x->rank; i++) {
        const int64_t extent = i < 2 ? x->dims[i] : w.out[i - 2];
        most *= extent;
        if (extent != dy->type->dims[i])
            dy = make_slice(b, dy, i, 0, extent, 1);
    }
    Node *where = make_reshape(b, s->in[1], 1, &n), *order = make_count(b, 1, 0, n);
    Node *owner = CALL(b, scatter_elements, make_zeros(b, I64, 1, &most), where, order);
    Node *stays = CALL(b, equal, make_gather_elements(b, owner, where, 0), order);
    Node *back = make_gather_elements(b, make_reshape(b, dy, 1, &most), where, 0);
    dx[0] = make_reshape(b, CALL(b, where, stays, back, build_scalar(b, back->type->dtype, 0)), x->rank, x->dims);
}

static Node *sample_max_unpool(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], out[MAX_RANK], *kernel = NEWS(b->graph->arena, int64_t, MAX_SPATIAL), most = 1;
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    for (int i = 0; i < rank + 2; i++)
        out[i] = dims[i] = rng_range(rng, 1, 3);
    for (int i = 0; i < rank; i++) {
        kernel[i] = rng_range(rng, 1, 3);
        out[2 + i] = (dims[2 + i] - 1) * kernel[i] + kernel[i];
    }
    for (int i = 0; i < rank + 2; i++)
        most *= out[i];
    const PoolAttr at = { .window = { .kernel_shape = { rank, kernel }, .strides = { rank, kernel } } };
    Node *x = sample_tensor(b, rng, dtype, rank + 2, dims, -2, 2);
    Node *where = sample_tensor(b, rng, I64, rank + 2, dims, 0, (double)most - 1);
    if (variant % 2)
        return CALL_ATTR(b, max_unpool, at, x, where);
    out[rank + 1]++;
    return CALL_ATTR(b, max_unpool, at, x, where, build_i64s(b, rank + 2, out));
}

const OpDef op_max_unpool = {
    .name = "max_unpool",
    .min_in = 2,
    .max_in = 3,
    .attrs = max_unpool_attrs,
    .infer = infer_max_unpool,
    .eval = eval_max_unpool,
    .sample = sample_max_unpool,
    .n_variants = 24,
    .adjoint = adjoint_max_unpool,
    .differentiable = 1,
    .weight = 3,
    .access.kind = ACCESS_SCATTER,
    .access.refuses = true,
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true },
    .access.steer = 2 | 4,
    .onnx = { "MaxUnpool", 22, NULL },
};
