/* max_pool, average_pool and lp_pool: one number of each window. */
#include <string.h>

#include "base/half.h"
#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/window/pool_codes.h"
#include "ops/window/window_access.h"
#include "ops/window/window_kernels.h"

static const AttrSpec max_pool_attrs[] = {
    WINDOW_PLACE_ATTRS(PoolAttr),
    { .name = "ceil_mode", .kind = ATTR_BOOL, .offset = offsetof(PoolAttr, window.ceil_mode) },
    WINDOW_INTS(PoolAttr, dilations),
    WINDOW_REQUIRED_INTS(PoolAttr, kernel_shape),
    ATTR(PoolAttr, storage_order, INT, 0),
    ATTR_LAST,
};

static const AttrSpec average_pool_attrs[] = {
    WINDOW_PLACE_ATTRS(PoolAttr),
    { .name = "ceil_mode", .kind = ATTR_BOOL, .offset = offsetof(PoolAttr, window.ceil_mode) },
    ATTR(PoolAttr, count_include_pad, BOOL, false),
    WINDOW_INTS(PoolAttr, dilations),
    WINDOW_REQUIRED_INTS(PoolAttr, kernel_shape),
    ATTR_LAST,
};

static const AttrSpec lp_pool_attrs[] = {
    WINDOW_PLACE_ATTRS(PoolAttr),
    { .name = "ceil_mode", .kind = ATTR_BOOL, .offset = offsetof(PoolAttr, window.ceil_mode) },
    WINDOW_INTS(PoolAttr, dilations),
    WINDOW_REQUIRED_INTS(PoolAttr, kernel_shape),
    ATTR(PoolAttr, p, INT, 2),
    ATTR_LAST,
};

/* The type of a pool of operand 0; null after a complaint. */
static const Type *infer_pooled(Infer *q, bool integers)
{
    const PoolAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    if (!dtype_is_float(x->dtype) && !(integers && dtype_is_integer(x->dtype) && x->dtype != U64))
        return infer_fail(q, "needs %s, got %s", integers ? "numbers" : "floats", type_text(q->scratch, x));
    if (x->rank < 0)
        return x;
    if (x->rank < 3)
        return infer_fail(q, "needs at least 3 dimensions, got %d", x->rank);
    Window w;
    return infer_window(q, &at->window, x, NULL, &w) ? infer_channels(q, x->dtype, x->dims[0], x->dims[1], &w) : NULL;
}

static const Type *infer_max_pool(Infer *q)
{
    const int64_t order = ((const PoolAttr *)q->attr)->storage_order;
    const Type *y = infer_pooled(q, true);
    if (!y)
        return NULL;
    if (order != 0 && order != 1)
        return infer_fail(q, "storage_order is %" PRId64 ", wanted is 0 or 1", order);
    return infer_results(q, 2, (const Type *const[]){ y, type_with_dtype(q->types, y, I64) });
}

static const Type *infer_average_pool(Infer *q)
{
    return infer_pooled(q, false);
}

static const Type *infer_lp_pool(Infer *q)
{
    const int64_t p = ((const PoolAttr *)q->attr)->p;
    return p < 1 ? infer_fail(q, "p is %" PRId64 ", wanted is at least 1", p) : infer_pooled(q, false);
}

typedef struct PoolRun {
    const Kernels *kernels;
    const PoolAttr *at;
    Window w;
    int64_t in, out;
    const void *x;
    const Tensor *data; /* in place of x: of f32, plane by plane; */
    f32 *planes;        /* one for each worker */
    void *y;
    i64 *indices;
    DType lowest;        /* of the type that is pooled */
    i64 *where;          /* of the largest: a line for each worker */
    PlaneWindows planar; /* where nobody asks for places; of no columns: window by window */
    u16 *keys;           /* of codes: what each worker works in */
} PoolRun;

const f32 *pool_plane(const Kernels *level, const f32 *x, const Tensor *data, int64_t at, int64_t n, f32 *room)
{
    if (x)
        return x + at * n;
    kernels_load_f32(level, room, data, at * n, n);
    return room;
}

static const f32 *plane_f32(const PoolRun *r, int64_t image, int worker)
{
    return pool_plane(r->kernels, r->x, r->data, image, r->in, r->planes + worker * r->in);
}

static const f64 *plane_f64(const PoolRun *r, int64_t image, int worker)
{
    (void)worker;
    return (const f64 *)r->x + image * r->in;
}

static const i64 *plane_i64(const PoolRun *r, int64_t image, int worker)
{
    (void)worker;
    return (const i64 *)r->x + image * r->in;
}

/* The number of an element in its image when the first spatial dimension is the fastest. */
static i64 column_major(const Window *w, i64 offset)
{
    i64 stride = w->rank ? window_product(w->rank, w->in) : 1, index = 0;
    for (int i = w->rank - 1; i >= 0; i--) {
        stride /= w->in[i];
        index += offset % w->in[i] * stride;
        offset /= w->in[i];
    }
    return index;
}

static i64 lowest_i64(DType d);

/* Integers of up to 16 bits are numbers of f32. */
static bool is_short(DType d)
{
    return d == U8 || d == I8 || d == U16 || d == I16;
}

static f32 lowest_f32(DType d)
{
    return is_short(d) ? (f32)lowest_i64(d) : -Q_INF;
}

static f64 lowest_f64(DType d)
{
    (void)d;
    return -(f64)Q_INF;
}

/* Of windows that see padding only. */
static i64 lowest_i64(DType d)
{
    return dtype_class(d) == CLASS_UINT ? 0 : (i64)(-1ull << (dtype_bits(d) - 1));
}

enum { SIDE_BY_SIDE = 64 }; /* windows that are looked at together */

static int64_t ceil_div(int64_t x, int64_t y)
{
    return x <= 0 ? 0 : (x + y - 1) / y;
}

LineWindows pool_line_windows(const Window *w, const int64_t *line, bool partly)
{
    LineWindows b = { 0 };
    if (w->rank != 2 || w->in[0] * w->in[1] > INT32_MAX || (w->kernel[1] - 1) * w->dilation[1] >= LARGEST_REACH)
        return b;
    const int64_t top = line[0] * w->stride[0] - w->begin[0], down = w->dilation[0], across = w->dilation[1];
    const int64_t skipped = ceil_div(-top, down), left = (w->kernel[1] - 1) * across, begin = w->begin[1];
    const int64_t room = w->in[0] - top <= 0 ? 0 : ceil_div(w->in[0] - top, down);
    const int64_t rows = (room < w->kernel[0] ? room : w->kernel[0]) - skipped;
    const int64_t last = w->in[1] + begin - left - 1;
    int64_t from = ceil_div(begin, w->stride[1]), to = last < 0 ? 0 : last / w->stride[1] + 1;
    to = to < w->out[1] ? to : w->out[1];
    if (rows <= 0 || from >= to)
        return b;
    if (partly) { /* one sees all: the data is longer than taps are apart, so that between its ends none is skipped */
        from = ceil_div(begin - left, w->stride[1]);
        to = (w->in[1] + begin - 1) / w->stride[1] + 1;
        to = to < w->out[1] ? to : w->out[1];
    }
    b.from = from;
    b.to = to;
    b.row = (top + skipped * down) * w->in[1];
    b.taps = (WindowTaps){ .rows = (i32)rows,
                           .cols = (i32)w->kernel[1],
                           .row_step = (i32)(down * w->in[1]),
                           .col_step = (i32)across,
                           .stride = (i32)w->stride[1],
                           .before = (i32)(begin - from * w->stride[1]),
                           .width = (i32)w->in[1] };
    return b;
}

/* Tap by tap, so that no window waits for itself; in whole numbers, for compilers make branches of choices. */
#define LARGEST_BESIDE(T, BETTER)                                                                                      \
    static void tap_by_tap_##T(const WindowTaps *t, const T *x, int64_t n, i32 *where)                                 \
    {                                                                                                                  \
        memset(where, 0, (size_t)n * sizeof *where);                                                                   \
        for (i32 k = 1; k < t->rows * t->cols; k++) {                                                                  \
            const i32 at = k / t->cols * t->row_step + k % t->cols * t->col_step;                                      \
            const T *from = x - t->before;                                                                             \
            for (int64_t i = 0; i < n; i++, from += t->stride)                                                         \
                where[i] ^= (where[i] ^ at) & -(i32)(BETTER(from[at], from[where[i]]));                                \
        }                                                                                                              \
    }

/* The largest wins, the first of equals; a NaN wins over all, and 0 over -0, as in max. */
#define MAX_POOL(T, BETTER, IS_MINUS_ZERO)                                                                             \
    static i64 largest_in_##T(const Window *w, const T *x, const int64_t *at)                                          \
    {                                                                                                                  \
        Taps t;                                                                                                        \
        if (!taps_at(&t, w, at))                                                                                       \
            return -1;                                                                                                 \
        i64 where = t.offset;                                                                                          \
        do                                                                                                             \
            for (int64_t i = 0, p = t.offset; i < t.n; i++, p += t.step)                                               \
                where = BETTER(x[p], x[where]) ? p : where;                                                            \
        while (taps_next(&t));                                                                                         \
        return where;                                                                                                  \
    }                                                                                                                  \
    /* the first 0 of a window whose largest seems to be -0, where it has one */                                       \
    static i64 plus_zero_##T(const Window *w, const T *x, const int64_t *at, i64 found)                                \
    {                                                                                                                  \
        Taps t;                                                                                                        \
        if (found < 0 || !IS_MINUS_ZERO(x[found]) || !taps_at(&t, w, at))                                              \
            return found;                                                                                              \
        do                                                                                                             \
            for (int64_t i = 0, p = t.offset; i < t.n; i++, p += t.step)                                               \
                if (x[p] == 0 && !IS_MINUS_ZERO(x[p]))                                                                 \
                    return p;                                                                                          \
        while (taps_next(&t));                                                                                         \
        return found;                                                                                                  \
    }                                                                                                                  \
    void pool_largest_line_##T(const Kernels *level, const Window *w, const T *x, const int64_t *line, i64 *where)     \
    {                                                                                                                  \
        const int last = w->rank - 1;                                                                                  \
        LineWindows b = pool_line_windows(w, line, ALL_OF_##T);                                                        \
        int64_t at[MAX_SPATIAL];                                                                                       \
        i32 found[SIDE_BY_SIDE];                                                                                       \
        memcpy(at, line, sizeof at);                                                                                   \
        for (int64_t i = b.from; i < b.to; i += SIDE_BY_SIDE) {                                                        \
            const int64_t first = b.row - b.taps.before, n = b.to - i < SIDE_BY_SIDE ? b.to - i : SIDE_BY_SIDE;        \
            const bool settled = largest_beside_##T(level, &b.taps, x + b.row, n, found);                              \
            for (int64_t k = 0; k < n; k++)                                                                            \
                where[i + k] = first + k * b.taps.stride + found[k];                                                   \
            b.taps.before -= SIDE_BY_SIDE * b.taps.stride;                                                             \
            for (int64_t k = 0; k < n && !settled; k++) {                                                              \
                at[last] = i + k;                                                                                      \
                where[i + k] = plus_zero_##T(w, x, at, where[i + k]);                                                  \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t i = b.from ? 0 : b.to; i < w->out[last]; i = i + 1 == b.from ? b.to : i + 1) {                    \
            at[last] = i;                                                                                              \
            where[i] = plus_zero_##T(w, x, at, largest_in_##T(w, x, at));                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void max_pool_##T(void *arg, int64_t begin, int64_t end, int worker)                                        \
    {                                                                                                                  \
        const PoolRun *r = arg;                                                                                        \
        const int64_t width = r->w.out[r->w.rank - 1];                                                                 \
        i64 *line = r->where + worker * width;                                                                         \
        for (int64_t image = begin; image < end; image++) {                                                            \
            const T *x = plane_##T(r, image, worker);                                                                  \
            int64_t at[MAX_SPATIAL] = { 0 };                                                                           \
            for (int64_t j = image * r->out; j < (image + 1) * r->out; j += width) {                                   \
                pool_largest_line_##T(r->kernels, &r->w, x, at, line);                                                 \
                for (int64_t i = 0; i < width; i++) {                                                                  \
                    i64 where = line[i];                                                                               \
                    ((T *)r->y)[j + i] = where < 0 ? lowest_##T(r->lowest) : x[where];                                 \
                    if (r->indices && where >= 0)                                                                      \
                        where = image * r->in + (r->at->storage_order ? column_major(&r->w, where) : where);           \
                    if (r->indices)                                                                                    \
                        r->indices[j + i] = where;                                                                     \
                }                                                                                                      \
                position_next(r->w.rank - 1, r->w.out, at);                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }

#define ABOVE(a, b)  ((a) > (b))
#define OR_NAN(a, b) (!((a) <= (b)) & ((b) == (b)))
/* One comparison, which is nearly always false: zeros are common behind a relu, and their signs are not. */
#define MINUS32(a) (half_bits32(a) == UINT32_C(1) << 31)
#define MINUS64(a) (half_bits64(a) == UINT64_C(1) << 63)
#define NEVER(a)   ((void)(a), false)
LARGEST_BESIDE(f64, OR_NAN)
LARGEST_BESIDE(i64, ABOVE)

/* Whether -0 was found nowhere where 0 stands, as the loop of a level does, which is of f32. */
static bool largest_beside_f32(const Kernels *level, const WindowTaps *t, const f32 *x, int64_t n, i32 *where)
{
    kernels_largest(level)->find(t, x, (size_t)n, where);
    return true;
}

static bool largest_beside_f64(const Kernels *level, const WindowTaps *t, const f64 *x, int64_t n, i32 *where)
{
    (void)level;
    tap_by_tap_f64(t, x, n, where);
    return false;
}

static bool largest_beside_i64(const Kernels *level, const WindowTaps *t, const i64 *x, int64_t n, i32 *where)
{
    (void)level;
    tap_by_tap_i64(t, x, n, where);
    return false;
}

#define ALL_OF_f32 true
#define ALL_OF_f64 false
#define ALL_OF_i64 false

MAX_POOL(f32, OR_NAN, MINUS32)
MAX_POOL(f64, OR_NAN, MINUS64)
MAX_POOL(i64, ABOVE, NEVER)
#undef ABOVE
#undef OR_NAN
#undef MINUS32
#undef MINUS64
#undef NEVER
#undef MAX_POOL
#undef LARGEST_BESIDE
#undef ALL_OF_i64
#undef ALL_OF_f64
#undef ALL_OF_f32

int64_t pool_count(const PoolAttr *a, const Window *w, const int64_t *at, const Taps *seen)
{
    int64_t count = a->count_include_pad || seen ? 1 : 0;
    for (int i = 0; i < w->rank; i++) {
        const int64_t room = w->in[i] + w->begin[i] + w->end[i] - at[i] * w->stride[i];
        const int64_t taps = (room + w->dilation[i] - 1) / w->dilation[i];
        if (a->count_include_pad)
            count *= taps < w->kernel[i] ? taps : w->kernel[i];
        else if (seen)
            count *= seen->count[i];
    }
    return count;
}

/* Pools that add up TERM of each x in a window, tap after tap, ascending, and give RESULT of the sum: of one channel of an
 * image, and of all. */
#define SUM_POOL(NAME, T, TERM, RESULT)                                                                                \
    static void NAME##_plane_##T(const PoolAttr *a, const Window *w, const T *from, T *to)                             \
    {                                                                                                                  \
        int64_t at[MAX_SPATIAL] = { 0 };                                                                               \
        for (int64_t j = 0, n = window_product(w->rank, w->out); j < n; j++) {                                         \
            Taps t;                                                                                                    \
            T sum = 0;                                                                                                 \
            const bool seen = taps_at(&t, w, at);                                                                      \
            for (bool more = seen; more; more = taps_next(&t))                                                         \
                for (int64_t i = 0, p = t.offset; i < t.n; i++, p += t.step) {                                         \
                    const T x = from[p];                                                                               \
                    sum += TERM;                                                                                       \
                }                                                                                                      \
            to[j] = RESULT;                                                                                            \
            position_next(w->rank, w->out, at);                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void NAME##_##T(void *arg, int64_t begin, int64_t end, int worker)                                          \
    {                                                                                                                  \
        const PoolRun *r = arg;                                                                                        \
        for (int64_t image = begin; image < end; image++)                                                              \
            NAME##_plane_##T(r->at, &r->w, plane_##T(r, image, worker), (T *)r->y + image * r->out);                   \
    }

#define MEAN(T) sum / (T)pool_count(a, w, at, seen ? &t : NULL)
SUM_POOL(average_pool, f32, x, MEAN(f32))
SUM_POOL(average_pool, f64, x, MEAN(f64))
#undef MEAN

void pool_average_plane(const PoolAttr *a, const Window *w, const f32 *x, f32 *y)
{
    average_pool_plane_f32(a, w, x, y);
}

/* (sum of |x|^p)^(1/p) */
#define POWERS(T)                                                                                                      \
    static T power_##T(T x, int64_t p)                                                                                 \
    {                                                                                                                  \
        const T a = q_abs(x);                                                                                          \
        return p == 1 ? a : p == 2 ? a * a : q_pow(a, (T)p);                                                           \
    }                                                                                                                  \
    static T root_##T(T sum, int64_t p)                                                                                \
    {                                                                                                                  \
        return p == 1 ? sum : p == 2 ? q_sqrt(sum) : q_pow(sum, 1 / (T)p);                                             \
    }
POWERS(f32)
POWERS(f64)
#undef POWERS
SUM_POOL(lp_pool, f32, power_f32(x, a->p), root_f32(sum, a->p))
SUM_POOL(lp_pool, f64, power_f64(x, a->p), root_f64(sum, a->p))
#undef SUM_POOL

/* Where NaNs are among the largest the planes are gone through once more, window by window. */
static void max_pool_values(void *arg, int64_t begin, int64_t end, int worker)
{
    const PoolRun *r = arg;
    const LargestLoops *loops = kernels_largest(r->kernels);
    const f32 lowest = lowest_f32(r->lowest);
    f32 *y = (f32 *)r->y + begin * r->out;
    bool are_numbers = !r->x || loops->values(&r->planar, lowest, end - begin, (const f32 *)r->x + begin * r->in, y);
    for (int64_t i = begin; i < end && !r->x; i++, y += r->out)
        are_numbers = loops->values(&r->planar, lowest, 1, plane_f32(r, i, worker), y) && are_numbers;
    if (!are_numbers)
        max_pool_f32(arg, begin, end, worker);
}

/* Runs a pool over all channels of all images. */
static Status eval_pooled(Eval *e, const ParallelFn pools[3])
{
    const Type *x = e->in[0]->type;
    PoolRun r = { .kernels = e->kernels, .at = e->attr, .lowest = x->dtype };
    ParallelFn fn;
    eval_window(e, &r.at->window, 0, NULL, &r.w);
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    if (!dtype_is_float(x->dtype) && !is_short(x->dtype))
        fn = pools[2], r.x = eval_i64(e, 0), r.y = eval_out_i64(e, 0);
    else if (x->dtype == F64)
        fn = pools[1], r.x = eval_f64(e, 0), r.y = eval_out_f64(e, 0);
    else
        fn = pools[0], r.y = eval_out_f32(e, 0);
    if (fn == pools[0] && x->dtype == F32)
        r.x = eval_f32(e, 0);
    else if (fn == pools[0])
        r.data = e->in[0], r.planes = eval_room(e, (size_t)parallel_threads(e->pool) * (size_t)r.in, sizeof *r.planes);
    if (e->n_out > 1)
        r.indices = eval_out_i64(e, 1);
    r.where = eval_room(e, (size_t)parallel_threads(e->pool) * (size_t)r.w.out[r.w.rank - 1], sizeof *r.where);
    if (fn == max_pool_f32 && !r.indices)
        r.planar = window_planar(&r.w);
    if (r.planar.out[1])
        fn = max_pool_values;
    if (r.out)
        eval_parallel(e, x->dims[0] * x->dims[1], fn, &r);
    return OK;
}

/* Channels of codes, each as a plane. */
static void max_pool_codes(void *arg, int64_t begin, int64_t end, int worker)
{
    const PoolRun *r = arg;
    const int64_t most = pool_codes_stacked(&r->w);
    u16 *room = r->keys + (size_t)worker * (size_t)most * pool_codes_room(&r->w);
    for (int64_t i = begin, n; i < end; i += n) {
        Window w = r->w;
        n = end - i < most ? end - i : most;
        w.in[0] *= n, w.out[0] *= n;
        pool_codes_plane(r->kernels, &w, r->lowest, (const uint8_t *)r->x + i * r->in, (uint8_t *)r->y + i * r->out,
                         room);
    }
}

/* Whether codes were pooled so. */
static bool pools_codes(Eval *e)
{
    const Tensor *x = e->in[0];
    PoolRun r = { .kernels = e->kernels, .at = e->attr, .lowest = x->type->dtype, .x = x->data };
    eval_window(e, &r.at->window, 0, NULL, &r.w);
    if (e->n_out > 1 || !pool_codes_serve(&r.w, r.lowest, false))
        return false;
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    r.y = eval_out(e, 0)->data;
    r.keys = eval_room(e, (size_t)(parallel_threads(e->pool) * pool_codes_stacked(&r.w)) * pool_codes_room(&r.w),
                       sizeof *r.keys);
    eval_parallel(e, x->type->dims[0] * x->type->dims[1], max_pool_codes, &r);
    return true;
}

static Status eval_max_pool(Eval *e)
{
    if (pools_codes(e))
        return OK;
    return eval_pooled(e, (const ParallelFn[]){ max_pool_f32, max_pool_f64, max_pool_i64 });
}

static Status eval_average_pool(Eval *e)
{
    return eval_pooled(e, (const ParallelFn[]){ average_pool_f32, average_pool_f64, NULL });
}

static Status eval_lp_pool(Eval *e)
{
    return eval_pooled(e, (const ParallelFn[]){ lp_pool_f32, lp_pool_f64, NULL });
}

Node *sample_pooled(Build *b, Rng *rng, int variant, DType dtype, PoolAttr *at)
{
    int64_t x[MAX_RANK], *kernel = NEWS(b->graph->arena, int64_t, MAX_SPATIAL);
    const int rank = 1 + variant % 3;
    sample_dims(rng, 2, 3, x);
    for (int i = 0; i < rank; i++)
        x[2 + i] = rng_range(rng, 1, 7);
    sample_window(rng, b->graph->arena, rank, x + 2, kernel, &at->window);
    at->window.kernel_shape = (Ints){ rank, kernel };
    sample_rounding(rng, b->graph->arena, rank, x + 2, kernel, &at->window);
    return sample_tensor(b, rng, dtype, rank + 2, x, dtype_class(dtype) == CLASS_UINT ? 0 : -3, 3);
}

static Node *sample_max_pool(Build *b, Rng *rng, int variant)
{
    PoolAttr at = { .storage_order = rng_below(rng, 2) };
    const DType dtype = variant % 5 == 4 ? I8 : variant % 5 == 3 ? U8 : sample_float(rng);
    Node *x = sample_pooled(b, rng, variant, dtype, &at);
    return build_node_n(b, OP_max_pool, &at, 1, &x, 1 + variant % 2);
}

static Node *sample_average_pool(Build *b, Rng *rng, int variant)
{
    PoolAttr at = { .count_include_pad = rng_below(rng, 2) };
    Node *x = sample_pooled(b, rng, variant, sample_float(rng), &at);
    return CALL_ATTR(b, average_pool, at, x);
}

static Node *sample_lp_pool(Build *b, Rng *rng, int variant)
{
    PoolAttr at = { .p = rng_range(rng, 1, 4) };
    Node *x = sample_pooled(b, rng, variant, sample_float(rng), &at);
    return CALL_ATTR(b, lp_pool, at, x);
}

const OpDef op_max_pool = {
    .name = "max_pool",
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 2,
    .attrs = max_pool_attrs,
    .infer = infer_max_pool,
    .eval = eval_max_pool,
    .sample = sample_max_pool,
    .n_variants = 45,
    .adjoint = adjoint_max_pool,
    .open_adjoint = true,
    .differentiable = 1,
    .weight = 4,
    .access.kind = ACCESS_WINDOW,
    .access.iterate = iterate_max_pool,
    .access.kernels = kernels_max_pool,
    .amp = { AMP_PM, AMP_PM, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_AGNOSTIC }, .out = { QUANT_AGNOSTIC, QUANT_NEVER }, .same_scale = true },
    .onnx = { "MaxPool", 22, NULL },
    .least_version = window_least_version,
};

const OpDef op_average_pool = {
    .name = "average_pool",
    .min_in = 1,
    .max_in = 1,
    .attrs = average_pool_attrs,
    .infer = infer_average_pool,
    .eval = eval_average_pool,
    .sample = sample_average_pool,
    .n_variants = 36,
    .adjoint = adjoint_average_pool,
    .differentiable = 1,
    .weight = 4,
    .access.kind = ACCESS_WINDOW,
    .access.iterate = iterate_mean_pool,
    .access.kernels = kernels_average_pool,
    .amp = { AMP_S, AMP_S, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT }, .out = { QUANT_INPUT }, .integer = OP_qaverage_pool },
    .onnx = { "AveragePool", 22, NULL },
    .least_version = window_least_version,
};

const OpDef op_lp_pool = {
    .name = "lp_pool",
    .min_in = 1,
    .max_in = 1,
    .attrs = lp_pool_attrs,
    .infer = infer_lp_pool,
    .eval = eval_lp_pool,
    .sample = sample_lp_pool,
    .n_variants = 36,
    .adjoint = adjoint_lp_pool,
    .differentiable = 1,
    .weight = 6,
    .access.kind = ACCESS_WINDOW,
    .access.iterate = iterate_mean_pool,
    .amp = { AMP_FO, AMP_FO, 0, REASON_RANGE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "LpPool", 22, NULL },
    .least_version = window_least_version,
};
