/* Convolutions of codes of 8 bits by words of four channels: data is turned into such words once, and what a tap sees of them is
 * multiplied as it is gathered.  Where steps are of two at most the words have their padding about them, parted by the steps, so
 * that what a tap sees of a line is a run; long lines are multiplied as they lie: positions count what lies between the lines,
 * too, and sums of those are nobody's.  Weights have a sign and no zero points, so that the zero point of the data brings the
 * same to all sums of a result: it times the sum of the weights. */
#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/quads.h"
#include "ops/quant/products.h"

enum {
    DEPTH = 4,                 /* channels of a word */
    POSITIONS = 512,           /* of a block */
    LEAST_POSITIONS = 256,     /* of an image whose words are multiplied as they lie */
    RESULTS = 6 * WHOLE_TILES, /* of a block: their sums stay in a second-level cache */
    SOME = WHOLE_TILES,        /* results whose weights are multiplied together with all positions of a block */
    GATHERED = 1 << 19,        /* words that are gathered for a block */
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
    int64_t pitch;      /* of a line between its padding, where words have it; else 0 */
    bool lies;          /* then they are multiplied as they lie, */
    bool runs;          /* or gathered in runs of one panel after the other */
    int64_t plane;      /* words of a plane, */
    int64_t phase;      /* and of each of its parts */
    size_t *seen;       /* where each of a result's words has its line in a plane that has padding, */
    size_t *at;         /* and where it is multiplied */
    size_t apart;       /* words between gathered lines, */
    size_t panel;       /* and between gathered panels */
    i32 *totals;        /* of all weights of a result */
    i32 *start; /* of the sums of a tile's results that become codes at once, and their factors; null: they do not */
    f32 *factor;
    int weights;    /* the operand */
    u32 flip, zero; /* of all four bytes of a word of data */
    const SumTaker *to;
    int64_t taps, in, quads, row_tiles; /* words of a group's channels; tiles of a group */
    int64_t filled;                     /* words of a row of weights, and zeros behind them */
    ConvCut cut;
    char *rooms;
    size_t room, cuts, lines; /* of a thread: bytes, and where runs and gathered lines begin */
} Run;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Of a packed tile. */
static int64_t tile_words(const Run *r)
{
    return (int64_t)r->l->tile((size_t)r->filled);
}

/* Where four channels begin, from one on of a group of an image (`group` counts both). */
static void four_channels(const Run *r, int64_t group, int64_t channel, int64_t first, const u8 **lines)
{
    for (int64_t k = 0; k < DEPTH; k++) { /* behind the last one whatever: weights are 0 there */
        const int64_t plane = group * r->c->channels + (channel + k < r->c->channels ? channel + k : channel);
        lines[k] = r->x + plane * r->in + first;
    }
}

/* Their words at n positions. */
static void quad_of(const Run *r, int64_t group, int64_t channel, int64_t first, int64_t n, u32 *to)
{
    const u8 *lines[DEPTH];
    four_channels(r, group, channel, first, lines);
    r->l->quad((size_t)n, lines, r->flip, to);
}

static void fill(u32 *to, int64_t n, u32 word)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = word;
}

/* Every second word of a line from the phase on, between padding. */
static void part_line(const Run *r, const u32 *words, int64_t phase, u32 *to)
{
    const Window *w = &r->c->w;
    int64_t from, end;
    conv_lines_there(phase - w->begin[1], w->stride[1], r->pitch, w->in[1], &from, &end);
    fill(to, from, r->zero);
    r->l->evens((size_t)(end - from), words + from * w->stride[1] + phase - w->begin[1], to + from);
    fill(to + end, r->pitch - end, r->zero);
}

/* Lines of what is so many lines behind a step, where columns are parted, too. */
static void part_lines(const Run *r, int64_t group, int64_t channel, int64_t first, int64_t begin, int64_t end, u32 *to)
{
    const Window *w = &r->c->w;
    u32 words[LONGEST + 2 * WORD_RUN];
    for (int64_t i = begin; i < end; i++) {
        quad_of(r, group, channel, (first + i * w->stride[0]) * w->in[1], w->in[1], words);
        for (int64_t k = 0; k < w->stride[1]; k++)
            if (conv_part_is_seen(w, 1, k))
                part_line(r, words, k, to + k * r->phase + i * r->pitch);
    }
}

/* A plane of words with padding about it, parted by the steps of the window, as far as taps see it. */
static void make_padded(const Run *r, int64_t group, int64_t channel, u32 *to)
{
    const Window *w = &r->c->w;
    const int64_t lines = r->phase / r->pitch, most = r->pitch - w->begin[1];
    const u8 *four[DEPTH];
    for (int64_t k = 0; k < w->stride[0]; k++, to += w->stride[1] * r->phase) {
        const int64_t first = k - w->begin[0];
        int64_t begin, end;
        if (!conv_part_is_seen(w, 0, k))
            continue;
        conv_lines_there(first, w->stride[0], lines, w->in[0], &begin, &end);
        for (int64_t i = 0; i < w->stride[1]; i++) {
            fill(to + i * r->phase, begin * r->pitch, r->zero);
            fill(to + i * r->phase + end * r->pitch, (lines - end) * r->pitch, r->zero);
        }
        if (w->stride[1] > 1) {
            part_lines(r, group, channel, first, begin, end, to);
            continue;
        }
        const QuadLines q = { .lines = (size_t)(end - begin),
                              .n = (size_t)least(w->in[1], most),
                              .apart = (size_t)(w->stride[0] * w->in[1]),
                              .before = (size_t)w->begin[1],
                              .pitch = (size_t)r->pitch,
                              .flip = r->flip,
                              .zero = r->zero };
        if (begin == end)
            continue;
        four_channels(r, group, channel, (first + begin * w->stride[0]) * w->in[1], four);
        r->l->quads(&q, four, to + begin * r->pitch);
    }
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
                   r->tiles + i * tile_words(r), totals);
        memcpy(r->totals + first, totals, (size_t)rows * sizeof *totals);
    }
}

static size_t whole_panels(const Run *r, int64_t n)
{
    return ((size_t)n + r->l->width - 1) / r->l->width * r->l->width;
}

/* What a block sees through all words, which count taps and then channels, a line each. */
static void gather_lines(const Run *r, const ConvBlock *b, u32 *to)
{
    const Window *w = &r->c->w;
    int64_t tap[MAX_SPATIAL] = { 0 };
    for (int64_t k = 0; k < r->quads * r->taps; k++, to += r->apart) {
        if (k % r->quads == 0 && k > 0)
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

/* The same in panels, from words that have their padding about them: every line in runs that end with it, or with a panel.  What
 * a run writes beyond its own words the next one writes again. */
static void gather_runs(const Run *r, const ConvBlock *b, WordRun *runs, u32 *to)
{
    const int64_t width = r->c->w.out[1], wide = (int64_t)r->l->width, image = r->c->groups * r->quads * r->plane;
    size_t n = 0;
    int64_t done = 0;
    for (int64_t m = 0; m < b->images; m++)
        for (int64_t i = b->first, some; i < b->first + b->positions; i += some, done += some) {
            const int64_t line = width - i % width, left = b->first + b->positions - i, lanes = wide - done % wide;
            some = least(least(line, left), least(lanes, WORD_RUN));
            runs[n++] = (WordRun){ (u32)(m * image + i / width * r->pitch + i % width),
                                   (u32)(done / wide * (int64_t)r->panel + done % wide) };
        }
    const u32 *words = r->words + (b->image * r->c->groups + b->group) * r->quads * r->plane;
    for (int64_t k = 0; k < r->quads * r->taps; k++, to += r->apart)
        r->l->runs(n, runs, words + r->seen[k], to);
}

/* A product with all words that a block sees: those that lie, or room for gathered ones. */
static PairProduct product_of(const Run *r, const ConvBlock *b, char *room, const u32 **words)
{
    const PairProduct p = { .m = (size_t)b->rows,
                            .n = (size_t)(b->images * b->positions),
                            .words = (size_t)r->filled,
                            .row = 1,
                            .tile = (size_t)tile_words(r),
                            .panel = r->panel };
    if (r->lies) {
        *words = r->words + (b->image * r->c->groups + b->group) * r->quads * r->plane + b->first;
        return p;
    }
    u32 *lines = (u32 *)(void *)(room + r->lines);
    *words = lines;
    if (r->runs)
        gather_runs(r, b, (WordRun *)(void *)(room + r->cuts), lines);
    else
        gather_lines(r, b, lines);
    return p;
}

static const u32 *tiles_of(const Run *r, const ConvBlock *b)
{
    const int64_t tile = b->group * r->row_tiles + b->result / (int64_t)r->l->rows;
    return r->tiles + tile * tile_words(r);
}

static void sum_block(const Run *r, const ConvBlock *b, i32 *sums, size_t ldc, char *room)
{
    const int64_t words = r->filled, whole = (int64_t)r->l->whole;
    const bool all = r->l->at_a_time >= (size_t)words;
    const int64_t share = all ? words : share_of(words, (int64_t)r->l->at_a_time, whole, 1);
    const u32 *seen, *tiles = tiles_of(r, b);
    PairProduct p = product_of(r, b, room, &seen);
    p.ldc = ldc;
    for (int64_t k = 0; k < words; k += (int64_t)p.words) {
        p.words = (size_t)least(words - k, share);
        p.fresh = k == 0;
        r->l->multiply(&p, tiles + k * (int64_t)r->l->rows, seen, r->at + k, sums);
    }
}

/* ---- codes at once ---- */

/* Where codes of a block go that are no neighbours of the next ones: at ends of lines that lie, and of images. */
static size_t make_pieces(const Run *r, const ConvBlock *b, CodePiece *pieces)
{
    const Window *w = &r->c->w;
    const int64_t width = r->lies ? w->out[1] : b->positions, pitch = r->lies ? r->pitch : width;
    const int64_t apart = r->lies ? width : r->c->groups * r->c->results * window_product(w->rank, w->out);
    const int64_t first = r->lies ? b->first : 0, end = first + b->images * b->positions, wide = (int64_t)r->l->width;
    size_t n = 0;
    for (int64_t i = first, some; i < end; i += some) {
        const int64_t col = i % pitch, lane = (i - first) % wide, room = least(end - i, wide - lane);
        some = least(col < width ? width - col : pitch - col, room);
        if (col < width)
            pieces[n++] = (CodePiece){ .to = i / pitch * apart + (r->lies ? 0 : b->first) + col - lane,
                                       .panel = (u32)((i - first) / wide),
                                       .lanes = (u32)((((u64)1 << some) - 1) << lane) };
    }
    return n;
}

static void run_codes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Run *r = arg;
    const SumCodes *codes = r->to->codes;
    char *room = r->rooms + (size_t)worker * r->room;
    CodePiece *pieces = (CodePiece *)(void *)room;
    const int64_t out = window_product(r->c->w.rank, r->c->w.out), results = r->c->groups * r->c->results;
    for (int64_t item = begin; item < end; item++) {
        ConvBlock b = conv_cut_block(&r->cut, r->c, item);
        const int64_t last = b.result + b.rows;
        const size_t n = make_pieces(r, &b, pieces);
        const u32 *seen;
        PairProduct p = product_of(r, &b, room, &seen);
        p.ldc = (size_t)out;
        for (; b.result < last; b.result += b.rows) {
            const int64_t row = b.group * r->c->results + b.result,
                          place = b.group * r->row_tiles * (int64_t)r->l->rows + b.result;
            p.m = (size_t)(b.rows = least(last - b.result, SOME));
            const RowCodes of = { r->start + place, r->factor + place, codes->range, pieces, n };
            r->l->codes(&p, tiles_of(r, &b), seen, r->at, &of, codes->to + (b.image * results + row) * out);
        }
    }
}

/* Where sums of results begin, and their factors, tile by tile. */
static void begin_codes(Run *r)
{
    const SumCodes *codes = r->to->codes;
    const int64_t tile = r->row_tiles * (int64_t)r->l->rows, n = r->c->groups * tile;
    for (int64_t i = 0; i < n; i++) {
        if (i % tile >= r->c->results)
            continue;
        const int64_t row = i / tile * r->c->results + i % tile;
        const u32 zero = (r->zero & 0xff) * (u32)r->totals[row];
        r->start[i] = (i32)((codes->bias ? (u32)codes->bias[row] : 0) - zero);
        r->factor[i] = codes->factor[row];
    }
}

/* ---- sums ---- */

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
        sum_block(r, &b, sums, ldc, (char *)sums);
        for (int64_t i = 0; i < b.rows; i++) {
            i32 *line = sums + i * (int64_t)ldc;
            const u32 more = 0u - (r->zero & 0xff) * (u32)r->totals[row + i];
            if (more)
                r->l->add(ldc, more, line);
            if (r->lies)
                take_lines(r, &b, i, line);
            else
                conv_cut_take(&r->cut, r->c, &b, i, line, r->to);
        }
    }
}

/* Has words with their padding about them where steps are small, and multiplied as they lie where that makes few sums more. */
static void set_pitch(Run *r)
{
    enum { SHARE = 10 };
    const Window *w = &r->c->w;
    r->plane = r->in;
    if (w->rank != 2 || r->direct)
        return;
    for (int i = 0; i < 2; i++)
        if (w->stride[i] > 2 || w->dilation[i] < 1 || w->begin[i] < 0)
            return;
    const int64_t right = (w->kernel[1] - 1) * w->dilation[1],
                  down = (w->kernel[0] - 1) * w->dilation[0] / w->stride[0];
    const int64_t beyond = right / w->stride[1];
    if (beyond > w->out[1] || down > w->out[0] || w->begin[1] > right || (w->stride[1] > 1 && w->in[1] > LONGEST))
        return;
    const int64_t pitch = w->out[1] + beyond, phase = pitch * (w->out[0] + down),
                  plane = phase * w->stride[0] * w->stride[1];
    if (r->c->images * r->c->groups * r->quads * plane > UINT32_MAX)
        return;
    r->pitch = pitch;
    r->phase = phase;
    r->plane = plane;
    r->lies = beyond <= w->out[1] / SHARE && w->out[0] * w->out[1] >= LEAST_POSITIONS;
    r->runs = !r->lies;
}

/* Where the lines of words are in planes with padding, and where they are multiplied; those behind the last one, whose weights are
 * zeros, are any. */
static void place_lines(Eval *e, Run *r)
{
    const Window *w = &r->c->w;
    const int64_t n = r->quads * r->taps;
    r->seen = eval_scratch(e, (size_t)r->filled, sizeof *r->seen);
    for (int64_t k = 0; k < n && r->pitch; k++) {
        const int64_t tap = k / r->quads, row = tap / w->kernel[1] * w->dilation[0],
                      col = tap % w->kernel[1] * w->dilation[1];
        const int64_t phase = row % w->stride[0] * w->stride[1] + col % w->stride[1];
        r->seen[k] =
            (size_t)(k % r->quads * r->plane + phase * r->phase + row / w->stride[0] * r->pitch + col / w->stride[1]);
    }
    r->at = r->seen;
    if (r->lies)
        return;
    r->at = eval_scratch(e, (size_t)r->filled, sizeof *r->at);
    for (int64_t k = 0; k < r->filled; k++)
        r->at[k] = (size_t)k * r->apart;
}

static size_t lines_of_cache(size_t bytes)
{
    enum { LINE = 64 };
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Blocks, and what a thread has room for: sums of a block or pieces of its codes, where its runs are, and what it gathers; before, a tile of weights. */
static void make_rooms(Eval *e, Run *r, int64_t threads)
{
    const int64_t out = window_product(r->c->w.rank, r->c->w.out), wide = (int64_t)r->l->width;
    const int64_t fit = GATHERED / r->filled / wide * wide;
    const int64_t positions = r->lies ? POSITIONS : least(fit > wide ? fit : wide, POSITIONS);
    r->cut = conv_cut(r->c, r->lies ? r->pitch * (r->c->w.out[0] - 1) + r->c->w.out[1] : out, positions,
                      r->start ? r->c->results : RESULTS, wide, (int64_t)r->l->rows, threads);
    const size_t panels = whole_panels(r, r->cut.span * r->cut.cols), most = (size_t)(r->cut.span * r->cut.cols);
    r->apart = r->runs ? r->l->width : panels + APART;
    r->panel = r->runs ? (size_t)r->filled * r->apart + WORD_RUN : r->l->width;
    r->cuts = lines_of_cache(r->start ? most * sizeof(CodePiece) : (size_t)r->cut.rows * panels * sizeof(i32));
    r->lines = lines_of_cache(r->cuts + (r->runs ? most * sizeof(WordRun) : 0));
    const size_t gathered = r->runs ? panels / r->l->width * r->panel : (size_t)r->filled * r->apart;
    const size_t of_block = r->lines + (r->lies ? 0 : gathered * sizeof(u32));
    const size_t of_tile = (r->l->rows + 1) * (size_t)(r->quads * r->taps) * sizeof(u32);
    r->room = lines_of_cache(of_block > of_tile ? of_block : of_tile);
    r->rooms = eval_room(e, (size_t)threads, r->room);
}

static void run(Eval *e, Run *r)
{
    const int64_t threads = parallel_threads(e->pool), planes = r->c->images * r->c->groups * r->quads;
    const int64_t tiles = r->c->groups * r->row_tiles;
    r->direct = window_is_data(&r->c->w);
    set_pitch(r);
    r->words = r->direct ? NULL : eval_room(e, (size_t)(planes * r->plane) + r->l->width, sizeof(u32));
    if (!r->direct)
        memset(r->words + planes * r->plane, 0, r->l->width * sizeof(u32));
    r->filled = (r->quads * r->taps + (int64_t)r->l->whole - 1) / (int64_t)r->l->whole * (int64_t)r->l->whole;
    const size_t packed = (size_t)(tiles * tile_words(r)), results = (size_t)(r->c->groups * r->c->results);
    bool made;
    u32 *kept = eval_kept(e, r->weights, packed + results, sizeof(u32), &made);
    r->tiles = kept ? kept : eval_room(e, packed + results, sizeof(u32));
    r->totals = (i32 *)(void *)(r->tiles + packed);
    if (kept && !made)
        eval_keep(e);
    if (r->to->codes && r->l->codes) {
        const size_t all = (size_t)tiles * r->l->rows;
        r->start = eval_scratch(e, all, sizeof *r->start);
        r->factor = eval_scratch(e, all, sizeof *r->factor);
    }
    make_rooms(e, r, threads);
    place_lines(e, r);
    if (!r->direct)
        eval_parallel(e, planes, make_words, r);
    if (!made)
        eval_parallel(e, tiles, pack_tiles, r);
    if (r->start)
        begin_codes(r);
    eval_parallel(e, conv_cut_blocks(&r->cut, r->c), r->start ? run_codes : run_blocks, r);
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
