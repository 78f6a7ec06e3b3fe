/* Changes a graph to what the labels say. */
#include "passes/amp/narrow_graph.h"

/* ---- forms of a value ---- */

/* Of what reads a value; results and updates read on the value's own side. */
static uint16_t side_of(const Node *reader, const Node *value)
{
    return (node_is_return(reader) || reader->flags & NODE_UPDATE ? value : reader)->flags & NODE_BACKWARD;
}

/* A conversion of `form` that may serve a reader: of its own side, unless it narrows, which serves both. */
static Node *cast_at_hand(AmpGraph *a, const Node *form, DType to, const Node *reader)
{
    for (const Use *u = form->uses; u; u = u->next) {
        const Node *c = u->user;
        if (c->op == OP_amp_cast && c->type->dtype == to &&
            (to != F32 || (amp_may_change(a, c) && (c->flags & NODE_BACKWARD) == side_of(reader, form))))
            return u->user;
    }
    return NULL;
}

/* Where a new conversion stands: narrowing behind what it narrows, widening before its reader. */
static Node *place_for(AmpGraph *a, Node *form, DType to, Node *reader)
{
    Node *const at = node_is_return(reader) ? NULL : reader;
    if (to == F32 || !amp_may_change(a, form))
        return at;
    return node_is_input(form) || form->op == OP_state ? form->graph->first : form->next;
}

static Node *converted(AmpGraph *a, Node *form, DType to, Node *reader)
{
    Node *c = cast_at_hand(a, form, to, reader);
    if (c) {
        if (amp_may_change(a, c) && !amp_note(a, c)->placed && !node_is_return(reader))
            node_move(c, reader);
        amp_note(a, c)->placed = true;
        return c;
    }
    Build b = build_at_end(form->graph);
    b.before = place_for(a, form, to, reader);
    b.flags = NODE_OURS | (to == F32 || !amp_may_change(a, form) ? side_of(reader, form) : form->flags & NODE_BACKWARD);
    c = build_amp_cast(&b, form, to);
    amp_note(a, c)->placed = true;
    a->inserted++;
    return c;
}

/* The value in the width in which a reader takes it. */
static Node *form_of(AmpGraph *a, Node *value, DType wanted, Node *reader)
{
    Node *stored = value;
    if (value->type->dtype == F32 && (wanted != F32 || amp_label(a, value) == AMP_NARROW))
        stored = converted(a, value, a->narrow, reader);
    return stored->type->dtype == wanted ? stored : converted(a, stored, wanted, reader);
}

/* ---- nodes ---- */

static void retype(AmpGraph *a, Node *n, bool narrow)
{
    n->type = amp_type(a, n->type, narrow ? a->narrow : F32);
    amp_note(a, n)->narrowed = narrow;
}

/* The first value that a call gives in its own type. */
static const Node *first_value(AmpGraph *a, const Node *n)
{
    for (int k = 0; k < type_results(n->type); k++) {
        const Node *part = amp_part(n, k);
        if (part && amp_is_value(a, part) && !amp_has(amp_note(a, n)->role.wide_out, k))
            return part;
    }
    return NULL;
}

/* Whether a call is of the narrow type itself. */
static bool computes_narrow(AmpGraph *a, const Node *n)
{
    const AmpClass c = amp_note(a, n)->role.class;
    const Node *value = first_value(a, n);
    if (c == AMP_T)
        return true;
    if ((c != AMP_P && c != AMP_PW && c != AMP_PM) || !value || amp_label(a, value) != AMP_NARROW)
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = amp_origin(a, in(n, i));
        if (amp_reading(a, n, i) == AMP_WITH_US && amp_label(a, def) != AMP_NARROW && amp_rounds_behind(a, n, def) &&
            !amp_copied(a, def))
            return false;
    }
    return true;
}

static void set_operands(AmpGraph *a, Node *n, bool narrow)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *def = in(n, i), *value = amp_origin(a, def);
        const AmpReading reading = amp_reading(a, n, i);
        if (!def)
            continue;
        if (reading != AMP_NOT_READ)
            value =
                form_of(a, value, reading == AMP_NARROWLY || (reading == AMP_WITH_US && narrow) ? a->narrow : F32, n);
        if (value != def)
            node_set_in(n, i, value);
    }
}

/* Says, or no longer says, by an attribute of ours that a result of narrow operands is given wide. */
static void say_wide(AmpGraph *a, Node *n, const char *which, bool wide)
{
    const AttrSpec *out = attr_find(op_of(n)->attrs, str(which));
    const int to = wide ? F32 + 1 : 0;
    if (!out || out->kind != ATTR_DTYPE || !out->ours || *(const int *)attr_at(out, n->attr) == to)
        return;
    void *attr = attrs_copy(a->g->arena, op_of(n)->attrs, n->attr);
    *(int *)attr_at(out, attr) = to;
    n->attr = attr;
}

/* Whether result k of a call, read or not, is a value. */
static bool result_is_value(AmpGraph *a, const Node *n, int k)
{
    const Node *part = amp_part(n, k);
    const Type *t = type_result(n->type, k);
    if (part)
        return amp_is_value(a, part);
    const bool narrowed = amp_has_open_body(n) ? amp_body_narrowed(a, n, k) : amp_note(a, n)->narrowed;
    return t->kind == TYPE_TENSOR && (t->dtype == F32 || ((t->dtype == F16 || t->dtype == BF16) && narrowed));
}

static void retype_parts(AmpGraph *a, const Node *n, int k, bool narrow)
{
    for (const Use *u = n->type->kind == TYPE_TUPLE ? n->uses : NULL; u; u = u->next)
        if (u->user->op == OP_part && ((const PartAttr *)u->user->attr)->index == k)
            retype(a, u->user, narrow);
}

static void set_types(AmpGraph *a, Node *n, bool (*is_narrow)(AmpGraph *a, const Node *n, int k))
{
    const int n_out = type_results(n->type);
    const Type **types = NEWS(a->run->scratch, const Type *, n_out + 1);
    bool any = false;
    for (int k = 0; k < n_out; k++) {
        const bool value = result_is_value(a, n, k), narrow = value && is_narrow(a, n, k);
        types[k] = type_result(n->type, k);
        if (!value)
            continue;
        types[k] = amp_type(a, types[k], narrow ? a->narrow : F32);
        retype_parts(a, n, k, narrow);
        any |= narrow;
    }
    n->type = n->type->kind == TYPE_TUPLE ? type_tuple(&a->g->ir->types, n_out, types) : types[0];
    amp_note(a, n)->narrowed = any;
}

static bool result_is_narrow(AmpGraph *a, const Node *n, int k)
{
    const AmpNote *note = amp_note(a, n);
    const Node *part = amp_part(n, k);
    if (amp_has(note->role.wide_out, k))
        return false;
    return note->role.class != AMP_T || !amp_says_result(n) || (part && amp_label(a, part) == AMP_NARROW);
}

static bool result_is_wide(AmpGraph *a, const Node *n, int k)
{
    (void)a, (void)n, (void)k;
    return false;
}

static void place_call(AmpGraph *a, Node *n)
{
    const bool narrow = computes_narrow(a, n);
    set_operands(a, n, narrow);
    if (amp_note(a, n)->role.class == AMP_T) {
        say_wide(a, n, "out", !result_is_narrow(a, n, 0));
        say_wide(a, n, "state_type", amp_note(a, n)->role.wide_out >> 1 != 0);
    }
    set_types(a, n, narrow ? result_is_narrow : result_is_wide);
}

/* ---- bodies ---- */

static bool slot_is_narrow(AmpGraph *a, const Node *n, int k)
{
    const Node *part = amp_part(n, k), *parameter = amp_carried(a, n, k);
    const Node *of = parameter ? parameter : part;
    return of && amp_label(a, of) == AMP_NARROW;
}

static void enter_body(AmpGraph *a, Node *n)
{
    set_types(a, n, slot_is_narrow); /* while parameters are noted as they were */
    for (int i = 0; i < n->n_in; i++) {
        const int k = amp_body_parameter(n, i);
        Node *value = amp_origin(a, in(n, i));
        if (!value || k < 0 || (size_t)k >= n->regions[0]->n_inputs || !amp_is_value(a, value))
            continue;
        const bool narrow = amp_label(a, n->regions[0]->inputs[k]) == AMP_NARROW;
        node_set_in(n, i, form_of(a, value, narrow ? a->narrow : F32, n));
        for (int r = 0; r < n->n_regions; r++)
            if (amp_is_value(a, n->regions[r]->inputs[k]))
                retype(a, n->regions[r]->inputs[k], narrow);
    }
}

static void leave_body(AmpGraph *a, Node *n)
{
    for (int k = 0; k < type_results(n->type); k++)
        for (int r = 0; r < n->n_regions; r++) {
            const int at = amp_body_result(n, k);
            Node *ret = n->regions[r]->ret;
            Node *value = at < ret->n_in ? amp_origin(a, in(ret, at)) : NULL;
            if (value && amp_is_value(a, value))
                node_set_in(ret, at, form_of(a, value, slot_is_narrow(a, n, k) ? a->narrow : F32, ret));
        }
}

/* ---- the graph ---- */

/* What leaves the graph keeps its name: with its own type, or as it is without amp_casts. */
static void set_results(AmpGraph *a, bool stripped)
{
    const int n = graph_n_results(a->g);
    const char **names = NEWS(a->g->arena, const char *, n + 1);
    Node **results = NEWS(a->g->arena, Node *, n + 1);
    bool changed = false;
    for (int i = 0; i < n; i++) {
        Node *value = amp_origin(a, graph_result(a->g, i));
        results[i] = graph_result(a->g, i);
        names[i] = graph_result_name(a->g, i);
        if (value && stripped)
            results[i] = value;
        else if (value && amp_is_value(a, value) && amp_may_change(a, value))
            results[i] = form_of(a, value, F32, a->g->ret);
        changed |= results[i] != graph_result(a->g, i);
        if (results[i] && names[i] == results[i]->name)
            names[i] = NULL;
    }
    if (changed)
        graph_return_marked(a->g, n, results, names, a->g->marks);
}

/* An update is left as it is: it reads wide what it read. */
static void serve_update(AmpGraph *a, Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *value = in(n, i) ? amp_origin(a, in(n, i)) : NULL;
        if (!value || !amp_is_value(a, value) || !amp_may_change(a, value))
            continue;
        Node *form = form_of(a, value, F32, n);
        if (form != in(n, i))
            node_set_in(n, i, form);
    }
}

/* Conversions that nobody reads any more. */
static void drop_unread(AmpGraph *a)
{
    for (size_t i = a->n; i-- > 0;)
        if (a->nodes[i]->op == OP_amp_cast && !a->nodes[i]->uses && amp_may_change(a, a->nodes[i])) {
            node_remove(a->nodes[i]);
            a->removed++;
        }
}

void amp_place(AmpGraph *a)
{
    for (size_t i = 0; i < a->n; i++) {
        Node *n = a->nodes[i];
        if (!amp_may_change(a, n) || n->op == OP_const || n->op == OP_part)
            continue;
        if (n->op == OP_amp_cast)
            amp_note(a, n)->placed = true;
        else if (amp_has_open_body(n))
            enter_body(a, n);
        else
            place_call(a, n);
    }
    for (size_t i = 0; i < a->n; i++)
        if (amp_may_change(a, a->nodes[i]) && amp_has_open_body(a->nodes[i]))
            leave_body(a, a->nodes[i]);
    for (size_t i = 0; i < a->n; i++)
        if (a->nodes[i]->flags & NODE_UPDATE)
            serve_update(a, a->nodes[i]);
    set_results(a, false);
    drop_unread(a);
}

/* ---- the way back ---- */

static void strip_operands(AmpGraph *a, Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) != amp_origin(a, in(n, i)))
            node_set_in(n, i, amp_origin(a, in(n, i)));
}

static void strip_node(AmpGraph *a, Node *n)
{
    strip_operands(a, n);
    if (in(n, 0) && in(n, 0)->type->kind == TYPE_TENSOR && in(n, 0)->type->dtype == F32) {
        say_wide(a, n, "out", false);
        say_wide(a, n, "state_type", false);
    }
    set_types(a, n, result_is_wide); /* while parameters are noted as they were */
    for (int r = 0; r < n->n_regions && amp_has_open_body(n); r++)
        for (size_t k = 0; k < n->regions[r]->n_inputs; k++)
            if (amp_is_value(a, n->regions[r]->inputs[k]))
                retype(a, n->regions[r]->inputs[k], false);
}

void amp_strip(AmpGraph *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->nodes[i]->op != OP_amp_cast && a->nodes[i]->op != OP_const && a->nodes[i]->op != OP_part)
            strip_node(a, a->nodes[i]);
    for (size_t i = 0; i < a->n; i++)
        for (int r = 0; r < a->nodes[i]->n_regions; r++)
            strip_operands(a, a->nodes[i]->regions[r]->ret);
    set_results(a, true);
    drop_unread(a);
}
