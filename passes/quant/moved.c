/* What only puts elements somewhere else: codes may go through it, and one scale with them; and what lays values side
 * by side, which has codes of a scale of its own of codes of others. */
#include "ops/card/words.h"
#include "passes/quant/placement.h"

static bool is_f32(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && n->type->dtype == F32;
}

static bool is_plain(const Node *n)
{
    return !op_of(n)->row && op_of(n)->mode == MODE_PURE && !n->n_regions && n->n_in && is_f32(in(n, 0)) &&
           op_of(n)->quant.in[0] == QUANT_AGNOSTIC && op_of(n)->quant.out[0] == QUANT_AGNOSTIC;
}

Node *quant_moved_from(const Node *n)
{
    const bool part = n->op == OP_part;
    const Node *call = part ? in(n, 0) : n;
    if (!is_f32(n) || !is_plain(call) || (part && !op_moves(op_of(call))))
        return NULL;
    for (int i = 1; i < call->n_in; i++)
        if (in(call, i) && quant_role(&op_of(call)->quant, i) != QUANT_NEVER)
            return NULL;
    return in(call, 0);
}

bool quant_is_side_by_side(const Node *n)
{
    if (!is_f32(n) || !op_moves(op_of(n)) || !is_plain(n) || n->n_in < 2)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (!is_f32(in(n, i)) || quant_role(&op_of(n)->quant, i) != QUANT_AGNOSTIC)
            return false;
    return true;
}
