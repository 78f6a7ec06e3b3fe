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
    WORDS = 160,     /* of words: with a tile of rows what a panel of columns sees stays in a first-level cache */
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
    return c->apart || c->span > 1 || c->taker.take;
}

/* Whether they are copied from there, line by line: the bias is added on the way. */
static bool is_copied(const Correlation *c)
{
    return is_placed(c) && !c->apart && !c->taker.take;
}

static int64_t rows_of_tile(const Correlation *c)
{
    return c->is_bf16 ? (int64_t)kernels_pairs_bf16(c->kernels)->rows
                      : (int64_t)kernels_packed(c->kernels, c->f64 ? ARITH_F64 : ARITH_F32)->rows;
}

/* Lines that are multiplied for so many: of words they are filled up with zeros. */
static int64_t filled_lines(const Correlation *c, int64_t lines)
{
    return c->is_bf16 ? (int64_t)pair_filled(kernels_pairs_bf16(c->kernels), (size_t)lines) : lines;
}

/* Steps of k that a line of what is gathered stands for. */
static int64_t steps_of_line(const Correlation *c)
{
    return c->is_bf16 ? 2 : 1;
}

static Panel panel_of(const Correlation *c, int64_t rows, int64_t positions)
{
    const size_t k = (size_t)(c->deep * c->taps), n = (size_t)positions;
    return (Panel){ .m = (size_t)rows,
                    .n = n,
                    .k = k,
                    .lda = (size_t)(filled_lines(c, c->deep * c->taps) * rows_of_tile(c)),
                    .packed = true,
                    .ldb = c->direct ? (size_t)c->in : n,
                    .ldc = is_placed(c) ? n : (size_t)c->out };
}

size_t correlation_rows(const Correlation *c)
{
    const int64_t tile = rows_of_tile(c);
    return (size_t)((c->results + tile - 1) / tile * tile * filled_lines(c, c->deep * c->taps));
}

/* Adds the product of some rows with gathered lines; of f32 and f64 a panel is there for columns that are no whole one. */
#define FLOATS(T)                                                                                                      \
    static void add_lines_##T(const Correlation *c, const PairProduct *p, const T *tiles, const T *lines, T *to,       \
                              T *panel)                                                                                \
    {                                                                                                                  \
        kernels_packed(c->kernels, c->f64 ? ARITH_F64 : ARITH_F32)                                                     \
            ->multiply_beside(p->m, p->n, p->words, tiles, p->tile, lines, p->ldb, to, p->ldc, p->fresh, panel);       \
    }
FLOATS(f32)
FLOATS(f64)
#undef FLOATS

static void add_lines_bf16(const Correlation *c, const PairProduct *p, const u32 *tiles, const u32 *lines, f32 *to,
                           f32 *panel)
{
    (void)panel;
    kernels_pairs_bf16(c->kernels)->multiply(p, tiles, lines, to);
}

/* Words of what two channels have at the positions of a block, where the data is its own window matrix; those a few channels on
 * are asked for, since each may lie in a page of its own.  False: the words are there already. */
static bool pair_bf16(const Correlation *c, const Block *u, int64_t image, int64_t word, u32 *to)
{
    enum { AHEAD = 8, LINE = 64 / sizeof(u16), PAGE = 4096 / sizeof(u16) };
    const int64_t channel = ((u->image + image) * c->groups + u->group) * c->channels + 2 * word;
    if (!c->halves)
        return false;
    const u16 *low = c->halves + channel * c->in + u->first, *high = 2 * word + 1 < c->channels ? low + c->in : NULL;
    for (int64_t i = 0; c->in > PAGE && i < u->n; i += LINE) {
        __builtin_prefetch(low + AHEAD * c->in + i);
        __builtin_prefetch(low + (AHEAD + 1) * c->in + i);
    }
    kernels_pairs_bf16(c->kernels)->pair((size_t)u->n, low, high, to);
    return true;
}

#define PAIR_f32(...)                          false
#define PAIR_f64(...)                          false
#define PAIR_bf16                              pair_bf16
#define SEE_f32                                window_see_f32
#define SEE_f64                                window_see_f64
#define SEE_bf16                               window_see_u32
#define DIRECT_f32                             panel_f32
#define DIRECT_f64                             panel_f64
#define DIRECT_bf16(level, p, rows, seen, ...) ((void)(seen)) /* never: words are gathered */

/* A vector at a time, which the compiler does not make of it by itself. */
#define BIAS(T)                                                                                                        \
    typedef T Wide_##T __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));                                \
    static inline void biased_##T(T *to, const T *from, T bias, int64_t n)                                             \
    {                                                                                                                  \
        enum { WIDE = 64 / sizeof(T) };                                                                                \
        int64_t j = 0;                                                                                                 \
        for (; j + WIDE <= n; j += WIDE)                                                                               \
            *(Wide_##T *)(void *)(to + j) = *(const Wide_##T *)(const void *)(from + j) + bias;                        \
        for (; j < n; j++)                                                                                             \
            to[j] = from[j] + bias;                                                                                    \
    }                                                                                                                  \
    void add_bias_##T(T *y, const T *bias, int64_t rows, int64_t n, int64_t stride)                                    \
    {                                                                                                                  \
        for (int64_t i = 0; bias && i < rows; i++, y += stride)                                                        \
            biased_##T(y, y, bias[i], n);                                                                              \
    }
BIAS(f32)
BIAS(f64)
#undef BIAS

/* Results of some images to their taker: their first one is element `at` of the result. */
static void store_all(const Correlation *c, const Block *u, int64_t at, const f32 *from)
{
    const int64_t image = c->groups * c->results * c->size;
    for (int64_t i = 0; i < u->n_rows; i++)
        for (int64_t m = 0; m < u->images; m++, from += u->n)
            c->taker.take(c->taker.user, at + m * image + i * c->size, u->n, from);
}

/* ---- frames ---- */

/* Small images with their padding about them: what a tap sees of a line is so many neighbours, as many of each line, and no padding
 * has to be told from data. */
enum { SOME = 32 /* bytes that are copied at a time */ };

/* Whether blocks, which are whole images then, are gathered from frames. */
static void frames_plan(Correlation *c, size_t element)
{
    enum { LONGEST = 256, MOST = 1 << 20 }; /* bytes: of a line, and of all frames of a block */
    const Window *w = &c->w;
    FramePlan *f = &c->frames;
    *f = (FramePlan){ 0 };
    if (w->rank != 2 || window_is_data(w) || c->halves || c->tile != c->out || w->stride[1] != 1 ||
        (size_t)w->out[1] * element > LONGEST)
        return;
    for (int i = 0; i < 2; i++)
        if (w->begin[i] < 0 || w->dilation[i] < 1 || w->stride[i] < 1 || w->kernel[i] < 1 || w->out[i] < 1)
            return;
    const int64_t height = (w->out[0] - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
    const int64_t pitch = w->out[1] + (w->kernel[1] - 1) * w->dilation[1];
    if (c->span * c->deep > MOST / (int64_t)element / (height * pitch))
        return;
    f->pitch = pitch;
    f->height = height;
    f->plane = height * pitch;
}

/* Of those of a block. */
static size_t frames_bytes(const Correlation *c, size_t element)
{
    return c->frames.pitch ? (size_t)(c->span * c->deep * c->frames.plane) * element + SOME : 0;
}

/* A fixed size is no call. */
static inline void copy_some(char *to, const char *from)
{
    memcpy(to, from, SOME);
}

static inline void copy_line(char *to, const char *from, size_t bytes)
{
    if (bytes % SOME) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += SOME)
        copy_some(to + i, from + i);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Those of the channels of a group, of some images from one on. */
static void frames_fill(const Correlation *c, int64_t group, int64_t image, int64_t images, size_t element,
                        void *frames)
{
    const Window *w = &c->w;
    const FramePlan *f = &c->frames;
    const int64_t rows = least(w->in[0], f->height - w->begin[0]), cols = least(w->in[1], f->pitch - w->begin[1]);
    char *to = (char *)frames + (size_t)(w->begin[0] * f->pitch + w->begin[1]) * element;
    memset(frames, 0, (size_t)(images * c->deep * f->plane) * element);
    for (int64_t k = 0; k < c->deep && cols > 0; k++)
        for (int64_t m = 0; m < images; m++, to += (size_t)f->plane * element) {
            const int64_t plane = ((image + m) * c->groups + group) * c->deep + k;
            const char *from = (const char *)c->x + (size_t)(plane * c->in) * element;
            for (int64_t i = 0; i < rows; i++)
                copy_line(to + (size_t)(i * f->pitch) * element, from + (size_t)(i * w->in[1]) * element,
                          (size_t)cols * element);
        }
}

/* What all positions of the images see of a channel through a tap; behind the last one SOME bytes may be written. */
static void frames_see(const Correlation *c, const void *frames, const int64_t *tap, int64_t channel, int64_t images,
                       size_t element, void *to)
{
    const Window *w = &c->w;
    const FramePlan *f = &c->frames;
    const int64_t first = channel * images * f->plane + tap[0] * w->dilation[0] * f->pitch + tap[1] * w->dilation[1];
    const size_t line = (size_t)w->out[1] * element, apart = (size_t)(w->stride[0] * f->pitch) * element;
    const char *from = (const char *)frames + (size_t)first * element;
    char *at = to;
    for (int64_t m = 0; m < images; m++, from += (size_t)f->plane * element) {
        const char *x = from;
        for (int64_t i = 0; i < w->out[0]; i++, x += apart, at += line)
            for (size_t k = 0; k < line; k += SOME) /* the next line is written over what is too many */
                copy_some(at + k, x + k);
    }
}

/* ---- blocks ---- */

/* Operands of type T, sums of type S of the same size. */
#define CORRELATE(N, T, S)                                                                                             \
    /* What a block sees through some taps of some channels, which follow each other from `first`: a row for each. */  \
    static void gather_##N(const Correlation *c, const Block *u, const void *frames, int64_t first, int64_t n, T *to,  \
                           size_t apart)                                                                               \
    {                                                                                                                  \
        const int64_t image = c->groups * c->deep * c->in;                                                             \
        const int64_t plane = u->image * image + u->group * c->deep * c->in;                                           \
        int64_t tap[MAX_SPATIAL];                                                                                      \
        SightRun runs[POSITIONS];                                                                                      \
        size_t n_runs = 0;                                                                                             \
        position_of(c->w.rank, c->w.kernel, first / c->deep, tap);                                                     \
        for (int64_t k = first; k < first + n; k++, to += apart) {                                                     \
            const int64_t channel = k % c->deep;                                                                       \
            if (channel == 0 && k > first)                                                                             \
                position_next(c->w.rank, c->w.kernel, tap);                                                            \
            if (frames) {                                                                                              \
                frames_see(c, frames, tap, channel, u->images, sizeof(T), to);                                         \
                continue;                                                                                              \
            }                                                                                                          \
            if (channel == 0 || k == first)                                                                            \
                n_runs = window_sight(&c->w, tap, u->first, u->images * u->n, image, runs);                            \
            bool paired = false;                                                                                       \
            for (int64_t m = 0; m < u->images; m++)                                                                    \
                paired = PAIR_##N(c, u, m, channel, to + m * u->n);                                                    \
            if (!paired)                                                                                               \
                SEE_##N(&c->w, runs, n_runs, (const T *)c->x + plane + channel * c->in, to);                           \
        }                                                                                                              \
    }                                                                                                                  \
    /* The product of some rows with what a block sees, segment by segment (ops/kernels/panel.h). */                   \
    static void multiply_##N(const Correlation *c, const Block *u, const T *filter, S *to, size_t ldc, S *room)        \
    {                                                                                                                  \
        const int64_t k = c->deep * c->taps, rows = rows_of_tile(c), segment = PANEL_SEGMENT / steps_of_line(c);       \
        const size_t n = (size_t)(u->images * u->n), m = (size_t)u->n_rows, apart = apart_of(n);                       \
        S *panel = room + apart * DEPTH, *digits = room + gathered_of(n);                                              \
        T *lines = (T *)(void *)room;                                                                                  \
        PairProduct p = {                                                                                              \
            .m = m, .n = n, .row = 1, .tile = (size_t)(filled_lines(c, k) * rows), .ldb = apart, .ldc = ldc            \
        };                                                                                                             \
        void *frames = c->frames.pitch ? (char *)room + c->frames.at : NULL;                                           \
        p.panel = MOST_PANEL_WIDTH;                                                                                    \
        if (frames)                                                                                                    \
            frames_fill(c, u->group, u->image, u->images, sizeof(T), frames);                                          \
        for (int64_t s = 0; s == 0 || s < k; s += segment) {                                                           \
            const int64_t end = k - s < segment ? k : s + segment, most = c->is_bf16 ? WORDS : DEPTH;                  \
            for (size_t i = 0; i < m && s == end; i++) /* nothing to sum */                                            \
                memset(to + i * ldc, 0, n * sizeof(S));                                                                \
            const int64_t shares = (end - s + most - 1) / most,                                                        \
                          share = filled_lines(c, (end - s + shares - 1) / (shares ? shares : 1));                     \
            for (int64_t at = s, some; at < end; at += some) {                                                         \
                some = end - at < share ? end - at : share;                                                            \
                gather_##N(c, u, frames, at, some, lines, apart);                                                      \
                p.words = (size_t)filled_lines(c, some);                                                               \
                memset(lines + (size_t)some * apart, 0, (p.words - (size_t)some) * apart * sizeof(T));                 \
                p.fresh = at == s;                                                                                     \
                add_lines_##N(c, &p, filter + at * rows, lines, to, panel);                                            \
            }                                                                                                          \
            if (k > segment)                                                                                           \
                panel_join_##S(to, m, n, ldc, digits, (size_t)(s / segment), end == k);                                \
        }                                                                                                              \
    }                                                                                                                  \
    /* A row of results at positions that lie apart. */                                                                \
    static void place_##N(const Correlation *c, const Block *u, const S *from, S *y)                                   \
    {                                                                                                                  \
        const int last = c->w.rank - 1;                                                                                \
        const int64_t step = c->step[last];                                                                            \
        int64_t at[MAX_SPATIAL];                                                                                       \
        position_of(c->w.rank, c->w.out, u->first, at);                                                                \
        for (int64_t n = u->n, run; n > 0; n -= run, from += run) {                                                    \
            S *to = y + c->place;                                                                                      \
            for (int i = 0; i <= last; i++)                                                                            \
                to += at[i] * c->step[i];                                                                              \
            run = c->w.out[last] - at[last] < n ? c->w.out[last] - at[last] : n;                                       \
            for (int64_t i = 0; i < run; i++)                                                                          \
                to[i * step] = from[i];                                                                                \
            at[last] = c->w.out[last] - 1;                                                                             \
            position_next(c->w.rank, c->w.out, at);                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    /* Results of some images to where they stand, with their bias unless they lie apart: then they have it. */        \
    static void place_all_##N(const Correlation *c, const Block *u, const S *from, const S *bias, S *y)                \
    {                                                                                                                  \
        const int64_t image = c->groups * c->results * c->size;                                                        \
        for (int64_t i = 0; i < u->n_rows; i++)                                                                        \
            for (int64_t m = 0; m < u->images; m++, from += u->n)                                                      \
                if (c->apart)                                                                                          \
                    place_##N(c, u, from, y + m * image + i * c->size);                                                \
                else if (bias)                                                                                         \
                    biased_##S(y + m * image + i * c->size, from, bias[i], u->n);                                      \
                else                                                                                                   \
                    memcpy(y + m * image + i * c->size, from, (size_t)u->n * sizeof(S));                               \
    }                                                                                                                  \
    static void block_##N(const Correlation *c, const Block *u, S *room)                                               \
    {                                                                                                                  \
        const int64_t k = filled_lines(c, c->deep * c->taps), row = u->group * c->results + u->result;                 \
        const T *x = (const T *)c->x + (u->image * c->groups + u->group) * c->deep * c->in;                            \
        const S *bias = c->bias ? (const S *)c->bias + row : NULL;                                                     \
        const T *filter = (const T *)c->filter + (size_t)u->group * correlation_rows(c);                               \
        const int64_t first = (u->image * c->groups * c->results + row) * c->size;                                     \
        S *y = c->taker.take ? NULL : (S *)c->y + first, *placed = room;                                               \
        S *to = is_placed(c) ? placed : y + u->first;                                                                  \
        const int64_t n = u->images * u->n;                                                                            \
        const Panel p = panel_of(c, u->n_rows, n);                                                                     \
        if (c->direct)                                                                                                 \
            DIRECT_##N(c->kernels, &p, filter + u->result * k, x + u->first, to, placed + c->placed);                  \
        else                                                                                                           \
            multiply_##N(c, u, filter + u->result * k, to, p.ldc, placed + c->placed);                                 \
        if (!is_copied(c))                                                                                             \
            add_bias_##S(to, bias, u->n_rows, n, (int64_t)p.ldc);                                                      \
        if (c->taker.take)                                                                                             \
            store_all(c, u, first + u->first, (const f32 *)(const void *)to);                                          \
        else if (is_placed(c))                                                                                         \
            place_all_##N(c, u, to, bias, y);                                                                          \
    }
CORRELATE(f32, f32, f32)
CORRELATE(f64, f64, f64)
CORRELATE(bf16, u32, f32)
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
        if (c->is_bf16)
            block_bf16(c, &u, room);
        else if (c->f64)
            block_f64(c, &u, room);
        else
            block_f32(c, &u, room);
    }
}

/* Where blocks of positions are too few for the threads, the results of a group are split, too: at whole tiles. */
static void split_results(Correlation *c, int64_t blocks, int64_t threads)
{
    enum { LEAST = 48, WHOLE = WHOLE_TILES };
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
    c->direct = window_is_data(&c->w) && !c->is_bf16;
    c->deep = c->is_bf16 ? (c->channels + 1) / 2 : c->channels;
    planes_plan(c);
    c->lines.lines = 0;
    if (c->planes.lines)
        return;
    if (c->by_lines) {
        lines_plan(c, threads);
        return;
    }
    split_positions(c, threads);
    split_results(c, (images + c->span - 1) / c->span * c->groups * c->tiles, threads);
    const Panel p = panel_of(c, c->part, c->span * c->tile);
    const size_t gathered = gathered_of(p.n) + panel_digits(p.k * (size_t)steps_of_line(c)) * p.m * p.n;
    c->placed = is_placed(c) ? p.m * p.n : 0;
    frames_plan(c, (size_t)element);
    c->frames.at = gathered * (size_t)element;
    c->room_bytes = (c->placed + (c->direct ? panel_room(&p) : gathered)) * (size_t)element;
    c->room_bytes = (c->room_bytes + frames_bytes(c, (size_t)element) + 63) / 64 * 64;
}

void correlation_run(Eval *e, Correlation *c)
{
    if (c->planes.lines) {
        eval_parallel(e, planes_blocks(c), planes_run, c);
        return;
    }
    if (c->lines.lines) {
        eval_parallel(e, lines_blocks(c), lines_run, c);
        return;
    }
    eval_parallel(e, (c->images + c->span - 1) / c->span * c->groups * c->tiles * c->parts, run_blocks, c);
}
