/* What reverse mode asks of operands, for its own files. */
#ifndef OPS_CONTROL_REVERSE_CALL_H
#define OPS_CONTROL_REVERSE_CALL_H

#include "ops/card/make.h"
#include "ops/control/reverse.h"

/* Whether a call moves what its operand 0 holds: of codes that stand for numbers it gives such. */
static inline bool reverse_moves_codes(const Node *n)
{
    return n->op == OP_reshape || n->op == OP_flatten || n->op == OP_squeeze || n->op == OP_unsqueeze ||
           n->op == OP_transpose || n->op == OP_slice || n->op == OP_max_pool;
}

/* Whether a value is codes that stand for numbers, whose gradient is that of the numbers: though the codes are integers, and
 * wider than they are. */
static inline bool reverse_is_codes(const Node *n)
{
    if (n->type->kind != TYPE_TENSOR)
        return false;
    while (dtype_is_integer(n->type->dtype) && reverse_moves_codes(n))
        n = in(n, 0);
    const int k = n->op == OP_part ? (int)((const PartAttr *)n->attr)->index : 0;
    const Node *call = n->op == OP_part ? in(n, 0) : n;
    return k < 32 && op_of(call)->gives_codes >> k & 1;
}

/* Whether a gradient may reach a value: a tensor of floats, or of codes that stand for some. */
static inline bool reverse_carries(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && (dtype_is_float(n->type->dtype) || reverse_is_codes(n));
}

/* The type in which gradients of a value come together. */
static inline DType reverse_width(const Node *n)
{
    return reverse_is_codes(n) ? F32 : make_width(n->type->dtype);
}

/* The value of an operand that expansions and adjoints may ask for: indices, axes and shapes, and small numbers such as an
 * exponent; never a weight. */
static inline const Tensor *reverse_known(const Node *n)
{
    enum { SMALL = 4096 };
    return n ? node_constant(n, reverse_carries(n) ? SMALL : 0) : NULL;
}

#endif
