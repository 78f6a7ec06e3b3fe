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

static void pack_rows(size_t m, size_t k, const void *a, size_t row, size_t step, void *to, size_t apart)
{
    for (size_t i = 0; i < m; i += ROWS) {
        const size_t some = m - i < ROWS ? m - i : ROWS;
        const u16 *from = (const u16 *)a + i * row;
        u16 *tile = (u16 *)to + i / ROWS * apart;
        for (size_t p = 0; p < k; p += DEPTH, tile += ROWS * DEPTH) {
            const size_t steps = k - p < DEPTH ? k - p : DEPTH;
            if (step == 1)
                copy_block(some, steps, from + p, row, tile);
            else
                turn_block(some, steps, from + p * step, row, step, tile);
        }
    }
}

static void pack_columns(size_t n, size_t k, const void *b, size_t row, size_t step, void *to, size_t apart)
{
    pack_panels(WIDTH, TILE_SIDE, n, k, b, row, step, to, apart / DEPTH_OF_WORD);
}

static void multiply(size_t m, size_t n, size_t k, const void *rows, size_t tile, const void *columns, void *to,
                     size_t ldc, bool fresh)
{
    enum { LINE = WIDTH * sizeof(u32) };
    const size_t blocks = (k + DEPTH - 1) / DEPTH;
    const u16 *a = rows;
    tiles_begin();
    for (size_t i = 0; i < m; i += ROWS, a += tile) {
        const char *b = columns;
        for (size_t j = 0; j < n; j += WIDTH, b += blocks * TILE_SIDE * LINE)
            add_tiles(m - i < ROWS ? m - i : ROWS, n - j < WIDTH ? n - j : WIDTH, blocks, (const char *)a, TILE_LINE,
                      TILE_SIDE * TILE_LINE, ROWS * TILE_LINE, b, LINE, (u32 *)to + i * ldc + j, ldc, fresh);
    }
    tiles_end();
}

const PackedLoops LEVEL_NAME(packed_bf16) = { ROWS, WIDTH, DEPTH, pack_rows, pack_columns, multiply, NULL, NULL };
#endif
