/* Memory that is announced is memory that is used: what a session asks its host for, against what qcc_plan said. */
#include "embed/host.h"

/* Weights make up most of it, then values between nodes, then what a product packs. */
static const char wide_text[] = "graph @wide(%x: f32[32,256]) -> (%y) {\n"
                                "    param %a: f32[256,2048] = kaiming(seed=1)\n"
                                "    param %b: f32[2048,1024] = kaiming(seed=2)\n"
                                "    %h: f32[32,2048] = matmul(%x, %a)\n"
                                "    %r: f32[32,2048] = relu(%h)\n"
                                "    %y: f32[32,1024] = matmul(%r, %b)\n"
                                "}\n";
static const char deep_text[] = "graph @deep(%x: f32[32,4096]) -> (%y) {\n"
                                "    param %s: f32[4096] = ones\n"
                                "    const %one: i64[] = 1\n"
                                "    %a: f32[32,4096] = mul(%x, %s)\n"
                                "    %b: f32[32,4096] = softmax(%a, axis=1)\n"
                                "    %c: f32[32,4096] = cum_sum(%b, %one)\n"
                                "    %d: f32[32,4096] = mul(%c, %s)\n"
                                "    %e: f32[32,4096] = softmax(%d, axis=1)\n"
                                "    %y: f32[32,4096] = tanh(%e)\n"
                                "}\n";

static float data[32 * 4096], target[32 * 4096];

static void bind(qcc_session *s, const char *name, float *values, int64_t columns)
{
    const qcc_tensor t = { sizeof t, QCC_F32, 2, { 32, columns }, values, (size_t)(32 * columns) * sizeof *values };
    assert_int_equal(qcc_bind(s, name, &t), QCC_OK);
}

/* Two steps; blocks come in sizes that are up to an eighth larger than what is wanted of them. */
static void announced_is_used(const char *text, const char *options, int64_t in, int64_t out)
{
    Host h = { .threads = 1 };
    qcc_context *cx = open_with(&h);
    qcc_source source = qcc_bytes(text, strlen(text));
    qcc_memory memory = { .size = sizeof memory };
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    source.name = "net.qir";
    assert_int_equal(qcc_read(cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_int_equal(qcc_plan(step, &memory), QCC_OK);
    assert_true(memory.scratch > 0 && memory.model > 0);
    const size_t before = h.bytes;
    const uint64_t own = memory.total - memory.model - (uint64_t)(32 * (in + out)) * sizeof(float); /* data are ours */
    assert_int_equal(qcc_start(step, NULL, &session), QCC_OK);
    bind(session, "x", data, in);
    bind(session, "target", target, out);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qcc_run(session, QCC_STEP, NULL), QCC_OK);
    const double used = (double)(h.bytes - before), part = used / (double)own;
    if (part < 0.97 || part > 1.125)
        print_error("%s: %.0f bytes of %.0f\n", options, used, (double)own);
    assert_true(part >= 0.97 && part <= 1.125);
    qcc_close(cx);
}

static void of_products(void **state)
{
    (void)state;
    announced_is_used(wide_text, "--loss mse --optimizer adamw", 256, 1024);
    announced_is_used(wide_text, "--loss mse --optimizer sgd --clip-norm 1", 256, 1024);
}

static void of_rows(void **state)
{
    (void)state;
    announced_is_used(deep_text, "--loss mse --optimizer sgd", 4096, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(of_products), cmocka_unit_test(of_rows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
