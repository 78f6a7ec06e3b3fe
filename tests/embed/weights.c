/* A weight is held once: what is not trained yet lies in its file, and what is lies in the session. */
#include "embed/host.h"

#include <unistd.h>

enum { WIDE = 1024, LAYERS = 4, BYTES = LAYERS * WIDE * WIDE * 4 };

static const char text[] = "graph @net(%x: f32[2,1024]) -> (%y) {\n"
                           "    param %w1: f32[1024,1024] = kaiming(seed=1)\n"
                           "    param %w2: f32[1024,1024] = kaiming(seed=2)\n"
                           "    param %w3: f32[1024,1024] = kaiming(seed=3)\n"
                           "    param %w4: f32[1024,1024] = kaiming(seed=4)\n"
                           "    %a: f32[2,1024] = matmul(%x, %w1)\n"
                           "    %b: f32[2,1024] = matmul(%a, %w2)\n"
                           "    %c: f32[2,1024] = matmul(%b, %w3)\n"
                           "    %y: f32[2,1024] = matmul(%c, %w4)\n"
                           "}\n";

/* The model as a file that holds its weights, and as a step over it. */
static void write_files(const char *model, const char *step)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    FILE *f = fopen("weights-once.qir", "w");
    assert_non_null(f);
    fwrite(text, 1, sizeof text - 1, f);
    fclose(f);
    const qcc_sink out = { .path = "weights-once.log" };
    const char *const emit[] = { "qcc", "weights-once.qir", "--emit", "onnx", "-o", model };
    assert_int_equal(qcc_command(cx, 6, emit, &out), QCC_OK);
    const char *const compile[] = { "qcc", model, "--loss", "mse", "--optimizer", "sgd:lr=0.1", "-o", step };
    assert_int_equal(qcc_command(cx, 8, compile, &out), QCC_OK);
    qcc_close(cx);
    unlink("weights-once.qir");
    unlink("weights-once.log");
}

/* Reading and compiling look at one weight at a time at most; a session has them all, and nobody else has. */
static void held_once(const char *file, const char *options)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    const qcc_source source = { .path = file };
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    assert_int_equal(qcc_read(cx, &source, "", &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_true(h.most < BYTES / LAYERS * 2);
    assert_int_equal(qcc_start(step, NULL, &session), QCC_OK);
    assert_true(h.bytes > BYTES);
    assert_true(h.most < BYTES / 10 * 11);
    qcc_end(session);
    assert_true(h.bytes < BYTES / 10);
    qcc_close(cx);
}

static void a_weight_is_held_once(void **state)
{
    (void)state;
    write_files("weights-once.onnx", "weights-once.step.onnx");
    held_once("weights-once.onnx", "--loss mse --optimizer sgd:lr=0.1");
    held_once("weights-once.step.onnx", "");
    unlink("weights-once.onnx");
    unlink("weights-once.step.onnx");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_weight_is_held_once) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
