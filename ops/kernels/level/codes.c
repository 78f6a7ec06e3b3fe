/* Numbers become codes: the functions of ops/scalar/quant.h side by side. */
#include "ops/kernels/level/level.h"

static void rescale(size_t n, const i32 *restrict sums, u32 bias, f32 factor, f32 *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (f32)(i32)((u32)sums[i] + bias) * factor;
}

static void rescale_each(size_t n, const i32 *restrict sums, const i32 *restrict bias, const f32 *restrict factor,
                         f32 *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (f32)(i32)((u32)sums[i] + (u32)bias[i]) * factor[i];
}

static void sum(size_t n, const f32 *restrict a, const f32 *restrict b, f32 ra, f32 rb, f32 base, f32 *restrict u)
{
    for (size_t i = 0; i < n; i++)
        u[i] = fma_f32(a[i], ra, fma_f32(b[i], rb, base));
}

#ifdef __AVX512BW__
#include <immintrin.h>

/* By hand: compilers round in many instructions, and turn single numbers where there are fewer than 64. */
enum { LANES = 16, ALL = 0xffff };

typedef struct Range {
    __m512 z, lo, hi;
} Range;

static inline Range range_of(const CodeRange *r)
{
    return (Range){ _mm512_set1_ps(r->z), _mm512_set1_ps(r->lo), _mm512_set1_ps(r->hi) };
}

static inline __mmask16 lanes_of(size_t left)
{
    return (__mmask16)(left < LANES ? (1u << left) - 1 : ALL);
}

static inline __m512 nearest_of(__m512 v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline void put_bytes(u8 *to, __mmask16 lanes, __m512 codes, const Range *r)
{
    const __m512 v = _mm512_min_ps(_mm512_max_ps(codes, r->lo), r->hi);
    const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v));
    if (lanes == ALL)
        _mm_storeu_si128((__m128i *)(void *)to, bytes);
    else
        _mm_mask_storeu_epi8(to, lanes, bytes);
}

/* stored_code_f32 */
static inline void put_stored(u8 *to, __mmask16 lanes, __m512 v, const Range *r)
{
    const __m512 n = nearest_of(v);
    put_bytes(to, lanes, _mm512_mask_add_ps(r->z, _mm512_cmp_ps_mask(n, n, _CMP_ORD_Q), n, r->z), r);
}

static inline __m512 biased(const i32 *sums, __mmask16 lanes, __m512i bias)
{
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_maskz_loadu_epi32(lanes, sums), bias));
}

/* Factors below 1 in size leave sums below 2^31, and none of them is no number: they are rounded as integers, cut off as far as
 * 16 bits and bytes reach on the way there, and as bytes by the smallest and the largest code. */
typedef struct Cut {
    __m512i bias, z, least, most;
    __m512 by;
    bool sign;
} Cut;

enum { FOUR = 4 * LANES };

static inline __m512i cut_of(const Cut *c, const i32 *sums, __mmask64 lanes, int part)
{
    return _mm512_cvtps_epi32(
        _mm512_mul_ps(biased(sums + part * LANES, (__mmask16)(lanes >> part * LANES), c->bias), c->by));
}

/* Two vectors of sums become one of 16 bits, lane by lane. */
static inline __m512i cut_both(const Cut *c, const i32 *sums, __mmask64 lanes, int part)
{
    const __m512i both = _mm512_packs_epi32(cut_of(c, sums, lanes, part), cut_of(c, sums, lanes, part + 1));
    return _mm512_adds_epi16(both, c->z);
}

static inline __m512i bytes_of(const Cut *c, __m512i low, __m512i high)
{
    const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes = c->sign ? _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(low, high), c->least), c->most)
                                  : _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(low, high), c->least), c->most);
    return _mm512_permutexvar_epi32(in_order, bytes);
}

static inline __m512i cut_four(const Cut *c, const i32 *sums, __mmask64 lanes)
{
    return bytes_of(c, cut_both(c, sums, lanes, 0), cut_both(c, sums, lanes, 2));
}

static void requantize_below_one(size_t n, const i32 *restrict sums, u32 bias, f32 factor, const CodeRange *b,
                                 u8 *restrict to)
{
    const Cut c = { .bias = _mm512_set1_epi32((i32)bias),
                    .z = _mm512_set1_epi16((int16_t)b->z),
                    .least = _mm512_set1_epi8((char)(i32)b->lo),
                    .most = _mm512_set1_epi8((char)(i32)b->hi),
                    .by = _mm512_set1_ps(factor),
                    .sign = b->lo < 0 };
    size_t i = 0;
    for (; i + FOUR <= n; i += FOUR)
        _mm512_storeu_si512(to + i, cut_four(&c, sums + i, ~(__mmask64)0));
    if (i < n) {
        const __mmask64 rest = ((__mmask64)1 << (n - i)) - 1;
        _mm512_mask_storeu_epi8(to + i, rest, cut_four(&c, sums + i, rest));
    }
}

static void requantize(size_t n, const i32 *restrict sums, u32 bias, f32 factor, const CodeRange *b, u8 *restrict to)
{
    const Range r = range_of(b);
    const __m512i more = _mm512_set1_epi32((i32)bias);
    const __m512 by = _mm512_set1_ps(factor);
    if (factor < 1 && factor > -1) {
        requantize_below_one(n, sums, bias, factor, b, to);
        return;
    }
    for (size_t i = 0; i < n; i += LANES) {
        const __mmask16 lanes = lanes_of(n - i);
        put_stored(to + i, lanes, _mm512_mul_ps(biased(sums + i, lanes, more), by), &r);
    }
}

static void requantize_each(size_t n, const i32 *restrict sums, const i32 *restrict bias, const f32 *restrict factor,
                            const CodeRange *b, u8 *restrict to)
{
    const Range r = range_of(b);
    for (size_t i = 0; i < n; i += LANES) {
        const __mmask16 lanes = lanes_of(n - i);
        const __m512 v = biased(sums + i, lanes, _mm512_maskz_loadu_epi32(lanes, bias + i));
        put_stored(to + i, lanes, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(lanes, factor + i)), &r);
    }
}

/* stochastic_f32 */
static inline __m512 chance_of(__m512 v, __m512 draw)
{
    const __m512 low = _mm512_roundscale_ps(v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __mmask16 up = _mm512_cmp_ps_mask(draw, _mm512_sub_ps(v, low), _CMP_LT_OQ);
    return _mm512_mask_add_ps(low, up, low, _mm512_set1_ps(1));
}

static void quantize(size_t n, const f32 *restrict x, const f32 *restrict scale, size_t each, const f32 *restrict draw,
                     const CodeRange *b, u8 *restrict to)
{
    const Range r = range_of(b);
    __m512 s = _mm512_set1_ps(*scale);
    for (size_t i = 0; i < n; i += LANES) {
        const __mmask16 lanes = lanes_of(n - i);
        if (each)
            s = _mm512_maskz_loadu_ps(lanes, scale + i);
        __m512 v = _mm512_maskz_div_ps(lanes, _mm512_maskz_loadu_ps(lanes, x + i), s);
        if (draw)
            v = chance_of(v, _mm512_maskz_loadu_ps(lanes, draw + i));
        put_stored(to + i, lanes, v, &r);
    }
}

/* Zeros keep their signs, as they do in clip: of equal numbers the instructions give the second one. */
#define ROWS_OF_CODES(id, NEAREST)                                                                                     \
    static void id(size_t n, void *out, const void *x, const void *y, const void *unread, const double *k)             \
    {                                                                                                                  \
        const __m512 lo = _mm512_set1_ps((f32)k[0]), hi = _mm512_set1_ps((f32)k[1]);                                   \
        const __m512 z = _mm512_set1_ps(y ? *(const f32 *)y : 0);                                                      \
        (void)unread;                                                                                                  \
        for (size_t i = 0; i < n; i += LANES) {                                                                        \
            const __mmask16 lanes = lanes_of(n - i);                                                                   \
            const __m512 v = NEAREST(_mm512_maskz_loadu_ps(lanes, (const f32 *)x + i));                                \
            const __mmask16 known = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);                                              \
            const __m512 code = y ? _mm512_mask_add_ps(z, known, v, z) : _mm512_maskz_mov_ps(known, v);                \
            _mm512_mask_storeu_ps((f32 *)out + i, lanes, _mm512_min_ps(hi, _mm512_max_ps(lo, code)));                  \
        }                                                                                                              \
    }
#define KEEP(v) (v)
ROWS_OF_CODES(stored, nearest_of)
ROWS_OF_CODES(settled, KEEP)
#undef KEEP
#undef ROWS_OF_CODES

/* A code whose sign bit is turned is one of the other kind, so far below. */
static inline __m512 codes_at(const CodeBytes *c, size_t i, __mmask16 lanes)
{
    const __m512i flip = _mm512_set1_epi32(c->flip), v = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, c->v + i));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_xor_si512(v, flip), flip));
}

/* Sums that no code of either operand makes larger than integers hold, or no number. */
static bool are_small(const CodeBytes *a, const CodeBytes *b, f32 base)
{
    enum { MOST = 1 << 20 };
    return a->ratio < MOST && a->ratio > -MOST && b->ratio < MOST && b->ratio > -MOST && base < MOST && base > -MOST;
}

static inline __m512i sum_at(const CodeBytes *a, const CodeBytes *b, f32 base, size_t i, __mmask64 lanes, int part)
{
    const __mmask16 some = (__mmask16)(lanes >> part * LANES);
    const size_t at = i + (size_t)part * LANES;
    const __m512 x = codes_at(a, at, some), y = codes_at(b, at, some);
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(x, _mm512_set1_ps(a->ratio),
                                              _mm512_fmadd_ps(y, _mm512_set1_ps(b->ratio), _mm512_set1_ps(base))));
}

/* Four vectors of them, cut off as those that are requantized. */
static inline __m512i four_sums(const CodeBytes *a, const CodeBytes *b, f32 base, const Cut *c, size_t i,
                                __mmask64 lanes)
{
    const __m512i low = _mm512_packs_epi32(sum_at(a, b, base, i, lanes, 0), sum_at(a, b, base, i, lanes, 1));
    const __m512i high = _mm512_packs_epi32(sum_at(a, b, base, i, lanes, 2), sum_at(a, b, base, i, lanes, 3));
    return bytes_of(c, low, high);
}

static void sum_small_codes(size_t n, const CodeBytes *a, const CodeBytes *b, f32 base, const CodeRange *of,
                            u8 *restrict to)
{
    const Cut c = { .least = _mm512_set1_epi8((char)(i32)of->lo),
                    .most = _mm512_set1_epi8((char)(i32)of->hi),
                    .sign = of->lo < 0 };
    size_t i = 0;
    for (; i + FOUR <= n; i += FOUR)
        _mm512_storeu_si512(to + i, four_sums(a, b, base, &c, i, ~(__mmask64)0));
    if (i < n) {
        const __mmask64 rest = ((__mmask64)1 << (n - i)) - 1;
        _mm512_mask_storeu_epi8(to + i, rest, four_sums(a, b, base, &c, i, rest));
    }
}

static void sum_codes(size_t n, const CodeBytes *a, const CodeBytes *b, f32 base, const CodeRange *of, u8 *restrict to)
{
    const Range r = range_of(of);
    if (are_small(a, b, base)) {
        sum_small_codes(n, a, b, base, of, to);
        return;
    }
    const __m512 ra = _mm512_set1_ps(a->ratio), rb = _mm512_set1_ps(b->ratio), from = _mm512_set1_ps(base);
    for (size_t i = 0; i < n; i += LANES) {
        const __mmask16 lanes = lanes_of(n - i);
        const __m512 x = codes_at(a, i, lanes), y = codes_at(b, i, lanes);
        const __m512 u = _mm512_fmadd_ps(x, ra, _mm512_fmadd_ps(y, rb, from));
        const __mmask16 known = _mm512_cmp_ps_mask(u, u, _CMP_ORD_Q);
        put_bytes(to + i, lanes, nearest_of(_mm512_mask_mov_ps(r.z, known, u)), &r);
    }
}
#else
/* Bytes of codes with a sign have the same bits as those without one. */
static void requantize(size_t n, const i32 *restrict sums, u32 bias, f32 factor, const CodeRange *b, u8 *restrict to)
{
    const f32 z = b->z, lo = b->lo, hi = b->hi;
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        to[i] = (u8)(i32)stored_code_f32((f32)(i32)((u32)sums[i] + bias) * factor, z, lo, hi);
}

static void requantize_each(size_t n, const i32 *restrict sums, const i32 *restrict bias, const f32 *restrict factor,
                            const CodeRange *b, u8 *restrict to)
{
    const f32 z = b->z, lo = b->lo, hi = b->hi;
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        to[i] = (u8)(i32)stored_code_f32((f32)(i32)((u32)sums[i] + (u32)bias[i]) * factor[i], z, lo, hi);
}

static void quantize(size_t n, const f32 *restrict x, const f32 *restrict scale, size_t each, const f32 *restrict draw,
                     const CodeRange *b, u8 *restrict to)
{
    const f32 z = b->z, lo = b->lo, hi = b->hi, one = *scale;
    if (draw)
        for (size_t i = 0; i < n; i++)
            to[i] = (u8)(i32)code_of_f32(stochastic_f32(x[i] / scale[i * each], draw[i]), z, lo, hi);
    else if (each)
        for (size_t i = 0; i < n; i++)
            to[i] = (u8)(i32)stored_code_f32(x[i] / scale[i], z, lo, hi);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = (u8)(i32)stored_code_f32(x[i] / one, z, lo, hi);
}

#define ROWS_OF_CODES(id, NEAREST)                                                                                     \
    static void id(size_t n, void *out, const void *x, const void *y, const void *unread, const double *k)             \
    {                                                                                                                  \
        const f32 lo = (f32)k[0], hi = (f32)k[1], z = y ? *(const f32 *)y : 0, *from = x;                              \
        f32 *to = out;                                                                                                 \
        (void)unread;                                                                                                  \
        if (y) {                                                                                                       \
            LEVEL_VECTOR                                                                                               \
            for (size_t i = 0; i < n; i++)                                                                             \
                to[i] = code_of_f32(NEAREST(from[i]), z, lo, hi);                                                      \
        } else {                                                                                                       \
            LEVEL_VECTOR                                                                                               \
            for (size_t i = 0; i < n; i++) {                                                                           \
                const f32 r = NEAREST(from[i]);                                                                        \
                to[i] = clamp_f32(r == r ? r : 0, lo, hi);                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }
#define KEEP(v) (v)
ROWS_OF_CODES(stored, rint_f32)
ROWS_OF_CODES(settled, KEEP)
#undef KEEP
#undef ROWS_OF_CODES

/* A code whose sign bit is turned is one of the other kind, so far below. */
static void sum_codes(size_t n, const CodeBytes *a, const CodeBytes *b, f32 base, const CodeRange *of, u8 *restrict to)
{
    const u8 *restrict va = a->v, *restrict vb = b->v;
    const i32 fa = a->flip, fb = b->flip;
    const f32 ra = a->ratio, rb = b->ratio, z = of->z, lo = of->lo, hi = of->hi;
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++) {
        const f32 x = (f32)(((i32)va[i] ^ fa) - fa), y = (f32)(((i32)vb[i] ^ fb) - fb);
        to[i] = (u8)(i32)shifted_code_f32(fma_f32(x, ra, fma_f32(y, rb, base)), z, lo, hi);
    }
}
#endif

static void product(size_t n, const f32 *restrict a, const f32 *restrict b, f32 za, f32 zb, f32 m, f32 z,
                    f32 *restrict u)
{
    for (size_t i = 0; i < n; i++)
        u[i] = (a[i] - za) * (b[i] - zb) * m + z;
}

static void divide(size_t n, f32 *v, f32 scale)
{
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] / scale;
}

static void nearest(size_t n, const f32 *restrict v, f32 *restrict r)
{
    for (size_t i = 0; i < n; i++)
        r[i] = rint_f32(v[i]);
}

static void settle(size_t n, f32 *r, f32 z, f32 lo, f32 hi)
{
    for (size_t i = 0; i < n; i++)
        r[i] = code_of_f32(r[i], z, lo, hi);
}

static void round_codes(size_t n, const f32 *restrict v, f32 z, f32 lo, f32 hi, f32 *restrict codes)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = stored_code_f32(v[i], z, lo, hi);
}

static void round_shifted(size_t n, const f32 *restrict u, f32 z, f32 lo, f32 hi, f32 *restrict codes)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = shifted_code_f32(u[i], z, lo, hi);
}

static void sizes(size_t n, const f32 *restrict x, f32 *restrict most)
{
    for (size_t i = 0; i < n; i++)
        most[i] = max_f32(most[i], abs_f32(x[i]));
}

const CodeLoops LEVEL_NAME(codes) = {
    .rescale = rescale,
    .rescale_each = rescale_each,
    .requantize = requantize,
    .requantize_each = requantize_each,
    .quantize = quantize,
    .sum_codes = sum_codes,
    .sum = sum,
    .product = product,
    .divide = divide,
    .nearest = nearest,
    .settle = settle,
    .round = round_codes,
    .stored = stored,
    .settled = settled,
    .round_shifted = round_shifted,
    .sizes = sizes,
};
