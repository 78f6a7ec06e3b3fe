/* qaverage_pool and qglobal_average_pool: averages of codes, as ONNX Runtime rounds them. */
#include "base/parallel.h"
#include "ops/quant/centred.h"
#include "ops/quant/codes_kernels.h"
#include "ops/quant/words.h"
#include "ops/window/window_access.h"

enum {
    X = QPOOL_X,
    X_SCALE = QPOOL_X_SCALE,
    X_ZERO = QPOOL_X_ZERO,
    Y_SCALE = QPOOL_Y_SCALE,
    Y_ZERO = QPOOL_Y_ZERO,
    OPERANDS,
};

static const AttrSpec qaverage_pool_attrs[] = {
    WINDOW_PLACE_ATTRS(PoolAttr),
    { .name = "ceil_mode", .kind = ATTR_BOOL, .offset = offsetof(PoolAttr, window.ceil_mode) },
    ATTR(PoolAttr, count_include_pad, BOOL, false),
    WINDOW_INTS(PoolAttr, dilations),
    WINDOW_REQUIRED_INTS(PoolAttr, kernel_shape),
    CODES_ATTRS(QpoolAttr),
    ATTR_LAST,
};

static const AttrSpec qglobal_attrs[] = { CODES_ATTRS(QglobalAttr), ATTR_LAST };

/* The codes that are pooled; null after a complaint. */
static const Type *infer_pooled_codes(Infer *q)
{
    if (!infer_codes(q, X, CODES_16) || !infer_single(q, X_SCALE, -1) || !infer_single(q, X_ZERO, X) ||
        !infer_single(q, Y_SCALE, X_SCALE) || !infer_codes(q, Y_ZERO, CODES_16) || !infer_single(q, Y_ZERO, Y_ZERO))
        return NULL;
    const Type *x = q->in[X];
    if (q->in[X_SCALE]->dtype != F32)
        return infer_fail(q, "wants scales of f32");
    if (x->rank >= 0 && x->rank < 3)
        return infer_fail(q, "needs at least 3 dimensions, got %d", x->rank);
    return x;
}

static const Type *infer_qaverage_pool(Infer *q)
{
    const QpoolAttr *at = q->attr;
    const Type *x = infer_pooled_codes(q);
    const DType code = x ? q->in[Y_ZERO]->dtype : U8;
    Window w;
    if (!x)
        return NULL;
    if (at->codes.factor == FACTOR_Q31)
        return infer_fail(q, "has no averages of windows in fixed point");
    if (x->rank < 0)
        return infer_codes_out(q, &at->codes, Y_ZERO, type_unranked(q->types, code));
    if (!infer_window(q, &at->pool.window, x, NULL, &w))
        return NULL;
    return infer_codes_out(q, &at->codes, Y_ZERO, infer_channels(q, code, x->dims[0], x->dims[1], &w));
}

static const Type *infer_qglobal_average_pool(Infer *q)
{
    const CodesAttr *at = &((const QglobalAttr *)q->attr)->codes;
    const Type *x = infer_pooled_codes(q);
    int64_t dims[MAX_RANK];
    if (!x)
        return NULL;
    if (x->rank < 0)
        return infer_codes_out(q, at, Y_ZERO, type_unranked(q->types, q->in[Y_ZERO]->dtype));
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : 1;
    return infer_codes_out(q, at, Y_ZERO, type_tensor(q->types, q->in[Y_ZERO]->dtype, x->rank, dims));
}

typedef struct PoolRun {
    const PoolAttr *at;
    Window w;
    CodesOut out;
    const f32 *x; /* centred */
    int64_t in, positions;
    f32 sx, sy, m;
    FixedFactor by;
    f32 *rooms; /* for each worker: a plane of the data, and one of the result */
} PoolRun;

/* RNE(average / sy + z), the average of the numbers that the codes stand for, in f32. */
static void average_planes(void *arg, int64_t begin, int64_t end, int worker)
{
    const PoolRun *r = arg;
    f32 *x = r->rooms + worker * (r->in + r->positions), *u = x + r->in;
    for (int64_t plane = begin; plane < end; plane++) {
        for (int64_t i = 0; i < r->in; i++)
            x[i] = r->x[plane * r->in + i] * r->sx;
        pool_average_plane(r->at, &r->w, x, u);
        for (int64_t i = 0; i < r->positions; i++)
            u[i] = u[i] / r->sy + r->out.range.z;
        codes_put_shifted(&r->out, plane * r->positions, r->positions, u);
    }
}

static void pool_open(Eval *e, PoolRun *r, const CodesAttr *at)
{
    const Type *x = e->in[X]->type;
    r->out = codes_out(e, at, Y_ZERO);
    r->in = window_product(x->rank - 2, x->dims + 2);
    const Lanes planes = { .width = r->in, .height = 1 };
    r->x = codes_centred(e, X, X_ZERO, &planes);
    r->sx = (f32)eval_float(e, X_SCALE, 0);
    r->sy = (f32)eval_float(e, Y_SCALE, 0);
}

static Status eval_qaverage_pool(Eval *e)
{
    const QpoolAttr *at = e->attr;
    const Type *x = e->in[X]->type;
    PoolRun r = { .at = &at->pool };
    eval_window(e, &at->pool.window, X, NULL, &r.w);
    pool_open(e, &r, &at->codes);
    r.positions = window_product(r.w.rank, r.w.out);
    r.rooms = eval_room(e, (size_t)(parallel_threads(e->pool) * (r.in + r.positions)), sizeof(f32));
    eval_parallel(e, x->dims[0] * x->dims[1], average_planes, &r);
    return OK;
}

/* f32(acc) * f32(sx / f32(sy * n)), rounded; then z is added. */
static void sum_planes(void *arg, int64_t begin, int64_t end, int worker)
{
    const PoolRun *r = arg;
    (void)worker;
    for (int64_t plane = begin; plane < end; plane++) {
        i64 sum = 0;
        for (int64_t i = 0; i < r->in; i++)
            sum += (i64)r->x[plane * r->in + i];
        const f32 v = (f32)(i32)sum * r->m;
        const i64 fixed = fixed_times((i32)sum, r->by);
        if (r->out.fixed)
            codes_put_fixed(&r->out, plane, 1, &fixed, &v);
        else
            codes_put(&r->out, plane, 1, &v);
    }
}

static Status eval_qglobal_average_pool(Eval *e)
{
    const Type *x = e->in[X]->type;
    PoolRun r = { 0 };
    pool_open(e, &r, &((const QglobalAttr *)e->attr)->codes);
    const f32 all = r.sy * (f32)r.in;
    r.m = r.sx / all;
    r.by = fixed_factor(r.m);
    eval_parallel(e, x->dims[0] * x->dims[1], sum_planes, &r);
    return OK;
}

/* Everything but the data. */
static void sample_pool_codes(Build *b, Rng *rng, DType tx, DType ty, Node **ins)
{
    ins[X_SCALE] = sample_scale(b, rng);
    ins[X_ZERO] = sample_zero_point(b, rng, tx);
    ins[Y_SCALE] = sample_scale(b, rng);
    ins[Y_ZERO] = sample_zero_point(b, rng, ty);
}

static const DType codes[] = { U8, I8, U16, I16 };

static Node *sample_qaverage_pool(Build *b, Rng *rng, int variant)
{
    const DType tx = codes[rng_below(rng, COUNT(codes))], ty = codes[rng_below(rng, COUNT(codes))];
    QpoolAttr at = { .pool.count_include_pad = rng_below(rng, 2), .codes = sample_codes_attr(rng, ty) };
    Node *ins[OPERANDS] = { sample_pooled(b, rng, variant, tx, &at.pool) };
    at.codes.factor = FACTOR_F32;
    sample_pool_codes(b, rng, tx, ty, ins);
    return build_node_n(b, OP_qaverage_pool, &at, OPERANDS, ins, 1 + variant % 2);
}

static Node *sample_qglobal_average_pool(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = 3 + variant % 3;
    const DType tx = codes[rng_below(rng, COUNT(codes))], ty = codes[rng_below(rng, COUNT(codes))];
    const QglobalAttr at = { sample_codes_attr(rng, ty) };
    sample_dims(rng, 2, 3, dims);
    for (int i = 2; i < rank; i++)
        dims[i] = rng_range(rng, 1, 5);
    Node *ins[OPERANDS] = { sample_codes(b, rng, tx, rank, dims) };
    sample_pool_codes(b, rng, tx, ty, ins);
    return build_node_n(b, OP_qglobal_average_pool, &at, OPERANDS, ins, 1 + variant % 2);
}

static bool iterate_qaverage_pool(const Node *n, Arena *arena, Iteration *to)
{
    if (!iterate_mean_pool(n, arena, to))
        return false;
    reach_rest(n, to);
    return true;
}

/* A plane at a time. */
static bool iterate_qglobal_average_pool(const Node *n, Arena *arena, Iteration *to)
{
    const Type *y = access_result(n, 0), *x = in(n, X)->type;
    if (!type_known(y) || !type_known(x) || !iteration_open(to, n, arena, y->rank, y->dims))
        return false;
    for (int i = 2; i < x->rank; i++)
        iteration_fold(to, x->dims[i]);
    reach_affine(to, arena, &to->in[X], x->rank);
    for (int i = 0; i < x->rank; i++)
        reach_along(to, &to->in[X], i, i < 2 ? i : y->rank + i - 2, 1);
    for (int i = 0; i < to->n_out; i++)
        reach_axes(to, arena, &to->out[i], y->rank, 0);
    reach_rest(n, to);
    return true;
}

#define POOL_CARD(word, list, k, text)                                                                                 \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = OPERANDS,                                                                                            \
        .max_in = OPERANDS,                                                                                            \
        .min_out = 1,                                                                                                  \
        .max_out = 2,                                                                                                  \
        .saved = codes_saved,                                                                                          \
        .attrs = list,                                                                                                 \
        .infer = infer_##word,                                                                                         \
        .eval = eval_##word,                                                                                           \
        .sample = sample_##word,                                                                                       \
        .n_variants = 48,                                                                                              \
        .adjoint = adjoint_##word,                                                                                     \
        .differentiable = 1u << X | 1u << Y_SCALE | 1u << Y_ZERO,                                                      \
        .gives_codes = 1,                                                                                              \
        .weight = 5,                                                                                                   \
        .access.kind = k,                                                                                              \
        .access.iterate = iterate_##word,                                                                              \
        .access.kernels = kernels_##word,                                                                              \
        .amp = { AMP_N, AMP_N, 1u << X_SCALE | 1u << Y_SCALE, REASON_MEANING, NULL },                                  \
        .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },                                                    \
        .brief = text,                                                                                                 \
    };
POOL_CARD(qaverage_pool, qaverage_pool_attrs, ACCESS_WINDOW, "Averages of windows of codes, which are codes.")
POOL_CARD(qglobal_average_pool, qglobal_attrs, ACCESS_FOLD, "Averages of whole channels of codes, which are codes.")
#undef POOL_CARD
