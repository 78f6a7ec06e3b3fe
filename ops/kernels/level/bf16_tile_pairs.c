/* Products of words with sums in f32 (PairLoops) in tiles, where the level has them: blocks of sixteen words of a row, packed or of a
 * line that lies as it is, against sixteen words of as many columns, the lines of which lie apart.  What the instruction rounds and
 * flushes is what it does in bf16_tiles.c. */
#include "ops/kernels/level/bf16_words.h"
#include "ops/kernels/level/tiles.h"

#ifdef __AMX_BF16__

enum { ROWS = 2 * TILE_SIDE, WIDTH = 2 * TILE_SIDE, DEPTH = TILE_SIDE };

TILES(add_tiles, TILE_BF16)

static void multiply(const PairProduct *p, const u32 *a, const u32 *b, f32 *c)
{
    const bool packed = p->row == 1;
    const size_t blocks = (p->words + DEPTH - 1) / DEPTH, row = packed ? (size_t)TILE_LINE : p->row * sizeof *a,
                 block = packed ? (size_t)ROWS * TILE_LINE : (size_t)TILE_LINE;
    tiles_begin();
    for (size_t i = 0; i < p->m; i += ROWS, a += p->tile) {
        const u32 *columns = b;
        for (size_t j = 0; j < p->n; j += WIDTH, columns += p->panel)
            add_tiles(p->m - i < ROWS ? p->m - i : ROWS, p->n - j < WIDTH ? p->n - j : WIDTH, blocks, (const char *)a,
                      row, TILE_SIDE * row, block, (const char *)columns, p->ldb * sizeof *b,
                      (u32 *)(void *)c + i * p->ldc + j, p->ldc, p->fresh);
    }
    tiles_end();
}

const PairLoops LEVEL_NAME(pairs_bf16) = { ROWS, WIDTH, DEPTH, pair_lines, multiply };
#endif
