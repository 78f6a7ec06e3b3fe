/* gather, gather_elements, gather_nd: elements fetched from where indices point. */
#include <string.h>

#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/index_positions.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"

static const AttrSpec axis_attrs[] = { ATTR(AxisAttr, axis, INT, 0), ATTR_LAST };

/* ---- gather ---- */

static const Type *infer_gather(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *indices = infer_integers(q, 1);
    int64_t dims[2 * MAX_RANK];
    int axis, rank = 0;
    if (!x || !indices)
        return NULL;
    if (x->rank < 0)
        return x;
    if (!infer_axis(q, ((const AxisAttr *)q->attr)->axis, x->rank, &axis))
        return NULL;
    if (indices->rank < 0)
        return type_unranked(q->types, x->dtype);
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return infer_dims(q, x->dtype, rank, dims);
}

static Status eval_gather(Eval *e)
{
    const Type *t = e->in[0]->type;
    const int axis = axis_wrap(((const AxisAttr *)e->attr)->axis, t->rank);
    const int64_t n = eval_elements(e, 1), outer = move_count(t->dims, 0, axis), extent = t->dims[axis],
                  inner = move_count(t->dims, axis + 1, t->rank);
    const int64_t *at = positions_indices(e, 1, extent);
    if (!at)
        return INVALID;
    const Raw x = raw_in(e, 0), y = raw_open(e, eval_out(e, 0));
    const int64_t to[] = { outer, n, inner }, from[] = { outer, extent, inner };
    const int64_t *maps[] = { NULL, at, NULL };
    move_mapped(x.size, 3, y.data, to, x.data, from, maps, NULL);
    raw_close(e->out[0], y);
    return OK;
}

/* Rows that were read several times get the sum of the gradients, in the order of the indices. */
static void adjoint_gather(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    if (s->want[0] && make_extents(b, s, 0))
        dx[0] = make_gather_back(b, x, s->in[1], axis_wrap(((const AxisAttr *)s->attr)->axis, x->rank), s->dout[0]);
}

static Node *sample_gather(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], shape[MAX_RANK];
    const int rank = 1 + variant % 4, axis = (int)rng_below(rng, rank), n = variant % 3;
    const AxisAttr at = { rng_below(rng, 2) ? axis : axis - rank };
    sample_dims(rng, rank, 4, dims);
    sample_dims(rng, n, 4, shape);
    if (!dims[axis])
        dims[axis] = 1;
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    Node *indices = sample_indices(b, rng, variant % 2 ? I64 : I32, n, shape, -dims[axis], dims[axis] - 1);
    return CALL_ATTR(b, gather, at, x, indices);
}

static int rows_of_table(const Node *n, int operand)
{
    const int64_t axis = ((const AxisAttr *)n->attr)->axis;
    return operand == 0 ? (int)(axis < 0 ? axis + n->in[0].def->type->rank : axis) : QUANT_WHOLE;
}

const OpDef op_gather = {
    .name = "gather",
    .min_in = 2,
    .max_in = 2,
    .attrs = axis_attrs,
    .infer = infer_gather,
    .eval = eval_gather,
    .adjoint = adjoint_gather,
    .open_adjoint = true,
    .sample = sample_gather,
    .n_variants = 36,
    .differentiable = 1,
    .trainable = 1,
    .access.kind = ACCESS_GATHER,
    .access.iterate = iterate_gather,
    .access.refuses = true,
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_GATHER, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .weight_axis = rows_of_table },
    .access.steer = 2,
    .onnx = { "Gather", 13, NULL },
};

/* ---- gather_elements ---- */

static const Type *infer_gather_elements(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *indices = infer_integers(q, 1);
    int axis;
    if (!x || !indices)
        return NULL;
    if (x->rank < 0 || indices->rank < 0)
        return type_with_dtype(q->types, indices, x->dtype);
    if (x->rank != indices->rank)
        return infer_fail(q, "indices have rank %d, the data %d", indices->rank, x->rank);
    if (!infer_axis(q, ((const AxisAttr *)q->attr)->axis, x->rank, &axis))
        return NULL;
    for (int i = 0; i < x->rank; i++)
        if (i != axis && x->dims[i] >= 0 && indices->dims[i] > x->dims[i])
            return infer_fail(q, "indices %s reach beyond %s in dimension %d", type_text(q->scratch, indices),
                              type_text(q->scratch, x), i);
    return type_with_dtype(q->types, indices, x->dtype);
}

/* The elements of operand 0 at those positions, one after the other. */
static Status fetch(Eval *e, const Positions *p)
{
    if (!p->at)
        return INVALID;
    const Raw x = raw_in(e, 0), y = raw_open(e, eval_out(e, 0));
    const size_t bytes = (size_t)p->width * x.size;
    for (int64_t i = 0; i < p->n; i++)
        memcpy(y.data + (size_t)i * bytes, x.data + (size_t)p->at[i] * x.size, bytes);
    raw_close(e->out[0], y);
    return OK;
}

static Status eval_gather_elements(Eval *e)
{
    const Type *t = e->in[0]->type;
    const Positions p = positions_elements(e, t, 1, axis_wrap(((const AxisAttr *)e->attr)->axis, t->rank));
    return fetch(e, &p);
}

static void adjoint_gather_elements(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    const ScatterAttr add = { SCATTER_ADD, ((const AxisAttr *)s->attr)->axis };
    Node *zeros = make_filled(b, x->dtype, 0, x);
    if (s->want[0])
        dx[0] = CALL_ATTR(b, scatter_elements, add, zeros, s->in[1], s->dout[0]);
}

static Node *sample_gather_elements(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], shape[MAX_RANK];
    const int rank = 1 + variant % 5, axis = (int)rng_below(rng, rank);
    const AxisAttr at = { rng_below(rng, 2) ? axis : axis - rank };
    sample_dims(rng, rank, 4, dims);
    for (int i = 0; i < rank; i++)
        shape[i] = i == axis ? rng_range(rng, 0, 5) : rng_range(rng, 0, dims[i]);
    if (!dims[axis])
        dims[axis] = 1;
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    Node *indices = sample_indices(b, rng, variant % 2 ? I64 : I32, rank, shape, -dims[axis], dims[axis] - 1);
    return CALL_ATTR(b, gather_elements, at, x, indices);
}

const OpDef op_gather_elements = {
    .name = "gather_elements",
    .min_in = 2,
    .max_in = 2,
    .attrs = axis_attrs,
    .infer = infer_gather_elements,
    .eval = eval_gather_elements,
    .adjoint = adjoint_gather_elements,
    .sample = sample_gather_elements,
    .n_variants = 30,
    .differentiable = 1,
    .access.kind = ACCESS_GATHER,
    .access.iterate = iterate_gather_elements,
    .access.refuses = true,
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true },
    .access.steer = 2,
    .onnx = { "GatherElements", 13, NULL },
};

/* ---- gather_nd ---- */

static const AttrSpec gather_nd_attrs[] = { ATTR(GatherNdAttr, batch_dims, INT, 0), ATTR_LAST };

static const Type *infer_gather_nd(Infer *q)
{
    const int64_t batch = ((const GatherNdAttr *)q->attr)->batch_dims;
    const Type *x = infer_tensor(q, 0), *indices = infer_integers(q, 1);
    int64_t dims[2 * MAX_RANK];
    int rank = 0;
    if (!x || !indices)
        return NULL;
    if (x->rank < 0 || indices->rank < 0)
        return type_unranked(q->types, x->dtype);
    if (x->rank < 1 || indices->rank < 1 || batch < 0 || batch >= x->rank || batch >= indices->rank)
        return infer_fail(q, "batch_dims %" PRId64 " does not fit %s and indices %s", batch, type_text(q->scratch, x),
                          type_text(q->scratch, indices));
    for (int i = 0; i < batch; i++)
        if (!dims_fit(x->dims[i], indices->dims[i]))
            return infer_fail(q, "batch dimension %d is %" PRId64 " in the data and %" PRId64 " in the indices", i,
                              x->dims[i], indices->dims[i]);
    const int64_t depth = indices->dims[indices->rank - 1];
    if (depth > x->rank - batch)
        return infer_fail(q, "indexes %" PRId64 " axes of %" PRId64, depth, x->rank - batch);
    if (depth < 0)
        return type_unranked(q->types, x->dtype);
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = i < batch ? dims_meet(x->dims[i], indices->dims[i]) : indices->dims[i];
    for (int i = (int)(batch + depth); i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return infer_dims(q, x->dtype, rank, dims);
}

static Status eval_gather_nd(Eval *e)
{
    const Positions p = positions_nd(e, e->in[0]->type, 1, (int)((const GatherNdAttr *)e->attr)->batch_dims);
    return fetch(e, &p);
}

/* The tuples of gather_nd with the indices of the batch dimensions put before them, so that they address the whole
 * data. */
static Node *whole_tuples(Build *b, Node *indices, int batch)
{
    const Type *t = indices->type;
    Node *parts[MAX_RANK + 1];
    int64_t dims[MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dims[i] = i == t->rank - 1 ? 1 : t->dims[i];
    for (int i = 0; i < batch; i++)
        parts[i] = make_expand(b, make_count(b, t->rank, i, t->dims[i]), t->rank, dims);
    parts[batch] = build_cast(b, indices, I64);
    return batch ? make_concat(b, t->rank - 1, batch + 1, parts) : indices;
}

static void adjoint_gather_nd(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    const ScatterAttr add = { .reduction = SCATTER_ADD };
    if (!s->want[0])
        return;
    Node *zeros = make_filled(b, x->dtype, 0, x);
    Node *tuples = whole_tuples(b, s->in[1], (int)((const GatherNdAttr *)s->attr)->batch_dims);
    dx[0] = CALL_ATTR(b, scatter_nd, add, zeros, tuples, s->dout[0]);
}

static Node *sample_gather_nd(Build *b, Rng *rng, int variant)
{
    const int rank = 1 + variant % 4, batch = (int)rng_below(rng, rank), more = (int)rng_below(rng, 3);
    const int depth = (int)rng_range(rng, 0, rank - batch);
    const GatherNdAttr at = { batch };
    int64_t dims[MAX_RANK], shape[MAX_RANK], least = 4;
    sample_full_dims(rng, rank, 4, dims);
    for (int i = 0; i < batch; i++)
        shape[i] = dims[i] = rng_below(rng, 8) ? dims[i] : 0;
    sample_dims(rng, more, 3, shape + batch);
    shape[batch + more] = depth;
    for (int i = batch; i < rank; i++)
        least = dims[i] < least ? dims[i] : least;
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    Node *indices = sample_indices(b, rng, I64, batch + more + 1, shape, -least, least - 1);
    return CALL_ATTR(b, gather_nd, at, x, indices);
}

const OpDef op_gather_nd = {
    .name = "gather_nd",
    .min_in = 2,
    .max_in = 2,
    .attrs = gather_nd_attrs,
    .infer = infer_gather_nd,
    .eval = eval_gather_nd,
    .adjoint = adjoint_gather_nd,
    .sample = sample_gather_nd,
    .n_variants = 32,
    .differentiable = 1,
    .access.kind = ACCESS_GATHER,
    .access.iterate = iterate_gather_nd,
    .access.refuses = true,
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 2,
    .onnx = { "GatherND", 13, NULL },
};
