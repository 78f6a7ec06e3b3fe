/* What every level has for words of four bytes, whatever instructions it has for their products. */
#ifndef OPS_KERNELS_LEVEL_QUADS_COMMON_H
#define OPS_KERNELS_LEVEL_QUADS_COMMON_H

#include "ops/kernels/level/level.h"

static inline void quads_add(size_t n, u32 more, i32 *c)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        c[i] = (i32)((u32)c[i] + more);
}

static inline void quads_integers(size_t n, const f32 *restrict v, i32 *restrict to)
{
    LEVEL_VECTOR
    for (size_t i = 0; i < n; i++)
        to[i] = (i32)v[i];
}

/* Loops over registers are turned into as many lines. */
#ifdef __clang__
#define WHOLE_LOOP _Pragma("clang loop unroll(full)")
#else
#define WHOLE_LOOP _Pragma("GCC unroll 24")
#endif

/* Of one tile and one panel: rows that there are, and where columns of each go. */
typedef struct Corner {
    const PairProduct *p;
    const size_t *at;
    const i32 *start;
    const f32 *factor;
    size_t rows, n_pieces;
    const CodePiece *pieces;
} Corner;

/* Goes on to the pieces of the panel at column j, which follow those of the panels before it; where columns are neighbours `whole` is the
 * only one. */
static inline void corner_panel(Corner *c, const RowCodes *of, size_t j, size_t width, CodePiece *whole)
{
    const size_t left = c->p->n - j;
    const CodePiece *const end = of->pieces + of->n_pieces;
    *whole = (CodePiece){ .to = (int64_t)j, .lanes = (u32)(((u64)1 << (left < width ? left : width)) - 1) };
    c->pieces = of->pieces ? c->pieces + c->n_pieces : whole;
    c->n_pieces = of->pieces ? 0 : 1;
    while (of->pieces && c->pieces + c->n_pieces < end && c->pieces[c->n_pieces].panel == j / width)
        c->n_pieces++;
}

/* Goes on to the tile at row i. */
static inline void corner_tile(Corner *c, const RowCodes *of, size_t i)
{
    c->start = of->start + i;
    c->factor = of->factor + i;
    c->rows = c->p->m - i;
}

#endif
