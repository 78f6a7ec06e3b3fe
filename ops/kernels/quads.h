/* Products of words of four bytes each, as convolutions of codes take them: of channels of one tap. */
#ifndef OPS_KERNELS_QUADS_H
#define OPS_KERNELS_QUADS_H

#include "ops/kernels/kernels.h"

typedef struct QuadLoops {
    size_t rows, width; /* 0: the level has no instruction for products, and neither quad nor multiply */
    /* to[i] = the word of lines[0][i] .. lines[3][i], their bits turned by flip */
    void (*quad)(size_t n, const u8 *const lines[4], u32 flip, u32 *to);
    /* c[m,n] += a b modulo 2^32: bytes of a have a sign, those of b none; a is packed (PairProduct.row is 1), and of b and c
     * whole panels are read and written, whatever n is */
    void (*multiply)(const PairProduct *p, const u32 *a, const u32 *b, i32 *c);
    /* c[i] += more; to[i] = v[i], which are integers */
    void (*add)(size_t n, u32 more, i32 *c);
    void (*integers)(size_t n, const f32 *v, i32 *to);
} QuadLoops;

const QuadLoops *kernels_quads(const Kernels *level);

#endif
