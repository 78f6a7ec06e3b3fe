/* conv_weight_grad: what reaches the weights of a convolution.
 *
 * A result is the sum over (image, position) in that order, as every contraction sums (ops/kernels/panel.h), padding
 * counting as zeros.  The evaluator gathers what some taps see at a block of positions (im2col) and multiplies by the
 * block of dy, turned; blocks of a segment continue each other's sums, so neither they nor the threads, which share out
 * the taps, show. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"
#include "ops/kernels/panel.h"
#include "ops/window/channels.h"
#include "ops/window/window_access.h"

static const AttrSpec conv_weight_grad_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),  WINDOW_INTS(ConvAttr, dilations),   WINDOW_REQUIRED_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1), ATTR_OURS(ConvAttr, out, DTYPE, 0), ATTR_LAST,
};

static const AttrSpec conv_integer_weight_grad_attrs[] = {
    WINDOW_PLACE_ATTRS(ConvAttr),
    WINDOW_INTS(ConvAttr, dilations),
    WINDOW_REQUIRED_INTS(ConvAttr, kernel_shape),
    ATTR(ConvAttr, group, INT, 1),
    ATTR_LAST,
};

enum { X, DY };

static const Type *infer_weight_grad(Infer *q, const Type *x, const Type *dy, DType dtype)
{
    const ConvAttr *at = q->attr;
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

static const Type *infer_conv_weight_grad(Infer *q)
{
    const ConvAttr *at = q->attr;
    const Type *x = infer_tensor(q, X), *dy = x ? infer_tensor(q, DY) : NULL;
    DType dtype;
    if (!dy || !infer_filter(q, x, dy, at->group) || !infer_contracted(q, at->out, X, &dtype))
        return NULL;
    return infer_weight_grad(q, x, dy, dtype);
}

static const Type *infer_conv_integer_weight_grad(Infer *q)
{
    const Type *x = infer_tensor(q, X), *dy = x ? infer_tensor(q, DY) : NULL;
    if (!dy || !infer_filter_rank(q, x, dy, ((const ConvAttr *)q->attr)->group))
        return NULL;
    if (x->dtype != I8 || dy->dtype != I8)
        return infer_fail(q, "takes codes of i8, not of %s", dtype_name(x->dtype != I8 ? x->dtype : dy->dtype));
    return infer_weight_grad(q, x, dy, I32);
}

/* Rows are the taps of all channels of a group, columns its results; sums run over the positions of all images. */
typedef struct WeightRun {
    const Kernels *kernels;
    Window w;
    int64_t groups, channels, results; /* channels and results of a group */
    int64_t taps, in, out;             /* of a kernel; spatial elements of data and result */
    int64_t positions;                 /* of all images */
    int64_t rows, part, parts;         /* of a group; those that are done together */
    bool direct;                       /* the data is its own window matrix */
    const void *x, *dy;
    void *y;
    char *rooms;         /* for each worker */
    size_t room, panels; /* bytes; elements of a block of dy, packed */
    size_t sights;       /* where in a room what taps see is told, in bytes */
} WeightRun;

enum { BLOCK = 512, TILE = MOST_FLOAT_ROWS }; /* positions that are multiplied at a time; rows that are gathered */

/* Positions of one image among those of a block. */
typedef struct Piece {
    int64_t image, first, n;
    int64_t at; /* in the block */
} Piece;

/* The piece of a block [begin, end) that begins `at` positions into it. */
static Piece piece_at(const WeightRun *r, int64_t begin, int64_t end, int64_t at)
{
    Piece p = { .image = (begin + at) / r->out, .first = (begin + at) % r->out, .at = at };
    p.n = r->out - p.first < end - begin - at ? r->out - p.first : end - begin - at;
    return p;
}

#define WEIGHT_GRAD(T)                                                                                                 \
    /* What some rows see at a block of n positions. */                                                                \
    static void gather_##T(const WeightRun *r, const TapSights *s, int64_t group, int64_t row, int64_t rows,           \
                           int64_t n, T *to)                                                                           \
    {                                                                                                                  \
        for (int64_t i = row; i < row + rows; i++, to += n) {                                                          \
            const int64_t tap = i % r->taps, channel = group * r->channels + i / r->taps;                              \
            window_see_##T(&r->w, s->runs + (size_t)tap * s->most, s->n[tap], (const T *)r->x + channel * r->in, to);  \
        }                                                                                                              \
    }                                                                                                                  \
    /* dy at a block of positions: they are the rows, results the columns. */                                          \
    static void pack_##T(const WeightRun *r, const PackedLoops *l, int64_t group, int64_t begin, int64_t end, T *to)   \
    {                                                                                                                  \
        const size_t n = (size_t)(end - begin), out = (size_t)r->out;                                                  \
        for (int64_t at = 0; at < end - begin;) {                                                                      \
            const Piece p = piece_at(r, begin, end, at);                                                               \
            const T *dy = (const T *)r->dy + (p.image * r->groups + group) * r->results * r->out + p.first;            \
            l->pack_columns((size_t)r->results, (size_t)p.n, dy, 1, out, to + (size_t)at * l->width, n * l->width);    \
            at += p.n;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    /* Rows of a tile where the data is its own window matrix: as they lie. */                                         \
    static void pack_data_##T(const WeightRun *r, const PackedLoops *l, int64_t group, int64_t row, int64_t rows,      \
                              int64_t begin, int64_t end, T *to)                                                       \
    {                                                                                                                  \
        for (int64_t at = 0; at < end - begin;) {                                                                      \
            const Piece p = piece_at(r, begin, end, at);                                                               \
            const T *x = (const T *)r->x + ((p.image * r->groups + group) * r->channels + row) * r->in + p.first;      \
            l->pack_rows((size_t)rows, (size_t)p.n, x, (size_t)r->in, 1, to + (size_t)at * l->rows, 0);                \
            at += p.n;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    /* Adds what a block of positions brings to some rows. */                                                          \
    static void add_block_##T(const WeightRun *r, const PackedLoops *l, int64_t group, int64_t row, int64_t rows,      \
                              int64_t begin, int64_t end, T *room, T *sum, bool fresh)                                 \
    {                                                                                                                  \
        const size_t n = (size_t)(end - begin), results = (size_t)r->results;                                          \
        T *lines = room, *tile = lines + TILE * BLOCK, *panels = tile + TILE * BLOCK;                                  \
        TapSights sights = { 0 };                                                                                      \
        if (!r->direct)                                                                                                \
            sights =                                                                                                   \
                window_sights(&r->w, begin, end - begin, r->groups * r->channels * r->in, (char *)room + r->sights);   \
        pack_##T(r, l, group, begin, end, panels);                                                                     \
        for (int64_t i = 0, m; i < rows; i += m) {                                                                     \
            m = rows - i < (int64_t)l->rows ? rows - i : (int64_t)l->rows;                                             \
            if (r->direct) {                                                                                           \
                pack_data_##T(r, l, group, row + i, m, begin, end, tile);                                              \
            } else {                                                                                                   \
                gather_##T(r, &sights, group, row + i, m, end - begin, lines);                                         \
                l->pack_rows((size_t)m, n, lines, n, 1, tile, 0);                                                      \
            }                                                                                                          \
            l->multiply((size_t)m, results, n, tile, 0, panels, sum + i * r->results, results, fresh);                 \
        }                                                                                                              \
    }                                                                                                                  \
    /* The sums of some rows of a group, and with them the result. */                                                  \
    static void add_rows_##T(const WeightRun *r, int64_t group, int64_t row, int64_t rows, T *room)                    \
    {                                                                                                                  \
        const PackedLoops *l = kernels_packed(r->kernels, sizeof(T) == sizeof(f64) ? ARITH_F64 : ARITH_F32);           \
        T *sum = room + 2 * TILE * BLOCK + r->panels;                                                                  \
        const size_t sums = (size_t)(rows * r->results);                                                               \
        if (r->positions == 0)                                                                                         \
            memset(sum, 0, sums * sizeof(T));                                                                          \
        for (int64_t s = 0; s < r->positions; s += PANEL_SEGMENT) {                                                    \
            const int64_t end = s + PANEL_SEGMENT < r->positions ? s + PANEL_SEGMENT : r->positions;                   \
            for (int64_t p = s; p < end; p += BLOCK)                                                                   \
                add_block_##T(r, l, group, row, rows, p, p + BLOCK < end ? p + BLOCK : end, room, sum, p == s);        \
            panel_join_##T(sum, 1, sums, sums, sum + sums, (size_t)(s / PANEL_SEGMENT), end == r->positions);          \
        }                                                                                                              \
        l->turn((size_t)rows, (size_t)r->results, sum, (size_t)r->results,                                             \
                (T *)r->y + group * r->results * r->rows + row, (size_t)r->rows);                                      \
    }                                                                                                                  \
    static void weight_rows_##T(void *arg, int64_t begin, int64_t end, int worker)                                     \
    {                                                                                                                  \
        const WeightRun *r = arg;                                                                                      \
        for (int64_t t = begin; t < end; t++) {                                                                        \
            const int64_t row = t % r->parts * r->part, left = r->rows - row;                                          \
            add_rows_##T(r, t / r->parts, row, left < r->part ? left : r->part,                                        \
                         (T *)(void *)(r->rooms + (size_t)worker * r->room));                                          \
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

/* Rows for every thread, as many as can be together: dy is packed for each part anew.  Their sums stay within bounds. */
static void split_rows(WeightRun *r, int64_t threads)
{
    enum { MOST_SUMS = 1 << 20 };
    const int64_t most = MOST_SUMS / r->results / TILE * TILE;
    int64_t parts = r->groups % threads ? (threads + r->groups - 1) / r->groups : 1;
    r->part = ((r->rows + parts - 1) / parts + TILE - 1) / TILE * TILE;
    if (r->part > most)
        r->part = most < TILE ? TILE : most;
    parts = (r->rows + r->part - 1) / r->part;
    if (r->groups * parts % threads && parts > 1) /* even shares */
        r->part =
            ((r->rows + (parts + threads - 1) / threads * threads - 1) / ((parts + threads - 1) / threads * threads) +
             TILE - 1) /
            TILE * TILE;
    r->part = r->part < r->rows ? r->part : r->rows;
    r->parts = (r->rows + r->part - 1) / r->part;
}

/* Sums that are kept of an element: those of a segment and of what joins to the whole. */
static size_t sums_of(int64_t positions)
{
    return 1 + panel_digits((size_t)positions);
}

/* How a call adds up. */
typedef struct WeightWay {
    bool wide;
    void (*operands)(Eval *e, WeightRun *r);
    ParallelFn rows;
} WeightWay;

static Status add_up(Eval *e, const WeightWay *way)
{
    const ConvAttr *at = e->attr;
    const Type *x = e->in[X]->type, *dy = e->in[DY]->type;
    const bool wide = way->wide;
    WeightRun r = { .kernels = e->kernels, .groups = at->group };
    eval_window(e, &at->window, X, NULL, &r.w);
    if (!wide && (channel_weights(e, &r.w, at->group, x, dy) || word_weights(e, &r.w, at->group, x, dy)))
        return OK;
    way->operands(e, &r);
    r.channels = x->dims[1] / at->group;
    r.results = dy->dims[1] / at->group;
    r.taps = window_product(r.w.rank, r.w.kernel);
    r.in = window_product(r.w.rank, r.w.in);
    r.out = window_product(r.w.rank, r.w.out);
    r.rows = r.channels * r.taps;
    r.positions = x->dims[0] * r.out;
    r.direct = window_is_data(&r.w);
    if (tensor_elements(e->out[0]) == 0)
        return OK;
    const size_t element = wide ? sizeof(f64) : sizeof(f32), threads = (size_t)parallel_threads(e->pool);
    const size_t width = kernels_packed(e->kernels, wide ? ARITH_F64 : ARITH_F32)->width;
    split_rows(&r, (int64_t)threads);
    const size_t sums = (size_t)(r.part * r.results) * sums_of(r.positions);
    r.panels = ((size_t)r.results + width - 1) / width * width * BLOCK;
    r.sights = ((2 * TILE * BLOCK + r.panels + sums) * element + 63) / 64 * 64;
    r.room = r.sights + (r.direct ? 0 : window_sights_bytes(&r.w, BLOCK));
    r.rooms = eval_room(e, threads, r.room);
    eval_parallel(e, r.groups * r.parts, way->rows, &r);
    return OK;
}

static Status eval_conv_weight_grad(Eval *e)
{
    static const WeightWay ways[] = { { false, weight_operands_f32, weight_rows_f32 },
                                      { true, weight_operands_f64, weight_rows_f64 } };
    return add_up(e, &ways[eval_is_f64(e)]);
}

static bool narrows_weight_grad(const Node *n)
{
    const Type *x = in(n, X)->type, *dy = in(n, DY)->type;
    const int64_t groups = ((const ConvAttr *)n->attr)->group;
    return x->dtype == BF16 && dy->dtype == BF16 && type_known(x) && type_known(dy) &&
           !channels_are_few(groups, x->dims[1] / groups, dy->dims[1] / groups);
}

/* The sums of the rows that one thread does together. */
static size_t room_conv_weight_grad(const Node *n)
{
    const Type *x = in(n, X)->type, *dy = in(n, DY)->type;
    const int64_t groups = ((const ConvAttr *)n->attr)->group;
    const size_t element = x->dtype == F64 ? sizeof(f64) : sizeof(f32);
    WeightRun r = { .groups = groups, .results = dy->dims[1] / groups };
    r.rows = x->dims[1] / groups * window_product(n->type->rank - 2, n->type->dims + 2);
    r.positions = x->dims[0] * window_product(dy->rank - 2, dy->dims + 2);
    if (r.results == 0 || r.rows == 0)
        return 0;
    split_rows(&r, 1);
    return (size_t)(r.part * r.results) * sums_of(r.positions) * element;
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

static Node *sample_weight_grad(Build *b, Rng *rng, int variant, Op op, DType dtype)
{
    int64_t x[MAX_RANK], dy[MAX_RANK], kernel[MAX_SPATIAL];
    const int rank = 1 + variant % 3, most = dtype == I8 ? 100 : 2;
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
    Node *ins[] = { sample_tensor(b, rng, dtype, rank + 2, x, -most, most),
                    sample_tensor(b, rng, dtype, rank + 2, dy, -most, most) };
    return build_node(b, op, &at, 2, ins);
}

static Node *sample_conv_weight_grad(Build *b, Rng *rng, int variant)
{
    return sample_weight_grad(b, rng, variant, OP_conv_weight_grad, sample_float(rng));
}

static Node *sample_conv_integer_weight_grad(Build *b, Rng *rng, int variant)
{
    return sample_weight_grad(b, rng, variant, OP_conv_integer_weight_grad, I8);
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
    .work = work_conv_weight_grad,
    .room = room_conv_weight_grad,
    .narrows = narrows_weight_grad,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_conv_weight_grad,
    .amp = { AMP_T, AMP_T, 0, REASON_NONE, NULL, .wide_out = 1 },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the weights of a convolution over x, from what reaches its result.",
};

const OpDef op_conv_integer_weight_grad = {
    .name = "conv_integer_weight_grad",
    .min_in = 2,
    .max_in = 2,
    .attrs = conv_integer_weight_grad_attrs,
    .infer = infer_conv_integer_weight_grad,
    .eval = eval_conv_integer_weight_grad,
    .sample = sample_conv_integer_weight_grad,
    .n_variants = 36,
    .weight = 40,
    .work = work_conv_weight_grad,
    .access.kind = ACCESS_CONTRACT,
    .access.iterate = iterate_conv_weight_grad,
    .amp = { AMP_N, AMP_N, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .brief = "conv_weight_grad of codes, their zero points 0: sums in 32 bits.",
};
