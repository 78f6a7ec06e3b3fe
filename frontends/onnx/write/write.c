#include "frontends/onnx/write.h"

#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/file/pack.h"
#include "frontends/onnx/step.h"
#include "frontends/onnx/write/standard_words.h"
#include "frontends/onnx/write/writer.h"
#include "ir/store/init.h"

/* ---- the signature ---- */

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

/* The tensors among what a file says of its inputs or outputs, by name. */
static Map tensors_of(Arena *arena, Onnx__ValueInfoProto *const *list, size_t n)
{
    Map map;
    map_open(&map, arena);
    for (size_t i = 0; i < n; i++)
        if (list[i]->name.len && list[i]->type && list[i]->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            map_put_n(&map, (const char *)list[i]->name.data, list[i]->name.len, NULL)->value.p = list[i];
    return map;
}

/* A dimension keeps the name that it has in the file a graph came from. */
static Onnx__ValueInfoProto *with_shape(Onnx__ValueInfoProto *v, const Map *like)
{
    const MapEntry *e = map_find_n(like, (const char *)v->name.data, v->name.len);
    const Onnx__ValueInfoProto *from = e ? e->value.cp : NULL;
    if (from && v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        v->type->tensor_type->shape = from->type->tensor_type->shape;
    return v;
}

/* A type of the file's that the graph keeps as a word, in whatever holds it. */
static bool is_opaque(const Type *type)
{
    while (type->kind == TYPE_SEQ || type->kind == TYPE_OPTIONAL)
        type = type->parts[0];
    return type->kind == TYPE_OPAQUE;
}

static Status write_inputs(Writer *w, Level *l, bool states_are_inputs)
{
    const Graph *g = l->graph;
    const DimNames *names = w->signature.inputs;
    l->proto->input = NEWS(w->arena, Onnx__ValueInfoProto *, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (is_opaque(n->type))
            return fail_as(w->diag, UNSUPPORTED, NOWHERE, "input %s: %s cannot be written anew", value_name(w, n),
                           type_text(w->arena, n->type));
        if (n->op == OP_state && !states_are_inputs)
            TRY(write_state_tensor(w, l, n));
        else
            l->proto->input[l->proto->n_input++] =
                with_dims(encode_value(w->arena, value_name(w, n), n->type), names ? &names[i] : NULL);
    }
    if (!w->like)
        return OK;
    const Map like = tensors_of(w->arena, w->like->input, w->like->n_input);
    for (size_t i = 0; i < l->proto->n_input; i++)
        with_shape(l->proto->input[i], &like);
    return OK;
}

static bool leaves_as_itself(const Graph *g, int i)
{
    const Node *n = graph_result(g, i);
    const char *text = graph_result_name(g, i);
    return n && (n->op != OP_state || !n->name) && (!text || (n->name && strcmp(text, n->name) == 0));
}

static Map names_of_inputs(Arena *arena, const Graph *g)
{
    Map map;
    map_open(&map, arena);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name)
            map_put(&map, g->inputs[i]->name, NULL);
    return map;
}

/* What leaves has its name before anything inside the graph gets one. */
static const char **claim_results(Writer *w, const Graph *g)
{
    const int n = graph_n_results(g);
    const char **names = NEWS(w->arena, const char *, n + 1);
    const Map inputs = names_of_inputs(w->arena, g);
    Map seen;
    map_open(&seen, w->arena);
    for (int i = 0; i < n; i++) {
        bool fresh = true;
        names[i] = graph_result(g, i) ? NULL : "";
        if (!leaves_as_itself(g, i))
            continue;
        const char *own = value_name(w, graph_result(g, i));
        map_put(&seen, own, &fresh);
        names[i] = fresh ? own : claim_name(w, own);
    }
    for (int i = 0; i < n; i++) {
        const char *text = graph_result_name(g, i);
        text = text || names[i] ? text : graph_result(g, i)->name;
        if (!names[i])
            names[i] = claim_name(w, map_find(&inputs, text) ? arena_printf(w->arena, "%s.next", text) : text);
    }
    return names;
}

/* A result under a name that is not its value's needs a node to carry the name. */
static void write_outputs(Writer *w, Level *l, const char *const *names, bool as_named)
{
    const int n = graph_n_results(l->graph);
    const DimNames *dims = w->signature.outputs;
    const Map like = tensors_of(w->arena, w->like ? w->like->output : NULL, w->like ? w->like->n_output : 0);
    l->proto->output = NEWS(w->arena, Onnx__ValueInfoProto *, n + 1);
    for (int i = 0; i < n; i++) {
        const Node *value = graph_result(l->graph, i);
        const char *text = graph_result_name(l->graph, i);
        Onnx__ValueInfoProto *v =
            with_dims(encode_value(w->arena, names[i], value ? value->type : NULL), dims ? &dims[i] : NULL);
        l->proto->output[l->proto->n_output++] = with_shape(v, &like);
        if (!value || strcmp(names[i], value_name(w, value)) == 0)
            continue;
        Onnx__NodeProto *o = add_identity(w, l, value_name(w, value), names[i], value->type);
        note_node(w, o, QCC_RESULT, "1");
        text = text ? text : value->name;
        if (!as_named && !name_tells(w, names[i], text))
            note_node(w, o, QCC_NAME, text ? text : "");
    }
}

/* ---- the model ---- */

/* The oldest version, from 13 on, under which a node has its standard name; 0: it has none. */
static int oldest_opset(const Node *n)
{
    const OnnxName *o = &op_of(n)->onnx;
    const bool constant = n->op == OP_const || n->op == OP_param;
    const char *op = constant ? "Constant" : o->op;
    int oldest = 0;
    if (!op || (o->domain && !constant))
        return 0;
    for (int opset = ONNX_OPSET_NEWEST; opset >= 13;) {
        const OnnxSchema *s = schema_settled("", op, opset);
        if (!s || !(constant ? encode_admits(op, opset, n->type) : encode_is_standard(n, opset)))
            break;
        oldest = schema_backdated(s) ? schema_backdated(s)->opset : s->since;
        opset = oldest - 1;
    }
    const int least = op_of(n)->least_version ? op_of(n)->least_version(n) : 0;
    return least > oldest && oldest ? least : oldest;
}

/* The lowest opset in which every node that has a standard name has it. */
static int lowest_opset(Graph *g, bool quants)
{
    int opset = 13;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (quants && quants_cover(n))
            continue;
        const int oldest = oldest_opset(n);
        opset = oldest > opset ? oldest : opset;
    }
    return opset;
}

/* The version that came with the opset, or with an element type that is newer. */
static int64_t ir_version_of(const Writer *w)
{
    const int n = w->opset;
    int64_t v = n >= 28 ? ONNX_IR_NEWEST : n >= 25 ? 13 : n == 24 ? 12 : n == 23 ? 11 : n >= 21 ? 10 : n >= 19 ? 9 : 8;
    for (int d = 0; d < DTYPE_COUNT; d++)
        if (w->dtypes >> d & 1 && schema_type_ir(dtype_onnx((DType)d)) > v)
            v = schema_type_ir(dtype_onnx((DType)d));
    return v;
}

Onnx__OperatorSetIdProto *opset_import(Writer *w, const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *o = NEW(w->arena, Onnx__OperatorSetIdProto);
    onnx__operator_set_id_proto__init(o);
    o->has_domain = o->has_version = 1;
    o->domain = encode_text(domain);
    o->version = version;
    return o;
}

static Status write_root(Writer *w, Graph *g, Onnx__GraphProto *proto, bool states_are_inputs)
{
    Level l = { .proto = proto };
    proto->has_name = 1;
    proto->name = encode_text(g->name ? g->name : "main");
    open_root(&l, g);
    TRY(write_inputs(w, &l, states_are_inputs));
    const char **names = claim_results(w, g);
    TRY(write_nodes(w, &l));
    write_outputs(w, &l, names, states_are_inputs);
    note_origins(w, proto, g);
    if (!states_are_inputs)
        note_roles(w, proto, g);
    return OK;
}

/* Large models leave their weights in a file beside them. */
static Status write_model(Writer *w, Onnx__ModelProto *model, const Sink *sink, WeightFile *weights)
{
    if (weights && protobuf_c_message_get_packed_size(&model->base) > (size_t)weight_file_threshold(&w->ir->limits))
        TRY(weight_file_move_all(weights, model->graph));
    if (protobuf_c_message_get_packed_size(&model->base) > (size_t)w->ir->limits.model_bytes)
        return fail_as(w->diag, UNSUPPORTED, NOWHERE,
                       "the model is larger than one file may be (limit model_bytes, %" PRId64 ")",
                       w->ir->limits.model_bytes);
    if (weights)
        weight_file_settle(weights);
    return put_message(&model->base, sink);
}

/* What a bare file says of whom it is for, too. */
static void note_target(Writer *w, Onnx__ModelProto *model, const char *key, const char *value)
{
    if (!value)
        return;
    Onnx__StringStringEntryProto *entry = NEW(w->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(entry);
    entry->has_key = entry->has_value = 1;
    entry->key = encode_text(key);
    entry->value = encode_text(value);
    model->metadata_props[model->n_metadata_props++] = entry;
}

/* What a file says of itself, without our notes. */
static void keep_frame(Writer *w, Onnx__ModelProto *model, const Onnx__ModelProto *from)
{
    Onnx__GraphProto *graph = model->graph;
    const Onnx__StringStringEntryProto *prop;
    *model = *from;
    model->graph = graph;
    model->n_functions = model->n_training_info = model->n_opset_import = model->n_metadata_props = 0;
    model->metadata_props =
        NEWS(w->arena, Onnx__StringStringEntryProto *, from->n_metadata_props + 2); /* and whom it is for */
    for (size_t i = 0; i < from->n_metadata_props; i++) {
        prop = from->metadata_props[i];
        if (prop->key.len < 4 || memcmp(prop->key.data, "qcc.", 4) != 0)
            model->metadata_props[model->n_metadata_props++] = from->metadata_props[i];
    }
    note_target(w, model, QCC_FOR, w->made_for);
    note_target(w, model, QCC_FOR_TEXT, w->datapath);
    if (from->graph && from->graph->has_doc_string) {
        graph->has_doc_string = 1;
        graph->doc_string = from->graph->doc_string;
    }
}

static Status write_graph(Writer *w, Graph *g, const Onnx__ModelProto *from, const Sink *sink, WeightFile *weights,
                          bool states_are_inputs)
{
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    TRY(write_root(w, g, &graph, states_are_inputs));
    model.graph = &graph;
    model.has_producer_name = 1;
    model.producer_name = encode_text("qcc");
    if (from)
        keep_frame(w, &model, from);
    model.has_ir_version = 1;
    model.ir_version = ir_version_of(w);
    model.opset_import = NEWS(w->arena, Onnx__OperatorSetIdProto *, 5);
    model.opset_import[model.n_opset_import++] = opset_import(w, "", w->opset);
    if (w->needs_qcc)
        model.opset_import[model.n_opset_import++] = opset_import(w, QCC_DOMAIN, QCC_DOMAIN_VERSION);
    if (w->needs_qonnx)
        model.opset_import[model.n_opset_import++] = opset_import(w, QONNX_DOMAIN, QONNX_VERSION);
    if (w->needs_preview)
        model.opset_import[model.n_opset_import++] = opset_import(w, ONNX_PREVIEW, ONNX_PREVIEW_NEWEST);
    return write_model(w, &model, sink, weights);
}

static Status write_anew(Graph *g, Diag *d, const SignatureNames *names, const Sink *sink, WeightFile *weights,
                         bool states_are_inputs)
{
    Arena arena;
    Writer w;
    arena_open(&arena, g->ir->memory);
    writer_open(&w, g->ir, &arena, d, lowest_opset(g, false));
    if (names)
        w.signature = *names;
    const Status status = write_graph(&w, g, NULL, sink, weights, states_are_inputs);
    writer_close(&w);
    arena_close(&arena);
    return status;
}

Status onnx_write(Graph *g, Diag *d, const Sink *sink)
{
    return write_anew(g, d, NULL, sink, NULL, false);
}

Status onnx_write_named(Graph *g, Diag *d, const SignatureNames *names, const Sink *sink, WeightFile *weights)
{
    return write_anew(g, d, names, sink, weights, false);
}

/* ---- for others ---- */

static bool has_no_name(const Node *n, int opset)
{
    const bool constant = n->op == OP_const || n->op == OP_param;
    if (constant)
        return !encode_admits("Constant", opset, n->type);
    return n->op == OP_opaque || (!op_of(n)->structural && !encode_is_standard(n, opset));
}

/* The opset of a file, as far as we know it. */
static int opset_of(const Onnx__ModelProto *model)
{
    int64_t version = 0;
    for (size_t i = 0; i < model->n_opset_import; i++)
        if (!model->opset_import[i]->domain.len || str_is(str_of(model->opset_import[i]->domain), "ai.onnx"))
            version = model->opset_import[i]->version;
    return version > ONNX_OPSET_NEWEST ? ONNX_OPSET_NEWEST : (int)version;
}

static Status all_standard(Graph *g, Diag *d, int opset, bool quants)
{
    Message *m = NULL;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (!has_no_name(n, opset) || (quants && quants_cover(n)))
            continue;
        if (!m)
            m = message_new(d, SEVERITY_ERROR, UNSUPPORTED, NOWHERE,
                            "nodes have no standard name in opset %d with the types they have", opset);
        message_at(m, "%s, %s of type %s", node_place(n).where, op_of(n)->name, type_text(d->arena, n->type));
    }
    return m ? message_send(m) : OK;
}

/* A file for QONNX has no codes but those of its operators. */
static Status all_quants(Graph *g, Diag *d)
{
    Message *m = NULL;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if ((!op_of(n)->quant.quantizes && !op_of(n)->quant.dequantizes) || quants_cover(n))
            continue;
        if (!m)
            m = message_new(d, SEVERITY_ERROR, UNSUPPORTED, NOWHERE, "QONNX has no operator for codes");
        message_at(m, "%s, %s of type %s", node_place(n).where, op_of(n)->name, type_text(d->arena, n->type));
    }
    return m ? message_send(m) : OK;
}

Status onnx_write_deployed(Graph *g, Diag *d, const Spine *from, const Sink *sink, WeightFile *weights,
                           const DeployedFor *to)
{
    Arena arena;
    Writer w;
    const int lowest = lowest_opset(g, to->quants), own = opset_of(from->model);
    const int opset = own > lowest ? own : lowest;
    if (to->quants)
        TRY(all_quants(g, d));
    TRY(all_standard(g, d, opset, to->quants));
    arena_open(&arena, g->ir->memory);
    writer_open(&w, g->ir, &arena, d, opset);
    w.bare = true;
    w.like = from->model->graph;
    w.made_for = to->made_for;
    w.datapath = to->datapath;
    w.quants = to->quants;
    const Status status = write_graph(&w, g, from->model, sink, weights, false);
    writer_close(&w);
    arena_close(&arena);
    return status;
}

/* ---- a step as a function ---- */

static Status tell_left(Diag *d, const Map *left)
{
    if (!left->n)
        return OK;
    Message *m = message_new(d, SEVERITY_WARNING, OK, NOWHERE,
                             "%zu ops have no standard name and no expansion: only qcc can run the file", left->n);
    for (size_t i = 0; i < left->n; i++)
        message_at(m, "%s", left->entries[i].key);
    return message_send(m);
}

Status onnx_write_flat(const Graph *g, Diag *d, const Sink *sink)
{
    Arena arena;
    Map left;
    arena_open(&arena, g->ir->memory);
    map_open(&left, &arena);
    Graph *copy = graph_copy(g, &arena);
    Status status = standardize_graph(copy, &left);
    if (status == OK)
        status = tell_left(d, &left);
    if (status == OK)
        status = write_anew(copy, d, NULL, sink, NULL, true);
    arena_close(&arena);
    return status;
}
