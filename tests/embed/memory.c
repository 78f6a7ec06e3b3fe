/* Memory that is announced is memory that is used: what a session asks its host for, against what qcc_plan said; and, of
 * steps of more than 500 MB, what a process holds in pages beyond one that trains hardly anything. */
#define _DEFAULT_SOURCE
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "embed/host.h"

/* Weights make up most of it, then values between nodes, then what a product packs. */
static const char wide_text[] = "graph @wide(%x: f32[32,256]) -> (%y) {\n"
                                "    param %a: f32[256,2048] = kaiming(seed=1)\n"
                                "    param %b: f32[2048,1024] = kaiming(seed=2)\n"
                                "    %h: f32[32,2048] = matmul(%x, %a)\n"
                                "    %r: f32[32,2048] = relu(%h)\n"
                                "    %y: f32[32,1024] = matmul(%r, %b)\n"
                                "}\n";
static const char deep_text[] = "graph @deep(%x: f32[128,4096]) -> (%y) {\n"
                                "    param %s: f32[4096] = ones\n"
                                "    const %one: i64[] = 1\n"
                                "    %a: f32[128,4096] = mul(%x, %s)\n"
                                "    %b: f32[128,4096] = softmax(%a, axis=1)\n"
                                "    %c: f32[128,4096] = cum_sum(%b, %one)\n"
                                "    %d: f32[128,4096] = mul(%c, %s)\n"
                                "    %e: f32[128,4096] = softmax(%d, axis=1)\n"
                                "    %y: f32[128,4096] = tanh(%e)\n"
                                "}\n";
/* What convolutions pack is as large as their weights, and larger than what the images make. */
static const char seen_text[] = "graph @seen(%x: f32[2,8,8,8]) -> (%y) {\n"
                                "    param %a: f32[384,8,3,3] = kaiming(seed=1)\n"
                                "    param %b: f32[256,384,3,3] = kaiming(seed=2)\n"
                                "    param %c: f32[16,4096] = kaiming(seed=3)\n"
                                "    %u: f32[2,384,4,4] = conv(%x, %a, pads=[1,1,1,1], strides=[2,2])\n"
                                "    %v: f32[2,384,4,4] = relu(%u)\n"
                                "    %w: f32[2,256,4,4] = conv(%v, %b, pads=[1,1,1,1])\n"
                                "    %f: f32[2,4096] = flatten(%w)\n"
                                "    %y: f32[2,16] = gemm(%f, %c, transB=true)\n"
                                "}\n";
static const char large_text[] = "graph @large(%x: f32[8,4096]) -> (%y) {\n"
                                 "    param %a: f32[4096,8192] = kaiming(seed=1)\n"
                                 "    param %b: f32[8192,512] = kaiming(seed=2)\n"
                                 "    %h: f32[8,8192] = matmul(%x, %a)\n"
                                 "    %r: f32[8,8192] = relu(%h)\n"
                                 "    %y: f32[8,512] = matmul(%r, %b)\n"
                                 "}\n";
/* Images make most of this one. */
static const char images_text[] = "graph @images(%x: f32[24,4,128,128]) -> (%y) {\n"
                                  "    param %a: f32[64,4,3,3] = kaiming(seed=1)\n"
                                  "    param %b: f32[64,64,3,3] = kaiming(seed=2)\n"
                                  "    param %c: f32[8,64,3,3] = kaiming(seed=3)\n"
                                  "    %u: f32[24,64,128,128] = conv(%x, %a, pads=[1,1,1,1])\n"
                                  "    %v: f32[24,64,128,128] = tanh(%u)\n"
                                  "    %w: f32[24,64,128,128] = conv(%v, %b, pads=[1,1,1,1])\n"
                                  "    %s: f32[24,64,128,128] = sigmoid(%w)\n"
                                  "    %t: f32[24,64,128,128] = mul(%s, %v)\n"
                                  "    %y: f32[24,8,64,64] = conv(%t, %c, strides=[2,2], pads=[1,1,1,1])\n"
                                  "}\n";

/* A model, and what its input and its target are. */
typedef struct Net {
    const char *text;
    int in, out; /* ranks */
    int64_t x[4], y[4];
} Net;

static const Net wide = { wide_text, 2, 2, { 32, 256 }, { 32, 1024 } };
static const Net deep = { deep_text, 2, 2, { 128, 4096 }, { 128, 4096 } };
static const Net seen = { seen_text, 4, 2, { 2, 8, 8, 8 }, { 2, 16 } };
static const Net large = { large_text, 2, 2, { 8, 4096 }, { 8, 512 } };
static const Net images = { images_text, 4, 4, { 24, 4, 128, 128 }, { 24, 8, 64, 64 } };

static float data[24 * 4 * 128 * 128], target[24 * 8 * 64 * 64];

static size_t bytes_of(int rank, const int64_t *dims)
{
    size_t bytes = sizeof(float);
    for (int i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    return bytes;
}

static void bind(qcc_session *s, const char *name, float *values, int rank, const int64_t *dims)
{
    qcc_tensor t = { .size = sizeof t, .dtype = QCC_F32, .rank = rank, .data = values, .bytes = bytes_of(rank, dims) };
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    assert_int_equal(qcc_bind(s, name, &t), QCC_OK);
}

static qcc_step *compiled(qcc_context *cx, const Net *net, const char *options, qcc_memory *memory)
{
    qcc_source source = qcc_bytes(net->text, strlen(net->text));
    qcc_model *model;
    qcc_step *step;
    source.name = "net.qir";
    assert_int_equal(qcc_read(cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_int_equal(qcc_plan(step, memory), QCC_OK);
    assert_true(memory->scratch > 0 && memory->model > 0);
    return step;
}

/* A session that has done two steps. */
static void trained(qcc_step *step, const Net *net)
{
    qcc_session *session;
    assert_int_equal(qcc_start(step, NULL, &session), QCC_OK);
    bind(session, "x", data, net->in, net->x);
    bind(session, "target", target, net->out, net->y);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qcc_run(session, QCC_STEP, NULL), QCC_OK);
}

/* Blocks come in sizes that are up to an eighth larger than what is wanted of them. */
static void announced_is_used(const Net *net, const char *options)
{
    Host h = { .threads = 1 };
    qcc_context *cx = open_with(&h);
    qcc_memory memory = { .size = sizeof memory };
    qcc_step *step = compiled(cx, net, options, &memory);
    const size_t before = h.bytes, ours = bytes_of(net->in, net->x) + bytes_of(net->out, net->y);
    const double own = (double)(memory.total - memory.model - ours);
    trained(step, net);
    const double used = (double)(h.bytes - before), part = used / own;
    if (part < 0.97 || part > 1.125)
        print_error("%s: %.0f bytes of %.0f\n", options, used, own);
    assert_true(part >= 0.97 && part <= 1.125);
    qcc_close(cx);
}

static void of_products(void **state)
{
    (void)state;
    announced_is_used(&wide, "--loss mse --optimizer adamw");
    announced_is_used(&wide, "--loss mse --optimizer sgd --clip-norm 1");
    announced_is_used(&wide, "--loss mse --optimizer adamw --amp bf16"); /* a shadow of each weight, made once */
}

static void of_rows(void **state)
{
    (void)state;
    announced_is_used(&deep, "--loss mse --optimizer sgd");
}

static void of_convolutions(void **state)
{
    (void)state;
    announced_is_used(&seen, "--loss mse --optimizer sgd");
    announced_is_used(&seen, "--loss mse --optimizer sgd --amp bf16");
}

/* ---- pages ---- */

static qcc_context *plain(int exact)
{
    const qcc_context_options o = { .size = sizeof o, .threads = 1, .exact = exact };
    qcc_context *cx = NULL;
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

/* The most that a process of its own held while it trained, in bytes; and what was announced to it. */
static double held(const Net *net, const char *options, int exact, uint64_t *announced)
{
    int ends[2], status;
    struct rusage use;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        qcc_context *cx = plain(exact);
        qcc_memory memory = { .size = sizeof memory };
        trained(compiled(cx, net, options, &memory), net);
        qcc_close(cx);
        _exit(write(ends[1], &memory.total, sizeof memory.total) == sizeof memory.total ? 0 : 1);
    }
    assert_int_equal(wait4(child, &status, 0, &use), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], announced, sizeof *announced), sizeof *announced);
    close(ends[0]);
    close(ends[1]);
    return (double)use.ru_maxrss * 1024;
}

/* Where every allocation is watched, pages are those of the watcher, too. */
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0
#endif

/* Announced are products of bf16 that are widened, as with `exact`: machines that multiply them as they lie hold less. */
static void announced_is_resident(const Net *net, const char *options, int exact)
{
    uint64_t said, said_of_little;
    if (WATCHED)
        return;
    const double empty = held(&seen, "--loss mse --optimizer sgd", exact, &said_of_little) - (double)said_of_little;
    const double more = held(net, options, exact, &said) - empty, part = more / (double)said;
    const double least = exact ? 0.95 : 0.8;
    if (part < least || part > 1.05)
        print_error("%s: %.0f bytes of %.0f\n", options, more, (double)said);
    assert_true(said > 500000000);
    assert_true(part >= least && part <= 1.05);
}

static void resident_products(void **state)
{
    (void)state;
    announced_is_resident(&large, "--loss mse --optimizer adamw", 1);
    announced_is_resident(&large, "--loss mse --optimizer adamw --amp bf16", 1);
    announced_is_resident(&large, "--loss mse --optimizer adamw --amp bf16", 0);
}

static void resident_convolutions(void **state)
{
    (void)state;
    announced_is_resident(&images, "--loss mse --optimizer sgd", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_products),           cmocka_unit_test(of_rows),
        cmocka_unit_test(of_convolutions),       cmocka_unit_test(resident_products),
        cmocka_unit_test(resident_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
