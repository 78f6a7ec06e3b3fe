#include "passes/open_sequences.h"

#include "ops/attrs.h"
#include "ops/make.h"

enum { MOST = 4096 };

/* The one integer that a node is; false when it is not known. */
static bool is_number(const Node *n, int64_t *v)
{
    const Tensor *t = n && n->op == OP_const ? node_constant(n, MOST) : NULL;
    if (!t || t->type->kind != TYPE_TENSOR || tensor_elements(t) != 1)
        return false;
    *v = tensor_get_i64(t, 0);
    return true;
}

Node *item_of_construct(const Node *construct, const Node *at)
{
    int64_t i;
    if (!is_number(at, &i))
        return NULL;
    i += i < 0 ? construct->n_in : 0;
    return i < 0 || i >= construct->n_in ? NULL : in(construct, (int)i);
}

/* Where part i of an axis begins and ends; false when it is not known or not there. */
static bool part_of(const Node *split, int64_t extent, int64_t i, int64_t *from, int64_t *to)
{
    const Node *lengths = in(split, 1);
    const Tensor *t = lengths && lengths->op == OP_const ? node_constant(lengths, MOST) : NULL;
    if (lengths && !t)
        return false;
    const bool listed = t && t->type->rank > 0;
    const int64_t each = t && !listed ? tensor_get_i64(t, 0) : 1;
    const int64_t n = listed ? tensor_elements(t) : each > 0 ? extent / each + (extent % each != 0) : 0;
    i += i < 0 ? n : 0;
    if (i < 0 || i >= n)
        return false;
    *from = listed ? 0 : i * each;
    for (int64_t k = 0; listed && k < i; k++)
        *from += tensor_get_i64(t, k);
    *to = *from + (listed ? tensor_get_i64(t, i) : each);
    *to = *to > extent ? extent : *to;
    return true;
}

Node *item_of_split(Build *b, const Node *split, const Node *at)
{
    const SplitItemsAttr *attr = split->attr;
    Node *x = in(split, 0);
    const int rank = x->type->kind == TYPE_TENSOR ? x->type->rank : -1;
    const int64_t axis = attr->axis < 0 ? attr->axis + rank : attr->axis;
    int64_t i, from, to;
    if (rank < 1 || !is_number(at, &i) || x->type->dims[axis] < 0 ||
        !part_of(split, x->type->dims[axis], i, &from, &to))
        return NULL;
    if (!in(split, 1) && !attr->keepdims)
        return make_gather(b, x, build_scalar(b, I64, (double)from), (int)axis);
    return make_slice(b, x, (int)axis, from, to, 1);
}
