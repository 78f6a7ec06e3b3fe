/* Which operands are weights, and which calls have weights alone quantized: recurrent layers and tables, whose
 * arithmetic stays one of floats. */
#include "ops/card/words.h"
#include "ops/norm/norm.h"
#include "passes/quant/placement.h"

/* Values that may be weights, still to be looked at. */
typedef struct Open {
    Node *list[64];
    size_t n;
} Open;

/* Adds what a call moves: all of it has to be weights. */
static bool open_moved(Open *o, Node *n)
{
    const QuantCard *card = &op_of(n)->quant;
    if (!op_moves(op_of(n)) || op_of(n)->row || op_of(n)->mode != MODE_PURE || n->n_regions ||
        card->out[0] != QUANT_AGNOSTIC || n->type->kind != TYPE_TENSOR || n->type->dtype != F32)
        return false;
    for (int i = n->n_in - 1; i >= 0; i--) {
        if (!in(n, i) || quant_role(card, i) == QUANT_NEVER)
            continue;
        if (quant_role(card, i) != QUANT_AGNOSTIC || o->n == COUNT(o->list))
            return false;
        o->list[o->n++] = in(n, i);
    }
    return true;
}

Node *quant_weight_of(Node *operand)
{
    enum { MOST_SEEN = 256 };
    Open o = { { operand }, operand != NULL };
    Node *first = NULL;
    for (int seen = 0; o.n; seen++) {
        if (seen == MOST_SEEN)
            return NULL;
        Node *n = o.list[--o.n];
        const bool stored = n->op == OP_state || n->op == OP_param || n->op == OP_const;
        if (stored)
            first = first ? first : n;
        else if (n->op == OP_part && in(n, 0)->op == OP_fold_norm)
            o.list[o.n++] = in(in(n, 0), ((const PartAttr *)n->attr)->index ? FOLD_NORM_SHIFT : FOLD_NORM_W);
        else if (!open_moved(&o, n))
            return NULL;
    }
    return first;
}

static bool is_f32(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && n->type->dtype == F32;
}

bool quant_is_recurrent(const Node *n)
{
    const QuantCard *card = &op_of(n)->quant;
    return op_of(n)->access.kind == ACCESS_SCAN && card->in[0] == QUANT_FLOAT && quant_role(card, 1) == QUANT_WEIGHT &&
           is_f32(in(n, 0));
}

bool quant_is_table(const Node *n)
{
    return op_of(n)->quant.in[0] == QUANT_GATHER && is_f32(n) && is_f32(in(n, 0)) && quant_weight_of(in(n, 0));
}

bool quant_is_weight(const Node *call, int i)
{
    const QuantRole role = quant_role(&op_of(call)->quant, i);
    if (!in(call, i) || !quant_weight_of(in(call, i)))
        return false;
    return quant_is_recurrent(call) || quant_is_table(call) ? role == QUANT_WEIGHT || role == QUANT_GATHER : i < 2;
}

bool quant_is_layer(const Node *n)
{
    if (quant_is_table(n))
        return false;
    return quant_is_recurrent(n) ? quant_is_weight(n, 1) || quant_is_weight(n, 2)
                                 : quant_weight_of(in(n, 0)) || quant_weight_of(in(n, 1));
}

/* Why the weights of a recurrent layer, or a table, stay as they are; null: nothing hinders. */
static const char *hindrance(const QuantCallMark *c, const Node *n)
{
    const bool table = quant_is_table(n);
    if (table && !(c->said & 1u << OPERAND_W))
        return "a table stays f32 unless --quant-op says w= of it";
    if (!table && !quant_is_layer(n))
        return "has weights that are computed from data";
    return table && (in(n, 0)->type->rank != 2 || quant_weight_axis(n, 0) != 0) ? "has no rows of a matrix" : NULL;
}

void quant_weights_alone(QuantCallMark *c, const Node *n)
{
    c->floats = !quant_is_table(n);
    c->why = hindrance(c, n);
    c->core = c->spec->of[OPERAND_W].on;
}
