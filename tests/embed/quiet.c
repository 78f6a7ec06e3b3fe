/* A steady step asks nobody for anything: between one step and a later one a session makes no system call on one thread,
 * none but the pool's futex on two, and no allocation on either. */
#include <sys/syscall.h>
#include <unistd.h>

#include "embed/host.h"
#include "support/system_calls.h"

static const char net_text[] = "graph @net(%x: f32[16,64]) -> (%y) {\n"
                               "    param %a: f32[64,256] = kaiming(seed=1)\n"
                               "    param %s: f32[256] = ones\n"
                               "    param %b: f32[256,32] = kaiming(seed=2)\n"
                               "    %h: f32[16,256] = matmul(%x, %a)\n"
                               "    %r: f32[16,256] = tanh(%h)\n"
                               "    %n: f32[16,256] = mul(%r, %s)\n"
                               "    %p: f32[16,256] = softmax(%n, axis=1)\n"
                               "    %y: f32[16,32] = matmul(%p, %b)\n"
                               "}\n";
static const char images_text[] = "graph @images(%x: f32[4,3,32,32]) -> (%y) {\n"
                                  "    param %a: f32[16,3,3,3] = kaiming(seed=1)\n"
                                  "    param %b: f32[32,16,3,3] = kaiming(seed=2)\n"
                                  "    param %c: f32[8,2048] = kaiming(seed=3)\n"
                                  "    %u: f32[4,16,16,16] = conv(%x, %a, pads=[1,1,1,1], strides=[2,2])\n"
                                  "    %v: f32[4,16,16,16] = relu(%u)\n"
                                  "    %w: f32[4,32,16,16] = conv(%v, %b, pads=[1,1,1,1])\n"
                                  "    %m: f32[4,32,8,8] = max_pool(%w, kernel_shape=[2,2], strides=[2,2])\n"
                                  "    %f: f32[4,2048] = flatten(%m)\n"
                                  "    %y: f32[4,8] = gemm(%f, %c, transB=true)\n"
                                  "}\n";

/* @eval takes any batch, a step one of 16. */
static const char step_text[] =
    "graph @step(%x: f32[16,64], state %w: f32[64,32] = kaiming(seed=1) trained) -> (%loss, %grad.w = %g, %w = %w1) {\n"
    "    %y: f32[16,32] = matmul(%x, %w)\n"
    "    %loss: f32[] = reduce_sum(%y, keepdims=false)\n"
    "    %t: f32[64,16] = transpose(%x, perm=[1,0]) side=backward\n"
    "    %e: f32[16,32] = exp(%y) side=backward\n"
    "    %g: f32[64,32] = matmul(%t, %e) side=backward\n"
    "    %w1: f32[64,32] = sub(%w, %g) side=update\n"
    "}\n"
    "graph @eval(%x: f32[?,64], state %w: f32[64,32] = kaiming(seed=1)) -> (%y) {\n"
    "    const %one: i64[] = 1\n"
    "    %h: f32[?,32] = matmul(%x, %w)\n"
    "    %r: f32[?,32] = tanh(%h)\n"
    "    %p: f32[?,32] = softmax(%r, axis=1)\n"
    "    %y: f32[?,32] = cum_sum(%p, %one)\n"
    "}\n";

typedef struct Case {
    const char *text, *options;
    int threads, rank;
    int64_t x[4], y[2];
    bool evaluates; /* batches of 16, 5, 1, and 7 in turn */
} Case;

enum { EARLY = 5, LATE = 25, ELEMENTS = 4 * 3 * 32 * 32 };

static float data[2][ELEMENTS], target[2][ELEMENTS];

static void bind(qcc_session *s, const char *name, float *values, int rank, const int64_t *dims)
{
    qcc_tensor t = { .size = sizeof t, .dtype = QCC_F32, .rank = rank, .data = values, .bytes = sizeof *values };
    for (int i = 0; i < rank; i++) {
        t.dims[i] = dims[i];
        t.bytes *= (size_t)dims[i];
    }
    assert_int_equal(qcc_bind(s, name, &t), QCC_OK);
}

static int evaluate(qcc_session *s, const Case *c, int i)
{
    static const int64_t batches[] = { 16, 5, 1, 7 };
    const int64_t rows = batches[i % 4];
    qcc_tensor y = { .size = sizeof y };
    bind(s, "x", data[i % 2], 2, (int64_t[]){ rows, 64 });
    if (c->y[0])
        bind(s, "target", target[i % 2], 2, (int64_t[]){ rows, 32 });
    assert_int_equal(qcc_run(s, QCC_EVAL, NULL), QCC_OK);
    assert_int_equal(qcc_view(s, "y", &y), QCC_OK);
    assert_true(y.dims[0] == rows && y.dims[1] == 32);
    const float sum = ((const float *)y.data)[rows * 32 - 1]; /* of the probabilities of the last row */
    assert_true(c->y[0] || (sum > 0.999f && sum < 1.001f));
    return 1;
}

/* Each step has another batch than the one before it. */
static int step(qcc_session *s, const Case *c, int i)
{
    qcc_result result = { .size = sizeof result };
    if (c->evaluates)
        return evaluate(s, c, i);
    bind(s, "x", data[i % 2], c->rank, c->x);
    bind(s, "target", target[i % 2], 2, c->y);
    assert_int_equal(qcc_run(s, QCC_STEP, &result), QCC_OK);
    return result.applied;
}

/* Returns 0, or how many allocations were made on the way, 100 at most; 101 if no step was applied. */
static int work(void *arg)
{
    const Case *c = arg;
    Host h = { .threads = c->threads };
    qcc_context *cx = open_with(&h);
    qcc_source source = qcc_bytes(c->text, strlen(c->text));
    qcc_model *model;
    qcc_step *compiled;
    qcc_session *session;
    source.name = "net.qir";
    for (int i = 0; i < ELEMENTS; i++)
        data[0][i] = data[1][ELEMENTS - 1 - i] = (float)(i % 17) / 17;
    assert_int_equal(qcc_read(cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, c->options, &compiled), QCC_OK);
    assert_int_equal(qcc_start(compiled, NULL, &session), QCC_OK);
    for (int i = 0; i < EARLY; i++)
        step(session, c, i);
    int applied = 0;
    const size_t before = h.requests;
    system_calls_mark();
    for (int i = EARLY; i < LATE; i++)
        applied += step(session, c, i);
    system_calls_mark();
    const size_t asked = h.requests - before;
    qcc_close(cx);
    return !applied ? 101 : asked < 100 ? (int)asked : 100;
}

static void makes_no_calls(Case c)
{
    SystemCalls calls;
    size_t others = 0;
    if (!system_calls_of(work, &c, &calls))
        skip();
    for (int i = 0; i < MOST_SYSTEM_CALLS; i++) {
        const bool expected = i == SYS_futex && c.threads > 1;
        if (calls.made[i] && !expected)
            print_error("%s, %d threads: system call %d, %zu times\n", c.options, c.threads, i, calls.made[i]);
        others += expected ? 0 : calls.made[i];
    }
    assert_int_equal(calls.marks, 2);
    assert_int_equal(calls.status, 0);
    assert_int_equal(others, 0);
}

static const char *const ways[] = { "--loss mse --optimizer adamw --clip-norm 1",
                                    "--loss mse --optimizer sgd --amp bf16",
                                    "--loss mse --optimizer adamw --amp fp16" };

static void of_rows_and_products(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            makes_no_calls((Case){ net_text, ways[i], threads, 2, { 16, 64 }, { 16, 32 } });
}

static void of_convolutions(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            makes_no_calls((Case){ images_text, ways[i], threads, 4, { 4, 3, 32, 32 }, { 4, 8 } });
}

static void of_batches_in_turn(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        makes_no_calls((Case){ step_text, "", threads, 2, { 16, 64 }, { 0 }, true });
}

/* The same of steps that were compiled for 16, once each other batch was seen. */
static void of_other_batches(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            makes_no_calls((Case){ net_text, ways[i], threads, 2, { 16, 64 }, { 16, 32 }, true });
}

/* The counter counts: a call that is known to be made is seen. */
static int asks(void *arg)
{
    (void)arg;
    system_calls_mark();
    for (int i = 0; i < 3; i++)
        syscall(SYS_getuid);
    system_calls_mark();
    syscall(SYS_getuid);
    return 5;
}

static void counts(void **state)
{
    SystemCalls calls;
    (void)state;
    if (!system_calls_of(asks, NULL, &calls))
        skip();
    assert_int_equal(calls.made[SYS_getuid], 3);
    assert_int_equal(calls.marks, 2);
    assert_int_equal(calls.status, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(counts), cmocka_unit_test(of_rows_and_products),
                                        cmocka_unit_test(of_convolutions), cmocka_unit_test(of_batches_in_turn),
                                        cmocka_unit_test(of_other_batches) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
