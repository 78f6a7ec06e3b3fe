/* Why what is no product stays float, for people: decided when all else is. */
#include <string.h>

#include "ops/card/words.h"
#include "passes/quant/placement.h"

static bool reads_codes(const Node *n, int i)
{
    const QuantRole role = quant_role(&op_of(n)->quant, i);
    return role == QUANT_INPUT || role == QUANT_TABLE || quant_is_side_by_side(n);
}

static bool is_codes(Placement *p, const Node *value)
{
    return value && (quant_value(p, value)->by || op_of(value)->quant.dequantizes);
}

/* Whether a call computes on numbers that come from data, so that somebody might expect it on codes. */
static bool is_expected(Placement *p, const Node *n)
{
    const OpDef *def = op_of(n);
    const QuantRole role = def->quant.in[0];
    const Type *first = n->type->kind == TYPE_TUPLE ? type_result(n->type, 0) : n->type;
    return first->kind == TYPE_TENSOR && first->dtype == F32 && n->n_in && in(n, 0) && !def->structural &&
           !op_moves(def) &&
           (role == QUANT_FLOAT || role == QUANT_TABLE || role == QUANT_INPUT || role == QUANT_WEIGHT) &&
           *(bool *)fact(&p->data, n) && !quant_call(p, n)->core && !quant_call(p, n)->why;
}

/* What hinders a call that could be one of codes; null: nothing does. */
static const char *operand_hinders(Placement *p, Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *value = in(n, i);
        if (!reads_codes(n, i) || is_codes(p, value))
            continue;
        if (!value || quant_weight_of(value))
            return "one of its operands is a parameter or a constant";
        if (!quant_call(p, value)->could)
            return "one of its operands is floats anyway";
    }
    return NULL;
}

static const char *why_left(Placement *p, Node *n)
{
    const QuantCallMark *c = quant_call(p, n);
    bool all = true;
    for (int i = 0; i < n->n_in; i++)
        all &= !reads_codes(n, i) || is_codes(p, in(n, i));
    if (c->in == WAY_OFF || c->out == WAY_OFF)
        return arena_printf(p->g->arena, "is to stay as it is: %s", c->by);
    if (quant_summed_product(p, n) >= 0)
        return NULL;
    if (op_of(n)->quant.in[0] == QUANT_FLOAT || n->type->kind == TYPE_TUPLE)
        return "is computed of floats, whatever the target";
    if (!quant_may_join(p, n))
        return quantization_target(p->recipe)->alone;
    if (all)
        return NULL;
    const char *why = operand_hinders(p, n);
    return why ? why : "nobody asks for codes of what it gives: it would cost the way there and back";
}

void quant_find_left(Placement *p)
{
    for (Node *n = p->g->first; n; n = n->next)
        if (!(n->flags & NODE_BACKWARD) && is_expected(p, n))
            quant_call(p, n)->left = why_left(p, n);
}
