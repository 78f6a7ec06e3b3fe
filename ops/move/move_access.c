#include "ops/move/move_access.h"

#include "ops/card/attrs.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/pad.h"

/* A space of the result's elements, which the result walks in order. */
static bool over_result(const Node *n, Arena *arena, Iteration *to)
{
    const Type *y = access_result(n, 0);
    if (y->kind != TYPE_TENSOR || !type_known(y) || !iteration_open(to, n, arena, y->rank, y->dims))
        return false;
    for (int i = 0; i < to->n_out; i++)
        reach_axes(to, arena, &to->out[i], y->rank, 0);
    return true;
}

static const Type *operand(const Node *n, int i)
{
    return in(n, i)->type;
}

bool iterate_filled(const Node *n, Arena *arena, Iteration *to)
{
    return over_result(n, arena, to);
}

bool iterate_trilu(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_result(n, arena, to))
        return false;
    reach_axes(to, arena, &to->in[0], to->rank, 0)->guard = GUARD_MASK;
    return true;
}

/* ---- whole axes ---- */

bool iterate_transpose(const Node *n, Arena *arena, Iteration *to)
{
    const Ints perm = ((const TransposeAttr *)n->attr)->perm;
    if (!over_result(n, arena, to))
        return false;
    Access *x = reach_affine(to, arena, &to->in[0], to->rank);
    for (int i = 0; i < to->rank; i++)
        reach_along(to, x, perm.v ? axis_wrap(perm.v[i], to->rank) : to->rank - 1 - i, i, 1);
    return true;
}

enum { IMAGE = 4, BLOCKS = 6 };

/* Coordinate d counts the split axes first[d] .. first[d + 1] - 1, which are axis[..] of the space. */
static void reach_blocks(const Iteration *it, Arena *arena, Access *a, const int *first, const int *axis)
{
    reach_affine(it, arena, a, IMAGE);
    for (int d = 0; d < IMAGE; d++)
        for (int64_t k = first[d + 1] - 1, step = 1; k >= first[d]; step *= it->extent[axis[k]], k--)
            reach_along(it, a, d, axis[k], step);
}

static const int deep[] = { 0, 1, 4, 5, 6 }, wide[] = { 0, 1, 2, 4, 6 };

static bool iterate_blocks(const Node *n, Arena *arena, Iteration *to, const int *order, const int64_t *blocks,
                           bool from_deep)
{
    static const int as_they_are[] = { 0, 1, 2, 3, 4, 5 };
    int axis[BLOCKS];
    if (!iteration_open(to, n, arena, 0, NULL))
        return false;
    for (int i = 0; i < BLOCKS; i++)
        axis[order[i]] = iteration_axis(to, blocks[order[i]]);
    reach_blocks(to, arena, &to->in[0], from_deep ? deep : wide, axis);
    reach_blocks(to, arena, &to->out[0], from_deep ? wide : deep, as_they_are);
    return true;
}

bool iterate_depth_to_space(const Node *n, Arena *arena, Iteration *to)
{
    int64_t blocks[BLOCKS];
    return type_known(operand(n, 0)) &&
           iterate_blocks(n, arena, to, depth_to_space_blocks(n->attr, operand(n, 0)->dims, blocks), blocks, true);
}

bool iterate_space_to_depth(const Node *n, Arena *arena, Iteration *to)
{
    int64_t blocks[BLOCKS];
    return type_known(operand(n, 0)) &&
           iterate_blocks(n, arena, to, space_to_depth_blocks(n->attr, operand(n, 0)->dims, blocks), blocks, false);
}

bool iterate_expand(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_result(n, arena, to))
        return false;
    reach_broadcast(to, arena, &to->in[0], operand(n, 0), to->rank);
    return true;
}

/* Each axis as two: which copy, and where in it. */
bool iterate_tile(const Node *n, Arena *arena, Iteration *to)
{
    const Type *x = operand(n, 0), *y = access_result(n, 0);
    if (!iteration_open(to, n, arena, 0, NULL))
        return false;
    for (int d = 0; d < x->rank; d++) {
        iteration_axis(to, x->dims[d] ? y->dims[d] / x->dims[d] : 0);
        iteration_axis(to, x->dims[d]);
    }
    reach_affine(to, arena, &to->in[0], x->rank);
    reach_affine(to, arena, &to->out[0], x->rank);
    for (int d = 0; d < x->rank; d++) {
        reach_along(to, &to->in[0], d, 2 * d + 1, 1);
        reach_along(to, &to->out[0], d, 2 * d, x->dims[d]);
        reach_along(to, &to->out[0], d, 2 * d + 1, 1);
    }
    return true;
}

/* ---- parts of axes ---- */

/* The elements from `at` on, `n` of them, of what is put together or taken apart along an axis. */
static void reach_piece(const Iteration *it, Arena *arena, Access *a, int axis, int64_t at, int64_t n)
{
    reach_axes(it, arena, a, it->rank, 0);
    a->base[axis] = -at;
    a->piece_dim = axis;
    a->from = at;
    a->to = at + n;
}

bool iterate_concat(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_result(n, arena, to))
        return false;
    const int axis = axis_wrap(((const AxisAttr *)n->attr)->axis, to->rank);
    int64_t at = 0;
    for (int i = 0; i < n->n_in; at += operand(n, i)->dims[axis], i++)
        reach_piece(to, arena, &to->in[i], axis, at, operand(n, i)->dims[axis]);
    return true;
}

bool iterate_split(const Node *n, Arena *arena, Iteration *to)
{
    const Type *x = operand(n, 0);
    if (!type_known(x) || !iteration_open(to, n, arena, x->rank, x->dims))
        return false;
    const int axis = axis_wrap(((const SplitAttr *)n->attr)->axis, x->rank);
    int64_t at = 0;
    reach_axes(to, arena, &to->in[0], x->rank, 0);
    for (int i = 0; i < to->n_out; at += access_result(n, i)->dims[axis], i++)
        reach_piece(to, arena, &to->out[i], axis, at, access_result(n, i)->dims[axis]);
    return true;
}

bool iterate_slice(const Node *n, Arena *arena, Iteration *to)
{
    int64_t count, others;
    const int64_t *starts = access_ints(n, 1, arena, &count), *ends = access_ints(n, 2, arena, &others);
    const int64_t *axes = access_ints(n, 3, arena, &others), *steps = access_ints(n, 4, arena, &others);
    const bool known = starts && ends && (axes || !in(n, 3)) && (steps || !in(n, 4));
    if (!known || !over_result(n, arena, to))
        return false;
    Access *x = reach_axes(to, arena, &to->in[0], to->rank, 0);
    for (int64_t i = 0; i < count; i++) {
        const int axis = axis_wrap(axes ? axes[i] : i, to->rank);
        const Cut c = slice_cut(operand(n, 0)->dims[axis], starts[i], ends[i], steps ? steps[i] : 1);
        x->base[axis] = c.start;
        reach_along(to, x, axis, axis, c.step);
    }
    return true;
}

static void reach_framed(const Iteration *it, Arena *arena, Access *x, const int64_t *before)
{
    reach_axes(it, arena, x, it->rank, 0);
    x->guard = GUARD_FILL;
    for (int d = 0; d < it->rank; d++)
        x->base[d] = -before[d];
}

/* Frames that repeat the data are not affine. */
bool iterate_pad(const Node *n, Arena *arena, Iteration *to)
{
    int64_t count, n_axes, before[MAX_RANK], after[MAX_RANK];
    const int64_t *pads = access_ints(n, 1, arena, &count), *axes = access_ints(n, 3, arena, &n_axes);
    if (((const PadAttr *)n->attr)->mode != PAD_CONSTANT || !pads || (in(n, 3) && !axes) || !over_result(n, arena, to))
        return false;
    for (int64_t i = 0; i < count; i++) /* what is cut off is no frame */
        if (pads[i] < 0)
            return false;
    pad_frame(to->rank, axes ? n_axes : to->rank, pads, axes, before, after);
    reach_framed(to, arena, &to->in[0], before);
    to->fill_by = in(n, 2) ? 2 : NO_OPERAND;
    if (in(n, 2))
        reach_affine(to, arena, &to->in[2], operand(n, 2)->rank);
    return true;
}

bool iterate_center_crop_pad(const Node *n, Arena *arena, Iteration *to)
{
    int64_t before[MAX_RANK], after[MAX_RANK];
    if (!over_result(n, arena, to) || !type_known(operand(n, 0)))
        return false;
    center_pads(operand(n, 0), access_result(n, 0), before, after);
    reach_framed(to, arena, &to->in[0], before);
    return true;
}

/* ---- by indices ---- */

static void reach_by(Access *a, int by, int by_dim, int by_n)
{
    a->reach = REACH_INDEXED;
    a->by = by;
    a->by_dim = by_dim;
    a->by_n = by_n;
}

enum { DATA, INDICES, UPDATES };

bool iterate_gather(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_result(n, arena, to))
        return false;
    const int rank = operand(n, DATA)->rank, indices = operand(n, INDICES)->rank;
    const int axis = axis_wrap(((const AxisAttr *)n->attr)->axis, rank);
    Access *x = reach_affine(to, arena, &to->in[DATA], rank);
    for (int d = 0; d < rank; d++)
        if (d != axis)
            reach_along(to, x, d, d < axis ? d : d - 1 + indices, 1);
    reach_by(x, INDICES, axis, 1);
    reach_axes(to, arena, &to->in[INDICES], indices, axis);
    return true;
}

bool iterate_gather_elements(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_result(n, arena, to))
        return false;
    const int axis = axis_wrap(((const AxisAttr *)n->attr)->axis, to->rank);
    Access *x = reach_axes(to, arena, &to->in[DATA], to->rank, 0);
    reach_along(to, x, axis, axis, 0);
    reach_by(x, INDICES, axis, 1);
    reach_axes(to, arena, &to->in[INDICES], to->rank, 0);
    return true;
}

/* Tuples of indices, the last dimension of the operand, are coordinates behind the first `batch`. */
static void reach_tuples(const Iteration *it, Arena *arena, const Type *t, Access *indices, Access *data, int batch,
                         int rank)
{
    const int depth = (int)t->dims[t->rank - 1];
    reach_affine(it, arena, data, rank);
    for (int d = 0; d < rank; d++)
        if (d < batch || d >= batch + depth)
            reach_along(it, data, d, d < batch ? d : t->rank - 1 + d - batch - depth, 1);
    if (!depth)
        return;
    reach_by(data, INDICES, batch, depth);
    reach_affine(it, arena, indices, t->rank);
    for (int d = 0; d < t->rank - 1; d++)
        reach_along(it, indices, d, d, 1);
}

bool iterate_gather_nd(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_result(n, arena, to))
        return false;
    const int batch = (int)((const GatherNdAttr *)n->attr)->batch_dims;
    reach_tuples(to, arena, operand(n, INDICES), &to->in[INDICES], &to->in[DATA], batch, operand(n, DATA)->rank);
    return true;
}

#define JOINS(REDUCTION, VALUE) [REDUCTION] = #VALUE,
static const char *const joins[] = { [SCATTER_NONE] = NULL, SCATTER_ROWS(JOINS) };
#undef JOINS

/* A space of the updates, which go one after the other to where the data lies. */
static bool over_updates(const Node *n, Arena *arena, Iteration *to)
{
    const Type *u = operand(n, UPDATES);
    if (!type_known(u) || !iteration_open(to, n, arena, u->rank, u->dims))
        return false;
    reach_axes(to, arena, &to->in[UPDATES], u->rank, 0);
    to->begins = DATA;
    to->order = ORDER_PLACE;
    to->joins = joins[((const ScatterAttr *)n->attr)->reduction];
    return true;
}

bool iterate_scatter_elements(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_updates(n, arena, to))
        return false;
    const int axis = axis_wrap(((const ScatterAttr *)n->attr)->axis, to->rank);
    Access *y = reach_axes(to, arena, &to->out[0], to->rank, 0);
    reach_along(to, y, axis, axis, 0);
    reach_by(y, INDICES, axis, 1);
    reach_axes(to, arena, &to->in[INDICES], to->rank, 0);
    return true;
}

bool iterate_scatter_nd(const Node *n, Arena *arena, Iteration *to)
{
    if (!over_updates(n, arena, to))
        return false;
    reach_tuples(to, arena, operand(n, INDICES), &to->in[INDICES], &to->out[0], 0, operand(n, DATA)->rank);
    return true;
}
