#include "base/half.h"

/* Inner loops of constant length are vectorized at every level of optimisation we build with. */
#define BLOCK(NAME, FROM, TO)                                                                                          \
    void NAME##_block(TO *restrict out, const FROM *restrict in, size_t n)                                             \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        for (; n - i >= 32; i += 32)                                                                                   \
            for (size_t j = 0; j < 32; j++)                                                                            \
                out[i + j] = NAME(in[i + j]);                                                                          \
        for (; i < n; i++)                                                                                             \
            out[i] = NAME(in[i]);                                                                                      \
    }

BLOCK(f16_from_f32, float, uint16_t)
BLOCK(f16_to_f32, uint16_t, float)
BLOCK(bf16_from_f32, float, uint16_t)
BLOCK(bf16_to_f32, uint16_t, float)
