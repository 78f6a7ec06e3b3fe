/* slice: every n-th element between two ends, along some axes. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* An end as ONNX clamps it; INT64_MIN and INT64_MAX stand for "all there is". */
static int64_t end_of(int64_t v, int64_t dim, int64_t lo, int64_t hi)
{
    if (v < 0)
        v = v < -dim ? lo : v + dim;
    return clamp(v, lo, hi);
}

Cut slice_cut(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    if (dim == 0)
        return (Cut){ 0, 1, 0 };
    const bool forward = step > 0;
    const int64_t from = end_of(start, dim, 0, forward ? dim : dim - 1);
    const int64_t to = end_of(end, dim, forward ? 0 : -1, forward ? dim : dim - 1);
    const int64_t span = forward ? to - from : from - to;
    const uint64_t stride = forward ? (uint64_t)step : 0 - (uint64_t)step;
    if (span <= 0)
        return (Cut){ 0, 1, 0 };
    const int64_t n = (int64_t)((uint64_t)(span - 1) / stride) + 1;
    return (Cut){ from, n > 1 ? step : 1, n };
}

/* The lists a call gives; a null one is not known. */
typedef struct Lists {
    int64_t n;
    const int64_t *starts, *ends, *steps;
    Axes axes;
    bool axes_known;
} Lists;

static bool read_axes(Infer *q, int rank, Lists *l)
{
    int64_t n, all[MAX_RANK];
    if (!infer_has(q, 3)) {
        for (int i = 0; i < MAX_RANK; i++)
            all[i] = i;
        l->axes_known = l->n >= 0;
        return l->n < 0 || infer_axes(q, all, l->n, rank, &l->axes);
    }
    const int64_t *v = infer_ints(q, 3, &n);
    l->axes_known = v != NULL;
    if (!v)
        return true;
    l->n = n;
    return infer_axes(q, v, n, rank, &l->axes);
}

static bool read_lists(Infer *q, int rank, Lists *l)
{
    *l = (Lists){ .n = -1 };
    for (int i = 1; i < 5; i++) {
        int64_t n;
        if (i >= 3 && !infer_has(q, i))
            continue;
        if (!infer_list(q, i, &n))
            return false;
        if (!dims_fit(n, l->n))
            return infer_fail(q, "lists %" PRId64 " numbers in operand %d, %" PRId64 " in those before", n, i, l->n),
                   false;
        l->n = dims_meet(l->n, n);
    }
    l->starts = infer_ints(q, 1, &l->n);
    l->ends = infer_ints(q, 2, &l->n);
    l->steps = infer_ints(q, 4, &l->n);
    for (int64_t i = 0; l->steps && i < l->n; i++)
        if (l->steps[i] == 0)
            return infer_fail(q, "step %" PRId64 " is 0", i), false;
    return read_axes(q, rank, l);
}

/* What is certain of one axis: with an unknown extent only an empty list and the whole axis are. */
static int64_t cut_length(Infer *q, const Lists *l, int i, int64_t dim)
{
    const bool steps = infer_has(q, 4);
    if (dim < 0 || !l->starts || !l->ends || (steps && !l->steps))
        return dim == 0 ? 0 : DIM_UNKNOWN;
    return slice_cut(dim, l->starts[i], l->ends[i], steps ? l->steps[i] : 1).n;
}

static const Type *infer_slice(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t dims[MAX_RANK];
    Lists l;
    if (!x)
        return NULL;
    if (!read_lists(q, x->rank < 0 ? MAX_RANK : x->rank, &l))
        return NULL;
    if (x->rank < 0)
        return x;
    for (int i = 0; i < x->rank; i++)
        dims[i] = l.axes_known || x->dims[i] == 0 ? x->dims[i] : DIM_UNKNOWN;
    for (int i = 0; l.axes_known && i < l.axes.n; i++)
        dims[l.axes.v[i]] = cut_length(q, &l, i, x->dims[l.axes.v[i]]);
    return type_tensor(q->types, x->dtype, x->rank, dims);
}

static Status eval_slice(Eval *e)
{
    const Type *x = e->in[0]->type, *y = eval_type(e, 0);
    int64_t from[MAX_RANK], to[MAX_RANK], offset = 0, n;
    Cut cuts[MAX_RANK];
    Move m = { 0 };
    for (int i = 0; i < x->rank; i++)
        cuts[i] = (Cut){ 0, 1, x->dims[i] };
    const int64_t *starts = eval_ints(e, 1, &n), *ends = eval_ints(e, 2, &n);
    const int64_t *axes = eval_has(e, 3) ? eval_ints(e, 3, &n) : NULL;
    const int64_t *steps = eval_has(e, 4) ? eval_ints(e, 4, &n) : NULL;
    for (int64_t i = 0; i < n; i++) {
        const int axis = axis_wrap(axes ? axes[i] : i, x->rank);
        cuts[axis] = slice_cut(x->dims[axis], starts[i], ends[i], steps ? steps[i] : 1);
    }
    move_strides(x->rank, x->dims, from);
    move_strides(y->rank, y->dims, to);
    for (int i = 0; i < x->rank; i++) {
        move_axis(&m, cuts[i].n, to[i], from[i] * cuts[i].step);
        offset += from[i] * cuts[i].start;
    }
    const Raw r = raw_in(e, 0), out = raw_open(e, eval_out(e, 0));
    m.size = r.size;
    if (tensor_elements(e->out[0]))
        move_run(&m, out.data, r.data + offset * (int64_t)r.size);
    raw_close(e->out[0], out);
    return OK;
}

/* What a constant call takes of each axis. */
static void constant_cuts(const Site *s, Cut *cuts)
{
    const Type *x = s->in[0]->type;
    const Tensor *const *v = s->value;
    const Tensor *axes = s->n_in > 3 ? v[3] : NULL, *steps = s->n_in > 4 ? v[4] : NULL;
    for (int i = 0; i < x->rank; i++)
        cuts[i] = (Cut){ 0, 1, x->dims[i] };
    for (int64_t i = 0; v[1] && v[2] && i < tensor_elements(v[1]); i++) {
        const int axis = axis_wrap(axes ? tensor_get_i64(axes, i) : i, x->rank);
        cuts[axis] = slice_cut(x->dims[axis], tensor_get_i64(v[1], i), tensor_get_i64(v[2], i),
                               steps ? tensor_get_i64(steps, i) : 1);
    }
}

/* The elements back at their places: turned round where the step was negative, zeros between them where it was longer
 * than 1, zeros around them. */
static void adjoint_slice(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    int64_t dims[MAX_RANK], before[MAX_RANK], after[MAX_RANK];
    const int64_t none[4] = { 0 };
    Cut cuts[MAX_RANK];
    Node *g = s->dout[0];
    if (type_elements(g->type) == 0)
        return;
    constant_cuts(s, cuts);
    for (int i = 0; i < x->rank; i++)
        dims[i] = cuts[i].n;
    for (int i = 0; i < x->rank; i++) {
        const int64_t n = cuts[i].n, step = cuts[i].step < 0 ? -cuts[i].step : cuts[i].step;
        if (cuts[i].step < 0)
            g = make_slice(b, g, i, n - 1, INT64_MIN, -1);
        if (step > 1) {
            const int64_t outer = move_count(dims, 0, i), inner = move_count(dims, i + 1, x->rank);
            g = make_reshape(b, g, 4, (const int64_t[]){ outer, n, 1, inner });
            g = make_pad(b, g, 4, none, (const int64_t[]){ 0, 0, step - 1, 0 });
            dims[i] = n * step;
            g = make_reshape(b, g, x->rank, dims);
        }
        before[i] = cuts[i].step < 0 ? cuts[i].start - (n - 1) * step : cuts[i].start;
        after[i] = x->dims[i] - dims[i] - before[i];
    }
    dx[0] = make_pad(b, g, x->rank, before, after);
}

static int64_t random_end(Rng *rng)
{
    static const int64_t far[] = { INT64_MIN, INT64_MAX, -1000, 1000, INT32_MIN, INT32_MAX };
    return rng_below(rng, 3) ? rng_range(rng, -6, 6) : far[rng_below(rng, (int64_t)COUNT(far))];
}

static Node *sample_slice(Build *b, Rng *rng, int variant)
{
    static const int64_t some_steps[] = { 1, 1, 2, 3, -1, -2, INT64_MAX, INT64_MIN, -7 };
    int64_t dims[MAX_RANK], order[MAX_RANK], starts[MAX_RANK], ends[MAX_RANK], steps[MAX_RANK];
    const int rank = 1 + variant % 5, n = variant % 4 == 0 ? rank : (int)rng_below(rng, rank + 1);
    sample_dims(rng, rank, 5, dims);
    sample_order(rng, rank, order);
    for (int i = 0; i < n; i++) {
        starts[i] = random_end(rng);
        ends[i] = random_end(rng);
        steps[i] = some_steps[rng_below(rng, (int64_t)COUNT(some_steps))];
        order[i] -= rng_below(rng, 2) ? rank : 0;
    }
    Node *ins[] = {
        sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3),
        build_i64s(b, n, starts),
        build_i64s(b, n, ends),
        variant % 3 ? build_i64s(b, n, order) : NULL,
        variant % 2 ? build_i64s(b, n, steps) : NULL,
    };
    return build_node(b, OP_slice, NULL, ins[4] ? 5 : ins[3] ? 4 : 3, ins);
}

/* An end that is the extent of the axis. */
static bool slice_extent(const Node *n, const Type *from, int axis, int64_t batch, StatedNumber *to)
{
    enum { MOST_BYTES = 1 << 16 };
    const Tensor *ends = in(n, 2) ? node_constant(in(n, 2), MOST_BYTES) : NULL;
    const Tensor *axes = in(n, 3) ? node_constant(in(n, 3), MOST_BYTES) : NULL;
    (void)batch;
    for (int64_t i = 0; ends && i < tensor_elements(ends); i++)
        if (axis_wrap(axes ? tensor_get_i64(axes, i) : i, from->rank) == axis &&
            tensor_get_i64(ends, i) == from->dims[axis]) {
            *to = (StatedNumber){ 2, i };
            return true;
        }
    return false;
}

const OpDef op_slice = {
    .name = "slice",
    .min_in = 3,
    .max_in = 5,
    .infer = infer_slice,
    .eval = eval_slice,
    .adjoint = adjoint_slice,
    .sample = sample_slice,
    .n_variants = 60,
    .differentiable = 1,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_slice,
    .access.alias = { { 0, 0, ALIAS_VIEW } },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true },
    .access.steer = ~1u,
    .extent = slice_extent,
    .onnx = { "Slice", 13, NULL },
};
