/* The way out of training: final states where the file's parameters were, and weights beside a file. */
#include "ops/card/eval.h"
#include "ops/card/schema.h"
#include "ir/role.h"
#include "support/step_texts.h"

/* ---- models by hand ---- */

typedef struct Model {
    Context *c;
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
} Model;

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
}

static void model_open(Model *m, Context *c, int ir)
{
    *m = (Model){ .c = c };
    onnx__model_proto__init(&m->model);
    onnx__graph_proto__init(&m->graph);
    onnx__operator_set_id_proto__init(&m->opset);
    m->model.graph = &m->graph;
    m->model.has_ir_version = m->opset.has_version = 1;
    m->model.ir_version = ir;
    m->opset.version = 17;
    m->opsets[0] = &m->opset;
    m->model.opset_import = m->opsets;
    m->model.n_opset_import = 1;
    m->graph.has_name = 1;
    m->graph.name = bytes_of("g");
    m->graph.node = NEWS(&c->arena, Onnx__NodeProto *, 32);
    m->graph.initializer = NEWS(&c->arena, Onnx__TensorProto *, 32);
    m->graph.sparse_initializer = NEWS(&c->arena, Onnx__SparseTensorProto *, 32);
    m->graph.input = NEWS(&c->arena, Onnx__ValueInfoProto *, 32);
    m->graph.output = NEWS(&c->arena, Onnx__ValueInfoProto *, 32);
}

static Onnx__TensorProto *tensor(Model *m, const char *name, int dtype, int64_t n, const void *data, size_t bytes)
{
    Onnx__TensorProto *t = NEW(&m->c->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(t);
    t->has_name = t->has_data_type = t->has_raw_data = 1;
    t->name = bytes_of(name);
    t->data_type = dtype;
    t->dims = NEWS(&m->c->arena, int64_t, 1);
    t->dims[t->n_dims++] = n;
    t->raw_data = (ProtobufCBinaryData){ bytes, (uint8_t *)(uintptr_t)data };
    return t;
}

static Onnx__TensorProto *floats(Model *m, const char *name, int64_t n, const float *v)
{
    return tensor(m, name, ONNX_FLOAT, n, v, (size_t)n * sizeof *v);
}

static Onnx__NodeProto *node(Model *m, const char *op, const char *a, const char *b, const char *y)
{
    Onnx__NodeProto *o = NEW(&m->c->arena, Onnx__NodeProto);
    onnx__node_proto__init(o);
    o->has_op_type = 1;
    o->op_type = bytes_of(op);
    o->input = NEWS(&m->c->arena, ProtobufCBinaryData, 2);
    o->output = NEWS(&m->c->arena, ProtobufCBinaryData, 1);
    if (a)
        o->input[o->n_input++] = bytes_of(a);
    if (b)
        o->input[o->n_input++] = bytes_of(b);
    o->output[o->n_output++] = bytes_of(y);
    m->graph.node[m->graph.n_node++] = o;
    return o;
}

static Onnx__AttributeProto *attribute(Model *m, Onnx__NodeProto *o, const char *name, int type)
{
    Onnx__AttributeProto *a = NEW(&m->c->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->has_name = a->has_type = 1;
    a->name = bytes_of(name);
    a->type = type;
    o->attribute = NEWS(&m->c->arena, Onnx__AttributeProto *, 1);
    o->attribute[o->n_attribute++] = a;
    return a;
}

static Onnx__ValueInfoProto *value(Model *m, const char *name, int dtype, int64_t n)
{
    Onnx__ValueInfoProto *v = NEW(&m->c->arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(v);
    v->has_name = 1;
    v->name = bytes_of(name);
    v->type = NEW(&m->c->arena, Onnx__TypeProto);
    onnx__type_proto__init(v->type);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = NEW(&m->c->arena, Onnx__TypeProto__Tensor);
    onnx__type_proto__tensor__init(v->type->tensor_type);
    v->type->tensor_type->has_elem_type = 1;
    v->type->tensor_type->elem_type = dtype;
    v->type->tensor_type->shape = NEW(&m->c->arena, Onnx__TensorShapeProto);
    onnx__tensor_shape_proto__init(v->type->tensor_type->shape);
    v->type->tensor_type->shape->dim = NEWS(&m->c->arena, Onnx__TensorShapeProto__Dimension *, 1);
    Onnx__TensorShapeProto__Dimension *d = NEW(&m->c->arena, Onnx__TensorShapeProto__Dimension);
    onnx__tensor_shape_proto__dimension__init(d);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = n;
    v->type->tensor_type->shape->dim[v->type->tensor_type->shape->n_dim++] = d;
    return v;
}

static void model_read(Model *m, Spine *s)
{
    Context *c = m->c;
    const size_t n = onnx__model_proto__get_packed_size(&m->model);
    uint8_t *bytes = arena_alloc(&c->arena, n + 1);
    onnx__model_proto__pack(&m->model, bytes);
    *s = (Spine){ 0 };
    source_memory(&s->source, &c->memory, "model.onnx", bytes, n);
    assert_int_equal(spine_read(s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor), OK);
}

/* w and three aliases of it, one of an alias; Constants as tensor and as list; a sparse and a 16-bit initializer. */
static void all_kinds(Model *m, Context *c, int ir)
{
    static const float w[] = { 1, 2 }, k[] = { 3, 4 }, sparse[] = { 5 };
    static const uint16_t half[] = { 0x3c00, 0x4000 };
    static const int64_t at[] = { 1 };
    model_open(m, c, ir);
    m->graph.initializer[m->graph.n_initializer++] = floats(m, "w", 2, w);
    m->graph.initializer[m->graph.n_initializer++] = tensor(m, "h", ONNX_FLOAT16, 2, half, sizeof half);
    Onnx__SparseTensorProto *s = NEW(&c->arena, Onnx__SparseTensorProto);
    onnx__sparse_tensor_proto__init(s);
    s->values = floats(m, "s", 1, sparse);
    s->indices = tensor(m, "", ONNX_INT64, 1, at, sizeof at);
    s->dims = NEWS(&c->arena, int64_t, 1);
    s->dims[s->n_dims++] = 2;
    m->graph.sparse_initializer[m->graph.n_sparse_initializer++] = s;
    node(m, "Identity", "w", NULL, "a");
    node(m, "Identity", "a", NULL, "b");
    node(m, "Identity", "w", NULL, "d");
    attribute(m, node(m, "Constant", NULL, NULL, "k"), "value", ONNX_ATTR_TENSOR)->t = floats(m, "", 2, k);
    Onnx__AttributeProto *list = attribute(m, node(m, "Constant", NULL, NULL, "l"), "value_floats", ONNX_ATTR_FLOATS);
    list->n_floats = 2;
    list->floats = (float *)(uintptr_t)k;
    static const char *const all[] = { "w", "a", "b", "d", "k", "l", "s" };
    for (size_t i = 0; i < COUNT(all); i++) {
        node(m, "Mul", "x", all[i], arena_printf(&c->arena, "y.%s", all[i]));
        m->graph.output[m->graph.n_output++] = value(m, arena_printf(&c->arena, "y.%s", all[i]), ONNX_FLOAT, 2);
    }
    node(m, "Neg", "h", NULL, "y.h");
    m->graph.output[m->graph.n_output++] = value(m, "y.h", ONNX_FLOAT16, 2);
    m->graph.input[m->graph.n_input++] = value(m, "x", ONNX_FLOAT, 2);
    if (ir < 4) {
        m->graph.input[m->graph.n_input++] = value(m, "w", ONNX_FLOAT, 2);
        m->graph.input[m->graph.n_input++] = value(m, "h", ONNX_FLOAT16, 2);
    }
}

/* ---- what comes of it ---- */

/* Exports, reads again and evaluates for x = 1: what each output is. */
static void results(Context *c, Spine *s, const TrainedStates *states, Spine *again, Text *out, Tensor **y)
{
    Module *m;
    text_open(out, &c->arena);
    const Status status = onnx_export_states(s, &c->diag, states, &(Sink){ step_append, out });
    if (status != OK)
        print_error("%s\n", c->last);
    assert_int_equal(status, OK);
    *again = (Spine){ 0 };
    source_memory(&again->source, &c->memory, "out.onnx", out->p, out->n);
    assert_int_equal(spine_read(again, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor), OK);
    assert_int_equal(onnx_import(&c->ir, &c->arena, again, NULL, &m), OK);
    Tensor *x = tensor_new(&c->arena, type_vector(&c->ir.types, F32, 2));
    tensor_set_f64(x, 0, 1);
    tensor_set_f64(x, 1, 1);
    assert_int_equal(m->graphs[0]->n_inputs, 1);
    assert_int_equal(evaluate(m->graphs[0], NULL, &c->heap, (const Tensor *const[]){ x }, y), OK);
}

static const Tensor *pair(Context *c, DType dtype, double a, double b)
{
    Tensor *t = tensor_new(&c->arena, type_vector(&c->ir.types, dtype, 2));
    tensor_set_f64(t, 0, a);
    tensor_set_f64(t, 1, b);
    return t;
}

/* Which states are set to (7, 8) or, in capitals, to what the file has; and the first element of w a b d k l s h. */
typedef struct Case {
    const char *set;
    const char *got;
} Case;

static const Case cases[] = {
    { "", "1 1 1 1 3 3 0 -1" },   { "WABDKLSH", "1 1 1 1 3 3 0 -1" }, { "w", "7 1 1 1 3 3 0 -1" },
    { "a", "1 7 1 1 3 3 0 -1" },  { "b", "1 1 7 1 3 3 0 -1" },        { "wabd", "7 7 7 7 3 3 0 -1" },
    { "wA", "7 1 1 1 3 3 0 -1" }, { "wab", "7 7 7 1 3 3 0 -1" },      { "klsh", "1 1 1 1 7 7 7 -7" },
    { "aB", "1 7 1 1 3 3 0 -1" }, { "wB", "7 1 1 1 3 3 0 -1" },       { "wbD", "7 1 7 1 3 3 0 -1" },
};

static const Tensor *wanted(Context *c, char which)
{
    const DType dtype = F32; /* h is kept in f32 while it is trained */
    switch (which) {
    case 'W':
    case 'A':
    case 'B':
    case 'D':
    case 'H':
        return pair(c, dtype, 1, 2);
    case 'K':
    case 'L':
        return pair(c, dtype, 3, 4);
    case 'S':
        return pair(c, dtype, 0, 5);
    default:
        return pair(c, dtype, 7, 8);
    }
}

static bool is_edited(const char *set)
{
    for (; *set; set++)
        if (*set >= 'a')
            return true;
    return false;
}

static Status every_kind(void *context)
{
    Context *c = context;
    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        const Case *k = &cases[i / 2];
        Model m;
        Spine s, again;
        Text out, said;
        Tensor *y[8];
        TrainedState list[10] = { { "qcc.step", pair(c, F32, 0, 0), true } };
        size_t n = 1;
        all_kinds(&m, c, i % 2 ? 3 : 8);
        model_read(&m, &s);
        for (const char *p = k->set; *p; p++)
            list[n++] = (TrainedState){ arena_printf(&c->arena, "%c", *p | 32), wanted(c, *p) };
        results(c, &s, &(TrainedStates){ .list = list, .n = n }, &again, &out, y);
        text_open(&said, &c->arena);
        for (int j = 0; j < 8; j++) {
            text_printf(&said, "%s%g", j ? " " : "", tensor_get_f64(y[j], 0));
            tensor_drop(&c->heap, y[j]);
        }
        if (strcmp(text_get(&said), k->got) != 0)
            print_error("set '%s'\n", k->set);
        assert_string_equal(text_get(&said), k->got);
        const bool same = out.n == s.source.size && memcmp(out.p, s.source.bytes, out.n) == 0;
        assert_int_equal(same, !is_edited(k->set));
        if (i % 2) /* before IR version 4 every initializer is an input */
            assert_int_equal(again.model->graph->n_input, again.model->graph->n_initializer + 1);
        spine_close(&s);
        spine_close(&again);
    }
    return OK;
}

static void states_go_where_their_parameters_were(void **state)
{
    (void)state;
    with_context(every_kind);
}

/* ---- twins ---- */

static Status twins(void *context)
{
    static const float table[] = { 1, 2, 3, 4, 5, 6 };
    Context *c = context;
    Model m;
    Spine s, again;
    Text out;
    model_open(&m, c, 8);
    Onnx__TensorProto *t = floats(&m, "table", 2, table), *u = floats(&m, "head", 3, table);
    t->dims = (int64_t[]){ 2, 3 };
    u->dims = (int64_t[]){ 3, 2 };
    t->n_dims = u->n_dims = 2;
    t->raw_data.len = u->raw_data.len = sizeof table;
    m.graph.initializer[m.graph.n_initializer++] = t;
    m.graph.initializer[m.graph.n_initializer++] = u;
    model_read(&m, &s);
    Tensor *trained = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ 2, 3 }));
    for (int i = 0; i < 6; i++)
        tensor_set_f64(trained, i, 10 + i);
    const TrainedState state = { "table", trained };
    const Twin twin = { "table", "head", true };
    text_open(&out, &c->arena);
    assert_int_equal(onnx_export_states(&s, &c->diag,
                                        &(TrainedStates){ .list = &state, .n = 1, .twins = &twin, .n_twins = 1 },
                                        &(Sink){ step_append, &out }),
                     OK);
    again = (Spine){ 0 };
    source_memory(&again.source, &c->memory, "out.onnx", out.p, out.n);
    Module *back;
    assert_int_equal(spine_read(&again, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor), OK);
    assert_int_equal(onnx_import(&c->ir, &c->arena, &again, NULL, &back), OK);
    const Tensor *head = payload_cached(node_payload(back->graphs[0]->first->next), &c->diag);
    static const double want[] = { 10, 13, 11, 14, 12, 15 };
    for (int i = 0; i < 6; i++)
        assert_true(tensor_get_f64(head, i) == want[i]);
    spine_close(&s);
    spine_close(&again);
    return OK;
}

static void a_twin_is_the_transposed_state(void **state)
{
    (void)state;
    with_context(twins);
}

/* ---- what cannot be ---- */

static Status refused(void *context)
{
    Context *c = context;
    const struct {
        const char *name;
        const Tensor *value;
        const char *says;
    } wrong[] = {
        { "nowhere", pair(c, F32, 1, 1), "trained parameters have no place of their own in the file\n  at: nowhere\n" },
        { "w", tensor_scalar(&c->arena, &c->ir.types, F32, 1), "w: ends as f32[], and the file has f32[2]\n" },
        { "w", pair(c, I64, 1, 1), "w: ends as i64[2], and the file has f32[2]\n" },
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        Model m;
        Spine s;
        Text out;
        all_kinds(&m, c, 8);
        model_read(&m, &s);
        text_open(&out, &c->arena);
        const TrainedState state = { wrong[i].name, wrong[i].value };
        assert_int_not_equal(
            onnx_export_states(&s, &c->diag, &(TrainedStates){ .list = &state, .n = 1 }, &(Sink){ step_append, &out }),
            OK);
        assert_string_equal(c->last, wrong[i].says);
        spine_close(&s);
    }
    return OK;
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    with_context(refused);
}

/* ---- trained, exported, read again ---- */

/* The named result; inputs that are states of the step have their next values. */
static Tensor *evaluate_with(Context *c, Graph *g, const char *name, Tensor *const *next, const Graph *step)
{
    const int n = graph_n_results(g);
    const Tensor **in = NEWS(&c->arena, const Tensor *, g->n_inputs + 1);
    Tensor **out = NEWS(&c->arena, Tensor *, n + 1), *y = NULL;
    for (size_t i = 0; i < g->n_inputs; i++) {
        for (int k = 0; k < graph_n_results(step); k++)
            if (strcmp(graph_result_name(step, k), g->inputs[i]->name) == 0)
                in[i] = next[k];
        if (!in[i]) {
            Tensor *t = tensor_new(&c->arena, g->inputs[i]->type);
            for (int64_t k = 0; k < tensor_elements(t); k++)
                tensor_set_f64(t, k, (double)(k % 5) / 4);
            in[i] = t;
        }
    }
    assert_int_equal(evaluate(g, NULL, &c->heap, in, out), OK);
    for (int i = 0; i < n; i++) {
        if (strcmp(graph_result_name(g, i), name) == 0)
            y = out[i];
        else
            tensor_drop(&c->heap, out[i]);
    }
    return y;
}

static bool is_of_training(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i]->op == OP_state && !is_model_state(g->inputs[i]);
    return false;
}

/* A step, taken once on made-up values; its states exported, the file read again: y is that of @eval. */
static void reload(Context *c, const StepText *t, const ShapeBinding *shape)
{
    Text model, out;
    Spine s = { 0 }, again = { 0 };
    const Module *origin = step_model(c, t->model, &model, &s);
    Module *m = step_module(c, t->module, origin), *back;
    Graph *step = m->graphs[0];
    Tensor *next[8];
    const Tensor *in[8];
    TrainedState list[8];
    for (size_t i = 0; i < step->n_inputs; i++) {
        Tensor *x = tensor_new(&c->arena, step->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(x); k++)
            tensor_set_f64(x, k, (double)((k * 3 + (int64_t)i) % 7) / 2);
        in[i] = x;
    }
    assert_int_equal(evaluate(step, NULL, &c->heap, in, next), OK);
    for (int i = 0; i < graph_n_results(step); i++)
        list[i] = (TrainedState){ graph_result_name(step, i), next[i],
                                  !i || is_of_training(step, graph_result_name(step, i)) };
    text_open(&out, &c->arena);
    assert_int_equal(onnx_export_states(&s, &c->diag,
                                        &(TrainedStates){ .list = list, .n = (size_t)graph_n_results(step) },
                                        &(Sink){ step_append, &out }),
                     OK);
    source_memory(&again.source, &c->memory, "out.onnx", out.p, out.n);
    assert_int_equal(spine_read(&again, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor), OK);
    assert_int_equal(onnx_import(&c->ir, &c->arena, &again, &(ImportOptions){ .shapes = shape, .n_shapes = 1 }, &back),
                     OK);
    Tensor *want = evaluate_with(c, m->graphs[1], "y", next, step);
    Tensor *got = evaluate_with(c, back->graphs[0], "y", next, step);
    assert_true(tensor_same(want, got));
    spine_close(&s);
    spine_close(&again);
}

static Status reloaded(void *context)
{
    size_t n;
    const StepText *texts = step_texts(&n);
    reload(context, &texts[0], &(ShapeBinding){ "x", 2, { 4, 3 } });
    assert_string_equal(texts[n - 1].name, "drawn"); /* what is trained must win over what was said */
    reload(context, &texts[n - 1], &(ShapeBinding){ "x", 2, { 4, 40 } });
    return OK;
}

static void a_model_reloaded_is_the_eval_graph(void **state)
{
    (void)state;
    with_context(reloaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_go_where_their_parameters_were),
        cmocka_unit_test(a_twin_is_the_transposed_state),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(a_model_reloaded_is_the_eval_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
