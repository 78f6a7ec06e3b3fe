/* shape and size: what a tensor's type says, as values. */
#include "ops/card/attrs.h"
#include "ops/card/shapes.h"

#define ASKS                                                                                                           \
    .access.kind = ACCESS_OPAQUE, .access.opaque = "extents, not elements, are what it gives",                         \
    .amp = { AMP_N, AMP_N, 0, REASON_NONE, NULL }, .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } }

static const AttrSpec shape_attrs[] = {
    ATTR(ShapeAttr, start, INT, 0),
    ATTR(ShapeAttr, end, INT, MAX_RANK), /* what is beyond the rank is clamped to it */
    ATTR_LAST,
};

static int clamped(int64_t at, int rank)
{
    if (at < 0)
        at = at < -rank ? 0 : at + rank;
    return (int)(at > rank ? rank : at);
}

static const Type *infer_shape(Infer *q)
{
    const ShapeAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    if (x->rank < 0)
        return type_vector(q->types, I64, DIM_UNKNOWN);
    const int start = clamped(at->start, x->rank), end = clamped(at->end, x->rank);
    return type_vector(q->types, I64, end > start ? end - start : 0);
}

static Status eval_shape(Eval *e)
{
    const Type *x = e->in[0]->type;
    Tensor *y = eval_out(e, 0);
    const int start = clamped(((const ShapeAttr *)e->attr)->start, x->rank);
    const int64_t n = tensor_elements(y);
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)y->data)[i] = x->dims[start + i];
    return OK;
}

static Node *sample_shape(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    sample_dims(rng, rank, 4, dims);
    const ShapeAttr at = { rng_range(rng, -7, 7), variant % 2 ? rng_range(rng, -7, 7) : MAX_RANK };
    return CALL_ATTR(b, shape, at, sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3));
}

/* The dimensions that are asked for are known; those beside them need not be. */
static bool told_shape(const Node *n)
{
    const Type *x = in(n, 0)->type;
    const ShapeAttr *at = n->attr;
    if (x->kind != TYPE_TENSOR || x->rank < 0)
        return false;
    const int start = clamped(at->start, x->rank), end = clamped(at->end, x->rank);
    for (int i = start; i < end; i++)
        if (x->dims[i] < 0)
            return false;
    return true;
}

const OpDef op_shape = {
    .name = "shape",
    .min_in = 1,
    .max_in = 1,
    .attrs = shape_attrs,
    .infer = infer_shape,
    .eval = eval_shape,
    .sample = sample_shape,
    .n_variants = 24,
    ASKS,
    .access.type_only = 1,
    .counts = true,
    .told = told_shape,
    .onnx = { "Shape", 25, NULL },
};

static const Type *infer_size(Infer *q)
{
    return infer_tensor(q, 0) ? type_scalar(q->types, I64) : NULL;
}

static Status eval_size(Eval *e)
{
    tensor_set_i64(eval_out(e, 0), 0, eval_elements(e, 0));
    return OK;
}

static Node *sample_size(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    sample_dims(rng, rank, 4, dims);
    return CALL(b, size, sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3));
}

static bool told_size(const Node *n)
{
    return in(n, 0)->type->kind == TYPE_TENSOR && type_known(in(n, 0)->type);
}

const OpDef op_size = {
    .name = "size",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_size,
    .eval = eval_size,
    .sample = sample_size,
    .n_variants = 12,
    ASKS,
    .access.type_only = 1,
    .counts = true,
    .told = told_size,
    .onnx = { "Size", 25, NULL },
};

#undef ASKS
