/* The Mersenne Twister as NumPy's RandomState draws from it, for reproducing results that were made with NumPy. */
#ifndef BASE_MT19937_H
#define BASE_MT19937_H

#include <stdint.h>

typedef struct Mt19937 {
    uint32_t state[624];
    int at;
} Mt19937;

/* numpy.random.RandomState(seed). */
void mt19937_seed(Mt19937 *m, uint32_t seed);

/* The next word. */
uint32_t mt19937_next(Mt19937 *m);

/* random_sample(): a number of [0, 1) with 53 bits, from two words. */
double mt19937_uniform(Mt19937 *m);

#endif
