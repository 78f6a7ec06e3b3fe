#include "passes/amp/narrow_graph.h"

#include "ops/control/control.h"

AmpNote *amp_note(AmpGraph *a, const Node *n)
{
    return fact(&a->notes, n);
}

static bool is_narrow(const Type *t)
{
    return t->kind == TYPE_TENSOR && (t->dtype == F16 || t->dtype == BF16);
}

Node *amp_origin(AmpGraph *a, Node *v)
{
    Node *last = v;
    while (v && v->op == OP_amp_cast) {
        last = v;
        v = in(v, 0);
    }
    return v && is_narrow(v->type) && !amp_note(a, v)->narrowed ? last : v;
}

bool amp_is_value(AmpGraph *a, const Node *n)
{
    return n->type->kind == TYPE_TENSOR && (n->type->dtype == F32 || (is_narrow(n->type) && amp_note(a, n)->narrowed));
}

static const Node *outermost(const Node *n)
{
    while (n->graph->owner)
        n = n->graph->owner;
    return n;
}

bool amp_may_change(const AmpGraph *a, const Node *n)
{
    const Node *top = outermost(n);
    if (top->flags & NODE_UPDATE)
        return false;
    return !a->backward || top->flags & NODE_BACKWARD;
}

const Node *amp_producer(const Node *value, int *result)
{
    *result = 0;
    if (value->op != OP_part)
        return value;
    *result = (int)((const PartAttr *)value->attr)->index;
    return in(value, 0);
}

int amp_body_result(const Node *n, int k)
{
    return op_of(n)->body.first_result + k;
}

bool amp_has_open_body(const Node *n)
{
    return op_of(n)->body.open;
}

const Type *amp_type(AmpGraph *a, const Type *type, DType dtype)
{
    return type_with_dtype(&a->g->ir->types, type, dtype);
}

bool amp_says_result(const Node *n)
{
    const AttrSpec *out = attr_find(op_of(n)->attrs, str("out"));
    return out && out->kind == ATTR_DTYPE && out->ours;
}

/* ---- what we typed narrow ---- */

static bool reads_narrowed(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        if (def && is_narrow(def->type) && (def->op == OP_amp_cast || amp_note(a, def)->narrowed))
            return true;
    }
    return false;
}

int amp_body_parameter(const Node *n, int i)
{
    return i - op_of(n)->body.first_operand;
}

static void note_parameters(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const int k = amp_body_parameter(n, i);
        const Node *def = in(n, i);
        for (int r = 0; def && k >= 0 && r < n->n_regions; r++)
            if ((size_t)k < n->regions[r]->n_inputs && is_narrow(n->regions[r]->inputs[k]->type))
                amp_note(a, n->regions[r]->inputs[k])->narrowed = def->op == OP_amp_cast || amp_note(a, def)->narrowed;
    }
}

/* Of a result of a call with regions: what its body gives. */
bool amp_body_narrowed(AmpGraph *a, const Node *call, int k)
{
    const Graph *body = call->regions[0];
    const int at = amp_body_result(call, k);
    const Node *def = at < graph_n_results(body) ? graph_result(body, at) : NULL;
    return def && (def->op == OP_amp_cast || amp_note(a, def)->narrowed);
}

static bool is_narrowed(AmpGraph *a, const Node *n)
{
    int k;
    const Node *p = amp_producer(n, &k);
    if (n->type->kind == TYPE_TUPLE && !amp_has_open_body(n))
        return reads_narrowed(a, n);
    if (!is_narrow(n->type) || n->op == OP_amp_cast || !p)
        return false;
    return amp_has_open_body(p) ? amp_body_narrowed(a, p, k) : reads_narrowed(a, p);
}

/* Bodies before the calls whose results they give. */
static void note_narrowed(AmpGraph *a, Graph *g)
{
    for (Node *n = g->first; n; n = n->next) {
        if (amp_has_open_body(n))
            note_parameters(a, n);
        for (int r = 0; r < n->n_regions; r++)
            note_narrowed(a, n->regions[r]);
        amp_note(a, n)->narrowed = is_narrowed(a, n);
    }
}

void amp_graph_open(AmpGraph *a, Graph *g, PassRun *run)
{
    size_t n = 0;
    *a = (AmpGraph){ .g = g, .run = run };
    a->notes = facts_open(run->scratch, sizeof(AmpNote));
    a->nodes = NEWS(run->scratch, Node *, graph_count(g) + 1);
    for (Node *k = walk_first(g); k; k = walk_next(g, k)) {
        a->nodes[n++] = k;
        a->backward |= (k->flags & NODE_BACKWARD) != 0;
    }
    a->n = n;
    a->problem = (AmpProblem){ .arena = run->scratch };
    note_narrowed(a, g);
}

/* ---- how operands are read ---- */

AmpReading amp_reading(AmpGraph *a, const Node *n, int i)
{
    const AmpNote *note = amp_note(a, n);
    Node *def = amp_origin(a, in(n, i));
    if (!def || !amp_is_value(a, def) || note->role.class == AMP_N)
        return AMP_NOT_READ;
    switch (note->role.class) {
    case AMP_T:
        return amp_has(note->role.wide, i) ? AMP_AS_IT_IS : AMP_NARROWLY;
    case AMP_P:
    case AMP_PW:
    case AMP_PM:
        return amp_has(note->role.wide, i) ? AMP_AS_IT_IS : AMP_WITH_US;
    default:
        return AMP_AS_IT_IS;
    }
}

/* ---- calls with several results, and bodies ---- */

Node *amp_part(const Node *n, int k)
{
    if (n->type->kind != TYPE_TUPLE)
        return (Node *)(uintptr_t)n;
    for (Use *u = n->uses; u; u = u->next)
        if (u->user->op == OP_part && ((const PartAttr *)u->user->attr)->index == k)
            return u->user;
    return NULL;
}

Node *amp_carried(AmpGraph *a, const Node *n, int k)
{
    int operand, result;
    for (int i = 0; state_of_call(n, i, &operand, &result); i++)
        if (result == amp_body_result(n, k) && amp_is_value(a, n->regions[0]->inputs[operand]))
            return n->regions[0]->inputs[operand];
    return NULL;
}
