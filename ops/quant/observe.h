/* The state of an observer: a vector of f32, zeros before the first batch.
 *
 *     OBSERVED_LO, _HI     the range that it tells: 0 lies in it
 *     OBSERVED_SEEN        batches that it is made of; 2^24 stands for all beyond
 *     OBSERVED_BAD         batches that were left out, for a NaN or an infinity in them
 *
 * That is all of kinds minmax and ema.  Of the others, which look for a range in what they counted, there are behind it
 *
 *     OBSERVED_LEAST, _MOST    the least and the largest number of all
 *     OBSERVED_WIDTH           of a bin, a power of two; 0 while all numbers were 0
 *     OBSERVED_BINS ..         how many numbers have an absolute value of [i * width, (i + 1) * width), for each of 2,048
 *                              bins: first the lower 24 bits of each count, then all the others' bits
 *
 * The width is the least with which all numbers have a bin.  When a number has none, it is doubled as often as needed, and
 * neighbouring bins become one: counts are exact, whatever came first. */
#ifndef OPS_QUANT_OBSERVE_H
#define OPS_QUANT_OBSERVE_H

#include "ops/card/cards.h"

typedef enum ObserveKind {
    OBSERVE_MINMAX,
    OBSERVE_EMA,
    OBSERVE_PCT,
    OBSERVE_MSE,
    OBSERVE_KL,
    OBSERVE_SIGMA
} ObserveKind;

enum {
    OBSERVED_LO,
    OBSERVED_HI,
    OBSERVED_SEEN,
    OBSERVED_BAD,
    OBSERVED_RANGE, /* elements of the state of kinds minmax and ema */
    OBSERVED_LEAST = OBSERVED_RANGE,
    OBSERVED_MOST,
    OBSERVED_WIDTH,
    OBSERVED_BINS,
    OBSERVE_BINS = 2048,
    OBSERVED_ALL = OBSERVED_BINS + 2 * OBSERVE_BINS, /* elements of that of kinds that count */
};

/* Of observe and merge_ranges. */
typedef struct ObserveAttr {
    int kind;
    float rate;             /* of ema: what a batch counts */
    float percentile;       /* of pct: how many of a hundred numbers lie inside */
    float sigma;            /* of sigma: so many deviations of the sizes beyond their mean */
    int64_t least, largest; /* of mse and kl, what range_scale says of the codes */
    bool symmetric, pow2;
    int to;
} ObserveAttr;

/* An observer as reductions and rows (ops/quant/observe_rows.c); null where it keeps a histogram. */
Node *open_observe(Build *b, const Site *s);

/* The least or the largest of all (OP_reduce_min, OP_reduce_max): of features row by row first, as the norm or the
 * softmax that makes them goes.  A NaN is both. */
Node *observe_extreme(Build *b, Op op, Node *x);

/* The type of the codes that a range is for. */
DType observed_codes(const ObserveAttr *at);

/* Whether observers of a kind count. */
static inline bool observe_counts(int kind)
{
    return kind >= OBSERVE_PCT;
}

/* Elements of a state. */
static inline int64_t observed_size(int kind)
{
    return observe_counts(kind) ? OBSERVED_ALL : OBSERVED_RANGE;
}

#endif
