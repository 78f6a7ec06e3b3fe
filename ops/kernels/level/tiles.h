/* The tiles of AMX: eight registers of up to sixteen rows of 64 bytes.  A product of tiles adds to each of 16 x 16 sums what sixteen
 * words of a row and sixteen words of a column come to.
 *
 * Whoever multiplies says first that tiles are whole (tiles_begin) and gives them back in the end, so that nothing is asked of
 * threads beforehand, and a thread that sleeps has no tiles to be kept for it. */
#ifndef OPS_KERNELS_LEVEL_TILES_H
#define OPS_KERNELS_LEVEL_TILES_H

#include "ops/kernels/level/level.h"

#ifdef __AMX_TILE__

enum { TILE_SIDE = 16, TILE_LINE = TILE_SIDE * sizeof(u32), TILE_COUNT = 8 };

typedef struct TileConfig {
    u8 palette, start, reserved[14];
    u16 bytes[16];
    u8 rows[16];
} TileConfig;

static inline size_t tiles_least(size_t n)
{
    return n < TILE_SIDE ? n : TILE_SIDE;
}

/* Tiles for sums of m rows and n columns, at most two by two whole tiles: nothing else of sums and of rows is read or written.
 * Of columns all words are. */
static inline void tiles_shape(size_t m, size_t n)
{
    const size_t rows[] = { tiles_least(m), m > TILE_SIDE ? m - TILE_SIDE : TILE_SIDE };
    const size_t columns[] = { tiles_least(n), n > TILE_SIDE ? n - TILE_SIDE : TILE_SIDE };
    TileConfig c = { .palette = 1 };
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 2; j++) {
            c.rows[2 * i + j] = (u8)rows[i];
            c.bytes[2 * i + j] = (u16)(columns[j] * sizeof(u32));
        }
        c.rows[4 + i] = (u8)rows[i];
        c.bytes[4 + i] = TILE_LINE;
        c.rows[6 + i] = TILE_SIDE;
        c.bytes[6 + i] = (u16)(columns[i] * sizeof(u32));
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
}

static inline void tiles_begin(void)
{
    tiles_shape(2 * TILE_SIDE, 2 * TILE_SIDE);
}

static inline void tiles_end(void)
{
    __asm__ volatile("tilerelease");
}

/* In lines of assembler that read and write memory as far as the compiler knows: the intrinsics of gcc 12 do not say so.  Tiles are
 * numbers, rows lie `apart` bytes apart. */
#define TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
#define TILE_LOAD(tile, from, apart)                                                                                   \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile : : "r"(from), "r"((size_t)(apart)) : "memory")
#define TILE_STORE(tile, to, apart)                                                                                    \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" : : "r"(to), "r"((size_t)(apart)) : "memory")
#define TILE_BF16(sum, rows, columns) __asm__ volatile("tdpbf16ps %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sum : :)
/* Bytes with a sign (S) or without one (U), those of rows and those of columns. */
#define TILE_BYTES_UU(sum, rows, columns) __asm__ volatile("tdpbuud %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sum : :)
#define TILE_BYTES_US(sum, rows, columns) __asm__ volatile("tdpbusd %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sum : :)
#define TILE_BYTES_SU(sum, rows, columns) __asm__ volatile("tdpbsud %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sum : :)
#define TILE_BYTES_SS(sum, rows, columns) __asm__ volatile("tdpbssd %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sum : :)

/* Tiles 0 .. 3 are sums of two by two tiles, 4 and 5 rows, 6 and 7 columns; of one row of tiles 0 and 1, of one column 0 and 2, and
 * of one tile 0.  a: rows `row` bytes apart, from block to block of sixteen words `a_block`; the second tile of rows `a_tile` bytes
 * on; b: words `line` bytes apart, the second tile of columns follows the first, and blocks follow each other or begin where `at` says,
 * in words; c likewise `ldc` bytes. */
#define TILES_OF(id, DOT, two_rows, two_columns)                                                                       \
    static void id(size_t blocks, const char *a, size_t row, size_t a_tile, size_t a_block, const char *b,             \
                   size_t line, const size_t *at, char *c, size_t ldc, bool fresh)                                     \
    {                                                                                                                  \
        char *const low = c + TILE_SIDE * ldc;                                                                         \
        if (fresh) {                                                                                                   \
            TILE_ZERO(0);                                                                                              \
            TILE_ZERO(1);                                                                                              \
            TILE_ZERO(2);                                                                                              \
            TILE_ZERO(3);                                                                                              \
        } else {                                                                                                       \
            TILE_LOAD(0, c, ldc);                                                                                      \
            if (two_columns)                                                                                           \
                TILE_LOAD(1, c + TILE_LINE, ldc);                                                                      \
            if (two_rows)                                                                                              \
                TILE_LOAD(2, low, ldc);                                                                                \
            if ((two_rows) && (two_columns))                                                                           \
                TILE_LOAD(3, low + TILE_LINE, ldc);                                                                    \
        }                                                                                                              \
        for (size_t k = 0; k < blocks; k++, a += a_block) {                                                            \
            const char *const columns = b + (at ? at[k] * sizeof(u32) : k * TILE_SIDE * line);                         \
            TILE_LOAD(6, columns, line);                                                                               \
            TILE_LOAD(4, a, row);                                                                                      \
            DOT(0, 4, 6);                                                                                              \
            if (two_columns) {                                                                                         \
                TILE_LOAD(7, columns + TILE_LINE, line);                                                               \
                DOT(1, 4, 7);                                                                                          \
            }                                                                                                          \
            if (two_rows) {                                                                                            \
                TILE_LOAD(5, a + a_tile, row);                                                                         \
                DOT(2, 5, 6);                                                                                          \
            }                                                                                                          \
            if ((two_rows) && (two_columns))                                                                           \
                DOT(3, 5, 7);                                                                                          \
        }                                                                                                              \
        TILE_STORE(0, c, ldc);                                                                                         \
        if (two_columns)                                                                                               \
            TILE_STORE(1, c + TILE_LINE, ldc);                                                                         \
        if (two_rows)                                                                                                  \
            TILE_STORE(2, low, ldc);                                                                                   \
        if ((two_rows) && (two_columns))                                                                               \
            TILE_STORE(3, low + TILE_LINE, ldc);                                                                       \
    }
#define TILES(id, DOT)                                                                                                 \
    TILES_OF(id##_four, DOT, true, true)                                                                               \
    TILES_OF(id##_beside, DOT, false, true)                                                                            \
    TILES_OF(id##_below, DOT, true, false)                                                                             \
    TILES_OF(id##_one, DOT, false, false)                                                                              \
    /* Up to 32 rows and columns of c, of whole tiles or of such as are made for them. */                              \
    static void id(size_t m, size_t n, size_t blocks, const char *a, size_t row, size_t a_tile, size_t a_block,        \
                   const char *b, size_t line, u32 *c, size_t ldc, bool fresh)                                         \
    {                                                                                                                  \
        const bool two_rows = m > TILE_SIDE, two_columns = n > TILE_SIDE, edge = m % TILE_SIDE || n % TILE_SIDE;       \
        if (edge)                                                                                                      \
            tiles_shape(m, n);                                                                                         \
        (two_rows      ? two_columns ? id##_four : id##_below                                                          \
         : two_columns ? id##_beside                                                                                   \
                       : id##_one)(blocks, a, row, a_tile, a_block, b, line, NULL, (char *)c, ldc * sizeof *c, fresh); \
        if (edge)                                                                                                      \
            tiles_begin();                                                                                             \
    }
#endif

#endif
