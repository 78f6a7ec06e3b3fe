/* Products of bf16 with sums in f32, two steps of k at a time: where the level has an instruction for them.
 *
 * Both operands are packed into words of 32 bits, each of which holds two steps of k of one lane, a row or a column.  The
 * instruction takes subnormal numbers, operands and sums, for zeros and rounds sums of two products on its own, so that these
 * are not the bits of products of widened operands (docs/arithmetic.md says how near they are). */
#include "ops/kernels/level/turn.h"

#include <string.h>

#ifdef __AVX512BF16__
#include <immintrin.h>

enum { DEPTH = 2, ROWS = 12, VECTORS = 2, LANES = 16, WIDTH = VECTORS * LANES, FEW = 4, TURNED = 64 };

/* Words of `lanes` lanes whose steps are neighbours, four lanes by four words at a time. */
static void turn_words(size_t lanes, size_t words, size_t group, const u16 *from, size_t lane, u32 *to)
{
    size_t i = 0;
    if (lanes >= TURN_LEAST && words >= TURN_LEAST) {
        turn_words_wide(lanes, words, from, lane * sizeof *from, to, group);
        return;
    }
    for (; i + 4 <= lanes; i += 4) {
        const u16 *x = from + i * lane;
        size_t w = 0;
        for (; w + 4 <= words; w += 4) {
            __m128 a = _mm_loadu_ps((const void *)(x + 2 * w)), b = _mm_loadu_ps((const void *)(x + lane + 2 * w)),
                   c = _mm_loadu_ps((const void *)(x + 2 * lane + 2 * w)),
                   d = _mm_loadu_ps((const void *)(x + 3 * lane + 2 * w));
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps((void *)(to + w * group + i), a);
            _mm_storeu_ps((void *)(to + (w + 1) * group + i), b);
            _mm_storeu_ps((void *)(to + (w + 2) * group + i), c);
            _mm_storeu_ps((void *)(to + (w + 3) * group + i), d);
        }
        for (; w < words; w++)
            for (size_t r = 0; r < 4; r++)
                memcpy(to + w * group + i + r, x + r * lane + 2 * w, sizeof *to);
    }
    for (; i < lanes; i++)
        for (size_t w = 0; w < words; w++)
            memcpy(to + w * group + i, from + i * lane + 2 * w, sizeof *to);
}

/* Words of lanes that are neighbours, or lie anyhow. */
static void pair_steps(size_t lanes, size_t words, size_t group, const u16 *restrict from, size_t lane, size_t step,
                       u32 *restrict to)
{
    for (size_t w = 0; w < words; w++, from += 2 * step, to += group) {
        if (lane == 1 && lanes == WIDTH) { /* of a known number: whole vectors */
            LEVEL_VECTOR
            for (size_t i = 0; i < WIDTH; i++)
                to[i] = (u32)from[i] | (u32)from[step + i] << 16;
        } else if (lane == 1) {
            LEVEL_VECTOR
            for (size_t i = 0; i < lanes; i++)
                to[i] = (u32)from[i] | (u32)from[step + i] << 16;
        } else {
            for (size_t i = 0; i < lanes; i++)
                to[i] = (u32)from[i * lane] | (u32)from[i * lane + step] << 16;
        }
    }
}

/* Up to `group` lanes of k steps; behind an odd k stands a zero. */
static void pack(size_t lanes, size_t k, size_t group, const u16 *from, size_t lane, size_t step, u32 *to)
{
    const size_t words = k / DEPTH;
    for (size_t w = 0; w < words && step == 1; w += TURNED) /* what is written stays in a first-level cache */
        turn_words(lanes, words - w < TURNED ? words - w : TURNED, group, from + DEPTH * w, lane, to + w * group);
    if (step != 1)
        pair_steps(lanes, words, group, from, lane, step, to);
    for (size_t i = 0; k % DEPTH && i < lanes; i++)
        to[words * group + i] = from[i * lane + (k - 1) * step];
}

static void pack_rows(size_t m, size_t k, const void *a, size_t row, size_t step, void *to, size_t apart)
{
    for (size_t i = 0; i < m; i += ROWS)
        pack(m - i < ROWS ? m - i : ROWS, k, ROWS, (const u16 *)a + i * row, row, step,
             (u32 *)to + i / ROWS * (apart / DEPTH));
}

static void pack_columns(size_t n, size_t k, const void *b, size_t row, size_t step, void *to, size_t apart)
{
    const size_t words = (k + 1) / DEPTH;
    for (size_t j = 0; j < n; j += WIDTH) {
        const size_t width = n - j < WIDTH ? n - j : WIDTH;
        u32 *panel = (u32 *)to + j / WIDTH * (apart / DEPTH);
        pack(width, k, WIDTH, (const u16 *)b + j * step, step, row, panel);
        for (size_t w = 0; w < words && width < WIDTH; w++)
            memset(panel + w * WIDTH + width, 0, (WIDTH - width) * sizeof *panel);
    }
}

/* Some rows against one panel: sums live in registers for all words; fresh: they begin with zeros. */
#define TILE(id, rows)                                                                                                 \
    static void id(size_t words, const u32 *a, const u32 *b, f32 *c, size_t ldc, bool fresh)                           \
    {                                                                                                                  \
        __m512 sum[rows][VECTORS];                                                                                     \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                sum[i][j] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(c + i * ldc + j * LANES);                    \
        for (size_t w = 0; w < words; w++) {                                                                           \
            __m512i column[VECTORS];                                                                                   \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                column[j] = _mm512_loadu_si512(b + w * WIDTH + j * LANES);                                             \
            for (size_t i = 0; i < (rows); i++) {                                                                      \
                const __m512i one = _mm512_set1_epi32((i32)a[w * ROWS + i]);                                           \
                for (size_t j = 0; j < VECTORS; j++)                                                                   \
                    sum[i][j] = _mm512_dpbf16_ps(sum[i][j], (__m512bh)one, (__m512bh)column[j]);                       \
            }                                                                                                          \
        }                                                                                                              \
        for (size_t i = 0; i < (rows); i++)                                                                            \
            for (size_t j = 0; j < VECTORS; j++)                                                                       \
                _mm512_storeu_ps(c + i * ldc + j * LANES, sum[i][j]);                                                  \
    }
TILE(tile_full, ROWS)
TILE(tile_few, FEW)
TILE(tile_one, 1)
#undef TILE

static void tile_rows(size_t m, size_t words, const u32 *a, const u32 *b, f32 *c, size_t ldc, bool fresh)
{
    size_t i = 0;
    if (m == ROWS) {
        tile_full(words, a, b, c, ldc, fresh);
        return;
    }
    for (; i + FEW <= m; i += FEW)
        tile_few(words, a + i, b, c + i * ldc, ldc, fresh);
    for (; i < m; i++)
        tile_one(words, a + i, b, c + i * ldc, ldc, fresh);
}

/* The same where columns are missing: through a tile of its own. */
static void tile_edge(size_t m, size_t n, size_t words, const u32 *a, const u32 *b, f32 *c, size_t ldc, bool fresh)
{
    f32 tile[ROWS * WIDTH];
    for (size_t i = 0; i < m && !fresh; i++) {
        memcpy(tile + i * WIDTH, c + i * ldc, n * sizeof *tile);
        memset(tile + i * WIDTH + n, 0, (WIDTH - n) * sizeof *tile);
    }
    tile_rows(m, words, a, b, tile, WIDTH, fresh);
    for (size_t i = 0; i < m; i++)
        memcpy(c + i * ldc, tile + i * WIDTH, n * sizeof *tile);
}

static void multiply(size_t m, size_t n, size_t k, const void *rows, size_t tile, const void *columns, void *to,
                     size_t ldc, bool fresh)
{
    const size_t words = (k + 1) / DEPTH;
    const u32 *a = rows;
    for (size_t i = 0; i < m; i += ROWS, a += tile / DEPTH) {
        const size_t some = m - i < ROWS ? m - i : ROWS;
        const u32 *b = columns;
        f32 *c = (f32 *)to + i * ldc;
        for (size_t j = 0; j < n; j += WIDTH, b += words * WIDTH) {
            if (n - j >= WIDTH)
                tile_rows(some, words, a, b, c + j, ldc, fresh);
            else
                tile_edge(some, n - j, words, a, b, c + j, ldc, fresh);
        }
    }
}

const PackedLoops LEVEL_NAME(packed_bf16) = { ROWS, WIDTH, DEPTH, pack_rows, pack_columns, multiply, NULL, NULL };
#else
const PackedLoops LEVEL_NAME(packed_bf16) = { 0 };
#endif
