#include "ops/fold/fold_access.h"

#include "ops/card/shapes.h"

uint32_t reduce_mask(const ReduceAttr *at, int rank, int64_t n, const int64_t *axes)
{
    uint32_t mask = n == 0 && !at->noop_with_empty_axes ? (1u << rank) - 1 : 0;
    for (int64_t i = 0; i < n; i++)
        mask |= 1u << axis_wrap(axes[i], rank);
    return mask;
}

/* Rows are what the innermost elements fold into, with nothing kept behind or between them; anything else is a column. */
static Order order_of_sum(const Type *x, uint32_t mask)
{
    bool kept = false, folds = false;
    for (int d = x->rank - 1; d >= 0; d--) {
        if (x->dims[d] == 1)
            continue;
        if (mask >> d & 1 && kept)
            return ORDER_COLUMN;
        folds |= mask >> d & 1;
        kept |= !(mask >> d & 1);
    }
    return folds ? ORDER_ROW : ORDER_ANY;
}

static bool any_order(const Node *n)
{
    return n->op == OP_reduce_max || n->op == OP_reduce_min || !dtype_is_float(in(n, 0)->type->dtype);
}

/* Operand 0 with the axes of a mask folded; the result has the others, and those as 1 where they are kept. */
static bool iterate_axes(const Node *n, Arena *arena, Iteration *to, uint32_t mask)
{
    const Type *x = in(n, 0)->type, *y = access_result(n, 0);
    int axis[MAX_RANK], kept = 0;
    if (!iteration_open(to, n, arena, 0, NULL))
        return false;
    for (int d = 0; d < x->rank; d++)
        if (!(mask >> d & 1))
            axis[d] = iteration_axis(to, x->dims[d]);
    for (int d = 0; d < x->rank; d++)
        if (mask >> d & 1)
            axis[d] = iteration_fold(to, x->dims[d]);
    reach_affine(to, arena, &to->in[0], x->rank);
    reach_affine(to, arena, &to->out[0], y->rank);
    const bool keeps = y->rank == x->rank;
    for (int d = 0; d < x->rank; d++) {
        reach_along(to, &to->in[0], d, axis[d], 1);
        if (!(mask >> d & 1))
            reach_along(to, &to->out[0], keeps ? d : kept++, axis[d], 1);
    }
    return true;
}

bool iterate_reduce(const Node *n, Arena *arena, Iteration *to)
{
    int64_t count;
    const Type *x = in(n, 0)->type;
    const int64_t *axes = access_ints(n, 1, arena, &count);
    if (!type_known(x) || (in(n, 1) && !axes))
        return false;
    const uint32_t mask = reduce_mask(n->attr, x->rank, count, axes);
    if (!iterate_axes(n, arena, to, mask))
        return false;
    to->order = any_order(n) ? ORDER_ANY : order_of_sum(x, mask);
    return true;
}

bool iterate_arg(const Node *n, Arena *arena, Iteration *to)
{
    const Type *x = in(n, 0)->type;
    if (!type_known(x) || !iterate_axes(n, arena, to, 1u << axis_wrap(((const ArgAttr *)n->attr)->axis, x->rank)))
        return false;
    to->order = ORDER_OWN;
    return true;
}

/* Each element of the results with all of the operand along one axis. */
static bool iterate_line(const Node *n, Arena *arena, Iteration *to, int axis)
{
    const Type *x = in(n, 0)->type, *y = access_result(n, 0);
    if (!type_known(x) || !type_known(y) || !iteration_open(to, n, arena, y->rank, y->dims))
        return false;
    const int along = iteration_fold(to, x->dims[axis]);
    reach_axes(to, arena, &to->in[0], x->rank, 0);
    reach_along(to, &to->in[0], axis, axis, 0);
    reach_along(to, &to->in[0], axis, along, 1);
    for (int i = 0; i < to->n_out; i++)
        reach_axes(to, arena, &to->out[i], y->rank, 0);
    to->order = ORDER_OWN;
    return true;
}

bool iterate_hardmax(const Node *n, Arena *arena, Iteration *to)
{
    const Type *x = in(n, 0)->type;
    return x->rank > 0 && iterate_line(n, arena, to, axis_wrap(((const AxisAttr *)n->attr)->axis, x->rank));
}

bool iterate_top_k(const Node *n, Arena *arena, Iteration *to)
{
    const Type *x = in(n, 0)->type;
    return x->rank > 0 && iterate_line(n, arena, to, axis_wrap(((const TopKAttr *)n->attr)->axis, x->rank));
}

/* The walk goes from where the results begin; an exclusive one reads the element before. */
bool iterate_cumulate(const Node *n, Arena *arena, Iteration *to)
{
    const CumAttr *at = n->attr;
    const Type *x = in(n, 0)->type;
    int64_t count;
    const int64_t *given = access_ints(n, 1, arena, &count);
    if (!given || !type_known(x) || !iteration_open(to, n, arena, x->rank, x->dims))
        return false;
    const int axis = axis_wrap(given[0], x->rank);
    const int64_t step = at->reverse ? -1 : 1, first = at->reverse ? x->dims[axis] - 1 : 0;
    reach_axes(to, arena, &to->in[0], x->rank, 0);
    reach_axes(to, arena, &to->out[0], x->rank, 0);
    reach_along(to, &to->in[0], axis, axis, step);
    reach_along(to, &to->out[0], axis, axis, step);
    to->out[0].base[axis] = first;
    to->in[0].base[axis] = at->exclusive ? first - step : first;
    to->in[0].guard = GUARD_SKIP;
    to->folded[to->n_folded++] = axis;
    to->order = ORDER_SCAN;
    return true;
}
