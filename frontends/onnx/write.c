#include "frontends/onnx/write.h"

#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/encode.h"
#include "frontends/onnx/names.h"
#include "ops/control.h"

/* Names of values inside a graph, and of what its regions took from it. */
typedef struct Writer {
    Ir *ir;
    Diag *diag;
    Arena *arena;
    Facts names; /* const char *, by node */
    uint32_t n_nameless;
    int opset;
    bool needs_qcc;
    bool needs_preview;
    int64_t ir_version;
    SignatureNames signature;
} Writer;

/* A graph being filled. */
typedef struct Level {
    Graph *graph;
    const Node *next;
    Onnx__GraphProto *proto;
    size_t cap_node, cap_initializer, cap_info;
    int own; /* inputs that are the body's own; the rest were captured */
} Level;

static const char **name_slot(Writer *w, const Node *n)
{
    return fact(&w->names, n);
}

static const char *value_name(Writer *w, const Node *n)
{
    const char **slot = name_slot(w, n);
    if (!*slot)
        *slot = n->name ? n->name : arena_printf(w->arena, "%s%u", QCC_NAMELESS, w->n_nameless++);
    return *slot;
}

static void add_node(Writer *w, Level *l, Onnx__NodeProto *o)
{
    GROW(w->arena, l->proto->node, l->proto->n_node, l->cap_node);
    l->proto->node[l->proto->n_node++] = o;
}

static Onnx__NodeProto *new_node(Writer *w, const char *op, const char *domain)
{
    Onnx__NodeProto *o = NEW(w->arena, Onnx__NodeProto);
    onnx__node_proto__init(o);
    o->has_op_type = 1;
    o->op_type = encode_text(op);
    o->has_domain = domain[0] != 0;
    o->domain = encode_text(domain);
    return o;
}

static void note(Writer *w, Onnx__NodeProto *o, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = NEW(w->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(e);
    e->has_key = e->has_value = 1;
    e->key = encode_text(key);
    e->value = encode_text(value);
    o->metadata_props = arena_grow(w->arena, o->metadata_props, o->n_metadata_props, o->n_metadata_props + 1, sizeof e);
    o->metadata_props[o->n_metadata_props++] = e;
}

static void note_marks(Writer *w, Onnx__NodeProto *o, const Node *n)
{
    note(w, o, QCC_SRC, arena_printf(w->arena, "%u", n->src));
    if (n->flags)
        note(w, o, QCC_FLAGS, arena_printf(w->arena, "%u", n->flags));
    if (n->label) {
        o->has_name = 1;
        o->name = encode_text(n->label);
    }
}

/* A tuple's parts, by index: the first node that reads each. */
static const Node **parts_of(Writer *w, const Node *n)
{
    const int n_out = type_results(n->type);
    const Node **parts = NEWS(w->arena, const Node *, n_out);
    for (const Use *u = n->uses; u; u = u->next) {
        if (u->user->op != OP_part)
            continue;
        const int64_t i = ((const PartAttr *)u->user->attr)->index;
        parts[i] = u->user; /* uses are linked newest first: the oldest stays */
    }
    return parts;
}

static void write_results(Writer *w, Onnx__NodeProto *o, const Node *n)
{
    const int n_out = type_results(n->type);
    o->output = NEWS(w->arena, ProtobufCBinaryData, n_out);
    if (n->type->kind != TYPE_TUPLE) {
        o->output[o->n_output++] = encode_text(value_name(w, n));
        return;
    }
    const Node **parts = parts_of(w, n);
    for (int i = 0; i < n_out; i++)
        o->output[o->n_output++] = encode_text(parts[i] ? value_name(w, parts[i]) : "");
}

static void write_operands(Writer *w, Onnx__NodeProto *o, const Node *n)
{
    const int own = own_operands(n);
    o->input = NEWS(w->arena, ProtobufCBinaryData, own + 1);
    for (int i = 0; i < own; i++)
        o->input[o->n_input++] = encode_text(in(n, i) ? value_name(w, in(n, i)) : "");
    while (o->n_input && !o->input[o->n_input - 1].len)
        o->n_input--;
}

/* Types of values that the standard cannot tell. */
static void state_types(Writer *w, Level *l, const Node *n)
{
    const Node **parts = n->type->kind == TYPE_TUPLE ? parts_of(w, n) : NULL;
    for (int i = 0; i < type_results(n->type); i++) {
        const Node *value = parts ? parts[i] : n;
        if (!value)
            continue;
        GROW(w->arena, l->proto->value_info, l->proto->n_value_info, l->cap_info);
        l->proto->value_info[l->proto->n_value_info++] = encode_value(w->arena, value_name(w, value), value->type);
    }
}

/* Dimensions without a size get the names they have. */
static Onnx__ValueInfoProto *with_dims(Onnx__ValueInfoProto *v, const DimNames *names)
{
    if (!names || !v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !v->type->tensor_type->shape)
        return v;
    const Onnx__TensorShapeProto *shape = v->type->tensor_type->shape;
    for (size_t i = 0; i < shape->n_dim && i < MAX_RANK; i++) {
        Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        if (!names->name[i] || d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            continue;
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = encode_text(names->name[i]);
    }
    return v;
}

static void open_level(Writer *w, Level *l, Graph *g, const Node *owner)
{
    static const char *const anonymous = "body";
    *l = (Level){ .graph = g, .next = g->first, .proto = NEW(w->arena, Onnx__GraphProto), .own = (int)g->n_inputs };
    onnx__graph_proto__init(l->proto);
    l->proto->has_name = 1;
    l->proto->name = encode_text(g->name ? g->name : anonymous);
    if (owner) {
        const int captured = owner->n_in - own_operands(owner);
        l->own = (int)g->n_inputs - captured;
        for (int i = 0; i < captured; i++)
            *name_slot(w, g->inputs[l->own + i]) = value_name(w, in(owner, own_operands(owner) + i));
    }
    l->proto->input = NEWS(w->arena, Onnx__ValueInfoProto *, l->own + 1);
    const DimNames *names = owner ? NULL : w->signature.inputs;
    for (int i = 0; i < l->own; i++)
        l->proto->input[l->proto->n_input++] = with_dims(
            encode_value(w->arena, value_name(w, g->inputs[i]), g->inputs[i]->type), names ? &names[i] : NULL);
}

/* A result under a name that is not its value's needs a node to carry the name. */
static const char *result_name(Writer *w, Level *l, int i)
{
    const Node *n = graph_result(l->graph, i);
    const char *name = graph_result_name(l->graph, i);
    const char *value = n ? value_name(w, n) : "";
    if (!n || !name || strcmp(name, value) == 0)
        return value;
    Onnx__NodeProto *o = new_node(w, "Identity", "");
    o->input = NEWS(w->arena, ProtobufCBinaryData, 1);
    o->output = NEWS(w->arena, ProtobufCBinaryData, 1);
    o->input[o->n_input++] = encode_text(value);
    o->output[o->n_output++] = encode_text(name);
    note(w, o, QCC_RESULT, "1");
    add_node(w, l, o);
    return name;
}

static void close_level(Writer *w, Level *l)
{
    const int n = graph_n_results(l->graph);
    const DimNames *names = l->graph->owner ? NULL : w->signature.outputs;
    l->proto->output = NEWS(w->arena, Onnx__ValueInfoProto *, n + 1);
    for (int i = 0; i < n; i++) {
        const Type *type = graph_result(l->graph, i) ? graph_result(l->graph, i)->type : NULL;
        l->proto->output[l->proto->n_output++] =
            with_dims(encode_value(w->arena, result_name(w, l, i), type), names ? &names[i] : NULL);
    }
}

/* Parameters that begin the graph are initializers; constants, and parameters that the model holds as nodes, stay nodes
 * at their place. */
static Status write_constant(Writer *w, Level *l, const Node *n)
{
    Payload *p = node_payload(n);
    const Tensor *t = p ? payload_tensor(p, w->ir->arena, w->diag) : NULL;
    if (!t)
        return fail(w->diag, node_place(n), "its value cannot be written");
    Onnx__TensorProto *proto = encode_tensor(w->arena, t);
    if (n->op == OP_param && n->src == 0 && !n->label && !n->flags && !l->proto->n_node) {
        proto->has_name = 1;
        proto->name = encode_text(value_name(w, n));
        GROW(w->arena, l->proto->initializer, l->proto->n_initializer, l->cap_initializer);
        l->proto->initializer[l->proto->n_initializer++] = proto;
        return OK;
    }
    Onnx__NodeProto *o = new_node(w, "Constant", "");
    o->attribute = NEWS(w->arena, Onnx__AttributeProto *, 1);
    o->attribute[o->n_attribute++] = encode_tensor_attribute(w->arena, "value", proto);
    write_results(w, o, n);
    note_marks(w, o, n);
    if (n->op == OP_const)
        note(w, o, QCC_CONST, "1");
    add_node(w, l, o);
    return OK;
}

/* Attributes in the order of the card; graphs follow when their levels are closed. */
static Status write_call(Writer *w, Level *l, const Node *n, Onnx__NodeProto **out)
{
    const OpDef *def = op_of(n);
    const bool standard = encode_is_standard(n, w->opset);
    if (n->op == OP_opaque || (def->structural && n->op != OP_tuple))
        return fail_as(w->diag, UNSUPPORTED, node_place(n), "%s cannot be written anew", def->name);
    Onnx__NodeProto *o = standard ? new_node(w, def->onnx.op, def->onnx.domain ? def->onnx.domain : "")
                                  : new_node(w, def->name, QCC_DOMAIN);
    w->needs_qcc = w->needs_qcc || !standard;
    w->needs_preview = w->needs_preview || (standard && def->onnx.domain);
    write_operands(w, o, n);
    write_results(w, o, n);
    TRY(encode_attributes(w->arena, w->diag, n, standard, o));
    note_marks(w, o, n);
    if (!standard)
        state_types(w, l, n);
    add_node(w, l, o);
    *out = o;
    return OK;
}

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

/* Regions are written after the names around them are settled, innermost last, without recursion. */
static Status write_graph(Writer *w, Graph *g, Onnx__GraphProto **proto)
{
    Level *stack = NULL;
    size_t depth = 0, cap = 0;
    GROW(w->arena, stack, depth, cap);
    open_level(w, &stack[depth++], g, NULL);
    *proto = stack[0].proto;
    while (depth) {
        Level *l = &stack[depth - 1];
        const Node *n = l->next;
        if (!n) {
            close_level(w, l);
            depth--;
            continue;
        }
        l->next = n->next;
        if (n->op == OP_part)
            continue;
        if (n->op == OP_const || n->op == OP_param) {
            TRY(write_constant(w, l, n));
            continue;
        }
        Onnx__NodeProto *o = NULL;
        TRY(write_call(w, l, n, &o));
        for (int r = 0; r < n->n_regions; r++) {
            Level inner;
            open_level(w, &inner, n->regions[r], n);
            attach_region(w, o, n, r, inner.proto);
            GROW(w->arena, stack, depth, cap);
            stack[depth++] = inner;
        }
    }
    return OK;
}

/* The lowest opset in which every operator is the version that its card means. */
static int lowest_opset(Graph *g)
{
    int opset = 13;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const OnnxName *o = &op_of(n)->onnx;
        const OnnxSchema *s = o->op && !o->domain ? schema_find("", o->op, ONNX_OPSET_NEWEST) : NULL;
        if (s && s->since > opset)
            opset = s->since;
    }
    return opset;
}

static int64_t ir_version_of(int opset)
{
    return opset >= 25 ? 13 : opset == 24 ? 12 : opset == 23 ? 11 : opset >= 21 ? 10 : opset >= 19 ? 9 : 8;
}

static Onnx__OperatorSetIdProto *opset_import(Writer *w, const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *o = NEW(w->arena, Onnx__OperatorSetIdProto);
    onnx__operator_set_id_proto__init(o);
    o->has_domain = o->has_version = 1;
    o->domain = encode_text(domain);
    o->version = version;
    return o;
}

/* protobuf-c's buffer over our sink. */
typedef struct SinkBuffer {
    ProtobufCBuffer base;
    const Sink *sink;
    Status status;
} SinkBuffer;

static void append_to_sink(ProtobufCBuffer *base, size_t n, const uint8_t *bytes)
{
    SinkBuffer *b = (SinkBuffer *)(void *)base;
    if (b->status == OK)
        b->status = b->sink->put(b->sink->user, bytes, n);
}

static Status write_model(Writer *w, Graph *g, const Sink *sink)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    TRY(write_graph(w, g, &model.graph));
    model.has_ir_version = model.has_producer_name = 1;
    model.ir_version = ir_version_of(w->opset);
    model.producer_name = encode_text("qcc");
    model.opset_import = NEWS(w->arena, Onnx__OperatorSetIdProto *, 4);
    model.opset_import[model.n_opset_import++] = opset_import(w, "", w->opset);
    if (w->needs_qcc)
        model.opset_import[model.n_opset_import++] = opset_import(w, QCC_DOMAIN, QCC_DOMAIN_VERSION);
    if (w->needs_preview)
        model.opset_import[model.n_opset_import++] = opset_import(w, ONNX_PREVIEW, ONNX_PREVIEW_NEWEST);
    if (protobuf_c_message_get_packed_size(&model.base) > (size_t)w->ir->limits.model_bytes)
        return fail_as(w->diag, UNSUPPORTED, NOWHERE,
                       "the model is larger than one file may be (limit model_bytes, %" PRId64 ")",
                       w->ir->limits.model_bytes);
    SinkBuffer buffer = { { append_to_sink }, sink, OK };
    protobuf_c_message_pack_to_buffer(&model.base, &buffer.base);
    return buffer.status;
}

Status onnx_write(Graph *g, Diag *d, const Sink *sink)
{
    return onnx_write_named(g, d, NULL, sink);
}

Status onnx_write_named(Graph *g, Diag *d, const SignatureNames *names, const Sink *sink)
{
    Arena arena;
    arena_open(&arena, g->ir->memory);
    Writer w = { .ir = g->ir, .diag = d, .arena = &arena, .opset = lowest_opset(g) };
    w.names = facts_open(&arena, sizeof(const char *));
    if (names)
        w.signature = *names;
    const Status status = write_model(&w, g, sink);
    arena_close(&arena);
    return status;
}
