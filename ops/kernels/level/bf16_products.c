/* Products of bf16 with sums in f32, two steps of k at a time: where the level has an instruction for them.
 *
 * Both operands are packed into words of 32 bits, each of which holds two steps of k of one lane, a row or a column.  The
 * instruction takes subnormal numbers, operands and sums, for zeros and rounds sums of two products on its own, so that these
 * are not the bits of products of widened operands (docs/arithmetic.md says how near they are). */
#include "ops/kernels/level/bf16_words.h"

#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)

enum { DEPTH = DEPTH_OF_WORD, ROWS = 12, VECTORS = 2, LANES = 16, WIDTH = VECTORS * LANES, FEW = 4 };

static void pack_rows(size_t m, size_t k, const void *a, size_t row, size_t step, void *to, size_t apart)
{
    for (size_t i = 0; i < m; i += ROWS)
        pack_words(m - i < ROWS ? m - i : ROWS, k, ROWS, (const u16 *)a + i * row, row, step,
                   (u32 *)to + i / ROWS * (apart / DEPTH));
}

static void pack_columns(size_t n, size_t k, const void *b, size_t row, size_t step, void *to, size_t apart)
{
    pack_panels(WIDTH, 1, n, k, b, row, step, to, apart / DEPTH);
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

const PackedLoops LEVEL_NAME(packed_bf16) = {
    .rows = ROWS,
    .width = WIDTH,
    .depth = DEPTH,
    .at_a_time = USUAL_DEPTH,
    .pack_rows = pack_rows,
    .pack_columns = pack_columns,
    .multiply = multiply,
};
#elif !defined(__AMX_BF16__)
const PackedLoops LEVEL_NAME(packed_bf16) = { 0 };
#endif
