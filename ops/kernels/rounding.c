#include "ops/kernels/rounding.h"

#include <math.h>

/* Bits of |x| below which f16 and bf16 are subnormal, and those of infinity. */
typedef struct NarrowFormat {
    uint16_t normal, infinity;
} NarrowFormat;

static NarrowFormat format_of(DType d)
{
    return d == F16 ? (NarrowFormat){ 0x0400, 0x7c00 } : (NarrowFormat){ 0x0080, 0x7f80 };
}

static void add(RoundingCounts *counts, const RoundingCounts *some)
{
    __atomic_fetch_add(&counts->rounded, some->rounded, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->subnormal, some->subnormal, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->flushed, some->flushed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->overflowed, some->overflowed, __ATOMIC_RELAXED);
}

#define COUNT_ROUNDING(T)                                                                                              \
    void rounding_count_##T(RoundingCounts *counts, const Tensor *to, int64_t first, const T *from, int64_t n)         \
    {                                                                                                                  \
        if (!counts || !dtype_is_narrow(to->type->dtype))                                                              \
            return;                                                                                                    \
        const NarrowFormat f = format_of(to->type->dtype);                                                             \
        const uint16_t *code = (const uint16_t *)to->data + first;                                                     \
        RoundingCounts some = { .rounded = (uint64_t)n };                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const uint16_t size = code[i] & 0x7fff;                                                                    \
            some.subnormal += size && size < f.normal;                                                                 \
            some.flushed += !size && from[i] != 0;                                                                     \
            some.overflowed += size == f.infinity && isfinite(from[i]);                                                \
        }                                                                                                              \
        add(counts, &some);                                                                                            \
    }
COUNT_ROUNDING(f32)
COUNT_ROUNDING(f64)
#undef COUNT_ROUNDING
