/* Batches that are given for steps to come: each step reads its own, whatever is evaluated, stopped or tried again in between, in
 * the bits of a loop that binds each batch when its turn is.  The device is an argument: none, those of every machine. */
#include "embed/trainee.h"

enum { STEPS = 6 };

static const char *const anywhere[] = { "cpu", "reference", NULL };
static const char *chosen[] = { NULL, NULL };
static const char *const *devices = anywhere;

static const char *const ways[] = { TRAINEE_OPTIONS, TRAINEE_OPTIONS " --amp fp16", TRAINEE_OPTIONS " --accumulate 2" };

/* A batch of its own for each step, and one more; and one for evaluations. */
static Trainee batches[STEPS + 1], other;

static void open_on(Trainee *t, qcc_context *cx, const char *options, const char *device)
{
    assert_int_equal(trainee_try(t, cx, options), QCC_OK);
    qcc_end(t->session);
    assert_int_equal(qcc_start(t->step, &(qcc_session_options){ sizeof(qcc_session_options), device }, &t->session),
                     QCC_OK);
    for (unsigned i = 0; i <= STEPS; i++)
        trainee_fill(&batches[i], i);
    trainee_fill(&other, 99);
}

typedef qcc_status Binder(qcc_session *session, const char *name, const qcc_tensor *tensor);

static qcc_status give(Binder *how, const Trainee *t, Trainee *batch)
{
    const qcc_tensor x = trainee_tensor(batch->x), target = trainee_tensor(batch->target);
    const qcc_status status = how(t->session, "x", &x);
    return status == QCC_OK ? how(t->session, "target", &target) : status;
}

static double step(const Trainee *t)
{
    qcc_result r = { .size = sizeof r };
    assert_int_equal(qcc_run(t->session, QCC_STEP, &r), QCC_OK);
    return r.loss;
}

static double evaluate(const Trainee *t)
{
    qcc_result r = { .size = sizeof r };
    assert_int_equal(give(qcc_bind, t, &other), QCC_OK);
    assert_int_equal(qcc_run(t->session, QCC_EVAL, &r), QCC_OK);
    return r.loss;
}

/* What a run that binds each batch in time comes to. */
static void in_time(const char *options, const char *device, double losses[STEPS], double judged[STEPS])
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    open_on(&t, cx, options, device);
    for (unsigned i = 0; i < STEPS; i++) {
        assert_int_equal(give(qcc_bind, &t, &batches[i]), QCC_OK);
        losses[i] = step(&t);
        judged[i] = evaluate(&t);
    }
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* A life that was told in time, and one to be given its batches, with the first of them. */
typedef struct Given {
    Host host;
    qcc_context *cx;
    Trainee t;
    double losses[STEPS], judged[STEPS];
} Given;

static void open_given(Given *g, const char *options, const char *device)
{
    *g = (Given){ .cx = NULL };
    in_time(options, device, g->losses, g->judged);
    g->cx = open_with(&g->host);
    open_on(&g->t, g->cx, options, device);
    assert_int_equal(give(qcc_bind, &g->t, &batches[0]), QCC_OK);
}

static void close_given(Given *g)
{
    qcc_close(g->cx);
    assert_int_equal(g->host.blocks, 0);
}

static void same_steps(const char *options, const char *device)
{
    Given g;
    open_given(&g, options, device);
    for (unsigned i = 0; i < STEPS; i++) {
        assert_int_equal(give(qcc_bind_next, &g.t, &batches[i + 1]), QCC_OK);
        assert_true(step(&g.t) == g.losses[i]);
        if (i % 2)
            assert_true(evaluate(&g.t) == g.judged[i]);
    }
    close_given(&g);
}

static void each_step_reads_its_own(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            same_steps(ways[i], devices[d]);
}

/* A step that never was is tried again with what it was given, and so is the one behind it. */
static void what_is_tried_again_reads_the_same(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++) {
        Given g;
        open_given(&g, TRAINEE_OPTIONS, devices[d]);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(give(qcc_bind_next, &g.t, &batches[i + 1]), QCC_OK);
            qcc_request_stop(g.t.session);
            assert_int_equal(qcc_run(g.t.session, QCC_STEP, NULL), QCC_INTERRUPTED);
            assert_true(step(&g.t) == g.losses[i]);
            assert_true(evaluate(&g.t) == g.judged[i]);
        }
        close_given(&g);
    }
}

/* Side by side: what is given between the sides of a step is of the step behind the next one. */
static void sides_are_of_one_step(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++) {
        Given g;
        open_given(&g, TRAINEE_OPTIONS, devices[d]);
        assert_int_equal(give(qcc_bind_next, &g.t, &batches[1]), QCC_OK);
        for (unsigned i = 0; i < 4; i++) {
            qcc_result r = { .size = sizeof r };
            assert_int_equal(qcc_run(g.t.session, QCC_FORWARD, &r), QCC_OK);
            assert_true(r.loss == g.losses[i]);
            assert_int_equal(give(qcc_bind_next, &g.t, &batches[i + 2]), QCC_OK);
            assert_int_equal(qcc_run(g.t.session, QCC_BACKWARD, NULL), QCC_OK);
            assert_int_equal(qcc_run(g.t.session, QCC_UPDATE, NULL), QCC_OK);
        }
        close_given(&g);
    }
}

static void what_is_bound_twice_is_refused(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++) {
        Given g;
        open_given(&g, TRAINEE_OPTIONS, devices[d]);
        assert_int_equal(give(qcc_bind_next, &g.t, &other), QCC_OK);
        assert_true(step(&g.t) == g.losses[0]);
        assert_int_equal(give(qcc_bind, &g.t, &batches[1]), QCC_OK);
        assert_int_equal(qcc_run(g.t.session, QCC_STEP, NULL), QCC_USAGE);
        assert_non_null(strstr(g.host.text, "x was bound for this step before the last one, and again since"));
        assert_int_equal(qcc_bind_next(g.t.session, "x", NULL) | qcc_bind_next(g.t.session, "target", NULL), QCC_OK);
        assert_true(step(&g.t) == g.losses[1]);
        close_given(&g);
    }
}

static void what_no_step_reads_is_refused(void **state)
{
    (void)state;
    for (size_t d = 0; devices[d]; d++) {
        Host h = { 0 };
        Trainee t;
        qcc_value *x;
        qcc_context *cx = open_with(&h);
        open_on(&t, cx, TRAINEE_OPTIONS, devices[d]);
        qcc_tensor half = trainee_tensor(other.x), whole = half;
        half.dims[0] /= 2;
        half.bytes /= 2;
        assert_int_equal(qcc_bind_next(t.session, "x", &half), QCC_USAGE);
        assert_non_null(strstr(h.text, "x: got f32[4,4], wanted f32[8,4]"));
        assert_int_equal(qcc_bind_next(t.session, "w1", &whole), QCC_USAGE);
        assert_non_null(strstr(h.text, "w1 is no input of the step"));
        assert_int_equal(qcc_bind_next(t.session, "z", &whole), QCC_USAGE);
        assert_int_equal(qcc_bind_next(t.session, NULL, &whole), QCC_USAGE);
        assert_int_equal(qcc_find(t.session, "x", &x), QCC_OK);
        assert_int_equal(qcc_bind_next_value(x, &whole), QCC_OK);
        assert_int_equal(qcc_bind_next_value(NULL, &whole), QCC_USAGE);
        assert_int_equal(qcc_run(t.session, QCC_STEP, NULL), QCC_USAGE); /* which reads nothing yet */
        qcc_close(cx);
    }
}

static const char words[] = "graph @f(%i: i64[?,2]) -> (%y) {\n"
                            "    param %table: f32[5,3] = kaiming(seed=1)\n"
                            "    %y: f32[?,2,3] = gather(%table, %i, axis=0)\n"
                            "}\n";

static void give_words(qcc_session *s, Binder *how, int64_t *i, float *target)
{
    const qcc_tensor in = { sizeof in, QCC_I64, 2, { 2, 2 }, i, 4 * sizeof *i },
                     out = { sizeof out, QCC_F32, 3, { 2, 2, 3 }, target, 12 * sizeof *target };
    assert_int_equal(how(s, "i", &in) | how(s, "target", &out), QCC_OK);
}

/* An index that leads nowhere: a device is sent the batch behind it before anybody knows. */
static void a_refused_step_never_was(void **state)
{
    static int64_t good[4] = { 0, 1, 2, 3 }, bad[4] = { 0, 5, 2, 3 }, last[4] = { 4, 4, 1, 0 };
    static float target[12] = { 1, 2, 3 };
    qcc_source source = qcc_bytes(words, sizeof words - 1);
    (void)state;
    source.name = "words.qir";
    for (size_t d = 0; devices[d]; d++) {
        double losses[2][2];
        for (int given = 0; given < 2; given++) {
            Host h = { 0 };
            Trainee t = { .model = NULL };
            qcc_context *cx = open_with(&h);
            const qcc_session_options on = { sizeof on, devices[d] };
            assert_int_equal(qcc_read(cx, &source, "--batch 2", &t.model), QCC_OK);
            assert_int_equal(qcc_compile(t.model, "--loss mse --optimizer sgd:lr=1", &t.step), QCC_OK);
            assert_int_equal(qcc_start(t.step, &on, &t.session), QCC_OK);
            give_words(t.session, qcc_bind, given ? bad : good, target);
            if (given) {
                give_words(t.session, qcc_bind_next, last, target);
                assert_int_not_equal(qcc_run(t.session, QCC_STEP, NULL), QCC_OK);
                give_words(t.session, qcc_bind, good, target);
            }
            losses[given][0] = step(&t);
            if (!given)
                give_words(t.session, qcc_bind, last, target);
            losses[given][1] = step(&t);
            qcc_close(cx);
        }
        assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_step_reads_its_own),        cmocka_unit_test(what_is_tried_again_reads_the_same),
        cmocka_unit_test(sides_are_of_one_step),          cmocka_unit_test(a_refused_step_never_was),
        cmocka_unit_test(what_is_bound_twice_is_refused), cmocka_unit_test(what_no_step_reads_is_refused),
    };
    if (argc > 1) {
        chosen[0] = argv[1];
        devices = chosen;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
