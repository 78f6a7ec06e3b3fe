// What kernels ask of a device, for a compiler of the host: the same text runs, a thread after the other.  It stands before
// the text of kernels, and behind it SIM_KERNELS names them; the NVRTC of this folder writes both.
#ifndef TESTS_SIMCUDA_KERNEL_HPP
#define TESTS_SIMCUDA_KERNEL_HPP

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>
#include <utility>

extern "C" {
#include "simcuda/sim.h"
}

#define QCC_SIM 1
#define __CUDACC__ 1
#define __device__
#define __host__
#define __global__      __attribute__((visibility("hidden")))
#define __constant__    static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __align__(n)    alignas(n)
#define __launch_bounds__(...)
#define __restrict __restrict__

// Shared memory of kernel `who` lies together, so that it can be spoilt when a block begins.
#define SIM_SHARED(who)             static __attribute__((section("simshared_" #who)))
#define SIM_DYNAMIC(type, name)     type *const name = (type *)sim_calls.dynamic();

typedef SimIndex uint3;
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// What is not of the kernel's text tells nobody of its accesses.
#define SIM_QUIET __attribute__((no_sanitize("thread"), no_sanitize("alignment")))

static SimCalls sim_calls;
static SimIndex threadIdx, blockIdx, blockDim, gridDim;
enum { warpSize = SIM_LANES };

// ---- waiting for others ----

#define SIM_LINE int line = __builtin_LINE()

static inline void __syncthreads(SIM_LINE)
{
    sim_calls.barrier(line, 0);
}

static inline int __syncthreads_count(int predicate, SIM_LINE)
{
    return sim_calls.barrier(line, predicate != 0);
}

static inline int __syncthreads_or(int predicate, SIM_LINE)
{
    return sim_calls.barrier(line, predicate != 0) != 0;
}

static inline int __syncthreads_and(int predicate, SIM_LINE)
{
    return sim_calls.barrier(line, predicate == 0) == 0;
}

static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}

static inline unsigned sim_lane()
{
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % SIM_LANES;
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, SIM_LINE)
{
    char all[SIM_LANES][SIM_SLOT], none = 0;
    sim_calls.exchange(mask, &none, 1, all, line);
}

template <class T> static T sim_take(unsigned mask, T v, unsigned lane, int line)
{
    static_assert(sizeof(T) <= SIM_SLOT && std::is_arithmetic<T>::value, "a shuffle of such a type");
    char all[SIM_LANES][SIM_SLOT];
    sim_calls.exchange(mask, &v, sizeof v, all, line);
    memcpy(&v, all[lane % SIM_LANES], sizeof v);
    return v;
}

static inline unsigned sim_width(int width, int line)
{
    if (width < 1 || width > SIM_LANES || (width & (width - 1)))
        sim_calls.stop("a shuffle whose width is no power of two up to 32", line);
    return (unsigned)width;
}

template <class T> static T __shfl_sync(unsigned mask, T v, int lane, int width = SIM_LANES, SIM_LINE)
{
    const unsigned w = sim_width(width, line), own = sim_lane();
    return sim_take(mask, v, own / w * w + (unsigned)lane % w, line);
}

template <class T> static T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = SIM_LANES, SIM_LINE)
{
    const unsigned w = sim_width(width, line), own = sim_lane();
    return sim_take(mask, v, own % w + by < w ? own + by : own, line);
}

template <class T> static T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = SIM_LANES, SIM_LINE)
{
    const unsigned w = sim_width(width, line), own = sim_lane();
    return sim_take(mask, v, own % w >= by ? own - by : own, line);
}

template <class T> static T __shfl_xor_sync(unsigned mask, T v, int by, int width = SIM_LANES, SIM_LINE)
{
    const unsigned w = sim_width(width, line), own = sim_lane(), other = own ^ (unsigned)by;
    return sim_take(mask, v, other / w <= own / w ? other : own, line);
}

template <class T, class F> static T sim_all(unsigned mask, T v, F fold, int line)
{
    char all[SIM_LANES][SIM_SLOT];
    bool any = false;
    T sum = v;
    sim_calls.exchange(mask, &v, sizeof v, all, line);
    for (int i = 0; i < SIM_LANES; i++) {
        T one;
        if (!(mask >> i & 1))
            continue;
        memcpy(&one, all[i], sizeof one);
        sum = any ? fold(sum, one, i) : fold(T(), one, i);
        any = true;
    }
    return sum;
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, SIM_LINE)
{
    return sim_all(
        mask, (unsigned)(predicate != 0), [](unsigned a, unsigned b, int i) { return a | (b ? 1u << i : 0); }, line);
}

static inline int __any_sync(unsigned mask, int predicate, SIM_LINE)
{
    return __ballot_sync(mask, predicate, line) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, SIM_LINE)
{
    return __ballot_sync(mask, predicate, line) == mask;
}

#define SIM_REDUCE(name, type, value)                                                                                  \
    static inline type name(unsigned mask, type v, SIM_LINE)                                                           \
    {                                                                                                                  \
        return sim_all(                                                                                                \
            mask, v, [&](type a, type b, int i) { return i == __builtin_ctz(mask) ? b : (type)(value); }, line);       \
    }
SIM_REDUCE(__reduce_add_sync, unsigned, a + b)
SIM_REDUCE(__reduce_add_sync, int, (unsigned)a + (unsigned)b)
SIM_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
SIM_REDUCE(__reduce_min_sync, int, a < b ? a : b)
SIM_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
SIM_REDUCE(__reduce_max_sync, int, a > b ? a : b)
SIM_REDUCE(__reduce_and_sync, unsigned, a & b)
SIM_REDUCE(__reduce_or_sync, unsigned, a | b)
SIM_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef SIM_REDUCE

// ---- memory that several touch: threads take turns where they wait and nowhere else ----

#define SIM_OF_SEVERAL(name, value)                                                                                       \
    template <class T> SIM_QUIET static T name(T *at, std::common_type_t<T> v, SIM_LINE)                                  \
    {                                                                                                                  \
        sim_calls.touch(at, sizeof *at, SIM_READS | SIM_WRITES | SIM_ATOMIC, line, nullptr);                                                                  \
        T old;                                                                                                         \
        memcpy(&old, at, sizeof old);                                                                                  \
        const T fresh = (T)(value);                                                                                    \
        memcpy(at, &fresh, sizeof fresh);                                                                              \
        return old;                                                                                                    \
    }
SIM_OF_SEVERAL(atomicAdd, old + v)
SIM_OF_SEVERAL(atomicSub, old - v)
SIM_OF_SEVERAL(atomicMin, v < old ? v : old)
SIM_OF_SEVERAL(atomicMax, v > old ? v : old)
SIM_OF_SEVERAL(atomicAnd, old & v)
SIM_OF_SEVERAL(atomicOr, old | v)
SIM_OF_SEVERAL(atomicXor, old ^ v)
SIM_OF_SEVERAL(atomicExch, v)
SIM_OF_SEVERAL(atomicInc, old >= v ? 0 : old + 1)
#undef SIM_OF_SEVERAL

template <class T> SIM_QUIET static T atomicCAS(T *at, std::common_type_t<T> seen, std::common_type_t<T> v, SIM_LINE)
{
    sim_calls.touch(at, sizeof *at, SIM_READS | SIM_WRITES | SIM_ATOMIC, line, nullptr);
    const T old = *at;
    *at = old == seen ? v : old;
    return old;
}

template <class T> static inline T __ldg(const T *at)
{
    return *at;
}

template <class T> static inline T __ldcs(const T *at)
{
    return *at;
}

template <class T> static inline void __stcs(T *at, std::common_type_t<T> v)
{
    *at = v;
}

// ---- vectors ----

#define SIM_VECTOR(type, name, align2, align4)                                                                         \
    struct alignas(align2) name##2 {                                                                                   \
        type x, y;                                                                                                     \
    };                                                                                                                 \
    struct alignas(align4) name##4 {                                                                                   \
        type x, y, z, w;                                                                                               \
    };                                                                                                                 \
    static inline name##2 make_##name##2(type x, type y)                                                               \
    {                                                                                                                  \
        return { x, y };                                                                                               \
    }                                                                                                                  \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                                               \
    {                                                                                                                  \
        return { x, y, z, w };                                                                                         \
    }
SIM_VECTOR(signed char, char, 2, 4)
SIM_VECTOR(unsigned char, uchar, 2, 4)
SIM_VECTOR(short, short, 4, 8)
SIM_VECTOR(unsigned short, ushort, 4, 8)
SIM_VECTOR(int, int, 8, 16)
SIM_VECTOR(unsigned, uint, 8, 16)
SIM_VECTOR(long long, longlong, 16, 16)
SIM_VECTOR(unsigned long long, ulonglong, 16, 16)
SIM_VECTOR(float, float, 8, 16)
SIM_VECTOR(double, double, 16, 16)
#undef SIM_VECTOR

// ---- what the compiler has ----

template <class To, class From> static inline To sim_bits(From x)
{
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

#define SIM_BITS(name, to, from)                                                                                       \
    static inline to name(from x)                                                                                      \
    {                                                                                                                  \
        return sim_bits<to>(x);                                                                                        \
    }
SIM_BITS(__float_as_uint, unsigned, float)
SIM_BITS(__float_as_int, int, float)
SIM_BITS(__uint_as_float, float, unsigned)
SIM_BITS(__int_as_float, float, int)
SIM_BITS(__double_as_longlong, long long, double)
SIM_BITS(__longlong_as_double, double, long long)
#undef SIM_BITS

// Rounded to nearest, each alone.
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

static inline double __dsqrt_rn(double x)
{
    return __builtin_sqrt(x);
}

#define SIM_ROUNDED(name, type, operator)                                                                              \
    static inline type name(type x, type y)                                                                            \
    {                                                                                                                  \
        return x operator y;                                                                                           \
    }
SIM_ROUNDED(__fadd_rn, float, +)
SIM_ROUNDED(__fsub_rn, float, -)
SIM_ROUNDED(__fmul_rn, float, *)
SIM_ROUNDED(__fdiv_rn, float, /)
SIM_ROUNDED(__dadd_rn, double, +)
SIM_ROUNDED(__dsub_rn, double, -)
SIM_ROUNDED(__dmul_rn, double, *)
SIM_ROUNDED(__ddiv_rn, double, /)
#undef SIM_ROUNDED

static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}

static inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

static inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((unsigned long long)x * y >> 32);
}

static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}

static inline int __dp4a(int x, int y, int sum)
{
    const char4 a = sim_bits<char4>(x), b = sim_bits<char4>(y);
    return (int)((unsigned)sum + (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w));
}

// ---- the way in ----


// A thread of a kernel, from the addresses of its arguments.
template <class... A, size_t... I>
SIM_QUIET static void sim_apply(void (*kernel)(A...), void **a, std::index_sequence<I...>)
{
    kernel(*(A *)a[I]...);
}

template <class... A> SIM_QUIET static void sim_call(void (*kernel)(A...), void **a)
{
    sim_apply(kernel, a, std::make_index_sequence<sizeof...(A)>());
}

template <class... A> struct SimParameters {
    static constexpr SimParameter list[sizeof...(A) + 1] = { { sizeof(A), std::is_pointer<A>::value }..., { 0, 0 } };
};

template <class... A> static const SimParameter *sim_parameters(void (*)(A...))
{
    return SimParameters<A...>::list;
}

template <class... A> static int sim_count(void (*)(A...))
{
    return (int)sizeof...(A);
}

#define SIM_SECTION(who)                                                                                               \
    extern "C" __attribute__((weak, visibility("hidden"))) char __start_simshared_##who[], __stop_simshared_##who[];

// Kernel `number`, whose blocks have `most` threads at most; parameter `flag` says that values refused it.
#define SIM_KERNEL(number, name, most, flag)                                                                                 \
    SIM_SECTION(number)                                                                                                \
    SIM_QUIET static const SimKernel *sim_kernel_##number()                                                                      \
    {                                                                                                                  \
        static const SimKernel kernel = { #name, sim_parameters(name), sim_count(name), most, flag,                    \
                                          __start_simshared_##number, __stop_simshared_##number,                      \
                                          [](void **a) SIM_QUIET { sim_call(name, a); } };                                       \
        return &kernel;                                                                                                \
    }

// Where each access is told: the compiler calls these before it, for its sanitizers of threads, of alignment and of bounds,
// whose own libraries are not there.
#ifdef SIM_CHECKED
enum { SIM_IS_CHECKED = 1 };

#define SIM_TOLD extern "C" SIM_QUIET __attribute__((visibility("hidden")))
#define SIM_TOUCH(name, bytes, how)                                                                                    \
    SIM_TOLD void __tsan_##name##bytes(const void *at)                                                                 \
    {                                                                                                                  \
        sim_calls.touch(at, bytes, how, 0, __builtin_return_address(0));                                              \
    }
#define SIM_TOUCHES(bytes)                                                                                             \
    SIM_TOUCH(read, bytes, SIM_READS)                                                                                  \
    SIM_TOUCH(write, bytes, SIM_WRITES)                                                                                \
    SIM_TOUCH(volatile_read, bytes, SIM_READS)                                                                         \
    SIM_TOUCH(volatile_write, bytes, SIM_WRITES)                                                                       \
    SIM_TOUCH(unaligned_read, bytes, SIM_READS | SIM_ANYWHERE)                                                         \
    SIM_TOUCH(unaligned_write, bytes, SIM_WRITES | SIM_ANYWHERE)
SIM_TOUCHES(1)
SIM_TOUCHES(2)
SIM_TOUCHES(4)
SIM_TOUCHES(8)
SIM_TOUCHES(16)
SIM_TOLD void __tsan_init() {}
SIM_TOLD void __tsan_func_entry(void *) {}
SIM_TOLD void __tsan_func_exit() {}
SIM_TOLD void __tsan_read_range(const void *at, size_t bytes)
{
    sim_calls.touch(at, bytes, SIM_READS | SIM_ANYWHERE, 0, __builtin_return_address(0));
}
SIM_TOLD void __tsan_write_range(const void *at, size_t bytes)
{
    sim_calls.touch(at, bytes, SIM_WRITES | SIM_ANYWHERE, 0, __builtin_return_address(0));
}

// Some compilers copy structs by these, of which they tell nothing else.
SIM_TOLD void *memmove(void *to, const void *from, size_t bytes) noexcept
{
    unsigned char *t = (unsigned char *)to;
    const unsigned char *f = (const unsigned char *)from;
    sim_calls.touch(from, bytes, SIM_READS | SIM_ANYWHERE, 0, __builtin_return_address(0));
    sim_calls.touch(to, bytes, SIM_WRITES | SIM_ANYWHERE, 0, __builtin_return_address(0));
    if (t <= f)
        asm volatile("rep movsb" : "+D"(t), "+S"(f), "+c"(bytes) : : "memory");
    else
        while (bytes-- > 0)
            ((volatile unsigned char *)t)[bytes] = f[bytes];
    return to;
}
SIM_TOLD void *memcpy(void *to, const void *from, size_t bytes) noexcept
{
    void *const start = to;
    sim_calls.touch(from, bytes, SIM_READS | SIM_ANYWHERE, 0, __builtin_return_address(0));
    sim_calls.touch(to, bytes, SIM_WRITES | SIM_ANYWHERE, 0, __builtin_return_address(0));
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return start;
}
SIM_TOLD void *memset(void *to, int value, size_t bytes) noexcept
{
    void *const start = to;
    sim_calls.touch(to, bytes, SIM_WRITES | SIM_ANYWHERE, 0, __builtin_return_address(0));
    asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(value) : "memory");
    return start;
}

// What compilers hand over begins with the place in the text.
struct SimPlace {
    const char *file;
    unsigned line, column;
};
struct SimMismatch {
    SimPlace place;
    const void *type;
    unsigned char alignment, kind; // of two, the power
};
SIM_TOLD void __ubsan_handle_out_of_bounds(const SimPlace *place, size_t)
{
    sim_calls.stop("an index outside of its array", (int)place->line);
}
SIM_TOLD void __ubsan_handle_type_mismatch_v1(const SimMismatch *m, const void *at)
{
    sim_calls.misaligned(at, (size_t)1 << m->alignment, (int)m->place.line);
}
#else
enum { SIM_IS_CHECKED = 0 };
#endif

// sim_kernel_0(), .. of all kernels.
#define SIM_MODULE(n, ...)                                                                                             \
    SIM_SECTION(functions)                                                                                             \
    extern "C" SIM_QUIET __attribute__((visibility("default"))) const SimModule *simcuda_module(const SimCalls *calls)           \
    {                                                                                                                  \
        static const SimKernel *const kernels[n + 1] = { __VA_ARGS__ };                                                \
        static const SimModule module = { &threadIdx, &blockIdx, &blockDim, &gridDim, __start_simshared_functions,     \
                                          __stop_simshared_functions, kernels, n, SIM_IS_CHECKED };                    \
        sim_calls = *calls;                                                                                            \
        return &module;                                                                                                \
    }

#endif
