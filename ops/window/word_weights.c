/* conv_weight_grad of operands in bf16 as they are multiplied where the machine can: two positions at a time.  Rows are the taps of
 * all channels of a group, gathered as they lie; columns are results, the lines of dy packed once for all rows of a part. */
#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/panel.h"
#include "ops/window/channels.h"

enum {
    X,
    DY,
    BLOCK = 512,         /* positions that are multiplied at a time */
    APART = BLOCK + 32,  /* elements from line to line, so that they do not meet in one place of a cache */
    STEPS = 2,           /* positions of a word */
    MOST_SUMS = 1 << 20, /* of a part: they stay within bounds */
};

typedef struct Run {
    const PairLoops *pairs;
    const PackedLoops *packed, *floats;
    Window w;
    int64_t groups, channels, results; /* channels and results of a group */
    int64_t taps, in, out, positions;  /* positions of all images */
    int64_t rows, part, parts;         /* of a group; those that are done together */
    const u16 *x, *dy;
    f32 *y;
    char *rooms; /* for each worker */
    size_t room; /* bytes */
} Run;

/* What a worker works in. */
typedef struct Room {
    void *sights;
    u16 *lines, *back; /* what some rows see; dy, where a block is of several images */
    u32 *panels;
    f32 *sums, *digits;
} Room;

/* Positions [begin, end) of all images, at most BLOCK of them. */
typedef struct Positions {
    int64_t begin, end;
} Positions;

/* Those of them that are of one image, `at` positions into them. */
typedef struct Piece {
    int64_t image, first, n, at;
} Piece;

static Piece piece_at(const Run *r, const Positions *p, int64_t at)
{
    Piece piece = { .image = (p->begin + at) / r->out, .first = (p->begin + at) % r->out, .at = at };
    const int64_t left = p->end - p->begin - at;
    piece.n = r->out - piece.first < left ? r->out - piece.first : left;
    return piece;
}

/* Positions that are multiplied for n of them. */
static int64_t filled(const Run *r, int64_t n)
{
    return (int64_t)pair_filled(r->pairs, (size_t)((n + STEPS - 1) / STEPS)) * STEPS;
}

/* What a row sees of n positions; behind them stand zeros, up to whole blocks of words. */
static void gather(const Run *r, const TapSights *s, int64_t group, int64_t row, int64_t n, u16 *to)
{
    const int64_t channel = group * r->channels + row / r->taps, tap = row % r->taps;
    window_see_u16(&r->w, s->runs + (size_t)tap * s->most, s->n[tap], r->x + channel * r->in, to);
    memset(to + n, 0, (size_t)(filled(r, n) - n) * sizeof *to);
}

/* The panels of dy: results are lanes, positions the steps. */
static void pack(const Run *r, int64_t group, const Positions *p, const Room *room)
{
    const int64_t n = p->end - p->begin;
    Piece i = piece_at(r, p, 0);
    const u16 *from = r->dy + (i.image * r->groups + group) * r->results * r->out + i.first;
    int64_t line = r->out;
    for (; i.n < n && i.at < n; i = piece_at(r, p, i.at + i.n)) {
        const u16 *dy = r->dy + (i.image * r->groups + group) * r->results * r->out + i.first;
        for (int64_t k = 0; k < r->results; k++)
            memcpy(room->back + k * BLOCK + i.at, dy + k * r->out, (size_t)i.n * sizeof *dy);
        from = room->back;
        line = BLOCK;
        if (i.at + i.n == n)
            break;
    }
    r->packed->pack_columns((size_t)r->results, (size_t)n, from, 1, (size_t)line, room->panels,
                            (size_t)filled(r, n) * r->packed->width);
}

/* Adds what some positions bring to some rows. */
static void add_positions(const Run *r, int64_t group, int64_t row, int64_t rows, const Positions *p, const Room *room,
                          bool fresh)
{
    const int64_t n = p->end - p->begin;
    const size_t words = (size_t)(filled(r, n) / STEPS);
    const TapSights sights = window_sights(&r->w, p->begin, n, r->groups * r->channels * r->in, room->sights);
    PairProduct product = { .n = (size_t)r->results,
                            .words = words,
                            .row = APART / STEPS,
                            .ldb = r->pairs->width,
                            .panel = words * r->pairs->width,
                            .ldc = (size_t)r->results,
                            .fresh = fresh };
    pack(r, group, p, room);
    for (int64_t i = 0, tile = (int64_t)r->pairs->rows; i < rows; i += (int64_t)product.m) {
        product.m = rows - i < tile ? (size_t)(rows - i) : r->pairs->rows;
        for (size_t k = 0; k < product.m; k++)
            gather(r, &sights, group, row + i + (int64_t)k, n, room->lines + k * APART);
        r->pairs->multiply(&product, (const u32 *)(const void *)room->lines, room->panels, room->sums + i * r->results);
    }
}

/* The sums of some rows of a group, and with them the result. */
static void add_rows(const Run *r, int64_t group, int64_t row, int64_t rows, const Room *room)
{
    const size_t sums = (size_t)(rows * r->results);
    for (int64_t s = 0; s < r->positions; s += PANEL_SEGMENT) {
        const int64_t end = s + PANEL_SEGMENT < r->positions ? s + PANEL_SEGMENT : r->positions;
        for (int64_t at = s; at < end; at += BLOCK) {
            const Positions p = { at, at + BLOCK < end ? at + BLOCK : end };
            add_positions(r, group, row, rows, &p, room, at == s);
        }
        if (r->positions > PANEL_SEGMENT)
            panel_join_f32(room->sums, 1, sums, sums, room->digits, (size_t)(s / PANEL_SEGMENT), end == r->positions);
    }
    r->floats->turn((size_t)rows, (size_t)r->results, room->sums, (size_t)r->results,
                    r->y + group * r->results * r->rows + row, (size_t)r->rows);
}

static int64_t whole_panels(const Run *r)
{
    const int64_t width = (int64_t)r->packed->width;
    return (r->results + width - 1) / width * width;
}

static void run_parts(void *arg, int64_t begin, int64_t end, int worker)
{
    const Run *r = arg;
    Room room = { .sights = r->rooms + (size_t)worker * r->room };
    room.lines = (u16 *)(void *)((char *)room.sights + window_sights_bytes(&r->w, BLOCK));
    room.panels = (u32 *)(void *)(room.lines + r->pairs->rows * APART);
    room.back = (u16 *)(void *)(room.panels + whole_panels(r) * (BLOCK / STEPS));
    room.sums = (f32 *)(void *)(room.back + whole_panels(r) * BLOCK);
    room.digits = room.sums + r->part * r->results;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % r->parts * r->part, left = r->rows - row;
        add_rows(r, i / r->parts, row, left < r->part ? left : r->part, &room);
    }
}

/* Rows for every thread, as many as can be together. */
static void split_rows(Run *r, int64_t threads)
{
    const int64_t tile = (int64_t)r->pairs->rows, tiles = (r->rows + tile - 1) / tile,
                  most = MOST_SUMS / r->results / tile;
    int64_t parts = r->groups % threads ? threads : 1;
    const int64_t least = (tiles + (most ? most : 1) - 1) / (most ? most : 1);
    parts = parts < least ? (least + parts - 1) / parts * parts : parts;
    r->part = (tiles + parts - 1) / parts * tile;
    r->parts = (r->rows + r->part - 1) / r->part;
}

bool word_weights(Eval *e, const Window *w, int64_t groups, const Type *x, const Type *dy)
{
    Run r = { .pairs = kernels_pairs_bf16(e->kernels),
              .packed = kernels_packed_bf16(e->kernels),
              .floats = kernels_packed(e->kernels, ARITH_F32),
              .w = *w,
              .groups = groups };
    if (!eval_options(e)->narrow || !r.pairs || x->dtype != BF16 || dy->dtype != BF16)
        return false;
    r.y = eval_out_f32(e, 0);
    r.channels = x->dims[1] / groups, r.results = dy->dims[1] / groups;
    r.taps = window_product(w->rank, w->kernel);
    r.in = window_product(w->rank, w->in), r.out = window_product(w->rank, w->out);
    r.rows = r.channels * r.taps, r.positions = x->dims[0] * r.out;
    if (r.rows * r.results == 0 || r.positions == 0)
        return false;
    r.x = e->in[X]->data, r.dy = e->in[DY]->data;
    const size_t threads = (size_t)parallel_threads(e->pool);
    split_rows(&r, (int64_t)threads);
    r.room = window_sights_bytes(w, BLOCK) +
             (r.pairs->rows * APART + 2 * (size_t)whole_panels(&r) * BLOCK) * sizeof(u16) +
             (size_t)(r.part * r.results) * (1 + panel_digits((size_t)r.positions)) * sizeof(f32);
    r.room = (r.room + 63) / 64 * 64;
    r.rooms = eval_room(e, threads, r.room);
    eval_parallel(e, groups * r.parts, run_parts, &r);
    return true;
}
