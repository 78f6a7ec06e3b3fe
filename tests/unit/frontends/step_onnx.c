/* label: slow */
/* Training files as others see them: onnx's checker takes the combined graph of each step, onnxruntime computes what
 * our evaluator does (tests/data/step.py; skipped where Python has neither). */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "ops/card/eval.h"
#include "support/oracle.h"
#include "support/step_texts.h"

static const char script[] = QCC_SOURCE_DIR "/tests/data/step.py";

static Status put_file(Context *c, const char *folder, const char *name, const char *end, const Text *bytes)
{
    FileOut f;
    TRY(file_create(&f, &c->arena, &c->diag, arena_printf(&c->arena, "%s/%s%s", folder, name, end)));
    TRY(file_write(&f, bytes->p, bytes->n));
    return file_keep(&f);
}

static const char *element(DType d)
{
    return d == F32 ? "float32" : d == I64 ? "int64" : NULL;
}

static void put_value(Text *out, const char *kind, const char *name, const Tensor *t)
{
    text_printf(out, "%s %s %s ", kind, name, element(t->type->dtype));
    for (int i = 0; i < t->type->rank; i++)
        text_printf(out, "%s%" PRId64, i ? "x" : "", t->type->dims[i]);
    text_add(out, t->type->rank ? "" : "-");
    for (int64_t i = 0; i < tensor_elements(t); i++)
        text_printf(out, " %.9g", tensor_get_f64(t, i));
    text_char(out, '\n');
}

/* What a graph gives for drawn data and for states a little away from where they begin. */
static Text values_of(Context *c, Graph *g)
{
    const int n = graph_n_results(g);
    const Tensor **in = NEWS(&c->arena, const Tensor *, g->n_inputs + 1);
    Tensor **out = NEWS(&c->arena, Tensor *, n + 1);
    Rng rng = { 5 };
    Text text;
    text_open(&text, &c->arena);
    for (size_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = tensor_new(&c->arena, g->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(t); k++)
            tensor_set_f64(t, k, t->type->dtype == I64 ? (double)(k % 2) : rng_unit(&rng));
        in[i] = t;
        put_value(&text, "in", g->inputs[i]->name, t);
    }
    assert_int_equal(evaluate(g, NULL, &c->heap, in, out), OK);
    for (int i = 0; i < n; i++) {
        const char *name = graph_result_name(g, i);
        bool next = false;
        for (size_t k = 0; k < g->n_inputs; k++)
            next = next || strcmp(g->inputs[k]->name, name) == 0;
        put_value(&text, "out", arena_printf(&c->arena, "%s%s", name, next ? ".next" : ""), out[i]);
        tensor_drop(&c->heap, out[i]);
    }
    return text;
}

static Status write_all(Context *c, const char *folder)
{
    size_t n;
    const StepText *texts = step_texts(&n);
    for (size_t i = 0; i < n; i++) {
        Text model, step, flat;
        Spine s = { 0 };
        const Module *origin = step_model(c, texts[i].model, &model, &s);
        Module *m = step_module(c, texts[i].module, origin);
        text_open(&step, &c->arena);
        TRY(onnx_write_step(&s, m, NULL, &c->diag, &(Sink){ step_append, &step }, NULL));
        TRY(put_file(c, folder, texts[i].name, ".step.onnx", &step));
        spine_close(&s);
        if (strcmp(texts[i].name, "odds") == 0 || strcmp(texts[i].name, "narrow") == 0)
            continue; /* draws, or has narrow types, which onnxruntime's CPU does not compute in f32 */
        text_open(&flat, &c->arena);
        TRY(onnx_write_flat(m->graphs[0], &c->diag, &(Sink){ step_append, &flat }));
        assert_null(c->last); /* nothing is left that others could not run */
        TRY(put_file(c, folder, texts[i].name, ".flat.onnx", &flat));
        const Text values = values_of(c, m->graphs[0]);
        TRY(put_file(c, folder, texts[i].name, ".values", &values));
    }
    return OK;
}

static char folder[] = "/tmp/qcc-step-XXXXXX";

static Status written(void *context)
{
    Context *c = context;
    assert_non_null(mkdtemp(folder));
    const Status status = write_all(c, folder);
    if (status != OK)
        print_error("%s\n", c->last);
    assert_int_equal(status, OK);
    return OK;
}

static void others_take_our_training_files(void **state)
{
    (void)state;
    with_context(written);
    ask_oracle("numpy, onnx.checker, onnxruntime", script, folder);
}

static int remove_folder(void **state)
{
    char command[sizeof folder + 8];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(others_take_our_training_files, remove_folder) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
