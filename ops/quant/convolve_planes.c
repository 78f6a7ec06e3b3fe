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
    MOST_SIDE = 1 << 14,  /* of what positions see */
    NEAR_BYTES = 1 << 15, /* of the words of some lines of a group, which stay in the nearest cache, */
    MOST_BYTES = 1 << 18, /* or, where those are too few, in the one behind it */
    FEW = 4,              /* lines for each that windows reach beyond them, which is made again for the next ones */
    SOME = 1 << 12,       /* sums at a time */
    SIGN = 0x80,
};

/* ---- as bytes ---- */

/* A word holds what four taps beside each other see, and each such four of a line of taps has a plane of its own, with a word for
 * each position; so what a word of weights meets of all positions is one run. */
typedef struct Bytes {
    const QuadLoops *l;
    const CodesConv *c;
    const u8 *x;
    int64_t bytes; /* of x */
    const SumTaker *to;
    ByteLines line;
    u32 zero;                   /* four of what codes of the zero point are turned to */
    int64_t each, lines, plane; /* words of a line of taps; lines of positions at a time; words of a plane of theirs, */
    int64_t parts;              /* one for each step of the window */
    size_t words;               /* of a result */
    const size_t *at;
    u32 *weights;
    i32 *start; /* of the sums of a result */
    size_t sums, room;
    char *rooms;
} Bytes;

/* Lines of positions that are taken at a time, where so many more are seen. */
static int64_t lines_at_a_time(const Window *w, int64_t planes, int64_t more)
{
    const int64_t line = (int64_t)sizeof(u32) * planes * w->out[1], near = NEAR_BYTES / line - more;
    const int64_t lines = near <= FEW * more ? MOST_BYTES / line - more : near;
    return lines < w->out[0] ? lines : w->out[0];
}

/* Whether windows fit. */
static bool bytes_fit(const CodesConv *c, const Codes *x, const Codes *filter, Bytes *b)
{
    const Window *w = &c->w;
    bool fits = b->l->along && w->rank == 2 && x->type <= CODE_I8 && filter->type == CODE_I8;
    for (int64_t i = 0; i < filter->n_zeros; i++)
        fits = fits && filter->zeros[i] == 0;
    for (int i = 0; fits && i < 2; i++)
        fits = w->stride[i] <= BYTE_LINE_STRIDE && w->kernel[i] > 0 && w->kernel[i] <= MOST_WORDS &&
               w->dilation[i] > 0 && w->dilation[i] <= MOST_WORDS && w->out[i] > 0 && w->out[i] <= MOST_SIDE;
    if (!fits || w->dilation[1] != 1 || c->channels == 0 || c->channels > MOST_WORDS)
        return false;
    b->each = (w->kernel[1] + DEPTH - 1) / DEPTH;
    b->words = (size_t)(c->channels * w->kernel[0] * b->each);
    if (b->words > MOST_WORDS)
        return false;
    b->parts = w->stride[0];
    const int64_t more = (w->kernel[0] - 1) * w->dilation[0] / w->stride[0], planes = c->channels * b->each * b->parts;
    b->lines = lines_at_a_time(w, planes, more);
    b->plane = (b->lines + more) * w->out[1];
    return b->lines > more;
}

/* Where the words of a result stand in the planes, and its weights as such words. */
static void place_words(Eval *e, Bytes *b, const Codes *filter)
{
    const CodesConv *c = b->c;
    const Window *w = &c->w;
    const int64_t rows = c->groups * c->results, lines = c->channels * w->kernel[0];
    size_t *at = eval_room(e, b->words, sizeof *at);
    i8 *weights = eval_scratch(e, (size_t)rows * b->words, DEPTH);
    b->at = at;
    b->weights = (u32 *)(void *)weights;
    b->start = eval_room(e, (size_t)rows, sizeof *b->start);
    for (int64_t k = 0; k < lines; k++)
        for (int64_t i = 0; i < b->each; i++) {
            const int64_t down = k % w->kernel[0] * w->dilation[0], of = k / w->kernel[0] * b->each + i;
            *at++ = (size_t)((of * b->parts + down % b->parts) * b->plane + down / b->parts * w->out[1]);
        }
    for (int64_t m = 0; m < rows; m++) {
        const i8 *from = (const i8 *)filter->v + m * lines * w->kernel[1];
        i32 sum = 0;
        for (int64_t k = 0; k < lines; k++, weights += b->each * DEPTH)
            for (int64_t i = 0; i < w->kernel[1]; i++)
                sum += weights[i] = *from++;
        const u32 bias = b->to->codes && b->to->codes->bias ? (u32)b->to->codes->bias[m] : 0;
        b->start[m] = (i32)(bias - (b->zero & 0xff) * (u32)sum);
    }
}

/* What positions of lines from `first` on see of a channel. */
static void fill_planes(const Bytes *b, const u8 *x, int64_t first, int64_t lines, u32 *to)
{
    const Window *w = &b->c->w;
    const int64_t width = w->out[1], step = w->stride[0], all = lines + b->plane / width - b->lines;
    ByteLines of = b->line;
    for (int64_t plane = 0; plane < b->each * b->parts; plane++, to += b->plane) {
        if (!conv_part_is_seen(w, 0, plane % b->parts))
            continue;
        const int64_t row = first * step + plane % b->parts - w->begin[0]; /* of line 0 */
        int64_t before, end;
        conv_lines_there(row, step, all, w->in[0], &before, &end);
        of.lines = (size_t)(end - before);
        of.begin = plane / b->parts * DEPTH - w->begin[1];
        for (int64_t i = 0; i < before * width; i++)
            to[i] = b->zero;
        const u8 *line = x + (row + before * step) * w->in[1];
        of.before = line - b->x;
        of.behind = b->bytes - of.before;
        if (of.lines)
            b->l->lines(&of, line, to + before * width);
        for (int64_t i = end * width; i < all * width; i++)
            to[i] = b->zero;
    }
}

/* Codes, or sums of some positions at a time, so that they are taken from the nearest cache. */
static void sum_lines(const Bytes *b, const u32 *planes, int64_t row, int64_t first, int64_t n, i32 *sums)
{
    const SumCodes *codes = b->to->codes;
    const WordTaps taps = { b->words, b->at, b->weights + (size_t)row * b->words };
    if (codes) {
        const RowCodes of = { b->start + row, codes->factor + row, codes->range };
        b->l->along_codes(&taps, (size_t)n, planes, &of, codes->to + first);
        return;
    }
    for (int64_t i = 0, some; i < n; i += some) {
        some = n - i < SOME ? n - i : SOME;
        b->l->along(&taps, (size_t)some, planes + i, (u32)b->start[row], sums);
        b->to->take(b->to->user, first + i, some, sums);
    }
}

static void run_bytes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Bytes *b = arg;
    const CodesConv *c = b->c;
    const int64_t width = c->w.out[1], in = c->w.in[0] * c->w.in[1], out = c->w.out[0] * width;
    i32 *sums = (i32 *)(void *)(b->rooms + (size_t)worker * b->room);
    u32 *planes = (u32 *)(sums + b->sums);
    for (int64_t item = begin; item < end; item++)
        for (int64_t first = 0, n; first < c->w.out[0]; first += n) {
            n = c->w.out[0] - first < b->lines ? c->w.out[0] - first : b->lines;
            for (int64_t k = 0; k < c->channels; k++)
                fill_planes(b, b->x + (item * c->channels + k) * in, first, n,
                            planes + k * b->each * b->parts * b->plane);
            for (int64_t m = 0; m < c->results; m++)
                sum_lines(b, planes, item % c->groups * c->results + m, (item * c->results + m) * out + first * width,
                          n * width, sums);
        }
}

static bool along_bytes(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    enum { FOUR = 0x01010101 };
    Bytes b = { .l = kernels_quads(e->kernels), .c = c, .x = x->v, .to = to };
    if (!bytes_fit(c, x, filter, &b))
        return false;
    b.line = (ByteLines){ .n = (size_t)c->w.out[1],
                          .stride = (size_t)c->w.stride[1],
                          .apart = (size_t)(c->w.stride[0] * c->w.in[1]),
                          .width = c->w.in[1],
                          .zero = (u8)x->zeros[0],
                          .flip = x->type == CODE_I8 ? SIGN : 0 };
    b.zero = (u32)(b.line.zero ^ b.line.flip) * FOUR;
    b.bytes = c->images * c->groups * c->channels * c->w.in[0] * c->w.in[1];
    place_words(e, &b, filter);
    b.sums = to->codes ? 0 : SOME + WORDS_BEYOND;
    b.room = (b.sums + (size_t)(c->channels * b.each * b.parts * b.plane) + WORDS_BEYOND) * sizeof(u32);
    b.room = (b.room + 63) / 64 * 64;
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
