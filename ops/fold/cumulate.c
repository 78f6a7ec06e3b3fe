/* cum_sum and cum_prod: running results along an axis, in blocks of 1024 elements.
 *
 * In a block they run from its first element on, one element after the other; what all blocks before it came to (the
 * last running result) is then joined on the left.  So blocks can run side by side. */
#include "base/parallel.h"
#include "ops/card/reduction.h"
#include "ops/card/shapes.h"
#include "ops/fold/fold_access.h"
#include "ops/fold/fold_kernels.h"

static const AttrSpec cum_attrs[] = {
    ATTR(CumAttr, exclusive, BOOL, false),
    ATTR(CumAttr, reverse, BOOL, false),
    ATTR_OURS(CumAttr, out, DTYPE, 0),
    ATTR_LAST,
};

static const Type *infer_cum(Infer *q)
{
    const CumAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    bool known;
    int64_t axis;
    int own;
    if (!x)
        return NULL;
    if (x->dtype == STRING || x->dtype == BOOL)
        return infer_fail(q, "does not take %s", dtype_name(x->dtype));
    if (!infer_one(q, 1, &known, &axis))
        return NULL;
    if (known && x->rank >= 0 && !infer_axis(q, axis, x->rank, &own))
        return NULL;
    DType dtype = x->dtype;
    if (attr_dtype(at->out, &dtype) && dtype_is_float(dtype) != dtype_is_float(x->dtype))
        return infer_fail(q, "gives %s of %s", dtype_name(dtype), dtype_name(x->dtype));
    return type_with_dtype(q->types, x, dtype);
}

typedef struct CumRun {
    const void *x;
    void *y;
    int64_t size, inner;
    Arithmetic arithmetic;
    bool product, exclusive, reverse;
} CumRun;

enum { CUM_BLOCK = 1024 };

#define RUN(T)                                                                                                         \
    static void run_##T(const CumRun *r, int64_t first)                                                                \
    {                                                                                                                  \
        const T *x = (const T *)r->x + first, none = r->product;                                                       \
        T *y = (T *)r->y + first, carry = none, in_block = none, so_far = none;                                        \
        for (int64_t i = 0; i < r->size; i++) {                                                                        \
            const int64_t k = (r->reverse ? r->size - 1 - i : i) * r->inner;                                           \
            const T v = x[k], before = so_far;                                                                         \
            if (i % CUM_BLOCK == 0)                                                                                    \
                carry = so_far, in_block = v;                                                                          \
            else                                                                                                       \
                in_block = r->product ? in_block * v : in_block + v;                                                   \
            so_far = i < CUM_BLOCK ? in_block : r->product ? carry * in_block : carry + in_block;                      \
            y[k] = r->exclusive ? before : so_far;                                                                     \
        }                                                                                                              \
    }
RUN(f32)
RUN(f64)
RUN(i64)
RUN(u64)
#undef RUN

static void run_cum(void *arg, int64_t begin, int64_t end, int worker)
{
    const CumRun *r = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i / r->inner * r->size * r->inner + i % r->inner;
        switch (r->arithmetic) {
        case ARITH_F32:
            run_f32(r, first);
            break;
        case ARITH_F64:
            run_f64(r, first);
            break;
        case ARITH_I64:
            run_i64(r, first);
            break;
        case ARITH_U64:
            run_u64(r, first);
            break;
        }
    }
}

static Status eval_cum(Eval *e, bool product)
{
    const CumAttr *at = e->attr;
    const Type *x = e->in[0]->type;
    const int axis = axis_wrap(eval_int(e, 1, 0), x->rank);
    const Arithmetic a = dtype_arithmetic(x->dtype);
    CumRun r = { .x = eval_wide(e, 0, a),
                 .y = eval_out_wide(e, 0, a),
                 .size = x->dims[axis],
                 .inner = 1,
                 .arithmetic = a,
                 .product = product,
                 .exclusive = at->exclusive,
                 .reverse = at->reverse };
    for (int d = axis + 1; d < x->rank; d++)
        r.inner *= x->dims[d];
    if (type_elements(x) > 0)
        eval_parallel(e, type_elements(x) / r.size, run_cum, &r);
    return OK;
}

static Status eval_cum_sum(Eval *e)
{
    return eval_cum(e, false);
}

static Status eval_cum_prod(Eval *e)
{
    return eval_cum(e, true);
}

static Node *sample_cum(Build *b, Rng *rng, int variant, Op op)
{
    static const DType types[] = { F32, I32, BF16, F64, U32, I64, F16, U64 };
    const DType dtype = types[variant % (int)COUNT(types)];
    const int rank = 1 + variant % 5;
    int64_t dims[MAX_RANK], axis = rng_below(rng, rank);
    sample_dims(rng, rank, 5, dims);
    const CumAttr at = { .exclusive = variant & 1,
                         .reverse = variant & 2,
                         .out = dtype == BF16 && rng_below(rng, 2) ? (int)F32 + 1 : 0 };
    axis = rng_below(rng, 2) ? axis : axis - rank;
    const int64_t one = 1;
    Node *in[] = { sample_tensor(b, rng, dtype, rank, dims, dtype_is_float(dtype) ? -2 : 0, 2),
                   sample_ints(b, variant % 3 ? I64 : I32, variant % 2, &one, &axis) };
    return build_node(b, op, &at, 2, in);
}

static Node *sample_cum_sum(Build *b, Rng *rng, int variant)
{
    return sample_cum(b, rng, variant, OP_cum_sum);
}

static Node *sample_cum_prod(Build *b, Rng *rng, int variant)
{
    return sample_cum(b, rng, variant, OP_cum_prod);
}

static bool kernels_cum_sum(const Node *n, OwnKernels *to)
{
    return kernels_of_cumulate(n, to, false);
}

static bool kernels_cum_prod(const Node *n, OwnKernels *to)
{
    return kernels_of_cumulate(n, to, true);
}

#define CARD                                                                                                           \
    .min_in = 2, .max_in = 2, .attrs = cum_attrs, .infer = infer_cum, .n_variants = 24, .weight = 3,                   \
    .differentiable = 1, .access.kind = ACCESS_SCAN, .access.iterate = iterate_cumulate,                               \
    .amp = { AMP_FO, AMP_FO, 0, REASON_RANGE, NULL },                                                                  \
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } }

const OpDef op_cum_sum = {
    .name = "cum_sum",
    CARD,
    .eval = eval_cum_sum,
    .access.kernels = kernels_cum_sum,
    .sample = sample_cum_sum,
    .adjoint = adjoint_cum_sum,
    .open_adjoint = true,
    .access.steer = 2,
    .onnx = { "CumSum", 14, NULL },
};

const OpDef op_cum_prod = {
    .name = "cum_prod",
    CARD,
    .eval = eval_cum_prod,
    .access.kernels = kernels_cum_prod,
    .sample = sample_cum_prod,
    .adjoint = adjoint_cum_prod,
    .access.steer = 2,
    .onnx = { "CumProd", 26, NULL },
};
