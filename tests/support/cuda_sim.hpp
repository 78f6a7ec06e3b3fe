// What kernels ask of a device, for a compiler of the host: the same text runs, a thread after the other.
//
// Each thread of a block has a stack of its own and runs until it waits for others: at __syncthreads() for its block,
// in a shuffle for its warp.  Threads and blocks take their turns in ascending or in descending order, which must not show
// in what comes out.  Threads that wait for one that is gone end the program.
#ifndef TESTS_SUPPORT_CUDA_SIM_HPP
#define TESTS_SUPPORT_CUDA_SIM_HPP

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <utility>

#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__      static
#define __launch_bounds__(...)

struct SimIndex {
    unsigned x;
};
static SimIndex threadIdx, blockIdx;

enum SimState { SIM_READY, SIM_WARP, SIM_BLOCK, SIM_DONE };

enum { SIM_THREADS = 256, SIM_LANES = 32, SIM_STACK = 1 << 18 };

static struct SimThread {
    jmp_buf at; // where it waits
    bool begun;
    SimState state;
    char slot[8]; // what it shows to its warp
    alignas(64) char stack[SIM_STACK];
} sim_threads[SIM_THREADS];
static jmp_buf sim_scheduler;
static void (*sim_body)(void *);
static void *sim_argument;

// Jumps go between stacks without asking the system, which swapcontext does for the mask of signals each time.
static void sim_wait(SimState state)
{
    SimThread *t = &sim_threads[threadIdx.x];
    t->state = state;
    if (!_setjmp(t->at))
        _longjmp(sim_scheduler, 1);
}

// A thread's stack serves one block after the other.
static void sim_enter()
{
    for (;;) {
        sim_body(sim_argument);
        sim_wait(SIM_DONE);
    }
}

// Goes on with a thread until it waits.
static void sim_resume(SimThread *t)
{
    if (_setjmp(sim_scheduler))
        return;
    if (t->begun)
        _longjmp(t->at, 1);
    t->begun = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = t->stack;
    context.uc_stack.ss_size = SIM_STACK;
    context.uc_link = NULL;
    makecontext(&context, sim_enter, 0);
    setcontext(&context);
}

static void __syncthreads()
{
    sim_wait(SIM_BLOCK);
}

template <class T> static T sim_show(T v, unsigned lane)
{
    SimThread *warp = &sim_threads[threadIdx.x / SIM_LANES * SIM_LANES];
    memcpy(warp[threadIdx.x % SIM_LANES].slot, &v, sizeof v);
    sim_wait(SIM_WARP);
    memcpy(&v, warp[lane].slot, sizeof v);
    sim_wait(SIM_WARP);
    return v;
}

template <class T> static T __shfl_down_sync(unsigned, T v, unsigned by)
{
    const unsigned lane = threadIdx.x % SIM_LANES;
    return sim_show(v, lane + by < SIM_LANES ? lane + by : lane);
}

template <class T> static T __shfl_sync(unsigned, T v, unsigned lane)
{
    return sim_show(v, lane);
}

// Threads take turns where they wait and nowhere else.
static unsigned atomicOr(unsigned *at, unsigned v)
{
    const unsigned old = *at;
    *at = old | v;
    return old;
}

// Lets go on whoever waits with all others of his kind; false: nobody does.
static bool sim_release(unsigned begin, unsigned end, SimState state)
{
    for (unsigned t = begin; t < end; t++)
        if (sim_threads[t].state != state)
            return false;
    for (unsigned t = begin; t < end; t++)
        sim_threads[t].state = SIM_READY;
    return true;
}

static void sim_block(unsigned threads, bool reversed)
{
    for (unsigned t = 0; t < threads; t++)
        sim_threads[t].state = SIM_READY;
    for (bool any = true; any;) {
        any = false;
        for (unsigned k = 0; k < threads; k++) {
            const unsigned t = reversed ? threads - 1 - k : k;
            if (sim_threads[t].state != SIM_READY)
                continue;
            any = true;
            threadIdx.x = t;
            sim_resume(&sim_threads[t]);
        }
        for (unsigned t = 0; t < threads; t += SIM_LANES)
            any |= sim_release(t, t + SIM_LANES, SIM_WARP);
        any |= sim_release(0, threads, SIM_BLOCK);
    }
    for (unsigned t = 0; t < threads; t++)
        if (sim_threads[t].state != SIM_DONE) {
            fprintf(stderr, "thread %u of block %u waits for others in vain\n", t, blockIdx.x);
            abort();
        }
}

static void sim_run(void (*body)(void *), void *argument, unsigned blocks, unsigned threads, bool reversed)
{
    if (threads > SIM_THREADS || threads % SIM_LANES)
        abort();
    sim_body = body;
    sim_argument = argument;
    for (unsigned b = 0; b < blocks; b++) {
        blockIdx.x = reversed ? blocks - 1 - b : b;
        sim_block(threads, reversed);
    }
}

template <class... A, size_t... I> static void sim_apply(void (*kernel)(A...), void **a, std::index_sequence<I...>)
{
    kernel((A)a[I]...);
}

template <class... A> static void sim_call(void (*kernel)(A...), void **a)
{
    sim_apply(kernel, a, std::make_index_sequence<sizeof...(A)>());
}

// The launch of a kernel, as a function of C: the addresses of its arguments.
#define SIM_KERNEL(name)                                                                                               \
    extern "C" __attribute__((visibility("default"))) void sim_##name(void **arguments, unsigned blocks,               \
                                                                      unsigned threads, int reversed)                  \
    {                                                                                                                  \
        sim_run([](void *a) { sim_call(name, (void **)a); }, arguments, blocks, threads, reversed != 0);               \
    }

// ---- what the compiler has ----

static inline uint32_t __float_as_uint(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

static inline float __uint_as_float(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

static inline long long __double_as_longlong(double x)
{
    long long b;
    memcpy(&b, &x, sizeof b);
    return b;
}

static inline double __longlong_as_double(long long b)
{
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}

static inline float __fmaf_rn(float x, float y, float z)
{
    return __builtin_fmaf(x, y, z);
}

static inline double __fma_rn(double x, double y, double z)
{
    return __builtin_fma(x, y, z);
}

static inline float __fsqrt_rn(float x)
{
    return __builtin_sqrtf(x);
}

#define __CUDACC__ 1

#endif
