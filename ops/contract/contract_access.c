#include "ops/contract/contract_access.h"

#include "ops/contract/contract.h"

bool iterate_matmul(const Node *n, Arena *arena, Iteration *to)
{
    const MatmulAttr *at = n->attr;
    const Order order = dtype_is_float(in(n, 0)->type->dtype) ? ORDER_FMA : ORDER_ANY;
    return iterate_product(n, arena, to, &(MatrixProduct){ .b = 1, .ta = at->ta, .tb = at->tb, .order = order });
}

/* Sums begin with the third operand. */
bool iterate_accumulate(const Node *n, Arena *arena, Iteration *to)
{
    enum { SUM = 2 };
    const AccumulateAttr *at = n->attr;
    if (!iterate_product(n, arena, to, &(MatrixProduct){ .b = 1, .ta = at->ta, .tb = at->tb, .order = ORDER_FMA }))
        return false;
    reach_beside(n, arena, &to->in[SUM], in(n, SUM)->type, access_result(n, 0)->rank);
    to->begins = SUM;
    return true;
}

bool iterate_matrices(const Node *n, Arena *arena, Iteration *to)
{
    const Type *x = in(n, 0)->type, *y = access_result(n, 0);
    if (!type_known(x) || !iteration_open(to, n, arena, x->rank - 2, x->dims))
        return false;
    const int stack = x->rank - 2;
    for (int d = stack; d < x->rank; d++)
        iteration_fold(to, x->dims[d]);
    to->order = ORDER_OWN;
    reach_axes(to, arena, &to->in[0], x->rank, 0);
    reach_axes(to, arena, &to->out[0], y->rank, 0);
    return true;
}
