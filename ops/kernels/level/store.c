/* Between storage types and the four arithmetics: one load and one store per storage type, not a matrix. */
#include <string.h>

#include "base/half.h"
#include "base/pack.h"
#include "ops/kernels/level/level.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Sub-byte elements, one at a time; everything else in loops the compiler vectorizes. */
static unsigned nibble(const void *data, int64_t i)
{
    return (unsigned)((const uint8_t *)data)[i / 2] >> (i % 2 * 4) & 15u;
}

static unsigned crumb(const void *data, int64_t i)
{
    return (unsigned)((const uint8_t *)data)[i / 4] >> (i % 4 * 2) & 3u;
}

static unsigned sextet(const void *data, int64_t i)
{
    return packed_u6(data, (size_t)i);
}

static unsigned bit(const void *data, int64_t i)
{
    return packed_u1(data, (size_t)i);
}

static int sign4(unsigned v)
{
    return (int)(v ^ 8u) - 8;
}

static int sign2(unsigned v)
{
    return (int)(v ^ 2u) - 2;
}

/* Unaligned-safe element access. */
#define READER(C)                                                                                                      \
    static inline C read_##C(const void *p, int64_t i)                                                                 \
    {                                                                                                                  \
        C v;                                                                                                           \
        memcpy(&v, (const char *)p + i * (int64_t)sizeof(C), sizeof v);                                                \
        return v;                                                                                                      \
    }
READER(int8_t)
READER(uint8_t)
READER(int16_t)
READER(uint16_t)
READER(int32_t)
READER(uint32_t)
READER(int64_t)
READER(uint64_t)
READER(float)
READER(double)
#undef READER

#define EACH(EXPR)                                                                                                     \
    LEVEL_VECTOR                                                                                                       \
    for (int64_t i = first; i < first + n; i++)                                                                        \
        to[i - first] = (EXPR);                                                                                        \
    break

/* The bits of whole bytes in vectors, those before and behind one by one. */
#define EACH_BIT(T)                                                                                                    \
    do {                                                                                                               \
        const uint8_t *bytes = p;                                                                                      \
        int64_t at = 0;                                                                                                \
        for (; at < n && (first + at) % 8; at++)                                                                       \
            to[at] = (T)bit(bytes, first + at);                                                                        \
        for (; n - at >= 8; at += 8) {                                                                                 \
            const uint32_t byte = bytes[(first + at) / 8];                                                             \
            LEVEL_VECTOR                                                                                               \
            for (int j = 0; j < 8; j++)                                                                                \
                to[at + j] = (T)(int32_t)(byte >> j & 1u);                                                             \
        }                                                                                                              \
        for (; at < n; at++)                                                                                           \
            to[at] = (T)bit(bytes, first + at);                                                                        \
    } while (0);                                                                                                       \
    break

/* Bits of whole bytes as 0 and 1, sixteen at a time; false: not here. */
#ifdef __AVX512BW__
static bool load_bits(f32 *to, const Tensor *from, int64_t first, int64_t n)
{
    enum { LANES = 16 };
    const __m512 one = _mm512_set1_ps(1);
    int64_t i = 0;
    if (from->type->dtype != BIT || first % 8)
        return false;
    const uint8_t *bytes = (const uint8_t *)from->data + first / 8;
    for (; i + LANES <= n; i += LANES)
        _mm512_storeu_ps(to + i, _mm512_maskz_mov_ps((__mmask16)read_uint16_t(bytes, i / LANES), one));
    for (; i < n; i++)
        to[i] = (f32)bit(from->data, first + i);
    return true;
}
#else
#define load_bits(...) false
#endif
#define LOADS_BITS_f32(...) load_bits(__VA_ARGS__)
#define LOADS_BITS_f64(...) false
#define LOADS_BITS_i64(...) false
#define LOADS_BITS_u64(...) false

/* FLOATS says how a float reaches T; integers convert by the C rules, which round to nearest even. */
#define LOADER(T, CONVERT)                                                                                             \
    void LEVEL_NAME(load_##T)(T * to, const Tensor *from, int64_t first, int64_t n)                                    \
    {                                                                                                                  \
        const void *p = from->data;                                                                                    \
        switch (from->type->dtype) {                                                                                   \
        case BOOL:                                                                                                     \
            EACH((T)(read_uint8_t(p, i) != 0));                                                                        \
        case BIT:                                                                                                      \
            if (LOADS_BITS_##T(to, from, first, n))                                                                    \
                break;                                                                                                 \
            EACH_BIT(T);                                                                                               \
        case I2:                                                                                                       \
            EACH((T)sign2(crumb(p, i)));                                                                               \
        case U2:                                                                                                       \
            EACH((T)crumb(p, i));                                                                                      \
        case I4:                                                                                                       \
            EACH((T)sign4(nibble(p, i)));                                                                              \
        case U4:                                                                                                       \
            EACH((T)nibble(p, i));                                                                                     \
        case I8:                                                                                                       \
            EACH((T)read_int8_t(p, i));                                                                                \
        case U8:                                                                                                       \
            EACH((T)read_uint8_t(p, i));                                                                               \
        case I16:                                                                                                      \
            EACH((T)read_int16_t(p, i));                                                                               \
        case U16:                                                                                                      \
            EACH((T)read_uint16_t(p, i));                                                                              \
        case I32:                                                                                                      \
            EACH((T)read_int32_t(p, i));                                                                               \
        case U32:                                                                                                      \
            EACH((T)read_uint32_t(p, i));                                                                              \
        case I64:                                                                                                      \
            EACH((T)read_int64_t(p, i));                                                                               \
        case U64:                                                                                                      \
            EACH((T)read_uint64_t(p, i));                                                                              \
        case F4E2M1:                                                                                                   \
            EACH(CONVERT(f4e2m1_to_f32((uint8_t)nibble(p, i))));                                                       \
        case F6E2M3:                                                                                                   \
            EACH(CONVERT(f6e2m3_to_f32((uint8_t)sextet(p, i))));                                                       \
        case F6E3M2:                                                                                                   \
            EACH(CONVERT(f6e3m2_to_f32((uint8_t)sextet(p, i))));                                                       \
        case F8E4M3:                                                                                                   \
            EACH(CONVERT(f8e4m3fn_to_f32(read_uint8_t(p, i))));                                                        \
        case F8E4M3FNUZ:                                                                                               \
            EACH(CONVERT(f8e4m3fnuz_to_f32(read_uint8_t(p, i))));                                                      \
        case F8E5M2:                                                                                                   \
            EACH(CONVERT(f8e5m2_to_f32(read_uint8_t(p, i))));                                                          \
        case F8E5M2FNUZ:                                                                                               \
            EACH(CONVERT(f8e5m2fnuz_to_f32(read_uint8_t(p, i))));                                                      \
        case F8E8M0:                                                                                                   \
            EACH(CONVERT(e8m0_to_f32(read_uint8_t(p, i))));                                                            \
        case F16:                                                                                                      \
            EACH(CONVERT(f16_to_f32(read_uint16_t(p, i))));                                                            \
        case BF16:                                                                                                     \
            EACH(CONVERT(bf16_to_f32(read_uint16_t(p, i))));                                                           \
        case F32:                                                                                                      \
            EACH(CONVERT(read_float(p, i)));                                                                           \
        case F64:                                                                                                      \
            EACH(CONVERT(read_double(p, i)));                                                                          \
        case STRING:                                                                                                   \
        case DTYPE_COUNT:                                                                                              \
            break;                                                                                                     \
        }                                                                                                              \
    }
LOADER(f32, (f32))
LOADER(f64, (f64))
LOADER(i64, q_i64)
LOADER(u64, q_u64)
#undef LOADER
#undef EACH_BIT
#undef EACH

/* An element is stored as Cast would: floats round once, integers wrap, floats to integers truncate and saturate. */
#define PUT(C, v)                                                                                                      \
    LEVEL_VECTOR                                                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const C c = (C)(v);                                                                                            \
        memcpy((char *)p + (first + i) * (int64_t)sizeof(C), &c, sizeof c);                                            \
    }                                                                                                                  \
    break
/* Bits behind the last element are 0, whatever the memory held. */
#define PUT_BITS(bits, v)                                                                                              \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        packed_put##bits(p, (size_t)(first + i), (uint8_t)(v));                                                        \
    if (first + n == tensor_elements(to))                                                                              \
        pack_clear_tail(p, (size_t)(first + n), bits);                                                                 \
    break

/* Eight bits in a byte; what of the first and the last byte is not ours stays. */
#define PUT_BIT                                                                                                        \
    do {                                                                                                               \
        uint8_t *bytes = p;                                                                                            \
        int64_t at = 0;                                                                                                \
        for (; at < n && (first + at) % 8; at++)                                                                       \
            packed_put1(bytes, (size_t)(first + at), from[at] != 0);                                                   \
        for (; n - at >= 8; at += 8) {                                                                                 \
            uint32_t byte = 0;                                                                                         \
            for (int j = 0; j < 8; j++)                                                                                \
                byte |= (uint32_t)(from[at + j] != 0) << j;                                                            \
            bytes[(first + at) / 8] = (uint8_t)byte;                                                                   \
        }                                                                                                              \
        for (; at < n; at++)                                                                                           \
            packed_put1(bytes, (size_t)(first + at), from[at] != 0);                                                   \
        if (first + n == tensor_elements(to))                                                                          \
            pack_clear_tail(bytes, (size_t)(first + n), 1);                                                            \
    } while (0);                                                                                                       \
    break

/* Numbers of f32 below 2^31 become integers of 32 bits first, which are cut as those of 64 would be: a vector's work. */
static bool is_small(const f32 *from, int64_t n)
{
    i32 all = -1;
    for (int64_t i = 0; i < n; i++)
        all &= -(i32)(from[i] > -0x1p31f && from[i] < 0x1p31f);
    return all;
}

typedef uint16_t Wherever16 __attribute__((aligned(1), may_alias));

static bool put_small(Tensor *to, int64_t first, const f32 *restrict from, int64_t n)
{
    const DType d = to->type->dtype;
    uint8_t *restrict bytes = (uint8_t *)to->data + first;
    Wherever16 *restrict pairs = (Wherever16 *)to->data + first;
    const bool narrow = d == I8 || d == U8;
    if (!(narrow || d == I16 || d == U16) || !is_small(from, n))
        return false;
    if (narrow)
        for (int64_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(i32)from[i];
    else
        for (int64_t i = 0; i < n; i++)
            pairs[i] = (uint16_t)(i32)from[i];
    return true;
}
#if defined(__x86_64__)
/* Bits of whole bytes, of comparisons side by side: compilers make one after the other. */
static bool put_bits(Tensor *to, int64_t first, const f32 *from, int64_t n)
{
    uint8_t *bytes = (uint8_t *)to->data + first / 8;
    int64_t i = 0;
    if (to->type->dtype != BIT || first % 8)
        return false;
    for (; i + 8 <= n; i += 8) {
        const __m128 low = _mm_cmpneq_ps(_mm_loadu_ps(from + i), _mm_setzero_ps());
        const __m128 high = _mm_cmpneq_ps(_mm_loadu_ps(from + i + 4), _mm_setzero_ps());
        *bytes++ = (uint8_t)(_mm_movemask_ps(low) | _mm_movemask_ps(high) << 4);
    }
    for (; i < n; i++)
        packed_put1(to->data, (size_t)(first + i), from[i] != 0);
    if (first + n == tensor_elements(to))
        pack_clear_tail(to->data, (size_t)(first + n), 1);
    return true;
}
#else
#define put_bits(...) false
#endif

#ifdef __AVX512BW__
/* Numbers below 2^31 as bytes; false: there are others. */
static bool put_bytes(Tensor *to, int64_t first, const f32 *from, int64_t n)
{
    enum { LANES = 16 };
    uint8_t *bytes = (uint8_t *)to->data + first;
    const __m512 limit = _mm512_set1_ps(0x1p31f);
    __mmask16 small = 0xffff;
    if (to->type->dtype != I8 && to->type->dtype != U8)
        return false;
    for (int64_t i = 0; i < n; i += LANES) {
        const __mmask16 some = (__mmask16)(n - i < LANES ? (1u << (n - i)) - 1 : 0xffff);
        const __m512 v = _mm512_maskz_loadu_ps(some, from + i);
        small &= _mm512_cmp_ps_mask(_mm512_abs_ps(v), limit, _CMP_LT_OQ);
        const __m128i b = _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v));
        if (some == 0xffff)
            _mm_storeu_si128((__m128i *)(void *)(bytes + i), b);
        else
            _mm_mask_storeu_epi8(bytes + i, some, b);
    }
    return small == 0xffff;
}
#else
#define put_bytes(...) false
#endif

/* Numbers of f32 as bf16, to nearest: what bf16_from_f32 gives where none of them is a NaN, which is found out on the way. */
static bool put_numbers(Wherever16 *restrict to, const f32 *restrict from, int64_t n)
{
    uint32_t most = 0;
    LEVEL_VECTOR
    for (int64_t i = 0; i < n; i++) {
        const uint32_t b = half_bits32(from[i]), size = b & 0x7fffffffu;
        most = size > most ? size : most;
        to[i] = (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
    }
    return most <= 0x7f800000u;
}

static bool put_bf16(Tensor *to, int64_t first, const f32 *from, int64_t n)
{
    enum { SOME = 512 };
    Wherever16 *codes = (Wherever16 *)to->data + first;
    if (to->type->dtype != BF16)
        return false;
    for (int64_t i = 0, some; i < n; i += some) {
        some = n - i < SOME ? n - i : SOME;
        if (put_numbers(codes + i, from + i, some))
            continue;
        for (int64_t k = i; k < i + some; k++)
            codes[k] = bf16_from_f32(from[k]);
    }
    return true;
}

/* What is read of numbers that were stored as bf16. */
void LEVEL_NAME(round_bf16)(int64_t n, const f32 *from, f32 *to)
{
    LEVEL_VECTOR
    for (int64_t i = 0; i < n; i++) {
        const uint32_t b = half_bits32(from[i]), nan = b & 0x7f0000u ? b : b | 0x400000u;
        const uint32_t rounded = (b & 0x7fffffffu) > 0x7f800000u ? nan : b + 0x7fff + (b >> 16 & 1);
        to[i] = half_f32(rounded & 0xffff0000u);
    }
}

#define PUT_SMALL_f32                                                                                                  \
    (put_bf16(to, first, from, n) || put_bytes(to, first, from, n) || put_bits(to, first, from, n) ||                  \
     put_small(to, first, from, n))
#define PUT_SMALL_f64 false
#define PUT_SMALL_i64 false
#define PUT_SMALL_u64 false

#define STORER(T, AS_F32, WIDE, AS_INT, FROM)                                                                          \
    void LEVEL_NAME(store_##T)(Tensor * to, int64_t first, const T *from, int64_t n)                                   \
    {                                                                                                                  \
        void *p = to->data;                                                                                            \
        if (PUT_SMALL_##T)                                                                                             \
            return;                                                                                                    \
        switch (to->type->dtype) {                                                                                     \
        case BOOL:                                                                                                     \
            PUT(uint8_t, from[i] != 0);                                                                                \
        case BIT:                                                                                                      \
            PUT_BIT;                                                                                                   \
        case I2:                                                                                                       \
        case U2:                                                                                                       \
            PUT_BITS(2, AS_INT(from[i]));                                                                              \
        case I4:                                                                                                       \
        case U4:                                                                                                       \
            PUT_BITS(4, AS_INT(from[i]));                                                                              \
        case I8:                                                                                                       \
        case U8:                                                                                                       \
            PUT(uint8_t, AS_INT(from[i]));                                                                             \
        case I16:                                                                                                      \
        case U16:                                                                                                      \
            PUT(uint16_t, AS_INT(from[i]));                                                                            \
        case I32:                                                                                                      \
        case U32:                                                                                                      \
            PUT(uint32_t, AS_INT(from[i]));                                                                            \
        case I64:                                                                                                      \
            PUT(int64_t, q_i64(from[i]));                                                                              \
        case U64:                                                                                                      \
            PUT(uint64_t, q_u64(from[i]));                                                                             \
        case F4E2M1:                                                                                                   \
            PUT_BITS(4, f4e2m1_from_##FROM(WIDE(from[i])));                                                            \
        case F6E2M3:                                                                                                   \
            PUT_BITS(6, f6e2m3_from_##FROM(WIDE(from[i])));                                                            \
        case F6E3M2:                                                                                                   \
            PUT_BITS(6, f6e3m2_from_##FROM(WIDE(from[i])));                                                            \
        case F8E4M3:                                                                                                   \
            PUT(uint8_t, f8e4m3fn_from_##FROM(WIDE(from[i]), true));                                                   \
        case F8E4M3FNUZ:                                                                                               \
            PUT(uint8_t, f8e4m3fnuz_from_##FROM(WIDE(from[i]), true));                                                 \
        case F8E5M2:                                                                                                   \
            PUT(uint8_t, f8e5m2_from_##FROM(WIDE(from[i]), true));                                                     \
        case F8E5M2FNUZ:                                                                                               \
            PUT(uint8_t, f8e5m2fnuz_from_##FROM(WIDE(from[i]), true));                                                 \
        case F8E8M0:                                                                                                   \
            PUT(uint8_t, e8m0_from_##FROM(WIDE(from[i]), E8M0_UP, true));                                              \
        case F16:                                                                                                      \
            PUT(uint16_t, f16_from_##FROM(WIDE(from[i])));                                                             \
        case BF16:                                                                                                     \
            PUT(uint16_t, bf16_from_##FROM(WIDE(from[i])));                                                            \
        case F32:                                                                                                      \
            PUT(float, AS_F32(from[i]));                                                                               \
        case F64:                                                                                                      \
            PUT(double, from[i]);                                                                                      \
        case STRING:                                                                                                   \
        case DTYPE_COUNT:                                                                                              \
            break;                                                                                                     \
        }                                                                                                              \
    }
STORER(f32, (float), , q_i64, f32)
STORER(f64, (float), , q_i64, f64)
STORER(i64, (float), f64_odd_from_i64, , f64)
STORER(u64, (float), f64_odd_from_u64, , f64)
#undef STORER
#undef PUT
#undef PUT_BITS
#undef PUT_BIT
