/* arg_max and arg_min: where the extreme of an axis lies.  A NaN is more extreme than any number. */
#include "base/parallel.h"
#include "ops/card/reduction.h"
#include "ops/card/shapes.h"
#include "ops/fold/fold_access.h"
#include "ops/fold/fold_kernels.h"

static const AttrSpec arg_attrs[] = {
    ATTR(ArgAttr, axis, INT, 0),
    ATTR(ArgAttr, keepdims, BOOL, true),
    ATTR(ArgAttr, select_last_index, BOOL, false),
    ATTR_LAST,
};

static const Type *infer_arg(Infer *q)
{
    const ArgAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    int axis, rank = 0;
    int64_t dims[MAX_RANK];
    if (!x)
        return NULL;
    if (x->dtype == STRING || x->dtype == BOOL)
        return infer_fail(q, "does not take %s", dtype_name(x->dtype));
    if (x->rank < 0)
        return type_unranked(q->types, I64);
    if (!infer_axis(q, at->axis, x->rank, &axis))
        return NULL;
    if (x->dims[axis] == 0)
        return infer_fail(q, "axis %d has no elements to choose from", axis);
    for (int d = 0; d < x->rank; d++)
        if (d != axis || at->keepdims)
            dims[rank++] = d == axis ? 1 : x->dims[d];
    return type_tensor(q->types, I64, rank, dims);
}

typedef struct ArgRun {
    const void *x;
    int64_t *y;
    int64_t size, inner;
    Arithmetic arithmetic;
    bool min, last;
} ArgRun;

/* NaN is not less than, and not equal to, what it meets. */
#define FIND(T)                                                                                                        \
    static int64_t find_##T(const T *x, int64_t n, int64_t step, bool min, bool last)                                  \
    {                                                                                                                  \
        int64_t at = 0;                                                                                                \
        for (int64_t k = 1; k < n; k++) {                                                                              \
            const T v = x[k * step], best = x[at * step];                                                              \
            const bool better = min ? v < best : v > best;                                                             \
            const bool first_nan = v != v && best == best, same = v == best || (v != v && best != best);               \
            if ((better && best == best) || first_nan || (last && same))                                               \
                at = k;                                                                                                \
        }                                                                                                              \
        return at;                                                                                                     \
    }
FIND(f32)
FIND(f64)
FIND(i64)
FIND(u64)
#undef FIND

static void run_arg(void *arg, int64_t begin, int64_t end, int worker)
{
    const ArgRun *r = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i / r->inner * r->size * r->inner + i % r->inner;
        switch (r->arithmetic) {
        case ARITH_F32:
            r->y[i] = find_f32((const f32 *)r->x + first, r->size, r->inner, r->min, r->last);
            break;
        case ARITH_F64:
            r->y[i] = find_f64((const f64 *)r->x + first, r->size, r->inner, r->min, r->last);
            break;
        case ARITH_I64:
            r->y[i] = find_i64((const i64 *)r->x + first, r->size, r->inner, r->min, r->last);
            break;
        case ARITH_U64:
            r->y[i] = find_u64((const u64 *)r->x + first, r->size, r->inner, r->min, r->last);
            break;
        }
    }
}

static Status eval_arg(Eval *e, bool min)
{
    const ArgAttr *at = e->attr;
    const Type *x = e->in[0]->type;
    const int axis = axis_wrap(at->axis, x->rank);
    const Arithmetic a = dtype_arithmetic(x->dtype);
    ArgRun r = { .x = eval_wide(e, 0, a),
                 .y = eval_out(e, 0)->data,
                 .size = x->dims[axis],
                 .inner = 1,
                 .arithmetic = a,
                 .min = min,
                 .last = at->select_last_index };
    for (int d = axis + 1; d < x->rank; d++)
        r.inner *= x->dims[d];
    eval_parallel(e, type_elements(eval_type(e, 0)), run_arg, &r);
    return OK;
}

static Status eval_arg_max(Eval *e)
{
    return eval_arg(e, false);
}

static Status eval_arg_min(Eval *e)
{
    return eval_arg(e, true);
}

static Node *sample_arg(Build *b, Rng *rng, int variant, Op op)
{
    static const DType types[] = { F32, I32, BF16, F64, U8, I64, F16, U64 };
    const DType dtype = types[variant % (int)COUNT(types)];
    const int rank = 1 + variant % 5;
    int64_t dims[MAX_RANK];
    sample_dims(rng, rank, 5, dims);
    const int axis = (int)rng_below(rng, rank);
    dims[axis] += dims[axis] == 0;
    const ArgAttr at = { rng_below(rng, 2) ? axis : axis - rank, rng_below(rng, 2), rng_below(rng, 2) };
    Node *x = sample_tensor(b, rng, dtype, rank, dims, 0, 4);
    return build_node(b, op, &at, 1, &x);
}

static Node *sample_arg_max(Build *b, Rng *rng, int variant)
{
    return sample_arg(b, rng, variant, OP_arg_max);
}

static Node *sample_arg_min(Build *b, Rng *rng, int variant)
{
    return sample_arg(b, rng, variant, OP_arg_min);
}

static bool kernels_arg_max(const Node *n, OwnKernels *to)
{
    return kernels_of_arg(n, to, false);
}

static bool kernels_arg_min(const Node *n, OwnKernels *to)
{
    return kernels_of_arg(n, to, true);
}

#define CARD                                                                                                           \
    .min_in = 1, .max_in = 1, .attrs = arg_attrs, .infer = infer_arg, .n_variants = 24, .weight = 2,                   \
    .access.kind = ACCESS_FOLD, .access.iterate = iterate_arg, .amp = { AMP_FI, AMP_FI, 0, REASON_INDEX, NULL },       \
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_NEVER } }

const OpDef op_arg_max = {
    .name = "arg_max",
    CARD,
    .eval = eval_arg_max,
    .access.kernels = kernels_arg_max,
    .sample = sample_arg_max,
    .onnx = { "ArgMax", 13, NULL },
};

const OpDef op_arg_min = {
    .name = "arg_min",
    CARD,
    .eval = eval_arg_min,
    .access.kernels = kernels_arg_min,
    .sample = sample_arg_min,
    .onnx = { "ArgMin", 13, NULL },
};
