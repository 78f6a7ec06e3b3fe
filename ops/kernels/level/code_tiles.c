/* Sums of products of codes of 8 bits, tile by tile, where the level has tiles: bytes of either sign as they are.
 *
 * Columns are packed as words in panels, as code_products.c has them.  Rows are packed in tiles of 32, block by block of sixteen
 * words: the codes of a row are neighbours.  What is filled up are zeros. */
#include "ops/kernels/level/tiles.h"
#include "ops/kernels/level/turn.h"

#include <string.h>

#ifdef __AMX_INT8__

enum {
    ROWS = 2 * TILE_SIDE,
    WIDTH = 2 * TILE_SIDE,
    DEPTH = 4,
    STEPS = TILE_LINE,          /* codes of a row in a block */
    AT_A_TIME = 16 * TILE_SIDE, /* words of a panel that stay in a first-level cache */
    SQUARE = ROWS * TILE_SIDE,  /* words of a block */
};

static size_t blocks_of(size_t k)
{
    return (k + STEPS - 1) / STEPS;
}

/* ---- words of codes that are neighbours in a step ---- */

/* Words of `steps` codes of up to 32 lanes, which are neighbours; zeros behind them. */
static inline void quad(size_t lanes, size_t steps, const u8 *from, size_t step, u32 *to)
{
    enum { LOW = 0x20, HIGH = 0x31 };
    const __mmask32 some = (__mmask32)(((uint64_t)1 << lanes) - 1);
    const __m256i none = _mm256_setzero_si256();
    const __m256i a = _mm256_maskz_loadu_epi8(some, from);
    const __m256i b = steps > 1 ? _mm256_maskz_loadu_epi8(some, from + step) : none;
    const __m256i c = steps > 2 ? _mm256_maskz_loadu_epi8(some, from + 2 * step) : none;
    const __m256i d = steps > 3 ? _mm256_maskz_loadu_epi8(some, from + 3 * step) : none;
    const __m256i ab = _mm256_unpacklo_epi8(a, b), cd = _mm256_unpacklo_epi8(c, d);
    const __m256i ab_high = _mm256_unpackhi_epi8(a, b), cd_high = _mm256_unpackhi_epi8(c, d);
    const __m256i w0 = _mm256_unpacklo_epi16(ab, cd), w1 = _mm256_unpackhi_epi16(ab, cd);
    const __m256i w2 = _mm256_unpacklo_epi16(ab_high, cd_high), w3 = _mm256_unpackhi_epi16(ab_high, cd_high);
    __m256i *y = (__m256i *)(void *)to;
    _mm256_storeu_si256(y, _mm256_permute2x128_si256(w0, w1, LOW));
    _mm256_storeu_si256(y + 1, _mm256_permute2x128_si256(w2, w3, LOW));
    _mm256_storeu_si256(y + 2, _mm256_permute2x128_si256(w0, w1, HIGH));
    _mm256_storeu_si256(y + 3, _mm256_permute2x128_si256(w2, w3, HIGH));
}

/* Lanes of up to 64 codes that lie anyhow: their words, 32 of a step. */
static void quad_loose(const CodeLanes *c, size_t lanes, size_t steps, const u8 *from, u32 *to)
{
    u8 lines[STEPS * WIDTH];
    for (size_t k = 0; k < steps && c->lane != 1; k++)
        for (size_t i = 0; i < lanes; i++)
            lines[k * WIDTH + i] = from[i * c->lane + k * c->step];
    const u8 *line = c->lane == 1 ? from : lines;
    const size_t step = c->lane == 1 ? c->step : WIDTH;
    for (size_t k = 0; k < steps; k += DEPTH, line += DEPTH * step, to += WIDTH)
        quad(lanes, steps - k, line, step, to);
}

/* ---- packing ---- */

/* Rows whose codes are neighbours. */
static void copy_rows(size_t lanes, size_t k, const u8 *from, size_t lane, u32 *to)
{
    const size_t whole = k / STEPS, rest = k % STEPS;
    const __mmask64 some = ((__mmask64)1 << rest) - 1;
    for (size_t i = 0; i < lanes; i++, from += lane, to += TILE_SIDE) {
        u32 *y = to;
        for (size_t b = 0; b < whole; b++, y += SQUARE)
            _mm512_storeu_si512(y, _mm512_loadu_si512(from + b * STEPS));
        if (rest)
            _mm512_storeu_si512(y, _mm512_maskz_loadu_epi8(some, from + whole * STEPS));
    }
}

static void turn_rows(const CodeLanes *c, size_t lanes, const u8 *from, u32 *to)
{
    u32 words[SQUARE];
    for (size_t k = 0; k < c->k; k += STEPS, to += SQUARE) {
        const size_t steps = c->k - k < STEPS ? c->k - k : STEPS, some = (steps + DEPTH - 1) / DEPTH;
        quad_loose(c, lanes, steps, from + k * c->step, words);
        memset(words + some * WIDTH, 0, (TILE_SIDE - some) * WIDTH * sizeof *words);
        turn_words_wide(TILE_SIDE, lanes, words, WIDTH * sizeof *words, to, TILE_SIDE);
    }
}

/* Four codes with a sign, or without one, and the sum of both their products by one. */
static inline __m512i add_bytes(__m512i sum, __m512i v, bool sign)
{
    const __m512i one = _mm512_set1_epi8(1);
    return sign ? _mm512_dpbusd_epi32(sum, one, v) : _mm512_dpbusd_epi32(sum, v, one);
}

static void add_rows(size_t lanes, size_t blocks, bool sign, const u32 *tile, i32 *sums)
{
    for (size_t i = 0; i < lanes; i++, tile += TILE_SIDE) {
        __m512i sum = _mm512_setzero_si512();
        for (size_t b = 0; b < blocks; b++)
            sum = add_bytes(sum, _mm512_loadu_si512(tile + b * SQUARE), sign);
        sums[i] = (i32)((u32)sums[i] + (u32)_mm512_reduce_add_epi32(sum));
    }
}

static void pack_rows(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums)
{
    const size_t blocks = blocks_of(c->k);
    for (size_t i = 0; i < c->lanes; i += ROWS, to += apart) {
        const size_t lanes = c->lanes - i < ROWS ? c->lanes - i : ROWS;
        const u8 *from = (const u8 *)codes + i * c->lane;
        if (c->step == 1)
            copy_rows(lanes, c->k, from, c->lane, to);
        else
            turn_rows(c, lanes, from, to);
        for (size_t b = 0; b < blocks && lanes < ROWS; b++)
            memset(to + b * SQUARE + lanes * TILE_SIDE, 0, (ROWS - lanes) * TILE_LINE);
        if (sums)
            add_rows(lanes, blocks, c->type == CODE_I8, to, sums + i);
    }
}

static void add_columns(size_t lanes, size_t words, bool sign, const u32 *panel, i32 *sums)
{
    __m512i sum[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    for (size_t w = 0; w < words; w++)
        for (size_t i = 0; i < 2; i++)
            sum[i] = add_bytes(sum[i], _mm512_loadu_si512(panel + w * WIDTH + i * TILE_SIDE), sign);
    for (size_t i = 0; i < 2; i++) {
        const size_t some = lanes > i * TILE_SIDE ? lanes - i * TILE_SIDE : 0;
        const __mmask16 mask = (__mmask16)(some < TILE_SIDE ? (1u << some) - 1 : 0xffff);
        i32 *to = sums + i * TILE_SIDE;
        _mm512_mask_storeu_epi32(to, mask, _mm512_add_epi32(sum[i], _mm512_maskz_loadu_epi32(mask, to)));
    }
}

/* Columns whose codes are neighbours: whole words, turned, and what is left. */
static void turn_columns(const CodeLanes *c, size_t lanes, const u8 *from, u32 *to)
{
    enum { SOME = 64 }; /* words of a lane at a time: what is written stays in a first-level cache */
    const size_t words = c->k / DEPTH, rest = c->k % DEPTH;
    for (size_t w = 0; w < words; w += SOME)
        turn_words_wide(lanes, words - w < SOME ? words - w : SOME, from + w * DEPTH, c->lane, to + w * WIDTH, WIDTH);
    for (size_t w = 0; w < words && lanes < WIDTH; w++)
        memset(to + w * WIDTH + lanes, 0, (WIDTH - lanes) * sizeof *to);
    if (rest)
        memset(to + words * WIDTH, 0, WIDTH * sizeof *to);
    for (size_t i = 0; rest && i < lanes; i++)
        memcpy(to + words * WIDTH + i, from + i * c->lane + words * DEPTH, rest);
}

static void pack_columns(const CodeLanes *c, const void *codes, u32 *to, size_t apart, i32 *sums)
{
    const size_t words = (c->k + DEPTH - 1) / DEPTH, filled = blocks_of(c->k) * TILE_SIDE;
    for (size_t j = 0; j < c->lanes; j += WIDTH, to += apart) {
        const size_t lanes = c->lanes - j < WIDTH ? c->lanes - j : WIDTH;
        const u8 *from = (const u8 *)codes + j * c->lane;
        if (c->step == 1 && c->lane != 1)
            turn_columns(c, lanes, from, to);
        else
            for (size_t k = 0; k < c->k; k += STEPS)
                quad_loose(c, lanes, c->k - k < STEPS ? c->k - k : STEPS, from + k * c->step, to + k / DEPTH * WIDTH);
        memset(to + words * WIDTH, 0, (filled - words) * WIDTH * sizeof *to);
        if (sums)
            add_columns(lanes, words, c->type == CODE_I8, to, sums + j);
    }
}

/* ---- products ---- */

static void correct(size_t n, u32 by_zero, const u32 *restrict zeros, u32 by_sum, const i32 *restrict sums,
                    i32 *restrict c)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        c[i] = (i32)((u32)c[i] + by_zero * zeros[i] + by_sum * (u32)sums[i]);
}

/* Panels outside: one stays in a first-level cache for all rows. */
#define MULTIPLY(kind)                                                                                                 \
    TILES(add_##kind, TILE_BYTES_##kind)                                                                               \
    static void multiply_##kind(size_t m, size_t panels, size_t words, const u32 *a, size_t tile, const u32 *b,        \
                                size_t panel, i32 *c, size_t ldc, bool fresh)                                          \
    {                                                                                                                  \
        enum { LINE = WIDTH * sizeof(u32) };                                                                           \
        tiles_begin();                                                                                                 \
        for (size_t j = 0; j < panels; j++, b += panel, c += WIDTH)                                                    \
            for (size_t i = 0; i < m; i += ROWS)                                                                       \
                add_##kind(m - i < ROWS ? m - i : ROWS, WIDTH, words / TILE_SIDE, (const char *)(a + i / ROWS * tile), \
                           TILE_LINE, TILE_SIDE * TILE_LINE, ROWS * TILE_LINE, (const char *)b, LINE,                  \
                           (u32 *)c + i * ldc, ldc, fresh);                                                            \
        tiles_end();                                                                                                   \
    }
MULTIPLY(UU)
MULTIPLY(US)
MULTIPLY(SU)
MULTIPLY(SS)

#define OF(kind)                                                                                                       \
    {                                                                                                                  \
        .rows = ROWS, .width = WIDTH, .depth = DEPTH, .whole = TILE_SIDE, .at_a_time = AT_A_TIME,                      \
        .pack_rows = pack_rows, .pack_columns = pack_columns, .multiply = multiply_##kind, .correct = correct          \
    }

const CodeProducts LEVEL_NAME(code_tiles)[2][2] = { { OF(UU), OF(US) }, { OF(SU), OF(SS) } };
#else
const CodeProducts LEVEL_NAME(code_tiles)[2][2] = { { { 0 } } };
#endif
