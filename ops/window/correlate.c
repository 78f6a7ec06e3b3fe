#include "ops/window/correlate.h"

#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/panel.h"

/* Some results of one group of one image, at a block of positions. */
typedef struct Block {
    int64_t group, image;
    int64_t first, n;       /* positions */
    int64_t result, n_rows; /* of the group */
    bool gathered;          /* the window matrix is there already */
} Block;

static Panel panel_of(const Correlation *c, int64_t rows, int64_t positions)
{
    const size_t k = (size_t)(c->channels * c->taps), n = (size_t)positions;
    return (Panel){ .m = (size_t)rows,
                    .n = n,
                    .k = k,
                    .lda = k,
                    .ldb = c->direct ? (size_t)c->in : n,
                    .ldc = c->apart ? n : (size_t)c->out };
}

#define CORRELATE(T)                                                                                                   \
    static void gather_##T(const Correlation *c, const T *x, int64_t first, int64_t n, T *to)                          \
    {                                                                                                                  \
        int64_t tap[MAX_SPATIAL] = { 0 };                                                                              \
        for (int64_t k = 0; k < c->taps; k++) {                                                                        \
            for (int64_t i = 0; i < c->channels; i++, to += n)                                                         \
                window_gather_##T(&c->w, x + i * c->in, tap, first, n, to);                                            \
            position_next(c->w.rank, c->w.kernel, tap);                                                                \
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
    static void block_##T(const Correlation *c, const Block *u, T *room)                                               \
    {                                                                                                                  \
        const int64_t k = c->channels * c->taps, row = u->group * c->results + u->result;                              \
        const T *x = (const T *)c->x + (u->image * c->groups + u->group) * c->channels * c->in, *b = room;             \
        const T *bias = c->bias ? (const T *)c->bias + row : NULL;                                                     \
        T *y = (T *)c->y + (u->image * c->groups * c->results + row) * c->size, *placed = room + c->columns;           \
        T *to = c->apart ? placed : y + u->first;                                                                      \
        const Panel p = panel_of(c, u->n_rows, u->n);                                                                  \
        if (c->direct)                                                                                                 \
            b = x + u->first;                                                                                          \
        else if (!u->gathered)                                                                                         \
            gather_##T(c, x, u->first, u->n, room);                                                                    \
        panel_##T(c->kernels, &p, (const T *)c->filter + row * k, b, to, placed + c->placed);                          \
        add_bias_##T(to, bias, u->n_rows, u->n, (int64_t)p.ldc);                                                       \
        for (int64_t i = 0; c->apart && i < u->n_rows; i++)                                                            \
            place_##T(c, u, to + i * u->n, y + i * c->size);                                                           \
    }                                                                                                                  \
    /* Rows [first, last) of one group. */                                                                             \
    static void turn_##T(const FilterTurn *t, int64_t group, int64_t first, int64_t last)                              \
    {                                                                                                                  \
        enum { SIDE = 16 }; /* so that both sides stay in cache */                                                     \
        const T *from = (const T *)t->from + group * t->group;                                                         \
        T *to = (T *)t->to + group * t->rows * t->taps * t->columns;                                                   \
        for (int64_t c0 = 0; c0 < t->columns; c0 += SIDE)                                                              \
            for (int64_t m = first; m < last; m++)                                                                     \
                for (int64_t u = 0; u < t->taps; u++) {                                                                \
                    const int64_t n = t->columns - c0 < SIDE ? t->columns - c0 : SIDE, step = t->column;               \
                    const T *restrict p = from + m * t->row + c0 * step + t->tap[u];                                   \
                    T *restrict q = to + (m * t->taps + u) * t->columns + c0;                                          \
                    for (int64_t c = 0; c < n; c++)                                                                    \
                        q[c] = p[c * step];                                                                            \
                }                                                                                                      \
    }
CORRELATE(f32)
CORRELATE(f64)
#undef CORRELATE

static void run_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const Correlation *c = arg;
    void *room = c->rooms + (size_t)worker * c->room_bytes;
    int64_t gathered = -1;
    for (int64_t t = begin; t < end; t++) {
        const int64_t part = t % c->parts, place = t / c->parts, tile = place % c->tiles, at = place / c->tiles;
        Block u = { .group = at % c->groups, .image = at / c->groups, .gathered = place == gathered };
        u.first = tile * c->tile;
        u.n = c->out - u.first < c->tile ? c->out - u.first : c->tile;
        u.result = part * c->part;
        u.n_rows = c->results - u.result < c->part ? c->results - u.result : c->part;
        if (c->f64)
            block_f64(c, &u, room);
        else
            block_f32(c, &u, room);
        gathered = place;
    }
}

/* Blocks whose window matrix stays in a second-level cache. */
static int64_t tile_of(const Correlation *c, int64_t element)
{
    enum { CACHE = 384 << 10, LEAST = 64 };
    const int64_t rows = c->channels * c->taps;
    int64_t tile = CACHE / element / (rows ? rows : 1) / LEAST * LEAST;
    if (c->direct)
        tile = 1024;
    tile = tile < LEAST ? LEAST : tile;
    return tile < c->out ? tile : c->out;
}

/* Where blocks of positions are too few for the threads, the results of a group are split, too. */
static void split_results(Correlation *c, int64_t blocks, int64_t threads)
{
    enum { LEAST = 48 };
    const int64_t most = (c->results + LEAST - 1) / LEAST;
    const int64_t wanted = threads > 1 && blocks % threads && blocks < 8 * threads ? threads : 1;
    c->parts = wanted < most ? wanted : most;
    c->part = (c->results + c->parts - 1) / c->parts;
    c->parts = (c->results + c->part - 1) / c->part;
}

void correlation_plan(Correlation *c, int64_t images, int64_t threads)
{
    const int64_t element = c->f64 ? (int64_t)sizeof(f64) : (int64_t)sizeof(f32);
    c->taps = window_product(c->w.rank, c->w.kernel);
    c->in = window_product(c->w.rank, c->w.in);
    c->out = window_product(c->w.rank, c->w.out);
    c->direct = window_is_data(&c->w);
    c->tile = tile_of(c, element);
    c->tiles = (c->out + c->tile - 1) / c->tile;
    split_results(c, images * c->groups * c->tiles, threads);
    const Panel p = panel_of(c, c->part, c->tile);
    c->columns = c->direct ? 0 : p.k * p.n;
    c->placed = c->apart ? p.m * p.n : 0;
    c->room_bytes = (c->columns + c->placed + panel_room(&p)) * (size_t)element;
}

void correlation_run(Eval *e, const Correlation *c, int64_t images)
{
    Correlation run = *c;
    run.kernels = e->kernels;
    eval_parallel(e, images * c->groups * c->tiles * c->parts, run_blocks, &run);
}

enum { TURN_ROWS = 16 };

static void turn_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const FilterTurn *t = arg;
    const int64_t blocks = (t->rows + TURN_ROWS - 1) / TURN_ROWS;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % blocks * TURN_ROWS, last = first + TURN_ROWS;
        (t->f64 ? turn_f64 : turn_f32)(t, i / blocks, first, last < t->rows ? last : t->rows);
    }
}

void filter_turn(Eval *e, const FilterTurn *t)
{
    FilterTurn run = *t;
    eval_parallel(e, t->groups * ((t->rows + TURN_ROWS - 1) / TURN_ROWS), turn_rows, &run);
}

const void *filter_turned(Eval *e, int i, int64_t rows, int64_t channels, int64_t taps)
{
    FilterTurn t = { .groups = 1,
                     .rows = rows,
                     .columns = channels,
                     .taps = taps,
                     .row = channels * taps,
                     .column = taps,
                     .f64 = eval_is_f64(e) };
    t.from = t.f64 ? (const void *)eval_f64(e, i) : eval_f32(e, i);
    if (channels == 1 || taps == 1)
        return t.from;
    int64_t *tap = NEWS(e->scratch, int64_t, taps);
    for (int64_t k = 0; k < taps; k++)
        tap[k] = k;
    t.tap = tap;
    t.to = eval_room(e, (size_t)(rows * channels * taps), t.f64 ? sizeof(f64) : sizeof(f32));
    filter_turn(e, &t);
    return t.to;
}
