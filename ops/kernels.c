#include "ops/kernels.h"

#include <string.h>

#include "ops/eval.h"

struct Kernels {
    const char *name;
    GemmF32 *gemm_f32;
};

static void gemm_f32(size_t m, size_t n, size_t k, const f32 *a, size_t lda, const f32 *b, size_t ldb, f32 *c,
                     size_t ldc)
{
    for (size_t i = 0; i < m; i++)
        for (size_t p = 0; p < k; p++)
            for (size_t j = 0; j < n; j++)
                c[i * ldc + j] = fma_f32(a[i * lda + p], b[p * ldb + j], c[i * ldc + j]);
}

static const Kernels base = { "base", gemm_f32 };

const Kernels *kernels_best(void)
{
    return &base;
}

const Kernels *kernels_named(const char *name)
{
    return strcmp(name, base.name) == 0 ? &base : NULL;
}

const char *kernels_name(const Kernels *k)
{
    return k->name;
}

void kernels_gemm_f32(const Kernels *level, size_t m, size_t n, size_t k, const f32 *a, size_t lda, const f32 *b,
                      size_t ldb, f32 *c, size_t ldc)
{
    level->gemm_f32(m, n, k, a, lda, b, ldb, c, ldc);
}

Status eval_row(Eval *e)
{
    return eval_fail(e, "has no row");
}
