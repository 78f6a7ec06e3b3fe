/* Writes trained states into the model: which initializer, Constant or alias holds each parameter, and how it gets
 * its new value. */
#include <string.h>

#include "base/bytes.h"
#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/file/payload.h"
#include "frontends/onnx/read/attributes.h"
#include "frontends/onnx/read/importer.h"
#include "frontends/onnx/step.h"
#include "frontends/onnx/write/encode.h"
#include "frontends/onnx/write/relocate.h"
#include "ir/store/blob.h"

/* HELD_PART: one of the tensors that an initializer holds, being equal (torch.h). */
typedef enum HeldBy { HELD_TENSOR, HELD_SPARSE, HELD_CONSTANT, HELD_ALIAS, HELD_PART } HeldBy;

/* A parameter of the file. */
typedef struct Held {
    HeldBy by;
    const char *name;
    const char *shown;               /* its name in graphs */
    const Onnx__TensorProto *tensor; /* of an initializer, or of a Constant that holds one */
    const Onnx__NodeProto *node;     /* of a Constant or an alias */
    size_t index;                    /* among the nodes, or the sparse initializers */
    const TorchHeld *part;           /* of a part: who reads it */
    struct Held *of;                 /* what an alias names, or a part is one of */
    Payload *payload;                /* what the file holds */
    const Tensor *now;               /* what it is to hold instead; null: the same */
} Held;

typedef struct StateExport {
    Importer im;
    Spine *spine;
    Arena *arena;
    Heap *heap;
    Diag *diag;
    const TrainedStates *states;
    Map held;    /* name -> Held * */
    Map shown;   /* the same, by the names of graphs */
    Map wanted;  /* name -> Tensor *, not yet of the file's type */
    Map readers; /* of parts that become initializers: node -> its copy */
    WeightEdit *weights;
    NodeEdit *nodes;
    NewInitializer *more;
    size_t *without;
    size_t n_weights, n_nodes, n_more, n_without, cap_weights, cap_nodes, cap_more, cap_without;
} StateExport;

static Place place_of(const char *name)
{
    return (Place){ .where = name, .byte = -1 };
}

/* ---- what the file holds ---- */

static Held *add_held(StateExport *x, HeldBy by, ProtobufCBinaryData name)
{
    Held *h = NEW(x->arena, Held);
    *h = (Held){ .by = by, .name = arena_copy(x->arena, (const char *)name.data, name.len) };
    map_put(&x->held, h->name, NULL)->value.p = h;
    return h;
}

static Held *find_held(const StateExport *x, ProtobufCBinaryData name)
{
    const MapEntry *e = map_find_n(&x->held, (const char *)name.data, name.len);
    return e ? e->value.p : NULL;
}

static bool has_note(const Onnx__NodeProto *o, const char *key)
{
    for (size_t i = 0; i < o->n_metadata_props; i++)
        if (str_is(str_of(o->metadata_props[i]->key), key))
            return true;
    return false;
}

/* An Identity names a parameter again, unless it is a call that our writer wrote. */
static bool is_alias(const Onnx__NodeProto *o)
{
    return str_is(str_of(o->op_type), "Identity") && (!has_note(o, QCC_SRC) || has_note(o, QCC_CONST));
}

static Status hold_node(StateExport *x, const Onnx__NodeProto *o, size_t index)
{
    if (o->domain.len || o->n_output != 1 || !o->output[0].len)
        return OK;
    Held *of = o->n_input == 1 ? find_held(x, o->input[0]) : NULL, *h = NULL;
    if (of && is_alias(o)) {
        h = add_held(x, HELD_ALIAS, o->output[0]);
        h->of = of;
    } else if (str_is(str_of(o->op_type), "Constant") && o->n_attribute == 1) {
        h = add_held(x, HELD_CONSTANT, o->output[0]);
        h->tensor = o->attribute[0]->t;
    }
    if (h) {
        h->node = o;
        h->index = index;
    }
    return OK;
}

/* Graphs call some tensors what the exporter's module does. */
static void show(StateExport *x, const TorchNames *torch)
{
    for (size_t i = 0; i < x->held.n; i++) {
        Held *h = x->held.entries[i].value.p;
        const MapEntry *e = torch ? map_find(&torch->initializers, h->name) : NULL;
        const TorchHeld *t = e ? e->value.cp : NULL;
        h->shown = t && h->by != HELD_PART ? t->shown : h->name;
        map_put(&x->shown, h->shown, NULL)->value.p = h;
    }
}

static void hold_parts(StateExport *x)
{
    const TorchNames *torch = torch_names(x->spine->model, x->arena);
    for (size_t i = 0; torch && i < torch->n_parts; i++) {
        const TorchHeld *part = torch->parts[i];
        Held *of = map_find(&x->held, part->of)->value.p, *h = NEW(x->arena, Held);
        *h = (Held){ .by = HELD_PART, .name = part->name, .part = part, .of = of };
        map_put(&x->held, part->name, NULL)->value.p = h;
    }
    show(x, torch);
}

static Status hold_model(StateExport *x)
{
    const Onnx__GraphProto *g = x->spine->model->graph;
    for (size_t i = 0; g && i < g->n_initializer; i++)
        add_held(x, HELD_TENSOR, g->initializer[i]->name)->tensor = g->initializer[i];
    for (size_t i = 0; g && i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values)
            add_held(x, HELD_SPARSE, g->sparse_initializer[i]->values->name)->index = i;
    for (size_t i = 0; g && i < g->n_node; i++)
        TRY(hold_node(x, g->node[i], i));
    hold_parts(x);
    return OK;
}

/* The value of a Constant that is no tensor: a number, a list of numbers, a sparse tensor. */
static Status read_constant(StateExport *x, Held *h)
{
    Call c = { .importer = &x->im };
    TRY(read_attrs(&x->im, &c, h->node, NULL));
    return constant_payload(&x->im, &c, h->node, &h->payload);
}

/* What the file holds of a parameter; nothing of it is read yet. */
static Status original(StateExport *x, Held *h)
{
    while (h->of)
        h = h->of;
    if (h->payload)
        return OK;
    x->im.where = h->name;
    if (h->tensor)
        return import_payload(&x->im, h->tensor, &h->payload);
    if (h->by == HELD_SPARSE)
        return import_sparse(&x->im, x->spine->model->graph->sparse_initializer[h->index], &h->payload);
    TRY(read_constant(x, h));
    return h->payload ? OK : fail(x->diag, place_of(h->name), "holds no numbers");
}

static Payload *payload_of_held(const Held *h)
{
    while (h->of)
        h = h->of;
    return h->payload;
}

/* ---- what it is to hold ---- */

static bool same_shape(const Type *a, const Type *b)
{
    bool same = a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

/* The value in the element type of the file. */
static Status convert(StateExport *x, const Held *h, const Tensor *value, const Tensor **out)
{
    const Type *type = payload_of_held(h)->type;
    *out = value;
    if (value->type == type || (same_shape(value->type, type) && value->type->dtype == type->dtype))
        return OK;
    if (!same_shape(value->type, type) || !dtype_is_float(type->dtype) || !dtype_is_float(value->type->dtype))
        return fail(x->diag, place_of(h->name), "ends as %s, and the file has %s", type_text(x->arena, value->type),
                    type_text(x->arena, type));
    Tensor *t = tensor_alloc(x->heap, type);
    memset(t->data, 0, t->bytes);
    for (int64_t i = 0; i < tensor_elements(value); i++)
        tensor_set_f64(t, i, tensor_get_f64(value, i));
    *out = t;
    return OK;
}

/* Whether a parameter that is to hold `now` (null: what the file has) holds exactly that. */
static Status holds(StateExport *x, const Held *h, const Tensor *now, const Tensor *value, bool *same)
{
    void *block = NULL;
    const void *bytes = now ? now->data : payload_bytes(payload_of_held(h), x->heap, &block, x->diag);
    if (!bytes)
        return payload_failed(payload_of_held(h), x->diag, place_of(h->name));
    *same = bytes_equal(bytes, value->data, value->bytes);
    heap_free(x->heap, block);
    return OK;
}

/* The value of the file as a tensor that lives as long as the export. */
static Status file_value(StateExport *x, const Held *h, const Tensor **out)
{
    void *block = NULL;
    Payload *p = payload_of_held(h);
    Tensor *t = NEW(x->arena, Tensor);
    *t = (Tensor){ .type = p->type };
    t->data = (void *)(uintptr_t)payload_bytes(p, x->heap, &block, x->diag);
    if (!t->data || !type_bytes(p->type, &t->bytes))
        return payload_failed(p, x->diag, place_of(h->name));
    *out = t;
    return OK;
}

/* ---- edits ---- */

static void add_weight(StateExport *x, const char *name, const Tensor *value)
{
    GROW(x->arena, x->weights, x->n_weights, x->cap_weights);
    x->weights[x->n_weights++] = (WeightEdit){ name, value };
}

static void add_initializer(StateExport *x, const char *name, const Tensor *value)
{
    GROW(x->arena, x->more, x->n_more, x->cap_more);
    x->more[x->n_more++] = (NewInitializer){ name, value };
}

static void add_node(StateExport *x, size_t index, const Onnx__NodeProto *by)
{
    GROW(x->arena, x->nodes, x->n_nodes, x->cap_nodes);
    x->nodes[x->n_nodes++] = (NodeEdit){ .node = index, .by = by };
}

/* A Constant that said its numbers otherwise says them as a tensor. */
static void set_constant(StateExport *x, const Held *h)
{
    Onnx__NodeProto *copy = NEW(x->arena, Onnx__NodeProto);
    *copy = *h->node;
    copy->has_source_at = copy->has_source_size = 0;
    relocation_forget(x->arena, &copy->metadata_props, &copy->n_metadata_props);
    copy->attribute = NEWS(x->arena, Onnx__AttributeProto *, 1);
    copy->attribute[0] = encode_tensor_attribute(x->arena, "value", encode_tensor(x->arena, h->now));
    add_node(x, h->index, copy);
}

/* The node that reads an initializer, to read another one; several operands of a node may change. */
static Onnx__NodeProto *copy_of_reader(StateExport *x, const TorchRead *read)
{
    bool fresh;
    MapEntry *e = map_put_u64(&x->readers, read->index, &fresh);
    if (!fresh)
        return e->value.p;
    Onnx__NodeProto *copy = NEW(x->arena, Onnx__NodeProto);
    *copy = *read->node;
    copy->has_source_at = copy->has_source_size = 0;
    copy->input = NEWS(x->arena, ProtobufCBinaryData, copy->n_input);
    memcpy(copy->input, read->node->input, copy->n_input * sizeof *copy->input);
    e->value.p = copy;
    add_node(x, read->index, copy);
    x->nodes[x->n_nodes - 1].reads = true;
    return copy;
}

static void edit_part(StateExport *x, const Held *h)
{
    for (size_t i = 0; i < h->part->n_reads; i++)
        copy_of_reader(x, &h->part->reads[i])->input[h->part->reads[i].slot] = encode_text(h->name);
    add_initializer(x, h->name, h->now);
}

static void edit(StateExport *x, const Held *h)
{
    if (h->by == HELD_PART) {
        edit_part(x, h);
    } else if (h->by == HELD_ALIAS) {
        add_node(x, h->index, NULL);
        add_initializer(x, h->name, h->now);
    } else if (h->tensor) {
        add_weight(x, h->name, h->now);
    } else if (h->by == HELD_CONSTANT) {
        set_constant(x, h);
    } else {
        GROW(x->arena, x->without, x->n_without, x->cap_without);
        x->without[x->n_without++] = h->index;
        add_initializer(x, h->name, h->now);
    }
}

/* An alias that is to hold what it names stays one; otherwise it becomes a parameter of its own. */
static Status settle_alias(StateExport *x, Held *h, const Tensor *value)
{
    bool same;
    if (!value && !h->of->now)
        return OK;
    if (!value)
        TRY(file_value(x, h, &value));
    TRY(holds(x, h, h->of->now, value, &same));
    h->now = same ? h->of->now : value;
    if (!same)
        edit(x, h);
    return OK;
}

static Status settle(StateExport *x, Held *h)
{
    const MapEntry *e = map_find(&x->wanted, h->shown);
    const Tensor *value = NULL;
    bool same;
    if (!e && (!h->of || !h->of->now))
        return OK;
    TRY(original(x, h));
    if (e)
        TRY(convert(x, h, e->value.cp, &value));
    if (h->of)
        return settle_alias(x, h, value);
    TRY(holds(x, h, NULL, value, &same));
    if (!same) {
        h->now = value;
        edit(x, h);
    }
    return OK;
}

/* ---- what is wanted ---- */

static const Tensor *transposed(StateExport *x, const Tensor *t)
{
    const int64_t rows = t->type->dims[0], columns = t->type->dims[1], dims[2] = { columns, rows };
    Tensor *out = tensor_alloc(x->heap, type_tensor(&x->im.ir->types, t->type->dtype, 2, dims));
    const size_t size = (size_t)dtype_bits(t->type->dtype) / 8;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            memcpy((char *)out->data + (size_t)(k * rows + i) * size,
                   (const char *)t->data + (size_t)(i * columns + k) * size, size);
    return out;
}

static Status want_twin(StateExport *x, const Twin *t)
{
    const MapEntry *state = map_find(&x->wanted, t->state);
    const Tensor *value = state ? state->value.cp : NULL;
    if (!value || map_find(&x->wanted, t->twin))
        return OK;
    if (t->transposed && (value->type->rank != 2 || dtype_bits(value->type->dtype) < 8))
        return fail(x->diag, place_of(t->twin), "is no matrix that could be transposed");
    map_put(&x->wanted, t->twin, NULL)->value.cp = t->transposed ? transposed(x, value) : value;
    return OK;
}

/* Parameters of bodies and functions have no place of their own in the file. */
static Status all_have_a_place(StateExport *x)
{
    Message *m = NULL;
    for (size_t i = 0; i < x->wanted.n; i++) {
        const char *name = x->wanted.entries[i].key;
        if (map_find(&x->shown, name))
            continue;
        if (!m)
            m = message_new(x->diag, SEVERITY_ERROR, UNSUPPORTED, NOWHERE,
                            "trained parameters have no place of their own in the file");
        message_at(m, "%s", name);
    }
    return m ? message_send(m) : OK;
}

/* Codes, where that is what the file has. */
static const Tensor *value_for(const StateExport *x, const TrainedState *s)
{
    const MapEntry *e = map_find(&x->shown, s->name);
    const Held *h = e ? e->value.p : NULL;
    DType dtype;
    while (h && h->of)
        h = h->of;
    const bool floats =
        !h || !h->tensor || !dtype_from_onnx(h->tensor->data_type, &dtype) || dtype_is_float(dtype) || !s->codes;
    return floats ? s->value : s->codes;
}

static Status want_states(StateExport *x)
{
    const TrainedStates *s = x->states;
    for (size_t i = 0; i < s->n; i++)
        if (!s->list[i].of_training || map_find(&x->shown, s->list[i].name))
            map_put(&x->wanted, s->list[i].name, NULL)->value.cp = value_for(x, &s->list[i]);
    for (size_t i = 0; i < s->n_twins; i++)
        TRY(want_twin(x, &s->twins[i]));
    return all_have_a_place(x);
}

static Status settle_all(StateExport *x)
{
    TRY(hold_model(x));
    TRY(want_states(x));
    for (size_t i = 0; i < x->held.n; i++) /* what an alias names comes before it */
        TRY(settle(x, x->held.entries[i].value.p));
    return OK;
}

static Status export_trained(StateExport *x, const Sink *sink)
{
    TRY(settle_all(x));
    return onnx_export(x->spine, x->diag,
                       &(ExportEdits){ .weights = x->weights,
                                       .n_weights = x->n_weights,
                                       .nodes = x->nodes,
                                       .n_nodes = x->n_nodes,
                                       .more = x->more,
                                       .n_more = x->n_more,
                                       .without = x->without,
                                       .n_without = x->n_without,
                                       .weight_file = x->states->weight_file },
                       sink);
}

static void state_export_open(StateExport *x, Ir *ir, Frame *frame)
{
    ir_open(ir, x->arena, NULL, x->diag);
    ir->limits = x->spine->limits;
    importer_open(&x->im, ir, x->arena, x->spine, NULL);
    x->im.frame = frame;
    map_open(&x->held, x->arena);
    map_open(&x->shown, x->arena);
    map_open(&x->wanted, x->arena);
    map_open(&x->readers, x->arena);
}

Status onnx_export_states(Spine *s, Diag *d, const TrainedStates *states, const Sink *sink)
{
    Arena arena;
    Heap heap;
    Ir ir;
    Frame frame = { 0 };
    StateExport x = { .spine = s, .arena = &arena, .heap = &heap, .diag = d, .states = states };
    arena_open(&arena, s->memory);
    heap_open(&heap, s->memory);
    state_export_open(&x, &ir, &frame);
    const Status status = export_trained(&x, sink);
    heap_close(&heap);
    arena_close(&arena);
    return status;
}

/* ---- into a graph ---- */

static void put_value(StateExport *x, Node *n)
{
    const MapEntry *e = n->name ? map_find(&x->shown, n->name) : NULL;
    const Held *h = e ? e->value.p : NULL;
    if (!h || !h->now)
        return;
    Tensor *t = NEW(x->arena, Tensor);
    ValueAttr *attr = NEW(x->arena, ValueAttr);
    *t = *h->now;
    t->type = n->type;
    attr->value = payload_of(x->arena, t);
    attr->value->name = node_payload(n) ? node_payload(n)->name : NULL;
    n->attr = attr;
}

Status onnx_put_states(Spine *s, Diag *d, const TrainedStates *states, Graph *g, Heap *heap)
{
    Ir *ir = NEW(g->arena, Ir);
    Frame frame = { 0 };
    StateExport x = { .spine = s, .arena = g->arena, .heap = heap, .diag = d, .states = states };
    state_export_open(&x, ir, &frame);
    TRY(settle_all(&x));
    for (Node *n = g->first; n; n = n->next)
        if (n->op == OP_param)
            put_value(&x, n);
    return OK;
}
