/* Correlations of bf16 in tiles, along lines. */
#include <string.h>

#include "ops/kernels/panel.h"
#include "ops/window/correlate.h"

enum {
    IN_CACHE = 1 << 20,    /* bytes of planes and results of a block, which stay in a second-level cache */
    LEAST_POSITIONS = 256, /* of a block: the weights are read again for each */
    WORDS = 144,           /* that are multiplied at a time: with a tile of columns they stay in a first-level cache */
    SEGMENT = PANEL_SEGMENT / 2,
    ALIGN = 16, /* words of a line of a cache */
    LEAST_DEPTH = 8,
};

/* Some results of one group, at some lines of an image or all of several. */
typedef struct Block {
    int64_t group, image, images;
    int64_t first, lines; /* of results of an image */
    int64_t result, rows; /* of the group */
} Block;

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Words that a tap brings, whole blocks. */
static int64_t words_of(const Correlation *c)
{
    return (int64_t)pair_filled(kernels_pairs_bf16(c->kernels), (size_t)c->deep);
}

bool lines_suit(const Correlation *c)
{
    const int64_t depth = (int64_t)kernels_pairs_bf16(c->kernels)->depth, deep = (c->channels + 1) / 2;
    return depth > 1 && c->w.rank == 2 && deep >= LEAST_DEPTH &&
           (deep % depth == 0 || window_product(2, c->w.kernel) == 1);
}

/* The line of the data that row u of the taps sees for the first line of results, by the steps of the window. */
static int64_t line_of(const Window *w, int64_t u)
{
    return floor_div(u * w->dilation[0] - w->begin[0], w->stride[0]);
}

/* The lines of planes that lie behind each other for so many images of so many lines. */
static int64_t stacked(const Correlation *c, int64_t images, int64_t lines)
{
    return (images - 1) * c->lines.pitch + lines + c->lines.reach;
}

/* Positions that are multiplied: those that stand between images are of no use. */
static int64_t positions_of(const Correlation *c, int64_t images, int64_t lines)
{
    return (stacked(c, images, lines) - c->lines.reach) * c->w.out[1];
}

static int64_t planes_of(const Correlation *c)
{
    return c->w.kernel[1] * c->w.stride[0];
}

static size_t planes_room(const Correlation *c)
{
    return (size_t)(planes_of(c) * words_of(c) * c->lines.plane);
}

/* Where lines of the data begin and end that the results see, and images that share the padding between them. */
static void place_lines(Correlation *c)
{
    const Window *w = &c->w;
    LinePlan *p = &c->lines;
    const int64_t one = line_of(w, 0), other = line_of(w, w->kernel[0] - 1);
    p->above = w->kernel[0] ? least(one, other) : 0;
    p->reach = w->kernel[0] ? most(one, other) - p->above : 0;
    const int64_t seen = (w->in[0] + w->stride[0] - 1) / w->stride[0];
    const int64_t before = most(0, -p->above), behind = most(0, w->out[0] + p->above + p->reach - seen);
    p->pitch = w->out[0] + p->reach - least(least(before, behind), p->reach);
}

void lines_plan(Correlation *c, int64_t threads)
{
    enum { WHOLE = WHOLE_TILES, LEAST = 48 };
    const PairLoops *l = kernels_pairs_bf16(c->kernels);
    const Window *w = &c->w;
    LinePlan *p = &c->lines;
    place_lines(c);
    const int64_t position = (planes_of(c) * words_of(c) + c->results) * (int64_t)sizeof(f32);
    const int64_t wanted = most(IN_CACHE / most(position, 1), LEAST_POSITIONS), lines = most(wanted / w->out[1], 1);
    p->blocks = (w->out[0] + lines - 1) / lines;
    p->lines = (w->out[0] + p->blocks - 1) / p->blocks;
    p->blocks = (w->out[0] + p->lines - 1) / p->lines;
    c->span = 1;
    if (p->blocks == 1)
        c->span = most(1, least((lines - w->out[0]) / p->pitch + 1, (c->images * c->groups + threads - 1) / threads));
    c->span = least(c->span, c->images);
    c->span = (c->images + (c->images + c->span - 1) / c->span - 1) / ((c->images + c->span - 1) / c->span);
    const int64_t blocks = (c->images + c->span - 1) / c->span * c->groups * p->blocks;
    c->parts = threads > 1 && blocks % threads && blocks < 8 * threads ? threads : 1;
    c->parts = least(c->parts, (c->results + LEAST - 1) / LEAST);
    c->part = round_up((c->results + c->parts - 1) / c->parts, WHOLE);
    c->parts = (c->results + c->part - 1) / c->part;
    /* planes lie an odd number of lines of a cache apart, and what a tile reads behind the last position is there */
    const int64_t width = (int64_t)l->width, n = round_up(positions_of(c, c->span, p->lines), width);
    p->plane = round_up(n + p->reach * w->out[1], 2 * ALIGN) + ALIGN;
    const size_t sums = (size_t)(round_up(least(c->part, c->results), (int64_t)l->rows) * n),
                 digits = panel_digits((size_t)(2 * words_of(c) * c->taps));
    c->room_bytes = ((planes_room(c) + sums * (1 + digits)) * sizeof(f32) + 63) / 64 * 64;
}

/* How the lines of a block are seen in one plane: as a column of the taps sees those that a phase of the steps sees.  Positions from ..
 * end - 1 of lines top .. rest - 1 are data, from element `at` of a channel on. */
typedef struct PlaneView {
    int64_t lines, top, rest, from, end, at;
} PlaneView;

static PlaneView view_of(const Correlation *c, const Block *u, int64_t column, int64_t phase)
{
    const Window *w = &c->w;
    const int64_t width = w->out[1], step = w->stride[1], x0 = column * w->dilation[1] - w->begin[1];
    const int64_t line = u->first + c->lines.above;
    PlaneView v = { .lines = u->lines + c->lines.reach };
    v.from = least(width, x0 < 0 ? (-x0 + step - 1) / step : 0);
    v.end = most(v.from, least(width, floor_div(w->in[1] - 1 - x0, step) + 1));
    v.top = least(v.lines, most(0, -line));
    v.rest = most(v.top, least(v.lines, floor_div(w->in[0] - 1 - phase, w->stride[0]) + 1 - line));
    v.at = ((line + v.top) * w->stride[0] + phase) * w->in[1] + v.from * step + x0;
    return v;
}

/* A word at the lines of a block. */
static void fill_plane(const Correlation *c, const PlaneView *v, const u16 *low, const u16 *high, u32 *to)
{
    const Window *w = &c->w;
    const int64_t width = w->out[1];
    if (v->top)
        memset(to, 0, (size_t)(v->top * width) * sizeof *to);
    if (v->rest < v->lines)
        memset(to + v->rest * width, 0, (size_t)((v->lines - v->rest) * width) * sizeof *to);
    for (int64_t i = v->top; i < v->rest; i++) {
        for (int64_t k = 0; k < v->from; k++)
            to[i * width + k] = 0;
        for (int64_t k = v->end; k < width; k++)
            to[i * width + k] = 0;
    }
    if (v->from < v->end && v->top < v->rest)
        kernels_pairs_bf16(c->kernels)
            ->pair_lines((size_t)(v->rest - v->top), (size_t)(v->end - v->from), (size_t)w->stride[1], low + v->at,
                         high ? high + v->at : NULL, (size_t)(w->stride[0] * w->in[1]), to + v->top * width + v->from,
                         (size_t)width);
}

static void fill(const Correlation *c, const Block *u, u32 *planes)
{
    const int64_t words = words_of(c), plane = c->lines.plane, phases = c->w.stride[0];
    for (int64_t i = 0; i < planes_of(c); i++) {
        const PlaneView view = view_of(c, u, i / phases, i % phases);
        for (int64_t m = 0; m < u->images; m++) {
            const u16 *low = c->halves + ((u->image + m) * c->groups + u->group) * c->channels * c->in;
            u32 *to = planes + i * words * plane + m * c->lines.pitch * c->w.out[1];
            for (int64_t k = 0; k < c->deep; k++, low += 2 * c->in, to += plane)
                fill_plane(c, &view, low, 2 * k + 1 < c->channels ? low + c->in : NULL, to);
        }
        memset(planes + (i * words + c->deep) * plane, 0, (size_t)((words - c->deep) * plane) * sizeof *planes);
    }
}

/* Where in the planes the words of some blocks begin, the first of which is number `first`. */
static void place_blocks(const Correlation *c, int64_t first, int64_t n, size_t *at)
{
    const Window *w = &c->w;
    const int64_t depth = (int64_t)kernels_pairs_bf16(c->kernels)->depth, words = words_of(c);
    for (int64_t i = first; i < first + n; i++) {
        const int64_t tap = i * depth / words, u = tap / w->kernel[1], v = tap % w->kernel[1];
        const int64_t line = line_of(w, u), phase = u * w->dilation[0] - w->begin[0] - line * w->stride[0];
        *at++ = (size_t)(((v * w->stride[0] + phase) * words + i * depth % words) * c->lines.plane +
                         (line - c->lines.above) * w->out[1]);
    }
}

static void multiply(const Correlation *c, const Block *u, const u32 *filter, const u32 *planes, int64_t n, f32 *sums)
{
    const PairLoops *l = kernels_pairs_bf16(c->kernels);
    const int64_t k = words_of(c) * c->taps, rows = (int64_t)l->rows, depth = (int64_t)l->depth;
    const size_t m = (size_t)u->rows;
    size_t at[SEGMENT / LEAST_DEPTH];
    PairProduct p = { .m = m, .n = (size_t)n, .row = 1, .ldc = (size_t)n, .at = at };
    p.tile = (size_t)(k * rows), p.ldb = (size_t)c->lines.plane;
    if (k == 0)
        memset(sums, 0, m * (size_t)n * sizeof *sums);
    for (int64_t s = 0; s < k; s += SEGMENT) {
        const int64_t end = least(k, s + SEGMENT), shares = (end - s + WORDS - 1) / WORDS,
                      share = round_up((end - s + shares - 1) / shares, depth);
        for (int64_t i = s; i < end; i += (int64_t)p.words) {
            p.words = (size_t)least(share, end - i);
            p.fresh = i == s;
            place_blocks(c, i / depth, (int64_t)p.words / depth, at);
            l->multiply(&p, filter + i * rows, planes, sums);
        }
        if (k > SEGMENT)
            panel_join_f32(sums, m, (size_t)n, (size_t)n, sums + round_up(u->rows, rows) * n, (size_t)(s / SEGMENT),
                           end == k);
    }
}

/* Lines of results to where they stand, some apart. */
static void place(const Correlation *c, int64_t first, int64_t lines, const f32 *from, f32 *y)
{
    const int64_t width = c->w.out[1], step = c->step[1];
    y += c->place + first * c->step[0];
    for (int64_t i = 0; i < lines; i++, y += c->step[0], from += width)
        for (int64_t k = 0; k < width; k++)
            y[k * step] = from[k];
}

static void give(const Correlation *c, const Block *u, int64_t n, const f32 *sums)
{
    const int64_t row = u->group * c->results + u->result, image = c->groups * c->results * c->size;
    const int64_t width = c->w.out[1], some = u->lines * width;
    const int64_t first = (u->image * c->groups * c->results + row) * c->size;
    for (int64_t i = 0; i < u->rows; i++)
        for (int64_t m = 0; m < u->images; m++) {
            const f32 *from = sums + i * n + m * c->lines.pitch * width;
            const int64_t at = first + m * image + i * c->size;
            if (c->taker.take)
                c->taker.take(c->taker.user, at + u->first * width, some, from);
            else if (c->apart)
                place(c, u->first, u->lines, from, (f32 *)c->y + at);
            else
                memcpy((f32 *)c->y + at + u->first * width, from, (size_t)some * sizeof *from);
        }
}

static void run_block(const Correlation *c, const Block *u, u32 *room)
{
    const int64_t n = round_up(positions_of(c, u->images, u->lines), (int64_t)kernels_pairs_bf16(c->kernels)->width);
    const f32 *bias = c->bias ? (const f32 *)c->bias + u->group * c->results + u->result : NULL;
    const u32 *filter = (const u32 *)c->filter + (size_t)u->group * correlation_rows(c);
    f32 *sums = (f32 *)(void *)(room + planes_room(c));
    fill(c, u, room);
    multiply(c, u, filter + u->result * words_of(c) * c->taps, room, n, sums);
    add_bias_f32(sums, bias, u->rows, n, n);
    give(c, u, n, sums);
}

int64_t lines_blocks(const Correlation *c)
{
    return (c->images + c->span - 1) / c->span * c->groups * c->lines.blocks * c->parts;
}

void lines_run(void *arg, int64_t begin, int64_t end, int worker)
{
    const Correlation *c = arg;
    for (int64_t t = begin; t < end; t++) {
        const int64_t part = t % c->parts, place = t / c->parts, block = place % c->lines.blocks,
                      at = place / c->lines.blocks;
        Block u = { .group = at % c->groups, .image = at / c->groups * c->span, .first = block * c->lines.lines };
        u.images = least(c->images - u.image, c->span);
        u.lines = least(c->w.out[0] - u.first, c->lines.lines);
        u.result = part * c->part;
        u.rows = least(c->results - u.result, c->part);
        run_block(c, &u, (u32 *)(void *)(c->rooms + (size_t)worker * c->room_bytes));
    }
}
