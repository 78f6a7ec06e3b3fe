#include "frontends/onnx/read/importer.h"

#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/read/dialect_read.h"
#include "frontends/onnx/read/origins.h"
#include "ir/aliases.h"

Place importer_place(const Importer *im)
{
    return (Place){ .where = im->where, .byte = -1 };
}

const char *import_name(Importer *im, ProtobufCBinaryData b)
{
    return name_of(&im->ir->names, b.data ? (const char *)b.data : "", b.len);
}

Status import_tensor(Importer *im, Graph *g, const Onnx__TensorProto *t, const char *name, Node **node)
{
    Payload *p;
    const char *state = note_of(im, t->metadata_props, t->n_metadata_props, QCC_STATE);
    TRY(import_payload(im, t, &p));
    p->name = name;
    TRY(dialect_payload(im, t, &p));
    map_put(&im->payloads, name, NULL)->value.p = p;
    if (state) {
        const char *said = note_of(im, t->metadata_props, t->n_metadata_props, QCC_INIT);
        const StateAttr attr = { .value = said && strcmp(said, "none") == 0 ? NULL : p,
                                 .stored = note_of(im, t->metadata_props, t->n_metadata_props, QCC_KEPT) };
        *node = graph_state(g, shown_name(im, name), p->type, &attr);
        TRY(dialect_node_role(im, note_of(im, t->metadata_props, t->n_metadata_props, QCC_ROLE), *node));
        TRY(dialect_set_marks(im, state, *node));
        return dialect_tensor_marks(im, t, *node);
    }
    Build b = build_at_end(g);
    *node = build_typed(&b, OP_param, &(ValueAttr){ p }, 0, NULL, p->type);
    TRY(b.status);
    (*node)->name = shown_name(im, name);
    return dialect_tensor_marks(im, t, *node);
}

/* What the exporter says of an initializer of the model. */
static void heed_exporter(Importer *im, const char *name, Node *n)
{
    const MapEntry *e = im->torch ? map_find(&im->torch->initializers, name) : NULL;
    const TorchHeld *held = e ? e->value.cp : NULL;
    if (!held || n->op != OP_param || n->flags || n->label || !n->name)
        return;
    n->name = name_of(&im->ir->names, held->shown, strlen(held->shown));
    n->flags = held->flags;
    n->label = held->label ? name_of(&im->ir->names, held->label, strlen(held->label)) : NULL;
}

static void import_aliases(const Importer *im, Graph *g)
{
    for (size_t i = 0; im->torch && i < im->torch->aliases.n; i++)
        alias_add(g, im->torch->aliases.entries[i].value.cp, im->torch->aliases.entries[i].key);
}

/* Tensors that one initializer holds are parameters of their own, with its values. */
static Status import_parts(Importer *im, Scope *s)
{
    map_open(&im->torch_parts, im->arena);
    for (size_t i = 0; im->torch && i < im->torch->n_parts; i++) {
        const TorchHeld *part = im->torch->parts[i];
        const MapEntry *of = map_find(&im->payloads, part->of);
        Build b = build_at_end(s->graph);
        Payload *p = of ? of->value.p : NULL;
        if (!p)
            continue;
        Node *n = build_typed(&b, OP_param, &(ValueAttr){ p }, 0, NULL, p->type);
        TRY(b.status);
        const char *name = name_of(&im->ir->names, part->name, strlen(part->name));
        n->flags = part->flags;
        n->label = part->label ? name_of(&im->ir->names, part->label, strlen(part->label)) : NULL;
        TRY(scope_define(im, s, name, n));
        map_put_u64(&im->torch_parts, (uintptr_t)part, NULL)->value.p = n;
    }
    return OK;
}

Status import_initializers(Importer *im, Scope *s, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = import_name(im, g->initializer[i]->name);
        im->where = arena_printf(im->arena, "initializer %s", name);
        Node *n;
        TRY(import_tensor(im, s->graph, g->initializer[i], name, &n));
        TRY(dialect_late(im, s, g->initializer[i], n));
        TRY(scope_define(im, s, name, n));
        if (!s->outer && !im->frame->function)
            heed_exporter(im, name, n);
    }
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *t = g->sparse_initializer[i];
        if (!t->values)
            return fail(im->ir->diag, importer_place(im), "sparse initializer %zu has no values", i);
        const char *name = import_name(im, t->values->name);
        Payload *p;
        im->where = arena_printf(im->arena, "sparse initializer %s", name);
        TRY(import_sparse(im, t, &p));
        p->name = name;
        Build b = build_at_end(s->graph);
        TRY(scope_define(im, s, name, build_typed(&b, OP_param, &(ValueAttr){ p }, 0, NULL, p->type)));
    }
    return OK;
}

static const Tensor *bound_value(const Importer *im, const char *name)
{
    const MapEntry *e = map_find(&im->values, name);
    return e ? e->value.cp : NULL;
}

static Status import_inputs(Importer *im, Scope *s, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__ValueInfoProto *v = g->input[i];
        const char *name = import_name(im, v->name);
        im->where = arena_printf(im->arena, "input %s", name);
        if (map_find(&s->values, name))
            continue; /* an initializer that is listed as input too: a default */
        const Tensor *value = bound_value(im, name);
        if (value) {
            Build b = build_at_end(s->graph);
            Payload *p = payload_of(im->arena, value);
            TRY(scope_define(im, s, name, build_typed(&b, OP_param, &(ValueAttr){ p }, 0, NULL, p->type)));
            continue;
        }
        const char *why;
        const Type *type = onnx_type_or(im->ir, v->type, &why);
        if (!type)
            return fail(im->ir->diag, importer_place(im), "%s", why);
        TRY(scope_define(im, s, name, graph_input(s->graph, shown_name(im, name), bound_type(im, v, type, name))));
    }
    return OK;
}

static Status import_results(Importer *im, Scope *s, const Onnx__GraphProto *g)
{
    Node **results = NEWS(im->arena, Node *, g->n_output + 1);
    const char **names = NEWS(im->arena, const char *, g->n_output + 1);
    for (size_t i = 0; i < g->n_output; i++) {
        names[i] = import_name(im, g->output[i]->name);
        im->where = arena_printf(im->arena, "output %s", names[i]);
        results[i] = scope_value(im, s, names[i]);
        if (!results[i])
            return fail(im->ir->diag, importer_place(im), "nothing defines it");
        names[i] = shown_name(im, names[i]);
    }
    graph_return(s->graph, (int)g->n_output, results, names);
    return OK;
}

Status import_graph_body(Importer *im, Scope *s, const Onnx__GraphProto *g)
{
    TRY(import_nodes(im, s, g->node, g->n_node));
    return import_results(im, s, g);
}

static Status read_opsets(Importer *im, Frame *f, Onnx__OperatorSetIdProto *const *imports, size_t n)
{
    map_open(&f->domains, im->arena);
    for (size_t i = 0; i < n; i++) {
        const Str domain = str_of(imports[i]->domain);
        const int64_t version = imports[i]->has_version ? imports[i]->version : 1;
        if (version < 1 || version > 1000000)
            return fail(im->ir->diag, (Place){ .where = "opset_import", .byte = -1 },
                        "version %" PRId64 " of domain '%.*s'", version, STR_ARG(domain));
        const bool onnx = domain.n == 0 || str_is(domain, "ai.onnx");
        if (onnx && f->opset && f->opset != version)
            return fail(im->ir->diag, (Place){ .where = "opset_import", .byte = -1 },
                        "ai.onnx is imported twice: versions %d and %" PRId64, f->opset, version);
        if (onnx)
            f->opset = (int)version;
        if (onnx)
            continue;
        bool fresh;
        MapEntry *e = map_put(&f->domains, import_name(im, imports[i]->domain), &fresh);
        if (!fresh && e->value.i != version)
            return fail(im->ir->diag, (Place){ .where = "opset_import", .byte = -1 },
                        "%s is imported twice: versions %" PRId64 " and %" PRId64, e->key, e->value.i, version);
        e->value.i = version;
    }
    return OK;
}

Status frame_open(Importer *im, Frame *f, Onnx__OperatorSetIdProto *const *imports, size_t n)
{
    TRY(read_opsets(im, f, imports, n));
    if (im->options->opset)
        f->opset = (int)im->options->opset;
    if (f->opset > ONNX_OPSET_NEWEST)
        return warn(im->ir->diag, (Place){ .where = "opset_import", .byte = -1 },
                    "opset %d is newer than %d, the newest we know: read as if it were that", f->opset,
                    ONNX_OPSET_NEWEST);
    return OK;
}

static Status read_functions(Importer *im, const Onnx__ModelProto *model)
{
    map_open(&im->functions, im->arena);
    if (model->n_functions > (size_t)im->ir->limits.functions)
        return fail(im->ir->diag, NOWHERE, "%zu functions are more than the limit functions (%" PRId64 ")",
                    model->n_functions, im->ir->limits.functions);
    for (size_t i = 0; i < model->n_functions; i++) {
        const Onnx__FunctionProto *f = model->functions[i];
        const Str domain = str_of(f->domain), name = str_of(f->name), overload = str_of(f->overload);
        const char *key =
            arena_printf(im->arena, "%.*s\n%.*s\n%.*s", STR_ARG(domain), STR_ARG(name), STR_ARG(overload));
        bool fresh;
        map_put(&im->functions, key, &fresh)->value.cp = f;
        if (!fresh)
            return fail(im->ir->diag, NOWHERE, "function %.*s is defined twice", STR_ARG(name));
    }
    return OK;
}

static const MapEntry *function_entry(const Importer *im, Arena *arena, Str domain, Str name, Str overload)
{
    if (!im->functions.n)
        return NULL;
    if (str_is(domain, "ai.onnx"))
        domain = str("");
    const char *key = arena_printf(arena, "%.*s\n%.*s\n%.*s", STR_ARG(domain), STR_ARG(name), STR_ARG(overload));
    return map_find(&im->functions, key);
}

const Onnx__FunctionProto *find_function(const Importer *im, Str domain, Str name, Str overload)
{
    const MapEntry *e = function_entry(im, im->arena, domain, name, overload);
    return e ? e->value.cp : NULL;
}

bool function_index(const Importer *im, Arena *scratch, const Onnx__NodeProto *o, size_t *index)
{
    const ArenaMark mark = arena_mark(scratch);
    const MapEntry *e = function_entry(im, scratch, str_of(o->domain), str_of(o->op_type), str_of(o->overload));
    arena_reset(scratch, mark);
    if (e)
        *index = (size_t)(e - im->functions.entries); /* entries stand in the order of the file */
    return e;
}

/* The first of a name counts. */
static void bind(Map *map, const char *name, const void *what)
{
    bool fresh;
    MapEntry *e = map_put(map, name, &fresh);
    if (fresh)
        e->value.cp = what;
}

/* Files may have as many inputs as a line has options. */
static void read_bindings(Importer *im)
{
    const ImportOptions *o = im->options;
    map_open(&im->dims, im->arena);
    map_open(&im->shapes, im->arena);
    map_open(&im->values, im->arena);
    for (size_t i = 0; i < o->n_dims; i++)
        bind(&im->dims, o->dims[i].name, &o->dims[i]);
    for (size_t i = 0; i < o->n_shapes; i++)
        if (o->shapes[i].input)
            bind(&im->shapes, o->shapes[i].input, &o->shapes[i]);
    for (size_t i = 0; i < o->n_values; i++)
        bind(&im->values, o->values[i].input, o->values[i].value);
}

void importer_open(Importer *im, Ir *ir, Arena *arena, Spine *spine, const ImportOptions *options)
{
    static const ImportOptions nothing = { 0 };
    *im = (Importer){ .ir = ir, .arena = arena, .spine = spine, .options = options ? options : &nothing, .prefix = "" };
    read_bindings(im);
    map_open(&im->texts, arena);
    map_open(&im->payloads, arena);
}

/* Those that our own writer noted. */
static Status import_origins(Importer *im, Graph *g, const Onnx__GraphProto *proto)
{
    const char *text = note_of(im, proto->metadata_props, proto->n_metadata_props, QCC_ORIGIN);
    im->where = QCC_ORIGIN;
    return !text || origins_read(g, text) ? OK : fail(im->ir->diag, importer_place(im), "no writer of ours wrote this");
}

Status onnx_import(Ir *ir, Arena *arena, Spine *spine, const ImportOptions *options, Module **module)
{
    const Onnx__ModelProto *model = spine->model;
    Importer im;
    Frame frame = { 0 };
    importer_open(&im, ir, arena, spine, options);
    im.frame = &frame;
    if (!model->graph)
        return fail(ir->diag, NOWHERE, "has no graph");
    TRY(frame_open(&im, &frame, model->opset_import, model->n_opset_import));
    if (!frame.opset)
        frame.opset = 1; /* before IR version 3 nothing was imported */
    TRY(read_functions(&im, model));
    TRY(check_inlining(&im, model));

    const Str name = str_of(model->graph->name);
    Graph *g = graph_new(ir, arena, name.n ? arena_copy(arena, name.p, name.n) : "main");
    Scope scope = { .graph = g, .proto = model->graph };
    map_open(&scope.values, arena);
    im.torch = torch_names(model, arena);
    TRY(import_origins(&im, g, model->graph));
    TRY(import_initializers(&im, &scope, model->graph));
    TRY(import_parts(&im, &scope));
    import_aliases(&im, g);
    TRY(import_inputs(&im, &scope, model->graph));
    TRY(import_graph_body(&im, &scope, model->graph));
    import_origins_between(&im, g);
    TRY(dialect_roles(&im, model->graph, &scope));

    *module = module_new(ir, arena);
    (*module)->origin = spine;
    (*module)->file = spine->source.name;
    module_add(*module, g);
    return OK;
}
