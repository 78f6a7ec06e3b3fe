/* The one order of contractions, written down again: products are added by fma in segments of 2048, whose sums fold as a
 * tree that splits before the largest power of two. */
#ifndef SUPPORT_CHAIN_H
#define SUPPORT_CHAIN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { CHAIN_SEGMENT = 2048, CHAIN_SEGMENTS = 128 };

typedef struct Chain {
    bool wide; /* f64 */
    size_t n;
    double sum[CHAIN_SEGMENTS];
} Chain;

static inline void chain_add(Chain *c, double x, double y)
{
    double *sum = &c->sum[c->n++ / CHAIN_SEGMENT];
    if (c->n % CHAIN_SEGMENT == 1)
        *sum = 0;
    *sum = c->wide ? fma(x, y, *sum) : (double)fmaf((float)x, (float)y, (float)*sum);
}

static inline double chain_fold(const Chain *c, size_t first, size_t n)
{
    size_t left = 1;
    if (n <= 1)
        return n ? c->sum[first] : 0;
    while (2 * left < n)
        left *= 2;
    const double x = chain_fold(c, first, left), y = chain_fold(c, first + left, n - left);
    return c->wide ? x + y : (double)((float)x + (float)y);
}

static inline double chain_total(const Chain *c)
{
    return chain_fold(c, 0, (c->n + CHAIN_SEGMENT - 1) / CHAIN_SEGMENT);
}

#endif
