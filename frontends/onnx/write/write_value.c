/* Writes constants: equal bytes are written once, and the other constants read the one that has them. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/write/writer.h"
#include "ir/store/blob.h"
#include "ir/store/init.h"

Onnx__TensorProto *write_payload(Writer *w, Payload *p, Place place)
{
    Tensor t = { .type = p->type };
    void *block;
    w->dtypes |= 1u << p->type->dtype;
    if (p->type->kind == TYPE_TENSOR && p->type->dtype == STRING) {
        t.data = (void *)(uintptr_t)payload_strings(p, w->ir->arena, w->diag);
        if (t.data)
            return encode_tensor(w->arena, &t);
        if (!p->failed)
            (void)fail(w->diag, place, "its value, %s, cannot be read", type_text(w->arena, p->type));
        return NULL;
    }
    t.data = (void *)(uintptr_t)payload_bytes(p, &w->heap, &block, w->diag);
    if (!t.data || !type_bytes(p->type, &t.bytes)) {
        (void)payload_failed(p, w->diag, place);
        return NULL;
    }
    return encode_tensor(w->arena, &t);
}

const char *init_text(Writer *w, const Payload *p)
{
    Init init;
    uint32_t bits;
    if (!payload_is_init(p, &init))
        return NULL;
    memcpy(&bits, &init.scale, sizeof bits);
    return arena_printf(w->arena, "%s %" PRIu64 " %" PRIu32, init_word(init.kind), init.seed, bits);
}

const Carrier *carry(Writer *w, const Payload *p, const char *name, const Graph *graph, bool constant)
{
    bool fresh;
    MapEntry *e = map_put_u64(&w->carriers, (uintptr_t)p, &fresh);
    if (!fresh)
        return e->value.cp;
    Carrier *c = NEW(w->arena, Carrier);
    const MapEntry *of_model = w->spine && p->owner == w->spine ? map_find_u64(&w->of_model, p->where) : NULL;
    if (of_model) {
        *c = (Carrier){ of_model->value.cp, NULL, true };
        e->value.p = c;
        return c;
    }
    *c = (Carrier){ name, graph, constant };
    e->value.p = c;
    return NULL;
}

static bool visible(const Carrier *c, const Graph *from)
{
    if (!c->graph)
        return true;
    while (from->owner && from != c->graph)
        from = from->owner->graph;
    return from == c->graph || !c->graph->owner; /* earlier graphs stand in the same list of nodes */
}

void note_payload(Writer *w, Onnx__TensorProto *t, const Payload *p, const char *text, const Carrier *same)
{
    if (same)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_SAME, same->name);
    if (!same && p->name && (!text || strcmp(p->name, text) != 0))
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_BLOB, p->name);
}

/* Parameters of a model's graph are initializers, wherever they stand. */
static Status write_initializer(Writer *w, Level *l, const Node *n, Payload *p, const char *name)
{
    Onnx__TensorProto *t = write_payload(w, p, node_place(n));
    const char *said = init_text(w, p);
    if (!t)
        return p->failed ? p->failed : INVALID;
    t->has_name = 1;
    t->name = encode_text(name);
    if (said)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_INIT, said);
    if (n->flags)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_FLAGS, arena_printf(w->arena, "%u", n->flags));
    if (n->label)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_NODE, n->label);
    note_payload(w, t, p, name, NULL);
    if (l->proto->n_node)
        note(w, &t->metadata_props, &t->n_metadata_props, QCC_AT, arena_printf(w->arena, "%zu", l->proto->n_node));
    add_initializer(w, l, t);
    return OK;
}

static bool may_be_initializer(const Writer *w, const Level *l, const Node *n, const char *name)
{
    return n->op == OP_param && !n->src && !(n->flags & ~NODE_SAID) && !w->spine && name_tells(w, name, n->name) &&
           !(l->graph->owner && l->proto->n_node);
}

static Status write_value(Writer *w, const Node *n, Payload *p, const Carrier *same, Onnx__NodeProto *o)
{
    const char *said = init_text(w, p);
    Onnx__TensorProto *t = write_payload(w, p, node_place(n));
    if (!t)
        return p->failed ? p->failed : INVALID;
    if (p->name) {
        t->has_name = 1;
        t->name = encode_text(p->name);
    }
    o->attribute = NEWS(w->arena, Onnx__AttributeProto *, 1);
    o->attribute[o->n_attribute++] = encode_tensor_attribute(w->arena, "value", t);
    if (said)
        note_node(w, o, QCC_INIT, said);
    if (same)
        note_node(w, o, QCC_SAME, same->name);
    return OK;
}

Status write_constant(Writer *w, Level *l, const Node *n)
{
    Payload *p = node_payload(n);
    if (!p)
        return fail(w->diag, node_place(n), "its value cannot be read");
    const char *name = value_name(w, n);
    const Carrier *same = carry(w, p, name, l->graph, true);
    const bool reads = same && same->constant && visible(same, l->graph);
    if (!same && may_be_initializer(w, l, n, name))
        return write_initializer(w, l, n, p, name);
    Onnx__NodeProto *o;
    if (reads) {
        o = add_identity(w, l, same->name, name, n->type);
    } else {
        const bool standard = encode_admits("Constant", w->opset, n->type);
        o = standard ? new_node(w, "Constant", "") : new_node(w, "const", QCC_DOMAIN);
        o->output = NEWS(w->arena, ProtobufCBinaryData, 1);
        o->output[o->n_output++] = encode_text(name);
        TRY(write_value(w, n, p, same, o));
        add_node(w, l, o);
    }
    if (w->state_all)
        add_type(w, l, name, n->type);
    note_marks(w, o, n);
    note_node(w, o, QCC_CONST, n->op == OP_const ? "1" : "0");
    if (!name_tells(w, name, n->name))
        note_node(w, o, QCC_NAME, n->name ? n->name : "");
    return OK;
}
