/* The graphs of a step as the algorithm of one TrainingInfoProto. */
#include "frontends/onnx/write/step_writer.h"

#include <string.h>

#include "base/bytes.h"
#include "frontends/onnx/file/payload.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/read/origins.h"
#include "frontends/onnx/read/torch.h"
#include "ir/store/blob.h"
#include "ir/store/init.h"
#include "ir/text/print.h"
#include "ir/role.h"

Status step_refuse(StepWriter *x, const char *where, const char *what)
{
    return fail_as(x->w.diag, UNSUPPORTED, (Place){ .file = x->spine->source.name, .where = where, .byte = -1 }, "%s",
                   what);
}

static const char *text_of(StepWriter *x, ProtobufCBinaryData b)
{
    return arena_copy(x->w.arena, (const char *)b.data, b.len);
}

/* ---- the model in front ---- */

/* Names that begin as ours do are kept for us. */
static Status take_name(StepWriter *x, ProtobufCBinaryData b)
{
    const char *name = text_of(x, b);
    for (size_t k = 0; k < x->module->n_graphs; k++) {
        const char *prefix = arena_printf(x->w.arena, "qcc.%s/", x->module->graphs[k]->name);
        if (strncmp(name, prefix, strlen(prefix)) == 0)
            return step_refuse(x, name, "names that begin with qcc.step/ are kept for what we add");
    }
    map_put(&x->w.taken, name, NULL);
    return OK;
}

/* States that are called what the exporter's module does begin with initializers of other names. */
static void heed_exporter(StepWriter *x)
{
    const TorchNames *torch = torch_names(x->spine->model, x->w.arena);
    for (size_t i = 0; torch && i < torch->initializers.n; i++) {
        const TorchHeld *h = torch->initializers.entries[i].value.cp;
        const MapEntry *e = map_find(&x->initializers, h->name);
        if (e)
            map_put(&x->beginnings, h->shown, NULL)->value.cp = e->value.cp;
    }
}

Status step_read_model(StepWriter *x)
{
    const Onnx__GraphProto *g = x->spine->model->graph;
    if (!g)
        return step_refuse(x, "model", "has no graph");
    for (size_t i = 0; i < g->n_initializer; i++) {
        TRY(take_name(x, g->initializer[i]->name));
        map_put(&x->initializers, text_of(x, g->initializer[i]->name), NULL)->value.cp = g->initializer[i];
    }
    heed_exporter(x);
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        if (g->sparse_initializer[i]->values)
            TRY(take_name(x, g->sparse_initializer[i]->values->name));
    for (size_t i = 0; i < g->n_input; i++) {
        const char *name = text_of(x, g->input[i]->name);
        TRY(take_name(x, g->input[i]->name));
        if (!map_find(&x->initializers, name))
            map_put(&x->inputs, name, NULL)->value.cp = g->input[i];
    }
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            TRY(take_name(x, g->node[i]->output[k]));
    return OK;
}

static bool says_the_same(StepWriter *x, const Payload *p, const Onnx__TensorProto *t)
{
    const char *said = init_text(&x->w, p);
    for (size_t i = 0; said && i < t->n_metadata_props; i++)
        if (str_is(str_of(t->metadata_props[i]->key), QCC_INIT))
            return str_is(str_of(t->metadata_props[i]->value), said);
    return false;
}

/* Whether an initializer holds what a constant of another source does: a model that was a text became a file. */
static bool holds_the_same(StepWriter *x, const Node *n, Payload *p, const Onnx__TensorProto *t)
{
    void *blocks[2] = { NULL, NULL };
    TensorInfo info;
    size_t bytes;
    const bool named = !p->name || strcmp(p->name, n->name) == 0 || type_elements(p->type) <= PRINT_INLINE_ELEMENTS;
    bool same = named && tensor_info(x->spine, x->w.diag, n->name, t, &info) == OK && info.rank == n->type->rank &&
                info.dtype == dtype_onnx(n->type->dtype) && type_bytes(n->type, &bytes) && bytes == info.bytes;
    for (int i = 0; same && i < info.rank; i++)
        same = info.dims[i] == n->type->dims[i];
    if (!same)
        return false;
    const void *have = payload_bytes(p, &x->w.heap, &blocks[0], x->w.diag);
    blocks[1] = heap_alloc(&x->w.heap, bytes ? bytes : 1);
    same = have && tensor_read(x->spine, x->w.diag, n->name, t, blocks[1], bytes) == OK &&
           bytes_equal(have, blocks[1], bytes);
    heap_free(&x->w.heap, blocks[0]);
    heap_free(&x->w.heap, blocks[1]);
    return same;
}

/* The model's initializer of a state's name, if the state begins with what that holds. */
static const Onnx__TensorProto *of_model(StepWriter *x, const Node *n, Payload *p)
{
    const MapEntry *first = map_find(&x->beginnings, n->name);
    const MapEntry *e = first ? first : map_find(&x->initializers, n->name);
    const Onnx__TensorProto *t = e ? e->value.cp : NULL;
    bool same = false;
    Init init;
    if (!t || !p)
        return NULL;
    if (p->owner == x->spine)
        same = t->has_source_at && p->where == t->source_at;
    else
        same = payload_is_init(p, &init) ? says_the_same(x, p, t) : holds_the_same(x, n, p, t);
    return same ? t : NULL;
}

/* ---- inputs ---- */

/* An input of the model is read where its type admits the step's; else the step has one of its own. */
static const char *input_name(StepWriter *x, const Node *n)
{
    const MapEntry *e = n->name ? map_find(&x->inputs, n->name) : NULL;
    const Onnx__ValueInfoProto *v = e ? e->value.cp : NULL;
    const Type *declared = v && v->type ? onnx_type(x->w.ir, v->type) : NULL;
    bool fresh = false;
    if (declared && type_agrees(declared, n->type)) {
        MapEntry *bound = map_put(&x->bound, n->name, &fresh);
        if (!fresh && bound->value.cp == n->type)
            return n->name;
        if (fresh) {
            bound->value.cp = n->type;
            if (declared != n->type)
                add_type(&x->w, &x->level, n->name, n->type);
            return n->name;
        }
    }
    const char *own = arena_printf(x->w.arena, "qcc.step/%s", n->name ? n->name : "");
    MapEntry *known = n->name ? map_find(&x->bound, own) : NULL;
    if (known && known->value.cp == n->type)
        return own;
    own = n->name && !known ? claim_name(&x->w, own) : value_name(&x->w, n);
    map_put(&x->bound, own, NULL)->value.cp = n->type;
    GROW(x->w.arena, x->algorithm.input, x->algorithm.n_input, x->cap_input);
    x->algorithm.input[x->algorithm.n_input++] = encode_value(x->w.arena, own, n->type);
    return own;
}

/* What a state begins with: stored bytes, not what is said or nothing. */
static Payload *stored(const Node *n)
{
    Init init;
    Payload *p = state_initial(n);
    return p && !payload_is_init(p, &init) ? p : NULL;
}

/* A later graph need not say it again. */
static Status same_beginning(StepWriter *x, const StepState *s, const Node *n)
{
    void *blocks[2];
    size_t bytes;
    Payload *p = state_initial(n), *first = s->payload;
    if (s->type != n->type)
        return step_refuse(x, s->name, "is a state of two types");
    if (!p || first == p)
        return OK;
    if (!first)
        first = payload_init(x->w.arena, s->type, (Init){ .kind = INIT_ZEROS });
    const void *have = payload_bytes(first, &x->w.heap, &blocks[0], x->w.diag);
    const void *want = payload_bytes(p, &x->w.heap, &blocks[1], x->w.diag);
    const bool same = have && want && type_bytes(s->type, &bytes) && bytes_equal(have, want, bytes);
    heap_free(&x->w.heap, blocks[0]);
    heap_free(&x->w.heap, blocks[1]);
    return same ? OK : step_refuse(x, s->name, "is a state that begins with two different values");
}

/* A state is the model's initializer of its name where it begins with what that holds; else one of ours. */
static Status add_state(StepWriter *x, const Node *n)
{
    bool fresh;
    if (!n->name || n->type->kind != TYPE_TENSOR || !type_known(n->type))
        return step_refuse(x, n->name ? n->name : "state", "is a state without a name, or of no known size");
    MapEntry *e = map_put(&x->states, n->name, &fresh);
    if (!fresh)
        return same_beginning(x, e->value.p, n);
    StepState *s = e->value.p = NEW(x->w.arena, StepState);
    *s = (StepState){ .name = n->name, .type = n->type };
    s->payload = state_initial(n);
    const Onnx__TensorProto *t = of_model(x, n, s->payload);
    if (t) {
        s->onnx = text_of(x, t->name);
        s->of_model = true;
        map_put(&x->changing, s->onnx, NULL);
        carry(&x->w, s->payload, s->onnx, NULL, false);
        return OK;
    }
    s->onnx = claim_name(&x->w, arena_printf(x->w.arena, "qcc.step/%s", n->name));
    return OK;
}

static Status write_zeros(StepWriter *x, const StepState *s)
{
    Types *types = &x->w.ir->types;
    TRY(tensor_wants_numbers(x->w.diag, NOWHERE, arena_printf(x->w.arena, "state %s", s->name), s->type));
    Onnx__SparseTensorProto *t = NEW(x->w.arena, Onnx__SparseTensorProto);
    onnx__sparse_tensor_proto__init(t);
    t->values = encode_tensor(x->w.arena, tensor_new(x->w.arena, type_vector(types, s->type->dtype, 0)));
    t->indices = encode_tensor(x->w.arena, tensor_new(x->w.arena, type_vector(types, I64, 0)));
    t->values->has_name = 1;
    t->values->name = encode_text(s->onnx);
    t->n_dims = (size_t)s->type->rank;
    t->dims = (int64_t *)(uintptr_t)s->type->dims;
    GROW(x->w.arena, x->algorithm.sparse_initializer, x->algorithm.n_sparse_initializer, x->level.cap_sparse);
    x->algorithm.sparse_initializer[x->algorithm.n_sparse_initializer++] = t;
    return OK;
}

/* Nothing but zeros needs no bytes; a scalar has no sparse form. */
static bool begins_with_zeros(const StepState *s)
{
    Init init;
    return s->type->rank && (!s->payload || (payload_is_init(s->payload, &init) && init.kind == INIT_ZEROS));
}

static Status write_state(StepWriter *x, const StepState *s)
{
    Payload *p = s->payload;
    if (s->of_model)
        return OK;
    if (begins_with_zeros(s))
        return write_zeros(x, s);
    if (!p)
        p = payload_init(x->w.arena, s->type, (Init){ .kind = INIT_ZEROS });
    Onnx__TensorProto *t = write_payload(&x->w, p, (Place){ .where = s->name, .byte = -1 });
    if (!t)
        return p->failed ? p->failed : INVALID;
    t->has_name = 1;
    t->name = encode_text(s->onnx);
    note_payload(&x->w, t, p, s->onnx, carry(&x->w, p, s->onnx, NULL, false));
    add_initializer(&x->w, &x->level, t);
    return OK;
}

/* ---- graphs ---- */

static void note_graph(StepWriter *x, const char *key, const char *value)
{
    note(&x->w, &x->algorithm.metadata_props, &x->algorithm.n_metadata_props, key, value);
}

static const char *key_of(StepWriter *x, const char *what, size_t k, size_t i)
{
    return arena_printf(x->w.arena, "%s%zu.%zu", what, k, i);
}

static void note_item(StepWriter *x, const char *what, size_t k, size_t i, const char *value)
{
    if (value)
        note_graph(x, key_of(x, what, k, i), value);
}

static Status write_input(StepWriter *x, size_t k, size_t i)
{
    Writer *w = &x->w;
    const Node *n = x->module->graphs[k]->inputs[i];
    const Payload *p = state_initial(n);
    const char *name =
        n->op == OP_state ? ((const StepState *)map_find(&x->states, n->name)->value.cp)->onnx : input_name(x, n);
    name_value(w, n, name);
    note_graph(x, key_of(x, QCC_INPUT, k, i),
               arena_printf(w->arena, "%s %s %s", n->op == OP_state ? "state" : "input", marks_text(w, n), name));
    if (!name_tells(w, name, n->name))
        note_graph(x, key_of(x, QCC_CALLED, k, i), n->name ? n->name : "");
    note_item(x, QCC_LABEL, k, i, n->label);
    note_item(x, QCC_BEING, k, i, node_role_text(w, n));
    note_item(x, QCC_WRITTEN, k, i, node_stored(n));
    if (n->op == OP_state && !stored(n))
        note_graph(x, key_of(x, QCC_BEGINS, k, i), p ? init_text(w, p) : "none");
    return OK;
}

static void add_binding(StepWriter *x, const char *key, const char *value)
{
    note(&x->w, &x->info.update_binding, &x->info.n_update_binding, key, value);
}

/* What the first graph gives are the outputs of the algorithm, each a value of its own. */
static const char *output_name(StepWriter *x, const Node *n, Map *seen)
{
    Writer *w = &x->w;
    bool fresh;
    const char *name = value_name(w, n);
    map_put(seen, name, &fresh);
    if (!fresh || n->op == OP_input || n->op == OP_state) {
        const char *from = name;
        name = claim_name(w, arena_printf(w->arena, "%s%s%u", w->prefix, QCC_NAMELESS, w->n_nameless++));
        note_node(w, add_identity(w, &x->level, from, name, n->type), QCC_RESULT, "1");
    }
    GROW(w->arena, x->algorithm.output, x->algorithm.n_output, x->cap_output);
    x->algorithm.output[x->algorithm.n_output++] = encode_value(w->arena, name, n->type);
    return name;
}

static void write_results(StepWriter *x, size_t k)
{
    Writer *w = &x->w;
    const Graph *g = x->module->graphs[k];
    Map seen, updated;
    map_open(&seen, w->arena);
    map_open(&updated, w->arena);
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *n = graph_result(g, i);
        const char *text = graph_result_name(g, i), *name = "";
        const MapEntry *state = text ? map_find(&x->states, text) : NULL;
        bool next = k == 0 && n && state, fresh = true;
        if (n)
            name = k == 0 ? output_name(x, n, &seen) : value_name(w, n);
        if (next)
            map_put(&updated, text, &fresh);
        next = next && fresh;
        if (next)
            add_binding(x, ((const StepState *)state->value.cp)->onnx, name);
        note_graph(x, key_of(x, QCC_OUTPUT, k, (size_t)i),
                   arena_printf(w->arena, "%s %s",
                                next ? "next"
                                : n  ? "value"
                                     : "none",
                                name));
        if (!next && text && (!n || !n->name || strcmp(text, n->name) != 0))
            note_graph(x, key_of(x, QCC_LEAVES, k, (size_t)i), text);
        note_item(x, QCC_LEAVING, k, (size_t)i, result_role_text(w, g, i));
    }
}

static Status write_module_graph(StepWriter *x, size_t k)
{
    Writer *w = &x->w;
    Graph *g = x->module->graphs[k];
    const size_t before = x->algorithm.n_node;
    w->prefix = arena_printf(w->arena, "qcc.%s/", g->name);
    w->names = facts_open(w->arena, sizeof(const char *));
    for (size_t i = 0; i < g->n_inputs; i++)
        TRY(write_input(x, k, i));
    open_root(&x->level, g);
    TRY(write_nodes(w, &x->level));
    write_results(x, k);
    if (k ? !code_places_equal(g, x->module->graphs[0]) : g->code_places.n > 0)
        note_graph(x, arena_printf(w->arena, QCC_ORIGINS "%zu", k), origins_note(w->arena, g));
    note_graph(x, arena_printf(w->arena, QCC_GRAPH "%zu", k),
               arena_printf(w->arena, "%zu %zu %d %s", x->algorithm.n_node - before, g->n_inputs, graph_n_results(g),
                            g->name));
    return OK;
}

/* Constants that the model holds as initializers, and no state changes, are read there. */
static void carry_model(StepWriter *x)
{
    const Onnx__GraphProto *g = x->spine->model->graph;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        const char *name = text_of(x, t->name);
        if (t->has_source_at && !map_find(&x->changing, name))
            map_put_u64(&x->w.of_model, t->source_at, NULL)->value.cp = name;
    }
}

Status step_write_graphs(StepWriter *x)
{
    const Module *m = x->module;
    Map seen;
    map_open(&seen, x->w.arena);
    if (!m->n_graphs)
        return step_refuse(x, "module", "holds no graph");
    for (size_t k = 0; k < m->n_graphs; k++) {
        bool fresh = m->graphs[k]->name != NULL;
        if (fresh)
            map_put(&seen, m->graphs[k]->name, &fresh);
        if (!fresh)
            return step_refuse(x, "module", "holds a graph without a name, or two of one name");
        for (size_t i = 0; i < m->graphs[k]->n_inputs; i++)
            if (m->graphs[k]->inputs[i]->op == OP_state)
                TRY(add_state(x, m->graphs[k]->inputs[i]));
    }
    carry_model(x);
    for (size_t i = 0; i < x->states.n; i++)
        TRY(write_state(x, x->states.entries[i].value.cp));
    note_graph(x, QCC_GRAPHS, arena_printf(x->w.arena, "%zu", m->n_graphs));
    for (size_t k = 0; k < m->n_graphs; k++)
        TRY(write_module_graph(x, k));
    return OK;
}
