/* concat and split: one axis put together and taken apart. */
#include "base/checked.h"
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"

static const AttrSpec concat_attrs[] = { ATTR_REQUIRED(AxisAttr, axis, INT), ATTR_LAST };

/* What operand i adds to the dimensions so far. */
static bool concat_dims(Infer *q, int i, int rank, int axis, int64_t *dims)
{
    const Type *x = q->in[i];
    for (int k = 0; k < rank; k++) {
        if (k == axis) {
            if (dims[k] < 0 || x->dims[k] < 0)
                dims[k] = DIM_UNKNOWN;
            else if (!checked_add_i64(dims[k], x->dims[k], &dims[k]))
                return infer_fail(q, "makes axis %d too long", axis), false;
        } else if (!dims_fit(dims[k], x->dims[k])) {
            return infer_fail(q, "operand %d is %s, dimension %d must be %" PRId64, i, type_text(q->scratch, x), k,
                              dims[k]),
                   false;
        } else {
            dims[k] = dims_meet(dims[k], x->dims[k]);
        }
    }
    return true;
}

static const Type *infer_concat(Infer *q)
{
    const Type *first = NULL;
    int64_t dims[MAX_RANK];
    int axis = 0;
    bool unranked = false;
    for (int i = 0; i < q->n_in; i++) {
        const Type *x = infer_tensor(q, i);
        if (!x || !infer_same_dtype(q, 0, i))
            return NULL;
        if (x->rank < 0) {
            unranked = true;
        } else if (!first) {
            first = x;
            for (int k = 0; k < x->rank; k++)
                dims[k] = x->dims[k];
            if (!infer_axis(q, ((const AxisAttr *)q->attr)->axis, x->rank, &axis))
                return NULL;
        } else if (x->rank != first->rank) {
            return infer_fail(q, "operand %d has rank %d, those before it %d", i, x->rank, first->rank);
        } else if (!concat_dims(q, i, x->rank, axis, dims)) {
            return NULL;
        }
    }
    if (!first)
        return q->in[0];
    if (unranked)
        dims[axis] = DIM_UNKNOWN;
    return infer_dims(q, first->dtype, first->rank, dims);
}

/* Copies operand by operand: `inner` elements a step of the axis. */
static Status eval_concat(Eval *e)
{
    const Type *t = eval_type(e, 0);
    const int axis = axis_wrap(((const AxisAttr *)e->attr)->axis, t->rank);
    const int64_t outer = move_count(t->dims, 0, axis), inner = move_count(t->dims, axis + 1, t->rank);
    const int64_t row = t->dims[axis] * inner;
    const Raw y = raw_open(e, eval_out(e, 0));
    int64_t at = 0;
    for (int i = 0; i < e->n_in; i++) {
        const Raw x = raw_in(e, i);
        const int64_t part = e->in[i]->type->dims[axis] * inner;
        Move m = { .size = x.size };
        move_axis(&m, outer, row, part);
        move_axis(&m, part, 1, 1);
        move_run(&m, y.data + (size_t)at * y.size, x.data);
        at += part;
    }
    raw_close(e->out[0], y);
    return OK;
}

static void adjoint_concat(Build *b, const Site *s, Node **dx)
{
    const int axis = axis_wrap(((const AxisAttr *)s->attr)->axis, s->dout[0]->type->rank);
    int64_t at = 0;
    for (int i = 0; i < s->n_in; i++) {
        const int64_t n = s->in[i]->type->dims[axis];
        if (s->want[i])
            dx[i] = make_slice(b, s->dout[0], axis, at, at + n, 1);
        at += n;
    }
}

static Node *sample_concat(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 5, n = 1 + (int)rng_below(rng, 4);
    const int axis = (int)rng_below(rng, rank);
    const AxisAttr at = { rng_below(rng, 2) ? axis : axis - rank };
    Node *parts[4];
    sample_dims(rng, rank, 4, dims);
    for (int i = 0; i < n; i++) {
        sample_dims(rng, 1, 4, &dims[axis]);
        parts[i] = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    }
    return build_node(b, OP_concat, &at, n, parts);
}

const OpDef op_concat = {
    .name = "concat",
    .min_in = 1,
    .max_in = -1,
    .attrs = concat_attrs,
    .infer = infer_concat,
    .eval = eval_concat,
    .adjoint = adjoint_concat,
    .sample = sample_concat,
    .n_variants = 30,
    .differentiable = UINT32_MAX,
    .trainable = ~0u,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_concat,
    .access.alias = { { 0, ALIAS_EACH, ALIAS_INTO } },
    .amp = { AMP_PW, AMP_PW, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC }, .out = { QUANT_AGNOSTIC }, .same_scale = true },
    .onnx = { "Concat", 13, NULL },
};

/* ---- split ---- */

static const AttrSpec split_attrs[] = {
    ATTR(SplitAttr, axis, INT, 0),
    ATTR(SplitAttr, num_outputs, INT, 0), /* 0: as many as the call has results */
    ATTR_LAST,
};

/* Equal parts; where they do not come out even, the last ones are smaller. */
static void even_parts(const Infer *q, int64_t dim, int64_t *parts)
{
    const int64_t n = q->n_out, part = dim < 0 ? DIM_UNKNOWN : (dim + n - 1) / n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t left = dim - part * i;
        parts[i] = dim < 0 ? DIM_UNKNOWN : left > part ? part : left > 0 ? left : 0;
    }
}

static bool listed_parts(Infer *q, int64_t dim, const int64_t *v, int64_t *parts)
{
    int64_t sum = 0;
    for (int i = 0; i < q->n_out; i++) {
        parts[i] = v[i];
        if (v[i] < 0 || !checked_add_i64(sum, v[i], &sum))
            return infer_fail(q, "part %d has length %" PRId64, i, v[i]), false;
    }
    if (!dims_fit(sum, dim))
        return infer_fail(q, "its parts are %" PRId64 " together, the axis is %" PRId64, sum, dim), false;
    return true;
}

static bool split_parts(Infer *q, int64_t dim, int64_t *parts)
{
    const int64_t asked = ((const SplitAttr *)q->attr)->num_outputs;
    int64_t n;
    if (infer_has(q, 1)) {
        if (asked)
            return infer_fail(q, "has both lengths and num_outputs"), false;
        if (!infer_list(q, 1, &n))
            return false;
        if (!dims_fit(n, q->n_out))
            return infer_fail(q, "lists %" PRId64 " lengths for %d results", n, q->n_out), false;
        const int64_t *v = infer_ints(q, 1, &n);
        if (v)
            return listed_parts(q, dim, v, parts);
        for (int i = 0; i < q->n_out; i++)
            parts[i] = DIM_UNKNOWN;
        return true;
    }
    if (asked && asked != q->n_out)
        return infer_fail(q, "num_outputs is %" PRId64 ", the call has %d results", asked, q->n_out), false;
    even_parts(q, dim, parts);
    return true;
}

static const Type *infer_split(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t dims[MAX_RANK];
    int axis = 0;
    if (!x)
        return NULL;
    if (x->rank >= 0 && !infer_axis(q, ((const SplitAttr *)q->attr)->axis, x->rank, &axis))
        return NULL;
    int64_t *parts = NEWS(q->scratch, int64_t, q->n_out);
    const Type **results = NEWS(q->scratch, const Type *, q->n_out);
    if (!split_parts(q, x->rank < 0 ? DIM_UNKNOWN : x->dims[axis], parts))
        return NULL;
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    for (int i = 0; i < q->n_out; i++) {
        if (x->rank >= 0)
            dims[axis] = parts[i];
        results[i] = x->rank < 0 ? x : infer_dims(q, x->dtype, x->rank, dims);
        if (!results[i])
            return NULL;
    }
    return infer_results(q, q->n_out, results);
}

static Status eval_split(Eval *e)
{
    const Type *t = e->in[0]->type;
    const int axis = axis_wrap(((const SplitAttr *)e->attr)->axis, t->rank);
    const int64_t outer = move_count(t->dims, 0, axis), inner = move_count(t->dims, axis + 1, t->rank);
    const int64_t row = t->dims[axis] * inner;
    const Raw x = raw_in(e, 0);
    int64_t at = 0;
    for (int i = 0; i < e->n_out; i++) {
        const Raw y = raw_open(e, eval_out(e, i));
        const int64_t part = eval_type(e, i)->dims[axis] * inner;
        Move m = { .size = x.size };
        move_axis(&m, outer, part, row);
        move_axis(&m, part, 1, 1);
        move_run(&m, y.data, x.data + (size_t)at * x.size);
        raw_close(e->out[i], y);
        at += part;
    }
    return OK;
}

/* Parts that nothing arrives at are zero. */
static void adjoint_split(Build *b, const Site *s, Node **dx)
{
    const int axis = axis_wrap(((const SplitAttr *)s->attr)->axis, s->in[0]->type->rank);
    Node **parts = NEWS(b->graph->arena, Node *, s->n_out);
    for (int i = 0; i < s->n_out; i++) {
        const Type *t = s->y[i]->type;
        parts[i] = s->dout[i] ? s->dout[i] : make_expand(b, make_zero_like(b, s->in[0]), t->rank, t->dims);
    }
    dx[0] = make_concat(b, axis, s->n_out, parts);
}

static Node *sample_split(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], parts[3];
    const int rank = 1 + variant % 5, axis = (int)rng_below(rng, rank), n = 1 + (int)rng_below(rng, 3);
    SplitAttr at = { .axis = rng_below(rng, 2) ? axis : axis - rank };
    sample_dims(rng, rank, 4, dims);
    if (variant % 3) {
        dims[axis] = variant % 3 == 1 ? n * rng_below(rng, 4) : rng_below(rng, 9);
        at.num_outputs = variant % 2 ? n : 0;
        Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
        return build_node_n(b, OP_split, &at, 1, &x, n);
    }
    dims[axis] = 0;
    for (int i = 0; i < n; i++)
        dims[axis] += parts[i] = rng_below(rng, 4);
    Node *ins[] = { sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3), build_i64s(b, n, parts) };
    return build_node_n(b, OP_split, &at, 2, ins, n);
}

const OpDef op_split = {
    .name = "split",
    .min_in = 1,
    .max_in = 2,
    .max_out = -1,
    .attrs = split_attrs,
    .infer = infer_split,
    .eval = eval_split,
    .adjoint = adjoint_split,
    .open_adjoint = true,
    .sample = sample_split,
    .n_variants = 30,
    .differentiable = 1,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_split,
    .access.alias = { { ALIAS_EACH, 0, ALIAS_VIEW } },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true },
    .access.steer = 2,
    .onnx = { "Split", 18, NULL },
};
