/* The machine words of ops/scalar.h and what C11 and CUDA C++ spell differently. */
#ifndef QCC_OPS_SCALAR_WORD_H
#define QCC_OPS_SCALAR_WORD_H

#ifdef __CUDACC__

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;

#define Q_FN static __device__ __forceinline__

Q_FN u32 bits_of(f32 x)
{
    return __float_as_uint(x);
}

Q_FN f32 float_of(u32 bits)
{
    return __uint_as_float(bits);
}

Q_FN f32 fma_f32(f32 x, f32 y, f32 z)
{
    return __fmaf_rn(x, y, z);
}

Q_FN f64 fma_f64(f64 x, f64 y, f64 z)
{
    return __fma_rn(x, y, z);
}

Q_FN f32 sqrt_f32(f32 x)
{
    return __fsqrt_rn(x);
}

#else

#include <math.h>
#include <stdint.h>

typedef int8_t i8;
typedef uint8_t u8;
typedef int16_t i16;
typedef uint16_t u16;
typedef int32_t i32;
typedef uint32_t u32;
typedef int64_t i64;
typedef uint64_t u64;
typedef float f32;
typedef double f64;

/* Always inlined: a call left in a loop would keep the loop from being vectorized. */
#define Q_FN static inline __attribute__((always_inline))

Q_FN u32 bits_of(f32 x)
{
    const union {
        f32 f;
        u32 u;
    } word = { x };
    return word.u;
}

Q_FN f32 float_of(u32 bits)
{
    const union {
        u32 u;
        f32 f;
    } word = { bits };
    return word.f;
}

Q_FN f32 fma_f32(f32 x, f32 y, f32 z)
{
    return __builtin_fmaf(x, y, z);
}

Q_FN f64 fma_f64(f64 x, f64 y, f64 z)
{
    return __builtin_fma(x, y, z);
}

Q_FN f32 sqrt_f32(f32 x)
{
    return __builtin_sqrtf(x);
}

#endif

/* A constant of a row, in the row's arithmetic T. */
#define K(c) ((T)(c))

#define Q_INF float_of(0x7f800000u)
#define Q_NAN float_of(0x7fc00000u)

/* Adding 1.5 * 2^23 to |x| < 2^22 rounds x to the nearest integer, ties to even, and leaves that integer in the low
 * bits. */
#define Q_MAGIC 12582912.0f

/* 2^k for -127 < k < 128; any k is safe. */
Q_FN f32 power_of_2(i32 k)
{
    return float_of(((u32)k + 127u) << 23);
}

/* An unevaluated sum, |lo| at most half an ulp of hi. */
typedef struct Q_Pair {
    f32 hi, lo;
} Q_Pair;

#endif
