/* Sessions as a host sees them: training in parts, values by name, handles. */
#include <errno.h>
#include <math.h>

#include "embed/trainee.h"

/* ---- sides ---- */

static void sides_apart_are_the_step(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float whole[FLAT], apart[FLAT];
    (void)state;
    trainee_after(12, whole);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    for (unsigned i = 0; i < 12; i++) {
        qcc_result r = { .size = sizeof r };
        trainee_fill(&t, i);
        assert_int_equal(qcc_run(t.session, QCC_FORWARD, &r), QCC_OK);
        assert_true(r.step == i + 1 && !r.applied && r.loss > 0 && isnan(r.grad_norm));
        if (i % 3 == 0) /* the model alone does not disturb it */
            assert_int_equal(qcc_run(t.session, QCC_EVAL, NULL), QCC_OK);
        assert_int_equal(qcc_run(t.session, QCC_BACKWARD, NULL), QCC_OK);
        assert_int_equal(qcc_run(t.session, QCC_UPDATE, &r), QCC_OK);
        assert_true(r.applied && r.finite && r.step == i + 1);
    }
    trainee_flat(&t, apart);
    assert_memory_equal(whole, apart, sizeof whole);
    assert_int_equal(qcc_run(t.session, QCC_UPDATE, NULL), QCC_USAGE);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_UPDATE, NULL), QCC_USAGE);
    assert_int_equal(qcc_run(t.session, 0, NULL), QCC_USAGE);
    trainee_run(&t, 12, 13); /* it goes on as if nothing had been */
    trainee_flat(&t, apart);
    trainee_after(13, whole);
    assert_memory_equal(whole, apart, sizeof whole);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* mse = mean of (y - t)^2, over 32 values: its gradient is exact up to one rounding, as it is computed here. */
static void external_mse(Trainee *t, float gradient[SAMPLES][OUTPUTS])
{
    qcc_tensor y = { .size = sizeof(qcc_tensor) };
    assert_int_equal(qcc_view(t->session, "logits", &y), QCC_OK);
    assert_int_equal(y.bytes, SAMPLES * OUTPUTS * sizeof(float));
    const float *p = y.data;
    for (int i = 0; i < SAMPLES * OUTPUTS; i++)
        gradient[i / OUTPUTS][i % OUTPUTS] =
            (p[i] - t->target[i / OUTPUTS][i % OUTPUTS]) * (2.0f / (SAMPLES * OUTPUTS));
}

static void a_loss_of_the_host_is_as_good(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float ours[FLAT], theirs[FLAT], gradient[SAMPLES][OUTPUTS];
    qcc_value_info info = { .size = sizeof(qcc_value_info) };
    (void)state;
    trainee_after(10, ours);
    assert_int_equal(trainee_try(&t, cx, "--loss external:logits --optimizer adamw:lr=1e-2"), QCC_OK);
    assert_int_equal(qcc_step_n_inputs(t.step), 2);
    assert_int_equal(qcc_step_input(t.step, 1, &info), QCC_OK);
    assert_string_equal(info.name, "grad.logits");
    assert_string_equal(info.type, "f32[8,4]");
    const qcc_tensor x = trainee_tensor(t.x), g = trainee_tensor(gradient);
    assert_int_equal(qcc_bind(t.session, "x", &x), QCC_OK);
    for (unsigned i = 0; i < 10; i++) {
        trainee_fill(&t, i);
        assert_int_equal(qcc_run(t.session, QCC_FORWARD, NULL), QCC_OK);
        if (i == 0) {
            assert_int_equal(qcc_run(t.session, QCC_BACKWARD, NULL), QCC_USAGE);
            assert_non_null(strstr(h.text, "grad.logits f32[8,4]"));
            assert_int_equal(qcc_bind(t.session, "grad.logits", &g), QCC_OK);
        }
        external_mse(&t, gradient);
        assert_int_equal(qcc_run(t.session, QCC_BACKWARD | QCC_UPDATE, NULL), QCC_OK);
    }
    trainee_flat(&t, theirs);
    assert_memory_equal(ours, theirs, sizeof ours);
    qcc_close(cx);
}

/* The host's softmax rounds its own way: close, not equal. */
static void cross_entropy_can_be_the_hosts(void **state)
{
    Host h = { 0 };
    Trainee a, b;
    qcc_context *cx = open_with(&h);
    float ours[FLAT], theirs[FLAT], gradient[SAMPLES][OUTPUTS];
    int64_t class[SAMPLES];
    (void)state;
    assert_int_equal(trainee_try(&a, cx, "--loss cross_entropy:logits --optimizer sgd:lr=0.1"), QCC_OK);
    assert_int_equal(trainee_try(&b, cx, "--loss external:logits --optimizer sgd:lr=0.1"), QCC_OK);
    const qcc_tensor xa = trainee_tensor(a.x), xb = trainee_tensor(b.x), g = trainee_tensor(gradient);
    const qcc_tensor labels = { sizeof(qcc_tensor), QCC_I64, 1, { SAMPLES }, class, sizeof class };
    assert_int_equal(qcc_bind(a.session, "x", &xa), QCC_OK);
    assert_int_equal(qcc_bind(a.session, "target", &labels), QCC_OK);
    assert_int_equal(qcc_bind(b.session, "x", &xb), QCC_OK);
    assert_int_equal(qcc_bind(b.session, "grad.logits", &g), QCC_OK);
    for (unsigned i = 0; i < 10; i++) {
        qcc_tensor y = { .size = sizeof(qcc_tensor) };
        trainee_fill(&a, i);
        trainee_fill(&b, i);
        assert_int_equal(qcc_run(b.session, QCC_FORWARD, NULL), QCC_OK);
        assert_int_equal(qcc_view(b.session, "logits", &y), QCC_OK);
        for (int k = 0; k < SAMPLES; k++) {
            const float *row = (const float *)y.data + k * OUTPUTS;
            double sum = 0;
            class[k] = (k + (int)i) % OUTPUTS;
            for (int j = 0; j < OUTPUTS; j++)
                sum += exp(row[j]);
            for (int j = 0; j < OUTPUTS; j++)
                gradient[k][j] = (float)((exp(row[j]) / sum - (j == class[k])) / SAMPLES);
        }
        assert_int_equal(qcc_run(b.session, QCC_BACKWARD | QCC_UPDATE, NULL), QCC_OK);
        assert_int_equal(qcc_run(a.session, QCC_STEP, NULL), QCC_OK);
    }
    trainee_flat(&a, ours);
    trainee_flat(&b, theirs);
    for (int i = 0; i < FLAT; i++)
        assert_true(fabsf(ours[i] - theirs[i]) < 1e-6f);
    qcc_close(cx);
}

static void gradient_of_w2(const Trainee *t, float g[32])
{
    qcc_tensor seen = { .size = sizeof(qcc_tensor) };
    assert_int_equal(qcc_view(t->session, "grad.w2", &seen), QCC_OK);
    assert_true(seen.dtype == QCC_F32 && seen.rank == 2 && seen.dims[0] == 4 && seen.dims[1] == 8);
    memcpy(g, seen.data, 32 * sizeof *g);
}

static void gradients_add_up(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float one[32], two[32], sum[32];
    (void)state;
    trainee_open(&t, cx, "--loss mse --optimizer sgd:lr=1 --dropout off");
    trainee_fill(&t, 1);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
    gradient_of_w2(&t, one);
    trainee_fill(&t, 2);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
    gradient_of_w2(&t, two);
    for (unsigned i = 1; i <= 2; i++) {
        trainee_fill(&t, i);
        assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD | QCC_ACCUMULATE, NULL), QCC_OK);
    }
    gradient_of_w2(&t, sum);
    for (int i = 0; i < 32; i++)
        assert_true(sum[i] == one[i] + two[i]);
    qcc_tensor w = { .size = sizeof(qcc_tensor) };
    float before[32];
    assert_int_equal(qcc_view(t.session, "w2", &w), QCC_OK);
    memcpy(before, w.data, sizeof before);
    assert_int_equal(qcc_run(t.session, QCC_UPDATE, NULL), QCC_OK);
    assert_int_equal(qcc_view(t.session, "w2", &w), QCC_OK);
    for (int i = 0; i < 32; i++)
        assert_true(((float *)w.data)[i] == before[i] - sum[i]);

    /* A backward without the flag forgets what was gathered. */
    trainee_fill(&t, 1);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD | QCC_ACCUMULATE, NULL), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
    gradient_of_w2(&t, one);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
    gradient_of_w2(&t, two);
    assert_memory_equal(one, two, sizeof one);
    qcc_close(cx);
}

/* ---- values by name ---- */

static void every_value_has_a_name(void **state)
{
    static const char *const names[] = { "w1", "b1", "w2", "b2" };
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    qcc_value_info info = { .size = sizeof(qcc_value_info) };
    qcc_tensor v = { .size = sizeof(qcc_tensor) };
    qcc_memory memory = { .size = sizeof memory };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    assert_int_equal(qcc_n_parameters(t.step), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(qcc_parameter(t.step, i, &info), QCC_OK);
        assert_string_equal(info.name, names[i]);
    }
    assert_int_equal(qcc_parameter(t.step, 4, &info), QCC_USAGE);
    assert_int_equal(qcc_view(t.session, "loss", &v), QCC_USAGE); /* not yet */
    trainee_run(&t, 0, 1);
    static const char *const there[] = { "loss", "logits", "grad.w1", "grad.b1", "qcc.m/w1", "lr_factor", "qcc.step" };
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_int_equal(qcc_view(t.session, there[i], &v), QCC_OK);
    assert_int_equal(*(int64_t *)v.data, 1);
    assert_int_equal(qcc_view(t.session, "grad.x", &v), QCC_USAGE);
    assert_int_equal(qcc_plan(t.step, &memory), QCC_OK);
    assert_true(memory.gradients == FLAT * sizeof(float) && memory.weights >= memory.gradients);
    assert_true(memory.optimizer >= 2 * memory.gradients && memory.total > memory.activations);
    qcc_close(cx);
}

static void values_can_be_put(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float w[32], g[32] = { 0 }, zero = 0, half = 0.5f, flat[FLAT], before[FLAT];
    const qcc_tensor w2 = { sizeof(qcc_tensor), QCC_F32, 2, { 4, 8 }, w, sizeof w },
                     grad = { sizeof(qcc_tensor), QCC_F32, 2, { 4, 8 }, g, sizeof g };
    const qcc_tensor off = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, &zero, sizeof zero },
                     slow = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, &half, sizeof half };
    qcc_tensor seen = { .size = sizeof(qcc_tensor) };
    (void)state;
    trainee_open(&t, cx, "--loss mse --optimizer sgd:lr=1");
    for (int i = 0; i < 32; i++)
        w[i] = (float)i;
    g[5] = 2;
    assert_int_equal(qcc_put(t.session, "w2", &w2), QCC_OK);
    trainee_fill(&t, 1);
    assert_int_equal(qcc_put(t.session, "grad.w2", &grad), QCC_USAGE); /* there is none yet */
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
    assert_int_equal(qcc_put(t.session, "grad.w2", &grad), QCC_OK);
    assert_int_equal(qcc_put(t.session, "lr_factor", &slow), QCC_OK); /* the update that follows reads it */
    assert_int_equal(qcc_run(t.session, QCC_UPDATE, NULL), QCC_OK);
    assert_int_equal(qcc_view(t.session, "w2", &seen), QCC_OK);
    w[5] -= 1;
    assert_memory_equal(seen.data, w, sizeof w);

    /* A parameter that is put before the update is where the update starts from. */
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
    w[7] = 100;
    assert_int_equal(qcc_put(t.session, "w2", &w2), QCC_OK);
    assert_int_equal(qcc_put(t.session, "grad.w2", &grad), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_UPDATE, NULL), QCC_OK);
    assert_int_equal(qcc_view(t.session, "w2", &seen), QCC_OK);
    w[5] -= 1;
    assert_memory_equal(seen.data, w, sizeof w);

    trainee_flat(&t, before);
    assert_int_equal(qcc_put(t.session, "lr_factor", &off), QCC_OK);
    trainee_run(&t, 2, 3);
    trainee_flat(&t, flat);
    assert_memory_equal(before, flat, sizeof flat);
    assert_int_equal(qcc_put(t.session, "w2", &off), QCC_USAGE); /* another shape */
    assert_int_equal(qcc_put(t.session, "none", &off), QCC_USAGE);
    assert_int_equal(qcc_bind(t.session, "w2", &w2), QCC_USAGE); /* no input */
    qcc_tensor less = trainee_tensor(t.x);
    less.dims[0] = 1;
    less.bytes /= SAMPLES;
    assert_int_equal(qcc_bind(t.session, "x", &less), QCC_OK); /* another batch, which is evaluated alone */
    assert_int_equal(qcc_run(t.session, QCC_STEP, NULL), QCC_USAGE);
    less.dims[0] = SAMPLES;
    assert_int_equal(qcc_bind(t.session, "x", &less), QCC_USAGE); /* too few bytes */
    less.dims[1] = 1;
    less.bytes = SAMPLES * sizeof(float);
    assert_int_equal(qcc_bind(t.session, "x", &less), QCC_USAGE); /* other features */
    qcc_close(cx);
}

/* The rate of a group of parameters is the host's to change, beside that of all. */
static void a_group_has_its_rate(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float off = 0, before[FLAT], flat[FLAT];
    const qcc_tensor none = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, &off, sizeof off };
    qcc_tensor seen = { .size = sizeof(qcc_tensor) };
    enum { W2 = 8 * 4 + 8 };
    (void)state;
    trainee_open(&t, cx, "--loss mse --optimizer adamw:lr=1e-2 --group 'w2:optimizer=sgd,lr=0.5'");
    trainee_flat(&t, before);
    assert_int_equal(qcc_put(t.session, "lr_factor/w2", &none), QCC_OK);
    trainee_run(&t, 0, 1);
    trainee_flat(&t, flat);
    assert_memory_equal(flat + W2, before + W2, 32 * sizeof(float));
    assert_memory_not_equal(flat, before, 32 * sizeof(float));
    assert_int_equal(qcc_view(t.session, "lr/w2", &seen), QCC_OK);
    assert_true(*(const float *)seen.data == 0);
    off = 0.5f;
    assert_int_equal(qcc_put(t.session, "lr_factor/w2", &none), QCC_OK);
    trainee_run(&t, 1, 2);
    assert_int_equal(qcc_view(t.session, "lr/w2", &seen), QCC_OK);
    assert_true(*(const float *)seen.data == 0.25f);
    assert_int_equal(qcc_put(t.session, "lr_factor/w1", &none), QCC_USAGE); /* no group */
    qcc_close(cx);
}

static void flat_vectors_go_round(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float flat[FLAT], back[FLAT];
    qcc_tensor v = { .size = sizeof(qcc_tensor) };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    for (int i = 0; i < FLAT; i++)
        flat[i] = (float)i / 7;
    assert_int_equal(qcc_set_flat(t.session, flat, FLAT - 1), QCC_USAGE);
    assert_int_equal(qcc_set_flat(t.session, flat, FLAT), QCC_OK);
    trainee_flat(&t, back);
    assert_memory_equal(flat, back, sizeof flat);
    assert_int_equal(qcc_view(t.session, "b1", &v), QCC_OK); /* in the order of qcc_parameter */
    assert_memory_equal(v.data, flat + 32, 8 * sizeof *flat);
    memset(back, 0x5a, sizeof back);
    memcpy(flat, back, sizeof flat);
    assert_int_equal(qcc_get_flat(t.session, back, FLAT + 1), QCC_USAGE);
    assert_memory_equal(flat, back, sizeof flat);
    qcc_close(cx);
}

static void the_seed_decides_what_is_drawn(void **state)
{
    Host h = { 0 };
    float flat[3][FLAT];
    (void)state;
    for (int i = 0; i < 3; i++) {
        static const uint64_t seeds[] = { 7, 8, 7 };
        uint64_t seed = seeds[i];
        const qcc_tensor value = { sizeof(qcc_tensor), QCC_U64, 0, { 0 }, &seed, sizeof seed };
        Trainee t;
        qcc_tensor seen = { .size = sizeof(qcc_tensor) };
        qcc_context *cx = open_with(&h);
        trainee_open(&t, cx, TRAINEE_OPTIONS);
        assert_int_equal(qcc_view(t.session, "seed", &seen), QCC_OK);
        assert_int_equal(*(uint64_t *)seen.data, 0);
        assert_int_equal(qcc_put(t.session, "seed", &value), QCC_OK);
        assert_int_equal(qcc_view(t.session, "seed", &seen), QCC_OK);
        assert_int_equal(*(uint64_t *)seen.data, seeds[i]);
        trainee_run(&t, 0, 3);
        trainee_flat(&t, flat[i]);
        qcc_close(cx);
    }
    assert_memory_equal(flat[0], flat[2], sizeof flat[0]);
    assert_memory_not_equal(flat[0], flat[1], sizeof flat[0]);
}

/* ---- handles ---- */

static void handles_go_in_any_order(void **state)
{
    static const char orders[][4] = { "mps", "msp", "pms", "psm", "smp", "spm", "mp", "p", "m", "s", "" };
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        Host h = { 0 };
        Trainee t;
        qcc_context *cx = open_with(&h);
        qcc_session *second;
        trainee_open(&t, cx, TRAINEE_OPTIONS);
        assert_int_equal(qcc_start(t.step, NULL, &second), QCC_OK);
        bool there = true;
        for (const char *c = orders[i]; *c; c++) {
            if (*c == 'm')
                qcc_model_free(t.model);
            if (*c == 'p')
                qcc_step_free(t.step);
            if (*c == 's') {
                qcc_end(t.session);
                there = false;
            }
            if (there)
                trainee_run(&t, 0, 1);
        }
        qcc_close(cx);
        assert_int_equal(h.blocks, 0);
        assert_int_equal(h.bytes, 0);
    }
    qcc_end(NULL);
    qcc_step_free(NULL);
    qcc_model_free(NULL);
    qcc_request_stop(NULL);
}

static void sessions_of_one_step_are_apart(void **state)
{
    Host h = { 0 };
    Trainee t, u;
    qcc_context *cx = open_with(&h);
    float want[2][FLAT], got[FLAT];
    (void)state;
    trainee_after(4, want[0]);
    trainee_after(8, want[1]);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    u = t;
    assert_int_equal(qcc_start(t.step, NULL, &u.session), QCC_OK);
    assert_int_equal(trainee_bind(&u), QCC_OK);
    for (unsigned i = 0; i < 4; i++) { /* by turns */
        trainee_run(&t, i, i + 1);
        trainee_run(&u, 2 * i, 2 * i + 2);
    }
    trainee_flat(&t, got);
    assert_memory_equal(want[0], got, sizeof got);
    trainee_flat(&u, got);
    assert_memory_equal(want[1], got, sizeof got);
    qcc_close(cx);
}

static void results_stay_untouched_on_errors(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    qcc_step *step = (qcc_step *)&h;
    qcc_result result, result_before;
    qcc_tensor tensor, tensor_before;
    const char *text = "before";
    const int error = errno = EDOM;
    (void)state;
    memset(&result, 0x5a, sizeof result);
    result.size = sizeof result;
    memset(&tensor, 0x5a, sizeof tensor);
    tensor.size = sizeof tensor;
    result_before = result;
    tensor_before = tensor;
    assert_int_equal(trainee_try(&t, cx, TRAINEE_OPTIONS), QCC_OK);
    assert_int_equal(qcc_compile(t.model, "--loss nothing", &step), QCC_USAGE);
    assert_int_equal(qcc_compile(t.model, "--seed 3", &step), QCC_USAGE);
    assert_int_equal(qcc_compile(t.model, "--loss mse:nowhere", &step), QCC_USAGE);
    assert_int_equal(qcc_compile(t.model, NULL, NULL), QCC_USAGE);
    assert_ptr_equal(step, &h);
    const int told = h.messages;
    assert_int_equal(qcc_run(t.session, QCC_STEP, &result), QCC_USAGE); /* nothing is bound */
    assert_int_equal(h.messages, told + 1);
    assert_non_null(strstr(h.text, "x f32[8,4]"));
    assert_int_equal(qcc_view(t.session, "nothing", &tensor), QCC_USAGE);
    assert_int_equal(qcc_get_property(t.session, NULL, &text), QCC_USAGE);
    assert_int_equal(qcc_run(NULL, QCC_STEP, &result), QCC_USAGE);
    assert_int_equal(qcc_start(NULL, NULL, NULL), QCC_USAGE);
    assert_memory_equal(&result, &result_before, sizeof result);
    assert_memory_equal(&tensor, &tensor_before, sizeof tensor);
    assert_string_equal(text, "before");

    /* A caller of an older library has a shorter result. */
    result.size = offsetof(qcc_result, applied);
    assert_int_equal(trainee_bind(&t), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_STEP, &result), QCC_OK);
    assert_true(result.step == 1 && result.size == offsetof(qcc_result, applied));
    assert_memory_equal((char *)&result + result.size, (char *)&result_before + result.size,
                        sizeof result - result.size);
    assert_int_equal(errno, error);
    qcc_close(cx);
}

/* A step that is not finite changes nothing but the count. */
static void what_is_not_finite_is_not_applied(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float before[FLAT], after[FLAT];
    qcc_result r = { .size = sizeof r };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_run(&t, 0, 2);
    trainee_flat(&t, before);
    t.x[3][1] = NAN;
    assert_int_equal(qcc_run(t.session, QCC_STEP, &r), QCC_OK);
    assert_true(!r.applied && !r.finite && r.step == 3);
    trainee_flat(&t, after);
    assert_memory_equal(before, after, sizeof after);
    float gradient[32] = { NAN };
    const qcc_tensor put = { sizeof(qcc_tensor), QCC_F32, 2, { 4, 8 }, gradient, sizeof gradient };
    trainee_fill(&t, 3);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
    assert_int_equal(qcc_put(t.session, "grad.w2", &put), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_UPDATE, &r), QCC_OK);
    assert_true(!r.applied && !r.finite);
    trainee_flat(&t, after);
    assert_memory_equal(before, after, sizeof after);
    qcc_close(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sides_apart_are_the_step),
        cmocka_unit_test(a_loss_of_the_host_is_as_good),
        cmocka_unit_test(cross_entropy_can_be_the_hosts),
        cmocka_unit_test(gradients_add_up),
        cmocka_unit_test(every_value_has_a_name),
        cmocka_unit_test(values_can_be_put),
        cmocka_unit_test(a_group_has_its_rate),
        cmocka_unit_test(flat_vectors_go_round),
        cmocka_unit_test(the_seed_decides_what_is_drawn),
        cmocka_unit_test(handles_go_in_any_order),
        cmocka_unit_test(sessions_of_one_step_are_apart),
        cmocka_unit_test(results_stay_untouched_on_errors),
        cmocka_unit_test(what_is_not_finite_is_not_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
