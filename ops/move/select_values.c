/* Elements picked by their values: compress, non_zero, unique. */
#include <string.h>

#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/order.h"

/* Whether each element differs from zero, in scratch. */
static const bool *truths(Eval *e, int operand)
{
    enum { BLOCK = 512 };
    const Tensor *t = e->in[operand];
    const int64_t n = tensor_elements(t);
    bool *truth = eval_scratch(e, (size_t)n, sizeof *truth);
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t k = n - at < BLOCK ? n - at : BLOCK;
        f64 floats[BLOCK];
        u64 ints[BLOCK];
        if (dtype_is_float(t->type->dtype))
            load_f64(floats, t, at, k);
        else
            load_u64(ints, t, at, k);
        for (int64_t i = 0; i < k; i++)
            truth[at + i] = dtype_is_float(t->type->dtype) ? floats[i] != 0 : ints[i] != 0;
    }
    return truth;
}

static int64_t *true_places(Eval *e, int operand, int64_t *count)
{
    const int64_t n = eval_elements(e, operand);
    const bool *truth = truths(e, operand);
    int64_t *places = eval_scratch(e, (size_t)n, sizeof *places);
    *count = 0;
    for (int64_t i = 0; i < n; i++)
        if (truth[i])
            places[(*count)++] = i;
    return places;
}

/* Takes the steps `places` along an axis of operand 0 (AXIS_NONE: of its elements in one row) into result 0. */
static void take(Eval *e, int64_t axis, int64_t n, const int64_t *places)
{
    const Type *x = e->in[0]->type;
    int64_t from[MAX_RANK], to[MAX_RANK];
    const int64_t *maps[MAX_RANK] = { NULL };
    const bool flat = axis == AXIS_NONE;
    const int rank = flat ? 1 : x->rank, k = flat ? 0 : axis_wrap(axis, rank);
    for (int i = 0; i < rank; i++)
        to[i] = from[i] = flat ? eval_elements(e, 0) : x->dims[i];
    to[k] = n;
    maps[k] = places;
    Tensor *y = eval_out_as(e, 0, type_tensor(&e->ir->types, x->dtype, rank, to));
    const Raw source = raw_in(e, 0), target = raw_open(e, y);
    move_mapped(source.size, rank, target.data, to, source.data, from, maps, NULL);
    raw_close(y, target);
}

/* ---- compress ---- */

static const AttrSpec compress_attrs[] = { ATTR(AxisAttr, axis, INT, AXIS_NONE), ATTR_LAST };

/* The number of slices that are kept, where the conditions are known. */
static int64_t kept(const Infer *q)
{
    const Tensor *t = infer_known(q, 1);
    int64_t n = 0;
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        n += tensor_get_i64(t, i) != 0;
    return t ? n : DIM_UNKNOWN;
}

static const Type *infer_compress(Infer *q)
{
    const int64_t given = ((const AxisAttr *)q->attr)->axis;
    const Type *x = infer_tensor(q, 0), *condition = infer_tensor(q, 1);
    int64_t dims[MAX_RANK];
    int axis;
    if (!x || !condition)
        return NULL;
    if (condition->dtype != BOOL || !dims_fit(condition->rank, 1))
        return infer_fail(q, "condition must be a list of bool, not %s", type_text(q->scratch, condition));
    if (given == AXIS_NONE)
        return type_vector(q->types, x->dtype, kept(q));
    if (x->rank < 0)
        return x;
    if (!infer_axis(q, given, x->rank, &axis))
        return NULL;
    if (x->dims[axis] >= 0 && condition->rank == 1 && condition->dims[0] > x->dims[axis])
        return infer_fail(q, "has %" PRId64 " conditions for %" PRId64 " slices", condition->dims[0], x->dims[axis]);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? kept(q) : x->dims[i];
    return type_tensor(q->types, x->dtype, x->rank, dims);
}

static Status eval_compress(Eval *e)
{
    const int64_t axis = ((const AxisAttr *)e->attr)->axis;
    int64_t n;
    if (axis == AXIS_NONE && eval_elements(e, 1) > eval_elements(e, 0))
        return eval_fail(e, "has %" PRId64 " conditions for %" PRId64 " elements", eval_elements(e, 1),
                         eval_elements(e, 0));
    const int64_t *places = true_places(e, 1, &n);
    take(e, axis, n, places);
    return OK;
}

/* It gathers by the list of the places whose condition holds. */
static void adjoint_compress(Build *b, const Site *s, Node **dx)
{
    const int64_t axis = ((const AxisAttr *)s->attr)->axis, first = 0;
    const Type *x = s->in[0]->type;
    if (!s->want[0])
        return;
    Node *places = CALL(b, squeeze, CALL(b, non_zero, s->in[1]), build_i64s(b, 1, &first));
    if (axis != AXIS_NONE) {
        dx[0] = make_gather_back(b, x, places, axis_wrap(axis, x->rank), s->dout[0]);
        return;
    }
    const Type *flat = type_vector(&b->graph->ir->types, x->dtype, type_elements(x));
    dx[0] = make_reshape(b, make_gather_back(b, flat, places, 0, s->dout[0]), x->rank, x->dims);
}

static Node *sample_compress(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 5, axis = (int)rng_below(rng, rank);
    AxisAttr at = { variant % 3 == 0 ? AXIS_NONE : variant % 3 == 1 ? axis : axis - rank };
    sample_dims(rng, rank, 4, dims);
    const int64_t extent = at.axis == AXIS_NONE ? move_count(dims, 0, rank) : dims[axis];
    const int64_t n = rng_below(rng, 2) ? extent : rng_range(rng, 0, extent);
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    return CALL_ATTR(b, compress, at, x, sample_tensor(b, rng, BOOL, 1, &n, 0, 1));
}

const OpDef op_compress = {
    .name = "compress",
    .min_in = 2,
    .max_in = 2,
    .attrs = compress_attrs,
    .infer = infer_compress,
    .eval = eval_compress,
    .adjoint = adjoint_compress,
    .sample = sample_compress,
    .n_variants = 24,
    .differentiable = 1,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "how many elements it gives is known when it has run",
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 2,
    .onnx = { "Compress", 28, NULL },
};

/* ---- non_zero ---- */

static const Type *infer_non_zero(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t dims[] = { DIM_UNKNOWN, DIM_UNKNOWN };
    if (!x)
        return NULL;
    if (x->rank >= 0)
        dims[0] = x->rank;
    return type_tensor(q->types, I64, 2, dims);
}

static Status eval_non_zero(Eval *e)
{
    const Type *x = e->in[0]->type;
    int64_t n, strides[MAX_RANK];
    const int64_t *places = true_places(e, 0, &n);
    const int64_t dims[] = { x->rank, n };
    int64_t *y = eval_out_as(e, 0, type_tensor(&e->ir->types, I64, 2, dims))->data;
    move_strides(x->rank, x->dims, strides);
    for (int k = 0; k < x->rank; k++)
        for (int64_t i = 0; i < n; i++)
            y[k * n + i] = places[i] / strides[k] % x->dims[k];
    return OK;
}

static Node *sample_non_zero(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const DType dtype = sample_dtype(variant);
    sample_dims(rng, variant % 6, 4, dims);
    Node *x = sample_tensor(b, rng, dtype_is_float(dtype) ? I32 : dtype, variant % 6, dims, -1, 1);
    return CALL(b, non_zero, make_cast(b, x, dtype));
}

const OpDef op_non_zero = {
    .name = "non_zero",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_non_zero,
    .eval = eval_non_zero,
    .sample = sample_non_zero,
    .n_variants = 24,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "how many elements it gives is known when it has run",
    .amp = { AMP_FI, AMP_FI, 0, REASON_INDEX, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "NonZero", 13, NULL },
};

/* ---- unique ---- */

typedef struct UniqueAttr {
    int64_t axis;
    bool sorted;
} UniqueAttr;

static const AttrSpec unique_attrs[] = {
    ATTR(UniqueAttr, axis, INT, AXIS_NONE),
    ATTR(UniqueAttr, sorted, BOOL, true),
    ATTR_LAST,
};

static const Type *infer_unique(Infer *q)
{
    const int64_t given = ((const UniqueAttr *)q->attr)->axis;
    const Type *x = infer_tensor(q, 0);
    int64_t dims[MAX_RANK];
    int axis;
    if (!x)
        return NULL;
    const Type *list = type_vector(q->types, I64, DIM_UNKNOWN);
    const Type *y = given == AXIS_NONE ? type_vector(q->types, x->dtype, DIM_UNKNOWN) : x;
    if (given != AXIS_NONE && x->rank >= 0) {
        if (!infer_axis(q, given, x->rank, &axis))
            return NULL;
        for (int i = 0; i < x->rank; i++)
            dims[i] = i == axis ? DIM_UNKNOWN : x->dims[i];
        y = type_tensor(q->types, x->dtype, x->rank, dims);
    }
    return infer_results(q, 4, (const Type *[]){ y, list, list, list });
}

/* Equal slices: which come first, to which group each slice belongs, how many are in each. */
typedef struct Groups {
    int64_t n;
    int64_t *first, *of, *count;
} Groups;

/* The slices along the axis as rows of keys; those of the axis lie `inner` keys apart, so they are put together. */
static Rows slices(Eval *e, int64_t given, int64_t *n)
{
    const Type *x = e->in[0]->type;
    const uint64_t *keys = order_keys(e, e->in[0]);
    if (given == AXIS_NONE) {
        *n = eval_elements(e, 0);
        return (Rows){ keys, 1, 1, 1 };
    }
    const int axis = axis_wrap(given, x->rank);
    const int64_t outer = move_count(x->dims, 0, axis), inner = move_count(x->dims, axis + 1, x->rank);
    *n = x->dims[axis];
    uint64_t *rows = eval_scratch(e, (size_t)eval_elements(e, 0), sizeof *rows);
    Move m = { .size = sizeof *rows };
    move_axis(&m, *n, outer * inner, inner);
    move_axis(&m, outer, inner, *n * inner);
    move_axis(&m, inner, 1, 1);
    move_run(&m, rows, keys);
    return (Rows){ rows, outer * inner, outer * inner, 1 };
}

static Groups group(Eval *e, const Rows *rows, int64_t n)
{
    const int64_t *order = order_sort(e, rows, n);
    Groups g = { 0, eval_scratch(e, (size_t)n, sizeof *g.first), eval_scratch(e, (size_t)n, sizeof *g.of),
                 eval_scratch(e, (size_t)n, sizeof *g.count) };
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || order_compare(rows, order[i - 1], order[i]) != 0)
            g.first[g.n++] = order[i]; /* the sort is stable: the lowest index of its group */
        g.of[order[i]] = g.n - 1;
        g.count[g.n - 1]++;
    }
    return g;
}

/* Renumbers the groups by their first appearance. */
static Groups by_appearance(Eval *e, const Groups *g, int64_t n)
{
    Groups h = { 0, eval_scratch(e, (size_t)g->n, sizeof *h.first), eval_scratch(e, (size_t)n, sizeof *h.of),
                 eval_scratch(e, (size_t)g->n, sizeof *h.count) };
    int64_t *now = eval_scratch(e, (size_t)g->n, sizeof *now);
    for (int64_t i = 0; i < n; i++) {
        const int64_t old = g->of[i];
        if (g->first[old] == i) {
            now[old] = h.n;
            h.first[h.n] = i;
            h.count[h.n++] = g->count[old];
        }
        h.of[i] = now[old];
    }
    return h;
}

static Status eval_unique(Eval *e)
{
    const UniqueAttr *at = e->attr;
    int64_t n;
    const Rows rows = slices(e, at->axis, &n);
    Groups g = group(e, &rows, n);
    if (!at->sorted)
        g = by_appearance(e, &g, n);
    take(e, at->axis, g.n, g.first);
    const int64_t *lists[] = { NULL, g.first, g.of, g.count };
    for (int i = 1; i < e->n_out; i++) {
        const int64_t length = i == 2 ? n : g.n;
        Tensor *y = eval_out_as(e, i, type_vector(&e->ir->types, I64, length));
        if (length)
            memcpy(y->data, lists[i], (size_t)length * sizeof *lists[i]);
    }
    return OK;
}

static Node *sample_unique(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = variant % 3 ? 1 + variant % 4 : variant % 5;
    sample_dims(rng, rank, 4, dims);
    const UniqueAttr at = { variant % 3 ? rng_range(rng, -rank, rank - 1) : AXIS_NONE, variant % 2 };
    Node *x = build_cast(b, sample_tensor(b, rng, I32, rank, dims, 0, 2), variant % 4 ? F32 : I64);
    return build_node_n(b, OP_unique, &at, 1, &x, 1 + variant % 4);
}

const OpDef op_unique = {
    .name = "unique",
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 4,
    .attrs = unique_attrs,
    .infer = infer_unique,
    .eval = eval_unique,
    .sample = sample_unique,
    .n_variants = 36,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "how many elements it gives is known when it has run",
    .amp = { AMP_FI, AMP_FI, 0, REASON_INDEX, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "Unique", 28, NULL },
};
