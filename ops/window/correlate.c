#include "ops/window/correlate.h"

#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/panel.h"
#include "ops/window/planes.h"

/* Some results of one group, at a block of positions of an image or at all of several. */
typedef struct Block {
    int64_t group, image, images;
    int64_t first, n;       /* positions of an image */
    int64_t result, n_rows; /* of the group */
} Block;

enum {
    POSITIONS = 512, /* of a block: with a filter's rows they stay in a second-level cache */
    DEPTH = 384,     /* of taps and channels, at most, that are gathered at a time */
    APART = 16,      /* elements between rows of what is gathered, so that they do not meet in one place of a cache */
};

/* From row to row of what a block gathers. */
static size_t apart_of(size_t positions)
{
    return (positions + MOST_PANEL_WIDTH - 1) / MOST_PANEL_WIDTH * MOST_PANEL_WIDTH + APART;
}

/* Elements of what it gathers, and of a panel for columns that are no whole one. */
static size_t gathered_of(size_t positions)
{
    return (apart_of(positions) + MOST_PANEL_WIDTH) * DEPTH;
}

/* Whether results are made apart from where they stand. */
static bool is_placed(const Correlation *c)
{
    return c->apart || c->span > 1;
}

static Panel panel_of(const Correlation *c, int64_t rows, int64_t positions)
{
    const size_t k = (size_t)(c->channels * c->taps), n = (size_t)positions;
    return (Panel){ .m = (size_t)rows,
                    .n = n,
                    .k = k,
                    .lda = k * kernels_packed(c->kernels, c->f64 ? ARITH_F64 : ARITH_F32)->rows,
                    .packed = true,
                    .ldb = c->direct ? (size_t)c->in : n,
                    .ldc = is_placed(c) ? n : (size_t)c->out };
}

/* Elements of a group's packed rows. */
static size_t packed_rows(const Kernels *kernels, bool f64, int64_t rows, int64_t k)
{
    const int64_t tile = (int64_t)kernels_packed(kernels, f64 ? ARITH_F64 : ARITH_F32)->rows;
    return (size_t)((rows + tile - 1) / tile * tile * k);
}

#define CORRELATE(T)                                                                                                   \
    /* What a block sees through some taps of some channels, which follow each other from `first`: a row for each. */  \
    static void gather_##T(const Correlation *c, const Block *u, int64_t first, int64_t n, T *to, size_t apart)        \
    {                                                                                                                  \
        int64_t tap[MAX_SPATIAL];                                                                                      \
        position_of(c->w.rank, c->w.kernel, first / c->channels, tap);                                                 \
        for (int64_t k = first; k < first + n; k++, to += apart) {                                                     \
            const int64_t channel = k % c->channels;                                                                   \
            if (channel == 0 && k > first)                                                                             \
                position_next(c->w.rank, c->w.kernel, tap);                                                            \
            for (int64_t m = 0; m < u->images; m++) {                                                                  \
                const int64_t at = ((u->image + m) * c->groups + u->group) * c->channels + channel;                    \
                window_gather_##T(&c->w, (const T *)c->x + at * c->in, tap, u->first, u->n, to + m * u->n);            \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* The product of some rows with what a block sees, segment by segment (ops/kernels/panel.h). */                   \
    static void multiply_##T(const Correlation *c, const Block *u, const T *filter, T *to, size_t ldc, T *room)        \
    {                                                                                                                  \
        const PackedLoops *l = kernels_packed(c->kernels, c->f64 ? ARITH_F64 : ARITH_F32);                             \
        const int64_t k = c->channels * c->taps;                                                                       \
        const size_t n = (size_t)(u->images * u->n), m = (size_t)u->n_rows, tile = (size_t)k * l->rows;                \
        const size_t apart = apart_of(n);                                                                              \
        T *lines = room, *panel = lines + apart * DEPTH, *digits = lines + gathered_of(n);                             \
        for (int64_t s = 0; s == 0 || s < k; s += PANEL_SEGMENT) {                                                     \
            const int64_t end = k - s < PANEL_SEGMENT ? k : s + PANEL_SEGMENT;                                         \
            for (size_t i = 0; i < m && s == end; i++) /* nothing to sum */                                            \
                memset(to + i * ldc, 0, n * sizeof(T));                                                                \
            const int64_t shares = (end - s + DEPTH - 1) / DEPTH,                                                      \
                          share = (end - s + shares - 1) / (shares ? shares : 1);                                      \
            for (int64_t p = s, some; p < end; p += some) {                                                            \
                some = end - p < share ? end - p : share;                                                              \
                gather_##T(c, u, p, some, lines, apart);                                                               \
                l->multiply_beside(m, n, (size_t)some, filter + (size_t)p * l->rows, tile, lines, apart, to, ldc,      \
                                   p == s, panel);                                                                     \
            }                                                                                                          \
            if (k > PANEL_SEGMENT)                                                                                     \
                panel_join_##T(to, m, n, ldc, digits, (size_t)(s / PANEL_SEGMENT), end == k);                          \
        }                                                                                                              \
    }                                                                                                                  \
    void add_bias_##T(T *y, const T *bias, int64_t rows, int64_t n, int64_t stride)                                    \
    {                                                                                                                  \
        for (int64_t i = 0; bias && i < rows; i++)                                                                     \
            for (int64_t j = 0; j < n; j++)                                                                            \
                y[i * stride + j] += bias[i];                                                                          \
    }                                                                                                                  \
    /* A row of results at positions that lie apart. */                                                                \
    static void place_##T(const Correlation *c, const Block *u, const T *from, T *y)                                   \
    {                                                                                                                  \
        const int last = c->w.rank - 1;                                                                                \
        const int64_t step = c->step[last];                                                                            \
        int64_t at[MAX_SPATIAL];                                                                                       \
        position_of(c->w.rank, c->w.out, u->first, at);                                                                \
        for (int64_t n = u->n, run; n > 0; n -= run, from += run) {                                                    \
            T *to = y + c->place;                                                                                      \
            for (int i = 0; i <= last; i++)                                                                            \
                to += at[i] * c->step[i];                                                                              \
            run = c->w.out[last] - at[last] < n ? c->w.out[last] - at[last] : n;                                       \
            for (int64_t i = 0; i < run; i++)                                                                          \
                to[i * step] = from[i];                                                                                \
            at[last] = c->w.out[last] - 1;                                                                             \
            position_next(c->w.rank, c->w.out, at);                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    /* Results of some images to where they stand. */                                                                  \
    static void place_all_##T(const Correlation *c, const Block *u, const T *from, T *y)                               \
    {                                                                                                                  \
        const int64_t image = c->groups * c->results * c->size;                                                        \
        for (int64_t i = 0; i < u->n_rows; i++)                                                                        \
            for (int64_t m = 0; m < u->images; m++, from += u->n)                                                      \
                if (c->apart)                                                                                          \
                    place_##T(c, u, from, y + m * image + i * c->size);                                                \
                else                                                                                                   \
                    memcpy(y + m * image + i * c->size, from, (size_t)u->n * sizeof(T));                               \
    }                                                                                                                  \
    static void block_##T(const Correlation *c, const Block *u, T *room)                                               \
    {                                                                                                                  \
        const int64_t k = c->channels * c->taps, row = u->group * c->results + u->result;                              \
        const T *x = (const T *)c->x + (u->image * c->groups + u->group) * c->channels * c->in;                        \
        const T *bias = c->bias ? (const T *)c->bias + row : NULL;                                                     \
        const T *filter = (const T *)c->filter + (size_t)u->group * packed_rows(c->kernels, c->f64, c->results, k);    \
        T *y = (T *)c->y + (u->image * c->groups * c->results + row) * c->size, *placed = room;                        \
        T *to = is_placed(c) ? placed : y + u->first;                                                                  \
        const int64_t n = u->images * u->n;                                                                            \
        const Panel p = panel_of(c, u->n_rows, n);                                                                     \
        if (c->direct)                                                                                                 \
            panel_##T(c->kernels, &p, filter + u->result * k, x + u->first, to, placed + c->placed);                   \
        else                                                                                                           \
            multiply_##T(c, u, filter + u->result * k, to, p.ldc, placed + c->placed);                                 \
        add_bias_##T(to, bias, u->n_rows, n, (int64_t)p.ldc);                                                          \
        if (is_placed(c))                                                                                              \
            place_all_##T(c, u, to, y);                                                                                \
    }                                                                                                                  \
    /* The tile of a group's packed rows that begins with row m. */                                                    \
    static void pack_##T(const FilterPack *f, const PackedLoops *l, int64_t group, int64_t m, T *to)                   \
    {                                                                                                                  \
        const int64_t tile = (int64_t)l->rows, rows = f->rows - m < tile ? f->rows - m : tile;                         \
        const T *from = (const T *)f->from + group * f->group + m * f->row;                                            \
        for (int64_t c = 0; c < f->columns; c++, from += f->column, to += tile) {                                      \
            if (!f->tap) {                                                                                             \
                l->turn((size_t)rows, (size_t)f->taps, from, (size_t)f->row, to, (size_t)(f->columns * tile));         \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t u = 0; u < f->taps; u++)                                                                      \
                for (int64_t i = 0; i < rows; i++)                                                                     \
                    to[u * f->columns * tile + i] = from[i * f->row + f->tap[u]];                                      \
        }                                                                                                              \
    }
CORRELATE(f32)
CORRELATE(f64)
#undef CORRELATE

static void run_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const Correlation *c = arg;
    void *room = c->rooms + (size_t)worker * c->room_bytes;
    for (int64_t t = begin; t < end; t++) {
        const int64_t part = t % c->parts, place = t / c->parts, tile = place % c->tiles, at = place / c->tiles;
        Block u = { .group = at % c->groups, .image = at / c->groups * c->span };
        u.images = c->images - u.image < c->span ? c->images - u.image : c->span;
        u.first = tile * c->tile;
        u.n = c->out - u.first < c->tile ? c->out - u.first : c->tile;
        u.result = part * c->part;
        u.n_rows = c->results - u.result < c->part ? c->results - u.result : c->part;
        if (c->f64)
            block_f64(c, &u, room);
        else
            block_f32(c, &u, room);
    }
}

/* Where blocks of positions are too few for the threads, the results of a group are split, too: at whole tiles. */
static void split_results(Correlation *c, int64_t blocks, int64_t threads)
{
    enum { LEAST = 48, WHOLE = MOST_TILE_ROWS };
    const int64_t most = (c->results + LEAST - 1) / LEAST;
    const int64_t wanted = threads > 1 && blocks % threads && blocks < 8 * threads ? threads : 1;
    c->parts = wanted < most ? wanted : most;
    c->part = ((c->results + c->parts - 1) / c->parts + WHOLE - 1) / WHOLE * WHOLE;
    c->parts = (c->results + c->part - 1) / c->part;
}

/* Positions of a block, and images that it takes together: as many as fit while every thread has some. */
static void split_positions(Correlation *c, int64_t threads)
{
    const int64_t wanted = POSITIONS, groups = c->groups;
    c->span = 1;
    c->tile = wanted < c->out ? wanted : c->out;
    c->tiles = (c->out + c->tile - 1) / c->tile;
    if (c->out >= wanted || c->images < 2)
        return;
    int64_t span = wanted / (c->out ? c->out : 1), most = (c->images * groups + threads - 1) / threads;
    span = span < most ? span : most;
    span = span < c->images ? span : c->images;
    c->span = span < 1 ? 1 : span;
    c->direct = c->direct && c->span == 1;
}

void correlation_plan(Correlation *c, int64_t images, int64_t threads)
{
    const int64_t element = c->f64 ? (int64_t)sizeof(f64) : (int64_t)sizeof(f32);
    c->images = images;
    c->taps = window_product(c->w.rank, c->w.kernel);
    c->in = window_product(c->w.rank, c->w.in);
    c->out = window_product(c->w.rank, c->w.out);
    c->direct = window_is_data(&c->w);
    planes_plan(c);
    if (c->planes.lines)
        return;
    split_positions(c, threads);
    split_results(c, (images + c->span - 1) / c->span * c->groups * c->tiles, threads);
    const Panel p = panel_of(c, c->part, c->span * c->tile);
    const size_t gathered = gathered_of(p.n) + panel_digits(p.k) * p.m * p.n;
    c->placed = is_placed(c) ? p.m * p.n : 0;
    c->room_bytes = ((c->placed + (c->direct ? panel_room(&p) : gathered)) * (size_t)element + 63) / 64 * 64;
}

size_t correlation_rows(const Correlation *c)
{
    return packed_rows(c->kernels, c->f64, c->results, c->channels * c->taps);
}

void correlation_run(Eval *e, Correlation *c)
{
    if (c->planes.lines) {
        eval_parallel(e, planes_blocks(c), planes_run, c);
        return;
    }
    eval_parallel(e, (c->images + c->span - 1) / c->span * c->groups * c->tiles * c->parts, run_blocks, c);
}

/* ---- weights ---- */

typedef struct PackRun {
    const FilterPack *filter;
    const PackedLoops *loops;
    size_t element, group; /* bytes; elements of a group */
} PackRun;

static void pack_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const PackRun *r = arg;
    const FilterPack *f = r->filter;
    const int64_t tile = (int64_t)r->loops->rows, tiles = (f->rows + tile - 1) / tile;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / tiles, m = i % tiles * tile;
        void *to = (char *)f->to + ((size_t)group * r->group + (size_t)(m * f->taps * f->columns)) * r->element;
        if (f->f64)
            pack_f64(f, r->loops, group, m, to);
        else
            pack_f32(f, r->loops, group, m, to);
    }
}

size_t filter_group(const Eval *e, const FilterPack *f)
{
    return packed_rows(e->kernels, f->f64, f->rows, f->columns * f->taps);
}

size_t filter_room(const Eval *e, const FilterPack *f)
{
    return (size_t)f->groups * filter_group(e, f);
}

size_t filter_bytes(const Type *filter, int64_t groups, int64_t rows, int64_t columns, int64_t taps)
{
    enum { TILE = MOST_TILE_ROWS };
    const size_t element = filter->dtype == F64 ? sizeof(f64) : sizeof(f32);
    return (size_t)(groups * ((rows + TILE - 1) / TILE * TILE) * columns * taps) * element;
}

void filter_pack(Eval *e, const FilterPack *f)
{
    PackRun run = { f, kernels_packed(e->kernels, f->f64 ? ARITH_F64 : ARITH_F32), f->f64 ? sizeof(f64) : sizeof(f32),
                    filter_group(e, f) };
    const int64_t tile = (int64_t)run.loops->rows;
    eval_parallel(e, f->groups * ((f->rows + tile - 1) / tile), pack_tiles, &run);
}

const void *filter_packed(Eval *e, int i, int64_t groups, int64_t rows, int64_t channels, int64_t taps)
{
    FilterPack f = { .groups = groups,
                     .rows = rows,
                     .columns = channels,
                     .taps = taps,
                     .group = rows * channels * taps,
                     .row = channels * taps,
                     .column = taps,
                     .f64 = eval_is_f64(e) };
    f.from = f.f64 ? (const void *)eval_f64(e, i) : eval_f32(e, i);
    f.to = eval_room(e, filter_room(e, &f), f.f64 ? sizeof(f64) : sizeof(f32));
    filter_pack(e, &f);
    return f.to;
}
