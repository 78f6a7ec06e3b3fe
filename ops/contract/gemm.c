/* gemm: alpha A' B' + beta C. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"

static const AttrSpec gemm_attrs[] = {
    ATTR(GemmAttr, alpha, FLOAT, 1),     ATTR(GemmAttr, beta, FLOAT, 1),     ATTR(GemmAttr, transA, BOOL, false),
    ATTR(GemmAttr, transB, BOOL, false), ATTR_OURS(GemmAttr, out, DTYPE, 0), ATTR_LAST,
};

static const Type *infer_gemm(Infer *q)
{
    const GemmAttr *at = q->attr;
    const Type *a, *b;
    DType dtype;
    if (!infer_factors(q, at->out, &a, &b, &dtype))
        return NULL;
    if ((a->rank >= 0 && a->rank != 2) || (b->rank >= 0 && b->rank != 2))
        return infer_fail(q, "needs two matrices, got ranks %d and %d", a->rank, b->rank);
    int64_t dims[] = { a->rank < 0 ? DIM_UNKNOWN : a->dims[at->transA],
                       b->rank < 0 ? DIM_UNKNOWN : b->dims[!at->transB] };
    const int64_t ka = a->rank < 0 ? DIM_UNKNOWN : a->dims[!at->transA];
    const int64_t kb = b->rank < 0 ? DIM_UNKNOWN : b->dims[at->transB];
    if (!infer_inner(q, ka, kb))
        return NULL;
    const Type *y = type_tensor(q->types, dtype, 2, dims), *c = infer_has(q, 2) ? infer_tensor(q, 2) : NULL;
    if (!c)
        return y;
    int rank = 2;
    int64_t both[MAX_RANK] = { dims[0], dims[1] };
    if (dtype_is_float(c->dtype) != dtype_is_float(dtype) || (!dtype_is_float(dtype) && c->dtype != a->dtype))
        return infer_fail(q, "C is %s, wanted is %s", dtype_name(c->dtype), dtype_name(dtype));
    if (c->rank > 2 || !broadcast_dims(&rank, both, c) ||
        (c->rank >= 0 && !type_agrees(y, type_tensor(q->types, dtype, 2, both))))
        return infer_fail(q, "C is %s, which does not broadcast to %s", type_text(q->scratch, c),
                          type_text(q->scratch, y));
    return y;
}

/* x * factor; integers are multiplied as f64 and cut back. */
static Node *scaled(Build *b, DType t, Node *x, float factor)
{
    if (factor == 1)
        return x;
    if (dtype_is_float(t))
        return CALL(b, mul, x, build_scalar(b, t, (double)factor));
    Node *product = CALL(b, mul, make_cast(b, x, F64), build_scalar(b, F64, (double)factor));
    return make_cast(b, product, t);
}

static Node *expand_gemm(Build *b, const Site *s)
{
    const GemmAttr *at = s->attr;
    const DType own = s->in[0]->type->dtype;
    const DType t = dtype_is_float(own) ? make_width(own) : own;
    const MatmulAttr product = { .ta = at->transA, .tb = at->transB, .out = t == own ? 0 : (int)t + 1 };
    Node *y = scaled(b, t, CALL_ATTR(b, matmul, product, s->in[0], s->in[1]), at->alpha);
    if (site_in(s, 2) && at->beta != 0)
        y = CALL(b, add, y, scaled(b, t, make_cast(b, s->in[2], t), at->beta));
    return make_cast(b, y, s->type->dtype);
}

static Node *sample_gemm(Build *b, Rng *rng, int variant)
{
    int64_t mnk[3], c[2];
    const DType dtype = variant % 6 == 5 ? I32 : sample_float(rng);
    const GemmAttr at = { .alpha = rng_below(rng, 2) ? 1 : 0.5f,
                          .beta = rng_below(rng, 2) ? 1 : -2,
                          .transA = variant & 1,
                          .transB = variant >> 1 & 1,
                          .out = dtype == F16 && rng_below(rng, 2) ? F32 + 1 : 0 };
    sample_dims(rng, 3, 6, mnk);
    const int64_t x[] = { mnk[at.transA ? 2 : 0], mnk[at.transA ? 0 : 2] };
    const int64_t y[] = { mnk[at.transB ? 1 : 2], mnk[at.transB ? 2 : 1] };
    const int rank = (int)rng_below(rng, 4);
    c[0] = rng_below(rng, 2) ? mnk[0] : 1;
    c[1] = rng_below(rng, 3) ? mnk[1] : 1;
    Node *in[] = { sample_tensor(b, rng, dtype, 2, x, -2, 2), sample_tensor(b, rng, dtype, 2, y, -2, 2),
                   rank < 3 ? sample_tensor(b, rng, dtype_is_narrow(dtype) && variant % 2 ? F32 : dtype, rank,
                                            c + 2 - rank, -2, 2)
                            : NULL };
    return build_node(b, OP_gemm, &at, in[2] ? 3 : 2, in);
}

static int channels_of_gemm(const Node *n, int operand)
{
    const GemmAttr *at = n->attr;
    return operand == 0 ? at->transA : operand == 1 ? !at->transB : QUANT_WHOLE;
}

/* A product on codes, to which a number a column may be added. */
static bool gemm_on_codes(const Node *n)
{
    const GemmAttr *at = n->attr;
    const Type *c = in(n, 2) ? in(n, 2)->type : NULL, *y = n->type;
    if (at->alpha != 1)
        return false;
    return !c || (at->beta == 1 && c->rank == 1 && y->rank == 2 && c->dims[0] == y->dims[1]);
}

const OpDef op_gemm = {
    .name = "gemm",
    .min_in = 2,
    .max_in = 3,
    .attrs = gemm_attrs,
    .infer = infer_gemm,
    .expand = expand_gemm,
    .sample = sample_gemm,
    .n_variants = 48,
    .adjoint = adjoint_gemm,
    .differentiable = 7,
    .trainable = 7,
    .weight = 22,
    .work = work_gemm,
    .access.kind = ACCESS_CONTRACT,
    .amp = { AMP_T, AMP_T, 4, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT, QUANT_WEIGHT, QUANT_BIAS },
               .out = { QUANT_INPUT },
               .weight_axis = channels_of_gemm,
               .integer = OP_qmatmul,
               .serves = gemm_on_codes },
    .onnx = { "Gemm", 13, NULL },
};
