/* C-11: contractions add up in f32 whatever they read and give, so a cast of the result is a matter of `out`. */
#include "passes/amp/cast_rules.h"

static const AttrSpec *out_of(const Node *n)
{
    return attr_find(op_of(n)->attrs, str("out"));
}

static int said_out(const Node *n)
{
    const AttrSpec *out = out_of(n);
    return out ? *(const int *)attr_at(out, n->attr) : 0;
}

static bool is_read_on_its_side(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user) && side_of(u->user) != side_of(n))
            return false;
    return true;
}

static bool is_read_once(const Node *n)
{
    return n->uses && !n->uses->next;
}

/* What is saved for another side stays narrow. */
bool may_give_wide(const Match *m)
{
    const Node *call = m->node[1];
    return is_wide(m->root) && is_narrow(call) && out_of(call) && is_read_once(call) &&
           side_of(call) == side_of(m->root) && is_read_on_its_side(m->root);
}

bool may_give_narrow(const Match *m)
{
    const Node *call = m->node[1];
    return is_narrow(m->root) && is_wide(call) && said_out(call) == (int)F32 + 1 && is_read_once(call) &&
           m->x[0]->type->kind == TYPE_TENSOR && m->x[0]->type->dtype == m->root->type->dtype;
}

Node *give_as_cast(Build *b, const Match *m)
{
    const Node *call = m->node[1];
    const OpDef *def = op_of(call);
    void *attr = attrs_copy(b->graph->arena, def->attrs, call->attr);
    Node **ins = NEWS(b->graph->arena, Node *, call->n_in);
    for (int i = 0; i < call->n_in; i++)
        ins[i] = in(call, i);
    *(int *)attr_at(out_of(call), attr) = is_wide(m->root) ? (int)F32 + 1 : 0;
    Build own = build_as(b, call);
    Node *y = build_node(&own, call->op, attr, call->n_in, ins);
    b->status = own.status;
    if (y)
        y->name = call->name; /* which goes: nobody else read it */
    return y;
}
