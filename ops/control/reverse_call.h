/* What reverse mode asks of operands, for its own files. */
#ifndef OPS_CONTROL_REVERSE_CALL_H
#define OPS_CONTROL_REVERSE_CALL_H

#include "ops/control/reverse.h"

/* Whether a gradient may reach a value: a tensor of floats. */
static inline bool reverse_carries(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && dtype_is_float(n->type->dtype);
}

/* The value of an operand that expansions and adjoints may ask for: indices, axes and shapes, and small numbers such as an
 * exponent; never a weight. */
static inline const Tensor *reverse_known(const Node *n)
{
    enum { SMALL = 4096 };
    return n ? node_constant(n, reverse_carries(n) ? SMALL : 0) : NULL;
}

#endif
