/* Convolutions of codes: blocks of positions, whose windows are gathered and packed in parts. */
#include "ops/quant/products.h"

#include <string.h>

#include "base/parallel.h"

typedef struct ConvRun {
    const CodeProducts *l;
    const CodesConv *c;
    const Codes *x;
    size_t size; /* bytes of a code of x */
    PackedCodes filter;
    const u32 *zeros; /* of the columns, which share it */
    const SumTaker *to;
    int64_t taps, in, out, depth;
    int64_t rows, parts;                        /* results of a block, blocks of a group */
    int64_t cols, tiles;                        /* positions of a block, blocks of an image */
    int64_t span;                               /* images of a block: several where they are small */
    bool direct;                                /* the data is its own window matrix */
    size_t gathered, panels, column_sums, room; /* where a worker has what, in bytes; the sums come first */
    char *rooms;
} ConvRun;

/* Some results of a group at some positions of some images. */
typedef struct ConvBlock {
    int64_t image, images, group, first, positions, result, rows;
} ConvBlock;

static ConvBlock block_at(const ConvRun *r, int64_t item)
{
    ConvBlock b = { .result = item % r->parts * r->rows };
    item /= r->parts;
    b.first = item % r->tiles * r->cols;
    item /= r->tiles;
    b.group = item % r->c->groups;
    b.image = item / r->c->groups * r->span;
    b.images = r->c->images - b.image < r->span ? r->c->images - b.image : r->span;
    b.positions = r->out - b.first < r->cols ? r->out - b.first : r->cols;
    b.rows = r->c->results - b.result < r->rows ? r->c->results - b.result : r->rows;
    return b;
}

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
    const size_t ldc = panels * l->width, block = WORD_BLOCK * l->depth;
    i32 *sums = (i32 *)(void *)room, *column_sums = (i32 *)(void *)(room + r->column_sums);
    u32 *words = (u32 *)(void *)(room + r->panels);
    const u32 *filter =
        r->filter.words + ((size_t)b->group * r->filter.groups + (size_t)b->result / l->rows) * r->filter.apart;
    memset(column_sums, 0, ldc * sizeof *column_sums);
    size_t k = 0;
    do {
        const size_t part = (size_t)r->depth - k < block ? (size_t)r->depth - k : block,
                     w = (part + l->depth - 1) / l->depth;
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

static void conv_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const ConvRun *r = arg;
    char *room = r->rooms + (size_t)worker * r->room;
    for (int64_t item = begin; item < end; item++) {
        const ConvBlock b = block_at(r, item);
        const size_t n = (size_t)(b.images * b.positions), panels = (n + r->l->width - 1) / r->l->width;
        const int64_t row = b.group * r->c->results + b.result;
        sum_block(r, &b, n, panels, room);
        const i32 *line = (const i32 *)(const void *)room;
        for (int64_t i = 0; i < b.rows; i++, line += panels * r->l->width)
            for (int64_t m = 0; m < b.images; m++)
                r->to->take(r->to->user, ((b.image + m) * r->c->groups * r->c->results + row + i) * r->out + b.first,
                            b.positions, line + m * b.positions);
    }
}

/* Images that a block takes together: as many as fit while every thread has some. */
static int64_t span_of(const ConvRun *r, int64_t threads)
{
    const int64_t most = (r->c->images * r->c->groups + threads - 1) / threads;
    int64_t span = TILE_COLS / r->out;
    span = span < most ? span : most;
    span = span < r->c->images ? span : r->c->images;
    return span < 1 ? 1 : span;
}

static void split(ConvRun *r, int64_t threads)
{
    r->cols = share_of(r->out, TILE_COLS, 1, 1);
    r->tiles = (r->out + r->cols - 1) / r->cols;
    r->span = span_of(r, threads);
    r->direct = window_is_data(&r->c->w) && r->span == 1;
    const int64_t blocks = (r->c->images + r->span - 1) / r->span * r->c->groups * r->tiles;
    r->rows = share_of(r->c->results, TILE_ROWS, (int64_t)r->l->rows, blocks < threads ? threads : 1);
    r->parts = (r->c->results + r->rows - 1) / r->rows;
}

/* Room for every worker, and the zeros of columns. */
static void make_room(Eval *e, ConvRun *r, int64_t threads)
{
    const size_t width = r->l->width, cols = ((size_t)(r->span * r->cols) + width - 1) / width * width;
    const size_t block = WORD_BLOCK * r->l->depth, depth = (size_t)r->depth < block ? (size_t)r->depth : block;
    u32 *zeros = eval_room(e, cols, sizeof *zeros);
    for (size_t i = 0; i < cols; i++)
        zeros[i] = (u32)(r->x->zeros[0] + r->l->column_shift[r->x->type]);
    r->zeros = zeros;
    r->panels = (size_t)r->rows * cols * sizeof(i32);
    r->column_sums = r->panels + (depth + r->l->depth - 1) / r->l->depth * cols * sizeof(u32);
    r->gathered = r->column_sums + cols * sizeof(i32);
    r->room = (r->gathered + (r->direct ? 0 : depth * cols * r->size) + 63) / 64 * 64;
    r->rooms = eval_room(e, (size_t)threads, r->room);
}

void codes_convolve(Eval *e, const CodesConv *c, const Codes *x, const Codes *filter, const SumTaker *to)
{
    const int64_t threads = parallel_threads(e->pool);
    ConvRun r = { .l = kernels_code_products(e->kernels, codes_are_wide(x, filter)), .c = c, .x = x, .to = to };
    r.size = x->type < CODE_U16 ? 1 : 2;
    r.taps = window_product(c->w.rank, c->w.kernel);
    r.in = window_product(c->w.rank, c->w.in);
    r.out = window_product(c->w.rank, c->w.out);
    r.depth = r.taps * c->channels;
    if (c->images * c->groups * c->results * r.out == 0 || codes_along_planes(e, c, x, filter, to) ||
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
    split(&r, threads);
    make_room(e, &r, threads);
    eval_parallel(e, (c->images + r.span - 1) / r.span * c->groups * r.tiles * r.parts, conv_blocks, &r);
}
