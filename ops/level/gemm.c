#include "ops/level/level.h"

void LEVEL_NAME(gemm_f32)(size_t m, size_t n, size_t k, const f32 *a, size_t lda, const f32 *b, size_t ldb, f32 *c,
                          size_t ldc)
{
    for (size_t i = 0; i < m; i++)
        for (size_t p = 0; p < k; p++) {
            LEVEL_VECTOR
            for (size_t j = 0; j < n; j++)
                c[i * ldc + j] = fma_f32(a[i * lda + p], b[p * ldb + j], c[i * ldc + j]);
        }
}
