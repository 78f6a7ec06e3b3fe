/* Reads a training step: the algorithm of its TrainingInfoProto, graph by graph, over the model in front. */
#include "frontends/onnx/step.h"

#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/read/dialect_read.h"
#include "frontends/onnx/read/origins.h"
#include "frontends/onnx/read/step_layout.h"
#include "ir/store/init.h"
#include "ir/verify.h"

typedef struct StepReader {
    Importer im;
    Frame frame;
    const Onnx__TrainingInfoProto *info;
    const Onnx__GraphProto *algorithm;
    Map tensors;  /* initializers, of the model and of the algorithm: name -> TensorProto */
    Map zeros;    /* of the algorithm, sparse: name -> SparseTensorProto */
    Map inputs;   /* name -> ValueInfoProto */
    Map outputs;  /* of the algorithm */
    Map bindings; /* output -> the state that it is the next value of */
    Map notes;    /* of the algorithm: key -> text */
    size_t n_bound, at;
    Module *module;
} StepReader;

static Place place(const StepReader *x)
{
    return importer_place(&x->im);
}

/* A note of the algorithm, K.I; null: there is none. */
static const char *item_note(StepReader *x, const char *what, size_t k, size_t i)
{
    const MapEntry *e = map_find(&x->notes, arena_printf(x->im.arena, "%s%zu.%zu", what, k, i));
    return e ? e->value.cp : NULL;
}

static const char *interned(StepReader *x, const char *text)
{
    return text[0] ? name_of(&x->im.ir->names, text, strlen(text)) : NULL;
}

/* The word at the head of a note, which then stands behind it and a blank. */
static Str first_word(const char **at)
{
    const Str word = { *at, strcspn(*at, " ") };
    *at += word.n + ((*at)[word.n] == ' ');
    return word;
}

/* ---- what the file has ---- */

static Status put_unique(StepReader *x, Map *map, ProtobufCBinaryData name, const void *value, const char *what)
{
    bool fresh;
    const char *text = import_name(&x->im, name);
    map_put(map, text, &fresh)->value.cp = value;
    return fresh ? OK : fail(x->im.ir->diag, place(x), "%s %s is there twice", what, text);
}

static Status index_tensors(StepReader *x, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        TRY(put_unique(x, &x->tensors, g->initializer[i]->name, g->initializer[i], "initializer"));
    return OK;
}

static Status index_zeros(StepReader *x)
{
    for (size_t i = 0; i < x->algorithm->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *t = x->algorithm->sparse_initializer[i];
        if (!t->values)
            return fail(x->im.ir->diag, place(x), "sparse initializer %zu has no values", i);
        TRY(put_unique(x, &x->zeros, t->values->name, t, "initializer"));
        if (map_find_n(&x->tensors, (const char *)t->values->name.data, t->values->name.len))
            return fail(x->im.ir->diag, place(x), "initializer %.*s is there twice", STR_ARG(str_of(t->values->name)));
    }
    return OK;
}

static Status index_bindings(StepReader *x)
{
    Map keys;
    map_open(&keys, x->im.arena);
    for (size_t i = 0; i < x->info->n_update_binding; i++) {
        const Onnx__StringStringEntryProto *b = x->info->update_binding[i];
        const char *key = import_name(&x->im, b->key), *value = import_name(&x->im, b->value);
        x->im.where = arena_printf(x->im.arena, "update_binding of %s", key);
        TRY(put_unique(x, &keys, b->key, b, "binding of"));
        if (!map_find(&x->tensors, key) && !map_find(&x->zeros, key))
            return fail(x->im.ir->diag, place(x), "there is no initializer %s", key);
        if (!map_find(&x->outputs, value))
            return fail(x->im.ir->diag, place(x), "the algorithm has no output %s", value);
        TRY(put_unique(x, &x->bindings, b->value, key, "binding to"));
    }
    return OK;
}

static Status index_file(StepReader *x)
{
    const Onnx__GraphProto *model = x->im.spine->model->graph, *g = x->algorithm;
    x->im.where = "algorithm";
    if (!model)
        return fail(x->im.ir->diag, place(x), "stands behind no graph");
    TRY(index_tensors(x, model));
    for (size_t i = 0; i < model->n_input; i++)
        map_put(&x->inputs, import_name(&x->im, model->input[i]->name), NULL)->value.cp = model->input[i];
    TRY(index_tensors(x, g));
    TRY(index_zeros(x));
    for (size_t i = 0; i < g->n_input; i++)
        TRY(put_unique(x, &x->inputs, g->input[i]->name, g->input[i], "input"));
    for (size_t i = 0; i < g->n_output; i++)
        TRY(put_unique(x, &x->outputs, g->output[i]->name, g->output[i], "output"));
    for (size_t i = 0; i < g->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *e = g->metadata_props[i];
        TRY(put_unique(x, &x->notes, e->key, arena_copy(x->im.arena, (const char *)e->value.data, e->value.len),
                       "metadata"));
    }
    return index_bindings(x);
}

/* ---- states and inputs ---- */

/* The bytes of an initializer, read when they are wanted, once for all who name it. */
static Status find_tensor(Importer *im, const char *name, Payload **payload)
{
    static const char own[] = "qcc.step/";
    StepReader *x = im->model;
    const MapEntry *known = map_find(&im->payloads, name), *e = map_find(&x->tensors, name);
    const char *where = im->where;
    *payload = known ? known->value.p : NULL;
    if (known || !e)
        return OK;
    im->where = arena_printf(im->arena, "initializer %s", name);
    TRY(import_payload(im, e->value.cp, payload));
    (*payload)->name = strncmp(name, own, sizeof own - 1) == 0 ? NULL : name;
    TRY(dialect_payload(im, e->value.cp, payload));
    im->where = where;
    map_put(&im->payloads, name, NULL)->value.p = *payload;
    return OK;
}

static Status find_zeros(StepReader *x, const char *name, Payload **payload)
{
    const MapEntry *known = map_find(&x->im.payloads, name), *e = map_find(&x->zeros, name);
    *payload = known ? known->value.p : NULL;
    if (known || !e)
        return OK;
    TRY(import_sparse(&x->im, e->value.cp, payload));
    map_put(&x->im.payloads, name, NULL)->value.p = *payload;
    return OK;
}

static Status read_state(StepReader *x, Graph *g, size_t k, size_t i, const char *name, Node **n)
{
    Payload *p;
    const char *begins = item_note(x, QCC_BEGINS, k, i);
    TRY(find_tensor(&x->im, name, &p));
    if (!p)
        TRY(find_zeros(x, name, &p));
    if (!p)
        return fail(x->im.ir->diag, place(x), "there is no initializer %s", name);
    const Type *type = p->type;
    if (begins && strcmp(begins, "none") == 0)
        p = NULL;
    else if (begins)
        TRY(dialect_init(&x->im, begins, type, &p));
    *n = graph_state(g, NULL, type, &(StateAttr){ .value = p, .stored = item_note(x, QCC_WRITTEN, k, i) });
    return OK;
}

static Status read_data(StepReader *x, Scope *s, const char *name, Node **n)
{
    const MapEntry *e = map_find(&x->inputs, name);
    const Onnx__ValueInfoProto *v = e ? e->value.cp : NULL;
    const Type *stated;
    const char *why;
    if (!v)
        return fail(x->im.ir->diag, place(x), "neither the model nor the step has an input %s", name);
    const Type *type = onnx_type_or(x->im.ir, v->type, &why);
    if (!type)
        return fail(x->im.ir->diag, place(x), "%s", why);
    TRY(dialect_stated(&x->im, s, v->name, &stated));
    if (stated && !type_agrees(stated, type))
        return fail(x->im.ir->diag, place(x), "is stated to be %s and is %s", type_text(x->im.arena, stated),
                    type_text(x->im.arena, type));
    *n = graph_input(s->graph, NULL, stated ? stated : type);
    return OK;
}

static Status read_input(StepReader *x, Scope *s, size_t k, size_t i)
{
    x->im.where = arena_printf(x->im.arena, "@%s, input %zu", s->graph->name, i);
    const char *at = item_note(x, QCC_INPUT, k, i), *label = item_note(x, QCC_LABEL, k, i);
    const char *called = item_note(x, QCC_CALLED, k, i);
    uint64_t src, flags;
    Node *n = NULL;
    if (!at)
        return fail(x->im.ir->diag, place(x), "is not described");
    const Str kind = first_word(&at);
    TRY(note_number(&x->im, &at, UINT32_MAX, &src));
    TRY(note_number(&x->im, &at, UINT16_MAX, &flags));
    const char *name = name_of(&x->im.ir->names, at, strlen(at));
    if (str_is(kind, "state"))
        TRY(read_state(x, s->graph, k, i, name, &n));
    else
        TRY(read_data(x, s, name, &n));
    n->src = (uint32_t)src;
    n->flags = (uint16_t)flags;
    n->label = label ? interned(x, label) : NULL;
    TRY(scope_define(&x->im, s, name, n));
    if (called)
        n->name = interned(x, called);
    return dialect_node_role(&x->im, item_note(x, QCC_BEING, k, i), n);
}

/* ---- graphs ---- */

/* The state whose next value an output is. */
static Status state_of(StepReader *x, Scope *s, const char *output, const char **text)
{
    const MapEntry *b = map_find(&x->bindings, output);
    const MapEntry *state = b ? map_find(&s->values, b->value.cp) : NULL;
    const Node *n = state ? state->value.p : NULL;
    if (!b)
        return fail(x->im.ir->diag, place(x), "no update_binding says of which state %s is the next value", output);
    if (!n || n->op != OP_state)
        return fail(x->im.ir->diag, place(x), "%s is the next value of %s, which is no state of @%s", output,
                    (const char *)b->value.cp, s->graph->name);
    *text = n->name;
    x->n_bound++;
    return OK;
}

static Status read_result(StepReader *x, Scope *s, size_t k, size_t i, Node **value, const char **text)
{
    x->im.where = arena_printf(x->im.arena, "@%s, result %zu", s->graph->name, i);
    const char *at = item_note(x, QCC_OUTPUT, k, i), *leaves = item_note(x, QCC_LEAVES, k, i);
    if (!at)
        return fail(x->im.ir->diag, place(x), "is not described");
    const Str kind = first_word(&at);
    *value = NULL;
    *text = leaves ? interned(x, leaves) : NULL;
    if (str_is(kind, "none"))
        return OK;
    *value = scope_value(&x->im, s, at);
    if (!*value)
        return fail(x->im.ir->diag, place(x), "nothing defines %s", at);
    if (k == 0 && !map_find(&x->outputs, at))
        return fail(x->im.ir->diag, place(x), "%s is no output of the algorithm", at);
    if (str_is(kind, "next"))
        return state_of(x, s, at, text);
    if (!*text)
        *text = (*value)->name;
    return OK;
}

static Status read_results(StepReader *x, Scope *s, size_t k, size_t n)
{
    Node **values = NEWS(x->im.arena, Node *, n + 1);
    const char **names = NEWS(x->im.arena, const char *, n + 1);
    RoleMark *marks = NEWS(x->im.arena, RoleMark, n + 1);
    for (size_t i = 0; i < n; i++) {
        TRY(read_result(x, s, k, i, &values[i], &names[i]));
        TRY(dialect_role(&x->im, ROLES_OF_RESULTS, item_note(x, QCC_LEAVING, k, i), names[i], &marks[i]));
    }
    graph_return_marked(s->graph, (int)n, values, names, marks);
    return OK;
}

static Status read_origins(StepReader *x, size_t k, Graph *g)
{
    const MapEntry *e = map_find(&x->notes, arena_printf(x->im.arena, QCC_ORIGINS "%zu", k));
    if (!e && k)
        code_places_copy(g, x->module->graphs[0]);
    return !e || origins_read(g, e->value.cp)
               ? OK
               : fail(x->im.ir->diag, place(x), "the origins of its nodes are not written as ours");
}

static Status read_graph(StepReader *x, size_t k)
{
    Importer *im = &x->im;
    uint64_t nodes, inputs, results;
    im->where = arena_printf(im->arena, "graph %zu", k);
    const MapEntry *e = map_find(&x->notes, arena_printf(im->arena, QCC_GRAPH "%zu", k));
    const char *at = e ? e->value.cp : NULL;
    if (!at)
        return fail(im->ir->diag, place(x), "is not described");
    TRY(note_number(im, &at, (uint64_t)im->ir->limits.nodes, &nodes));
    TRY(note_number(im, &at, (uint64_t)im->ir->limits.values, &inputs));
    TRY(note_number(im, &at, (uint64_t)im->ir->limits.node_io, &results));
    if (nodes > x->algorithm->n_node - x->at)
        return fail(im->ir->diag, place(x), "has %" PRIu64 " nodes where %zu are left", nodes,
                    x->algorithm->n_node - x->at);
    const char *name = name_of(&im->ir->names, at, strlen(at));
    if (module_graph(x->module, name))
        return fail(im->ir->diag, place(x), "@%s is there twice", name);
    Scope s = { .graph = graph_new(im->ir, im->arena, name), .proto = x->algorithm };
    map_open(&s.values, im->arena);
    TRY(read_origins(x, k, s.graph));
    im->prefix = arena_printf(im->arena, "qcc.%s/", name);
    for (size_t i = 0; i < inputs; i++)
        TRY(read_input(x, &s, k, i));
    TRY(import_nodes(im, &s, x->algorithm->node + x->at, (size_t)nodes));
    x->at += (size_t)nodes;
    TRY(read_results(x, &s, k, (size_t)results));
    module_add(x->module, s.graph);
    return OK;
}

static Status read_graphs(StepReader *x)
{
    Importer *im = &x->im;
    const MapEntry *e = map_find(&x->notes, QCC_GRAPHS);
    const char *at = e->value.cp;
    uint64_t n;
    TRY(note_number(im, &at, (uint64_t)im->ir->limits.nodes, &n));
    for (size_t k = 0; k < n; k++)
        TRY(read_graph(x, k));
    im->where = "algorithm";
    if (x->at != x->algorithm->n_node)
        return fail(im->ir->diag, place(x), "%zu nodes belong to no graph", x->algorithm->n_node - x->at);
    if (x->n_bound != x->bindings.n)
        return fail(im->ir->diag, place(x), "%zu bindings are of states that no graph has", x->bindings.n - x->n_bound);
    return verify_module(x->module, NULL);
}

/* ---- the file ---- */

static Status refuse(Ir *ir, const Spine *s)
{
    const Str producer = str_of(s->model->producer_name);
    if (!s->model->n_training_info) {
        Message *m = message_new(ir->diag, SEVERITY_ERROR, INVALID, NOWHERE, "is a model, not a training step");
        message_try(m, "qcc compile %s", s->source.name);
        return message_send(m);
    }
    return fail_as(ir->diag, UNSUPPORTED, NOWHERE,
                   "its training information is not ours%s%.*s: only the steps that qcc writes can be run",
                   producer.n ? ", but made by " : "", STR_ARG(producer));
}

static void read_notes(StepReader *x, StepNotes *notes)
{
    const Onnx__ModelProto *m = x->im.spine->model;
    StepNote *list = NEWS(x->im.arena, StepNote, m->n_metadata_props + 1);
    *notes = (StepNotes){ .list = list };
    for (size_t i = 0; i < m->n_metadata_props; i++) {
        const Str key = str_of(m->metadata_props[i]->key), value = str_of(m->metadata_props[i]->value);
        if (key.n < 4 || memcmp(key.p, "qcc.", 4) != 0 || (key.n >= 9 && memcmp(key.p, "qcc.file.", 9) == 0))
            continue;
        list[notes->n++] =
            (StepNote){ arena_copy(x->im.arena, key.p, key.n), arena_copy(x->im.arena, value.p, value.n) };
    }
}

static Status read_step(StepReader *x)
{
    Importer *im = &x->im;
    Layout layout;
    TRY(layout_read(im->spine, im->ir->diag, im->arena, &layout));
    TRY(frame_open(im, &x->frame, im->spine->model->opset_import, im->spine->model->n_opset_import));
    if (!x->frame.opset)
        x->frame.opset = 1;
    map_open(&im->functions, im->arena);
    TRY(index_file(x));
    return read_graphs(x);
}

Status onnx_read_step(Ir *ir, Arena *arena, Spine *s, Module **module, StepNotes *notes)
{
    StepReader x = { .frame = { 0 } };
    Map *maps[] = { &x.tensors, &x.zeros, &x.inputs, &x.outputs, &x.bindings, &x.notes };
    if (!onnx_is_step(s))
        return refuse(ir, s);
    importer_open(&x.im, ir, arena, s, NULL);
    for (size_t i = 0; i < COUNT(maps); i++)
        map_open(maps[i], arena);
    x.im.frame = &x.frame;
    x.im.find_payload = find_tensor;
    x.im.model = &x;
    x.info = s->model->training_info[0];
    x.algorithm = x.info->algorithm;
    x.module = module_new(ir, arena);
    x.module->origin = s;
    x.module->file = s->source.name;
    TRY(read_step(&x));
    if (notes)
        read_notes(&x, notes);
    *module = x.module;
    return OK;
}
