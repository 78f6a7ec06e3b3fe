/* Regions as people fuse them by hand, from the same scalar functions and in the same order of sums: what tapes are
 * measured against, bit for bit the same results. */
#ifndef BENCH_TAPE_H
#define BENCH_TAPE_H

#include <stddef.h>

enum { FUSED_ARGUMENTS = 5, FUSED_RESULTS = 3 };

/* rows * cols elements; arguments and results in the order of the graphs in bench/tape.c. */
typedef void FusedByHand(size_t rows, size_t cols, const float *const *in, float *const *out);

FusedByHand dgelu_by_hand, add_by_hand, norm_backward_by_hand;

#endif
