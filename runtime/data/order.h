/* The order of samples: a permutation of 0 .. n - 1 as a function of seed and epoch, computed where it is asked. */
#ifndef RUNTIME_DATA_ORDER_H
#define RUNTIME_DATA_ORDER_H

#include "base/arena.h"

/* What a permutation is for. */
typedef enum OrderPurpose { ORDER_EPOCH, ORDER_SPLIT } OrderPurpose;

/* Where position `at` of 0 .. n - 1 goes; n is at most 2^62. */
uint64_t order_at(uint64_t seed, OrderPurpose purpose, uint64_t epoch, uint64_t n, uint64_t at);

/* Two sides of 0 .. n - 1, each in ascending order. */
typedef struct Split {
    uint64_t n, n_held;
    uint64_t *held;   /* a bit for each number that is held out */
    uint64_t *before; /* for each block, how many are held out in the blocks before it */
} Split;

/* Holds out round(n * fraction) of them, chosen by the seed, leaving at least one on either side where n > 1. */
void split_open(Split *s, Arena *arena, uint64_t seed, uint64_t n, double fraction);

/* The at-th number that is held out, or that is not. */
uint64_t split_at(const Split *s, bool held, uint64_t at);

#endif
