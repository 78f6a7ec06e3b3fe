/* Products of bf16 with sums in f32, tile by tile, where the level has tiles.
 *
 * Columns are packed as words in panels, as bf16_products.c has them.  Rows are packed in tiles of 32, block by block of 32 steps of
 * k: the steps of a row are neighbours.  What is filled up are zeros, whose products are exact; the instruction flushes and rounds
 * as docs/arithmetic.md says. */
#include "ops/kernels/level/bf16_words.h"
#include "ops/kernels/level/tiles.h"

#include <string.h>

#ifdef __AMX_BF16__

enum { ROWS = 2 * TILE_SIDE, WIDTH = 2 * TILE_SIDE, DEPTH = TILE_SIDE * DEPTH_OF_WORD };

TILES(add_tiles, TILE_BF16)

/* A block of rows whose steps are neighbours. */
static void copy_block(size_t m, size_t k, const u16 *from, size_t row, u16 *to)
{
    for (size_t i = 0; i < m && k == DEPTH; i++)
        memcpy(to + i * DEPTH, from + i * row, DEPTH * sizeof *to);
    for (size_t i = 0; i < m && k < DEPTH; i++) {
        memcpy(to + i * DEPTH, from + i * row, k * sizeof *to);
        memset(to + i * DEPTH + k, 0, (DEPTH - k) * sizeof *to);
    }
}

/* One whose rows are neighbours, or that lies anyhow: words of rows beside each other, turned. */
static void turn_block(size_t m, size_t k, const u16 *from, size_t row, size_t step, u16 *to)
{
    u32 words[TILE_SIDE * ROWS];
    pair_steps(m, k / DEPTH_OF_WORD, ROWS, from, row, step, words);
    for (size_t i = 0; k % DEPTH_OF_WORD && i < m; i++)
        words[k / DEPTH_OF_WORD * ROWS + i] = from[i * row + (k - 1) * step];
    for (size_t w = (k + 1) / DEPTH_OF_WORD; w < TILE_SIDE; w++)
        memset(words + w * ROWS, 0, m * sizeof *words);
    turn_words_wide(TILE_SIDE, m, words, ROWS * sizeof *words, (u32 *)(void *)to, TILE_SIDE);
}

static void pack_block(size_t m, size_t k, const u16 *from, size_t row, size_t step, u16 *to)
{
    if (step == 1)
        copy_block(m, k, from, row, to);
    else
        turn_block(m, k, from, row, step, to);
}

/* Rows that are neighbours are walked along their steps, which each lie in a page of their own. */
static void pack_rows(size_t m, size_t k, const void *a, size_t row, size_t step, void *to, size_t apart)
{
    const size_t tiles = (m + ROWS - 1) / ROWS, blocks = (k + DEPTH - 1) / DEPTH;
    for (size_t at = 0; at < tiles * blocks; at++) {
        const size_t tile = step == 1 ? at / blocks : at % tiles, block = step == 1 ? at % blocks : at / tiles;
        const size_t i = tile * ROWS, p = block * DEPTH;
        pack_block(m - i < ROWS ? m - i : ROWS, k - p < DEPTH ? k - p : DEPTH, (const u16 *)a + i * row + p * step, row,
                   step, (u16 *)to + tile * apart + block * ROWS * DEPTH);
    }
}

static void pack_columns(size_t n, size_t k, const void *b, size_t row, size_t step, void *to, size_t apart)
{
    pack_panels(WIDTH, TILE_SIDE, n, k, b, row, step, to, apart / DEPTH_OF_WORD);
}

/* Where rows lie: from one to the next, to the second tile, to the next block, and to the next two tiles, in bytes. */
typedef struct Rows {
    size_t row, tile, block, apart;
} Rows;

static void multiply_rows(size_t m, size_t n, size_t k, const char *a, const Rows *r, const char *columns, u32 *c,
                          size_t ldc, bool fresh)
{
    enum { LINE = WIDTH * sizeof(u32) };
    const size_t blocks = (k + DEPTH - 1) / DEPTH;
    tiles_begin();
    for (size_t i = 0; i < m; i += ROWS, a += r->apart) {
        const char *b = columns;
        for (size_t j = 0; j < n; j += WIDTH, b += blocks * TILE_SIDE * LINE)
            add_tiles(m - i < ROWS ? m - i : ROWS, n - j < WIDTH ? n - j : WIDTH, blocks, a, r->row, r->tile, r->block,
                      b, LINE, c + i * ldc + j, ldc, fresh);
    }
    tiles_end();
}

static void multiply(size_t m, size_t n, size_t k, const void *a, size_t tile, const void *b, void *c, size_t ldc,
                     bool fresh)
{
    const Rows packed = { TILE_LINE, TILE_SIDE * TILE_LINE, ROWS * TILE_LINE, tile * sizeof(u16) };
    multiply_rows(m, n, k, a, &packed, b, c, ldc, fresh);
}

static void multiply_lying(size_t m, size_t n, size_t k, const void *a, size_t lda, const void *b, void *c, size_t ldc,
                           bool fresh)
{
    const size_t row = lda * sizeof(u16);
    const Rows lie = { row, TILE_SIDE * row, TILE_LINE, ROWS * row };
    multiply_rows(m, n, k, a, &lie, b, c, ldc, fresh);
}

static void copy_past(size_t rows, size_t cols, const f32 *from, size_t row, f32 *to, size_t to_row)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j += TILE_SIDE)
            _mm512_stream_ps(to + i * to_row + j, _mm512_loadu_ps(from + i * row + j));
    _mm_sfence();
}

const PackedLoops LEVEL_NAME(packed_bf16) = {
    .rows = ROWS,
    .width = WIDTH,
    .depth = DEPTH,
    .at_a_time = 2048,
    .pack_rows = pack_rows,
    .pack_columns = pack_columns,
    .multiply = multiply,
    .multiply_lying = multiply_lying,
    .copy_past = copy_past,
};
#endif
