#include "frontends/onnx/export.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "frontends/onnx/file/pack.h"
#include "frontends/onnx/file/payload.h"
#include "frontends/onnx/read/step_layout.h"
#include "frontends/onnx/write/encode.h"
#include "frontends/onnx/write/inference.h"
#include "frontends/onnx/write/relocate.h"

enum { GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11 };

typedef struct Exporter {
    Spine *spine;
    const Onnx__GraphProto *graph;
    Diag *diag;
    Arena arena;
    Layout layout;
    Relocation relocation;
    bool sizing; /* nothing is written yet */
    Edit *edits;
    size_t n, cap;
} Exporter;

static void add_edit(Exporter *x, Edit e)
{
    GROW(&x->arena, x->edits, x->n, x->cap);
    x->edits[x->n++] = e;
}

/* An edit whose value is a message, packed when it is written: where its data lies is settled by then. */
static void add_message(Exporter *x, Edit e, const ProtobufCMessage *message)
{
    e.write = put_packed;
    e.user = (void *)(uintptr_t)message;
    add_edit(x, e);
}

/* A message in place of one that lies in the message whose body begins at `within`; it lives as long as the export. */
static void replace_message(Exporter *x, uint64_t within, uint64_t at, uint64_t size, const ProtobufCMessage *by)
{
    add_message(x, edit_value(within, at, size, protobuf_c_message_get_packed_size(by)), by);
}

/* A field of a message behind the last one of the main graph. */
static void append_message(Exporter *x, uint32_t field, const ProtobufCMessage *message)
{
    Edit e = { .within = x->graph->source_at,
               .offset = x->graph->source_at + x->graph->source_size,
               .n = protobuf_c_message_get_packed_size(message) };
    e.n_head = (uint8_t)varint_write(e.head, (uint64_t)field << 3 | WIRE_BYTES);
    e.n_head = (uint8_t)(e.n_head + varint_write(e.head + e.n_head, e.n));
    add_message(x, e, message);
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
    Onnx__TensorProto *to = NEW(&x->arena, Onnx__TensorProto);
    *to = *t;
    TRY(check_weight(x, w, t));
    TRY(relocate_value(&x->relocation, t, w->value, to));
    const bool same_notes = to->n_metadata_props == t->n_metadata_props;
    if (same_notes && to->has_raw_data && t->has_raw_data && t->raw_data.len == SPAN_BYTES) {
        const Span span = span_read(t->raw_data.data);
        Edit e = edit_value(t->source_at, span.offset, span.length, w->value->bytes);
        e.bytes = w->value->data;
        add_edit(x, e);
        return OK;
    }
    replace_message(x, x->graph->source_at, t->source_at, t->source_size, &to->base);
    return OK;
}

static Status edit_constant(Exporter *x, const WeightEdit *w, const Onnx__NodeProto *node)
{
    Onnx__NodeProto *copy = NEW(&x->arena, Onnx__NodeProto);
    Onnx__AttributeProto *attribute = NEW(&x->arena, Onnx__AttributeProto);
    Onnx__TensorProto *to = NEW(&x->arena, Onnx__TensorProto);
    if (node->n_attribute != 1 || !node->attribute[0]->t)
        return fail(x->diag, (Place){ .where = w->name, .byte = -1 }, "is no tensor that could be replaced");
    TRY(check_weight(x, w, node->attribute[0]->t));
    *copy = *node;
    *attribute = *node->attribute[0];
    *to = *attribute->t;
    TRY(relocate_value(&x->relocation, attribute->t, w->value, to));
    attribute->t = to;
    copy->attribute = NEWS(&x->arena, Onnx__AttributeProto *, 1);
    copy->attribute[0] = attribute;
    copy->has_source_at = copy->has_source_size = 0;
    relocation_forget(&x->arena, &copy->metadata_props, &copy->n_metadata_props);
    replace_message(x, x->graph->source_at, node->source_at, node->source_size, &copy->base);
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

/* A field of a graph, key of one byte included, that goes as a whole. */
static void leave_out(Exporter *x, uint64_t at, uint64_t size)
{
    const uint64_t head = 1 + (uint64_t)varint_size(size);
    add_edit(x, (Edit){ .within = x->graph->source_at, .offset = at - head, .length = size + head, .bytes = "" });
}

static Status edit_node(Exporter *x, const NodeEdit *n)
{
    if (n->node >= x->graph->n_node)
        return fail(x->diag, NOWHERE, "there is no node %zu to edit", n->node);
    const Onnx__NodeProto *o = x->graph->node[n->node];
    for (size_t i = 0; i < o->n_attribute; i++)
        if (o->attribute[i]->t)
            map_put_u64(&x->relocation.replaced, o->attribute[i]->t->source_at, NULL);
    if (n->by)
        replace_message(x, x->graph->source_at, o->source_at, o->source_size, &n->by->base);
    else
        leave_out(x, o->source_at, o->source_size);
    return OK;
}

/* Before IR version 4 every initializer is an input too. */
static void add_default(Exporter *x, const NewInitializer *n)
{
    Onnx__ValueInfoProto *v = encode_value(&x->arena, n->name, n->value->type);
    if (!x->spine->model->has_ir_version || x->spine->model->ir_version < 4)
        append_message(x, GRAPH_INPUT, &v->base);
}

static Status add_initializers(Exporter *x, const ExportEdits *edits)
{
    for (size_t i = 0; i < edits->n_more; i++) {
        Onnx__TensorProto *t = encode_tensor(&x->arena, edits->more[i].value);
        t->has_name = 1;
        t->name = encode_text(edits->more[i].name);
        TRY(relocate_value(&x->relocation, NULL, edits->more[i].value, t));
        append_message(x, GRAPH_INITIALIZER, &t->base);
        add_default(x, &edits->more[i]);
    }
    return OK;
}

static Status leave_out_sparse(Exporter *x, size_t i)
{
    const Onnx__SparseTensorProto *t = i < x->graph->n_sparse_initializer ? x->graph->sparse_initializer[i] : NULL;
    if (!t)
        return fail(x->diag, NOWHERE, "there is no sparse initializer %zu to leave out", i);
    if (t->values)
        map_put_u64(&x->relocation.replaced, t->values->source_at, NULL);
    if (t->indices)
        map_put_u64(&x->relocation.replaced, t->indices->source_at, NULL);
    leave_out(x, t->source_at, t->source_size);
    return OK;
}

/* A node that is turned and reads something else as well: what it reads in both forms follows. */
static void read_alike(Exporter *x, NodeEdit *turned, const NodeEdit *edit)
{
    const Onnx__NodeProto *was = x->graph->node[turned->node];
    Onnx__NodeProto *by = NEW(&x->arena, Onnx__NodeProto);
    if (!turned->by)
        return;
    *by = *turned->by;
    by->input = NEWS(&x->arena, ProtobufCBinaryData, by->n_input);
    for (size_t i = 0; i < by->n_input; i++) {
        const bool same = i < was->n_input && was->input[i].len == turned->by->input[i].len &&
                          bytes_equal(was->input[i].data, turned->by->input[i].data, was->input[i].len);
        by->input[i] = same ? edit->by->input[i] : turned->by->input[i];
    }
    turned->by = by;
}

/* Nodes, and those in training form, unless somebody else edits them. */
static Status edit_nodes(Exporter *x, const ExportEdits *edits)
{
    InferenceEdits turned = { 0 };
    Map at;
    map_open(&at, &x->arena);
    if (!x->sizing)
        TRY(inference_edits(x->spine, &x->arena, x->diag, &turned));
    for (size_t i = 0; i < turned.n_nodes; i++)
        map_put_u64(&at, turned.nodes[i].node, NULL)->value.p = &turned.nodes[i];
    for (size_t i = 0; i < edits->n_nodes; i++) {
        const NodeEdit *edit = &edits->nodes[i];
        MapEntry *e = map_find_u64(&at, edit->node);
        if (e && edit->reads)
            read_alike(x, e->value.p, edit);
        else
            TRY(edit_node(x, edit));
        if (e && !edit->reads)
            e->value.p = NULL;
    }
    for (size_t i = 0; i < at.n; i++)
        if (at.entries[i].value.p)
            TRY(edit_node(x, at.entries[i].value.p));
    for (size_t i = 0; i < turned.n_without; i++) {
        map_put_u64(&x->relocation.replaced, turned.without[i]->source_at, NULL);
        leave_out(x, turned.without[i]->source_at, turned.without[i]->source_size);
    }
    return OK;
}

/* What a step put into the file goes. */
static void leave_step(Exporter *x)
{
    if (x->layout.model < x->spine->source.size)
        add_edit(x, layout_edit_tail(&x->layout, x->spine, 0, NULL, NULL));
    if (x->layout.ir_kept)
        add_edit(x, layout_edit_ir(&x->layout, x->layout.ir_had, x->layout.ir));
}

static Status collect(Exporter *x, const ExportEdits *edits)
{
    leave_step(x);
    if (!x->graph)
        return OK;
    TRY(edit_weights(x, edits->weights, edits->n_weights));
    TRY(edit_nodes(x, edits));
    for (size_t i = 0; i < edits->n_without; i++)
        TRY(leave_out_sparse(x, edits->without[i]));
    TRY(add_initializers(x, edits));
    TRY(relocate_rest(&x->relocation));
    for (size_t i = 0; i < x->relocation.n; i++)
        add_edit(x, x->relocation.edits[i]);
    return OK;
}

static Splice splice_of(Exporter *x)
{
    return (Splice){ .source = &x->spine->source,
                     .type = x->spine->type,
                     .limits = &x->spine->limits,
                     .diag = x->diag,
                     .arena = &x->arena,
                     .edits = x->edits,
                     .n_edits = x->n };
}

/* Whether the file would be too large with everything in it; only then weights go beside that were not there. */
static Status too_large(Exporter *x, const ExportEdits *edits, bool *large)
{
    const uint64_t most = (uint64_t)weight_file_threshold(&x->spine->limits);
    uint64_t size = x->layout.model;
    *large = false;
    for (size_t i = 0; i < edits->n_weights; i++)
        size += edits->weights[i].value->bytes;
    for (size_t i = 0; i < edits->n_more; i++)
        size += edits->more[i].value->bytes;
    if (!edits->weight_file || size <= most)
        return OK;
    relocation_open(&x->relocation, x->spine, &x->arena, x->diag, NULL, false);
    x->sizing = true;
    TRY(collect(x, edits));
    x->sizing = false;
    const Splice whole = splice_of(x);
    TRY(splice_size(&whole, &size));
    *large = size > most;
    x->n = 0;
    return OK;
}

static Status write_edited(Exporter *x, const ExportEdits *edits, const Sink *sink)
{
    bool large;
    TRY(layout_read(x->spine, x->diag, &x->arena, &x->layout));
    TRY(too_large(x, edits, &large));
    relocation_open(&x->relocation, x->spine, &x->arena, x->diag, edits->weight_file, large);
    const Status status = collect(x, edits);
    const Splice how = splice_of(x);
    relocation_settle(&x->relocation);
    return status == OK ? splice_write(&how, sink, NULL) : status;
}

Status onnx_export(Spine *s, Diag *d, const ExportEdits *edits, const Sink *sink)
{
    static const ExportEdits nothing = { 0 };
    Exporter x = { .spine = s, .graph = s->model->graph, .diag = d };
    TRY(source_unchanged(&s->source, d));
    arena_open(&x.arena, s->memory);
    const Status status = write_edited(&x, edits ? edits : &nothing, sink);
    arena_close(&x.arena);
    return status;
}
