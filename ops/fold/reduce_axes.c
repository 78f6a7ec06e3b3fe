/* The cards of reductions over axes: sum, product, max, min, squares; and those made of them. */
#include "ops/card/make.h"
#include "ops/card/row.h"
#include "ops/card/shapes.h"
#include "ops/fold/fold_access.h"
#include "ops/fold/reduce_axes.h"

static const AttrSpec reduce_attrs[] = {
    ATTR(ReduceAttr, keepdims, BOOL, true),
    ATTR(ReduceAttr, noop_with_empty_axes, BOOL, false),
    ATTR_OURS(ReduceAttr, out, DTYPE, 0),
    ATTR_LAST,
};

/* ---- infer ---- */

static const Type *reduced_type(Infer *q, const Type *x, DType dtype, uint32_t mask)
{
    const ReduceAttr *at = q->attr;
    int64_t dims[MAX_RANK];
    int rank = 0;
    for (int d = 0; d < x->rank; d++) {
        if (!(mask >> d & 1))
            dims[rank++] = x->dims[d];
        else if (at->keepdims)
            dims[rank++] = 1;
    }
    return type_tensor(q->types, dtype, rank, dims);
}

/* How many axes there are is known, which ones is not. */
static const Type *unknown_axes(Infer *q, const Type *x, DType dtype, int64_t n)
{
    const ReduceAttr *at = q->attr;
    if (at->keepdims)
        return infer_unknown_dims(q, dtype, x->rank);
    if (n < 0 || (n == 0 && x->rank > 0))
        return type_unranked(q->types, dtype);
    return n > x->rank ? infer_fail(q, "reduces %" PRId64 " of %d axes", n, x->rank)
                       : infer_unknown_dims(q, dtype, x->rank - n);
}

static bool result_dtype(Infer *q, const Type *x, int out, DType *dtype)
{
    *dtype = x->dtype;
    if (!attr_dtype(out, dtype) || dtype_is_float(*dtype) == dtype_is_float(x->dtype))
        return true;
    infer_fail(q, "gives %s of %s", dtype_name(*dtype), dtype_name(x->dtype));
    return false;
}

static const Type *infer_over_axes(Infer *q, bool bools)
{
    const ReduceAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    DType dtype;
    int64_t count = 0, n = 0;
    if (!x)
        return NULL;
    if (x->dtype == STRING || (x->dtype == BOOL && !bools))
        return infer_fail(q, "does not take %s", dtype_name(x->dtype));
    if (!result_dtype(q, x, at->out, &dtype) || (infer_has(q, 1) && !infer_list(q, 1, &count)))
        return NULL;
    const int64_t *axes = infer_has(q, 1) ? infer_ints(q, 1, &n) : NULL;
    const bool known = axes || count == 0;
    if (x->rank < 0)
        return known && n == 0 && !at->noop_with_empty_axes && !at->keepdims ? type_scalar(q->types, dtype)
                                                                             : type_unranked(q->types, dtype);
    Axes checked;
    if (!known)
        return unknown_axes(q, x, dtype, count);
    return infer_axes(q, axes, n, x->rank, &checked) ? reduced_type(q, x, dtype, reduce_mask(at, x->rank, n, axes))
                                                     : NULL;
}

static const Type *infer_reduce(Infer *q)
{
    return infer_over_axes(q, false);
}

static const Type *infer_extreme(Infer *q)
{
    return infer_over_axes(q, true);
}

/* ---- for who fuses ---- */

static const struct {
    OpWord op;
    ReduceKind kind;
} plain_kinds[] = { { OP_reduce_sum, REDUCE_SUM },
                    { OP_reduce_sum_square, REDUCE_SQUARES },
                    { OP_reduce_prod, REDUCE_PRODUCT },
                    { OP_reduce_max, REDUCE_MAX },
                    { OP_reduce_min, REDUCE_MIN } };

static size_t plain_kind(Op op)
{
    size_t k = 0;
    while (k < COUNT(plain_kinds) && plain_kinds[k].op != op)
        k++;
    return k;
}

ReduceKind reduction_kind(Op op)
{
    return plain_kinds[plain_kind(op)].kind;
}

bool reduction_of(const Node *n, Reduction *r)
{
    const size_t k = plain_kind(n->op);
    if (k == COUNT(plain_kinds) || in(n, 0)->type->rank < 0)
        return false;
    const Tensor *axes = in(n, 1) ? node_constant(in(n, 1), MAX_RANK * sizeof(int64_t)) : NULL;
    if (in(n, 1) && !axes)
        return false;
    const int64_t n_axes = axes ? tensor_elements(axes) : 0;
    int64_t v[MAX_RANK];
    if (n_axes > MAX_RANK)
        return false;
    for (int64_t i = 0; i < n_axes; i++)
        v[i] = tensor_get_i64(axes, i);
    *r = (Reduction){ plain_kinds[k].kind, reduce_mask(n->attr, in(n, 0)->type->rank, n_axes, v) };
    return true;
}

/* ---- eval ---- */

static uint32_t eval_mask(Eval *e)
{
    int64_t n = 0;
    const int64_t *axes = eval_has(e, 1) ? eval_ints(e, 1, &n) : NULL;
    return reduce_mask(e->attr, e->in[0]->type->rank, n, axes);
}

static void reduce_into(Eval *e, ReduceKind kind, Arithmetic a, const void *x, void *out)
{
    const Type *t = e->in[0]->type;
    eval_reduce(e, kind, a, t->rank, t->dims, eval_mask(e), x, out);
}

/* Returns the results, still in the arithmetic of the operand. */
static void *reduced(Eval *e, ReduceKind kind)
{
    const Arithmetic a = dtype_arithmetic(e->in[0]->type->dtype);
    void *out = eval_out_wide(e, 0, a);
    reduce_into(e, kind, a, eval_wide(e, 0, a), out);
    return out;
}

static Status eval_sum(Eval *e)
{
    reduced(e, REDUCE_SUM);
    return OK;
}

static Status eval_squares(Eval *e)
{
    reduced(e, REDUCE_SQUARES);
    return OK;
}

static Status eval_product(Eval *e)
{
    reduced(e, REDUCE_PRODUCT);
    return OK;
}

/* The extreme of nothing is the type's own, also in types narrower than the arithmetic. */
static i64 least_of(DType d)
{
    return dtype_class(d) == CLASS_INT ? (i64)(~(u64)0 << (dtype_bits(d) - 1)) : 0;
}

static i64 greatest_of(DType d)
{
    return d == BOOL ? 1 : dtype_class(d) == CLASS_INT ? ~least_of(d) : (i64)(((u64)1 << dtype_bits(d)) - 1);
}

static Status eval_extreme(Eval *e, ReduceKind kind, i64 (*of_nothing)(DType d))
{
    const DType d = e->in[0]->type->dtype;
    void *out = reduced(e, kind);
    if (tensor_elements(e->in[0]) == 0 && !dtype_is_float(d) && d != U64) {
        const int64_t n = type_elements(eval_type(e, 0));
        for (int64_t i = 0; i < n; i++)
            ((i64 *)out)[i] = of_nothing(d);
    }
    return OK;
}

static Status eval_max(Eval *e)
{
    return eval_extreme(e, REDUCE_MAX, least_of);
}

static Status eval_min(Eval *e)
{
    return eval_extreme(e, REDUCE_MIN, greatest_of);
}

/* ---- composites ---- */

/* The axes inside an expansion: a constant where they are known, absent where that means the same. */
static Node *axes_of(Build *b, const Site *s)
{
    const Tensor *v = s->n_in > 1 ? s->value[1] : NULL;
    if (!v)
        return site_in(s, 1);
    const int64_t n = tensor_elements(v);
    int64_t axes[MAX_RANK];
    for (int64_t i = 0; i < n && i < MAX_RANK; i++)
        axes[i] = tensor_get_i64(v, i);
    return n ? build_i64s(b, (int)n, axes) : NULL;
}

static Node *reduce(Build *b, const Site *s, Op op, Node *x, Node *axes, bool keepdims)
{
    ReduceAttr at = *(const ReduceAttr *)s->attr;
    at.out = 0;
    at.keepdims = keepdims;
    return build_node(b, op, &at, 2, (Node *[]){ x, axes });
}

static bool keeps(const Site *s)
{
    return ((const ReduceAttr *)s->attr)->keepdims;
}

/* Roots and logarithms of integers are those of real numbers, truncated. */
static Node *real(Build *b, const Site *s)
{
    const DType d = s->in[0]->type->dtype;
    return make_cast(b, s->in[0], dtype_is_float(d) ? dtype_wide(d) : F64);
}

static Node *expand_l1(Build *b, const Site *s)
{
    Node *x = make_cast(b, s->in[0], dtype_wide(s->in[0]->type->dtype));
    Node *y = reduce(b, s, OP_reduce_sum, CALL(b, abs, x), axes_of(b, s), keeps(s));
    return make_cast(b, y, s->type->dtype);
}

static Node *expand_l2(Build *b, const Site *s)
{
    Node *y = reduce(b, s, OP_reduce_sum_square, real(b, s), axes_of(b, s), keeps(s));
    return make_cast(b, CALL(b, sqrt, y), s->type->dtype);
}

static Node *expand_log_sum(Build *b, const Site *s)
{
    Node *y = reduce(b, s, OP_reduce_sum, real(b, s), axes_of(b, s), keeps(s));
    return make_cast(b, CALL(b, log, y), s->type->dtype);
}

/* log(sum(exp(x - m))) + m with m = max(x), or 0 where that is infinite. */
static Node *expand_log_sum_exp(Build *b, const Site *s)
{
    Node *x = real(b, s), *axes = axes_of(b, s);
    if (!x)
        return NULL;
    Node *top = reduce(b, s, OP_reduce_max, x, axes, true);
    Node *m = CALL(b, where, CALL(b, is_inf, top), build_scalar(b, x->type->dtype, 0), top);
    Node *sum = reduce(b, s, OP_reduce_sum, CALL(b, exp, CALL(b, sub, x, m)), axes, true);
    Node *y = CALL(b, add, CALL(b, log, sum), m);
    const bool whole = !axes && ((const ReduceAttr *)s->attr)->noop_with_empty_axes;
    if (!keeps(s) && !whole)
        y = build_node(b, OP_squeeze, NULL, 2, (Node *[]){ y, axes });
    return make_cast(b, y, s->type->dtype);
}

/* What a mean divides by: elements in over elements out. */
static double terms(const Type *x, const Type *y)
{
    const int64_t n = type_elements(y);
    return n > 0 ? (double)(type_elements(x) / n) : 0;
}

static Node *expand_mean(Build *b, const Site *s)
{
    Node *x = make_cast(b, s->in[0], dtype_wide(s->in[0]->type->dtype));
    Node *y = reduce(b, s, OP_reduce_sum, x, axes_of(b, s), keeps(s));
    if (!y)
        return NULL;
    if (!type_known(x->type) || !type_known(y->type)) {
        b->status = fail_as(b->graph->ir->diag, UNSUPPORTED, NOWHERE, "a mean over an unknown number of elements");
        return NULL;
    }
    Node *n = build_scalar(b, x->type->dtype, terms(x->type, y->type));
    return make_cast(b, CALL(b, div, y, n), s->type->dtype);
}

/* A composite reduction without its expansion: row `before` of each element, the reduction, row `after` of each
 * result. */
static Status fast(Eval *e, int before, ReduceKind kind, int after, bool truly_real)
{
    static const double none[ROW_SCALARS] = { 0 };
    const DType d = e->in[0]->type->dtype;
    const Arithmetic a = truly_real && !dtype_is_float(d) ? ARITH_F64 : dtype_arithmetic(d);
    const size_t n = (size_t)eval_elements(e, 0), size = a == ARITH_F32 ? sizeof(f32) : sizeof(f64);
    const void *x = eval_wide(e, 0, a);
    if (before < ROW_COUNT) {
        void *y = eval_scratch(e, n, size);
        kernels_row(e->kernels, before, a)(n, y, x, NULL, NULL, none);
        x = y;
    }
    void *out = eval_out_wide(e, 0, a);
    reduce_into(e, kind, a, x, out);
    if (after < ROW_COUNT)
        kernels_row(e->kernels, after, a)((size_t)type_elements(eval_type(e, 0)), out, out, NULL, NULL, none);
    return OK;
}

static Status fast_l1(Eval *e)
{
    return fast(e, ROW_abs, REDUCE_SUM, ROW_COUNT, false);
}

static Status fast_l2(Eval *e)
{
    return fast(e, ROW_COUNT, REDUCE_SQUARES, ROW_sqrt, true);
}

static Status fast_log_sum(Eval *e)
{
    return fast(e, ROW_COUNT, REDUCE_SUM, ROW_log, true);
}

#define DIVIDE(T)                                                                                                      \
    for (int64_t i = 0; i < n; i++)                                                                                    \
        ((T *)out)[i] = q_div(((T *)out)[i], (T)by);                                                                   \
    break

static Status fast_mean(Eval *e)
{
    const Arithmetic a = dtype_arithmetic(e->in[0]->type->dtype);
    const int64_t n = type_elements(eval_type(e, 0));
    const double by = terms(e->in[0]->type, eval_type(e, 0));
    void *out = reduced(e, REDUCE_SUM);
    switch (a) {
    case ARITH_F32:
        DIVIDE(f32);
    case ARITH_F64:
        DIVIDE(f64);
    case ARITH_I64:
        DIVIDE(i64);
    case ARITH_U64:
        DIVIDE(u64);
    }
    return OK;
}
#undef DIVIDE

/* ---- samples and cards ---- */

static Node *sample_over_axes(Build *b, Rng *rng, int variant, Op op, double lo, double hi)
{
    static const DType types[] = { F32, BF16, F64, I32, F16, I64, U64, F32, U8 };
    const DType dtype = types[variant % (int)COUNT(types)];
    const int rank = variant % 6;
    int64_t dims[MAX_RANK], axes[MAX_RANK];
    int n = 0;
    sample_dims(rng, rank, 5, dims);
    if (rank > 0 && variant % 4 == 3)
        dims[rng_below(rng, rank)] = 1 + rng_below(rng, rank < 3 ? 3000 : 200);
    for (int d = 0; d < rank; d++)
        if (rng_below(rng, 2))
            axes[n++] = rng_below(rng, 2) ? d : d - rank;
    const ReduceAttr at = { .keepdims = rng_below(rng, 2),
                            .noop_with_empty_axes = rng_below(rng, 2),
                            .out = dtype == BF16 && rng_below(rng, 2) ? (int)F32 + 1 : 0 };
    const bool whole = !dtype_is_float(dtype);
    Node *x = sample_tensor(b, rng, dtype, rank, dims, whole ? 0 : lo, whole ? 7 : hi);
    if (variant % 5 == 4)
        return build_node(b, op, &at, 1, &x);
    return build_node(b, op, &at, 2, (Node *[]){ x, build_i64s(b, n, axes) });
}

#define SAMPLE(op, lo, hi)                                                                                             \
    static Node *sample_##op(Build *b, Rng *rng, int variant)                                                          \
    {                                                                                                                  \
        return sample_over_axes(b, rng, variant, OP_reduce_##op, lo, hi);                                              \
    }
SAMPLE(sum, -4, 4)
SAMPLE(mean, -4, 4)
SAMPLE(max, -4, 4)
SAMPLE(min, -4, 4)
SAMPLE(prod, -2, 2)
SAMPLE(l1, -4, 4)
SAMPLE(l2, -4, 4)
SAMPLE(log_sum, 0.1, 4)
SAMPLE(log_sum_exp, -4, 4)
SAMPLE(sum_square, -4, 4)
#undef SAMPLE

#define FLOATING .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } }
#define PASSING  .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true }
#define WHOLLY   .quant = { .in = { QUANT_INPUT, QUANT_NEVER }, .out = { QUANT_INPUT } }
#define CARD(op, reads)                                                                                                \
    .name = "reduce_" #op, .min_in = 1, .max_in = 2, .attrs = reduce_attrs, .sample = sample_##op, .n_variants = 45,   \
    .differentiable = 1, .access.kind = ACCESS_##reads, .access.steer = 2
#define EXPANDED(op)                                                                                                   \
    CARD(op, FOLD), .infer = infer_reduce, .expand = expand_##op, .expand_needs_values = true, .fast = fast_##op

const OpDef op_reduce_sum = {
    CARD(sum, FOLD),
    .access.iterate = iterate_reduce,
    FLOATING,
    .infer = infer_reduce,
    .eval = eval_sum,
    .adjoint = adjoint_reduce_sum,
    .open_adjoint = true,
    .weight = 2,
    .amp = { AMP_FO, AMP_FO, 0, REASON_RANGE, NULL },
    .combine = COMBINE_SUM,
    .onnx = { "ReduceSum", 13, NULL },
};

const OpDef op_reduce_sum_square = {
    CARD(sum_square, FOLD),
    .access.iterate = iterate_reduce,
    FLOATING,
    .infer = infer_reduce,
    .eval = eval_squares,
    .adjoint = adjoint_reduce_sum_square,
    .open_adjoint = true,
    .weight = 3,
    .amp = { AMP_FO, AMP_FO, 0, REASON_RANGE, NULL },
    .onnx = { "ReduceSumSquare", 18, NULL },
};

const OpDef op_reduce_prod = {
    CARD(prod, FOLD),
    .access.iterate = iterate_reduce,
    FLOATING,
    .infer = infer_reduce,
    .eval = eval_product,
    .adjoint = adjoint_reduce_prod,
    .open_adjoint = true,
    .weight = 2,
    .amp = { AMP_FO, AMP_FO, 0, REASON_RANGE, NULL },
    .combine = COMBINE_PRODUCT,
    .onnx = { "ReduceProd", 18, NULL },
};

const OpDef op_reduce_max = {
    CARD(max, FOLD),
    .access.iterate = iterate_reduce,
    PASSING,
    .infer = infer_extreme,
    .eval = eval_max,
    .adjoint = adjoint_reduce_extreme,
    .open_adjoint = true,
    .weight = 2,
    .amp = { AMP_PM, AMP_PM, 0, REASON_NONE, NULL },
    .onnx = { "ReduceMax", 20, NULL },
};

const OpDef op_reduce_min = {
    CARD(min, FOLD),
    .access.iterate = iterate_reduce,
    PASSING,
    .infer = infer_extreme,
    .eval = eval_min,
    .adjoint = adjoint_reduce_extreme,
    .open_adjoint = true,
    .weight = 2,
    .amp = { AMP_PM, AMP_PM, 0, REASON_NONE, NULL },
    .onnx = { "ReduceMin", 20, NULL },
};

const OpDef op_reduce_mean = {
    EXPANDED(mean),
    WHOLLY,
    .adjoint = adjoint_reduce_mean,
    .open_adjoint = true,
    .weight = 4,
    .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL },
    .onnx = { "ReduceMean", 18, NULL },
};

const OpDef op_reduce_l1 = {
    EXPANDED(l1),
    FLOATING,
    .adjoint = adjoint_reduce_l1,
    .open_adjoint = true,
    .weight = 4,
    .amp = { AMP_FO, AMP_FO, 0, REASON_RANGE, NULL },
    .onnx = { "ReduceL1", 18, NULL },
};

const OpDef op_reduce_l2 = {
    EXPANDED(l2),
    FLOATING,
    .adjoint = adjoint_reduce_l2,
    .open_adjoint = true,
    .weight = 6,
    .amp = { AMP_FO, AMP_FO, 0, REASON_RANGE, NULL },
    .onnx = { "ReduceL2", 18, NULL },
};

const OpDef op_reduce_log_sum = {
    EXPANDED(log_sum),
    FLOATING,
    .adjoint = adjoint_reduce_log_sum,
    .open_adjoint = true,
    .weight = 7,
    .amp = { AMP_FO, AMP_FO, 0, REASON_PRECISION, NULL },
    .onnx = { "ReduceLogSum", 28, NULL },
};

const OpDef op_reduce_log_sum_exp = {
    CARD(log_sum_exp, COMPOSITE),
    FLOATING,
    .infer = infer_reduce,
    .expand = expand_log_sum_exp,
    .expand_needs_values = true,
    .adjoint = adjoint_reduce_log_sum_exp,
    .open_adjoint = true,
    .weight = 20,
    .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL },
    .onnx = { "ReduceLogSumExp", 28, NULL },
};
