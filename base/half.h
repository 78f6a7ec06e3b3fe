/* Exact conversions between f32 or f64 and the narrow float formats, which are carried as integers.
 *
 * Scalar part: common subset of C11 and CUDA C++, needs nothing but this text, selects instead of branching, so
 * that loops over it vectorize.  Narrowing rounds once, to nearest even (the rounding mode must be the default
 * one); widening is exact.  A NaN stays a NaN: its leading payload bits survive where the format has any, so every
 * pattern of f16, bf16, f8e5m2 and f8e4m3fn comes back as it was.  Out of range: f16 and bf16 give infinity; the
 * f8 formats do what ONNX Cast says for `saturate`; the f6 formats and f4e2m1 always saturate. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#ifdef __CUDACC__
#ifndef QCC_FIXED_WIDTH
#define QCC_FIXED_WIDTH
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long int64_t;
#endif
#define HALF __device__ __forceinline__
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define HALF static inline
#endif

/* Reinterpretation of bits. */
#ifdef __CUDACC__
HALF uint32_t half_bits32(float x)
{
    return __float_as_uint(x);
}
HALF float half_f32(uint32_t b)
{
    return __uint_as_float(b);
}
HALF uint64_t half_bits64(double x)
{
    return (uint64_t)__double_as_longlong(x);
}
HALF double half_f64(uint64_t b)
{
    return __longlong_as_double((long long)b);
}
#else
HALF uint32_t half_bits32(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
HALF float half_f32(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}
HALF uint64_t half_bits64(double x)
{
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
HALF double half_f64(uint64_t b)
{
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}
#endif

/* The code of |x| (bits `a`, not NaN) in a format of `mant` fraction bits, as if its exponents never ended: a code
 * above the format's largest means out of range.  Below the smallest normal number, adding the power of two whose
 * ulp is the format's smallest number makes the adder do the rounding. */
HALF uint32_t half_narrow32(uint32_t a, int mant, int bias)
{
    int shift = 23 - mant;
    uint32_t magic = (uint32_t)(151 - bias - mant) << 23;
    uint32_t small = half_bits32(half_f32(a) + half_f32(magic)) - magic;
    uint32_t normal = (a + (1u << (shift - 1)) - 1 + ((a >> shift) & 1)) >> shift;
    return a < (uint32_t)(128 - bias) << 23 ? small : normal - ((uint32_t)(127 - bias) << mant);
}

/* The same from the bits of an f64. */
HALF uint32_t half_narrow64(uint64_t a, int mant, int bias)
{
    int shift = 52 - mant;
    uint64_t magic = (uint64_t)(1076 - bias - mant) << 52;
    uint64_t small = half_bits64(half_f64(a) + half_f64(magic)) - magic;
    uint64_t normal = (a + ((uint64_t)1 << (shift - 1)) - 1 + ((a >> shift) & 1)) >> shift;
    return (uint32_t)(a < (uint64_t)(1024 - bias) << 52 ? small : normal - ((uint64_t)(1023 - bias) << mant));
}

/* The leading `mant` bits of a NaN's payload, never 0; 0 for everything else. */
HALF uint32_t half_nan32(uint32_t a, int mant)
{
    uint32_t payload = (a >> (23 - mant)) & ((1u << mant) - 1);
    payload = payload ? payload : 1u << (mant - 1);
    return a > 0x7f800000u ? payload : 0;
}

HALF uint32_t half_nan64(uint64_t a, int mant)
{
    uint32_t payload = (uint32_t)(a >> (52 - mant)) & ((1u << mant) - 1);
    payload = payload ? payload : 1u << (mant - 1);
    return a > (uint64_t)0x7ff << 52 ? payload : 0;
}

/* The f32 bits of a finite code without sign. */
HALF uint32_t half_widen(uint32_t a, int mant, int bias)
{
    uint32_t magic = (uint32_t)(151 - bias - mant) << 23;
    uint32_t small = half_bits32(half_f32(a + magic) - half_f32(magic));
    uint32_t normal = (a << (23 - mant)) + ((uint32_t)(127 - bias) << 23);
    return a < 1u << mant ? small : normal;
}

#define HALF_SIGN32(b) ((b) >> 31)
#define HALF_SIGN64(b) ((uint32_t)((b) >> 63))
#define HALF_ABS32(b)  ((b)&0x7fffffffu)
#define HALF_ABS64(b)  ((b) & ~((uint64_t)1 << 63))

/* f16: 5 bits of exponent, 10 of fraction. */
HALF uint16_t half_f16(uint32_t sign, uint32_t code, uint32_t nan)
{
    code = code > 0x7c00 ? 0x7c00 : code;
    code = nan ? 0x7c00 | nan : code;
    return (uint16_t)(sign << 15 | code);
}
HALF uint16_t f16_from_f32(float x)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_f16(HALF_SIGN32(b), half_narrow32(a, 10, 15), half_nan32(a, 10));
}
HALF uint16_t f16_from_f64(double x)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_f16(HALF_SIGN64(b), half_narrow64(a, 10, 15), half_nan64(a, 10));
}
HALF float f16_to_f32(uint16_t h)
{
    uint32_t a = h & 0x7fffu, special = a >= 0x7c00 ? 112u << 23 : 0;
    return half_f32((uint32_t)(h & 0x8000) << 16 | (half_widen(a, 10, 15) + special));
}

/* bf16: the upper half of an f32. */
HALF uint16_t half_bf16(uint32_t sign, uint32_t code, uint32_t nan)
{
    code = code > 0x7f80 ? 0x7f80 : code;
    code = nan ? 0x7f80 | nan : code;
    return (uint16_t)(sign << 15 | code);
}
HALF uint16_t bf16_from_f32(float x)
{
    uint32_t b = half_bits32(x), high = b >> 16;
    uint32_t nan = (high & 0x7f) ? high : high | 0x40, code = (b + 0x7fff + (high & 1)) >> 16;
    return (uint16_t)(HALF_ABS32(b) > 0x7f800000u ? nan : code);
}
HALF uint16_t bf16_from_f64(double x)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_bf16(HALF_SIGN64(b), half_narrow64(a, 7, 127), half_nan64(a, 7));
}
HALF float bf16_to_f32(uint16_t h)
{
    return half_f32((uint32_t)h << 16);
}

/* An f32 as a bf16 and what that lacks, in units of the last bit: half a unit rounds away from zero, so that the sign of
 * `lo` alone says whether it did, and both together give every number back to the bit.  (With ties to even they would
 * not, for half of the ties.)  Beyond the largest bf16 hi is infinite and lo still brings the number back.  A NaN stays
 * one; of its payload the leading bits are kept. */
typedef struct SplitMaster {
    uint16_t hi;
    int16_t lo;
} SplitMaster;
HALF SplitMaster master_split_f32(float x)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b), up = (a >> 15) & 1, nan = half_nan32(a, 7);
    int lo = (int)(a & 0xffff) - (up ? 0x10000 : 0);
    SplitMaster m;
    m.hi = (uint16_t)(HALF_SIGN32(b) << 15 | (nan ? 0x7f80 | nan : (a >> 16) + up));
    m.lo = (int16_t)(nan ? 0 : lo);
    return m;
}
HALF float master_join_f32(uint16_t hi, int16_t lo)
{
    uint32_t a = hi & 0x7fffu, below = lo < 0 ? 1 : 0;
    return half_f32((uint32_t)(hi & 0x8000) << 16 | ((a - below) << 16 | (uint16_t)lo));
}

/* f8e4m3fn: no infinity, NaN is 0x7f and 0xff, largest 448. */
HALF uint8_t half_f8e4m3fn(uint32_t sign, uint32_t code, uint32_t nan, bool saturate)
{
    code = code > 0x7e ? (saturate ? 0x7e : 0x7f) : code;
    code = nan ? 0x7f : code;
    return (uint8_t)(sign << 7 | code);
}
HALF uint8_t f8e4m3fn_from_f32(float x, bool saturate)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_f8e4m3fn(HALF_SIGN32(b), half_narrow32(a, 3, 7), half_nan32(a, 3), saturate);
}
HALF uint8_t f8e4m3fn_from_f64(double x, bool saturate)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_f8e4m3fn(HALF_SIGN64(b), half_narrow64(a, 3, 7), half_nan64(a, 3), saturate);
}
HALF float f8e4m3fn_to_f32(uint8_t h)
{
    uint32_t a = h & 0x7fu, bits = a == 0x7f ? 0x7fc00000u : half_widen(a, 3, 7);
    return half_f32((uint32_t)(h & 0x80) << 24 | bits);
}

/* f8e5m2: as f16 with 2 bits of fraction, largest finite 57344. */
HALF uint8_t half_f8e5m2(uint32_t sign, uint32_t code, uint32_t nan, bool saturate)
{
    code = code > 0x7b ? (saturate ? 0x7b : 0x7c) : code;
    code = nan ? 0x7c | nan : code;
    return (uint8_t)(sign << 7 | code);
}
HALF uint8_t f8e5m2_from_f32(float x, bool saturate)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_f8e5m2(HALF_SIGN32(b), half_narrow32(a, 2, 15), half_nan32(a, 2), saturate);
}
HALF uint8_t f8e5m2_from_f64(double x, bool saturate)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_f8e5m2(HALF_SIGN64(b), half_narrow64(a, 2, 15), half_nan64(a, 2), saturate);
}
HALF float f8e5m2_to_f32(uint8_t h)
{
    return f16_to_f32((uint16_t)(h << 8));
}

/* The fnuz formats: one zero, one NaN (0x80), no infinity; largest 240 and 57344. */
HALF uint8_t half_fnuz(uint32_t sign, uint32_t code, uint32_t nan, bool saturate)
{
    uint32_t out = code ? sign << 7 | code : 0;
    out = code > 0x7f ? (saturate ? sign << 7 | 0x7f : 0x80) : out;
    return (uint8_t)(nan ? 0x80 : out);
}
HALF uint8_t f8e4m3fnuz_from_f32(float x, bool saturate)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_fnuz(HALF_SIGN32(b), half_narrow32(a, 3, 8), half_nan32(a, 3), saturate);
}
HALF uint8_t f8e4m3fnuz_from_f64(double x, bool saturate)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_fnuz(HALF_SIGN64(b), half_narrow64(a, 3, 8), half_nan64(a, 3), saturate);
}
HALF float f8e4m3fnuz_to_f32(uint8_t h)
{
    uint32_t bits = (uint32_t)(h & 0x80) << 24 | half_widen(h & 0x7fu, 3, 8);
    return half_f32(h == 0x80 ? 0x7fc00000u : bits);
}
HALF uint8_t f8e5m2fnuz_from_f32(float x, bool saturate)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_fnuz(HALF_SIGN32(b), half_narrow32(a, 2, 16), half_nan32(a, 2), saturate);
}
HALF uint8_t f8e5m2fnuz_from_f64(double x, bool saturate)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_fnuz(HALF_SIGN64(b), half_narrow64(a, 2, 16), half_nan64(a, 2), saturate);
}
HALF float f8e5m2fnuz_to_f32(uint8_t h)
{
    uint32_t bits = (uint32_t)(h & 0x80) << 24 | half_widen(h & 0x7fu, 2, 16);
    return half_f32(h == 0x80 ? 0x7fc00000u : bits);
}

/* The f6 formats: no infinity and no NaN (one becomes -0, as in f4e2m1), largest 7.5 and 28, in the low six bits. */
HALF uint8_t half_f6(uint32_t sign, uint32_t code, uint32_t nan)
{
    code = code > 31 ? 31 : code;
    return (uint8_t)(nan ? 32 : sign << 5 | code);
}
HALF uint8_t f6e2m3_from_f32(float x)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_f6(HALF_SIGN32(b), half_narrow32(a, 3, 1), half_nan32(a, 3));
}
HALF uint8_t f6e2m3_from_f64(double x)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_f6(HALF_SIGN64(b), half_narrow64(a, 3, 1), half_nan64(a, 3));
}
HALF float f6e2m3_to_f32(uint8_t h)
{
    return half_f32((uint32_t)(h & 32) << 26 | half_widen(h & 31u, 3, 1));
}
HALF uint8_t f6e3m2_from_f32(float x)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_f6(HALF_SIGN32(b), half_narrow32(a, 2, 3), half_nan32(a, 2));
}
HALF uint8_t f6e3m2_from_f64(double x)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_f6(HALF_SIGN64(b), half_narrow64(a, 2, 3), half_nan64(a, 2));
}
HALF float f6e3m2_to_f32(uint8_t h)
{
    return half_f32((uint32_t)(h & 32) << 26 | half_widen(h & 31u, 2, 3));
}

/* f4e2m1: 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives, in the low four bits.  It has no NaN; one becomes -0, as
 * ONNX's own data have it. */
HALF uint8_t half_f4e2m1(uint32_t sign, uint32_t code, uint32_t nan)
{
    code = code > 7 ? 7 : code;
    return (uint8_t)(nan ? 8 : sign << 3 | code);
}
HALF uint8_t f4e2m1_from_f32(float x)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    return half_f4e2m1(HALF_SIGN32(b), half_narrow32(a, 1, 1), half_nan32(a, 1));
}
HALF uint8_t f4e2m1_from_f64(double x)
{
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    return half_f4e2m1(HALF_SIGN64(b), half_narrow64(a, 1, 1), half_nan64(a, 1));
}
HALF float f4e2m1_to_f32(uint8_t h)
{
    return half_f32((uint32_t)(h & 8) << 28 | half_widen(h & 7u, 1, 1));
}

/* e8m0: 2^(code - 127), 0xff is NaN.  Below 2^-127, zero and negative numbers included, saturation gives the
 * smallest code, above 2^127 the largest; without it both give NaN.  Ties of E8M0_NEAREST go up. */
typedef enum E8m0Round { E8M0_UP, E8M0_DOWN, E8M0_NEAREST } E8m0Round;

HALF uint8_t e8m0_from_f32(float x, E8m0Round round, bool saturate)
{
    uint32_t b = half_bits32(x), a = HALF_ABS32(b);
    uint32_t even = a < 0x800000u ? (a - 0x400000u) << 1 : a; /* the subnormal binade written as a normal one */
    uint32_t add = round == E8M0_UP ? 0x7fffffu : round == E8M0_NEAREST ? 0x400000u : 0;
    uint32_t code = (even + add) >> 23;
    code = a > 254u << 23 ? (saturate ? 0xfe : 0xff) : code;
    code = a < 0x400000u || b != a ? (saturate ? 0 : 0xff) : code;
    return (uint8_t)(a > 0x7f800000u ? 0xff : code);
}
HALF uint8_t e8m0_from_f64(double x, E8m0Round round, bool saturate)
{
    const uint64_t one = (uint64_t)1 << 52;
    uint64_t b = half_bits64(x), a = HALF_ABS64(b);
    uint64_t add = round == E8M0_UP ? one - 1 : round == E8M0_NEAREST ? one >> 1 : 0;
    uint64_t code = (a - 896 * one + add) >> 52;
    code = a > 1150 * one ? (saturate ? 0xfe : 0xff) : code;
    code = a < 896 * one || b != a ? (saturate ? 0 : 0xff) : code;
    return (uint8_t)(a > 2047 * one ? 0xff : code);
}
HALF float e8m0_to_f32(uint8_t h)
{
    uint32_t bits = h ? (uint32_t)h << 23 : 0x400000u;
    return half_f32(h == 0xff ? 0x7fc00000u : bits);
}

/* The integer as an f64 rounded to odd: narrowing that to 24 bits or fewer rounds as the integer itself would. */
HALF double f64_odd_from_u64(uint64_t n)
{
    uint64_t odd = (n & ~(uint64_t)0x7ff) | ((n & 0x7ff) ? 0x800 : 0);
    return (double)(n >> 53 ? odd : n);
}
HALF double f64_odd_from_i64(int64_t n)
{
    return n < 0 ? -f64_odd_from_u64(0 - (uint64_t)n) : f64_odd_from_u64((uint64_t)n);
}

#undef HALF_SIGN32
#undef HALF_SIGN64
#undef HALF_ABS32
#undef HALF_ABS64
#undef HALF

#ifndef __CUDACC__
/* The same over n elements; the arrays must not overlap. */
void f16_from_f32_block(uint16_t *restrict out, const float *restrict in, size_t n);
void f16_to_f32_block(float *restrict out, const uint16_t *restrict in, size_t n);
void bf16_from_f32_block(uint16_t *restrict out, const float *restrict in, size_t n);
void bf16_to_f32_block(float *restrict out, const uint16_t *restrict in, size_t n);
#endif

#endif
