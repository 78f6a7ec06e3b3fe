/* Picks and hits: calls that fetch one element of each row of a region, and calls that mark one. */
#include "ops/card/attrs.h"
#include "ops/card/shapes.h"
#include "ops/region/region.h"

enum { ONE_NUMBER = 8 }; /* bytes of a scalar */

/* Every dimension of a value but the axis is that of the other, and behind the axis there is no more than one element. */
static bool is_row_of(const Type *one, const Type *x, int axis)
{
    if (one->rank != x->rank || one->dims[axis] != 1 || x->dims[axis] < 1)
        return false;
    for (int d = 0; d < x->rank; d++)
        if (d != axis && (one->dims[d] != x->dims[d] || (d > axis && x->dims[d] != 1)))
            return false;
    return true;
}

bool region_fetches(const Node *n, Reduction *r)
{
    if (n->op != OP_gather_elements || !type_known(n->type) || !type_known(in(n, 0)->type) || !n->type->rank)
        return false;
    const Type *x = in(n, 0)->type;
    const int axis = axis_wrap(((const AxisAttr *)n->attr)->axis, x->rank);
    *r = (Reduction){ .axes = 1u << axis };
    return is_row_of(n->type, x, axis);
}

static bool is_within(const Node *low, const Node *high, int64_t extent)
{
    const Tensor *least = low ? node_constant(low, ONE_NUMBER) : NULL;
    const Tensor *most = high ? node_constant(high, ONE_NUMBER) : NULL;
    return least && most && tensor_elements(least) == 1 && tensor_elements(most) == 1 &&
           tensor_get_i64(least, 0) >= 0 && tensor_get_i64(most, 0) >= tensor_get_i64(least, 0) &&
           tensor_get_i64(most, 0) < extent;
}

bool region_picks(const Node *n, Reduction *r)
{
    if (!region_fetches(n, r) || in(n, 1)->op != OP_clip || in(n, 1)->n_in < 3 || in(n, 1)->type->dtype != I64)
        return false;
    const Node *index = in(n, 1);
    return is_within(in(index, 1), in(index, 2), in(n, 0)->type->dims[__builtin_ctz(r->axes)]);
}

/* ---- hits ---- */

/* Whether a constant is 0, 1, 2 .. */
static bool counts(const Node *n)
{
    const Tensor *t = n->op == OP_const && n->type->dtype == I64 ? node_constant(n, 0) : NULL;
    const int64_t elements = t ? tensor_elements(t) : 0;
    for (int64_t i = 0; i < elements; i++)
        if (tensor_get_i64(t, i) != i)
            return false;
    return elements > 1;
}

bool region_hits(const Region *r, const Node *n, int *index)
{
    if (n->op != OP_equal || r->cut == REGION_UNCUT || region_has_channels(r) ||
        region_extent(r, n->type) != EXTENT_ELEMENT)
        return false;
    for (int i = 0; i < 2; i++) {
        const Type *own = in(n, i)->type, *other = in(n, 1 - i)->type;
        *index = i;
        if (own->dtype == I64 && region_extent(r, own) == EXTENT_ROW && region_extent(r, other) == EXTENT_COLUMN &&
            counts(in(n, 1 - i)))
            return true;
    }
    return false;
}
