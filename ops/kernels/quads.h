/* Products of words of four bytes each, as convolutions of codes take them: of channels of one tap. */
#ifndef OPS_KERNELS_QUADS_H
#define OPS_KERNELS_QUADS_H

#include "ops/kernels/kernels.h"

/* Lines of positions that see words of four bytes beside each other: word w of position i of a line is at at[w] + i * stride,
 * and the next line `step` bytes on.  Weights have a sign, the bytes none. */
typedef struct ByteTaps {
    size_t words, stride;
    const size_t *at;
    const u32 *weights;
    size_t lines, step;
} ByteTaps;

enum { BYTE_TAPS_STRIDE = 4, BYTE_TAPS_BEYOND = 64 }; /* the largest stride; bytes that are read beyond the last word */

/* What sums of rows become: codes of 8 bits, (start[i] + sum) * factor[i] rounded.  Factors are below 1 in size. */
typedef struct RowCodes {
    const i32 *start;
    const f32 *factor;
    CodeRange range;
} RowCodes;

/* Words that follow each other, as many as a vector has: where they are and where they go. */
typedef struct WordRun {
    u32 from, to;
} WordRun;

enum { WORD_RUN = 16 };

typedef struct QuadLoops {
    /* rows of a tile, columns of a panel; words of a row are filled up with zeros to a multiple of `whole`, of which shares of
     * them are multiples, too, and at most so many are multiplied at a time.  0: the level has no instruction for products, nor
     * any of the next seven */
    size_t rows, width, whole, at_a_time;
    /* to[i] = the word of lines[0][i] .. lines[3][i], their bits turned by flip */
    void (*quad)(size_t n, const u8 *const lines[4], u32 flip, u32 *to);
    /* a tile of up to so many rows of bytes with a sign, each `row` bytes behind the one before: words of a row are neighbours;
     * totals[i] = the sum of all bytes of row i */
    void (*pack)(size_t rows, size_t words, const void *from, size_t row, u32 *tile, i32 *totals);
    /* c[m,n] += a b modulo 2^32: bytes of a have a sign, those of b none; a is packed, line w of b is at b + at[w]
     * (PairProduct.row and ldb are not read), and of b and c whole panels are read and written, whatever n is */
    void (*multiply)(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, i32 *c);
    /* the codes of such sums of all words, whatever `at_a_time` is: row i, of n of them, is at to + i * p->ldc, and nothing is
     * written beside it; of starts and factors whole tiles are read.  Null: the level has no such loop */
    void (*codes)(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, const RowCodes *of, u8 *to);
    /* copies runs, one after the other: where they meet the later one stays */
    void (*runs)(size_t n, const WordRun *runs, const u32 *from, u32 *to);
    /* sums[l * n + i] = start + what position i of line l of n positions sees, modulo 2^32; whole vectors are written */
    void (*along)(const ByteTaps *t, size_t n, const u8 *x, u32 start, i32 *sums);
    /* copies lines of n bytes, their bits turned by flip, that lie so far apart */
    void (*copy)(size_t lines, size_t n, const u8 *from, size_t from_apart, u8 flip, u8 *to, size_t to_apart);
    /* c[i] += more; to[i] = v[i], which are integers */
    void (*add)(size_t n, u32 more, i32 *c);
    void (*integers)(size_t n, const f32 *v, i32 *to);
} QuadLoops;

const QuadLoops *kernels_quads(const Kernels *level);

#endif
