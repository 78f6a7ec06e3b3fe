/* STEP.onnx: what is written is read again to the letter, the model in front is untouched and comes out as it was. */
#include "support/step_texts.h"

#include "ir/text/parse.h"
#include "ir/text/print.h"

#include "ops/card/schema.h"

typedef struct Written {
    Text model, step;
    Spine spine, back;
    Module *origin, *module;
} Written;

static Status write_text(Context *c, Written *w, const char *model, const char *module, const StepNotes *notes)
{
    memset(w, 0, sizeof *w);
    w->origin = step_model(c, model, &w->model, &w->spine);
    w->module = step_module(c, module, w->origin);
    text_open(&w->step, &c->arena);
    return onnx_write_step(&w->spine, w->module, notes, &c->diag, &(Sink){ step_append, &w->step }, NULL);
}

static Status read_back(Context *c, Written *w, Module **m, StepNotes *notes)
{
    source_memory(&w->back.source, &c->memory, "step.onnx", w->step.p, w->step.n);
    TRY(spine_read(&w->back, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
    return onnx_read_step(&c->ir, &c->arena, &w->back, m, notes);
}

static void must(Context *c, Status status)
{
    if (status != OK)
        print_error("%s\n", c->last ? c->last : "no message");
    assert_int_equal(status, OK);
}

static void same_text(const char *got, const char *want)
{
    if (strcmp(got, want) != 0)
        print_error("%s\nwanted was\n%s\n", got, want);
    assert_int_equal(strcmp(got, want), 0);
}

static Status round_trips(void *context)
{
    Context *c = context;
    size_t n;
    const StepText *texts = step_texts(&n);
    for (size_t i = 0; i < n; i++) {
        Written w;
        Module *m;
        print_message("%s\n", texts[i].name);
        must(c, write_text(c, &w, texts[i].model, texts[i].module, NULL));
        must(c, read_back(c, &w, &m, NULL));
        same_text(step_text_of(c, m), step_text_of(c, w.module));
        assert_ptr_equal(m->origin, &w.back);
        Text whole; /* the module is a text of several graphs, too */
        text_open(&whole, &c->arena);
        must(c, print_module(&whole, m, NULL));
        must(c, parse_module(&c->ir, &c->arena, str(text_get(&whole)), "step.qir", NULL, NULL, &m));
        Text twice;
        text_open(&twice, &c->arena);
        must(c, print_module(&twice, m, NULL));
        same_text(text_get(&twice), text_get(&whole));
        spine_close(&w.spine);
        spine_close(&w.back);
    }
    return OK;
}

static void what_is_written_is_read_to_the_letter(void **state)
{
    (void)state;
    with_context(round_trips);
}

/* ---- what stands in the file ---- */

static const char *text_of(ProtobufCBinaryData b, Context *c)
{
    return arena_copy(&c->arena, (const char *)b.data, b.len);
}

static const char *bound_to(Context *c, const Onnx__TrainingInfoProto *info, const char *key)
{
    for (size_t i = 0; i < info->n_update_binding; i++)
        if (strcmp(text_of(info->update_binding[i]->key, c), key) == 0)
            return text_of(info->update_binding[i]->value, c);
    return NULL;
}

static const Onnx__NodeProto *giver(Context *c, const Onnx__GraphProto *g, const char *name)
{
    for (size_t i = 0; i < g->n_node; i++)
        if (g->node[i]->n_output && strcmp(text_of(g->node[i]->output[0], c), name) == 0)
            return g->node[i];
    return NULL;
}

static Status standard(void *context)
{
    Context *c = context;
    size_t n;
    Written w;
    Module *m;
    must(c, write_text(c, &w, step_texts(&n)[0].model, step_texts(&n)[0].module, NULL));
    must(c, read_back(c, &w, &m, NULL));
    assert_memory_equal(w.step.p, w.model.p, w.model.n); /* the model is in front */
    const Onnx__TrainingInfoProto *info = w.back.model->training_info[0];
    const Onnx__GraphProto *g = info->algorithm;
    assert_string_equal(bound_to(c, info, "w"), "qcc.step/w1");
    assert_string_equal(bound_to(c, info, "qcc.step/qcc.v/w"), "qcc.step/vw");
    assert_string_equal(bound_to(c, info, "qcc.step/qcc.step"), "qcc.step/n");
    assert_int_equal(info->n_update_binding, 6);
    assert_int_equal(g->n_initializer, 2); /* the scalars; w and b are the model's */
    assert_int_equal(g->n_sparse_initializer, 2);
    assert_string_equal(text_of(g->sparse_initializer[0]->values->name, c), "qcc.step/qcc.v/w");
    assert_int_equal(g->n_input, 1); /* x is the model's */
    assert_string_equal(text_of(g->input[0]->name, c), "qcc.step/target");
    const Onnx__NodeProto *scale = giver(c, g, "qcc.step/onnx::Scale_7");
    assert_string_equal(text_of(scale->op_type, c), "Identity"); /* a constant that the model holds is read there */
    assert_string_equal(text_of(scale->input[0], c), "onnx::Scale_7");
    assert_string_equal(text_of(giver(c, g, "qcc.step/dw")->op_type, c), "MatMul");
    assert_string_equal(text_of(giver(c, g, "qcc.eval/y")->input[1], c), "b");
    for (size_t i = 0; i < g->n_node; i++) { /* the model's opset, 13, knows no axes as operand of ReduceMean */
        const bool ours = strcmp(text_of(g->node[i]->op_type, c), "reduce_mean") == 0;
        assert_string_equal(text_of(g->node[i]->domain, c), ours ? "qcc" : "");
    }
    for (size_t i = 0; i < g->n_output; i++) /* @eval has none */
        assert_memory_equal(g->output[i]->name.data, "qcc.step/", 9);
    spine_close(&w.spine);
    spine_close(&w.back);
    return OK;
}

/* States of a module of another source are the model's where they begin with what it holds. */
static Status equals(void *context)
{
    Context *c = context;
    size_t n;
    const StepText *t = step_texts(&n);
    Written w = { { 0 } };
    Module *m;
    step_model(c, t->model, &w.model, &w.spine);
    w.module = step_module(c, t->module, NULL);
    text_open(&w.step, &c->arena);
    must(c, onnx_write_step(&w.spine, w.module, NULL, &c->diag, &(Sink){ step_append, &w.step }, NULL));
    must(c, read_back(c, &w, &m, NULL));
    same_text(step_text_of(c, m), step_text_of(c, w.module));
    assert_string_equal(bound_to(c, w.back.model->training_info[0], "w"), "qcc.step/w1");
    assert_int_equal(w.back.model->training_info[0]->algorithm->n_initializer, 2);
    spine_close(&w.spine);
    spine_close(&w.back);
    return OK;
}

static void equal_states_are_the_models(void **state)
{
    (void)state;
    with_context(equals);
}

static void the_file_is_what_the_standard_wants(void **state)
{
    (void)state;
    with_context(standard);
}

/* A model that was a text has its parameters as initializers, and is the same text when it is read. */
static Status models(void *context)
{
    Context *c = context;
    size_t n;
    const StepText *texts = step_texts(&n);
    for (size_t i = 0; i < n; i++) {
        Text bytes, text, back;
        Spine s = { 0 };
        Module *m;
        const Module *read = step_model(c, texts[i].model, &bytes, &s);
        must(c, parse_module(&c->ir, &c->arena, str(texts[i].model), "model.qir", NULL, NULL, &m));
        text_open(&text, &c->arena);
        text_open(&back, &c->arena);
        must(c, print_module(&text, m, NULL));
        must(c, print_module(&back, read, NULL));
        same_text(text_get(&back), text_get(&text));
        for (size_t k = 0; k < s.model->graph->n_node; k++)
            assert_string_not_equal(text_of(s.model->graph->node[k]->op_type, c), "Constant");
        spine_close(&s);
    }
    return OK;
}

static void models_that_were_texts_are_models(void **state)
{
    (void)state;
    with_context(models);
}

/* ---- notes, and the way back ---- */

static Status notes(void *context)
{
    Context *c = context;
    size_t n;
    Written w;
    Module *m;
    StepNotes back;
    const StepNote list[] = { { "qcc.options", "{\"batch\": 4}" }, { "qcc.table", "" } };
    const StepText *t = step_texts(&n);
    must(c, write_text(c, &w, t->model, t->module, &(StepNotes){ list, 2 }));
    must(c, read_back(c, &w, &m, &back));
    assert_int_equal(back.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(back.list[i].key, list[i].key);
        assert_string_equal(back.list[i].value, list[i].value);
    }
    spine_close(&w.spine);
    spine_close(&w.back);
    const StepNote bad[] = { { "qcc.a", "1" }, { "qcc.a", "2" } };
    assert_int_equal(write_text(c, &w, t->model, t->module, &(StepNotes){ bad, 2 }), UNSUPPORTED);
    assert_string_equal(c->last, "model.onnx: qcc.a: is no key for a note of a step, or comes twice\n");
    spine_close(&w.spine);
    return OK;
}

static void notes_come_back(void **state)
{
    (void)state;
    with_context(notes);
}

/* The model's ir_version (first field) replaced by bytes of the same meaning place: one older than training. */
static void make_old(Text *model, int version)
{
    assert_int_equal(model->p[0], 1 << 3);
    model->p[1] = (char)version;
}

static Status exports(void *context)
{
    Context *c = context;
    size_t n;
    const StepText *t = step_texts(&n);
    for (int version = 3; version < 9; version++) {
        Written w;
        Text out, again;
        Module *m;
        Spine s = { 0 };
        memset(&w, 0, sizeof w);
        step_model(c, t->model, &w.model, &w.spine);
        spine_close(&w.spine);
        make_old(&w.model, version);
        source_memory(&s.source, &c->memory, "model.onnx", w.model.p, w.model.n);
        must(c, spine_read(&s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
        must(c, onnx_import(&c->ir, &c->arena, &s, NULL, &m));
        w.module = step_module(c, t->module, m);
        text_open(&w.step, &c->arena);
        must(c, onnx_write_step(&s, w.module, NULL, &c->diag, &(Sink){ step_append, &w.step }, NULL));
        must(c, read_back(c, &w, &m, NULL));
        assert_int_equal(w.back.model->ir_version, version < 7 ? 7 : version);
        text_open(&out, &c->arena);
        must(c, onnx_export(&w.back, &c->diag, NULL, &(Sink){ step_append, &out }));
        assert_int_equal(out.n, w.model.n);
        assert_memory_equal(out.p, w.model.p, out.n);
        text_open(&again, &c->arena); /* a step over the model in front of a step: the same file */
        must(c, onnx_write_step(&w.back, m, NULL, &c->diag, &(Sink){ step_append, &again }, NULL));
        assert_int_equal(again.n, w.step.n);
        assert_memory_equal(again.p, w.step.p, again.n);
        spine_close(&w.back);
        spine_close(&s);
    }
    return OK;
}

static void export_removes_exactly_what_was_added(void **state)
{
    (void)state;
    with_context(exports);
}

/* ---- broken files ---- */

typedef struct Break {
    void (*how)(Onnx__ModelProto *m, Context *c);
    const char *says;
} Break;

static Onnx__TrainingInfoProto *info_of(Onnx__ModelProto *m)
{
    return m->training_info[0];
}

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
}

static void drop_binding(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    info_of(m)->update_binding++, info_of(m)->n_update_binding--;
}

static void bind_unknown(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    info_of(m)->update_binding[0]->key = bytes_of("nobody");
}

static void bind_twice(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    info_of(m)->update_binding[0]->key = info_of(m)->update_binding[1]->key;
}

static void bind_no_output(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    info_of(m)->update_binding[0]->value = bytes_of("qcc.step/h");
}

static void swap_bindings(Onnx__ModelProto *m, Context *c)
{
    const ProtobufCBinaryData key = info_of(m)->update_binding[0]->key;
    (void)c;
    info_of(m)->update_binding[0]->key = info_of(m)->update_binding[1]->key;
    info_of(m)->update_binding[1]->key = key;
}

static void double_initializer(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    info_of(m)->algorithm->initializer[0]->name = bytes_of("w");
}

static void double_node(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    Onnx__GraphProto *g = info_of(m)->algorithm;
    g->node[2]->output[0] = g->node[1]->output[0];
}

static Onnx__StringStringEntryProto *entry_of(Onnx__ModelProto *m, Context *c, const char *key)
{
    Onnx__GraphProto *g = info_of(m)->algorithm;
    for (size_t i = 0; i < g->n_metadata_props; i++)
        if (strcmp(text_of(g->metadata_props[i]->key, c), key) == 0)
            return g->metadata_props[i];
    return NULL;
}

static void unknown_input(Onnx__ModelProto *m, Context *c)
{
    entry_of(m, c, "qcc.in.0.0")->value = bytes_of("input 0 0 z");
}

static void unknown_state(Onnx__ModelProto *m, Context *c)
{
    entry_of(m, c, "qcc.in.0.2")->value = bytes_of("state 0 0 z");
}

static void no_number(Onnx__ModelProto *m, Context *c)
{
    entry_of(m, c, "qcc.in.0.2")->value = bytes_of("state -1 0 w");
}

static void too_many_nodes(Onnx__ModelProto *m, Context *c)
{
    entry_of(m, c, "qcc.graph.0")->value = bytes_of("1000 8 7 step");
}

static void too_few_nodes(Onnx__ModelProto *m, Context *c)
{
    entry_of(m, c, "qcc.graphs")->value = bytes_of("1");
}

static void no_input(Onnx__ModelProto *m, Context *c)
{
    entry_of(m, c, "qcc.graph.0")->value = bytes_of("28 9 7 step");
}

static void wrong_type(Onnx__ModelProto *m, Context *c)
{
    Onnx__GraphProto *g = info_of(m)->algorithm;
    for (size_t i = 0; i < g->n_value_info; i++)
        if (strcmp(text_of(g->value_info[i]->name, c), "qcc.step/h") == 0)
            g->value_info[i]->type->tensor_type->elem_type = ONNX_INT64;
}

static void wrong_state(Onnx__ModelProto *m, Context *c)
{
    Onnx__TensorProto *t = m->graph->initializer[0];
    (void)c;
    t->dims[0] = 2;
    t->dims[1] = 3;
}

static void no_bytes(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    m->metadata_props[0]->value = bytes_of("3");
}

static void no_algorithm(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    info_of(m)->algorithm = NULL;
}

static void no_training(Onnx__ModelProto *m, Context *c)
{
    (void)c;
    m->n_training_info = 0;
}

static const Break breaks[] = {
    { drop_binding, "@step, result 1: no update_binding says of which state qcc.step/w1 is the next value" },
    { bind_unknown, "update_binding of nobody: there is no initializer nobody" },
    { bind_twice, "update_binding of b: binding of b is there twice" },
    { bind_no_output, "update_binding of w: the algorithm has no output qcc.step/h" },
    { swap_bindings, "node b1: state %w is f32[3,2], its next value f32[2]" },
    { double_initializer, "algorithm: initializer w is there twice" },
    { double_node, "is defined twice" },
    { unknown_input, "@step, input 0: neither the model nor the step has an input z" },
    { unknown_state, "@step, input 2: there is no initializer z" },
    { no_number, "@step, input 2: its metadata say '-1 0 w', which no writer of ours does" },
    { too_many_nodes, "graph 0: has 1000 nodes where" },
    { too_few_nodes, "nodes belong to no graph" },
    { no_input, "@step, input 8: is not described" },
    { wrong_type, "qcc.step/h is stated to be i64[4,2] and is f32[4,2]" },
    { wrong_state, "node 1 /fc/MatMul: matmul inner dimensions differ: 3 and 2" },
    { no_bytes, "step.onnx" },
    { no_algorithm, "its training information is not ours, but made by qcc" },
    { no_training, "step.onnx: is a model, not a training step\n  try: qcc compile step.onnx" },
};

static void *from_arena(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void to_nowhere(void *arena, void *block)
{
    (void)arena, (void)block;
}

static Status broken(void *context)
{
    Context *c = context;
    size_t n;
    for (size_t i = 0; i < COUNT(breaks); i++) {
        Written w;
        Module *m;
        must(c, write_text(c, &w, step_texts(&n)[0].model, step_texts(&n)[0].module, NULL));
        spine_close(&w.spine);
        ProtobufCAllocator allocator = { from_arena, to_nowhere, &c->arena };
        Onnx__ModelProto *p = onnx__model_proto__unpack(&allocator, w.step.n, (const uint8_t *)w.step.p);
        breaks[i].how(p, c);
        Text changed;
        text_open(&changed, &c->arena);
        const size_t size = onnx__model_proto__get_packed_size(p);
        changed.p = arena_alloc(&c->arena, size + 1);
        changed.n = onnx__model_proto__pack(p, (uint8_t *)changed.p);
        w.step = changed;
        c->last = "";
        c->diag.file = "step.onnx";
        assert_int_not_equal(read_back(c, &w, &m, NULL), OK);
        if (!strstr(c->last, breaks[i].says))
            print_error("%zu: %s\nwanted was %s\n", i, c->last, breaks[i].says);
        assert_non_null(strstr(c->last, breaks[i].says));
        spine_close(&w.back);
    }
    return OK;
}

static void broken_files_are_refused_with_a_place(void **state)
{
    (void)state;
    with_context(broken);
}

/* ---- any bytes ---- */

typedef struct Mutant {
    Context c;
    const Str *whole;
    uint64_t seed;
    bool read;
} Mutant;

static Status read_mutant(void *arg)
{
    Mutant *x = arg;
    Context *c = &x->c;
    Rng rng = { x->seed };
    Written w = { { 0 } };
    Module *m;
    text_open(&w.step, &c->arena);
    text_bytes(&w.step, x->whole->p, x->whole->n);
    for (int k = 0; k < 2; k++)
        w.step.p[rng_below(&rng, (int64_t)w.step.n)] ^= (char)(1 << rng_below(&rng, 7));
    x->read = read_back(c, &w, &m, NULL) == OK;
    spine_close(&w.back);
    return OK;
}

static Status keep_bytes(void *context)
{
    Context *c = context;
    size_t n;
    const StepText *texts = step_texts(&n);
    int read = 0, refused = 0;
    for (size_t i = 0; i < n; i++) {
        Written w;
        must(c, write_text(c, &w, texts[i].model, texts[i].module, NULL));
        const Str whole = { w.step.p, w.step.n };
        for (uint64_t k = 0; k < 300; k++) {
            Mutant x = { .whole = &whole, .seed = i << 32 | k };
            context_open(&x.c);
            assert_int_equal(guarded(&x.c.memory, read_mutant, &x), OK);
            read += x.read;
            refused += !x.read;
            context_close(&x.c);
        }
        spine_close(&w.spine);
    }
    print_message("%d read, %d refused\n", read, refused);
    assert_true(read > 50 && refused > 100);
    return OK;
}

static void any_bytes_are_read_or_refused(void **state)
{
    (void)state;
    with_context(keep_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_to_the_letter),
        cmocka_unit_test(the_file_is_what_the_standard_wants),
        cmocka_unit_test(equal_states_are_the_models),
        cmocka_unit_test(models_that_were_texts_are_models),
        cmocka_unit_test(notes_come_back),
        cmocka_unit_test(export_removes_exactly_what_was_added),
        cmocka_unit_test(broken_files_are_refused_with_a_place),
        cmocka_unit_test(any_bytes_are_read_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
