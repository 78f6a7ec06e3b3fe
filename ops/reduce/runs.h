/* Rows of a column that do not all lie equally far apart. */
#ifndef OPS_REDUCE_RUNS_H
#define OPS_REDUCE_RUNS_H

#include <stddef.h>

/* `n` runs of `length` rows that are `step` elements apart, the first of each at at[i]. */
typedef struct ReduceRuns {
    size_t n, length;
    ptrdiff_t step;
    const ptrdiff_t *at;
} ReduceRuns;

#endif
