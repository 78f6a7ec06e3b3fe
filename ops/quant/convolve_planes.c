/* Convolutions of codes whose groups are small, along planes.  As bytes, four taps beside each other at a time, where the level has
 * loops for them and weights have a sign and no zero points; else codes less their zero points as floats, whose sums are below
 * 2^24 and so exact. */
#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/quads.h"
#include "ops/quant/products.h"
#include "ops/window/planes.h"

enum {
    BLOCK = 512,
    MOST_TERMS = (1 << 24) / (255 * 255),
    DEPTH = 4,            /* taps of a word */
    MOST_WORDS = 64,      /* of a result */
    MOST_BYTES = 1 << 18, /* of the planes of a group, which stay in a second-level cache */
    SIGN = 0x80,
};

/* ---- as bytes ---- */

typedef struct Bytes {
    const QuadLoops *l;
    const CodesConv *c;
    const u8 *x;
    const SumTaker *to;
    u8 flip, zero;             /* of the codes of x, and their zero point after it */
    int64_t height, width, in; /* of the plane of a channel between its padding; elements of one without */
    size_t words;              /* of a result */
    const size_t *at;
    u32 *weights;
    i32 *start; /* of the sums of a result */
    size_t sums, room;
    char *rooms;
} Bytes;

static int64_t words_of_line(const Window *w)
{
    return (w->kernel[1] + DEPTH - 1) / DEPTH;
}

/* Extents of a plane, as far as positions see it. */
static bool bytes_fit(const CodesConv *c, const Codes *x, const Codes *filter, Bytes *b)
{
    const Window *w = &c->w;
    bool fits = b->l->along && w->rank == 2 && x->type <= CODE_I8 && filter->type == CODE_I8;
    for (int64_t i = 0; i < filter->n_zeros; i++)
        fits = fits && filter->zeros[i] == 0;
    for (int i = 0; fits && i < 2; i++)
        fits = w->stride[i] <= BYTE_TAPS_STRIDE && w->kernel[i] > 0 && w->kernel[i] <= MOST_WORDS &&
               w->dilation[i] > 0 && w->dilation[i] <= MOST_WORDS && w->out[i] > 0 && w->out[i] <= MOST_BYTES;
    if (!fits || w->dilation[1] != 1 || c->channels == 0 || c->channels > MOST_WORDS)
        return false;
    b->height = (w->out[0] - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
    b->width = (w->out[1] - 1) * w->stride[1] + words_of_line(w) * DEPTH;
    b->words = (size_t)(c->channels * w->kernel[0] * words_of_line(w));
    return b->words <= MOST_WORDS && c->channels * b->height * b->width <= MOST_BYTES;
}

/* Where the words of a result stand in the planes, and its weights as such words. */
static void place_words(Eval *e, Bytes *b, const Codes *filter)
{
    const CodesConv *c = b->c;
    const Window *w = &c->w;
    const int64_t rows = c->groups * c->results, lines = c->channels * w->kernel[0], each = words_of_line(w);
    size_t *at = eval_room(e, b->words, sizeof *at);
    i8 *weights = eval_scratch(e, (size_t)rows * b->words, DEPTH);
    b->at = at;
    b->weights = (u32 *)(void *)weights;
    b->start = eval_room(e, (size_t)rows, sizeof *b->start);
    for (int64_t k = 0; k < lines; k++)
        for (int64_t i = 0; i < each; i++)
            *at++ = (size_t)((k / w->kernel[0] * b->height + k % w->kernel[0] * w->dilation[0]) * b->width + i * DEPTH);
    for (int64_t m = 0; m < rows; m++) {
        const i8 *from = (const i8 *)filter->v + m * lines * w->kernel[1];
        i32 sum = 0;
        for (int64_t k = 0; k < lines; k++, weights += each * DEPTH)
            for (int64_t i = 0; i < w->kernel[1]; i++)
                sum += weights[i] = *from++;
        b->start[m] = (i32)(0u - (u32)b->zero * (u32)sum);
    }
}

static int64_t within(int64_t i, int64_t least, int64_t most)
{
    return i < least ? least : i > most ? most : i;
}

/* A channel between padding that is there. */
static void fill_plane(const Bytes *b, const u8 *x, u8 *to)
{
    const Window *w = &b->c->w;
    const int64_t from = within(w->begin[1], 0, b->width), n = within(w->begin[1] + w->in[1], from, b->width) - from;
    const int64_t first = within(w->begin[0], 0, b->height), end = within(w->begin[0] + w->in[0], first, b->height);
    to += first * b->width + from;
    x += (first - w->begin[0]) * w->in[1] + from - w->begin[1];
    if (n > 0 && first < end)
        b->l->copy((size_t)(end - first), (size_t)n, x, (size_t)w->in[1], b->flip, to, (size_t)b->width);
}

/* The sums of some lines at a time, so that they are taken from the nearest cache. */
static void sum_lines(const Bytes *b, const u8 *planes, int64_t row, int64_t first, i32 *sums)
{
    enum { SOME = 1 << 12 };
    const Window *w = &b->c->w;
    const int64_t width = w->out[1], most = width < SOME ? SOME / width : 1, step = w->stride[0] * b->width;
    for (int64_t line = 0, n; line < w->out[0]; line += n) {
        n = w->out[0] - line < most ? w->out[0] - line : most;
        const ByteTaps taps = { .words = b->words,
                                .stride = (size_t)w->stride[1],
                                .at = b->at,
                                .weights = b->weights + (size_t)row * b->words,
                                .lines = (size_t)n,
                                .step = (size_t)step };
        b->l->along(&taps, (size_t)width, planes + line * step, (u32)b->start[row], sums);
        b->to->take(b->to->user, first + line * width, n * width, sums);
    }
}

static void run_bytes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Bytes *b = arg;
    const CodesConv *c = b->c;
    const int64_t out = c->w.out[0] * c->w.out[1];
    i32 *sums = (i32 *)(void *)(b->rooms + (size_t)worker * b->room);
    u8 *planes = (u8 *)(sums + b->sums);
    memset(planes, b->zero, (size_t)(c->channels * b->height * b->width));
    for (int64_t item = begin; item < end; item++) {
        for (int64_t k = 0; k < c->channels; k++)
            fill_plane(b, b->x + (item * c->channels + k) * b->in, planes + k * b->height * b->width);
        for (int64_t m = 0; m < c->results; m++)
            sum_lines(b, planes, item % c->groups * c->results + m, (item * c->results + m) * out, sums);
    }
}

static bool along_bytes(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    Bytes b = { .l = kernels_quads(e->kernels), .c = c, .x = x->v, .to = to, .flip = x->type == CODE_I8 ? SIGN : 0 };
    if (!bytes_fit(c, x, filter, &b))
        return false;
    b.zero = (u8)x->zeros[0] ^ b.flip;
    b.in = c->w.in[0] * c->w.in[1];
    place_words(e, &b, filter);
    b.sums = ((size_t)(c->w.out[0] * c->w.out[1]) / BYTE_TAPS_BEYOND + 2) * BYTE_TAPS_BEYOND;
    b.room = b.sums * sizeof(i32) + (size_t)(c->channels * b.height * b.width) + BYTE_TAPS_BEYOND;
    b.room = (b.room / BYTE_TAPS_BEYOND + 1) * BYTE_TAPS_BEYOND;
    b.rooms = eval_room(e, (size_t)parallel_threads(e->pool), b.room);
    eval_parallel(e, c->images * c->groups, run_bytes, &b);
    return true;
}

/* ---- as floats ---- */

/* Who takes floats that are sums, and gives them on. */
typedef struct Taker {
    const QuadLoops *l;
    const SumTaker *to;
} Taker;

static void take_floats(const void *user, int64_t first, int64_t n, const f32 *v)
{
    const Taker *t = user;
    i32 sums[BLOCK];
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        t->l->integers((size_t)k, v + at, sums);
        t->to->take(t->to->user, first + at, k, sums);
    }
}

/* The weights less their zero points, packed. */
static const void *weights_of(Eval *e, const CodesConv *c, const Codes *filter, int64_t taps)
{
    const int64_t row = c->channels * taps, rows = c->groups * c->results;
    f32 *v = eval_room(e, (size_t)(rows * row), sizeof *v);
    FilterPack f = { .groups = c->groups,
                     .rows = c->results,
                     .columns = c->channels,
                     .taps = taps,
                     .group = c->results * row,
                     .row = row,
                     .column = taps,
                     .from = v };
    kernels_load_f32(e->kernels, v, filter->tensor, 0, rows * row);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < row; k++)
            v[i * row + k] -= (f32)filter->zeros[filter->n_zeros == 1 ? 0 : i];
    f.to = eval_room(e, filter_room(e, &f), sizeof(f32));
    filter_pack(e, &f);
    return f.to;
}

bool codes_along_planes(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    const int64_t threads = parallel_threads(e->pool), taps = window_product(c->w.rank, c->w.kernel);
    if (c->groups == 1 || codes_are_wide(x, filter) || c->channels * taps > MOST_TERMS)
        return false;
    if (along_bytes(e, c, x, filter, to))
        return true;
    const Taker taker = { kernels_quads(e->kernels), to };
    Correlation r = { .w = c->w,
                      .groups = c->groups,
                      .channels = c->channels,
                      .results = c->results,
                      .data = x->tensor,
                      .zero = (f32)x->zeros[0],
                      .taker = { take_floats, &taker },
                      .size = window_product(c->w.rank, c->w.out),
                      .kernels = e->kernels };
    correlation_plan(&r, c->images, threads);
    if (!r.planes.lines)
        return false;
    r.filter = weights_of(e, c, filter, taps);
    r.rooms = eval_room(e, (size_t)threads, r.room_bytes);
    correlation_run(e, &r);
    return true;
}
