/* The walk of a product of stacks of matrices. */
#include "ops/card/access.h"

/* A factor: its stack by the rule of broadcasting, then its rows and columns; a vector has the folded axis alone. */
static void reach_factor(const Iteration *it, Arena *arena, Access *a, const Type *t, int stack, int row, int column)
{
    reach_affine(it, arena, a, t->rank);
    if (t->rank == 1) {
        reach_along(it, a, 0, it->rank - 1, 1);
        return;
    }
    const int less = t->rank - 2;
    for (int d = 0; d < less; d++)
        reach_along(it, a, d, stack - less + d, t->dims[d] != 1);
    reach_along(it, a, less, row, 1);
    reach_along(it, a, less + 1, column, 1);
}

bool iterate_product(const Node *n, Arena *arena, Iteration *to, const MatrixProduct *p)
{
    const Type *y = access_result(n, 0), *a = in(n, p->a)->type, *b = in(n, p->b)->type;
    if (!type_known(y) || !type_known(a) || !iteration_open(to, n, arena, y->rank, y->dims))
        return false;
    const int stack = y->rank - (a->rank > 1) - (b->rank > 1), m = stack, k = y->rank;
    iteration_fold(to, a->dims[a->rank - (a->rank > 1 && p->ta ? 2 : 1)]);
    to->order = p->order;
    reach_axes(to, arena, &to->out[0], y->rank, 0);
    reach_factor(to, arena, &to->in[p->a], a, stack, p->ta ? k : m, p->ta ? m : k);
    const int column = y->rank - 1;
    reach_factor(to, arena, &to->in[p->b], b, stack, p->tb ? column : k, p->tb ? k : column);
    reach_rest(n, to);
    return true;
}
