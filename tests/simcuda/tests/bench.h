/* A simulated device as tests use it: found by the library's own ways to the driver and to NVRTC, and a stream on it. */
#ifndef TESTS_SIMCUDA_BENCH_H
#define TESTS_SIMCUDA_BENCH_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/check.h"
#undef fail /* of cmocka: ours reports to the user */
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "simcuda/counts.h"

typedef struct Bench {
    Memory memory;
    Arena arena;
    Diag diag;
    Driver cu;
    Nvrtc nvrtc;
    CudaContext *context;
    CudaStream *stream;
    SimCountsFn *counts;
    SimReportFn *report;
    SimForgetFn *forget;
    SimLeftFn *left;
} Bench;

/* Fails with a formatted message when `condition` is false. */
#define bench_that(condition, ...)                                                                                     \
    do {                                                                                                               \
        const bool holds = condition;                                                                                  \
        if (!holds)                                                                                                    \
            print_error(__VA_ARGS__);                                                                                  \
        assert_true(holds);                                                                                            \
    } while (0)

static inline void bench_said(void *arena, const Message *m)
{
    Text t;
    text_open(&t, arena);
    message_print(&t, m);
    fprintf(stderr, "%s", text_get(&t));
}

static inline void bench_symbol(void *library, const char *name, void *to)
{
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    memcpy(to, &symbol, sizeof symbol);
}

/* The libraries, without a context. */
static inline void bench_load(Bench *b)
{
    memory_open(&b->memory, NULL);
    arena_open(&b->arena, &b->memory);
    diag_open(&b->diag, &b->arena, bench_said, &b->arena);
    assert_int_equal(driver_load(&b->cu, &b->diag, NOWHERE, &b->arena), OK);
    assert_int_equal(nvrtc_load(&b->nvrtc, &b->diag, NOWHERE, &b->arena), OK);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    bench_symbol(library, "simcuda_counts", &b->counts);
    bench_symbol(library, "simcuda_report", &b->report);
    bench_symbol(library, "simcuda_forget", &b->forget);
    bench_symbol(library, "simcuda_left", &b->left);
    dlclose(library);
}

static inline void bench_open(Bench *b)
{
    bench_load(b);
    assert_int_equal(b->cu.retain(&b->context, 0), CUDA_OK);
    assert_int_equal(b->cu.push(b->context), CUDA_OK);
    assert_int_equal(b->cu.stream(&b->stream, CUDA_STREAM_APART), CUDA_OK);
}

/* Whatever a test broke is forgotten; what it left is not. */
static inline void bench_close(Bench *b)
{
    CudaContext *context;
    b->forget();
    assert_int_equal(b->cu.end_stream(b->stream), CUDA_OK);
    assert_int_equal(b->cu.pop(&context), CUDA_OK);
    assert_int_equal(b->cu.release(0), CUDA_OK);
    assert_int_equal(b->left(), 0);
    b->forget();
    arena_close(&b->arena);
}

/* Whether there is a compiler for kernels; a word where there is none. */
static inline bool bench_there(void)
{
    if (system("command -v c++ >/dev/null 2>&1") == 0)
        return true;
    fprintf(stderr, "skipped: there is no c++; a compiler of C++\n");
    return false;
}

/* The module of a text. */
static inline CudaLoaded *bench_module(Bench *b, const char *text)
{
    Str image;
    const char *log;
    CudaLoaded *m = NULL;
    assert_int_equal(nvrtc_compile(&b->nvrtc, &b->diag, text, "sm_90", NVRTC_CUBIN, &b->arena, &image, &log), OK);
    assert_int_equal(b->cu.load(&m, image.p), CUDA_OK);
    return m;
}

static inline CudaFunction *bench_kernel(Bench *b, CudaLoaded *m, const char *name)
{
    CudaFunction *f = NULL;
    assert_int_equal(b->cu.function(&f, m, name), CUDA_OK);
    return f;
}

static inline CudaAddress bench_alloc(Bench *b, size_t bytes)
{
    CudaAddress at = 0;
    assert_int_equal(b->cu.alloc(&at, bytes), CUDA_OK);
    return at;
}

/* Launches and waits; how that ends. */
static inline int bench_run(Bench *b, CudaFunction *f, unsigned blocks, unsigned threads, void **arguments)
{
    const int code = b->cu.launch(f, blocks, 1, 1, threads, 1, 1, 0, b->stream, arguments, NULL);
    return code ? code : b->cu.wait(b->stream);
}

static inline void bench_write(Bench *b, CudaAddress to, const void *from, size_t bytes)
{
    assert_int_equal(b->cu.write(to, from, bytes, b->stream), CUDA_OK);
    assert_int_equal(b->cu.wait(b->stream), CUDA_OK);
}

static inline void bench_read(Bench *b, void *to, CudaAddress from, size_t bytes)
{
    assert_int_equal(b->cu.read(to, from, bytes, b->stream), CUDA_OK);
    assert_int_equal(b->cu.wait(b->stream), CUDA_OK);
}

static inline SimCounts bench_counts(const Bench *b)
{
    SimCounts c;
    b->counts(&c);
    return c;
}

#endif
