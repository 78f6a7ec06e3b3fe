/* A quantized step as a host trains it: its quantizers see data first, and what they saw goes into checkpoints. */
#include <stdlib.h>
#include <string.h>

#include "embed/trainee.h"

#define QUANTIZED TRAINEE_OPTIONS " --quant w8a8 --for generic"

static float loss_of(Trainee *t, unsigned what)
{
    qcc_result r = { .size = sizeof r };
    assert_int_equal(qcc_run(t->session, what, &r), QCC_OK);
    return (float)r.loss;
}

static void observe(Trainee *t, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        trainee_fill(t, i);
        assert_int_equal(qcc_run(t->session, QCC_OBSERVE, NULL), QCC_OK);
    }
}

static void a_step_waits_until_its_quantizers_saw_data(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float before[FLAT], after[FLAT];
    (void)state;
    trainee_open(&t, cx, QUANTIZED);
    trainee_fill(&t, 0);
    trainee_flat(&t, before);
    assert_int_equal(qcc_run(t.session, QCC_STEP, NULL), QCC_USAGE);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, NULL), QCC_USAGE);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD, NULL), QCC_USAGE);
    observe(&t, 0, 4);
    trainee_flat(&t, after);
    assert_memory_equal(before, after, sizeof before); /* to look is not to learn */
    trainee_fill(&t, 0);
    const float untrained = loss_of(&t, QCC_EVAL);
    trainee_run(&t, 0, 200);
    trainee_fill(&t, 0);
    assert_true(loss_of(&t, QCC_EVAL) < 0.5f * untrained);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void what_quantizers_saw_is_saved(void **state)
{
    Host h = { 0 };
    Trainee t, again;
    qcc_context *cx = open_with(&h);
    qcc_result a = { .size = sizeof a }, b = { .size = sizeof b };
    char path[] = "quantized.safetensors";
    (void)state;
    trainee_open(&t, cx, QUANTIZED);
    observe(&t, 0, 4);
    trainee_run(&t, 0, 5);
    assert_int_equal(qcc_save(t.session, &(qcc_sink){ .path = path }), QCC_OK);
    trainee_open(&again, cx, QUANTIZED);
    assert_int_equal(qcc_load(again.session, &(qcc_source){ .path = path }), QCC_OK);
    for (unsigned i = 5; i < 9; i++) {
        trainee_fill(&t, i);
        trainee_fill(&again, i);
        assert_int_equal(qcc_run(t.session, QCC_STEP, &a), QCC_OK);
        assert_int_equal(qcc_run(again.session, QCC_STEP, &b), QCC_OK);
        assert_true(a.loss == b.loss && a.grad_norm == b.grad_norm);
    }
    remove(path);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void a_step_without_quantizers_observes_nothing(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_fill(&t, 0);
    assert_int_equal(qcc_run(t.session, QCC_OBSERVE, NULL), QCC_USAGE);
    qcc_close(cx);
}

typedef struct Written {
    char *p;
    size_t n;
} Written;

static qcc_status write_more(void *user, const void *bytes, size_t n)
{
    Written *w = user;
    w->p = realloc(w->p, w->n + n);
    assert_non_null(w->p);
    memcpy(w->p + w->n, bytes, n);
    w->n += n;
    return QCC_OK;
}

static Written emitted(qcc_model *m, const char *options)
{
    Written w = { NULL, 0 };
    const qcc_sink sink = { .write = write_more, .user = &w };
    assert_int_equal(qcc_emit(m, "ir", options, &sink), QCC_OK);
    return w;
}

static bool same(const Written *a, const Written *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* What is written with quantizers of another file leaves the model as it was: written again, it has them once. */
static void encodings_are_of_what_is_written(void **state)
{
    static const char options[] = "--encodings " QCC_SOURCE_DIR "/tests/data/aimet/w8.1.encodings";
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    const qcc_source source = qcc_file(QCC_SOURCE_DIR "/tests/data/aimet/net.onnx");
    qcc_model *m;
    (void)state;
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    Written before = emitted(m, NULL), once = emitted(m, options), twice = emitted(m, options),
            after = emitted(m, NULL);
    assert_true(same(&before, &after));
    assert_true(same(&once, &twice));
    assert_false(same(&before, &once));
    free(before.p), free(once.p), free(twice.p), free(after.p);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_waits_until_its_quantizers_saw_data),
        cmocka_unit_test(what_quantizers_saw_is_saved),
        cmocka_unit_test(a_step_without_quantizers_observes_nothing),
        cmocka_unit_test(encodings_are_of_what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
