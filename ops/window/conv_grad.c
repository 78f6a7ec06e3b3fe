/* conv_weight_grad: what reaches the weights of a convolution.
 *
 * A result is the sum over (image, position) in that order, as every contraction sums (ops/kernels/panel.h), padding
 * counting as zeros.  The evaluator gathers what some taps see at a block of positions (im2col) and multiplies by the
 * block of dy, turned; blocks of a segment continue each other's sums, so neither they nor the threads, which share out
 * the taps, show. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/kernels/panel.h"
#include "ops/window/window.h"
#include "ops/window/window_access.h"

static const AttrSpec conv_weight_grad_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),  WINDOW_INTS(ConvAttr, dilations),   WINDOW_REQUIRED_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1), ATTR_OURS(ConvAttr, out, DTYPE, 0), ATTR_LAST,
};

enum { X, DY };

static const Type *infer_conv_weight_grad(Infer *q)
{
    const ConvAttr *at = q->attr;
    const Type *x = infer_tensor(q, X), *dy = x ? infer_tensor(q, DY) : NULL;
    DType dtype;
    if (!dy || !infer_filter(q, x, dy, at->group) || !infer_contracted(q, at->out, X, &dtype))
        return NULL;
    if (x->rank < 0 || dy->rank < 0)
        return type_unranked(q->types, dtype);

    int64_t dims[MAX_RANK];
    Window w;
    const int64_t c = x->dims[1], m = dy->dims[1];
    if (!infer_window(q, &at->window, x, NULL, &w))
        return NULL;
    bool fits = dims_fit(x->dims[0], dy->dims[0]) && (c < 0 || c % at->group == 0) && (m < 0 || m % at->group == 0);
    for (int i = 0; i < w.rank; i++)
        fits = fits && dims_fit(w.out[i], dy->dims[2 + i]);
    if (!fits)
        return infer_fail(q, "%s is no result over %s", type_text(q->scratch, dy), type_text(q->scratch, x));
    dims[0] = m;
    dims[1] = c < 0 ? DIM_UNKNOWN : c / at->group;
    memcpy(dims + 2, w.kernel, (size_t)w.rank * sizeof *dims);
    return infer_dims(q, dtype, x->rank, dims);
}

/* Rows are the taps of all channels of a group, columns its results; sums run over the positions of all images. */
typedef struct WeightRun {
    const Kernels *kernels;
    Window w;
    int64_t groups, channels, results; /* channels and results of a group */
    int64_t taps, in, out;             /* of a kernel; spatial elements of data and result */
    int64_t positions, block;          /* of all images; those that are multiplied at a time */
    int64_t rows, part, parts;         /* of a group; those that are done together */
    bool direct;                       /* the data of one image is its own window matrix */
    const void *x, *dy;
    void *y;
    char *scratch; /* for each worker: a window matrix, dy turned, sums and their digits */
    size_t scratch_bytes;
} WeightRun;

/* Some rows of a group at some positions of one image. */
typedef struct WeightBlock {
    int64_t group, row, n_rows;
    int64_t image, first, n;
    int64_t at, stride; /* where the positions stand in their block, and how long that is */
} WeightBlock;

#define WEIGHT_GRAD(T)                                                                                                 \
    static void gather_##T(const WeightRun *r, const WeightBlock *u, T *to)                                            \
    {                                                                                                                  \
        const T *x = (const T *)r->x + (u->image * r->groups + u->group) * r->channels * r->in;                        \
        int64_t tap[MAX_SPATIAL];                                                                                      \
        position_of(r->w.rank, r->w.kernel, u->row % r->taps, tap);                                                    \
        for (int64_t i = 0; i < u->n_rows; i++) {                                                                      \
            const T *from = x + (u->row + i) / r->taps * r->in;                                                        \
            window_gather_##T(&r->w, from, tap, u->first, u->n, to + i * u->stride + u->at);                           \
            position_next(r->w.rank, r->w.kernel, tap);                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    /* dy with the positions as rows, by squares that stay in cache on both sides */                                   \
    static void turn_##T(const WeightRun *r, const WeightBlock *u, T *to)                                              \
    {                                                                                                                  \
        enum { SIDE = 16 };                                                                                            \
        const int64_t m = r->results;                                                                                  \
        const T *dy = (const T *)r->dy + (u->image * r->groups + u->group) * m * r->out + u->first;                    \
        to += u->at * m;                                                                                               \
        for (int64_t p = 0; p < u->n; p += SIDE)                                                                       \
            for (int64_t i = 0; i < m; i += SIDE)                                                                      \
                for (int64_t k = i; k < m && k < i + SIDE; k++)                                                        \
                    for (int64_t j = p; j < u->n && j < p + SIDE; j++)                                                 \
                        to[j * m + k] = dy[k * r->out + j];                                                            \
    }                                                                                                                  \
    /* Adds what the positions [begin, begin + n) of all images bring. */                                              \
    static void add_block_##T(const WeightRun *r, WeightBlock *u, int64_t begin, int64_t n, T *columns, T *turned,     \
                              T *sum)                                                                                  \
    {                                                                                                                  \
        const T *rows = columns;                                                                                       \
        u->stride = r->direct ? r->in : n;                                                                             \
        for (u->at = 0; u->at < n; u->at += u->n) {                                                                    \
            u->image = (begin + u->at) / r->out;                                                                       \
            u->first = (begin + u->at) % r->out;                                                                       \
            u->n = r->out - u->first < n - u->at ? r->out - u->first : n - u->at;                                      \
            if (!r->direct)                                                                                            \
                gather_##T(r, u, columns);                                                                             \
            turn_##T(r, u, turned);                                                                                    \
        }                                                                                                              \
        if (r->direct) {                                                                                               \
            rows = (const T *)r->x + (u->image * r->groups + u->group) * r->channels * r->in;                          \
            rows += u->row * r->in + u->first;                                                                         \
        }                                                                                                              \
        kernels_gemm_##T(r->kernels, (size_t)u->n_rows, (size_t)r->results, (size_t)n, rows, (size_t)u->stride,        \
                         turned, (size_t)r->results, sum, (size_t)r->results);                                         \
    }                                                                                                                  \
    /* The sums of the segment that begins there, joined with those before it. */                                      \
    static void add_segment_##T(const WeightRun *r, WeightBlock *u, int64_t begin, T *columns, T *turned, T *sum)      \
    {                                                                                                                  \
        const int64_t left = r->positions - begin, end = begin + (left < PANEL_SEGMENT ? left : PANEL_SEGMENT);        \
        const size_t sums = (size_t)(u->n_rows * r->results);                                                          \
        memset(sum, 0, sums * sizeof(T));                                                                              \
        for (int64_t p = begin, n; p < end; p += n) {                                                                  \
            const int64_t most = r->direct && r->out - p % r->out < end - p ? r->out - p % r->out : end - p;           \
            n = most < r->block ? most : r->block;                                                                     \
            add_block_##T(r, u, p, n, columns, turned, sum);                                                           \
        }                                                                                                              \
        panel_join_##T(sum, 1, sums, sums, sum + sums, (size_t)(begin / PANEL_SEGMENT), end == r->positions);          \
    }                                                                                                                  \
    static void weight_rows_##T(void *arg, int64_t begin, int64_t end, int worker)                                     \
    {                                                                                                                  \
        const WeightRun *r = arg;                                                                                      \
        T *columns = (T *)(void *)(r->scratch + (size_t)worker * r->scratch_bytes);                                    \
        T *turned = columns + (r->direct ? 0 : r->part * r->block), *sum = turned + r->block * r->results;             \
        for (int64_t t = begin; t < end; t++) {                                                                        \
            WeightBlock u = { .group = t / r->parts, .row = t % r->parts * r->part };                                  \
            u.n_rows = r->rows - u.row < r->part ? r->rows - u.row : r->part;                                          \
            if (r->positions == 0)                                                                                     \
                memset(sum, 0, (size_t)(u.n_rows * r->results) * sizeof(T));                                           \
            for (int64_t p = 0; p < r->positions; p += PANEL_SEGMENT)                                                  \
                add_segment_##T(r, &u, p, columns, turned, sum);                                                       \
            T *y = (T *)r->y + u.group * r->results * r->rows + u.row;                                                 \
            for (int64_t k = 0; k < r->results; k++)                                                                   \
                for (int64_t i = 0; i < u.n_rows; i++)                                                                 \
                    y[k * r->rows + i] = sum[i * r->results + k];                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void weight_operands_##T(Eval *e, WeightRun *r)                                                             \
    {                                                                                                                  \
        r->x = eval_##T(e, X), r->dy = eval_##T(e, DY);                                                                \
        r->y = eval_out_##T(e, 0);                                                                                     \
    }
WEIGHT_GRAD(f32)
WEIGHT_GRAD(f64)
#undef WEIGHT_GRAD

/* Blocks whose window matrix stays in a second-level cache, and rows for every thread. */
static void split_work(WeightRun *r, int64_t element, int64_t threads)
{
    enum { CACHE = 256 << 10, MOST_ROWS = 480, LEAST_ROWS = 12, LEAST = 96 };
    int64_t parts = (r->rows + MOST_ROWS - 1) / MOST_ROWS;
    const int64_t most = (r->rows + LEAST_ROWS - 1) / LEAST_ROWS;
    const int64_t wanted = (threads + r->groups - 1) / r->groups;
    if (r->groups % threads)
        parts = (parts > wanted ? (parts + threads - 1) / threads * threads : wanted);
    parts = parts < most ? parts : most;
    r->part = (r->rows + parts - 1) / parts;
    r->parts = (r->rows + r->part - 1) / r->part;
    const int64_t wide = r->part > r->results ? r->part : r->results;
    r->block = CACHE / element / wide / LEAST * LEAST;
    r->block = r->block < LEAST ? LEAST : r->block;
    r->block = r->block < r->positions ? r->block : r->positions;
}

static Status eval_conv_weight_grad(Eval *e)
{
    const ConvAttr *at = e->attr;
    const Type *x = e->in[X]->type, *dy = e->in[DY]->type;
    const bool wide = eval_is_f64(e);
    WeightRun r = { .kernels = e->kernels, .groups = at->group };
    eval_window(e, &at->window, X, NULL, &r.w);
    (wide ? weight_operands_f64 : weight_operands_f32)(e, &r);
    r.channels = x->dims[1] / at->group;
    r.results = dy->dims[1] / at->group;
    r.taps = window_product(r.w.rank, r.w.kernel);
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    r.rows = r.channels * r.taps;
    r.positions = x->dims[0] * r.out;
    if (tensor_elements(e->out[0]) == 0)
        return OK;
    r.direct = window_is_data(&r.w);
    const size_t element = wide ? sizeof(f64) : sizeof(f32);
    split_work(&r, (int64_t)element, parallel_threads(e->pool));
    const int64_t sums = 1 + (int64_t)panel_digits((size_t)r.positions);
    r.scratch_bytes = (size_t)((r.direct ? 0 : r.part * r.block) + (r.block + r.part * sums) * r.results) * element;
    r.scratch = eval_room(e, (size_t)parallel_threads(e->pool), r.scratch_bytes);
    eval_parallel(e, r.groups * r.parts, wide ? weight_rows_f64 : weight_rows_f32, &r);
    return OK;
}

/* It is linear in the data and in dy, as a convolution is in data and weights. */
static void adjoint_conv_weight_grad(Build *b, const Site *s, Node **dx)
{
    const ConvAttr *at = s->attr;
    Window w;
    const Type *x = s->in[X]->type;
    BUG_IF(b->graph->ir->memory,
           window_place(&w, b->graph->arena, &at->window, x->rank - 2, x->dims + 2, s->type->dims + 2));
    if (s->want[X])
        dx[X] = window_input_grad(b, &w, at->group, s->in[DY], s->dout[0]);
    if (s->want[DY])
        dx[DY] = CALL_ATTR(b, conv, ((ConvAttr){ .window = at->window, .group = at->group }), s->in[X], s->dout[0]);
}

static Node *sample_conv_weight_grad(Build *b, Rng *rng, int variant)
{
    int64_t x[MAX_RANK], dy[MAX_RANK], kernel[MAX_SPATIAL];
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    ConvAttr at = { .group = rng_range(rng, 1, 3), .out = dtype == F16 && rng_below(rng, 2) ? F32 + 1 : 0 };
    Window w;
    x[0] = dy[0] = rng_below(rng, 8) ? rng_range(rng, 1, 3) : 0;
    x[1] = rng_range(rng, 1, 3) * at.group;
    dy[1] = rng_range(rng, 1, 3) * at.group;
    for (int i = 0; i < rank; i++)
        x[2 + i] = rng_range(rng, 1, 7);
    sample_window(rng, b->graph->arena, rank, x + 2, kernel, &at.window);
    at.window.kernel_shape = (Ints){ rank, kernel };
    BUG_IF(b->graph->ir->memory, window_place(&w, b->graph->arena, &at.window, rank, x + 2, NULL));
    memcpy(dy + 2, w.out, (size_t)rank * sizeof *dy);
    return CALL_ATTR(b, conv_weight_grad, at, sample_tensor(b, rng, dtype, rank + 2, x, -2, 2),
                     sample_tensor(b, rng, dtype, rank + 2, dy, -2, 2));
}

const OpDef op_conv_weight_grad = {
    .name = "conv_weight_grad",
    .min_in = 2,
    .max_in = 2,
    .attrs = conv_weight_grad_attrs,
    .infer = infer_conv_weight_grad,
    .eval = eval_conv_weight_grad,
    .sample = sample_conv_weight_grad,
    .n_variants = 36,
    .adjoint = adjoint_conv_weight_grad,
    .differentiable = 3,
    .weight = 40,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_conv_weight_grad,
    .amp = { AMP_T, AMP_T, 0, REASON_NONE, NULL, .wide_out = 1 },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the weights of a convolution over x, from what reaches its result.",
};
