/* Convolutions of codes of 8 bits by words of four channels: data is turned into such words once, and what a tap sees of them is
 * multiplied as it is gathered.  Where lines are long the words have their padding about them, parted by steps of two, and are
 * multiplied as they lie: positions count what lies between the lines, too, and sums of those are nobody's.  Weights have a
 * sign and no zero points, so that the zero point of the data brings the same to all sums of a result: it times the sum of the
 * weights. */
#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/quads.h"
#include "ops/quant/products.h"

enum {
    DEPTH = 4,                 /* channels of a word */
    POSITIONS = 512,           /* of a block */
    LEAST_POSITIONS = 256,     /* of an image whose words are multiplied as they lie */
    RESULTS = 6 * WHOLE_TILES, /* of a block: their sums stay in a second-level cache */
    APART = 16,                /* words between lines, so that they do not meet in one place of a cache */
    LONGEST = 1024,            /* line that is parted by steps */
    SIGN = 0x80,
    FOUR = 0x01010101,
};

typedef struct Run {
    const QuadLoops *l;
    const CodesConv *c;
    const u8 *x, *filter;
    u32 *words, *tiles; /* of data, unless it is its own window matrix; of weights */
    bool direct;        /* it is, and is turned into words as it is read */
    int64_t pitch;      /* of a line between its padding, where words are multiplied as they lie; else 0 */
    int64_t plane;      /* words of a plane, */
    int64_t phase;      /* and of each of its parts */
    size_t *at;         /* where each of a result's words has its line; of gathered ones those of one share */
    size_t apart;       /* words between gathered lines */
    i32 *totals;        /* of all weights of a result */
    int weights;        /* the operand */
    u32 flip, zero;     /* of all four bytes of a word of data */
    const SumTaker *to;
    int64_t taps, in, quads, row_tiles; /* words of a group's channels; tiles of a group */
    int64_t filled;                     /* words of a row of weights, and zeros behind them */
    ConvCut cut;
    char *rooms;
    size_t room;
} Run;

/* Words of four channels from one on of a group of an image (`group` counts both), at n positions from `first` on. */
static void quad_of(const Run *r, int64_t group, int64_t channel, int64_t first, int64_t n, u32 *to)
{
    const u8 *lines[DEPTH];
    for (int64_t k = 0; k < DEPTH; k++) { /* behind the last one whatever: weights are 0 there */
        const int64_t plane = group * r->c->channels + (channel + k < r->c->channels ? channel + k : channel);
        lines[k] = r->x + plane * r->in + first;
    }
    r->l->quad((size_t)n, lines, r->flip, to);
}

static void fill(u32 *to, int64_t n, u32 word)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = word;
}

/* Every stride-th word of a line from the phase on, between padding. */
static void part_line(const Run *r, const u32 *words, int64_t phase, u32 *to)
{
    const Window *w = &r->c->w;
    const int64_t step = w->stride[1], lead = w->begin[1] - phase;
    int64_t from = lead > 0 ? (lead + step - 1) / step : 0, end = (w->in[1] - 1 + lead + step) / step;
    end = end < r->pitch ? end : r->pitch;
    from = from < end ? from : end;
    fill(to, from, r->zero);
    for (int64_t i = from; i < end; i++)
        to[i] = words[i * step - lead];
    fill(to + end, r->pitch - end, r->zero);
}

/* Line i of what is `phase` lines behind a step: in as many parts as a step has columns. */
static void make_line(const Run *r, int64_t group, int64_t channel, int64_t phase, int64_t i, u32 *to)
{
    const Window *w = &r->c->w;
    const int64_t row = i * w->stride[0] + phase - w->begin[0], before = w->begin[1];
    const int64_t n = w->in[1] < r->pitch - before ? w->in[1] : r->pitch - before;
    const bool inside = row >= 0 && row < w->in[0];
    u32 words[LONGEST];
    if (inside && w->stride[1] == 1) {
        fill(to, before, r->zero);
        quad_of(r, group, channel, row * w->in[1], n, to + before);
        fill(to + before + n, r->pitch - before - n, r->zero);
        return;
    }
    if (inside)
        quad_of(r, group, channel, row * w->in[1], w->in[1], words);
    for (int64_t k = 0; k < w->stride[1]; k++, to += r->phase)
        if (inside)
            part_line(r, words, k, to);
        else
            fill(to, r->pitch, r->zero);
}

/* A plane of words with padding about it, parted by the steps of the window. */
static void make_padded(const Run *r, int64_t group, int64_t channel, u32 *to)
{
    const Window *w = &r->c->w;
    for (int64_t k = 0; k < w->stride[0]; k++, to += w->stride[1] * r->phase)
        for (int64_t i = 0; i < r->phase / r->pitch; i++)
            make_line(r, group, channel, k, i, to + i * r->pitch);
}

static void make_words(void *arg, int64_t begin, int64_t end, int worker)
{
    const Run *r = arg;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / r->quads, channel = i % r->quads * DEPTH;
        u32 *to = r->words + i * r->plane;
        if (r->pitch)
            make_padded(r, group, channel, to);
        else
            quad_of(r, group, channel, 0, r->in, to);
    }
}

/* Words of a row of weights as they are multiplied: taps, and of each the words of all channels. */
static void make_row(const Run *r, const u8 *from, u32 *words, u32 *to)
{
    enum { MOST_TAPS = 64 };
    static const u8 none[MOST_TAPS];
    const int64_t channels = r->c->channels;
    for (int64_t first = 0; first < r->taps; first += MOST_TAPS) {
        const int64_t n = r->taps - first < MOST_TAPS ? r->taps - first : MOST_TAPS;
        for (int64_t q = 0; q < r->quads; q++) {
            const u8 *lines[DEPTH];
            for (int64_t k = 0; k < DEPTH; k++)
                lines[k] = q * DEPTH + k < channels ? from + (q * DEPTH + k) * r->taps + first : none;
            r->l->quad((size_t)n, lines, 0, words + q * n);
        }
        for (int64_t u = 0; u < n; u++, to += r->quads)
            for (int64_t q = 0; q < r->quads; q++)
                to[q] = words[q * n + u];
    }
}

/* Tiles of weights, and their sums, which the zero point of data is multiplied with.  Channels of one tap are words as they lie, if they are
 * whole ones. */
static void pack_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const Run *r = arg;
    const int64_t tile = (int64_t)r->l->rows, depth = r->c->channels * r->taps, words = r->quads * r->taps;
    const bool lie = r->taps == 1 && r->c->channels % DEPTH == 0;
    u32 *made = (u32 *)(void *)(r->rooms + (size_t)worker * r->room), *parts = made + tile * words;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / r->row_tiles, m = i % r->row_tiles * tile;
        const int64_t rows = r->c->results - m < tile ? r->c->results - m : tile, first = group * r->c->results + m;
        const u8 *from = r->filter + first * depth;
        i32 totals[MOST_TILE_ROWS];
        for (int64_t k = 0; k < rows && !lie; k++)
            make_row(r, from + k * depth, parts, made + k * words);
        r->l->pack((size_t)rows, (size_t)words, lie ? (const void *)from : made, (size_t)words * sizeof *made,
                   r->tiles + i * r->filled * tile, totals);
        memcpy(r->totals + first, totals, (size_t)rows * sizeof *totals);
    }
}

static size_t whole_panels(const Run *r, int64_t n)
{
    return ((size_t)n + r->l->width - 1) / r->l->width * r->l->width;
}

/* What a block sees through words [first, first + n), which count taps and then channels. */
static void gather(const Run *r, const ConvBlock *b, int64_t first, int64_t n, u32 *to)
{
    const Window *w = &r->c->w;
    int64_t tap[MAX_SPATIAL];
    position_of(w->rank, w->kernel, first / r->quads, tap);
    for (int64_t k = first; k < first + n; k++, to += r->apart) {
        if (k % r->quads == 0 && k > first)
            position_next(w->rank, w->kernel, tap);
        for (int64_t m = 0; m < b->images; m++) {
            const int64_t group = (b->image + m) * r->c->groups + b->group, plane = group * r->quads + k % r->quads;
            if (r->direct) {
                quad_of(r, group, k * DEPTH, b->first, b->positions, to + m * b->positions);
                continue;
            }
            window_gather_u32(w, r->words + plane * r->plane, tap, b->first, b->positions, r->zero,
                              to + m * b->positions);
        }
    }
}

static void sum_block(const Run *r, const ConvBlock *b, i32 *sums, size_t ldc, u32 *lines)
{
    const int64_t words = r->filled, share = share_of(words, (int64_t)r->l->at_a_time, (int64_t)r->l->whole, 1);
    const u32 *tiles =
        r->tiles + (b->group * r->row_tiles + b->result / (int64_t)r->l->rows) * words * (int64_t)r->l->rows;
    PairProduct p = { .m = (size_t)b->rows,
                      .n = (size_t)(b->images * b->positions),
                      .row = 1,
                      .tile = (size_t)words * r->l->rows,
                      .panel = r->l->width,
                      .ldc = ldc };
    for (int64_t k = 0; k < words; k += (int64_t)p.words) {
        p.words = (size_t)(words - k < share ? words - k : share);
        p.fresh = k == 0;
        const u32 *from = tiles + k * (int64_t)r->l->rows;
        if (r->pitch) {
            const int64_t plane = (b->image * r->c->groups + b->group) * r->quads;
            r->l->multiply(&p, from, r->words + plane * r->plane + b->first, r->at + k, sums);
            continue;
        }
        const int64_t there = r->quads * r->taps - k;
        gather(r, b, k, there < (int64_t)p.words ? there : (int64_t)p.words, lines);
        r->l->multiply(&p, from, lines, r->at, sums);
    }
}

/* Hands on the sums of result i of a block without those of positions between lines. */
static void take_lines(const Run *r, const ConvBlock *b, int64_t i, const i32 *sums)
{
    const int64_t width = r->c->w.out[1], results = r->c->groups * r->c->results;
    const int64_t plane = b->image * results + b->group * r->c->results + b->result + i, end = b->first + b->positions;
    for (int64_t at = b->first, next; at < end; at = next) {
        const int64_t line = at / r->pitch, col = at % r->pitch;
        next = (line + 1) * r->pitch;
        const int64_t n = (end < next ? end : next) - at, seen = n < width - col ? n : width - col;
        if (seen > 0)
            r->to->take(r->to->user, (plane * r->c->w.out[0] + line) * width + col, seen, sums + at - b->first);
    }
}

static void run_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const Run *r = arg;
    i32 *sums = (i32 *)(void *)(r->rooms + (size_t)worker * r->room);
    for (int64_t item = begin; item < end; item++) {
        const ConvBlock b = conv_cut_block(&r->cut, r->c, item);
        const size_t ldc = whole_panels(r, b.images * b.positions);
        const int64_t row = b.group * r->c->results + b.result;
        sum_block(r, &b, sums, ldc,
                  (u32 *)(void *)(sums + (size_t)r->cut.rows * whole_panels(r, r->cut.span * r->cut.cols)));
        for (int64_t i = 0; i < b.rows; i++) {
            i32 *line = sums + i * (int64_t)ldc;
            const u32 more = 0u - (r->zero & 0xff) * (u32)r->totals[row + i];
            if (more)
                r->l->add(ldc, more, line);
            if (r->pitch)
                take_lines(r, &b, i, line);
            else
                conv_cut_take(&r->cut, r->c, &b, i, line, r->to);
        }
    }
}

/* Whether words are multiplied as they lie: where that makes few sums more. */
static bool set_pitch(Run *r)
{
    enum { SHARE = 10 };
    const Window *w = &r->c->w;
    if (w->rank != 2 || r->direct)
        return false;
    for (int i = 0; i < 2; i++)
        if (w->stride[i] > 2 || w->dilation[i] < 1 || w->begin[i] < 0)
            return false;
    const int64_t right = (w->kernel[1] - 1) * w->dilation[1],
                  down = (w->kernel[0] - 1) * w->dilation[0] / w->stride[0];
    const int64_t beyond = right / w->stride[1];
    if (beyond > w->out[1] / SHARE || down > w->out[0] || w->begin[1] > right ||
        w->out[0] * w->out[1] < LEAST_POSITIONS || (w->stride[1] > 1 && w->in[1] > LONGEST))
        return false;
    r->pitch = w->out[1] + beyond;
    r->phase = r->pitch * (w->out[0] + down);
    r->plane = r->phase * w->stride[0] * w->stride[1];
    return true;
}

/* Where the lines of words are that are multiplied at a time; those behind the last one, whose weights are zeros, are any. */
static void place_lines(Eval *e, Run *r)
{
    const Window *w = &r->c->w;
    const int64_t n = r->pitch ? r->quads * r->taps : (int64_t)r->l->at_a_time;
    r->at = eval_scratch(e, (size_t)(n > r->filled ? n : r->filled), sizeof *r->at);
    for (int64_t k = 0; k < n && !r->pitch; k++)
        r->at[k] = (size_t)k * r->apart;
    for (int64_t k = 0; k < n && r->pitch; k++) {
        const int64_t tap = k / r->quads, row = tap / w->kernel[1] * w->dilation[0],
                      col = tap % w->kernel[1] * w->dilation[1];
        const int64_t phase = row % w->stride[0] * w->stride[1] + col % w->stride[1];
        r->at[k] =
            (size_t)(k % r->quads * r->plane + phase * r->phase + row / w->stride[0] * r->pitch + col / w->stride[1]);
    }
}

static void run(Eval *e, Run *r)
{
    const int64_t threads = parallel_threads(e->pool), planes = r->c->images * r->c->groups * r->quads;
    const int64_t tiles = r->c->groups * r->row_tiles, out = window_product(r->c->w.rank, r->c->w.out);
    r->direct = window_is_data(&r->c->w);
    r->plane = r->in;
    const bool lies = set_pitch(r);
    r->words = r->direct ? NULL : eval_room(e, (size_t)(planes * r->plane) + r->l->width, sizeof(u32));
    if (!r->direct)
        memset(r->words + planes * r->plane, 0, r->l->width * sizeof(u32));
    r->filled = (r->quads * r->taps + (int64_t)r->l->whole - 1) / (int64_t)r->l->whole * (int64_t)r->l->whole;
    const size_t packed = (size_t)(tiles * r->filled) * r->l->rows, results = (size_t)(r->c->groups * r->c->results);
    bool made;
    u32 *kept = eval_kept(e, r->weights, packed + results, sizeof(u32), &made);
    r->tiles = kept ? kept : eval_room(e, packed + results, sizeof(u32));
    r->totals = (i32 *)(void *)(r->tiles + packed);
    if (kept && !made)
        eval_keep(e);
    r->cut = conv_cut(r->c, lies ? r->pitch * (r->c->w.out[0] - 1) + r->c->w.out[1] : out, POSITIONS, RESULTS,
                      (int64_t)r->l->width, (int64_t)r->l->rows, threads);
    const size_t panels = whole_panels(r, r->cut.span * r->cut.cols);
    r->apart = panels + APART;
    place_lines(e, r);
    const size_t of_sums = (size_t)r->cut.rows * panels + (lies ? 0 : r->l->at_a_time * r->apart);
    const size_t of_tiles = (r->l->rows + 1) * (size_t)(r->quads * r->taps);
    r->room = ((of_sums > of_tiles ? of_sums : of_tiles) * sizeof(u32) + 63) / 64 * 64;
    r->rooms = eval_room(e, (size_t)threads, r->room);
    if (!r->direct)
        eval_parallel(e, planes, make_words, r);
    if (!made)
        eval_parallel(e, tiles, pack_tiles, r);
    eval_parallel(e, conv_cut_blocks(&r->cut, r->c), run_blocks, r);
}

bool codes_convolve_words(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    Run r = {
        .l = kernels_quads(e->kernels), .c = c, .x = x->v, .filter = filter->v, .weights = filter->operand, .to = to
    };
    bool fits = r.l->rows && !codes_are_wide(x, filter) && filter->type == CODE_I8 && c->channels > 1;
    for (int64_t i = 0; i < filter->n_zeros; i++)
        fits = fits && filter->zeros[i] == 0;
    r.taps = window_product(c->w.rank, c->w.kernel);
    if (!fits || r.taps == 0)
        return false;
    r.in = window_product(c->w.rank, c->w.in);
    r.quads = (c->channels + DEPTH - 1) / DEPTH;
    r.row_tiles = (c->results + (int64_t)r.l->rows - 1) / (int64_t)r.l->rows;
    const u32 sign = x->type == CODE_I8 ? SIGN : 0;
    r.flip = sign * FOUR;
    r.zero = (((u32)x->zeros[0] & 0xff) ^ sign) * FOUR;
    run(e, &r);
    return true;
}
