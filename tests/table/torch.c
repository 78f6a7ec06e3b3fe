/* Models as PyTorch exports them, trained by us and by PyTorch: logits, loss, every gradient, and the parameters after
 * 20 steps of three optimizers.  The answers are stored (tests/data/torch, with the script that made them). */
#include <math.h>

#include "ir/safetensors.h"
#include "qcc/qcc.h"
#include "testing.h"

enum { STEPS = 20, ROOM = 512 };

static const char *const models[] = { "mlp", "cnn", "transformer", "lstm", "convnext", "mobilenet", "unet" };

static const struct {
    const char *name, *option;
} optimizers[] = {
    { "momentum", "momentum:lr=0.02,momentum=0.9" },
    { "adam", "adam:lr=2e-3" },
    { "adamw", "adamw:lr=2e-3,weight_decay=0.05" },
};

/* One model, and what PyTorch says of it. */
typedef struct Oracle {
    Context c;
    SafeTensors answers;
    const char *model;
    qcc_context *cx;
    qcc_session *session;
    int compared, bad;
} Oracle;

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static Tensor *answer(Oracle *o, const char *name)
{
    const SafeTensor *t = safetensors_find(&o->answers, name);
    if (!t)
        return NULL;
    Tensor *x = tensor_new(&o->c.arena, t->type);
    assert_int_equal(safetensors_read(&o->answers, &o->c.diag, t, x->data), OK);
    return x;
}

static void bind(Oracle *o, const char *input, const char *name)
{
    const Tensor *x = answer(o, name);
    qcc_tensor t = { (qcc_dtype)x->type->dtype, x->type->rank, { 0 }, x->data, x->bytes };
    for (int i = 0; i < t.rank; i++)
        t.dims[i] = x->type->dims[i];
    assert_int_equal(qcc_bind(o->session, input, &t), QCC_OK);
}

/* Within 1e-4 of PyTorch's, of the larger of an element and the typical one. */
static void compare(Oracle *o, const char *what, const char *name, const char *view)
{
    const Tensor *want = answer(o, name);
    qcc_tensor got;
    double most = 0, size = 0;
    if (!want)
        return;
    assert_int_equal(qcc_view(o->session, view, &got), QCC_OK);
    assert_int_equal(got.bytes, want->bytes);
    const int64_t n = tensor_elements(want);
    for (int64_t i = 0; i < n; i++)
        size += fabs((double)((const float *)want->data)[i]);
    size = n ? size / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        const double w = (double)((const float *)want->data)[i], g = (double)((const float *)got.data)[i];
        most = fmax(most, fabs(g - w) / fmax(fmax(fabs(w), size), 1e-3));
    }
    if (!(most <= 1e-4))
        print_error("%s, %s, %s: differs by %g\n", o->model, what, name, most), o->bad++;
    o->compared++;
}

/* Compares what PyTorch has under `prefix` for each parameter. */
static void compare_parameters(Oracle *o, const char *prefix, const char *view_prefix)
{
    char name[ROOM], view[ROOM];
    const size_t n = strlen(prefix);
    int seen = 0;
    for (size_t i = 0; i < o->answers.n; i++) {
        const char *full = o->answers.list[i].name;
        if (strncmp(full, prefix, n) != 0)
            continue;
        snprintf(name, sizeof name, "%s", full);
        snprintf(view, sizeof view, "%s%s", view_prefix, full + n);
        compare(o, prefix, name, view);
        seen++;
    }
    assert_true(seen > 0);
}

static void start(Oracle *o, const char *optimizer)
{
    char path[ROOM], options[ROOM];
    qcc_model *model;
    qcc_step *step;
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/data/torch/%s.onnx", o->model);
    snprintf(options, sizeof options, "--optimizer %s", optimizer);
    const qcc_source source = qcc_file(path);
    assert_int_equal(qcc_read(o->cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_int_equal(qcc_start(step, &o->session), QCC_OK);
    qcc_model_free(model);
    qcc_step_free(step);
    bind(o, "x", "x");
    bind(o, "target", "y");
}

static Status check_model(void *arg)
{
    Oracle *o = arg;
    char path[ROOM];
    const qcc_context_options options = { .size = sizeof options, .report = report, .threads = 1 };
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/data/torch/%s.safetensors", o->model);
    TRY(safetensors_open(&o->answers, &o->c.ir.types, &o->c.arena, &o->c.diag, &o->c.ir.limits, path));
    assert_int_equal(qcc_open(&options, &o->cx), QCC_OK);
    for (size_t k = 0; k < COUNT(optimizers); k++) {
        char prefix[ROOM];
        snprintf(prefix, sizeof prefix, "%s/", optimizers[k].name);
        start(o, optimizers[k].option);
        for (int i = 0; i < STEPS; i++) {
            assert_int_equal(qcc_run(o->session, QCC_STEP, NULL), QCC_OK);
            if (i == 0 && k == 0) {
                compare(o, "forward", "logits", "logits");
                compare(o, "forward", "loss", "loss");
                compare_parameters(o, "grad/", "grad.");
            }
        }
        compare_parameters(o, prefix, "");
        qcc_end(o->session);
    }
    qcc_close(o->cx);
    print_message("%s: %d tensors\n", o->model, o->compared);
    return o->bad ? MISMATCH : OK;
}

static void pytorch_agrees(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < COUNT(models); i++) {
        Oracle o = { .model = models[i] };
        context_open(&o.c);
        bad += guarded(&o.c.memory, check_model, &o) != OK;
        context_close(&o.c);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pytorch_agrees) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
