#include "frontends/onnx/write/inference.h"

#include <string.h>

#include "frontends/onnx/file/payload.h"
#include "ops/card/schema.h"

/* Every name that something in the graph reads: node inputs and outputs of the graph. */
static void collect_reads(const Onnx__GraphProto *g, Map *reads)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            if (g->node[i]->input[k].len)
                map_put_n(reads, (const char *)g->node[i]->input[k].data, g->node[i]->input[k].len, NULL);
    for (size_t i = 0; i < g->n_output; i++)
        map_put_n(reads, (const char *)g->output[i]->name.data, g->output[i]->name.len, NULL);
}

static const Onnx__AttributeProto *attribute(const Onnx__NodeProto *o, const char *name)
{
    for (size_t i = 0; i < o->n_attribute; i++)
        if (str_is(str_of(o->attribute[i]->name), name))
            return o->attribute[i];
    return NULL;
}

/* Before opset 7 is_test = 0, also when not given, meant training; from 14 training_mode = 1 does; between, further
 * outputs do. */
static bool norm_trains(const Onnx__NodeProto *o, int64_t opset)
{
    const Onnx__AttributeProto *mode = attribute(o, opset < 7 ? "is_test" : "training_mode");
    if (opset < 7)
        return !mode || mode->i == 0;
    return opset < 14 ? o->n_output > 1 : mode && mode->i != 0;
}

/* The tensor behind a name: an initializer, or the value of a Constant. */
static const Onnx__TensorProto *tensor_named(const Onnx__GraphProto *g, Str name)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (str_equal(str_of(g->initializer[i]->name), name))
            return g->initializer[i];
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *o = g->node[i];
        if (str_is(str_of(o->op_type), "Constant") && o->n_output == 1 && str_equal(str_of(o->output[0]), name))
            return o->n_attribute ? o->attribute[0]->t : NULL;
    }
    return NULL;
}

/* Whether training_mode is a constant true; what an input decides is left alone. */
static bool says_true(Spine *s, Diag *d, Str name)
{
    TensorInfo info;
    uint8_t value = 0;
    const Onnx__TensorProto *t = tensor_named(s->model->graph, name);
    return t && tensor_info(s, d, "training_mode", t, &info) == OK && info.dtype == ONNX_BOOL && info.bytes == 1 &&
           tensor_read(s, d, "training_mode", t, &value, 1) == OK && value;
}

static bool dropout_trains(Spine *s, Diag *d, const Onnx__NodeProto *o, int64_t opset)
{
    const Onnx__AttributeProto *mode = attribute(o, "is_test");
    if (opset < 7)
        return !mode || mode->i == 0;
    return opset >= 12 && o->n_input > 2 && o->input[2].len && says_true(s, d, str_of(o->input[2]));
}

/* The attributes without those of training; before opset 7 with is_test = 1. */
static void inference_attributes(Onnx__NodeProto *copy, const Onnx__NodeProto *o, int64_t opset, Arena *arena)
{
    copy->attribute = NEWS(arena, Onnx__AttributeProto *, o->n_attribute + 1);
    copy->n_attribute = 0;
    for (size_t i = 0; i < o->n_attribute; i++) {
        const Str name = str_of(o->attribute[i]->name);
        if (!str_is(name, "training_mode") && !str_is(name, "is_test"))
            copy->attribute[copy->n_attribute++] = o->attribute[i];
    }
    if (opset >= 7)
        return;
    Onnx__AttributeProto *test = NEW(arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(test);
    test->has_name = test->has_i = test->has_type = 1;
    test->name = (ProtobufCBinaryData){ 7, (uint8_t *)arena_string(arena, "is_test") };
    test->i = 1;
    test->type = 2;
    copy->attribute[copy->n_attribute++] = test;
}

static bool results_read(const Onnx__NodeProto *o, const Map *reads)
{
    for (size_t i = 1; i < o->n_output; i++)
        if (o->output[i].len && map_find_n(reads, (const char *)o->output[i].data, o->output[i].len))
            return true;
    return false;
}

/* ---- what is left behind ---- */

typedef struct Reads {
    Arena *arena;
    Map names; /* that somebody reads, and how often */
    const Onnx__GraphProto **bodies;
    size_t n, cap;
} Reads;

static void read_name(Reads *r, ProtobufCBinaryData name)
{
    if (name.len)
        map_put_n(&r->names, (const char *)name.data, name.len, NULL)->value.i++;
}

static void read_body(Reads *r, const Onnx__GraphProto *g)
{
    if (!g)
        return;
    GROW(r->arena, r->bodies, r->n, r->cap);
    r->bodies[r->n++] = g;
}

/* Who reads what in a graph and in the bodies below it, in which names of the graph may be read. */
static void count_reads(Reads *r, const Onnx__GraphProto *root)
{
    read_body(r, root);
    while (r->n) {
        const Onnx__GraphProto *g = r->bodies[--r->n];
        for (size_t i = 0; i < g->n_output; i++)
            read_name(r, g->output[i]->name);
        for (size_t i = 0; i < g->n_node; i++) {
            const Onnx__NodeProto *o = g->node[i];
            for (size_t k = 0; k < o->n_input; k++)
                read_name(r, o->input[k]);
            for (size_t k = 0; k < o->n_attribute; k++) {
                read_body(r, o->attribute[k]->g);
                for (size_t b = 0; b < o->attribute[k]->n_graphs; b++)
                    read_body(r, o->attribute[k]->graphs[b]);
            }
        }
    }
}

/* Constants by their place among the nodes, initializers by theirs behind all nodes; none that is an input, too. */
static void find_places(Map *places, Arena *arena, const Onnx__GraphProto *g)
{
    Map inputs;
    map_open(places, arena);
    map_open(&inputs, arena);
    for (size_t i = 0; i < g->n_input; i++)
        map_put_n(&inputs, (const char *)g->input[i]->name.data, g->input[i]->name.len, NULL);
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *o = g->node[i];
        if (str_is(str_of(o->op_type), "Constant") && o->n_output == 1)
            map_put_n(places, (const char *)o->output[0].data, o->output[0].len, NULL)->value.u = i;
    }
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Str name = str_of(g->initializer[i]->name);
        if (!map_find_n(&inputs, name.p, name.n))
            map_put_n(places, name.p, name.n, NULL)->value.u = g->n_node + i;
    }
}

static void drop_place(InferenceEdits *e, Arena *arena, const Onnx__GraphProto *g, size_t place)
{
    if (place < g->n_node) {
        GROW(arena, e->nodes, e->n_nodes, e->cap_nodes);
        e->nodes[e->n_nodes++] = (NodeEdit){ place, NULL };
    } else {
        GROW(arena, e->without, e->n_without, e->cap_without);
        e->without[e->n_without++] = g->initializer[place - g->n_node];
    }
}

/* What said whether Dropout trains goes with the last one that read it. */
static void drop_modes(InferenceEdits *e, Arena *arena, const Onnx__GraphProto *g)
{
    Map places;
    Reads r = { .arena = arena };
    const size_t turned = e->n_nodes;
    if (!turned)
        return;
    map_open(&r.names, arena);
    count_reads(&r, g);
    find_places(&places, arena, g);
    for (size_t i = 0; i < turned; i++) {
        const Onnx__NodeProto *was = g->node[e->nodes[i].node];
        for (size_t k = e->nodes[i].by->n_input; k < was->n_input; k++) {
            const Str name = str_of(was->input[k]);
            MapEntry *reads = map_find_n(&r.names, name.p, name.n);
            const MapEntry *place = map_find_n(&places, name.p, name.n);
            if (reads && --reads->value.i == 0 && place)
                drop_place(e, arena, g, place->value.u);
        }
    }
}

static int64_t opset_of(const Onnx__ModelProto *model)
{
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Str domain = str_of(model->opset_import[i]->domain);
        if (domain.n == 0 || str_is(domain, "ai.onnx"))
            return model->opset_import[i]->version;
    }
    return 1;
}

Status inference_edits(Spine *spine, Arena *arena, Diag *d, InferenceEdits *edits)
{
    const Onnx__GraphProto *g = spine->model->graph;
    const int64_t opset = opset_of(spine->model);
    Map reads;
    map_open(&reads, arena);
    collect_reads(g, &reads);
    *edits = (InferenceEdits){ 0 };
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *o = g->node[i];
        const bool norm = str_is(str_of(o->op_type), "BatchNormalization");
        const bool drop = str_is(str_of(o->op_type), "Dropout");
        if (o->domain.len || !((norm && norm_trains(o, opset)) || (drop && dropout_trains(spine, d, o, opset))))
            continue;
        if (norm && results_read(o, &reads)) {
            TRY(warn(d, (Place){ .where = arena_printf(arena, "node %zu", i + 1), .byte = -1 },
                     "its training results are read, so it stays in training form"));
            continue;
        }
        Onnx__NodeProto *copy = NEW(arena, Onnx__NodeProto);
        *copy = *o;
        copy->has_source_at = copy->has_source_size = 0;
        inference_attributes(copy, o, opset, arena);
        if (norm)
            copy->n_output = 1;
        if (drop && opset >= 12)
            copy->n_input = o->n_input > 2 ? 2 : o->n_input;
        GROW(arena, edits->nodes, edits->n_nodes, edits->cap_nodes);
        edits->nodes[edits->n_nodes++] = (NodeEdit){ i, copy };
    }
    drop_modes(edits, arena, g);
    noise_edits(spine, arena, d, edits);
    return OK;
}
