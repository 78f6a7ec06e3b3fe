/* det: determinants of a stack of square matrices, by elimination with partial pivoting. */
#include <string.h>

#include "ops/card/signature.h"
#include "ops/contract/contract.h"
#include "ops/contract/contract_access.h"

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

/* ---- backward: dy times the cofactors ---- */

/* Cofactors of a, also where a is singular.  With rows and columns exchanged so that every pivot is the largest element
 * that is left, a becomes l u, and the adjugate is that of u times that of l, exchanged back.  If u has its only zero
 * pivot at the end, u = [v c; 0 s], and its adjugate is [s adj(v), -adj(v) c; 0, det v] with adj(v) = det v times the
 * inverse of v: one triangular solution without the last pivot.  With two zero pivots nothing is left. */
#define COFACTORS(T)                                                                                                   \
    static void swap_rows_##T(T *a, int64_t n, int64_t i, int64_t k)                                                   \
    {                                                                                                                  \
        for (int64_t j = 0; i != k && j < n; j++) {                                                                    \
            const T held = a[i * n + j];                                                                               \
            a[i * n + j] = a[k * n + j];                                                                               \
            a[k * n + j] = held;                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void swap_cols_##T(T *a, int64_t n, int64_t i, int64_t k)                                                   \
    {                                                                                                                  \
        for (int64_t j = 0; i != k && j < n; j++) {                                                                    \
            const T held = a[j * n + i];                                                                               \
            a[j * n + i] = a[j * n + k];                                                                               \
            a[j * n + k] = held;                                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    /* a becomes l (without its ones) and u; rows[k], cols[k]: what was exchanged with k.  The sign of all that. */    \
    static T factor_##T(T *a, int64_t n, int64_t *rows, int64_t *cols)                                                 \
    {                                                                                                                  \
        T sign = 1;                                                                                                    \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            int64_t best = k * n + k;                                                                                  \
            for (int64_t i = k; i < n; i++)                                                                            \
                for (int64_t j = k; j < n; j++)                                                                        \
                    if (q_abs(a[i * n + j]) > q_abs(a[best]))                                                          \
                        best = i * n + j;                                                                              \
            rows[k] = best / n, cols[k] = best % n;                                                                    \
            swap_rows_##T(a, n, k, rows[k]);                                                                           \
            swap_cols_##T(a, n, k, cols[k]);                                                                           \
            sign = (rows[k] != k) != (cols[k] != k) ? -sign : sign;                                                    \
            for (int64_t i = k + 1; i < n && a[k * n + k] != 0; i++) {                                                 \
                a[i * n + k] /= a[k * n + k];                                                                          \
                for (int64_t j = k + 1; j < n; j++)                                                                    \
                    a[i * n + j] = q_fma(-a[i * n + k], a[k * n + j], a[i * n + j]);                                   \
            }                                                                                                          \
        }                                                                                                              \
        return sign;                                                                                                   \
    }                                                                                                                  \
    /* x: the adjugate of u, times that of l from the right, exchanged back, turned and scaled */                      \
    static void cofactors_##T(T *a, int64_t n, T dy, int64_t *rows, int64_t *cols, T *x)                               \
    {                                                                                                                  \
        T head = dy * factor_##T(a, n, rows, cols);                                                                    \
        for (int64_t k = 0; k + 1 < n; k++)                                                                            \
            head *= a[k * n + k];                                                                                      \
        const T last = n ? a[n * n - 1] : 0;                                                                           \
        for (int64_t j = 0; j < n; j++)                                                                                \
            for (int64_t i = n - 1; i >= 0; i--) {                                                                     \
                T sum = i == j ? (i + 1 < n ? last : 1) : 0;                                                           \
                for (int64_t k = i + 1; k <= j; k++)                                                                   \
                    sum = q_fma(-a[i * n + k], x[k * n + j], sum);                                                     \
                x[i * n + j] = i > j ? 0 : i + 1 < n ? (a[i * n + i] != 0 ? sum / a[i * n + i] : 0) : sum;             \
            }                                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                                                \
            for (int64_t j = n - 1; j >= 0; j--) {                                                                     \
                for (int64_t k = j + 1; k < n; k++)                                                                    \
                    x[i * n + j] = q_fma(-x[i * n + k], a[k * n + j], x[i * n + j]);                                   \
            }                                                                                                          \
        for (int64_t k = n - 1; k >= 0; k--) {                                                                         \
            swap_rows_##T(x, n, k, cols[k]);                                                                           \
            swap_cols_##T(x, n, k, rows[k]);                                                                           \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            for (int64_t j = 0; j <= i; j++) {                                                                         \
                const T held = x[i * n + j] * head;                                                                    \
                x[i * n + j] = x[j * n + i] * head;                                                                    \
                x[j * n + i] = held;                                                                                   \
            }                                                                                                          \
    }                                                                                                                  \
    static void all_cofactors_##T(Eval *e, int64_t stack, int64_t n)                                                   \
    {                                                                                                                  \
        const T *x = eval_##T(e, 0), *dy = eval_##T(e, 1);                                                             \
        T *dx = eval_out_##T(e, 0), *a = eval_scratch(e, (size_t)(n * n), sizeof(T));                                  \
        int64_t *rows = eval_scratch(e, (size_t)n, 2 * sizeof *rows);                                                  \
        for (int64_t s = 0; n && s < stack; s++) {                                                                     \
            memcpy(a, x + s * n * n, (size_t)(n * n) * sizeof(T));                                                     \
            cofactors_##T(a, n, dy[s], rows, rows + n, dx + s * n * n);                                                \
        }                                                                                                              \
    }
COFACTORS(f32)
COFACTORS(f64)
#undef COFACTORS

static Status eval_det_grad(Eval *e)
{
    const Type *x = e->in[0]->type;
    (eval_is_f64(e) ? all_cofactors_f64 : all_cofactors_f32)(e, eval_elements(e, 1), x->dims[x->rank - 1]);
    return OK;
}

static void adjoint_det(Build *b, const Site *s, Node **dx)
{
    dx[0] = CALL(b, det_grad, s->in[0], s->dout[0]);
}

static Node *sample_det(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant % 3;
    sample_dims(rng, rank - 1, 4, dims);
    dims[rank - 1] = dims[rank - 2];
    return CALL(b, det, sample_tensor(b, rng, sample_float(rng), rank, dims, -2, 2));
}

static Node *sample_det_grad(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant % 3;
    const DType dtype = sample_float(rng);
    sample_dims(rng, rank - 1, 4, dims);
    dims[rank - 1] = dims[rank - 2];
    /* small integers are singular now and then */
    Node *x = variant % 2 ? build_cast(b, sample_tensor(b, rng, I32, rank, dims, -1, 1), dtype)
                          : sample_tensor(b, rng, dtype, rank, dims, -2, 2);
    return CALL(b, det_grad, x, sample_tensor(b, rng, dtype, rank - 2, dims, -2, 2));
}

const OpDef op_det = {
    .name = "det",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "F[*nn]" }, .out = { "F[*]" } },
    .eval = eval_det,
    .sample = sample_det,
    .n_variants = 18,
    .adjoint = adjoint_det,
    .differentiable = 1,
    .weight = 8,
    .access.kind = ACCESS_FOLD,
    .access.iterate = iterate_matrices,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "Det", 22, NULL },
};

const OpDef op_det_grad = {
    .name = "det_grad",
    .min_in = 2,
    .max_in = 2,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "F[*nn]", "F[*]" }, .out = { "F[*nn]" } },
    .eval = eval_det_grad,
    .sample = sample_det_grad,
    .n_variants = 18,
    .weight = 16,
    .access.kind = ACCESS_FOLD,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the matrices x of det: their cofactors, times what reaches the determinants.",
};
