/* conv: products of weights with windows of the data.
 *
 * A result is the sum over (channel, tap) in that order, ascending, by fused multiply-adds from zero, padding counting
 * as zeros, rounded; then the bias is added.  The evaluator gathers the windows of a block of positions into a matrix
 * (im2col) and multiplies; how positions are blocked or spread over threads does not show. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"
#include "ops/window/window.h"

static const AttrSpec conv_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),  WINDOW_INTS(ConvAttr, dilations),   WINDOW_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1), ATTR_OURS(ConvAttr, out, DTYPE, 0), ATTR_LAST,
};

bool infer_filter(Infer *q, const Type *x, const Type *w, int64_t group)
{
    if (x->dtype != w->dtype || !dtype_is_float(x->dtype))
        infer_fail(q, "needs floats of one type, got %s and %s", dtype_name(x->dtype), dtype_name(w->dtype));
    else if (x->rank >= 0 && w->rank >= 0 && x->rank != w->rank)
        infer_fail(q, "data has %d dimensions, the weights have %d", x->rank, w->rank);
    else if ((x->rank >= 0 && x->rank < 3) || (w->rank >= 0 && w->rank < 3))
        infer_fail(q, "needs at least 3 dimensions, got %d", x->rank);
    else if (group < 1)
        infer_fail(q, "group is %" PRId64 ", wanted is at least 1", group);
    else
        return true;
    return false;
}

bool infer_bias(Infer *q, int i, int64_t m)
{
    if (!infer_has(q, i))
        return true;
    const Type *b = infer_tensor(q, i);
    if (b && (!dtype_is_float(b->dtype) || (b->rank >= 0 && b->rank != 1) ||
              (b->rank == 1 && b->dims[0] >= 0 && m >= 0 && b->dims[0] != m)))
        b = infer_fail(q, "bias is %s, wanted are %" PRId64 " floats", type_text(q->scratch, b), m);
    return b;
}

static const Type *infer_conv(Infer *q)
{
    const ConvAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *w = x ? infer_tensor(q, 1) : NULL;
    DType dtype;
    if (!w || !infer_filter(q, x, w, at->group) || !infer_contracted(q, at->out, 0, &dtype))
        return NULL;
    if (x->rank < 0 || w->rank < 0)
        return type_unranked(q->types, dtype);

    int64_t dims[MAX_RANK], fed;
    Window win;
    const int64_t c = x->dims[1], m = w->dims[0];
    if (__builtin_mul_overflow(w->dims[1], at->group, &fed) || (c >= 0 && w->dims[1] >= 0 && fed != c))
        return infer_fail(q, "data has %" PRId64 " channels, the weights take %" PRId64 " in %" PRId64 " groups", c,
                          w->dims[1], at->group);
    if (m >= 0 && m % at->group)
        return infer_fail(q, "%" PRId64 " result channels do not split into %" PRId64 " groups", m, at->group);
    if (!infer_bias(q, 2, m) || !infer_window(q, &at->window, x, w->dims + 2, &win))
        return NULL;
    dims[0] = x->dims[0];
    dims[1] = m;
    memcpy(dims + 2, win.out, (size_t)win.rank * sizeof *dims);
    return infer_dims(q, dtype, x->rank, dims);
}

typedef struct ConvRun {
    const Kernels *kernels;
    Window w;
    int64_t groups, channels, results; /* channels and results of a group */
    int64_t taps, in, out;             /* of a kernel; spatial elements of data and result */
    int64_t tile, tiles;               /* positions of a block, blocks of an image */
    int64_t part, parts;               /* results of a block, blocks of a group */
    bool direct;                       /* the data is its own window matrix */
    bool f64;
    const void *x, *filter, *bias;
    void *y;
    char *columns; /* a window matrix for each worker */
    size_t columns_bytes;
} ConvRun;

#define COLUMNS(T)                                                                                                     \
    static void columns_##T(const ConvRun *r, const T *x, int64_t first, int64_t n, T *to)                             \
    {                                                                                                                  \
        int64_t tap[MAX_SPATIAL] = { 0 };                                                                              \
        for (int64_t c = 0; c < r->channels; c++)                                                                      \
            for (int64_t k = 0; k < r->taps; k++) {                                                                    \
                window_gather_##T(&r->w, x + c * r->in, tap, first, n, to);                                            \
                to += n;                                                                                               \
                position_next(r->w.rank, r->w.kernel, tap);                                                            \
            }                                                                                                          \
    }                                                                                                                  \
    void add_bias_##T(T *y, const T *bias, int64_t rows, int64_t n, int64_t stride)                                    \
    {                                                                                                                  \
        for (int64_t i = 0; bias && i < rows; i++)                                                                     \
            for (int64_t j = 0; j < n; j++)                                                                            \
                y[i * stride + j] += bias[i];                                                                          \
    }
COLUMNS(f32)
COLUMNS(f64)
#undef COLUMNS

/* Some results of one group of one image, at a block of positions. */
typedef struct ConvBlock {
    int64_t group, image;
    int64_t first, n;       /* positions */
    int64_t result, n_rows; /* of the group */
    bool gathered;          /* the window matrix is there already */
} ConvBlock;

static void conv_block_f32(const ConvRun *r, const ConvBlock *u, f32 *columns)
{
    const int64_t k = r->channels * r->taps, row = u->group * r->results + u->result;
    const f32 *x = (const f32 *)r->x + (u->image * r->groups + u->group) * r->channels * r->in, *b = columns;
    f32 *y = (f32 *)r->y + (u->image * r->groups * r->results + row) * r->out + u->first;
    int64_t ldb = u->n;
    if (r->direct) {
        b = x + u->first;
        ldb = r->in;
    } else if (!u->gathered) {
        columns_f32(r, x, u->first, u->n, columns);
    }
    for (int64_t i = 0; i < u->n_rows; i++)
        memset(y + i * r->out, 0, (size_t)u->n * sizeof *y);
    kernels_gemm_f32(r->kernels, (size_t)u->n_rows, (size_t)u->n, (size_t)k, (const f32 *)r->filter + row * k,
                     (size_t)k, b, (size_t)ldb, y, (size_t)r->out);
    add_bias_f32(y, r->bias ? (const f32 *)r->bias + row : NULL, u->n_rows, u->n, r->out);
}

static void conv_block_f64(const ConvRun *r, const ConvBlock *u, f64 *columns)
{
    const int64_t k = r->channels * r->taps, first_row = u->group * r->results + u->result, n = u->n;
    const f64 *x = (const f64 *)r->x + (u->image * r->groups + u->group) * r->channels * r->in;
    const f64 *filter = (const f64 *)r->filter + first_row * k;
    f64 *y = (f64 *)r->y + (u->image * r->groups * r->results + first_row) * r->out + u->first;
    if (!u->gathered)
        columns_f64(r, x, u->first, n, columns);
    for (int64_t i = 0; i < u->n_rows; i++) {
        f64 *row = y + i * r->out;
        memset(row, 0, (size_t)n * sizeof *row);
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                row[j] = fma_f64(filter[i * k + p], columns[p * n + j], row[j]);
    }
    add_bias_f64(y, r->bias ? (const f64 *)r->bias + first_row : NULL, u->n_rows, n, r->out);
}

static void conv_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const ConvRun *r = arg;
    void *columns = r->columns + (size_t)worker * r->columns_bytes;
    int64_t gathered = -1;
    for (int64_t t = begin; t < end; t++) {
        const int64_t part = t % r->parts, place = t / r->parts, tile = place % r->tiles, at = place / r->tiles;
        ConvBlock u = { .group = at % r->groups, .image = at / r->groups, .gathered = place == gathered };
        u.first = tile * r->tile;
        u.n = r->out - u.first < r->tile ? r->out - u.first : r->tile;
        u.result = part * r->part;
        u.n_rows = r->results - u.result < r->part ? r->results - u.result : r->part;
        if (r->f64)
            conv_block_f64(r, &u, columns);
        else
            conv_block_f32(r, &u, columns);
        gathered = place;
    }
}

/* Blocks whose window matrix stays in a second-level cache. */
static int64_t tile_of(const ConvRun *r, int64_t element)
{
    enum { CACHE = 384 << 10, LEAST = 64 };
    const int64_t rows = r->channels * r->taps;
    int64_t tile = CACHE / element / (rows ? rows : 1) / LEAST * LEAST;
    if (r->direct)
        tile = 1024;
    tile = tile < LEAST ? LEAST : tile;
    return tile < r->out ? tile : r->out;
}

/* Where blocks of positions are too few for the threads, the results of a group are split, too. */
static void split_results(ConvRun *r, int64_t blocks, int64_t threads)
{
    enum { LEAST = 48 };
    const int64_t most = (r->results + LEAST - 1) / LEAST;
    const int64_t wanted = threads > 1 && blocks % threads && blocks < 8 * threads ? threads : 1;
    r->parts = wanted < most ? wanted : most;
    r->part = (r->results + r->parts - 1) / r->parts;
    r->parts = (r->results + r->part - 1) / r->part;
}

static Status eval_conv(Eval *e)
{
    const ConvAttr *at = e->attr;
    const Type *x = e->in[0]->type, *filter = e->in[1]->type;
    ConvRun r = { .kernels = e->kernels, .groups = at->group, .f64 = eval_is_f64(e) };
    eval_window(e, &at->window, 0, filter->dims + 2, &r.w);
    r.channels = filter->dims[1];
    r.results = filter->dims[0] / at->group;
    r.taps = window_product(r.w.rank, r.w.kernel);
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    if (r.f64) {
        r.x = eval_f64(e, 0), r.filter = eval_f64(e, 1), r.bias = eval_has(e, 2) ? eval_f64(e, 2) : NULL;
        r.y = eval_out_f64(e, 0);
    } else {
        r.x = eval_f32(e, 0), r.filter = eval_f32(e, 1), r.bias = eval_has(e, 2) ? eval_f32(e, 2) : NULL;
        r.y = eval_out_f32(e, 0);
    }
    if (tensor_elements(e->out[0]) == 0)
        return OK;
    const int64_t element = r.f64 ? (int64_t)sizeof(f64) : (int64_t)sizeof(f32);
    r.direct = !r.f64 && window_is_data(&r.w);
    r.tile = tile_of(&r, element);
    r.tiles = (r.out + r.tile - 1) / r.tile;
    r.columns_bytes = r.direct ? 0 : (size_t)(r.channels * r.taps) * (size_t)(r.tile * element);
    r.columns = eval_room(e, (size_t)parallel_threads(e->pool), r.columns_bytes);
    const int64_t blocks = x->dims[0] * r.groups * r.tiles;
    split_results(&r, blocks, parallel_threads(e->pool));
    eval_parallel(e, blocks * r.parts, conv_blocks, &r);
    return OK;
}

static Node *sample_conv(Build *b, Rng *rng, int variant)
{
    int64_t x[MAX_RANK], w[MAX_RANK];
    const int rank = 1 + variant % 3;
    const DType dtype = sample_float(rng);
    ConvAttr at = { .group = rng_range(rng, 1, 3), .out = dtype == F16 && rng_below(rng, 2) ? F32 + 1 : 0 };
    x[0] = rng_below(rng, 8) ? rng_range(rng, 1, 2) : 0;
    w[1] = rng_range(rng, 1, 3);
    x[1] = w[1] * at.group;
    w[0] = rng_range(rng, 1, 3) * at.group;
    for (int i = 0; i < rank; i++)
        x[2 + i] = rng_range(rng, 1, 7);
    sample_window(rng, b->graph->arena, rank, x + 2, w + 2, &at.window);
    Node *data = sample_tensor(b, rng, dtype, rank + 2, x, -2, 2),
         *filter = sample_tensor(b, rng, dtype, rank + 2, w, -2, 2);
    if (rng_below(rng, 2))
        return CALL_ATTR(b, conv, at, data, filter);
    return CALL_ATTR(b, conv, at, data, filter, sample_tensor(b, rng, rng_below(rng, 2) ? dtype : F32, 1, w, -1, 1));
}

static int channels_of_filter(const Node *n, int operand)
{
    (void)n;
    return operand == 1 ? 0 : QUANT_WHOLE;
}

const OpDef op_conv = {
    .name = "conv",
    .min_in = 2,
    .max_in = 3,
    .attrs = conv_attrs,
    .infer = infer_conv,
    .eval = eval_conv,
    .sample = sample_conv,
    .n_variants = 48,
    .adjoint = adjoint_conv,
    .differentiable = 7,
    .trainable = 6,
    .weight = 40,
    .work = work_conv,
    .fuse = FUSE_CONTRACT,
    .amp = { AMP_T, AMP_T, 4, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT, QUANT_WEIGHT, QUANT_BIAS },
               .out = { QUANT_INPUT },
               .weight_axis = channels_of_filter,
               .integer = OP_qlinear_conv },
    .onnx = { "Conv", 22, NULL },
};
