/* max_pool_grad and average_pool_grad: what reaches the data of a pool.  An element is the sum of what its windows
 * bring, in their order.  lp_pool needs no word: col2im spreads what its windows bring. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/window/pool_codes.h"
#include "ops/window/window_kernels.h"

typedef struct PoolGradAttr {
    PoolAttr pool;
    Ints extents; /* of the data, where it is no operand */
} PoolGradAttr;

#define POOL_ATTRS                                                                                                     \
    WINDOW_PLACE_ATTRS(PoolAttr),                                                                                      \
        { .name = "ceil_mode", .kind = ATTR_BOOL, .offset = offsetof(PoolAttr, window.ceil_mode) },                    \
        WINDOW_INTS(PoolAttr, dilations), WINDOW_REQUIRED_INTS(PoolAttr, kernel_shape)

static const AttrSpec max_pool_grad_attrs[] = { POOL_ATTRS, ATTR_LAST };

static const AttrSpec average_pool_grad_attrs[] = {
    POOL_ATTRS,
    ATTR(PoolAttr, count_include_pad, BOOL, false),
    ATTR_REQUIRED(PoolGradAttr, extents, INTS),
    ATTR_LAST,
};
#undef POOL_ATTRS

/* Whether dy is what a window over [N, C, extents..] gives; the type of the data, or null after a complaint. */
static const Type *infer_pooled_grad(Infer *q, const Type *dy, const int64_t *dims)
{
    const PoolAttr *at = q->attr;
    Window w;
    const Type *x = type_tensor(q->types, dy->dtype, dy->rank, dims);
    if (!infer_window(q, &at->window, x, NULL, &w))
        return NULL;
    bool fits = dims_fit(dy->dims[0], dims[0]) && dims_fit(dy->dims[1], dims[1]);
    for (int i = 0; i < w.rank; i++)
        fits = fits && dims_fit(w.out[i], dy->dims[2 + i]);
    return fits ? x : infer_fail(q, "%s is no result over %s", type_text(q->scratch, dy), type_text(q->scratch, x));
}

static const Type *infer_max_pool_grad(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *dy = x ? infer_tensor(q, 1) : NULL;
    if (!dy)
        return NULL;
    const bool codes = x->dtype == U8 || x->dtype == I8 || x->dtype == U16 || x->dtype == I16;
    if (!(codes || dtype_is_float(x->dtype)) || !dtype_is_float(dy->dtype))
        return infer_fail(q, "needs floats, got %s and %s", dtype_name(x->dtype), dtype_name(dy->dtype));
    if (x->rank < 0 || dy->rank < 0)
        return type_unranked(q->types, dy->dtype);
    if (x->rank < 3 || dy->rank != x->rank)
        return infer_fail(q, "needs one rank of at least 3, got %d and %d", x->rank, dy->rank);
    return infer_pooled_grad(q, dy, x->dims);
}

static const Type *infer_average_pool_grad(Infer *q)
{
    const Ints extents = ((const PoolGradAttr *)q->attr)->extents;
    const Type *dy = infer_tensor(q, 0);
    int64_t dims[MAX_RANK];
    if (!dy)
        return NULL;
    if (!dtype_is_float(dy->dtype))
        return infer_fail(q, "needs floats, got %s", type_text(q->scratch, dy));
    if (dy->rank < 0)
        return dy;
    if (dy->rank < 3 || extents.n != dy->rank - 2)
        return infer_fail(q, "has %d extents for %d dimensions", extents.n, dy->rank);
    memcpy(dims, dy->dims, 2 * sizeof *dims);
    for (int i = 0; i < extents.n; i++) {
        dims[2 + i] = extents.v[i];
        if (extents.v[i] < 0 || extents.v[i] > q->ir->limits.dim)
            return infer_fail(q, "extents holds %" PRId64, extents.v[i]);
    }
    const Type *x = infer_dims(q, dy->dtype, dy->rank, dims);
    return x ? infer_pooled_grad(q, dy, dims) : NULL;
}

typedef struct PoolGradRun {
    const Kernels *kernels;
    const PoolAttr *at;
    Window w;
    int64_t in, out;
    const void *x, *dy;
    const Tensor *data; /* in place of x: of f32, plane by plane; */
    f32 *planes;        /* one for each worker */
    void *dx;
    i64 *where; /* a line for each worker */
    DType code; /* of data that are codes; */
    u16 *keys;  /* and what each worker works in */
} PoolGradRun;

static const f32 *plane_f32(const PoolGradRun *r, int64_t image, int worker)
{
    return pool_plane(r->kernels, r->x, r->data, image, r->in, r->planes + worker * r->in);
}

static const f64 *plane_f64(const PoolGradRun *r, int64_t image, int worker)
{
    (void)worker;
    return (const f64 *)r->x + image * r->in;
}

/* Whether what the windows of a line bring was added by the loops of a level, which are of f32. */
static bool line_grad_f32(const PoolGradRun *r, const f32 *x, const int64_t *line, const f32 *dy, f32 *dx)
{
    enum { AT_ONCE = 256 };
    i32 where[AT_ONCE];
    const LargestLoops *l = kernels_largest(r->kernels);
    LineWindows b = pool_line_windows(&r->w, line, true);
    for (int64_t i = b.from; i < b.to; i += AT_ONCE, b.taps.before -= AT_ONCE * b.taps.stride) {
        const size_t n = (size_t)(b.to - i < AT_ONCE ? b.to - i : AT_ONCE);
        l->find(&b.taps, x + b.row, n, where);
        l->add(&b.taps, where, dy + i, n, dx + b.row);
    }
    return b.from < b.to;
}
#define line_grad_f64(...) false

/* Image by image; within one, window after window. */
#define POOL_GRAD(T)                                                                                                   \
    static void max_grad_##T(const PoolGradRun *r, const T *x, const T *dy, T *dx, i64 *where)                         \
    {                                                                                                                  \
        const int64_t width = r->w.out[r->w.rank - 1];                                                                 \
        int64_t at[MAX_SPATIAL] = { 0 };                                                                               \
        for (const T *end = dy + r->out; dy < end; dy += width, position_next(r->w.rank - 1, r->w.out, at)) {          \
            if (line_grad_##T(r, x, at, dy, dx))                                                                       \
                continue;                                                                                              \
            pool_largest_line_##T(r->kernels, &r->w, x, at, where);                                                    \
            for (int64_t j = 0; j < width; j++)                                                                        \
                if (where[j] >= 0)                                                                                     \
                    dx[where[j]] += dy[j];                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void average_grad_##T(const PoolGradRun *r, int64_t image, const T *dy, T *dx)                              \
    {                                                                                                                  \
        int64_t at[MAX_SPATIAL] = { 0 };                                                                               \
        (void)image;                                                                                                   \
        for (int64_t j = 0; j < r->out; j++) {                                                                         \
            Taps t;                                                                                                    \
            bool more = taps_at(&t, &r->w, at);                                                                        \
            const T share = more ? dy[j] / (T)pool_count(r->at, &r->w, at, &t) : 0;                                    \
            for (; more; more = taps_next(&t))                                                                         \
                for (int64_t i = 0, p = t.offset; i < t.n; i++, p += t.step)                                           \
                    dx[p] += share;                                                                                    \
            position_next(r->w.rank, r->w.out, at);                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void pool_grads_##T(void *arg, int64_t begin, int64_t end, int worker)                                      \
    {                                                                                                                  \
        const PoolGradRun *r = arg;                                                                                    \
        for (int64_t image = begin; image < end; image++) {                                                            \
            const T *dy = (const T *)r->dy + image * r->out;                                                           \
            T *dx = (T *)r->dx + image * r->in;                                                                        \
            memset(dx, 0, (size_t)r->in * sizeof(T));                                                                  \
            if (r->x || r->data)                                                                                       \
                max_grad_##T(r, plane_##T(r, image, worker), dy, dx, r->where + worker * r->w.out[r->w.rank - 1]);     \
            else                                                                                                       \
                average_grad_##T(r, image, dy, dx);                                                                    \
        }                                                                                                              \
    }
POOL_GRAD(f32)
POOL_GRAD(f64)
#undef POOL_GRAD
#undef line_grad_f64

static Status eval_pool_grad(Eval *e, int dy, const int64_t *extents)
{
    const Type *t = e->in[dy]->type;
    PoolGradRun r = { .kernels = e->kernels, .at = e->attr };
    BUG_IF(e->ir->memory, window_place(&r.w, e->scratch, &r.at->window, t->rank - 2, extents, NULL));
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    const bool wide = t->dtype == F64;
    r.dy = wide ? (const void *)eval_f64(e, dy) : eval_f32(e, dy);
    r.dx = wide ? (void *)eval_out_f64(e, 0) : eval_out_f32(e, 0);
    r.where = eval_room(e, (size_t)parallel_threads(e->pool) * (size_t)r.w.out[r.w.rank - 1], sizeof *r.where);
    if (dy && (wide || e->in[0]->type->dtype == F32))
        r.x = wide ? (const void *)eval_f64(e, 0) : eval_f32(e, 0);
    else if (dy)
        r.data = e->in[0], r.planes = eval_room(e, (size_t)parallel_threads(e->pool) * (size_t)r.in, sizeof *r.planes);
    if (tensor_elements(e->out[0]))
        eval_parallel(e, t->dims[0] * t->dims[1], wide ? pool_grads_f64 : pool_grads_f32, &r);
    return OK;
}

/* Channels of codes, each as a plane. */
static void max_grad_codes(void *arg, int64_t begin, int64_t end, int worker)
{
    const PoolGradRun *r = arg;
    u16 *room = r->keys + (size_t)worker * pool_codes_room(&r->w);
    for (int64_t i = begin; i < end; i++) {
        f32 *dx = (f32 *)r->dx + i * r->in;
        memset(dx, 0, (size_t)r->in * sizeof *dx);
        pool_codes_grad(r->kernels, &r->w, r->code, (const uint8_t *)r->x + i * r->in, (const f32 *)r->dy + i * r->out,
                        dx, room);
    }
}

/* Whether the data were codes, and it was done so. */
static bool pooled_codes(Eval *e)
{
    const Tensor *x = e->in[0];
    PoolGradRun r = { .kernels = e->kernels, .at = e->attr, .x = x->data, .code = x->type->dtype };
    if (!dtype_is_integer(r.code) || e->in[1]->type->dtype == F64)
        return false;
    BUG_IF(e->ir->memory, window_place(&r.w, e->scratch, &r.at->window, x->type->rank - 2, x->type->dims + 2, NULL));
    if (!pool_codes_serve(&r.w, r.code, true))
        return false;
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    r.dy = eval_f32(e, 1);
    r.dx = eval_out_f32(e, 0);
    r.keys = eval_room(e, (size_t)parallel_threads(e->pool) * pool_codes_room(&r.w), sizeof *r.keys);
    eval_parallel(e, x->type->dims[0] * x->type->dims[1], max_grad_codes, &r);
    return true;
}

static Status eval_max_pool_grad(Eval *e)
{
    if (pooled_codes(e))
        return OK;
    return eval_pool_grad(e, 1, e->in[0]->type->dims + 2);
}

static Status eval_average_pool_grad(Eval *e)
{
    return eval_pool_grad(e, 0, ((const PoolGradAttr *)e->attr)->extents.v);
}

void adjoint_max_pool(Build *b, const Site *s, Node **dx)
{
    const PoolAttr *pool = s->attr; /* holds what its op has, not all of the struct */
    const PoolGradAttr at = { .pool.window = pool->window };
    if (s->dout[0])
        dx[0] = CALL_ATTR(b, max_pool_grad, at, s->in[0], s->dout[0]);
}

void adjoint_average_pool(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    const PoolAttr *pool = s->attr;
    const PoolGradAttr at = { .pool.window = pool->window,
                              .pool.count_include_pad = pool->count_include_pad,
                              .extents = { x->rank - 2, x->dims + 2 } };
    dx[0] = CALL_ATTR(b, average_pool_grad, at, s->dout[0]);
}

static void adjoint_average_pool_grad(Build *b, const Site *s, Node **dx)
{
    dx[0] = CALL_ATTR(b, average_pool, ((const PoolGradAttr *)s->attr)->pool, s->dout[0]);
}

/* Of (sum |x|^p)^(1/p): dx is x |x|^(p-2) times the sum over the windows of dy / y^(p-1); a window of zeros brings
 * nothing. */
static Node *lp_share(Build *b, int64_t p, Node *y, Node *dy)
{
    const DType t = dy->type->dtype;
    if (p == 1)
        return dy;
    Node *power = p == 2 ? y : CALL(b, pow, y, build_scalar(b, t, (double)p - 1)), *zero = build_scalar(b, t, 0);
    return CALL(b, where, CALL(b, greater, power, zero), CALL(b, div, dy, power), zero);
}

static Node *lp_slope(Build *b, int64_t p, Node *x)
{
    if (p == 2)
        return x;
    Node *sign = CALL(b, sign, x), *exponent = build_scalar(b, x->type->dtype, (double)p - 1);
    return p == 1 ? sign : CALL(b, mul, sign, CALL(b, pow, CALL(b, abs, x), exponent));
}

void adjoint_lp_pool(Build *b, const Site *s, Node **dx)
{
    const PoolAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    Window w;
    StatedWindow said;
    if (type_elements(x) == 0 || type_elements(s->type) == 0)
        return;
    BUG_IF(b->graph->ir->memory, window_place(&w, b->graph->arena, &at->window, x->rank - 2, x->dims + 2, NULL));
    window_said(&w, &said);
    const int64_t columns[] = { x->dims[0] * x->dims[1], window_product(w.rank, w.kernel),
                                window_product(w.rank, w.out) };
    Node *share = lp_share(b, at->p, s->y[0], s->dout[0]);
    share = make_reshape(b, share, 3, (int64_t[]){ columns[0], 1, columns[2] });
    Node *sum = CALL_ATTR(b, col2im, (Col2imAttr){ said.attr }, make_expand(b, share, 3, columns),
                          build_i64s(b, w.rank, w.in), build_i64s(b, w.rank, w.kernel));
    dx[0] = CALL(b, mul, lp_slope(b, at->p, s->in[0]), make_reshape(b, sum, x->rank, x->dims));
}

void adjoint_global_lp_pool(Build *b, const Site *s, Node **dx)
{
    const int64_t p = ((const PoolAttr *)s->attr)->p;
    dx[0] = CALL(b, mul, lp_slope(b, p, s->in[0]), lp_share(b, p, s->y[0], s->dout[0]));
}

/* Each element of an image gets the same: repeating it is left to who reads. */
void adjoint_global_average_pool(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    const int64_t n = window_product(x->rank - 2, x->dims + 2);
    dx[0] = CALL(b, div, s->dout[0], build_scalar(b, s->dout[0]->type->dtype, (double)n));
}

/* It picks from dy for every element what its windows bring: linear in dy, whose windows pick from what arrives. */
static void adjoint_max_pool_grad(Build *b, const Site *s, Node **dx)
{
    const Type *dy = s->in[1]->type;
    const int64_t n = type_elements(s->dout[0]->type), windows = type_elements(dy);
    if (n == 0 || windows == 0)
        return;
    const PoolAttr at = { .window = ((const PoolAttr *)s->attr)->window };
    Node *pooled = build_node_n(b, OP_max_pool, &at, 1, s->in, 2);
    Node *where = pooled ? make_reshape(b, build_part(b, pooled, 1), 1, &windows) : NULL,
         *zero = build_scalar(b, I64, 0);
    Node *picked = make_gather_elements(b, make_reshape(b, s->dout[0], 1, &n), CALL(b, max, where, zero), 0);
    Node *seen = CALL(b, where, CALL(b, less, where, zero), build_scalar(b, dy->dtype, 0), picked);
    dx[1] = make_reshape(b, seen, dy->rank, dy->dims);
}

/* The data of a pool and what reaches its result; its spatial extents too. */
static void sample_pool_grad(Build *b, Rng *rng, int variant, PoolAttr *at, Node **ins, int64_t *extents)
{
    int64_t x[MAX_RANK], y[MAX_RANK], *kernel = NEWS(b->graph->arena, int64_t, MAX_SPATIAL);
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    Window w;
    sample_dims(rng, 2, 3, x);
    for (int i = 0; i < rank; i++)
        x[2 + i] = extents[i] = rng_range(rng, 1, 7);
    sample_window(rng, b->graph->arena, rank, extents, kernel, &at->window);
    at->window.kernel_shape = (Ints){ rank, kernel };
    sample_rounding(rng, b->graph->arena, rank, extents, kernel, &at->window);
    BUG_IF(b->graph->ir->memory, window_place(&w, b->graph->arena, &at->window, rank, extents, NULL));
    memcpy(y, x, 2 * sizeof *y);
    memcpy(y + 2, w.out, (size_t)rank * sizeof *y);
    ins[0] = sample_tensor(b, rng, dtype, rank + 2, x, -3, 3);
    ins[1] = sample_tensor(b, rng, dtype, rank + 2, y, -3, 3);
}

static Node *sample_max_pool_grad(Build *b, Rng *rng, int variant)
{
    int64_t extents[MAX_SPATIAL];
    PoolGradAttr at = { 0 };
    Node *ins[2];
    sample_pool_grad(b, rng, variant, &at.pool, ins, extents);
    if (variant % 4 == 3) { /* codes */
        const Type *x = ins[0]->type;
        ins[0] = sample_tensor(b, rng, variant & 8 ? I8 : U8, x->rank, x->dims, variant & 8 ? -3 : 0, 3);
    }
    return build_node(b, OP_max_pool_grad, &at, 2, ins);
}

static Node *sample_average_pool_grad(Build *b, Rng *rng, int variant)
{
    int64_t extents[MAX_SPATIAL];
    PoolGradAttr at = { .pool.count_include_pad = rng_below(rng, 2) };
    Node *ins[2];
    sample_pool_grad(b, rng, variant, &at.pool, ins, extents);
    at.extents = (Ints){ 1 + variant % 3, extents };
    return build_node(b, OP_average_pool_grad, &at, 1, ins + 1);
}

static bool kernels_average_pool_grad(const Node *n, OwnKernels *to)
{
    return kernels_of_mean_grad(n, to, ((const PoolGradAttr *)n->attr)->extents.v);
}

const OpDef op_max_pool_grad = {
    .name = "max_pool_grad",
    .min_in = 2,
    .max_in = 2,
    .attrs = max_pool_grad_attrs,
    .infer = infer_max_pool_grad,
    .eval = eval_max_pool_grad,
    .sample = sample_max_pool_grad,
    .n_variants = 36,
    .adjoint = adjoint_max_pool_grad,
    .differentiable = 2,
    .weight = 4,
    .access.kind = ACCESS_WINDOW,
    .access.kernels = kernels_of_max_grad,
    .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the data x of max_pool, from what reaches its result.",
};

const OpDef op_average_pool_grad = {
    .name = "average_pool_grad",
    .min_in = 1,
    .max_in = 1,
    .attrs = average_pool_grad_attrs,
    .infer = infer_average_pool_grad,
    .eval = eval_average_pool_grad,
    .sample = sample_average_pool_grad,
    .n_variants = 36,
    .adjoint = adjoint_average_pool_grad,
    .differentiable = 1,
    .weight = 4,
    .access.kind = ACCESS_WINDOW,
    .access.kernels = kernels_average_pool_grad,
    .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the data of average_pool, from what reaches its result.",
};
