/* Models as PyTorch exports them, trained by us and by PyTorch: logits, loss, every gradient, and the parameters after
 * 20 steps of three optimizers.  The answers are stored (tests/data/torch, with the script that made them).
 * Of tests/data/exports: a GPT whose tied head constant folding took apart, a rotary block, a ViT, running statistics. */
#include <math.h>

#include "frontends/onnx/import.h"
#include "ir/store/safetensors.h"
#include "qcc/qcc.h"
#include "testing.h"

enum { STEPS = 20, ROOM = 512 };

static const struct {
    const char *folder, *name;
} models[] = {
    { "torch", "mlp" },
    { "torch", "cnn" },
    { "torch", "transformer" },
    { "torch", "lstm" },
    { "torch", "convnext" },
    { "torch", "mobilenet" },
    { "torch", "unet" },
    { "exports", "tied" },
    { "exports", "statistics" },
    { "exports", "rotary" },
    { "exports", "patches" },
    { "pytorch", "splits" },
    { "pytorch", "splits-legacy" },
    { "pytorch", "bags" },
    { "pytorch", "bags-legacy" },
};

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
    const char *folder, *model;
    qcc_context *cx;
    qcc_session *session;
    int compared, bad, states;
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
    qcc_tensor t = { sizeof(qcc_tensor), (qcc_dtype)x->type->dtype, x->type->rank, { 0 }, x->data, x->bytes };
    for (int i = 0; i < t.rank; i++)
        t.dims[i] = x->type->dims[i];
    assert_int_equal(qcc_bind(o->session, input, &t), QCC_OK);
}

/* Within 1e-4 of PyTorch's, of the larger of an element and the typical one. */
static void compare(Oracle *o, const char *what, const char *name, const char *view)
{
    const Tensor *want = answer(o, name);
    qcc_tensor got = { .size = sizeof(qcc_tensor) };
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
        const double w = (double)((const float *)want->data)[i];
        const double g = (double)((const float *)got.data)[i];
        most = fmax(most, fabs(g - w) / fmax(fmax(fabs(w), size), 1e-3));
    }
    if (!(most <= 1e-4))
        print_error("%s, %s, %s: differs by %g\n", o->model, what, name, most), o->bad++;
    o->compared++;
}

/* Compares what PyTorch has under `prefix` for each parameter, and returns how many there are. */
static int compare_parameters(Oracle *o, const char *prefix, const char *view_prefix)
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
    return seen;
}

/* ---- the exported file ---- */

static qcc_status take(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return QCC_OK;
}

/* The weight that was tied again is the other one transposed, to the bit. */
static void is_transposed(const Tensor *weight, const Tensor *table)
{
    const int64_t rows = table->type->dims[0], columns = table->type->dims[1];
    for (int64_t i = 0; i < rows * columns; i++)
        assert_true(tensor_get_f64(weight, i % columns * rows + i / columns) == tensor_get_f64(table, i));
}

/* Every state stands in the file that the session exports, and a tie that folding broke stands there twice. */
static void compare_export(Oracle *o)
{
    Text bytes;
    Module *m;
    Spine s = { 0 };
    const Tensor *table = NULL, *head = NULL;
    const qcc_sink sink = { .write = take, .user = &bytes };
    int states = 0;
    text_open(&bytes, &o->c.arena);
    assert_int_equal(qcc_export_session(o->session, NULL, &sink), QCC_OK);
    source_memory(&s.source, &o->c.memory, "trained.onnx", bytes.p, bytes.n);
    assert_int_equal(spine_read(&s, &o->c.memory, &o->c.diag, &o->c.ir.limits, &onnx__model_proto__descriptor), OK);
    assert_int_equal(onnx_import(&o->c.ir, &o->c.arena, &s, NULL, &m), OK);
    for (const Node *n = m->graphs[0]->first; n; n = n->next) {
        char name[ROOM];
        qcc_tensor state = { .size = sizeof(qcc_tensor) };
        if (n->op != OP_param || !n->name)
            continue;
        snprintf(name, sizeof name, "momentum/%s", n->name);
        const Tensor *x = payload_cached(node_payload(n), &o->c.diag);
        table = strcmp(n->name, "wte.weight") == 0 ? x : table;
        head = x->type->rank == 2 && x->type->dims[1] == 130 ? x : head;
        if (!safetensors_find(&o->answers, name))
            continue;
        assert_int_equal(qcc_view(o->session, n->name, &state), QCC_OK);
        assert_int_equal(state.bytes, x->bytes);
        assert_memory_equal(state.data, x->data, x->bytes);
        states++;
    }
    assert_int_equal(states, o->states);
    assert_true((table != NULL) == (strcmp(o->model, "tied") == 0) && (head != NULL) == (table != NULL));
    if (head)
        is_transposed(head, table);
    spine_close(&s);
}

static void start(Oracle *o, const char *optimizer)
{
    char path[ROOM], options[ROOM];
    qcc_model *model;
    qcc_step *step;
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/data/%s/%s.onnx", o->folder, o->model);
    snprintf(options, sizeof options, "--bn pytorch --optimizer %s", optimizer);
    const qcc_source source = qcc_file(path);
    assert_int_equal(qcc_read(o->cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_int_equal(qcc_start(step, NULL, &o->session), QCC_OK);
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
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/data/%s/%s.safetensors", o->folder, o->model);
    TRY(safetensors_open(&o->answers, &o->c.ir.types, &o->c.arena, &o->c.diag, &o->c.ir.limits, path));
    assert_int_equal(qcc_open(&options, &o->cx), QCC_OK);
    for (size_t k = 0; k < COUNT(optimizers); k++) {
        char prefix[ROOM];
        snprintf(prefix, sizeof prefix, "%s/", optimizers[k].name);
        if (strcmp(o->folder, "exports") == 0 && strcmp(optimizers[k].name, "adam") == 0)
            continue; /* AdamW is there */
        start(o, optimizers[k].option);
        for (int i = 0; i < STEPS; i++) {
            assert_int_equal(qcc_run(o->session, QCC_STEP, NULL), QCC_OK);
            if (i == 0 && k == 0) {
                compare(o, "forward", "logits", "logits");
                compare(o, "forward", "loss", "loss");
                (void)compare_parameters(o, "grad/", "grad.");
            }
        }
        o->states = compare_parameters(o, prefix, "");
        assert_true(o->states > 0);
        if (strcmp(o->folder, "exports") == 0)
            compare_export(o);
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
        Oracle o = { .folder = models[i].folder, .model = models[i].name };
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
