/* lower_inverse: (1 + l)^-1, l being what stands below the diagonal of each square matrix; nothing else of it is read.
 *
 * Row i is minus the sum over k < i of l[i, k] times row k: k ascending, by fused multiply-adds. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/signature.h"
#include "ops/contract/contract.h"

typedef struct Inverses {
    const void *x;
    void *y;
    int64_t n;
} Inverses;

#define INVERSE(T)                                                                                                     \
    static void inverses_##T(void *arg, int64_t begin, int64_t end, int worker)                                        \
    {                                                                                                                  \
        const Inverses *r = arg;                                                                                       \
        const int64_t n = r->n;                                                                                        \
        for (int64_t s = begin; s < end; s++) {                                                                        \
            const T *x = (const T *)r->x + s * n * n;                                                                  \
            T *y = (T *)r->y + s * n * n;                                                                              \
            memset(y, 0, (size_t)(n * n) * sizeof(T));                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                T *row = y + i * n;                                                                                    \
                for (int64_t k = 0; k < i; k++)                                                                        \
                    for (int64_t j = 0; j <= k; j++)                                                                   \
                        row[j] = q_fma(x[i * n + k], y[k * n + j], row[j]);                                            \
                for (int64_t j = 0; j < i; j++)                                                                        \
                    row[j] = -row[j];                                                                                  \
                row[i] = 1;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        (void)worker;                                                                                                  \
    }
INVERSE(f32)
INVERSE(f64)
#undef INVERSE

static Status eval_lower_inverse(Eval *e)
{
    const Type *x = e->in[0]->type;
    Inverses r = { .n = x->dims[x->rank - 1] };
    const int64_t stack = r.n ? type_elements(x) / (r.n * r.n) : 0;
    if (eval_is_f64(e)) {
        r.x = eval_f64(e, 0), r.y = eval_out_f64(e, 0);
        eval_parallel(e, stack, inverses_f64, &r);
    } else {
        r.x = eval_f32(e, 0), r.y = eval_out_f32(e, 0);
        eval_parallel(e, stack, inverses_f32, &r);
    }
    return OK;
}

/* For y = (1 + l)^-1, what reaches l is what stands below the diagonal of -y' dy y'. */
static void adjoint_lower_inverse(Build *b, const Site *s, Node **dx)
{
    const MatmulAttr first = { .ta = true }, second = { .tb = true };
    Node *whole = CALL_ATTR(b, matmul, second, CALL_ATTR(b, matmul, first, s->y[0], s->dout[0]), s->y[0]);
    dx[0] = CALL(b, neg, make_lower(b, whole, -1));
}

static Node *sample_lower_inverse(Build *b, Rng *rng, int variant)
{
    return sample_by_signature(b, rng, variant, OP_lower_inverse, NULL);
}

const OpDef op_lower_inverse = {
    .name = "lower_inverse",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_by_signature,
    .signature = &(const Signature){ .in = { "F[*nn]" }, .out = { "F[*nn]" } },
    .eval = eval_lower_inverse,
    .sample = sample_lower_inverse,
    .n_variants = 18,
    .adjoint = adjoint_lower_inverse,
    .differentiable = 1,
    .weight = 16,
    .access.kind = ACCESS_FOLD,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "The inverse of each matrix with ones on its diagonal and x below it.",
};
