/* Loss scaling from a program: gradients are unscaled once, given up, found infinite; a scale that two sessions share. */
#include <math.h>

#include <string.h>

#include "embed/host.h"

enum { BATCH = 4, WIDE = 8, WEIGHT = 24 * 8 };

#define MODEL   QCC_SOURCE_DIR "/tests/data/torch/mlp.onnx"
#define OPTIONS "--optimizer sgd:lr=0.125 --amp fp16 --loss-scale dynamic:interval=4"

typedef struct Trainee {
    qcc_session *s;
    float x[BATCH * WIDE];
    int64_t target[BATCH];
} Trainee;

static qcc_context *open_context(void)
{
    qcc_context *cx;
    const qcc_context_options how = { .size = sizeof how, .threads = 1 };
    assert_int_equal(qcc_open(&how, &cx), QCC_OK);
    return cx;
}

static void begin(Trainee *t, qcc_context *cx, const char *options)
{
    qcc_model *model;
    qcc_step *step;
    const qcc_source source = qcc_file(MODEL);
    const qcc_tensor x = { sizeof(qcc_tensor), QCC_F32, 2, { BATCH, WIDE }, t->x, sizeof t->x },
                     target = { sizeof(qcc_tensor), QCC_I64, 1, { BATCH }, t->target, sizeof t->target };
    assert_int_equal(qcc_read(cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_int_equal(qcc_start(step, NULL, &t->s), QCC_OK);
    for (int i = 0; i < BATCH * WIDE; i++)
        t->x[i] = (float)((i * 37 + 11) % 23 - 11) / 8;
    for (int i = 0; i < BATCH; i++)
        t->target[i] = i % 5;
    assert_int_equal(qcc_bind(t->s, "x", &x), QCC_OK);
    assert_int_equal(qcc_bind(t->s, "target", &target), QCC_OK);
}

static qcc_result run(Trainee *t, unsigned what)
{
    qcc_result r = { .size = sizeof r };
    assert_int_equal(qcc_run(t->s, what, &r), QCC_OK);
    return r;
}

static void view(Trainee *t, const char *name, float *to, size_t n)
{
    qcc_tensor x = { .size = sizeof(qcc_tensor) };
    assert_int_equal(qcc_view(t->s, name, &x), QCC_OK);
    assert_int_equal(x.bytes, n * sizeof *to);
    memcpy(to, x.data, x.bytes);
}

static float scale_of(Trainee *t)
{
    float scale;
    view(t, "loss_scale", &scale, 1);
    return scale;
}

static qcc_status put_scale(Trainee *t, float scale)
{
    const qcc_tensor x = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, &scale, sizeof scale };
    return qcc_put(t->s, "loss_scale", &x);
}

/* Unscaled in between or not, once or twice: the same step, to the bit; and views are never scaled. */
static void unscaling_is_idempotent(void **state)
{
    static float plain[WEIGHT], unscaled[WEIGHT], g[WEIGHT], again[WEIGHT];
    Trainee a, b;
    qcc_context *cx = open_context();
    (void)state;
    begin(&a, cx, OPTIONS);
    begin(&b, cx, OPTIONS);
    assert_int_equal(qcc_unscale(b.s), QCC_USAGE); /* there are no gradients */
    assert_int_equal(qcc_abandon(b.s), QCC_USAGE);
    run(&a, QCC_STEP);
    run(&b, QCC_FORWARD | QCC_BACKWARD);
    assert_int_equal(qcc_unscale(b.s), QCC_OK);
    view(&b, "grad.fc1.weight", g, WEIGHT);
    assert_int_equal(qcc_unscale(b.s), QCC_ALREADY);
    view(&b, "grad.fc1.weight", again, WEIGHT);
    assert_memory_equal(g, again, sizeof g);
    const qcc_result r = run(&b, QCC_UPDATE);
    assert_true(r.applied && r.finite && r.finite_loss && !r.first_bad);
    assert_true(r.loss_scale == 65536 && r.next_loss_scale == 65536 && r.applied_steps == 1 && r.skipped_steps == 0);
    view(&a, "fc1.weight", plain, WEIGHT);
    view(&b, "fc1.weight", unscaled, WEIGHT);
    assert_memory_equal(plain, unscaled, sizeof plain);
    view(&a, "grad.fc1.weight", again, WEIGHT);
    assert_memory_equal(g, again, sizeof g);
    qcc_close(cx);
}

static void given_up_gradients_change_nothing(void **state)
{
    static float before[WEIGHT], after[WEIGHT];
    Trainee t;
    qcc_context *cx = open_context();
    (void)state;
    begin(&t, cx, OPTIONS);
    run(&t, QCC_STEP);
    view(&t, "fc1.weight", before, WEIGHT);
    run(&t, QCC_FORWARD | QCC_BACKWARD);
    assert_int_equal(qcc_abandon(t.s), QCC_OK);
    assert_int_equal(qcc_run(t.s, QCC_UPDATE, NULL), QCC_USAGE);
    view(&t, "fc1.weight", after, WEIGHT);
    assert_memory_equal(before, after, sizeof before);
    assert_true(run(&t, QCC_STEP).applied_steps == 2);
    qcc_close(cx);
}

/* The scale that gradients have is that of their backward, whatever is put afterwards. */
static void the_scale_is_latched(void **state)
{
    static float one[WEIGHT], other[WEIGHT];
    Trainee a, b;
    qcc_context *cx = open_context();
    (void)state;
    begin(&a, cx, OPTIONS);
    begin(&b, cx, OPTIONS);
    assert_int_equal(put_scale(&a, 3), QCC_USAGE);
    assert_int_equal(put_scale(&a, 0), QCC_USAGE);
    assert_true(scale_of(&a) == 65536);
    run(&a, QCC_FORWARD | QCC_BACKWARD);
    assert_int_equal(put_scale(&a, 256), QCC_OK);
    const qcc_result r = run(&a, QCC_UPDATE);
    assert_true(r.applied && r.loss_scale == 65536 && scale_of(&a) == 256);
    run(&b, QCC_STEP);
    view(&a, "fc1.weight", one, WEIGHT);
    view(&b, "fc1.weight", other, WEIGHT);
    assert_memory_equal(one, other, sizeof one);
    qcc_close(cx);
}

static void overflow_is_told(void **state)
{
    static float before[WEIGHT], after[WEIGHT];
    Trainee t;
    qcc_context *cx = open_context();
    (void)state;
    begin(&t, cx, OPTIONS);
    view(&t, "fc1.weight", before, WEIGHT);
    assert_int_equal(put_scale(&t, 16777216), QCC_OK);
    qcc_result r = run(&t, QCC_STEP);
    assert_true(!r.applied && r.finite_loss && r.first_bad && r.skipped_steps == 1 && r.applied_steps == 0);
    assert_true(r.loss_scale == 16777216 && r.next_loss_scale == 8388608);
    assert_non_null(strstr(r.first_bad, "fc"));
    view(&t, "fc1.weight", after, WEIGHT);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(qcc_freeze_loss_scale(t.s, 1), QCC_OK);
    r = run(&t, QCC_STEP);
    assert_true(!r.applied && r.next_loss_scale == 8388608);
    assert_int_equal(qcc_freeze_loss_scale(t.s, 0), QCC_OK);
    assert_int_equal(put_scale(&t, 1024), QCC_OK);
    t.x[0] = INFINITY;
    r = run(&t, QCC_STEP);
    assert_true(!r.applied && !r.finite_loss);
    t.x[0] = 1;
    for (int i = 0; i < 4; i++)
        r = run(&t, QCC_STEP);
    assert_true(r.applied && r.applied_steps == 4 && r.next_loss_scale == 2 * r.loss_scale);
    qcc_close(cx);
}

/* A result of a program that was built before these fields. */
static void old_results_stay_small(void **state)
{
    struct {
        size_t size;
        uint64_t step;
        int applied, finite;
        double loss, grad_norm, lr;
        char behind[64];
    } old = { .size = offsetof(qcc_result, loss_scale) };
    Trainee t;
    qcc_context *cx = open_context();
    (void)state;
    begin(&t, cx, OPTIONS);
    memset(old.behind, 7, sizeof old.behind);
    assert_int_equal(qcc_run(t.s, QCC_STEP, (qcc_result *)(void *)&old), QCC_OK);
    for (size_t i = 0; i < sizeof old.behind; i++)
        assert_int_equal(old.behind[i], 7);
    assert_true(old.applied && old.step == 1);
    qcc_close(cx);
}

static void two_sessions_share_a_scale(void **state)
{
    static float before[WEIGHT], after[WEIGHT];
    Trainee a, b, plain;
    qcc_scaler *scaler;
    qcc_context *cx = open_context();
    (void)state;
    begin(&a, cx, OPTIONS);
    begin(&b, cx, OPTIONS);
    begin(&plain, cx, "--optimizer sgd:lr=0.125");
    assert_int_equal(qcc_scaler_open(cx, 0, &scaler), QCC_OK);
    assert_int_equal(qcc_scaler_join(scaler, plain.s), QCC_USAGE); /* it has none */
    assert_int_equal(qcc_scaler_join(scaler, a.s), QCC_OK);
    assert_int_equal(qcc_scaler_join(scaler, a.s), QCC_USAGE);
    assert_int_equal(qcc_scaler_join(scaler, b.s), QCC_OK);
    assert_int_equal(qcc_scaler_update(scaler), QCC_USAGE); /* nobody made a step */

    run(&a, QCC_FORWARD | QCC_BACKWARD);
    run(&b, QCC_FORWARD | QCC_BACKWARD);
    assert_true(run(&a, QCC_UPDATE).applied);
    assert_int_equal(qcc_scaler_update(scaler), QCC_PENDING); /* b has gradients of the scale as it is */
    assert_int_equal(qcc_abandon(b.s), QCC_OK);
    assert_int_equal(qcc_scaler_update(scaler), QCC_OK);

    b.x[0] = INFINITY; /* one bad: it skips, the other does not, and the scale falls for both */
    view(&b, "fc1.weight", before, WEIGHT);
    assert_true(run(&a, QCC_STEP).applied);
    assert_false(run(&b, QCC_STEP).applied);
    assert_true(scale_of(&a) == 65536 && scale_of(&b) == 65536);
    assert_int_equal(qcc_scaler_update(scaler), QCC_OK);
    assert_true(scale_of(&a) == 32768 && scale_of(&b) == 32768);
    view(&b, "fc1.weight", after, WEIGHT);
    assert_memory_equal(before, after, sizeof before);

    assert_int_equal(put_scale(&b, 1024), QCC_OK); /* of one is of all */
    assert_true(scale_of(&a) == 1024);
    qcc_end(b.s);
    assert_true(run(&a, QCC_STEP).applied);
    assert_int_equal(qcc_scaler_update(scaler), QCC_OK);
    qcc_scaler_close(scaler);
    for (int i = 0; i < 4; i++)
        run(&a, QCC_STEP);
    assert_true(scale_of(&a) == 2048); /* it moves by itself again */
    qcc_scaler_close(NULL);
    assert_int_equal(qcc_scaler_open(cx, 1, &scaler), QCC_OK); /* the context closes it */
    assert_int_equal(qcc_scaler_join(scaler, a.s), QCC_OK);
    qcc_close(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unscaling_is_idempotent), cmocka_unit_test(given_up_gradients_change_nothing),
        cmocka_unit_test(the_scale_is_latched),    cmocka_unit_test(overflow_is_told),
        cmocka_unit_test(old_results_stay_small),  cmocka_unit_test(two_sessions_share_a_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
