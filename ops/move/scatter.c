/* scatter_elements and scatter_nd: a copy of the data, changed where indices point.  Updates are applied in the order
 * of the indices, so those that meet have one result. */
#include <string.h>

#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/index_positions.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"

static const char *const reductions[] = { "none", "add", "mul", "max", "min", NULL };

static const AttrSpec scatter_elements_attrs[] = {
    ATTR(ScatterAttr, axis, INT, 0),
    ATTR_CHOICE(ScatterAttr, reduction, reductions, SCATTER_NONE),
    ATTR_LAST,
};
static const AttrSpec scatter_nd_attrs[] = {
    ATTR_CHOICE(ScatterAttr, reduction, reductions, SCATTER_NONE),
    ATTR_LAST,
};

static Status put(Eval *e, const Positions *p)
{
    TRY(move_whole(e));
    const Raw y = raw_of(e, e->out[0]), u = raw_in(e, 2);
    const size_t bytes = (size_t)p->width * y.size;
    for (int64_t i = 0; i < p->n; i++)
        memcpy(y.data + (size_t)p->at[i] * y.size, u.data + (size_t)i * bytes, bytes);
    raw_close(e->out[0], y);
    return OK;
}

#define CASE(REDUCTION, VALUE)                                                                                         \
    case REDUCTION:                                                                                                    \
        for (int64_t k = 0; k < p->width; k++) {                                                                       \
            const T x = to[k], y = by[k];                                                                              \
            to[k] = (T)(VALUE);                                                                                        \
        }                                                                                                              \
        break;
#define REDUCE(T0)                                                                                                     \
    static void reduce_##T0(Eval *e, const Positions *p, int reduction)                                                \
    {                                                                                                                  \
        typedef T0 T;                                                                                                  \
        const T *data = eval_##T0(e, 0), *updates = eval_##T0(e, 2);                                                   \
        T *result = eval_out_##T0(e, 0);                                                                               \
        if (eval_elements(e, 0))                                                                                       \
            memcpy(result, data, (size_t)eval_elements(e, 0) * sizeof *result);                                        \
        for (int64_t i = 0; i < p->n; i++) {                                                                           \
            T *to = result + p->at[i];                                                                                 \
            const T *by = updates + i * p->width;                                                                      \
            switch (reduction) {                                                                                       \
                SCATTER_ROWS(CASE)                                                                                     \
            default:                                                                                                   \
                break;                                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
REDUCE(f32)
REDUCE(f64)
REDUCE(i64)
REDUCE(u64)
#undef REDUCE
#undef CASE

static Status scatter(Eval *e, const Positions *p)
{
    const int reduction = ((const ScatterAttr *)e->attr)->reduction;
    const DType dtype = e->in[0]->type->dtype;
    if (!p->at)
        return INVALID;
    if (reduction == SCATTER_NONE)
        return put(e, p);
    if (dtype == F64)
        reduce_f64(e, p, reduction);
    else if (dtype_is_float(dtype))
        reduce_f32(e, p, reduction);
    else if (dtype == U64)
        reduce_u64(e, p, reduction);
    else
        reduce_i64(e, p, reduction);
    return OK;
}

/* Sums and products accumulate; extremes only choose; without a reduction it is a move of two operands. */
static AmpClass amp_scatter(const Node *n, DType target)
{
    (void)target;
    switch (((const ScatterAttr *)n->attr)->reduction) {
    case SCATTER_NONE:
        return AMP_PW;
    case SCATTER_ADD:
    case SCATTER_MUL:
        return AMP_FO;
    default:
        return AMP_PM;
    }
}

/* The three operands of a scatter; null after a complaint. */
static const Type *infer_operands(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *updates = infer_tensor(q, 2);
    return x && infer_integers(q, 1) && updates && infer_same_dtype(q, 0, 2) ? x : NULL;
}

/* ---- what reaches data and updates ---- */

/* A call whose adjoint is built: the same indices, other values. */
typedef struct Spread {
    Build *b;
    const Site *s;
    Op op; /* of the call */
    DType t;
    const Type *x, *u; /* of data and updates, wide */
} Spread;

/* What is at the places that the updates go to, in the shape of the updates. */
static Node *fetched(const Spread *p, Node *x)
{
    const ScatterAttr *at = p->s->attr;
    if (p->op == OP_scatter_elements)
        return make_gather_elements(p->b, x, p->s->in[1], (int)at->axis);
    return CALL(p->b, gather_nd, x, p->s->in[1]);
}

static Node *spread(const Spread *p, Node *x, Node *u, Scatter reduction)
{
    ScatterAttr at = *(const ScatterAttr *)p->s->attr;
    at.reduction = reduction;
    return build_node(p->b, p->op, &at, 3, (Node *[]){ x, p->s->in[1], u });
}

/* Of several updates of one element the last one stays.  The number of each update is scattered and gathered again:
 * an update that reads its own number is the one that stayed. */
static void adjoint_put(const Spread *p, Node *dy, Node **dx)
{
    Build *b = p->b;
    Node *zero = make_filled(b, p->t, 0, p->u);
    if (p->s->want[0])
        dx[0] = spread(p, dy, zero, SCATTER_NONE);
    if (!p->s->want[2])
        return;
    Node *number = CALL(b, range, build_scalar(b, I64, 0), build_scalar(b, I64, (double)type_elements(p->u)),
                        build_scalar(b, I64, 1));
    number = make_reshape(b, number, p->u->rank, p->u->dims);
    Node *stays = CALL(b, equal, fetched(p, spread(p, make_filled(b, I64, 0, p->x), number, SCATTER_NONE)), number);
    dx[2] = CALL(b, where, stays, fetched(p, dy), zero);
}

/* The derivative of a product by one of its factors is the product of all others: 0 where another factor is 0, the
 * product of the nonzero ones where this factor is the only 0. */
static Node *others(const Spread *p, Node *factor, Node *is_zero, Node *product, Node *zeros)
{
    Build *b = p->b;
    Node *zero = build_scalar(b, p->t, 0), *one = build_scalar(b, p->t, 1);
    Node *of_zero = CALL(b, where, CALL(b, equal, zeros, one), product, zero);
    Node *of_other = CALL(b, where, CALL(b, equal, zeros, zero), CALL(b, div, product, factor), zero);
    return CALL(b, where, is_zero, of_zero, of_other);
}

static void adjoint_product(const Spread *p, Node *dy, Node **dx)
{
    Build *b = p->b;
    Node *x = p->s->in[0], *u = p->s->in[2], *zero = build_scalar(b, p->t, 0), *one = build_scalar(b, p->t, 1);
    Node *x0 = CALL(b, equal, x, zero), *u0 = CALL(b, equal, u, zero);
    Node *factor_x = CALL(b, where, x0, one, x), *factor_u = CALL(b, where, u0, one, u);
    Node *product = spread(p, factor_x, factor_u, SCATTER_MUL);
    Node *zeros = spread(p, make_cast(b, x0, p->t), make_cast(b, u0, p->t), SCATTER_ADD);
    if (p->s->want[0])
        dx[0] = CALL(b, mul, dy, others(p, factor_x, x0, product, zeros));
    if (p->s->want[2])
        dx[2] = CALL(b, mul, fetched(p, dy), others(p, factor_u, u0, fetched(p, product), fetched(p, zeros)));
}

/* Elements that equal the extreme share its gradient evenly. */
static void adjoint_extreme(const Spread *p, Node *dy, Node **dx)
{
    Build *b = p->b;
    Node *y = p->s->y[0], *zero = build_scalar(b, p->t, 0);
    Node *x_is = CALL(b, equal, p->s->in[0], y), *u_is = CALL(b, equal, p->s->in[2], fetched(p, y));
    Node *winners = spread(p, make_cast(b, x_is, p->t), make_cast(b, u_is, p->t), SCATTER_ADD);
    Node *share = CALL(b, div, dy, winners);
    if (p->s->want[0])
        dx[0] = CALL(b, where, x_is, share, zero);
    if (p->s->want[2])
        dx[2] = CALL(b, where, u_is, fetched(p, share), zero);
}

static void adjoint_scatter(Build *b, const Site *s, Op op, Node **dx)
{
    const Type *x = s->in[0]->type;
    const Spread p = { b, s, op, x->dtype, x, s->in[2]->type };
    Node *dy = s->dout[0];
    switch (((const ScatterAttr *)s->attr)->reduction) {
    case SCATTER_NONE:
        adjoint_put(&p, dy, dx);
        break;
    case SCATTER_ADD:
        dx[0] = s->want[0] ? dy : NULL;
        dx[2] = s->want[2] ? fetched(&p, dy) : NULL;
        break;
    case SCATTER_MUL:
        adjoint_product(&p, dy, dx);
        break;
    default:
        adjoint_extreme(&p, dy, dx);
        break;
    }
}

static void adjoint_scatter_elements(Build *b, const Site *s, Node **dx)
{
    adjoint_scatter(b, s, OP_scatter_elements, dx);
}

static void adjoint_scatter_nd(Build *b, const Site *s, Node **dx)
{
    adjoint_scatter(b, s, OP_scatter_nd, dx);
}

#define SCATTERS                                                                                                       \
    .min_in = 3, .max_in = 3, .differentiable = 1u << 0 | 1u << 2, .access.kind = ACCESS_SCATTER,                      \
    .access.refuses = true, .access.collides = true, .access.alias = { { 0, 0, ALIAS_OVER } },                         \
    .amp = { AMP_C, AMP_C, 0, REASON_PRECISION, amp_scatter, .motion = CASTS_UP },                                     \
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } }

/* ---- scatter_elements ---- */

static const Type *infer_scatter_elements(Infer *q)
{
    const Type *x = infer_operands(q);
    int axis;
    if (!x)
        return NULL;
    const Type *indices = q->in[1], *updates = q->in[2];
    if (x->rank >= 0 && !infer_axis(q, ((const ScatterAttr *)q->attr)->axis, x->rank, &axis))
        return NULL;
    if (!type_agrees(type_with_dtype(q->types, indices, x->dtype), updates))
        return infer_fail(q, "has indices %s and updates %s", type_text(q->scratch, indices),
                          type_text(q->scratch, updates));
    if (x->rank < 0 || indices->rank < 0)
        return x;
    if (x->rank != indices->rank)
        return infer_fail(q, "indices have rank %d, the data %d", indices->rank, x->rank);
    for (int i = 0; i < x->rank; i++)
        if (i != axis && x->dims[i] >= 0 && indices->dims[i] > x->dims[i])
            return infer_fail(q, "indices %s reach beyond %s in dimension %d", type_text(q->scratch, indices),
                              type_text(q->scratch, x), i);
    return x;
}

static Status eval_scatter_elements(Eval *e)
{
    const Type *t = e->in[0]->type;
    const Positions p = positions_elements(e, t, 1, axis_wrap(((const ScatterAttr *)e->attr)->axis, t->rank));
    return scatter(e, &p);
}

static DType scatter_dtype(int variant)
{
    static const DType types[] = { F32, I64, F16, F64, I32, BF16, U64, U8 };
    return variant % 5 ? types[variant / 5 % (int)COUNT(types)] : sample_dtype(variant / 5);
}

static Node *sample_scatter_elements(Build *b, Rng *rng, int variant)
{
    const DType dtype = scatter_dtype(variant);
    int64_t dims[MAX_RANK], shape[MAX_RANK];
    const int rank = 1 + (int)rng_below(rng, 4), axis = (int)rng_below(rng, rank);
    const ScatterAttr at = { variant % 5, rng_below(rng, 2) ? axis : axis - rank };
    sample_dims(rng, rank, 4, dims);
    for (int i = 0; i < rank; i++)
        shape[i] = i == axis ? rng_range(rng, 0, 5) : rng_range(rng, 0, dims[i]);
    if (!dims[axis])
        dims[axis] = 1;
    Node *x = sample_tensor(b, rng, dtype, rank, dims, 0, 3);
    Node *indices = sample_indices(b, rng, variant % 2 ? I64 : I32, rank, shape, -dims[axis], dims[axis] - 1);
    return CALL_ATTR(b, scatter_elements, at, x, indices, sample_tensor(b, rng, dtype, rank, shape, 0, 3));
}

const OpDef op_scatter_elements = {
    .name = "scatter_elements",
    .attrs = scatter_elements_attrs,
    .infer = infer_scatter_elements,
    .eval = eval_scatter_elements,
    .adjoint = adjoint_scatter_elements,
    .sample = sample_scatter_elements,
    .n_variants = 60,
    SCATTERS,
    .access.iterate = iterate_scatter_elements,
    .access.steer = 2,
    .onnx = { "ScatterElements", 18, NULL },
};

/* ---- scatter_nd ---- */

static const Type *infer_scatter_nd(Infer *q)
{
    const Type *x = infer_operands(q);
    if (!x)
        return NULL;
    const Type *indices = q->in[1], *updates = q->in[2];
    if (x->rank < 0 || indices->rank < 0)
        return x;
    if (x->rank < 1 || indices->rank < 1)
        return infer_fail(q, "needs data and indices of rank 1 or more, got %s and %s", type_text(q->scratch, x),
                          type_text(q->scratch, indices));
    const int64_t depth = indices->dims[indices->rank - 1];
    if (depth > x->rank)
        return infer_fail(q, "indexes %" PRId64 " axes of %d", depth, x->rank);
    if (depth < 0 || updates->rank < 0)
        return x;
    const int lead = indices->rank - 1, rest = x->rank - (int)depth;
    bool fits = updates->rank == lead + rest;
    for (int i = 0; fits && i < updates->rank; i++)
        fits = dims_fit(updates->dims[i], i < lead ? indices->dims[i] : x->dims[depth + i - lead]);
    if (!fits)
        return infer_fail(q, "updates %s do not fit data %s and indices %s", type_text(q->scratch, updates),
                          type_text(q->scratch, x), type_text(q->scratch, indices));
    return x;
}

static Status eval_scatter_nd(Eval *e)
{
    const Positions p = positions_nd(e, e->in[0]->type, 1, 0);
    return scatter(e, &p);
}

static Node *sample_scatter_nd(Build *b, Rng *rng, int variant)
{
    const DType dtype = scatter_dtype(variant);
    const int rank = 1 + (int)rng_below(rng, 4), lead = (int)rng_below(rng, 3), depth = (int)rng_range(rng, 1, rank);
    const ScatterAttr at = { .reduction = variant % 5 };
    int64_t dims[MAX_RANK], shape[MAX_RANK], least = 4;
    sample_full_dims(rng, rank, 4, dims);
    sample_dims(rng, lead, 3, shape);
    for (int i = 0; i < depth; i++)
        least = dims[i] < least ? dims[i] : least;
    Node *x = sample_tensor(b, rng, dtype, rank, dims, 0, 3);
    shape[lead] = depth;
    Node *indices = sample_indices(b, rng, I64, lead + 1, shape, -least, least - 1);
    for (int i = depth; i < rank; i++)
        shape[lead + i - depth] = dims[i];
    Node *updates = sample_tensor(b, rng, dtype, lead + rank - depth, shape, 0, 3);
    return CALL_ATTR(b, scatter_nd, at, x, indices, updates);
}

const OpDef op_scatter_nd = {
    .name = "scatter_nd",
    .attrs = scatter_nd_attrs,
    .infer = infer_scatter_nd,
    .eval = eval_scatter_nd,
    .adjoint = adjoint_scatter_nd,
    .sample = sample_scatter_nd,
    .n_variants = 60,
    SCATTERS,
    .access.iterate = iterate_scatter_nd,
    .access.steer = 2,
    .onnx = { "ScatterND", 18, NULL },
};

#undef SCATTERS
