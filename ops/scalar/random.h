/* Distributions drawn from the words of base/philox.h. */
#ifndef QCC_OPS_SCALAR_RANDOM_H
#define QCC_OPS_SCALAR_RANDOM_H

/* A standard normal pair from two words, by Box and Muller: the radius from a number of (0, 1]; the angle's quadrant is
 * its two upper bits, so it needs no reduction. */
Q_FN Q_Pair normal_pair(u32 first, u32 second)
{
    const f32 r = sqrt_f32(-2.0f * log_f32(philox_uniform_positive(first)));
    const u32 q = (second + 0x20000000u) >> 30;
    const f32 angle = (f32)((i32)(second - (q << 30)) >> 6) * (1.57079637f / 16777216.0f);
    const Q_Pair y = { r * sin_quadrant(angle, 0, q + 1), r * sin_quadrant(angle, 0, q) };
    return y;
}

/* The standard normal number of an element: its pair's first where its logical index is even, else the second. */
Q_FN f32 normal_at(u64 seed, u32 stream, u64 index, u32 step, u32 iteration)
{
    const Philox4 group = philox_group(seed, stream, index, step, iteration, PHILOX_VALUE);
    const u32 first = (u32)(index % 4 / 2 * 2);
    const Q_Pair pair = normal_pair(group.v[first], group.v[first + 1]);
    return index % 2 ? pair.lo : pair.hi;
}

#endif
