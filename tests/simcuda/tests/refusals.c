/* What a simulated device refuses, what stays broken, and what it says of a program that leaves something behind. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simcuda/tests/bench.h"

enum { BYTES = 4096, HANDLE = 400, CONTEXT = 201, IMAGE = 200, NOT_FOUND = 500, UNKNOWN = 999, DIRTY = 98 };

/* Runs a scene in a process of its own; how it ends, and what its audit writes. */
static int child(void (*scene)(Bench *), char *audit, size_t bytes)
{
    char path[] = "/tmp/simcuda-audit-XXXXXX";
    const int file = mkstemp(path);
    int status = -1;
    fflush(NULL);
    const pid_t pid = fork();
    if (!pid) {
        Bench b;
        if (audit)
            setenv("QCC_SIM_AUDIT", path, 1);
        signal(SIGSEGV, SIG_DFL); /* not cmocka's */
        bench_load(&b);
        scene(&b);
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (audit) {
        const ssize_t n = read(file, audit, bytes - 1);
        audit[n > 0 ? n : 0] = '\0';
    }
    close(file);
    unlink(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void take(Bench *b)
{
    assert_int_equal(b->cu.retain(&b->context, 0) | b->cu.push(b->context), CUDA_OK);
}

static void drop(Bench *b)
{
    CudaContext *c;
    assert_int_equal(b->cu.pop(&c), CUDA_OK);
    assert_int_equal(b->cu.release(0), CUDA_OK);
}

static void leaves_nothing(Bench *b)
{
    take(b);
    drop(b);
}

static void leaves_all(Bench *b)
{
    CudaEvent *event;
    void *host;
    take(b);
    (void)bench_alloc(b, 100);
    assert_int_equal(b->cu.alloc_host(&host, 200), CUDA_OK);
    assert_int_equal(b->cu.event(&event, 0) | b->cu.stream(&b->stream, 0), CUDA_OK);
    drop(b);
}

static void leaves_context(Bench *b)
{
    take(b);
}

static void audits(void **state)
{
    char said[2048];
    (void)state;
    assert_int_equal(child(leaves_nothing, NULL, 0), 0);
    assert_int_equal(child(leaves_nothing, said, sizeof said), 0);
    assert_non_null(strstr(said, "calls 7, launches 0"));
    assert_null(strstr(said, "left"));
    assert_int_equal(child(leaves_all, NULL, 0), DIRTY);
    assert_int_equal(child(leaves_all, said, sizeof said), 0);
    assert_non_null(strstr(said, "left: 1 of kind stream\n"));
    assert_non_null(strstr(said, "left: 1 of kind event\n"));
    assert_non_null(strstr(said, "left: 1 blocks of a device, 100 bytes\n"));
    assert_non_null(strstr(said, "left: 1 blocks of pinned memory, 200 bytes\n"));
    assert_null(strstr(said, "context"));
    assert_int_equal(child(leaves_context, said, sizeof said), 0);
    assert_non_null(strstr(said, "left: 1 of kind context\n"));
}

/* Memory of a device is nothing to the host. */
static void touches(Bench *b)
{
    take(b);
    *(volatile char *)(uintptr_t)bench_alloc(b, BYTES) = 1;
}

static void behind_pinned(Bench *b)
{
    void *at;
    take(b);
    assert_int_equal(b->cu.alloc_host(&at, BYTES), CUDA_OK);
    ((volatile char *)at)[BYTES] = 1;
}

static void out_of_bounds(void **state)
{
    (void)state;
    assert_int_equal(child(touches, NULL, 0), -SIGSEGV);
    assert_int_equal(child(behind_pinned, NULL, 0), -SIGSEGV);
}

static unsigned long long called(const Bench *b)
{
    return (unsigned long long)bench_counts(b).calls;
}

/* The next call but `skip` fails; what is given back is, whatever the answer. */
static void fail_at(const Bench *b, int skip, const char *how)
{
    char word[64];
    snprintf(word, sizeof word, "%llu%s", called(b) + 1 + (unsigned)skip, how);
    setenv("QCC_SIM_FAIL", word, 1);
}

static void calls_fail(void **state)
{
    Bench b;
    CudaAddress at = 0, other;
    (void)state;
    bench_open(&b);
    fail_at(&b, 1, ":2");
    at = bench_alloc(&b, BYTES);
    assert_int_equal(b.cu.alloc(&other, BYTES), CUDA_NO_MEMORY);
    other = bench_alloc(&b, BYTES);
    fail_at(&b, 0, "");
    assert_int_equal(b.cu.give_back(at), UNKNOWN);
    fail_at(&b, 0, "+:700");
    assert_int_equal(b.cu.set(other, 0, BYTES, b.stream), 700);
    assert_int_equal(b.cu.wait(b.stream), 700);
    assert_int_equal(b.cu.give_back(other), 700);
    unsetenv("QCC_SIM_FAIL");
    assert_int_equal(bench_counts(&b).reports, 0);
    bench_close(&b); /* nothing is left */
}

static void memory_ends(void **state)
{
    Bench b;
    CudaAddress at, other;
    size_t free_bytes, total;
    (void)state;
    setenv("QCC_SIM_MEMORY", "10000", 1);
    bench_open(&b);
    at = bench_alloc(&b, 6000);
    assert_int_equal(b.cu.free_bytes(&free_bytes, &total), CUDA_OK);
    assert_true(free_bytes == 4000 && total == 10000);
    assert_int_equal(b.cu.alloc(&other, 4001), CUDA_NO_MEMORY);
    other = bench_alloc(&b, 4000);
    assert_int_equal(b.cu.give_back(at) | b.cu.give_back(other), CUDA_OK);
    unsetenv("QCC_SIM_MEMORY");
    bench_close(&b);
}

/* Each with the report that it earns. */
static void wrong_calls(void **state)
{
    Bench b;
    CudaAddress at;
    CudaLoaded *m = NULL;
    CudaFunction *f;
    CudaStream *gone;
    char host[BYTES];
    (void)state;
    bench_open(&b);
    at = bench_alloc(&b, 100);
    assert_int_equal(b.cu.write(at, host, 101, b.stream), CUDA_INVALID);
    assert_non_null(strstr(b.report(), "cuMemcpyHtoDAsync of 101 bytes at byte 0 of block"));
    assert_int_equal(b.cu.write(at, (void *)(uintptr_t)at, 100, b.stream), CUDA_INVALID);
    assert_non_null(strstr(b.report(), "lies on a device is no memory of the host"));
    assert_int_equal(b.cu.give_back(at + 4), CUDA_INVALID);
    assert_int_equal(b.cu.give_back(at), CUDA_OK);
    assert_int_equal(b.cu.give_back(at), CUDA_INVALID);
    assert_non_null(strstr(b.report(), "of 100 bytes, which was freed"));
    assert_int_equal(b.cu.set(at, 0, 1, b.stream), CUDA_INVALID);
    assert_int_equal(b.cu.stream(&gone, 0) | b.cu.end_stream(gone), CUDA_OK);
    assert_int_equal(b.cu.wait(gone), HANDLE);
    assert_non_null(strstr(b.report(), "cuStreamSynchronize of a stream that was destroyed"));
    assert_int_equal(b.cu.load(&m, "an image"), IMAGE);
    m = bench_module(&b, "extern \"C\" __global__ void k() {}\n__global__ void other() {}\n");
    assert_int_equal(b.cu.function(&f, m, "other"), NOT_FOUND); /* its name is C++'s */
    assert_int_equal(b.cu.function(&f, m, "k") | b.cu.unload(m), CUDA_OK);
    bench_close(&b);
}

static void contexts(void **state)
{
    Bench b;
    CudaContext *c;
    CudaAddress at;
    (void)state;
    bench_open(&b);
    assert_int_equal(b.cu.pop(&c), CUDA_OK);
    assert_ptr_equal(c, b.context);
    assert_int_equal(b.cu.alloc(&at, 1), CONTEXT);
    assert_non_null(strstr(b.report(), "cuMemAlloc_v2 without a context"));
    assert_int_equal(b.cu.pop(&c), CONTEXT);
    assert_int_equal(b.cu.push(b.context), CUDA_OK);
    bench_close(&b);
}

/* Images are for architectures, as real ones are. */
static void architectures(void **state)
{
    static const struct {
        const char *arch;
        NvrtcForm form;
        int code;
    } rows[] = { { "sm_90", NVRTC_CUBIN, CUDA_OK }, { "sm_90a", NVRTC_CUBIN, CUDA_OK }, { "sm_80", NVRTC_CUBIN, 209 },
                 { "sm_80", NVRTC_PTX, CUDA_OK },   { "sm_100", NVRTC_CUBIN, 209 },     { "sm_100", NVRTC_PTX, 209 },
                 { "sm_90a", NVRTC_PTX, CUDA_OK } };
    Bench b;
    KernelUse *uses;
    const char *log;
    Str image;
    (void)state;
    bench_open(&b);
    for (size_t i = 0; i < COUNT(rows); i++) {
        CudaLoaded *m = NULL;
        assert_int_equal(nvrtc_compile(&b.nvrtc, &b.diag,
                                       "extern \"C\" __global__ void __launch_bounds__(32)\nk() {}\n", rows[i].arch,
                                       rows[i].form, &b.arena, &image, &log),
                         OK);
        assert_int_equal(nvrtc_uses(log, &b.arena, &uses), rows[i].form == NVRTC_CUBIN);
        assert_int_equal(b.cu.load(&m, image.p), rows[i].code);
        assert_int_equal(m ? b.cu.unload(m) : CUDA_OK, CUDA_OK);
    }
    assert_int_equal(nvrtc_compile(&b.nvrtc, &b.diag, "extern \"C\" __global__ void k() { nothing; }\n", "sm_90",
                                   NVRTC_CUBIN, &b.arena, &image, &log),
                     INTERNAL);
    assert_non_null(strstr(log, "kernels.cu:1"));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(audits),       cmocka_unit_test(out_of_bounds),
                                        cmocka_unit_test(calls_fail),   cmocka_unit_test(memory_ends),
                                        cmocka_unit_test(wrong_calls),  cmocka_unit_test(contexts),
                                        cmocka_unit_test(architectures) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
