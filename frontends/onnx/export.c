#include "frontends/onnx/export.h"

#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/inference.h"
#include "frontends/onnx/payload.h"

typedef struct Exporter {
    Spine *spine;
    const Onnx__GraphProto *graph;
    Diag *diag;
    Arena arena;
    Edit *edits;
    size_t n, cap;
} Exporter;

static void add_edit(Exporter *x, Edit e)
{
    GROW(&x->arena, x->edits, x->n, x->cap);
    x->edits[x->n++] = e;
}

/* A message in place of one that lies in the message whose body begins at `within`. */
static void replace_message(Exporter *x, uint64_t within, uint64_t at, uint64_t size, const ProtobufCMessage *by)
{
    const size_t n = protobuf_c_message_get_packed_size(by);
    uint8_t *bytes = arena_alloc(&x->arena, n ? n : 1);
    protobuf_c_message_pack(by, bytes);
    Edit e = edit_value(within, at, size, n);
    e.bytes = bytes;
    add_edit(x, e);
}

/* A field of a message behind the last one of the main graph. */
static void append_message(Exporter *x, uint32_t field, const ProtobufCMessage *message)
{
    const size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(&x->arena, n ? n : 1);
    protobuf_c_message_pack(message, bytes);
    Edit e = {
        .within = x->graph->source_at, .offset = x->graph->source_at + x->graph->source_size, .n = n, .bytes = bytes
    };
    e.n_head = (uint8_t)varint_write(e.head, (uint64_t)field << 3 | WIRE_BYTES);
    e.n_head = (uint8_t)(e.n_head + varint_write(e.head + e.n_head, n));
    add_edit(x, e);
}

/* The tensor with its elements as raw bytes and nothing else of where they were. */
static Onnx__TensorProto raw_tensor(const Onnx__TensorProto *t, const Tensor *value)
{
    Onnx__TensorProto raw = *t;
    raw.n_float_data = raw.n_int32_data = raw.n_int64_data = raw.n_double_data = raw.n_uint64_data = 0;
    raw.n_string_data = raw.n_external_data = 0;
    raw.has_data_location = raw.has_source_at = raw.has_source_size = 0;
    raw.has_raw_data = 1;
    raw.raw_data = (ProtobufCBinaryData){ value->bytes, value->data };
    return raw;
}

static Status check_weight(Exporter *x, const WeightEdit *w, const Onnx__TensorProto *t)
{
    TensorInfo info;
    TRY(tensor_info(x->spine, x->diag, w->name, t, &info));
    const Type *type = w->value->type;
    bool same = dtype_onnx(type->dtype) == info.dtype && type->rank == info.rank && w->value->bytes == info.bytes;
    for (int i = 0; same && i < info.rank; i++)
        same = type->dims[i] == info.dims[i];
    if (!same)
        return fail(x->diag, (Place){ .where = w->name, .byte = -1 }, "the new value is %s, not what the file has",
                    type_text(&x->arena, type));
    return OK;
}

static Status edit_initializer(Exporter *x, const WeightEdit *w, const Onnx__TensorProto *t)
{
    TRY(check_weight(x, w, t));
    if (t->has_raw_data && t->raw_data.len == SPAN_BYTES) {
        const Span span = span_read(t->raw_data.data);
        Edit e = edit_value(t->source_at, span.offset, span.length, w->value->bytes);
        e.bytes = w->value->data;
        add_edit(x, e);
        return OK;
    }
    const Onnx__TensorProto raw = raw_tensor(t, w->value);
    replace_message(x, x->graph->source_at, t->source_at, t->source_size, &raw.base);
    return OK;
}

static Status edit_constant(Exporter *x, const WeightEdit *w, const Onnx__NodeProto *node)
{
    Onnx__NodeProto copy = *node;
    Onnx__AttributeProto attribute;
    Onnx__TensorProto raw;
    Onnx__AttributeProto *list[1] = { &attribute };
    if (node->n_attribute != 1 || !node->attribute[0]->t)
        return fail(x->diag, (Place){ .where = w->name, .byte = -1 }, "is no tensor that could be replaced");
    TRY(check_weight(x, w, node->attribute[0]->t));
    attribute = *node->attribute[0];
    raw = raw_tensor(attribute.t, w->value);
    attribute.t = &raw;
    copy.attribute = list;
    copy.has_source_at = copy.has_source_size = 0;
    replace_message(x, x->graph->source_at, node->source_at, node->source_size, &copy.base);
    return OK;
}

static Status edit_weights(Exporter *x, const WeightEdit *weights, size_t n)
{
    Map places; /* name -> TensorProto, or NodeProto of a Constant */
    map_open(&places, &x->arena);
    for (size_t i = 0; n && i < x->graph->n_node; i++) {
        const Onnx__NodeProto *o = x->graph->node[i];
        if (o->n_output == 1 && str_is(str_of(o->op_type), "Constant"))
            map_put_n(&places, (const char *)o->output[0].data, o->output[0].len, NULL)->value.cp = o;
    }
    for (size_t i = 0; n && i < x->graph->n_initializer; i++) {
        const Str name = str_of(x->graph->initializer[i]->name);
        map_put_n(&places, name.p, name.n, NULL)->value.cp = x->graph->initializer[i];
    }
    for (size_t i = 0; i < n; i++) {
        const MapEntry *e = map_find(&places, weights[i].name);
        if (!e)
            return fail(x->diag, (Place){ .where = weights[i].name, .byte = -1 }, "the file has no such tensor");
        const ProtobufCMessage *m = e->value.cp;
        if (m->descriptor == &onnx__tensor_proto__descriptor)
            TRY(edit_initializer(x, &weights[i], e->value.cp));
        else
            TRY(edit_constant(x, &weights[i], e->value.cp));
    }
    return OK;
}

/* A node left out is a node field of no bytes; a node without operator would not do, so the field goes as a whole. */
static Status edit_node(Exporter *x, const NodeEdit *n)
{
    if (n->node >= x->graph->n_node)
        return fail(x->diag, NOWHERE, "there is no node %zu to edit", n->node);
    const Onnx__NodeProto *o = x->graph->node[n->node];
    if (n->by) {
        replace_message(x, x->graph->source_at, o->source_at, o->source_size, &n->by->base);
        return OK;
    }
    const uint64_t head = 1 + (uint64_t)varint_size(o->source_size); /* key 1 and the length */
    add_edit(x, (Edit){ .within = x->graph->source_at,
                        .offset = o->source_at - head,
                        .length = o->source_size + head,
                        .bytes = "" });
    return OK;
}

static Status collect(Exporter *x, const ExportEdits *edits)
{
    enum { INITIALIZER = 5 };
    TRY(edit_weights(x, edits->weights, edits->n_weights));
    for (size_t i = 0; i < edits->n_nodes; i++)
        TRY(edit_node(x, &edits->nodes[i]));
    for (size_t i = 0; i < edits->n_more; i++)
        append_message(x, INITIALIZER, &edits->more[i]->base);

    NodeEdit *turned;
    size_t n_turned;
    TRY(inference_edits(x->spine, &x->arena, x->diag, &turned, &n_turned));
    for (size_t i = 0; i < n_turned; i++) {
        bool edited = false;
        for (size_t k = 0; k < edits->n_nodes; k++)
            edited = edited || edits->nodes[k].node == turned[i].node;
        if (!edited)
            TRY(edit_node(x, &turned[i]));
    }
    return OK;
}

Status onnx_export(Spine *s, Diag *d, const ExportEdits *edits, const Sink *sink)
{
    static const ExportEdits nothing = { 0 };
    Exporter x = { .spine = s, .graph = s->model->graph, .diag = d };
    TRY(source_unchanged(&s->source, d));
    arena_open(&x.arena, s->memory);
    Status status = x.graph ? collect(&x, edits ? edits : &nothing) : OK;
    const Splice how = { .source = &s->source,
                         .type = s->type,
                         .limits = &s->limits,
                         .diag = d,
                         .arena = &x.arena,
                         .edits = x.edits,
                         .n_edits = x.n };
    if (status == OK)
        status = splice_write(&how, sink, NULL);
    arena_close(&x.arena);
    return status;
}
