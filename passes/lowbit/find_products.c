/* Which calls multiply by a trained weight, and which on the way back make the gradients of their data and weights.
 *
 * A gradient's product carries the place of the call that it belongs to, and reads the same weight, or the same data. */
#include "base/hash.h"
#include "passes/lowbit/products.h"
#include "passes/quant/placement.h"

enum { FARTHEST = 64 }; /* calls between a value and what it is a view of */

/* Whether a call has the elements of its operand in their order. */
static bool is_view(const Node *n)
{
    return n->op == OP_amp_cast || n->op == OP_reshape || n->op == OP_flatten || n->op == OP_squeeze ||
           n->op == OP_unsqueeze || n->op == OP_identity;
}

Node *value_behind(Node *n)
{
    for (int i = 0; i < FARTHEST && is_view(n); i++)
        n = in(n, 0);
    return n;
}

/* The trained state that an operand is, moved and cast at most; null: it is computed from data. */
static Node *trained_weight(Node *operand)
{
    for (int i = 0; i < FARTHEST && operand && operand->op == OP_amp_cast; i++)
        operand = in(operand, 0);
    Node *weight = quant_weight_of(operand);
    return weight && weight->op == OP_state && weight->flags & NODE_TRAINED ? weight : NULL;
}

/* Operands that were narrowed before they were moved. */
static Node *weight_behind(Node *operand)
{
    Node *weight = trained_weight(operand);
    for (int i = 0; i < FARTHEST && !weight && operand && op_moves(op_of(operand)) && operand->n_in; i++) {
        operand = in(operand, 0);
        weight = trained_weight(operand);
    }
    return weight;
}

static bool is_forward(const Node *n)
{
    return !(n->flags & (NODE_BACKWARD | NODE_UPDATE)) && !node_is_return(n);
}

static bool is_float(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && type_known(n->type) && n->type->rank >= 2 &&
           (n->type->dtype == F32 || n->type->dtype == F16 || n->type->dtype == BF16);
}

static bool multiplies(const Node *n)
{
    return (n->op == OP_matmul || n->op == OP_gemm || n->op == OP_conv) && is_float(n) && is_float(in(n, 0)) &&
           is_float(in(n, 1));
}

/* ---- the products of a layer ---- */

static bool of_one_place(const Node *a, const Node *b)
{
    return a->src == b->src && a->label == b->label;
}

/* Only looked up: what follows of it has no order. */
static uint64_t place_key(const Node *n)
{
    return hash_word(n->src + 1, (uint64_t)(uintptr_t)n->label);
}

/* The operand of a backward product that is a weight's; -1: none, or both. */
static int weight_operand(const Node *n, const Node *weight)
{
    const bool a = n->op != OP_conv_transpose && weight_behind(in(n, 0)) == weight,
               b = weight_behind(in(n, 1)) == weight;
    return a == b ? -1 : b;
}

/* Lets a backward call be a product of a layer, where it is one. */
static bool join(Layer *l, Node *n)
{
    const bool conv = l->call[PRODUCT_OUTPUT]->op == OP_conv;
    const Node *x = value_behind(in(l->call[PRODUCT_OUTPUT], l->data[PRODUCT_OUTPUT]));
    const int weight = n->op == (conv ? OP_conv_transpose : OP_matmul) ? weight_operand(n, l->weight) : -1;
    if (!is_float(n) || !is_float(in(n, 0)) || !is_float(in(n, 1)) || !of_one_place(n, l->call[PRODUCT_OUTPUT]))
        return false;
    if (weight >= 0 && !l->call[PRODUCT_GRAD_INPUT]) {
        l->call[PRODUCT_GRAD_INPUT] = n;
        l->data[PRODUCT_GRAD_INPUT] = 1 - weight;
        return true;
    }
    if (weight >= 0 || l->call[PRODUCT_GRAD_WEIGHT] || n->op != (conv ? OP_conv_weight_grad : OP_matmul))
        return false;
    for (int i = 0; i < (conv ? 1 : 2); i++)
        if (value_behind(in(n, i)) == x) {
            l->call[PRODUCT_GRAD_WEIGHT] = n;
            l->data[PRODUCT_GRAD_WEIGHT] = i;
            return true;
        }
    return false;
}

static void add_layer(Layers *to, Node *call, Arena *scratch)
{
    Node *a = call->op == OP_conv ? NULL : weight_behind(in(call, 0)), *b = weight_behind(in(call, 1));
    if ((a != NULL) == (b != NULL))
        return;
    MapEntry *place = map_put_u64(&to->places, place_key(call), NULL);
    GROW(scratch, to->list, to->n, to->cap);
    to->list[to->n++] =
        (Layer){ .call = { call }, .data = { b ? 0 : 1 }, .weight = a ? a : b, .next = (size_t)place->value.i };
    place->value.i = (int64_t)to->n;
}

/* Lets a call of the way back join the layer that it belongs to. */
static void find_layer(Layers *to, Node *n)
{
    const MapEntry *place = map_find_u64(&to->places, place_key(n));
    for (size_t i = place ? (size_t)place->value.i : 0; i; i = to->list[i - 1].next)
        if (join(&to->list[i - 1], n))
            return;
}

/* ---- first and last ---- */

static void find_ends(Layers *to, const Graph *g, Arena *scratch)
{
    Facts is_layer = facts_open(scratch, sizeof(bool)), before = facts_open(scratch, sizeof(bool)),
          behind = facts_open(scratch, sizeof(bool));
    for (size_t i = 0; i < to->n; i++)
        *(bool *)fact(&is_layer, to->list[i].call[PRODUCT_OUTPUT]) = true;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in && is_forward(n); i++)
            if (in(n, i))
                *(bool *)fact(&before, n) |= *(bool *)fact(&before, in(n, i)) || *(bool *)fact(&is_layer, in(n, i));
    for (const Node *n = g->last; n; n = n->prev)
        for (const Use *u = n->uses; u; u = u->next)
            if (is_forward(u->user))
                *(bool *)fact(&behind, n) |= *(bool *)fact(&behind, u->user) || *(bool *)fact(&is_layer, u->user);
    for (size_t i = 0; i < to->n; i++) {
        const Node *call = to->list[i].call[PRODUCT_OUTPUT];
        to->list[i].first = call->op == OP_conv && !*(bool *)fact(&before, call);
        to->list[i].last = !*(bool *)fact(&behind, call);
    }
}

void layers_find(Layers *to, Graph *g, Arena *scratch)
{
    map_open(&to->places, scratch);
    for (Node *n = g->first; n; n = n->next)
        if (is_forward(n) && multiplies(n))
            add_layer(to, n, scratch);
    for (Node *n = g->first; n; n = n->next)
        if (n->flags & NODE_BACKWARD)
            find_layer(to, n);
    find_ends(to, g, scratch);
}
