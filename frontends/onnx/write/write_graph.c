/* Graphs as GraphProtos: nodes in list order, regions as bodies that read what is around them by name. */
#include <string.h>

#include "frontends/onnx/write/writer.h"
#include "ops/control/control.h"

/* ---- pieces ---- */

void add_node(Writer *w, Level *l, Onnx__NodeProto *o)
{
    GROW(w->arena, l->proto->node, l->proto->n_node, l->cap_node);
    l->proto->node[l->proto->n_node++] = o;
}

void add_initializer(Writer *w, Level *l, Onnx__TensorProto *t)
{
    GROW(w->arena, l->proto->initializer, l->proto->n_initializer, l->cap_initializer);
    l->proto->initializer[l->proto->n_initializer++] = t;
}

void add_type(Writer *w, Level *l, const char *name, const Type *type)
{
    GROW(w->arena, l->proto->value_info, l->proto->n_value_info, l->cap_info);
    l->proto->value_info[l->proto->n_value_info++] = encode_value(w->arena, name, type);
}

Onnx__NodeProto *new_node(Writer *w, const char *op, const char *domain)
{
    Onnx__NodeProto *o = NEW(w->arena, Onnx__NodeProto);
    onnx__node_proto__init(o);
    o->has_op_type = 1;
    o->op_type = encode_text(op);
    o->has_domain = domain[0] != 0;
    o->domain = encode_text(domain);
    w->needs_qcc = w->needs_qcc || strcmp(domain, QCC_DOMAIN) == 0;
    w->needs_preview = w->needs_preview || strcmp(domain, ONNX_PREVIEW) == 0;
    return o;
}

Onnx__NodeProto *add_identity(Writer *w, Level *l, const char *from, const char *to, const Type *type)
{
    const bool standard = encode_admits("Identity", w->opset, type);
    Onnx__NodeProto *o = standard ? new_node(w, "Identity", "") : new_node(w, "identity", QCC_DOMAIN);
    o->input = NEWS(w->arena, ProtobufCBinaryData, 1);
    o->output = NEWS(w->arena, ProtobufCBinaryData, 1);
    o->input[o->n_input++] = encode_text(from);
    o->output[o->n_output++] = encode_text(to);
    add_node(w, l, o);
    return o;
}

static const char *number(Writer *w, long long n)
{
    return arena_printf(w->arena, "%lld", n);
}

/* ---- results ---- */

/* The parts of a tuple by index, if they stand where a reader puts them: behind it, ascending, with its marks. */
static bool parts_in_place(Writer *w, const Node *n, const Node **parts)
{
    const int n_out = type_results(n->type), least = encode_least_outputs(n, w->opset);
    int found = 0, next = 0;
    for (const Node *p = n->next; p && p->op == OP_part && in(p, 0) == n; p = p->next, found++) {
        const int64_t i = ((const PartAttr *)p->attr)->index;
        const bool marks = p->src == n->src && p->flags == n->flags &&
                           (p->label == n->label || (p->label && n->label && strcmp(p->label, n->label) == 0));
        if (i < next || i >= n_out || !marks || !name_tells(w, value_name(w, p), p->name))
            return false;
        parts[i] = p;
        next = (int)i + 1;
    }
    const Type *inferred = node_infer(n, &(const char *){ NULL });
    for (int i = 0; i < n_out; i++)
        if (!parts[i] && (i < least || !inferred || type_results(inferred) != n_out ||
                          type_result(inferred, i) != n->type->parts[i]))
            return false;
    return found == node_n_uses(n);
}

/* A type that a reader cannot tell, or that has to be said anyway. */
static void state_type(Writer *w, Level *l, const char *name, const Type *type, bool known)
{
    if (type->kind == TYPE_TENSOR)
        w->dtypes |= 1u << type->dtype;
    if (w->state_all || !known)
        add_type(w, l, name, type);
}

/* The results of a tuple: as its parts, or each under a name that nodes of their own read. */
static void write_tuple(Writer *w, Level *l, Onnx__NodeProto *o, const Node *n, bool known)
{
    const int n_out = type_results(n->type);
    const Node **parts = NEWS(w->arena, const Node *, n_out + 1);
    const char **names = NEWS(w->arena, const char *, n_out + 1);
    const bool in_place = parts_in_place(w, n, parts);
    o->output = NEWS(w->arena, ProtobufCBinaryData, n_out + 1);
    for (int i = 0; i < n_out; i++) {
        names[i] = "";
        if (!in_place)
            names[i] = claim_name(w, arena_printf(w->arena, "%s%s%u", w->prefix, QCC_NAMELESS, w->n_nameless++));
        else if (parts[i])
            names[i] = value_name(w, parts[i]);
        o->output[i] = encode_text(names[i]);
        if (!names[i][0])
            continue;
        state_type(w, l, names[i], n->type->parts[i], known);
        o->n_output = (size_t)i + 1;
    }
    if (!n_out || o->n_output != (size_t)n_out)
        note_node(w, o, QCC_OUTPUTS, number(w, n_out));
    if (n->name)
        note_node(w, o, QCC_TUPLE, n->name);
    if (in_place)
        return;
    note_node(w, o, QCC_PARTS, "1");
    map_put_u64(&w->parts, (uintptr_t)n, NULL)->value.p = names;
}

static void write_results(Writer *w, Level *l, Onnx__NodeProto *o, const Node *n, bool known)
{
    if (n->type->kind == TYPE_TUPLE) {
        write_tuple(w, l, o, n, known);
        return;
    }
    const char *name = value_name(w, n);
    o->output = NEWS(w->arena, ProtobufCBinaryData, 1);
    o->output[o->n_output++] = encode_text(name);
    state_type(w, l, name, n->type, known);
    if (!name_tells(w, name, n->name))
        note_node(w, o, QCC_NAME, n->name ? n->name : "");
}

/* ---- calls ---- */

static Status write_operands(Writer *w, Onnx__NodeProto *o, const Node *n)
{
    const int own = own_operands(n);
    o->input = NEWS(w->arena, ProtobufCBinaryData, own + 1);
    for (int i = 0; i < own; i++) {
        if (in(n, i) && in(n, i)->type->kind == TYPE_TUPLE)
            return fail_as(w->diag, UNSUPPORTED, node_place(n), "reads a tuple, which no model can write");
        o->input[o->n_input++] = encode_text(in(n, i) ? value_name(w, in(n, i)) : "");
    }
    while (o->n_input && !o->input[o->n_input - 1].len)
        o->n_input--;
    if (o->n_input != (size_t)own)
        note_node(w, o, QCC_OPERANDS, number(w, own));
    return OK;
}

/* Attributes of ours that a standard node has no room for. */
static void note_attributes(Writer *w, Onnx__NodeProto *o, const Node *n)
{
    static const struct {
        const char *attr, *key;
    } kept[] = { { "stream", QCC_STREAM }, { "operands", QCC_OWN } };
    for (size_t i = 0; i < COUNT(kept); i++) {
        const AttrSpec *s = attr_find(op_of(n)->attrs, str(kept[i].attr));
        if (!s || !s->ours || s->kind != ATTR_INT)
            continue;
        const int64_t value = *(const int64_t *)attr_at(s, n->attr);
        if (i == 1 || value != n->src)
            note_node(w, o, kept[i].key, number(w, value));
    }
}

/* What the bodies take from outside: read by its name there.  A value that is taken twice gets a second name. */
static void note_captures(Writer *w, Level *l, Onnx__NodeProto *o, const Node *n, const char **names)
{
    const int own = own_operands(n);
    Map seen;
    map_open(&seen, w->arena);
    for (int i = own; n->n_regions && i < n->n_in; i++) {
        bool fresh;
        const Node *value = in(n, i);
        names[i - own] = value ? value_name(w, value) : "";
        map_put(&seen, names[i - own], &fresh);
        if (!fresh && value) {
            const char *again = claim_name(w, names[i - own]);
            Onnx__NodeProto *same = add_identity(w, l, names[i - own], again, value->type);
            note_node(w, same, QCC_RESULT, "1");
            names[i - own] = again;
        }
        note_node(w, o, arena_printf(w->arena, QCC_CAPTURE "%d", i - own), names[i - own]);
    }
}

/* Attributes in the order of the card; graphs follow when their levels are opened. */
static Status write_call(Writer *w, Level *l, const Node *n, Onnx__NodeProto **out, const char **captured)
{
    const OpDef *def = op_of(n);
    const bool standard = encode_is_standard(n, w->opset);
    const char *complaint;
    if (n->op == OP_opaque || (def->structural && n->op != OP_tuple))
        return fail_as(w->diag, UNSUPPORTED, node_place(n), "%s of type %s cannot be written anew", def->name,
                       type_text(w->arena, n->type));
    Onnx__NodeProto *o = standard ? new_node(w, def->onnx.op, def->onnx.domain ? def->onnx.domain : "")
                                  : new_node(w, def->name, QCC_DOMAIN);
    *out = o;
    TRY(write_operands(w, o, n));
    TRY(encode_attributes(w->arena, w->diag, n, standard, o));
    note_marks(w, o, n);
    if (n->attr)
        note_attributes(w, o, n);
    note_captures(w, l, o, n, captured);
    write_results(w, l, o, n, standard && node_infer(n, &complaint) == n->type);
    add_node(w, l, o);
    return OK;
}

static Status write_part(Writer *w, Level *l, const Node *n)
{
    const int64_t i = ((const PartAttr *)n->attr)->index;
    const MapEntry *e = map_find_u64(&w->parts, (uintptr_t)in(n, 0));
    if (!e)
        return OK; /* stands where it is expected */
    const char *name = value_name(w, n);
    Onnx__NodeProto *o = add_identity(w, l, ((const char *const *)e->value.cp)[i], name, n->type);
    if (w->state_all)
        add_type(w, l, name, n->type);
    note_node(w, o, QCC_PART, number(w, i));
    note_marks(w, o, n);
    if (!name_tells(w, name, n->name))
        note_node(w, o, QCC_NAME, n->name ? n->name : "");
    return OK;
}

/* ---- levels ---- */

static const char *region_attribute(const Node *n, int r)
{
    static const char *const branches[] = { "then_branch", "else_branch" }, *const mods[] = { "score_mod", "prob_mod" };
    return n->op == OP_if ? branches[r] : n->op == OP_flex_attention ? mods[r] : "body";
}

static void attach_region(Writer *w, Onnx__NodeProto *o, const Node *n, int r, Onnx__GraphProto *body)
{
    Onnx__AttributeProto *a = NEW(w->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->has_name = a->has_type = 1;
    a->name = encode_text(region_attribute(n, r));
    a->type = ONNX_ATTR_GRAPH;
    a->g = body;
    o->attribute = arena_grow(w->arena, o->attribute, o->n_attribute, o->n_attribute + 1, sizeof a);
    o->attribute[o->n_attribute++] = a;
}

/* What a body's parameter is, where its ONNX name does not say it. */
static void note_parameter(Writer *w, Onnx__NodeProto *o, const Node *p, int r, int i)
{
    const char *name = value_name(w, p);
    if (!name_tells(w, name, p->name))
        note_node(w, o, arena_printf(w->arena, QCC_INSIDE "%d.%d", r, i), p->name ? p->name : "");
    if (p->src || p->flags)
        note_node(w, o, arena_printf(w->arena, QCC_MARKS "%d.%d", r, i), marks_text(w, p));
    if (p->label)
        note_node(w, o, arena_printf(w->arena, QCC_LABEL "%d.%d", r, i), p->label);
}

static void add_input(Writer *w, Level *l, const Node *p)
{
    l->proto->input[l->proto->n_input++] = encode_value(w->arena, value_name(w, p), p->type);
}

/* A body: its own parameters are inputs, what it captures goes by the name it has outside. */
static Status open_region(Writer *w, Level *l, const Node *n, int r, Onnx__NodeProto *o, const char *const *captured)
{
    Graph *g = n->regions[r];
    const int first = own_operands(n), own = (int)g->n_inputs - (n->n_in - first);
    if (own < 0)
        return fail(w->diag, node_place(n), "its body takes fewer values than it is given");
    *l = (Level){ .graph = g, .next = g->first, .proto = NEW(w->arena, Onnx__GraphProto) };
    onnx__graph_proto__init(l->proto);
    l->proto->has_name = 1;
    l->proto->name = encode_text("body");
    l->proto->input = NEWS(w->arena, Onnx__ValueInfoProto *, own + 1);
    for (int i = 0; i < (int)g->n_inputs; i++) {
        const Node *p = g->inputs[i], *outside = i >= own ? in(n, first + i - own) : NULL;
        if (i >= own)
            name_value(w, p, captured[i - own]);
        else
            add_input(w, l, p);
        if (outside && outside->type != p->type)
            add_type(w, l, captured[i - own], p->type);
        note_parameter(w, o, p, r, i);
    }
    attach_region(w, o, n, r, l->proto);
    return OK;
}

static bool is_parameter(const Node *n)
{
    return n->op == OP_input || n->op == OP_state;
}

/* A body gives each result under a name of its own: what is a parameter, comes twice or leaves under another name gets
 * an Identity. */
static const char *region_result(Writer *w, Level *l, int i, Map *seen)
{
    const Node *n = graph_result(l->graph, i);
    const char *text = graph_result_name(l->graph, i);
    bool fresh;
    if (!n)
        return "";
    const char *value = value_name(w, n);
    map_put(seen, value, &fresh);
    const bool renamed = text && (!n->name || strcmp(text, n->name) != 0);
    if (fresh && !renamed && !is_parameter(n))
        return value;
    const char *wish = renamed ? arena_printf(w->arena, "%s%s", w->prefix, text)
                               : arena_printf(w->arena, "%s%s%u", w->prefix, QCC_NAMELESS, w->n_nameless++);
    const char *name = claim_name(w, wish);
    Onnx__NodeProto *o = add_identity(w, l, value, name, n->type);
    note_node(w, o, QCC_RESULT, "1");
    if (!name_tells(w, name, renamed ? text : NULL))
        note_node(w, o, QCC_NAME, renamed ? text : "");
    return name;
}

static void close_region(Writer *w, Level *l)
{
    const int n = graph_n_results(l->graph);
    Map seen;
    map_open(&seen, w->arena);
    l->proto->output = NEWS(w->arena, Onnx__ValueInfoProto *, n + 1);
    for (int i = 0; i < n; i++) {
        const Node *result = graph_result(l->graph, i);
        l->proto->output[l->proto->n_output++] =
            encode_value(w->arena, region_result(w, l, i, &seen), result ? result->type : NULL);
    }
}

void open_root(Level *l, Graph *g)
{
    l->graph = g;
    l->next = g->first;
}

/* Regions are written after the names around them are settled, innermost last, without recursion. */
Status write_nodes(Writer *w, Level *root)
{
    Level *stack = NULL;
    size_t depth = 0, cap = 0;
    GROW(w->arena, stack, depth, cap);
    stack[depth++] = *root;
    while (depth) {
        Level *l = &stack[depth - 1];
        const Node *n = l->next;
        if (!n) {
            if (depth-- == 1)
                *root = *l;
            else
                close_region(w, l);
            continue;
        }
        l->next = n->next;
        if (w->quants && quants_lay(n))
            continue;
        if (n->op == OP_part || n->op == OP_const || n->op == OP_param) {
            TRY(n->op == OP_part ? write_part(w, l, n) : write_constant(w, l, n));
            continue;
        }
        if (w->quants && quants_cover(n)) {
            TRY(write_quant(w, l, n));
            continue;
        }
        Onnx__NodeProto *o = NULL;
        const char **captured = NEWS(w->arena, const char *, n->n_in + 1);
        TRY(write_call(w, l, n, &o, captured));
        for (int r = 0; r < n->n_regions; r++) {
            Level inner;
            TRY(open_region(w, &inner, n, r, o, captured));
            GROW(w->arena, stack, depth, cap);
            stack[depth++] = inner;
        }
    }
    return OK;
}
