#include "ops/move/transposed.h"

#include "ops/card/attrs.h"
#include "ops/card/make.h"

int transpose_source(const Node *n, int i)
{
    const Ints perm = ((const TransposeAttr *)n->attr)->perm;
    const int rank = n->type->rank;
    return !perm.v ? rank - 1 - i : (int)(perm.v[i] < 0 ? perm.v[i] + rank : perm.v[i]);
}

bool transpose_swaps(const Node *n, int first)
{
    const int rank = n->type->rank;
    for (int i = 0; i < rank; i++)
        if (transpose_source(n, i) != (i == first ? i + 1 : i == first + 1 ? i - 1 : i))
            return false;
    return first >= 0 && first + 1 < rank;
}

Node *transpose_joined(Build *b, const Node *second)
{
    const Node *first = in(second, 0);
    const int rank = second->type->rank;
    int64_t order[MAX_RANK];
    bool same = true;
    for (int i = 0; i < rank; i++) {
        order[i] = transpose_source(first, transpose_source(second, i));
        same = same && order[i] == i;
    }
    return same ? in(first, 0) : make_transpose(b, in(first, 0), rank, order);
}
