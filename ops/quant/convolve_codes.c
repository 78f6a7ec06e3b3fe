/* Convolutions of codes: blocks of positions, whose windows are gathered and packed in parts. */
#include "ops/quant/products.h"

#include <string.h>

#include "base/parallel.h"

/* ---- blocks ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Of results of one group. */
static int64_t blocks_of_rows(const ConvCut *cut, const CodesConv *c)
{
    return (c->images + cut->span - 1) / cut->span * c->groups * cut->tiles;
}

ConvCut conv_cut(const CodesConv *c, int64_t out, int64_t positions, int64_t results, int64_t width, int64_t whole,
                 int64_t threads)
{
    const int64_t most = (c->images * c->groups + threads - 1) / threads; /* images, while every thread has some */
    ConvCut cut = { .out = out, .cols = share_of(out, positions, out > positions ? width : 1, 1) };
    cut.tiles = (out + cut.cols - 1) / cut.cols;
    cut.span = least(least(positions / out, most), c->images);
    cut.span = cut.span < 1 ? 1 : cut.span;
    cut.rows = share_of(c->results, results, whole, blocks_of_rows(&cut, c) < threads ? threads : 1);
    cut.parts = (c->results + cut.rows - 1) / cut.rows;
    return cut;
}

int64_t conv_cut_blocks(const ConvCut *cut, const CodesConv *c)
{
    return blocks_of_rows(cut, c) * cut->parts;
}

ConvBlock conv_cut_block(const ConvCut *cut, const CodesConv *c, int64_t item)
{
    ConvBlock b = { .result = item % cut->parts * cut->rows };
    item /= cut->parts;
    b.first = item % cut->tiles * cut->cols;
    item /= cut->tiles;
    b.group = item % c->groups;
    b.image = item / c->groups * cut->span;
    b.images = least(c->images - b.image, cut->span);
    b.positions = least(cut->out - b.first, cut->cols);
    b.rows = least(c->results - b.result, cut->rows);
    return b;
}

void conv_cut_take(const ConvCut *cut, const CodesConv *c, const ConvBlock *b, int64_t i, const i32 *line,
                   const SumTaker *to)
{
    const int64_t row = b->group * c->results + b->result + i;
    for (int64_t m = 0; m < b->images; m++)
        to->take(to->user, ((b->image + m) * c->groups * c->results + row) * cut->out + b->first, b->positions,
                 line + m * b->positions);
}

bool conv_part_is_seen(const Window *w, int axis, int64_t part)
{
    for (int64_t k = 0; k < w->kernel[axis]; k++)
        if (k * w->dilation[axis] % w->stride[axis] == part)
            return true;
    return false;
}

static int64_t within(int64_t i, int64_t most)
{
    return i < 0 ? 0 : i > most ? most : i;
}

void conv_lines_there(int64_t first, int64_t step, int64_t all, int64_t height, int64_t *begin, int64_t *end)
{
    *begin = within((step - 1 - first) / step, all);
    *end = within((height - first + step - 1) / step, all);
    *end = *end > *begin ? *end : *begin;
}

/* ---- their sums ---- */

typedef struct ConvRun {
    const CodeProducts *l;
    const CodesConv *c;
    const Codes *x;
    size_t size; /* bytes of a code of x */
    PackedCodes filter;
    const u32 *zeros; /* of the columns, which share it */
    const SumTaker *to;
    int64_t taps, in, depth;
    ConvCut cut;
    bool direct;                                /* the data is its own window matrix */
    size_t gathered, panels, column_sums, room; /* where a worker has what, in bytes; the sums come first */
    char *rooms;
} ConvRun;

/* Channel c of an image of a block. */
static const char *plane_of(const ConvRun *r, const ConvBlock *b, int64_t image, int64_t channel)
{
    const int64_t plane = ((b->image + image) * r->c->groups + b->group) * r->c->channels + channel;
    return (const char *)r->x->v + plane * r->in * (int64_t)r->size;
}

/* What a block sees through (channel, tap) number k and those behind it: a row for each. */
static void gather(const ConvRun *r, const ConvBlock *b, int64_t k, int64_t n, char *to)
{
    const Window *w = &r->c->w;
    const u32 fill = (u32)r->x->zeros[0];
    int64_t tap[MAX_SPATIAL];
    position_of(w->rank, w->kernel, k % r->taps, tap);
    for (int64_t end = k + n; k < end; k++) {
        for (int64_t m = 0; m < b->images; m++, to += b->positions * (int64_t)r->size) {
            const void *from = plane_of(r, b, m, k / r->taps);
            if (r->size == 1)
                window_gather_u8(w, from, tap, b->first, b->positions, (u8)fill, (u8 *)to);
            else
                window_gather_u16(w, from, tap, b->first, b->positions, (u16)fill, (u16 *)(void *)to);
        }
        position_next(w->rank, w->kernel, tap);
    }
}

/* The sums of a block, of n columns in so many panels. */
static void sum_block(const ConvRun *r, const ConvBlock *b, size_t n, size_t panels, char *room)
{
    const CodeProducts *l = r->l;
    const size_t ldc = panels * l->width, block = l->at_a_time * l->depth;
    i32 *sums = (i32 *)(void *)room, *column_sums = (i32 *)(void *)(room + r->column_sums);
    u32 *words = (u32 *)(void *)(room + r->panels);
    const u32 *filter =
        r->filter.words + ((size_t)b->group * r->filter.groups + (size_t)b->result / l->rows) * r->filter.apart;
    memset(column_sums, 0, ldc * sizeof *column_sums);
    size_t k = 0;
    do {
        const size_t part = (size_t)r->depth - k < block ? (size_t)r->depth - k : block, w = code_words(l, part);
        const CodeLanes lanes = {
            .type = r->x->type, .lanes = n, .k = part, .lane = 1, .step = r->direct ? (size_t)r->in : n
        };
        const char *seen = room + r->gathered;
        if (r->direct)
            seen = plane_of(r, b, 0, (int64_t)k) + b->first * (int64_t)r->size;
        else
            gather(r, b, (int64_t)k, (int64_t)part, room + r->gathered);
        l->pack_columns(&lanes, seen, words, w * l->width, column_sums);
        l->multiply((size_t)b->rows, panels, w, filter + k / l->depth * l->rows, r->filter.apart, words, w * l->width,
                    sums, ldc, k == 0);
        k += part;
    } while (k < (size_t)r->depth);
    const Centre c = { .rows = &r->filter,
                       .matrix = (size_t)b->group,
                       .row = (size_t)b->result,
                       .k = (size_t)r->depth,
                       .zeros = r->zeros,
                       .sums = column_sums,
                       .centred = r->zeros[0] == 0 };
    sums_centre(l, &c, (size_t)b->rows, ldc, sums, ldc);
}

static void run_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const ConvRun *r = arg;
    char *room = r->rooms + (size_t)worker * r->room;
    for (int64_t item = begin; item < end; item++) {
        const ConvBlock b = conv_cut_block(&r->cut, r->c, item);
        const size_t n = (size_t)(b.images * b.positions), panels = (n + r->l->width - 1) / r->l->width;
        sum_block(r, &b, n, panels, room);
        const i32 *line = (const i32 *)(const void *)room;
        for (int64_t i = 0; i < b.rows; i++, line += panels * r->l->width)
            conv_cut_take(&r->cut, r->c, &b, i, line, r->to);
    }
}

/* Room for every worker, and the zeros of columns. */
static void make_room(Eval *e, ConvRun *r, int64_t threads)
{
    const size_t width = r->l->width, cols = ((size_t)(r->cut.span * r->cut.cols) + width - 1) / width * width;
    const size_t block = r->l->at_a_time * r->l->depth, depth = (size_t)r->depth < block ? (size_t)r->depth : block;
    u32 *zeros = eval_room(e, cols, sizeof *zeros);
    for (size_t i = 0; i < cols; i++)
        zeros[i] = (u32)(r->x->zeros[0] + r->l->column_shift[r->x->type]);
    r->zeros = zeros;
    r->panels = (size_t)r->cut.rows * cols * sizeof(i32);
    r->column_sums = r->panels + code_words(r->l, depth) * cols * sizeof(u32);
    r->gathered = r->column_sums + cols * sizeof(i32);
    r->room = (r->gathered + (r->direct ? 0 : depth * cols * r->size) + 63) / 64 * 64;
    r->rooms = eval_room(e, (size_t)threads, r->room);
}

void codes_convolve(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    const int64_t threads = parallel_threads(e->pool);
    const int64_t out = window_product(c->w.rank, c->w.out);
    ConvRun r = { .l = kernels_code_products(e->kernels, filter->type, x->type), .c = c, .x = x, .to = to };
    r.size = x->type < CODE_U16 ? 1 : 2;
    r.taps = window_product(c->w.rank, c->w.kernel);
    r.in = window_product(c->w.rank, c->w.in);
    r.depth = r.taps * c->channels;
    if (c->images * c->groups * c->results * out == 0 || codes_along_planes(e, c, x, filter, to) ||
        codes_convolve_words(e, c, x, filter, to))
        return;
    Codes of_groups = *filter;
    of_groups.one_matrix = filter->n_zeros == 1;
    r.filter = codes_pack(
        e, r.l,
        &(const LooseCodes){ .codes = &of_groups,
                             .lanes = { filter->type, (size_t)c->results, (size_t)r.depth, (size_t)r.depth, 1 },
                             .matrices = (size_t)c->groups,
                             .matrix = (size_t)(c->results * r.depth),
                             .rows = true });
    r.cut = conv_cut(c, out, TILE_COLS, TILE_ROWS, (int64_t)r.l->width, (int64_t)r.l->rows, threads);
    r.direct = window_is_data(&c->w) && r.cut.span == 1;
    make_room(e, &r, threads);
    eval_parallel(e, conv_cut_blocks(&r.cut, c), run_blocks, &r);
}
