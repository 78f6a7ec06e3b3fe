/* Products of words with sums in f32 (PairLoops) in tiles, where the level has them: blocks of sixteen words of a row, packed or of a
 * line that lies as it is, against sixteen words of as many columns, the lines of which lie apart.  What the instruction rounds and
 * flushes is what it does in bf16_tiles.c. */
#include "ops/kernels/level/bf16_words.h"
#include "ops/kernels/level/tiles.h"

#ifdef __AMX_BF16__

enum { ROWS = 2 * TILE_SIDE, WIDTH = 2 * TILE_SIDE, DEPTH = TILE_SIDE };

TILES(add_tiles, TILE_BF16)

/* Columns of some blocks as tiles that lie side by side. */
static void copy_columns(const PairProduct *p, size_t blocks, const u32 *b, u32 *to)
{
    for (size_t k = 0; k < blocks; k++) {
        const u32 *from = b + p->at[k];
        for (size_t w = 0; w < DEPTH; w++, from += p->ldb, to += WIDTH) {
            const __m512i first = _mm512_loadu_si512(from), second = _mm512_loadu_si512(from + TILE_SIDE);
            _mm512_store_si512(to, first);
            _mm512_store_si512(to + TILE_SIDE, second);
        }
    }
}

/* Columns that many rows see are copied first: lines that begin within a line of a cache are read twice as slowly, and there may be
 * many pages between them. */
static void multiply_lines(const PairProduct *p, const u32 *a, const u32 *b, f32 *c)
{
    enum { MANY = 128, COPIED = 18 };
    const size_t blocks = p->words / DEPTH;
    const bool copies = p->m >= MANY && blocks <= COPIED;
    const size_t line = (copies ? (size_t)WIDTH : p->ldb) * sizeof *b;
    _Alignas(TILE_LINE) u32 copied[COPIED * DEPTH * WIDTH];
    for (size_t j = 0; j < p->n; j += WIDTH) {
        if (copies)
            copy_columns(p, blocks, b + j, copied);
        for (size_t i = 0; i < p->m; i += ROWS)
            (p->m - i > TILE_SIDE ? add_tiles_four : add_tiles_beside)(
                blocks, (const char *)(a + i / ROWS * p->tile), TILE_LINE, TILE_SIDE * TILE_LINE, ROWS * TILE_LINE,
                (const char *)(copies ? copied : b + j), line, copies ? NULL : p->at, (char *)(c + i * p->ldc + j),
                p->ldc * sizeof *c, p->fresh);
    }
}

static void multiply(const PairProduct *p, const u32 *a, const u32 *b, f32 *c)
{
    const bool packed = p->row == 1;
    const size_t blocks = (p->words + DEPTH - 1) / DEPTH, row = packed ? (size_t)TILE_LINE : p->row * sizeof *a,
                 block = packed ? (size_t)ROWS * TILE_LINE : (size_t)TILE_LINE;
    tiles_begin();
    if (p->at)
        multiply_lines(p, a, b, c);
    for (size_t i = 0; !p->at && i < p->m; i += ROWS, a += p->tile) {
        const u32 *columns = b;
        for (size_t j = 0; j < p->n; j += WIDTH, columns += p->panel)
            add_tiles(p->m - i < ROWS ? p->m - i : ROWS, p->n - j < WIDTH ? p->n - j : WIDTH, blocks, (const char *)a,
                      row, TILE_SIDE * row, block, (const char *)columns, p->ldb * sizeof *b,
                      (u32 *)(void *)c + i * p->ldc + j, p->ldc, p->fresh);
    }
    tiles_end();
}

const PairLoops LEVEL_NAME(pairs_bf16) = { ROWS, WIDTH, DEPTH, pair_words, pair_some_lines, multiply };
#endif
