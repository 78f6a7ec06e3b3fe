/* label: slow */
/* Models that PyTorch exported, trained 200 steps on the same data in f32 and in mixed precision: the loss at the end is
 * that of f32, whatever the width, and what is exported is f32. */
#include <math.h>

#include "frontends/onnx/import.h"
#include "qcc/qcc.h"
#include "support/torch_tasks.h"
#include "testing.h"

enum { STEPS = 200, LAST = 10, BATCHES = 64, ROOM = 512 };

static qcc_tensor tensor_of(const int64_t *dims, int most, qcc_dtype dtype, void *data, size_t element)
{
    qcc_tensor x = { .size = sizeof(qcc_tensor), .dtype = dtype, .data = data };
    for (int i = 0; i < most && dims[i]; i++)
        x.dims[x.rank++] = dims[i];
    x.bytes = (size_t)task_size(dims, most) * element;
    return x;
}

static void bind_batch(qcc_session *s, const TorchTask *t, TaskBatch *b)
{
    const qcc_tensor x = t->words ? tensor_of(t->x, 4, QCC_I64, b->words, sizeof *b->words)
                                  : tensor_of(t->x, 4, QCC_F32, b->x, sizeof *b->x);
    const qcc_tensor y = tensor_of(t->target, 3, QCC_I64, b->target, sizeof *b->target);
    assert_int_equal(qcc_bind(s, "x", &x), QCC_OK);
    assert_int_equal(qcc_bind(s, "target", &y), QCC_OK);
}

/* ---- one run ---- */

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static double loss_of(qcc_session *s)
{
    qcc_tensor loss = { .size = sizeof(qcc_tensor) };
    assert_int_equal(qcc_view(s, "loss", &loss), QCC_OK);
    return (double)*(const float *)loss.data;
}

static qcc_session *start(qcc_context *cx, const TorchTask *t, const char *precision, qcc_step **step)
{
    char path[ROOM], options[ROOM];
    qcc_model *model;
    qcc_session *s;
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/data/%s.onnx", t->name);
    snprintf(options, sizeof options, "--optimizer %s %s", t->optimizer, precision);
    const qcc_source source = qcc_file(path);
    assert_int_equal(qcc_read(cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, step), QCC_OK);
    assert_int_equal(qcc_start(*step, NULL, &s), QCC_OK);
    qcc_model_free(model);
    return s;
}

/* ---- the exported file ---- */

static qcc_status take(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return QCC_OK;
}

typedef struct Exported {
    Context c;
    qcc_session *session;
    qcc_step *step;
    int compared;
} Exported;

static bool is_parameter(const qcc_step *step, const char *name)
{
    qcc_value_info info = { .size = sizeof(qcc_value_info) };
    for (size_t i = 0; i < qcc_n_parameters(step); i++)
        if (qcc_parameter(step, i, &info) == QCC_OK && strcmp(info.name, name) == 0)
            return true;
    return false;
}

/* What is exported are the masters, to the bit. */
static Status compare_export(void *exported)
{
    Exported *e = exported;
    Context *c = &e->c;
    Text bytes;
    Module *m;
    Spine s = { 0 };
    const qcc_sink sink = { .write = take, .user = &bytes };
    text_open(&bytes, &c->arena);
    assert_int_equal(qcc_export_session(e->session, NULL, &sink), QCC_OK);
    source_memory(&s.source, &c->memory, "trained.onnx", bytes.p, bytes.n);
    TRY(spine_read(&s, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
    TRY(onnx_import(&c->ir, &c->arena, &s, NULL, &m));
    for (const Node *n = m->graphs[0]->first; n; n = n->next) {
        qcc_tensor state = { .size = sizeof(qcc_tensor) };
        if (n->op != OP_param || !n->name || !is_parameter(e->step, n->name))
            continue;
        assert_int_equal(qcc_view(e->session, n->name, &state), QCC_OK);
        const Tensor *x = payload_cached(node_payload(n), &c->diag);
        assert_int_equal(x->type->dtype, F32);
        assert_int_equal(state.bytes, x->bytes);
        assert_memory_equal(state.data, x->data, x->bytes);
        e->compared++;
    }
    spine_close(&s);
    return OK;
}

static void check_export(qcc_session *s, qcc_step *step)
{
    Exported e = { .session = s, .step = step };
    context_open(&e.c);
    assert_int_equal(guarded(&e.c.memory, compare_export, &e), OK);
    assert_true(e.compared > 0);
    context_close(&e.c);
}

/* The mean loss of the last steps. */
static double train(const TorchTask *t, const char *precision)
{
    static TaskBatch batches[BATCHES];
    qcc_context *cx;
    const qcc_context_options options = { .size = sizeof options, .report = report, .threads = 1 };
    double sum = 0;
    assert_int_equal(qcc_open(&options, &cx), QCC_OK);
    qcc_step *step;
    qcc_session *s = start(cx, t, precision, &step);
    for (int i = 0; i < BATCHES; i++)
        task_draw(t, &batches[i], (uint64_t)i);
    for (int i = 0; i < STEPS; i++) {
        bind_batch(s, t, &batches[i % BATCHES]);
        assert_int_equal(qcc_run(s, QCC_STEP, NULL), QCC_OK);
        const double loss = loss_of(s);
        sum += i >= STEPS - LAST ? loss : 0;
    }
    check_export(s, step);
    qcc_end(s);
    qcc_step_free(step);
    qcc_close(cx);
    return sum / LAST;
}

static void loses_as_f32_does(void **state)
{
    static const char *const precisions[] = { "--amp bf16", "--amp fp16" };
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < TASKS; i++) {
        const double wide = train(&torch_tasks[i], "");
        for (size_t k = 0; k < COUNT(precisions); k++) {
            const double narrow = train(&torch_tasks[i], precisions[k]);
            const double off = fabs(narrow - wide) / wide;
            print_message("%-18s f32 %.5f, %s %.5f: %.2f %%\n", torch_tasks[i].name, wide, precisions[k], narrow,
                          100 * off);
            if (!(off <= 0.02))
                print_error("%s, %s: %g, not %g\n", torch_tasks[i].name, precisions[k], narrow, wide), bad++;
        }
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(loses_as_f32_does) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
