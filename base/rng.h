/* A small generator for tests and samples: the same seed gives the same draws everywhere. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdint.h>

typedef struct Rng {
    uint64_t state;
} Rng;

/* 64 random bits. */
static inline uint64_t rng_u64(Rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* An integer in [0, n); 0 for n = 0. */
static inline int64_t rng_below(Rng *r, int64_t n)
{
    return n > 0 ? (int64_t)(rng_u64(r) % (uint64_t)n) : 0;
}

/* An integer in [lo, hi]. */
static inline int64_t rng_range(Rng *r, int64_t lo, int64_t hi)
{
    return lo + rng_below(r, hi - lo + 1);
}

/* A number in [0, 1). */
static inline double rng_unit(Rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

#endif
