/* Sums that become codes without floats: a multiplier of 31 bits and a shift.
 *
 * The multiplier is the number that floats would multiply with, which has 24 bits, so that nothing of it is lost.  What is
 * rounded is rounded twice: the upper half of the doubled product to the nearest integer, ties upwards, and what the shift
 * leaves of that to the nearest, ties away from 0. */
#ifndef OPS_QUANT_FIXED_H
#define OPS_QUANT_FIXED_H

#include "ops/kernels/kernels.h"

/* m / 2^31 * 2^left / 2^right; one of both shifts is 0. */
typedef struct FixedFactor {
    i32 m;
    int left, right;
} FixedFactor;

enum {
    FIXED_BITS = 31,      /* of a multiplier, below its point */
    FIXED_MOST_LEFT = 31, /* beyond, every sum but 0 saturates */
    FIXED_MOST_RIGHT = 40 /* beyond, nothing is left of any */
};

/* The factor of a number; of one that is not above 0, or no number, it is 0. */
FixedFactor fixed_factor(f32 v);

/* What a sum of 32 bits becomes: within 32 bits, too. */
static inline i64 fixed_times(i64 sum, FixedFactor f)
{
    static const i64 half = (i64)1 << (FIXED_BITS - 1), most = ((i64)1 << FIXED_BITS) - 1, above = (i64)1 << 62;
    i64 v = sum * ((i64)1 << f.left);
    v = v > most ? most : v < -most - 1 ? -most - 1 : v;
    const i64 high = (v * f.m + half + above) / ((i64)1 << FIXED_BITS) - (most + 1);
    const u64 size = (u64)(high < 0 ? -high : high) + (((u64)1 << f.right) >> 1);
    return high < 0 ? -(i64)(size >> f.right) : (i64)(size >> f.right);
}

#endif
