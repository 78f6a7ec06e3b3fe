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

typedef struct QuadLoops {
    size_t rows, width; /* 0: the level has no instruction for products, nor any of the next four */
    /* to[i] = the word of lines[0][i] .. lines[3][i], their bits turned by flip */
    void (*quad)(size_t n, const u8 *const lines[4], u32 flip, u32 *to);
    /* c[m,n] += a b modulo 2^32: bytes of a have a sign, those of b none; a is packed (PairProduct.row is 1), line w of b is at
     * b + at[w] (PairProduct.ldb is not read), and of b and c whole panels are read and written, whatever n is */
    void (*multiply)(const PairProduct *p, const u32 *a, const u32 *b, const size_t *at, i32 *c);
    /* to[i] = the sum of all bytes, which have a sign, of row i of a tile */
    void (*totals)(size_t words, const u32 *tile, i32 *to);
    /* sums[l * n + i] = start + what position i of line l of n positions sees, modulo 2^32; whole vectors are written */
    void (*along)(const ByteTaps *t, size_t n, const u8 *x, u32 start, i32 *sums);
    /* c[i] += more; to[i] = v[i], which are integers */
    void (*add)(size_t n, u32 more, i32 *c);
    void (*integers)(size_t n, const f32 *v, i32 *to);
} QuadLoops;

const QuadLoops *kernels_quads(const Kernels *level);

#endif
