/* What becomes of values that are stored in f16 and bf16. */
#ifndef OPS_KERNELS_ROUNDING_H
#define OPS_KERNELS_ROUNDING_H

#include "ir/tensor.h"
#include "ops/scalar.h"

/* Of results of calls that were computed in f32 or f64 and stored in 16 bits, those that are exact among them.  What a
 * call only moves is not stored anew. */
typedef struct RoundingCounts {
    uint64_t rounded;    /* all of them */
    uint64_t subnormal;  /* below the least normal number, but not zero */
    uint64_t flushed;    /* became zero and were not */
    uint64_t overflowed; /* became infinite and were not */
} RoundingCounts;

/* Counts n values that were stored as elements `first` and following of a tensor; other element types, and null counts,
 * count nothing.  Any thread may add. */
void rounding_count_f32(RoundingCounts *counts, const Tensor *to, int64_t first, const f32 *from, int64_t n);
void rounding_count_f64(RoundingCounts *counts, const Tensor *to, int64_t first, const f64 *from, int64_t n);

#endif
