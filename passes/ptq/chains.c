#include "passes/ptq/chains.h"

#include <math.h>

#include "ops/card/words.h"
#include "passes/quant/placement.h"

Node *chain_number(Node *n)
{
    while (n && n->flags & NODE_OURS && op_of(n)->quant.dequantizes && in(n, 0) && in(n, 0)->flags & NODE_OURS &&
           op_of(in(n, 0))->quant.quantizes)
        n = in(in(n, 0), 0);
    return n;
}

Node *chain_state(Node *operand)
{
    Node *n = chain_number(operand);
    return n && n->op == OP_state && n->type->kind == TYPE_TENSOR && type_known(n->type) && n->type->dtype == F32
               ? n
               : NULL;
}

int chain_weight(const Node *call)
{
    if (op_of(call)->access.kind != ACCESS_CONTRACT)
        return -1;
    for (int i = 0; i < 2 && i < call->n_in; i++)
        if (quant_role(&op_of(call)->quant, i) == QUANT_WEIGHT && chain_state(in(call, i)))
            return i;
    return -1;
}

int chain_bias(const Node *call)
{
    for (int i = 2; i < call->n_in; i++)
        if (quant_role(&op_of(call)->quant, i) == QUANT_BIAS && chain_state(in(call, i)))
            return i;
    return -1;
}

/* ---- channels ---- */

static int64_t groups_of(const Node *call)
{
    const AttrSpec *a = attr_find(op_of(call)->attrs, str("group"));
    return a ? *(const int64_t *)attr_at(a, call->attr) : 1;
}

/* The dimension of a weight that counts channels of what is read, and how many of its indices are a channel. */
static bool reads_channels(const Node *call, int weight, Chain *c)
{
    const Type *w = c->next->type;
    const int out = quant_weight_axis(call, weight), into = 1 - out;
    const int64_t groups = groups_of(call);
    if (weight != 1 || out < 0 || out > 1 || w->rank < 2)
        return false;
    c->next_axis = groups == 1 ? into : out;
    c->repeat = groups == 1 ? 1 : w->dims[out] / (groups ? groups : 1);
    return groups == 1 ? w->dims[into] == c->channels
                       : out == 0 && groups == c->channels && w->dims[into] == 1 && w->dims[out] % groups == 0;
}

/* Whether the first layer gives each index of its weight's dimension as a channel, with one number of a bias for each. */
static bool gives_channels(const Node *call, int weight, Chain *c)
{
    const Type *w = c->weight->type, *y = call->type;
    c->axis = quant_weight_axis(call, weight);
    if (weight != 1 || c->axis < 0 || (groups_of(call) > 1 && c->axis) || y->rank < 2 || y->rank != w->rank)
        return false;
    c->channels = w->dims[c->axis];
    const int bias = chain_bias(call);
    c->bias = bias >= 0 ? chain_state(in(call, bias)) : NULL;
    if (call->n_in > 2 && in(call, 2) && !c->bias)
        return false;
    return !c->bias || (c->bias->type->rank == 1 && c->bias->type->dims[0] == c->channels);
}

/* ---- what stands between ---- */

/* The one reader of a value, whatever quantizers stand between; null: there are several, or it leaves the graph. */
static Node *reader_of(Node *n)
{
    for (;;) {
        if (node_n_uses(n) != 1 || node_is_return(n->uses->user))
            return NULL;
        Node *user = n->uses->user;
        const bool pair = user->flags & NODE_OURS && (op_of(user)->quant.quantizes || op_of(user)->quant.dequantizes);
        if (!pair || in(user, 0) != n)
            return user;
        n = user;
    }
}

/* What observers see is not read by the model. */
static Node *model_reader(Node *n, Node **value)
{
    Node *one = reader_of(n);
    *value = n;
    return one;
}

/* Whether a factor above 0 goes through: a Relu, or a Clip from 0 on, whose upper bound is noted. */
static bool lets_through(const Node *n, Chain *c)
{
    const double most = quant_clip_from_0(n);
    if (!isnan(most))
        c->most = most;
    return !isnan(most) || n->op == OP_relu;
}

static bool find_chain(Node *first, Chain *c)
{
    Node *value, *user = model_reader(first, &value);
    const int weight = chain_weight(first);
    *c = (Chain){ .first = first, .most = (double)INFINITY };
    if (weight < 0)
        return false;
    c->weight = chain_state(in(first, weight));
    while (user && in(user, 0) && chain_number(in(user, 0)) == value && lets_through(user, c))
        user = model_reader(user, &value);
    if (!user || chain_weight(user) < 0 || chain_number(in(user, 0)) != value)
        return false;
    c->second = user;
    c->between = value;
    c->next = chain_state(in(user, chain_weight(user)));
    return gives_channels(first, weight, c) && reads_channels(user, chain_weight(user), c) &&
           c->next->type->rank == c->second->type->rank;
}

/* A state that others read too would be another for them. */
static bool is_its_own(const Node *state)
{
    int readers = 0;
    for (const Use *u = state->uses; u; u = u->next)
        readers += !(u->user->flags & NODE_OURS) || op_of(u->user)->quant.quantizes;
    return readers == 1;
}

Chain *chains_of(Graph *g, Arena *arena, size_t *n)
{
    Chain *list = NULL, c;
    size_t cap = 0;
    *n = 0;
    for (Node *k = g->first; k; k = k->next) {
        if (!find_chain(k, &c) || !is_its_own(c.weight) || !is_its_own(c.next) || (c.bias && !is_its_own(c.bias)))
            continue;
        GROW(arena, list, *n, cap);
        list[(*n)++] = c;
    }
    return list;
}
