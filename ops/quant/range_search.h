/* Where a range of numbers is cut so that their codes are as near to them as can be. */
#ifndef OPS_QUANT_RANGE_SEARCH_H
#define OPS_QUANT_RANGE_SEARCH_H

#include "ops/quant/observe.h"
#include "ops/quant/quantize.h"

/* The codes that the range is for. */
typedef struct RangeCodes {
    DType type;
    f32 lo, hi; /* of integers the least and the largest; of floats the largest number on either side */
    bool symmetric, pow2;
} RangeCodes;

/* Those between least and largest (both 0: all) of a type. */
RangeCodes range_codes(DType type, int64_t least, int64_t largest, bool symmetric, bool pow2);

/* The range of a histogram of so many counts of sizes, numbers lying from `least` to `most`: up to which all beyond is cut. */
typedef struct SizeCounts {
    const u64 *count; /* of OBSERVE_BINS bins */
    f32 width, least, most;
} SizeCounts;

/* Of 100 ends from a tenth to all of the largest the one with the least sum of squared errors, each number counted at the
 * middle of its bin; of equals the largest. */
f32 range_by_error(const SizeCounts *s, const RangeCodes *c);

/* Of the ends of bins, every 16th from the first that has as many bins as there are codes above 0, the one where the
 * counts, all beyond in the last, diverge least from what codes leave of them (Kullback and Leibler; zeros count 1e-4).
 * `room`: f64 for two numbers a bin. */
f32 range_by_divergence(const SizeCounts *s, const RangeCodes *c, f64 *room);

/* The mean of the sizes and so many of their deviations. */
f32 range_by_deviation(const SizeCounts *s, f32 deviations);

/* The same of numbers themselves: the first by the error of each, and half-quadratic search for a scale (HQQ: |error|^0.7,
 * beta 1e5, kappa 1.01), which begins at the largest and goes on while the mean |error| falls. */
f32 range_of_numbers_by_error(const f32 *x, int64_t n, f32 least, f32 most, const RangeCodes *c);
f32 range_of_numbers_by_halves(const f32 *x, int64_t n, f32 least, f32 most, const RangeCodes *c);

#endif
