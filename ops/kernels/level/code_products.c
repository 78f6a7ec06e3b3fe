/* Sums of products of codes, modulo 2^32.
 *
 * Both operands are packed into words of 32 bits, each of which holds some steps of k of one lane, a row or a column: two
 * numbers of 16 bits, or, of codes of 8 bits where the level multiplies bytes, four: rows without a sign, columns with one. */
#include "ops/kernels/level/level.h"

#include <string.h>

#include "ops/kernels/level/turn.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { VECTORS = 2 }; /* of a tile's row */

/* Sums of products that stay in their register.  Where these are intrinsics gcc 12 moves every sum through others and through the
 * stack, twice in each turn, which more than halves the rate. */
#define DOT(id, V, text)                                                                                               \
    static inline V id(V s, V x, V y)                                                                                  \
    {                                                                                                                  \
        __asm__(text " %2, %1, %0" : "+v"(s) : "v"(x), "v"(y));                                                        \
        return s;                                                                                                      \
    }

/* The same of pairs where two instructions make it: products in a register of their own, and their sum. */
#define PAIRS_DOT(V, multiply, add, register)                                                                          \
    static inline V PAIRS(V s, V x, V y)                                                                               \
    {                                                                                                                  \
        V pairs;                                                                                                       \
        __asm__(multiply " %3, %2, %1\n\t" add " %1, %0, %0"                                                           \
                : "+" register(s), "=&" register(pairs)                                                                \
                : register(x), register(y));                                                                           \
        return s;                                                                                                      \
    }

#if defined(__AVX512BW__)
enum { TILE = 12 };
#define V           __m512i
#define LOAD(p)     _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define ONE(x)      _mm512_set1_epi32((i32)(x))
#ifdef __AVX512VNNI__
DOT(dot_pairs, __m512i, "vpdpwssd")
DOT(dot_bytes, __m512i, "vpdpbusd")
#define PAIRS(s, x, y) dot_pairs(s, x, y)
#define BYTES(s, x, y) dot_bytes(s, x, y)
#else
PAIRS_DOT(V, "vpmaddwd", "vpaddd", "v")
#endif
#elif defined(__AVX2__)
enum { TILE = 6 };
#define V           __m256i
#define LOAD(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define ONE(x)      _mm256_set1_epi32((i32)(x))
#ifdef __AVXVNNI__
DOT(dot_pairs, __m256i, "%{vex%} vpdpwssd")
DOT(dot_bytes, __m256i, "%{vex%} vpdpbusd")
#define PAIRS(s, x, y) dot_pairs(s, x, y)
#define BYTES(s, x, y) dot_bytes(s, x, y)
#else
PAIRS_DOT(V, "vpmaddwd", "vpaddd", "x")
#endif
#elif defined(__SSE2__)
enum { TILE = 6 };
#define V              __m128i
#define LOAD(p)        _mm_loadu_si128((const __m128i *)(const void *)(p))
#define STORE(p, v)    _mm_storeu_si128((__m128i *)(void *)(p), v)
#define ONE(x)         _mm_set1_epi32((i32)(x))
#define PAIRS(s, x, y) _mm_add_epi32(s, _mm_madd_epi16(x, y))
#elif defined(__aarch64__)
enum { TILE = 8 };
#define V           int32x4_t
#define LOAD(p)     vld1q_s32((const i32 *)(const void *)(p))
#define STORE(p, v) vst1q_s32((i32 *)(void *)(p), v)
#define ONE(x)      vdupq_n_s32((i32)(x))
static inline V PAIRS(V s, V x, V y)
{
    const int16x8_t a = vreinterpretq_s16_s32(x), b = vreinterpretq_s16_s32(y);
    return vaddq_s32(s, vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b)));
}
#ifdef __ARM_FEATURE_MATMUL_INT8
#define BYTES(s, x, y) vusdotq_s32(s, vreinterpretq_u8_s32(x), vreinterpretq_s8_s32(y))
#endif
#else
enum { TILE = 4 };
typedef u32 V __attribute__((vector_size(16)));
typedef i32 Signed __attribute__((vector_size(16)));
#define LOW(x)         ((V)((Signed)((x) << 16) >> 16))
#define HIGH(x)        ((V)((Signed)(x) >> 16))
#define PAIRS(s, x, y) ((s) + LOW(x) * LOW(y) + HIGH(x) * HIGH(y))
static inline V LOAD(const void *p)
{
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void STORE(void *p, V v)
{
    memcpy(p, &v, sizeof v);
}
static inline V ONE(u32 x)
{
    return (V){ x, x, x, x };
}
#endif

enum {
    LANES = sizeof(V) / sizeof(i32),
    WIDTH = VECTORS * LANES,
    AT_A_TIME = 128, /* words of a panel that stay in a first-level cache */
};

/* ---- words ---- */

/* Packs up to a whole tile or panel, of `group` lanes. */
typedef void PackGroup(const CodeLanes *c, size_t group, size_t lanes, const void *codes, u32 *to);

#define PAIR(shift, x, y) ((u32)(uint16_t)((i32)(x) + (shift)) | (u32)((i32)(y) + (shift)) << 16)
#define PACK_PAIRS(T, shift)                                                                                           \
    static void pairs_##T(const CodeLanes *c, size_t group, size_t lanes, const void *codes, u32 *restrict to)         \
    {                                                                                                                  \
        const T *restrict from = codes;                                                                                \
        const size_t lane = c->lane, step = c->step;                                                                   \
        for (size_t k = 0; k + 2 <= c->k; k += 2, from += 2 * step, to += group) {                                     \
            if (lane == 1) {                                                                                           \
                LEVEL_VECTOR                                                                                           \
                for (size_t i = 0; i < lanes; i++)                                                                     \
                    to[i] = PAIR(shift, from[i], from[step + i]);                                                      \
            } else {                                                                                                   \
                for (size_t i = 0; i < lanes; i++)                                                                     \
                    to[i] = PAIR(shift, from[i * lane], from[i * lane + step]);                                        \
            }                                                                                                          \
        }                                                                                                              \
        for (size_t i = 0; c->k % 2 && i < lanes; i++)                                                                 \
            to[i] = PAIR(shift, from[i * lane], -(shift));                                                             \
    }
PACK_PAIRS(uint8_t, 0)
PACK_PAIRS(int8_t, 0)
PACK_PAIRS(uint16_t, INT16_MIN)
PACK_PAIRS(int16_t, 0)
#undef PACK_PAIRS

static const struct {
    PackGroup *pack;
    i32 shift;
} of_pairs[CODE_TYPES] = {
    [CODE_U8] = { pairs_uint8_t, 0 },
    [CODE_I8] = { pairs_int8_t, 0 },
    [CODE_U16] = { pairs_uint16_t, INT16_MIN },
    [CODE_I16] = { pairs_int16_t, 0 },
};

/* Adds up what the words of lanes hold, so many of each, a group apart. */
typedef void AddWords(size_t n, size_t group, size_t lanes, const u32 *words, i32 *sums);

static void add_pairs(size_t n, size_t group, size_t lanes, const u32 *restrict words, i32 *restrict sums)
{
    for (size_t w = 0; w < n; w++, words += group) {
        LEVEL_VECTOR
        for (size_t i = 0; i < lanes; i++)
            sums[i] = (i32)((u32)sums[i] + (u32)(i32)(int16_t)words[i] + (u32)(i32)(int16_t)(words[i] >> 16));
    }
}

/* The words of all lanes, each group's `apart` from the one before it. */
static void pack_lanes(const CodeLanes *c, PackGroup *pack, AddWords *add, size_t depth, size_t group,
                       const void *codes, u32 *to, size_t apart, i32 *sums)
{
    const size_t words = (c->k + depth - 1) / depth, size = c->type < CODE_U16 ? 1 : 2;
    for (size_t i = 0; i < c->lanes; i += group, to += apart) {
        const size_t lanes = c->lanes - i < group ? c->lanes - i : group;
        pack(c, group, lanes, (const char *)codes + i * c->lane * size, to);
        for (size_t w = 0; lanes < group && w < words; w++)
            memset(to + w * group + lanes, 0, (group - lanes) * sizeof *to);
        if (sums)
            add(words, group, lanes, to, sums + i);
    }
}

static void pack_rows_pairs(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums)
{
    pack_lanes(c, of_pairs[c->type].pack, add_pairs, 2, TILE, codes, to, apart, sums);
}

static void pack_columns_pairs(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums)
{
    pack_lanes(c, of_pairs[c->type].pack, add_pairs, 2, WIDTH, codes, to, apart, sums);
}

#ifdef BYTES
/* Words of four codes for all whole words of k, the signs of which are kept, or turned into those of the other kind. */
#ifdef __AVX512BW__
/* The words of lanes that lie along k are theirs, turned. */
static void words_along(const CodeLanes *c, u32 flip, size_t group, size_t lanes, const uint8_t *from, u32 *to)
{
    const size_t words = c->k / 4;
    turn_words_wide(lanes, words, from, c->lane, to, group);
    for (size_t w = 0; flip && w < words; w++, to += group) {
        LEVEL_VECTOR
        for (size_t i = 0; i < lanes; i++)
            to[i] ^= flip;
    }
}

static void words_across(const CodeLanes *c, u32 flip, size_t group, size_t lanes, const uint8_t *from, u32 *to)
{
    const __m512i turned = _mm512_set1_epi32((i32)flip);
    for (size_t k = 0; k + 4 <= c->k; k += 4, from += 4 * c->step, to += group)
        for (size_t i = 0; i < lanes; i += LANES) {
            const __mmask16 some = (__mmask16)(lanes - i < LANES ? (1u << (lanes - i)) - 1 : 0xffff);
            __m512i word = turned;
            for (int s = 0; s < 4; s++) {
                const __m128i codes = _mm_maskz_loadu_epi8(some, from + (size_t)s * c->step + i);
                word = _mm512_xor_si512(word, _mm512_slli_epi32(_mm512_cvtepu8_epi32(codes), 8 * (unsigned)s));
            }
            _mm512_mask_storeu_epi32(to + i, some, word);
        }
}
#else
static void words_along(const CodeLanes *c, u32 flip, size_t group, size_t lanes, const uint8_t *from, u32 *to)
{
    for (size_t k = 0; k + 4 <= c->k; k += 4, from += 4, to += group)
        for (size_t i = 0; i < lanes; i++) {
            memcpy(to + i, from + i * c->lane, sizeof *to);
            to[i] ^= flip;
        }
}

static void words_across(const CodeLanes *c, u32 flip, size_t group, size_t lanes, const uint8_t *restrict from,
                         u32 *restrict to)
{
    const size_t step = c->step;
    for (size_t k = 0; k + 4 <= c->k; k += 4, from += 4 * step, to += group) {
        LEVEL_VECTOR
        for (size_t i = 0; i < lanes; i++)
            to[i] = ((u32)from[i] | (u32)from[step + i] << 8 | (u32)from[2 * step + i] << 16 |
                     (u32)from[3 * step + i] << 24) ^
                    flip;
    }
}
#endif

static void words_apart(const CodeLanes *c, u32 flip, size_t group, size_t lanes, const uint8_t *from, u32 *to)
{
    const size_t step = c->step;
    for (size_t k = 0; k + 4 <= c->k; k += 4, from += 4 * step, to += group)
        for (size_t i = 0; i < lanes; i++) {
            const uint8_t *f = from + i * c->lane;
            to[i] = ((u32)f[0] | (u32)f[step] << 8 | (u32)f[2 * step] << 16 | (u32)f[3 * step] << 24) ^ flip;
        }
}

/* The words of lanes, the last of which may be of fewer codes. */
static void quads(const CodeLanes *c, u32 flip, size_t group, size_t lanes, const uint8_t *from, u32 *to)
{
    const size_t whole = c->k / 4, step = c->step;
    (c->lane == 1 ? words_across : step == 1 ? words_along : words_apart)(c, flip, group, lanes, from, to);
    from += 4 * whole * step;
    to += whole * group;
    const size_t rest = c->k % 4;
    for (size_t i = 0; rest && i < lanes; i++) {
        to[i] = 0;
        for (size_t s = 0; s < rest; s++)
            to[i] |= (u32)(from[i * c->lane + s * step] ^ (flip & 0xff)) << 8 * s;
    }
}

enum { TURN_SIGN = 0x80 };

static void quads_kept(const CodeLanes *c, size_t group, size_t lanes, const void *codes, u32 *to)
{
    quads(c, 0, group, lanes, codes, to);
}

static void quads_turned(const CodeLanes *c, size_t group, size_t lanes, const void *codes, u32 *to)
{
    quads(c, TURN_SIGN * 0x01010101u, group, lanes, codes, to);
}

static void add_plain(size_t n, size_t group, size_t lanes, const u32 *restrict words, i32 *restrict sums)
{
    for (size_t k = 0; k < n; k++, words += group) {
        LEVEL_VECTOR
        for (size_t i = 0; i < lanes; i++) {
            const u32 w = words[i];
            sums[i] = (i32)((u32)sums[i] + (w & 0xff) + (w >> 8 & 0xff) + (w >> 16 & 0xff) + (w >> 24));
        }
    }
}

/* Whole panels are multiplied with ones. */
static void add_signed(size_t n, size_t group, size_t lanes, const u32 *restrict words, i32 *restrict sums)
{
    const V one = ONE(0x01010101);
    for (size_t j = 0; lanes == WIDTH && j < VECTORS; j++) {
        V sum = LOAD(sums + j * LANES);
        for (size_t k = 0; k < n; k++)
            sum = BYTES(sum, one, LOAD(words + k * group + j * LANES));
        STORE(sums + j * LANES, sum);
    }
    for (size_t k = 0; lanes < WIDTH && k < n; k++, words += group) {
        LEVEL_VECTOR
        for (size_t i = 0; i < lanes; i++) {
            const u32 w = words[i];
            const i32 four = (i32)(int8_t)w + (i32)(int8_t)(w >> 8) + (i32)(int8_t)(w >> 16) + (i32)(int8_t)(w >> 24);
            sums[i] = (i32)((u32)sums[i] + (u32)four);
        }
    }
}

static void pack_rows_bytes(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums)
{
    pack_lanes(c, c->type == CODE_U8 ? quads_kept : quads_turned, add_plain, 4, TILE, codes, to, apart, sums);
}

static void pack_columns_bytes(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums)
{
    pack_lanes(c, c->type == CODE_I8 ? quads_kept : quads_turned, add_signed, 4, WIDTH, codes, to, apart, sums);
}
#endif

/* ---- products ---- */

/* A tile of `rows` rows against a panel, in registers for all words. */
#define TILE_OF(DOT, rows)                                                                                             \
    static void DOT##_##rows(size_t words, const u32 *a, const u32 *b, i32 *c, size_t ldc, bool fresh)                 \
    {                                                                                                                  \
        V sum[rows][VECTORS];                                                                                          \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                sum[i][j] = fresh ? ONE(0) : LOAD(c + i * ldc + j * LANES);                                            \
        for (size_t w = 0; w < words; w++) {                                                                           \
            V column[VECTORS];                                                                                         \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                column[j] = LOAD(b + w * WIDTH + j * LANES);                                                           \
            for (size_t i = 0; i < (rows); i++) {                                                                      \
                const V row = ONE(a[w * TILE + i]);                                                                    \
                for (size_t j = 0; j < VECTORS; j++)                                                                   \
                    sum[i][j] = DOT(sum[i][j], row, column[j]);                                                        \
            }                                                                                                          \
        }                                                                                                              \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                STORE(c + i * ldc + j * LANES, sum[i][j]);                                                             \
    }

#define MULTIPLY(DOT)                                                                                                  \
    TILE_OF(DOT, TILE)                                                                                                 \
    TILE_OF(DOT, 4)                                                                                                    \
    TILE_OF(DOT, 1)                                                                                                    \
    static void multiply_##DOT(size_t m, size_t panels, size_t words, const u32 *a, size_t tile, const u32 *b,         \
                               size_t panel, i32 *c, size_t ldc, bool fresh)                                           \
    {                                                                                                                  \
        for (size_t j = 0; j < panels; j++, b += panel, c += WIDTH) {                                                  \
            size_t i = 0;                                                                                              \
            for (; i + TILE <= m; i += TILE)                                                                           \
                DOT##_TILE(words, a + i / TILE * tile, b, c + i * ldc, ldc, fresh);                                    \
            for (const u32 *rest = a + i / TILE * tile; i < m;) {                                                      \
                const size_t rows = m - i < 4 ? 1 : 4;                                                                 \
                (rows == 1 ? DOT##_1 : DOT##_4)(words, rest, b, c + i * ldc, ldc, fresh);                              \
                rest += rows, i += rows;                                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }
MULTIPLY(PAIRS)
#ifdef BYTES
MULTIPLY(BYTES)
#endif
#undef MULTIPLY
#undef TILE_OF

static void correct(size_t n, u32 by_zero, const u32 *restrict zeros, u32 by_sum, const i32 *restrict sums,
                    i32 *restrict c)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        c[i] = (i32)((u32)c[i] + by_zero * zeros[i] + by_sum * (u32)sums[i]);
}

#define OF_PAIRS                                                                                                       \
    {                                                                                                                  \
        .rows = TILE, .width = WIDTH, .depth = 2, .whole = 1, .at_a_time = AT_A_TIME,                                  \
        .row_shift = { [CODE_U16] = INT16_MIN }, .column_shift = { [CODE_U16] = INT16_MIN },                           \
        .pack_rows = pack_rows_pairs, .pack_columns = pack_columns_pairs, .multiply = multiply_PAIRS,                  \
        .correct = correct                                                                                             \
    }

const CodeProducts LEVEL_NAME(code_products)[2] = {
#ifdef BYTES
    { .rows = TILE,
      .width = WIDTH,
      .depth = 4,
      .whole = 1,
      .at_a_time = AT_A_TIME,
      .row_shift = { [CODE_I8] = TURN_SIGN },
      .column_shift = { [CODE_U8] = -TURN_SIGN },
      .pack_rows = pack_rows_bytes,
      .pack_columns = pack_columns_bytes,
      .multiply = multiply_BYTES,
      .correct = correct },
#else
    OF_PAIRS,
#endif
    OF_PAIRS,
};
