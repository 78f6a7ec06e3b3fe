/* The deployable model: the file's own bytes, but for what was trained or stands in training form. */
#include "onnx_bytes.h"

#include "frontends/onnx/export.h"
#include "frontends/onnx/file/payload.h"
#include "ir/type.h"

typedef struct Tally {
    size_t models, identical, turned, weights;
} Tally;

static Status append(void *user, const void *bytes, size_t n)
{
    put(user, bytes, n);
    return OK;
}

static bool holds(const Bytes *b, const char *text)
{
    return memmem(b->p, b->n, text, strlen(text)) != NULL;
}

static bool is_read(const Onnx__GraphProto *g, Str name)
{
    for (size_t i = 0; i < g->n_output; i++)
        if (str_equal(str_of(g->output[i]->name), name))
            return true;
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++)
            if (str_equal(str_of(g->node[i]->input[k]), name))
                return true;
    return false;
}

/* Constants and initializers that nobody reads; of a graph with bodies none is counted. */
static size_t orphans(const Onnx__GraphProto *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_attribute; k++)
            if (g->node[i]->attribute[k]->g)
                return 0;
        n += str_is(str_of(g->node[i]->op_type), "Constant") && !is_read(g, str_of(g->node[i]->output[0]));
    }
    for (size_t i = 0; i < g->n_initializer; i++)
        n += !is_read(g, str_of(g->initializer[i]->name));
    return n;
}

/* Without edits: the same bytes; files in training form come out changed, and a second export changes nothing. */
static Status export_untouched(Fixture *f, void *arg)
{
    const char *path = ((void **)arg)[0];
    Tally *tally = ((void **)arg)[1];
    Bytes in = read_whole_file(path), out = { 0 }, again = { 0 };
    Spine s = { 0 }, t = { 0 };
    assert_int_equal(spine_open(&s, &f->memory, &f->diag, &f->limits, path), OK);
    assert_int_equal(onnx_export(&s, &f->diag, NULL, &(Sink){ append, &out }), OK);
    const size_t unread = s.model->graph ? orphans(s.model->graph) : 0;
    spine_close(&s);
    if (in.n == out.n && memcmp(in.p, out.p, in.n) == 0) {
        tally->identical++;
    } else {
        if (!holds(&in, "BatchNormalization") && !holds(&in, "Dropout"))
            FAIL("%s changed\n", path);
        source_memory(&t.source, &f->memory, "exported", out.p, out.n);
        assert_int_equal(spine_read(&t, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor), OK);
        assert_int_equal(onnx_export(&t, &f->diag, NULL, &(Sink){ append, &again }), OK);
        if (orphans(t.model->graph) > unread)
            FAIL("%s: what nobody reads is left behind\n", path);
        spine_close(&t);
        assert_int_equal(out.n, again.n);
        assert_memory_equal(out.p, again.p, out.n);
        tally->turned++;
    }
    free(in.p), free(out.p), free(again.p);
    return OK;
}

static void untouched(const char *path, void *arg)
{
    Fixture f;
    Tally *tally = arg;
    tally->models++;
    assert_int_equal(fixture_run(&f, export_untouched, (void *[]){ (void *)(uintptr_t)path, tally }), OK);
}

static void what_was_not_trained_is_byte_identical(void **state)
{
    Tally tally = { 0 };
    (void)state;
    if (each_model(untouched, &tally) == 0)
        skip();
    print_message("%zu models, %zu identical, %zu turned to inference\n", tally.models, tally.identical, tally.turned);
    assert_true(tally.identical > tally.models * 9 / 10);
}

/* Models as PyTorch writes them for training: what said that they train goes with the last that asked. */
static void nothing_is_left_behind(void **state)
{
    static const char *const places[] = { QCC_SOURCE_DIR "/tests/data/exports/*.onnx",
                                          QCC_SOURCE_DIR "/tests/data/pytorch/*.onnx" };
    Tally tally = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(places); i++) {
        glob_t found;
        assert_int_equal(glob(places[i], 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++)
            if (!strstr(found.gl_pathv[k], "external"))
                untouched(found.gl_pathv[k], &tally);
        globfree(&found);
    }
    print_message("%zu models, %zu turned to inference\n", tally.models, tally.turned);
    assert_true(tally.turned > 12);
}

/* Every initializer: written back as it was gives the same elements; with other elements those are read again. */
static Status export_weights(Fixture *f, void *arg)
{
    const char *path = ((void **)arg)[0];
    Tally *tally = ((void **)arg)[1];
    Types types;
    types_open(&types, &f->arena);
    Spine s = { 0 };
    assert_int_equal(spine_open(&s, &f->memory, &f->diag, &f->limits, path), OK);
    const Onnx__GraphProto *g = s.model->graph;
    for (size_t i = 0; g && i < g->n_initializer; i++) {
        TensorInfo info;
        DType dtype;
        const Str name = str_of(g->initializer[i]->name);
        assert_int_equal(tensor_info(&s, &f->diag, "w", g->initializer[i], &info), OK);
        if (!dtype_from_onnx(info.dtype, &dtype) || dtype == STRING || !info.bytes)
            continue;
        Tensor *w = tensor_new(&f->arena, type_tensor(&types, dtype, info.rank, info.dims));
        assert_int_equal(tensor_read(&s, &f->diag, "w", g->initializer[i], w->data, w->bytes), OK);
        ((uint8_t *)w->data)[w->bytes - 1] ^= 1;

        Bytes out = { 0 };
        Spine t = { 0 };
        const WeightEdit edit = { arena_copy(&f->arena, name.p, name.n), w };
        assert_int_equal(
            onnx_export(&s, &f->diag, &(ExportEdits){ .weights = &edit, .n_weights = 1 }, &(Sink){ append, &out }), OK);
        source_memory(&t.source, &f->memory, "exported", out.p, out.n);
        assert_int_equal(spine_read(&t, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor), OK);
        void *back = arena_alloc(&f->arena, w->bytes);
        assert_int_equal(t.model->graph->n_initializer, g->n_initializer);
        if (dtype == BOOL)
            ((uint8_t *)w->data)[w->bytes - 1] &= 1;
        assert_int_equal(tensor_read(&t, &f->diag, "w", t.model->graph->initializer[i], back, w->bytes), OK);
        assert_memory_equal(back, w->data, w->bytes);
        spine_close(&t);
        free(out.p);
        tally->weights++;
    }
    spine_close(&s);
    return OK;
}

static void weights(const char *path, void *arg)
{
    Fixture f;
    Tally *tally = arg;
    tally->models++;
    assert_int_equal(fixture_run(&f, export_weights, (void *[]){ (void *)(uintptr_t)path, tally }), OK);
}

static void new_weights_are_read_again(void **state)
{
    Tally tally = { 0 };
    (void)state;
    if (each_model(weights, &tally) == 0)
        skip();
    print_message("%zu models, %zu weights\n", tally.models, tally.weights);
    assert_true(tally.weights > 50);
}

static void put_node(Bytes *graph, const char *op, const char *const *in, const char *const *out, const char *flag)
{
    Bytes node = { 0 }, attribute = { 0 };
    for (; *in; in++)
        put_text(&node, 1, *in);
    for (; *out; out++)
        put_text(&node, 2, *out);
    put_text(&node, 4, op);
    if (flag) {
        put_text(&attribute, 1, flag);
        put_int(&attribute, 3, 1);
        put_int(&attribute, 20, 2);
        put_message(&node, 5, attribute);
    }
    put_message(graph, 1, node);
}

/* A file in training form: the norm loses its mode and its further results, the dropout its third operand. */
static Status turn(Fixture *f, void *arg)
{
    Bytes model = { 0 }, graph = { 0 }, mode = { 0 }, opset = { 0 }, output = { 0 }, out = { 0 };
    Spine s = { 0 }, t = { 0 };
    (void)arg;
    put_node(&graph, "BatchNormalization", (const char *[]){ "x", "s", "b", "m", "v", NULL },
             (const char *[]){ "h", "m1", "v1", NULL }, "training_mode");
    put_node(&graph, "Dropout", (const char *[]){ "h", "", "t", NULL }, (const char *[]){ "y", NULL }, NULL);
    put_text(&graph, 2, "g");
    put_int(&mode, 2, 9);
    put_text(&mode, 8, "t");
    put_bytes(&mode, 9, "\1", 1);
    put_message(&graph, 5, mode);
    put_text(&output, 1, "y");
    put_message(&graph, 12, output);
    put_int(&opset, 2, 17);
    put_int(&model, 1, 8);
    put_message(&model, 7, graph);
    put_message(&model, 8, opset);
    source_memory(&s.source, &f->memory, "m.onnx", model.p, model.n);
    assert_int_equal(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor), OK);
    assert_int_equal(onnx_export(&s, &f->diag, NULL, &(Sink){ append, &out }), OK);
    spine_close(&s);
    source_memory(&t.source, &f->memory, "out.onnx", out.p, out.n);
    assert_int_equal(spine_read(&t, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor), OK);
    const Onnx__NodeProto *norm = t.model->graph->node[0], *drop = t.model->graph->node[1];
    assert_int_equal(norm->n_attribute, 0);
    assert_int_equal(norm->n_output, 1);
    assert_int_equal(norm->n_input, 5);
    assert_int_equal(drop->n_input, 2);
    spine_close(&t);
    free(model.p), free(out.p);
    return OK;
}

static void training_form_is_turned_to_inference(void **state)
{
    Fixture f;
    (void)state;
    assert_int_equal(fixture_run(&f, turn, NULL), OK);
}

static Status refuse(Fixture *f, void *arg)
{
    Types types;
    Bytes model = { 0 }, graph = { 0 }, out = { 0 };
    Spine s = { 0 };
    (void)arg;
    types_open(&types, &f->arena);
    put_text(&graph, 2, "g");
    put_int(&model, 1, 8);
    put_message(&model, 7, graph);
    source_memory(&s.source, &f->memory, "m.onnx", model.p, model.n);
    assert_int_equal(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__model_proto__descriptor), OK);
    const WeightEdit edit = { "nowhere", tensor_scalar(&f->arena, &types, F32, 1) };
    assert_int_equal(
        onnx_export(&s, &f->diag, &(ExportEdits){ .weights = &edit, .n_weights = 1 }, &(Sink){ append, &out }),
        INVALID);
    assert_string_equal(f->said, "nowhere: the file has no such tensor\n");
    spine_close(&s);
    free(model.p), free(out.p);
    return OK;
}

static void weights_that_are_not_there_are_refused(void **state)
{
    Fixture f;
    (void)state;
    assert_int_equal(fixture_run(&f, refuse, NULL), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_trained_is_byte_identical), cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(training_form_is_turned_to_inference),   cmocka_unit_test(new_weights_are_read_again),
        cmocka_unit_test(weights_that_are_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
