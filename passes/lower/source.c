#include "passes/lower/source.h"

#include "ops/card/access.h"

/* Whether nothing but constants say where its elements go: what only a run knows, it has to be asked. */
static bool is_steered_by_constants(const Node *n)
{
    const uint32_t steer = op_of(n)->access.steer;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && steer >> (i < 31 ? i : 31) & 1 && in(n, i)->op != OP_const)
            return false;
    return true;
}

/* A look that leaves all elements in their order: other looks become moves when they are lowered. */
static bool is_flat_view(const Node *n, int result, int operand, Arena *scratch)
{
    const Type *from = in(n, operand)->type;
    Iteration walk;
    return from->kind == TYPE_TENSOR && access_alias_said(n, result, operand) == ALIAS_VIEW &&
           access_alias(n, result, operand, scratch) == ALIAS_VIEW && access_iterate(n, scratch, &walk) &&
           walk.in[operand].reach == REACH_FLAT && is_steered_by_constants(n);
}

Source source_find(const Node *n, int result, Arena *scratch)
{
    if (n->op == OP_part)
        return (Source){ in(n, 0), (int)((const PartAttr *)n->attr)->index };
    if (node_is_holder(n)) /* a tuple */
        return (Source){ in(n, result), 0 };
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && is_flat_view(n, result, i, scratch))
            return (Source){ in(n, i), 0 };
    return (Source){ NULL, 0 };
}
