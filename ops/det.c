/* det: determinants of a stack of square matrices, by elimination with partial pivoting. */
#include <string.h>

#include "ops/contract.h"

static const Type *infer_det(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    if (!dtype_is_float(x->dtype))
        return infer_fail(q, "needs floats, got %s", type_text(q->scratch, x));
    if (x->rank < 0)
        return x;
    if (x->rank < 2)
        return infer_fail(q, "needs at least 2 dimensions, got %d", x->rank);
    const int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1];
    if (rows != cols && rows >= 0 && cols >= 0)
        return infer_fail(q, "needs square matrices, got %" PRId64 " by %" PRId64, rows, cols);
    return type_tensor(q->types, x->dtype, x->rank - 2, x->dims);
}

#define DETERMINANT(T)                                                                                                 \
    static T determinant_##T(T *a, int64_t n)                                                                          \
    {                                                                                                                  \
        T product = 1;                                                                                                 \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            int64_t pivot = k;                                                                                         \
            for (int64_t i = k + 1; i < n; i++)                                                                        \
                if (q_abs(a[i * n + k]) > q_abs(a[pivot * n + k]))                                                     \
                    pivot = i;                                                                                         \
            for (int64_t j = k; pivot != k && j < n; j++) {                                                            \
                const T held = a[k * n + j];                                                                           \
                a[k * n + j] = a[pivot * n + j];                                                                       \
                a[pivot * n + j] = held;                                                                               \
            }                                                                                                          \
            product = pivot != k ? -product : product;                                                                 \
            product *= a[k * n + k];                                                                                   \
            if (a[k * n + k] == 0)                                                                                     \
                return product;                                                                                        \
            for (int64_t i = k + 1; i < n; i++) {                                                                      \
                const T factor = a[i * n + k] / a[k * n + k];                                                          \
                for (int64_t j = k + 1; j < n; j++)                                                                    \
                    a[i * n + j] = q_fma(-factor, a[k * n + j], a[i * n + j]);                                         \
            }                                                                                                          \
        }                                                                                                              \
        return product;                                                                                                \
    }                                                                                                                  \
    static void determinants_##T(Eval *e, int64_t stack, int64_t n)                                                    \
    {                                                                                                                  \
        const T *x = eval_##T(e, 0);                                                                                   \
        T *y = eval_out_##T(e, 0), *a = eval_scratch(e, (size_t)(n * n), sizeof(T));                                   \
        for (int64_t s = 0; s < stack; s++) {                                                                          \
            if (n)                                                                                                     \
                memcpy(a, x + s * n * n, (size_t)(n * n) * sizeof(T));                                                 \
            y[s] = determinant_##T(a, n);                                                                              \
        }                                                                                                              \
    }
DETERMINANT(f32)
DETERMINANT(f64)
#undef DETERMINANT

static Status eval_det(Eval *e)
{
    const Type *x = e->in[0]->type;
    (eval_is_f64(e) ? determinants_f64 : determinants_f32)(e, type_elements(e->type), x->dims[x->rank - 1]);
    return OK;
}

static Node *sample_det(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant % 3;
    sample_dims(rng, rank - 1, 4, dims);
    dims[rank - 1] = dims[rank - 2];
    return CALL(b, det, sample_tensor(b, rng, sample_float(rng), rank, dims, -2, 2));
}

const OpDef op_det = {
    .name = "det",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_det,
    .eval = eval_det,
    .sample = sample_det,
    .n_variants = 18,
    .differentiable = 1,
    .weight = 8,
    .fuse = FUSE_OPAQUE,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = QUANT_FLOAT },
    .onnx = { "Det", 22, NULL },
};
