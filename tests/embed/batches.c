/* A session evaluates any batch, whatever its step was compiled for: in the bits of the rows of other batches, and
 * without a trace in the training around it. */
#include <math.h>

#include "embed/trainee.h"

enum { MOST = 20 };

/* Rows of one batch are the first of another. */
typedef struct Rows {
    float x[MOST][FEATURES], target[MOST][OUTPUTS];
} Rows;

static void fill(Rows *r)
{
    unsigned state = 99;
    for (int k = 0; k < MOST; k++)
        for (int j = 0; j < FEATURES; j++) {
            state = state * 1664525u + 1013904223u;
            r->x[k][j] = (float)(state >> 8) / (1 << 23) - 1;
            r->target[k][j] = r->x[k][j] / 4;
        }
}

static qcc_tensor rows(float (*values)[FEATURES], int n)
{
    return (
        qcc_tensor){ sizeof(qcc_tensor), QCC_F32, 2, { n, FEATURES }, values, (size_t)n * FEATURES * sizeof(float) };
}

static void bind_rows(const Trainee *t, Rows *r, int n)
{
    const qcc_tensor x = rows(r->x, n), target = rows(r->target, n);
    assert_int_equal(qcc_bind(t->session, "x", &x), QCC_OK);
    assert_int_equal(qcc_bind(t->session, "target", &target), QCC_OK);
}

/* The logits of n rows; the loss is their mean. */
static void evaluate(const Trainee *t, Rows *r, int n, float logits[MOST][OUTPUTS])
{
    qcc_tensor y = { .size = sizeof y };
    qcc_result result = { .size = sizeof result };
    double sum = 0;
    bind_rows(t, r, n);
    assert_int_equal(qcc_run(t->session, QCC_EVAL, &result), QCC_OK);
    assert_int_equal(qcc_view(t->session, "logits", &y), QCC_OK);
    assert_true(y.rank == 2 && y.dims[0] == n && y.dims[1] == OUTPUTS);
    memcpy(logits, y.data, (size_t)n * sizeof *logits);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < OUTPUTS; j++)
            sum += pow((double)logits[k][j] - r->target[k][j], 2);
    assert_true(fabs(result.loss - sum / (n * OUTPUTS)) < 1e-5);
}

static void open_on(Trainee *t, qcc_context *cx, const char *options, const char *device)
{
    assert_int_equal(trainee_try(t, cx, options), QCC_OK);
    qcc_end(t->session);
    assert_int_equal(qcc_start(t->step, &(qcc_session_options){ sizeof(qcc_session_options), device }, &t->session),
                     QCC_OK);
    assert_int_equal(trainee_bind(t), QCC_OK);
}

static const char *const devices[] = { "cpu", "reference" };
static const char *const ways[] = { TRAINEE_OPTIONS,
                                    TRAINEE_OPTIONS " --amp bf16",
                                    TRAINEE_OPTIONS " --amp fp16",
                                    TRAINEE_OPTIONS " --quant w8a8 --for generic",
                                    TRAINEE_OPTIONS " --accumulate 2",
                                    TRAINEE_OPTIONS " --shape x:8x4",
                                    "--loss mse --optimizer sgd:lr=0.1 --ema 0.9" };

/* More sizes than are kept, in turn. */
static const int sizes[] = { SAMPLES, 1, 3, MOST, 10, 7, 1, SAMPLES, 2, 3, 10, 1 };

static void same_rows(const char *device, const char *options)
{
    Host h = { 0 };
    Trainee t;
    Rows r;
    static float all[MOST][OUTPUTS], some[MOST][OUTPUTS];
    qcc_context *cx = open_with(&h);
    fill(&r);
    open_on(&t, cx, options, device);
    if (strstr(options, "--quant")) {
        trainee_fill(&t, 0);
        assert_int_equal(qcc_run(t.session, QCC_OBSERVE, NULL), QCC_OK);
        bind_rows(&t, &r, 3);
        assert_int_equal(qcc_run(t.session, QCC_OBSERVE, NULL), QCC_USAGE); /* as a step does */
    }
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        trainee_fill(&t, i);
        assert_int_equal(trainee_bind(&t), QCC_OK);
        assert_int_equal(qcc_run(t.session, QCC_STEP, NULL), QCC_OK);
        evaluate(&t, &r, MOST, all);
        evaluate(&t, &r, sizes[i], some);
        assert_memory_equal(all, some, (size_t)sizes[i] * sizeof *all);
        evaluate(&t, &r, SAMPLES, some);
        assert_memory_equal(all, some, SAMPLES * sizeof *all);
    }
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void rows_are_those_of_other_batches(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            same_rows(devices[d], ways[i]);
}

/* In the middle of a step, and between two. */
static void training_does_not_notice(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        Host h = { 0 };
        Trainee t;
        Rows r;
        float logits[MOST][OUTPUTS], with[FLAT], without[FLAT];
        qcc_context *cx = open_with(&h);
        fill(&r);
        trainee_after(8, without);
        open_on(&t, cx, TRAINEE_OPTIONS, devices[d]);
        for (unsigned i = 0; i < 8; i++) {
            trainee_fill(&t, i);
            assert_int_equal(qcc_run(t.session, QCC_FORWARD, NULL), QCC_OK);
            evaluate(&t, &r, 1 + (int)i * 2, logits);
            assert_int_equal(trainee_bind(&t), QCC_OK);
            assert_int_equal(qcc_run(t.session, QCC_BACKWARD, NULL), QCC_OK);
            evaluate(&t, &r, MOST - (int)i, logits);
            assert_int_equal(trainee_bind(&t), QCC_OK);
            assert_int_equal(qcc_run(t.session, QCC_UPDATE, NULL), QCC_OK);
        }
        trainee_flat(&t, with);
        assert_memory_equal(with, without, sizeof with);
        qcc_close(cx);
    }
}

static void steps_keep_their_batch(void **state)
{
    Host h = { 0 };
    Trainee t;
    Rows r;
    float before[FLAT], after[FLAT];
    qcc_context *cx = open_with(&h);
    (void)state;
    fill(&r);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_flat(&t, before);
    bind_rows(&t, &r, 3);
    assert_int_equal(qcc_run(t.session, QCC_STEP, NULL), QCC_USAGE);
    assert_non_null(strstr(h.text, "x: got f32[3,4], wanted f32[8,4]"));
    assert_non_null(strstr(h.text, "evaluated"));
    assert_int_equal(qcc_run(t.session, QCC_FORWARD, NULL), QCC_USAGE);
    trainee_flat(&t, after);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(trainee_bind(&t), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_FORWARD, NULL), QCC_OK);
    bind_rows(&t, &r, 3);
    assert_int_equal(qcc_run(t.session, QCC_BACKWARD, NULL), QCC_USAGE); /* it would read what is bound now */
    qcc_close(cx);
}

static void one_batch_at_a_time(void **state)
{
    Host h = { 0 };
    Trainee t;
    Rows r;
    float logits[MOST][OUTPUTS];
    qcc_context *cx = open_with(&h);
    (void)state;
    fill(&r);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    const qcc_tensor x = rows(r.x, 3), target = rows(r.target, 5), none = rows(r.x, 0);
    assert_int_equal(qcc_bind(t.session, "x", &x), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, NULL), QCC_USAGE);
    assert_non_null(strstr(h.text, "x f32[3,4]"));
    assert_non_null(strstr(h.text, "target f32[8,4]"));
    assert_int_equal(qcc_bind(t.session, "target", &target), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, NULL), QCC_USAGE);
    assert_non_null(strstr(h.text, "target f32[5,4]"));
    assert_int_equal(qcc_bind(t.session, "x", &none), QCC_USAGE);
    evaluate(&t, &r, 5, logits);
    qcc_close(cx);
}

/* Which samples count may be said of any batch; what was said of one is not taken for another. */
static void samples_are_masked(void **state)
{
    Host h = { 0 };
    Trainee t;
    Rows r;
    float logits[MOST][OUTPUTS], mask[MOST] = { 1, 1, 0, 0, 0 };
    qcc_result few = { .size = sizeof few }, two = { .size = sizeof two };
    const qcc_tensor five = { sizeof(qcc_tensor), QCC_F32, 1, { 5 }, mask, 5 * sizeof *mask };
    qcc_context *cx = open_with(&h);
    (void)state;
    fill(&r);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    bind_rows(&t, &r, 2);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, &two), QCC_OK);
    evaluate(&t, &r, 5, logits);
    assert_int_equal(qcc_bind(t.session, "qcc.valid", &five), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, &few), QCC_OK);
    assert_true(fabs(few.loss - two.loss) < 1e-6);
    bind_rows(&t, &r, 2);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, NULL), QCC_USAGE);
    assert_non_null(strstr(h.text, "qcc.valid f32[5]"));
    qcc_close(cx);
}

/* What was compiled is asked, however it came, and after the model's owner let go of it. */
static void of_a_written_step(void **state)
{
    static Bytes file;
    Host h = { 0 };
    Trainee t, back = { .model = NULL };
    Rows r;
    float here[MOST][OUTPUTS], there[MOST][OUTPUTS];
    qcc_context *cx = open_with(&h);
    (void)state;
    fill(&r);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    qcc_model_free(t.model);
    evaluate(&t, &r, 13, here);
    const qcc_sink sink = bytes_sink(&file);
    assert_int_equal(qcc_write_step(t.step, &sink), QCC_OK);
    const qcc_source source = bytes_source(&file);
    assert_int_equal(qcc_read(cx, &source, NULL, &back.model), QCC_OK);
    assert_int_equal(qcc_compile(back.model, NULL, &back.step), QCC_OK);
    assert_int_equal(qcc_start(back.step, NULL, &back.session), QCC_OK);
    evaluate(&back, &r, 13, there);
    assert_memory_equal(here, there, 13 * sizeof *here);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* Weights of classes, of a file that is gone. */
static void write_weights(const char *path, const float w[OUTPUTS])
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }";
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0\166\0", 10);
    memcpy(head + 10, text, sizeof text - 1);
    head[sizeof head - 1] = '\n';
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, 1, sizeof head, f) + fwrite(w, 1, OUTPUTS * sizeof *w, f),
                     sizeof head + OUTPUTS * sizeof *w);
    fclose(f);
}

static void weights_are_those_of_the_step(void **state)
{
    static const float w[OUTPUTS] = { 1, 10, 100, 1000 };
    enum { N = 3 };
    Host h = { 0 };
    Trainee t;
    Rows r;
    qcc_tensor y = { .size = sizeof y };
    qcc_result result = { .size = sizeof result };
    int64_t class[N] = { 0, 3, 1 };
    double sum = 0, all = 0;
    qcc_context *cx = open_with(&h);
    (void)state;
    fill(&r);
    write_weights("test_embed_batches.npy", w);
    assert_int_equal(trainee_try(&t, cx, "--loss cross_entropy:logits,weight=test_embed_batches.npy"), QCC_OK);
    remove("test_embed_batches.npy");
    const qcc_tensor x = rows(r.x, N), labels = { sizeof(qcc_tensor), QCC_I64, 1, { N }, class, sizeof class };
    assert_int_equal(qcc_bind(t.session, "x", &x), QCC_OK);
    assert_int_equal(qcc_bind(t.session, "target", &labels), QCC_OK);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, &result), QCC_OK);
    assert_int_equal(qcc_view(t.session, "logits", &y), QCC_OK);
    for (int k = 0; k < N; k++) {
        const float *row = (const float *)y.data + (ptrdiff_t)k * OUTPUTS;
        double total = 0;
        for (int j = 0; j < OUTPUTS; j++)
            total += exp(row[j]);
        sum += w[class[k]] * (log(total) - row[class[k]]);
        all += w[class[k]];
    }
    assert_true(fabs(result.loss - sum / all) < 1e-5);
    qcc_close(cx);
}

/* A loss that the model computes itself, whose mean no rows tell of. */
static void a_models_own_loss(void **state)
{
    static const char text[] = "graph @net(%x: f32[?,4]) -> (%loss) {\n"
                               "    param %w: f32[4,4] = ones\n"
                               "    %h: f32[?,4] = matmul(%x, %w)\n"
                               "    %loss: f32[] = reduce_mean(%h, keepdims=false)\n"
                               "}\n";
    static const char *const reads[] = { "--batch 8", "--shape x:8x4" };
    (void)state;
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        Host h = { 0 };
        Rows r;
        qcc_model *model;
        qcc_step *step;
        qcc_session *session;
        qcc_result result = { .size = sizeof result };
        qcc_context *cx = open_with(&h);
        qcc_source source = qcc_bytes(text, sizeof text - 1);
        double sum = 0;
        fill(&r);
        const qcc_tensor x = rows(r.x, 3);
        assert_int_equal(qcc_read(cx, &source, reads[i], &model), QCC_OK);
        assert_int_equal(qcc_compile(model, "--loss output:loss --optimizer sgd", &step), QCC_OK);
        assert_int_equal(qcc_start(step, NULL, &session), QCC_OK);
        assert_int_equal(qcc_bind(session, "x", &x), QCC_OK);
        assert_int_equal(qcc_run(session, QCC_EVAL, &result), QCC_OK);
        for (int k = 0; k < 3 * FEATURES; k++)
            sum += r.x[k / FEATURES][k % FEATURES];
        assert_true(fabs(result.loss - sum / 3) < 1e-6);
        qcc_close(cx);
    }
}

/* What is made for a batch goes with it: sizes that come and go take no more and more. */
static void what_was_made_is_given_back(void **state)
{
    enum { SIZES = 12, ROUNDS = 100 };
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        Host h = { 0 };
        Trainee t;
        Rows r;
        float logits[MOST][OUTPUTS];
        size_t early = 0;
        qcc_context *cx = open_with(&h);
        fill(&r);
        open_on(&t, cx, TRAINEE_OPTIONS, devices[d]);
        for (int round = 0; round < ROUNDS; round++) {
            for (int n = 1; n <= SIZES; n++)
                evaluate(&t, &r, n, logits);
            early = round == 1 ? h.bytes : early;
        }
        assert_int_equal(h.bytes, early);
        qcc_close(cx);
        assert_int_equal(h.blocks, 0);
    }
}

/* Each request of each bind is refused once: what was bound and made before is there. */
static void a_refused_bind_changes_nothing(void **state)
{
    Host h = { 0 };
    Trainee t;
    Rows r;
    float logits[MOST][OUTPUTS], before[FLAT], after[FLAT];
    size_t refusals = 0;
    qcc_context *cx = open_with(&h);
    (void)state;
    fill(&r);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_flat(&t, before);
    for (int n = 1;; n = n % SAMPLES + 1, refusals++) {
        const qcc_tensor x = rows(r.x, n);
        evaluate(&t, &r, n + SAMPLES, logits);
        host_refuse(&h, refusals, false);
        const qcc_status status = qcc_bind(t.session, "x", &x);
        host_serve(&h);
        if (n != SAMPLES && status == QCC_OK)
            break;
        assert_int_equal(status, n == SAMPLES ? QCC_OK : QCC_NO_MEMORY);
        evaluate(&t, &r, n, logits);
    }
    print_message("%zu requests refused\n", refusals);
    trainee_flat(&t, after);
    assert_memory_equal(before, after, sizeof before);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* ---- what cannot be ---- */

typedef struct Baked {
    const char *text, *place, *reason;
} Baked;

/* The batch stands in the model: in a reshape, in what is added, in what comes out. */
static const Baked baked[] = {
    { "graph @net(%x: f32[?,4]) -> (%y) {\n"
      "    param %w: f32[4,4] = kaiming(seed=1)\n"
      "    const %s: i64[2] = [8, 4]\n"
      "    %h: f32[?,4] = matmul(%x, %w)\n"
      "    %y: f32[8,4] = reshape(%h, %s)\n"
      "}\n",
      "reshape: x: ", "32 elements out of 64" },
    { "graph @net(%x: f32[?,4]) -> (%y) {\n"
      "    param %w: f32[4,4] = kaiming(seed=1)\n"
      "    param %b: f32[8,4] = kaiming(seed=2)\n"
      "    %h: f32[?,4] = matmul(%x, %w)\n"
      "    %y: f32[8,4] = add(%h, %b)\n"
      "}\n",
      "add: x: ", "f32[8,4]" },
    { "graph @net(%x: f32[?,4]) -> (%y) {\n"
      "    param %w: f32[4,4] = kaiming(seed=1)\n"
      "    const %s: i64[2] = [8, -1]\n"
      "    %h: f32[?,4] = matmul(%x, %w)\n"
      "    %y: f32[8,?] = reshape(%h, %s)\n"
      "}\n",
      "node y: x: ", "y would be f32[8,8]" },
};

static void a_batch_in_the_model_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof baked / sizeof *baked; i++) {
        Host h = { 0 };
        Rows r;
        qcc_model *model;
        qcc_step *step;
        qcc_session *session;
        qcc_context *cx = open_with(&h);
        qcc_source source = qcc_bytes(baked[i].text, strlen(baked[i].text));
        source.name = "net.qir";
        fill(&r);
        const qcc_tensor own = rows(r.x, SAMPLES), target = rows(r.target, SAMPLES), other = rows(r.x, 16);
        assert_int_equal(qcc_read(cx, &source, "--batch 8", &model), QCC_OK);
        assert_int_equal(qcc_compile(model, "--loss mse --optimizer sgd", &step), QCC_OK);
        assert_int_equal(qcc_start(step, NULL, &session), QCC_OK);
        assert_int_equal(qcc_bind(session, "x", &own), QCC_OK);
        assert_int_equal(qcc_bind(session, "target", &target), QCC_OK);
        h.text[0] = 0;
        assert_int_equal(qcc_bind(session, "x", &other), QCC_UNSUPPORTED);
        assert_non_null(strstr(h.text, "net.qir"));
        assert_non_null(strstr(h.text, baked[i].place));
        assert_non_null(strstr(h.text, baked[i].reason));
        assert_non_null(strstr(h.text, "batch of 16"));
        assert_int_equal(qcc_run(session, QCC_STEP, NULL), QCC_OK); /* what was bound is bound */
        assert_int_equal(qcc_run(session, QCC_EVAL, NULL), QCC_OK);
        qcc_close(cx);
        assert_int_equal(h.blocks, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_other_batches),
        cmocka_unit_test(training_does_not_notice),
        cmocka_unit_test(steps_keep_their_batch),
        cmocka_unit_test(one_batch_at_a_time),
        cmocka_unit_test(samples_are_masked),
        cmocka_unit_test(of_a_written_step),
        cmocka_unit_test(weights_are_those_of_the_step),
        cmocka_unit_test(a_models_own_loss),
        cmocka_unit_test(a_batch_in_the_model_is_refused),
        cmocka_unit_test(what_was_made_is_given_back),
        cmocka_unit_test(a_refused_bind_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
