/* conv_weight_grad of operands in bf16 as they are multiplied where the machine can: two positions at a time.  Rows are the taps of
 * all channels of a group, gathered as they lie; columns are results, the lines of dy packed once for all rows of a part. */
#include <string.h>

#include "base/parallel.h"
#include "ops/kernels/panel.h"
#include "ops/window/channels.h"

enum {
    X,
    DY,
    BLOCK = 512,        /* positions that are multiplied at a time */
    APART = BLOCK + 32, /* elements from line to line, so that they do not meet in one place of a cache */
    STEPS = 2,          /* positions of a word */
    MOST_BLOCKS = PANEL_SEGMENT / BLOCK,
    MOST_SUMS = 1 << 20,       /* of a part: they stay within bounds */
    TURNED = 64 / sizeof(f32), /* rows of a result that are a line of a cache */
};

typedef struct Run {
    const PairLoops *pairs;
    const PackedLoops *packed, *floats;
    Window w;
    int64_t groups, channels, results; /* channels and results of a group */
    int64_t taps, in, out, positions;  /* positions of all images */
    int64_t rows, part, parts;         /* of a group; those that are done together */
    int64_t blocks;                    /* of positions that are packed together */
    bool by_columns;                   /* what taps see is gathered column by column */
    const u16 *x, *dy;
    f32 *y;
    char *rooms;         /* for each worker */
    size_t room, sights; /* bytes; those of what a block sees */
} Run;

/* What a worker works in. */
typedef struct Room {
    char *sights;
    u16 *lines, *back,
        *columns; /* what some rows see; dy, where a block is of several images; what the columns of a channel see */
    u32 *panels;
    f32 *sums, *digits;
} Room;

/* Positions [begin, end) of all images, at most BLOCK of them, what is packed of dy there, and what taps or their columns see. */
typedef struct Positions {
    int64_t begin, end;
    u32 *panels;
    TapSights taps;
    ColumnSights columns;
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

/* What some rows of a group see of a block, line by line; behind it stand zeros, up to whole blocks of words.  `channel`: whose
 * columns are there. */
static void gather(const Run *r, const Positions *p, int64_t group, int64_t row, int64_t rows, const Room *room,
                   int64_t *channel)
{
    const int64_t n = p->end - p->begin;
    u16 *to = room->lines;
    for (int64_t i = row; i < row + rows; i++, to += APART) {
        const int64_t tap = i % r->taps, of = group * r->channels + i / r->taps;
        const u16 *x = r->x + of * r->in;
        if (!r->by_columns)
            window_see_u16(&r->w, p->taps.runs + (size_t)tap * p->taps.most, p->taps.n[tap], x, to);
        else if (of != *channel)
            columns_see(&r->w, &p->columns, x, room->columns);
        if (r->by_columns)
            columns_tap(&r->w, &p->columns, room->columns, tap, to);
        *channel = of;
        memset(to + n, 0, (size_t)(filled(r, n) - n) * sizeof *to);
    }
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
    r->packed->pack_columns((size_t)r->results, (size_t)n, from, 1, (size_t)line, p->panels,
                            (size_t)filled(r, n) * r->packed->width);
}

static size_t panels_of(const Run *r)
{
    const size_t width = r->packed->width;
    return ((size_t)r->results + width - 1) / width * width * (BLOCK / STEPS);
}

/* Up to so many blocks of positions from `begin` on, packed; returns how many. */
static int64_t open_blocks(const Run *r, int64_t group, int64_t begin, int64_t end, const Room *room, Positions *p)
{
    const int64_t image = r->groups * r->channels * r->in;
    int64_t n = 0;
    for (; n < r->blocks && begin < end; n++, begin += BLOCK) {
        char *sights = room->sights + (size_t)n * r->sights;
        p[n] = (Positions){
            begin, begin + BLOCK < end ? begin + BLOCK : end, room->panels + (size_t)n * panels_of(r), { 0 }, { 0 }
        };
        if (r->by_columns)
            p[n].columns = column_sights(&r->w, begin, p[n].end - begin, image, sights);
        else
            p[n].taps = window_sights(&r->w, begin, p[n].end - begin, image, sights);
        pack(r, group, &p[n], room);
    }
    return n;
}

/* Adds what some positions bring to a tile of rows. */
static void add_tile(const Run *r, int64_t group, int64_t row, int64_t rows, const Positions *p, const Room *room,
                     bool fresh, int64_t *channel, f32 *sums)
{
    const size_t words = (size_t)(filled(r, p->end - p->begin) / STEPS);
    const PairProduct product = { .m = (size_t)rows,
                                  .n = (size_t)r->results,
                                  .words = words,
                                  .row = APART / STEPS,
                                  .ldb = r->pairs->width,
                                  .panel = words * r->pairs->width,
                                  .ldc = (size_t)r->results,
                                  .fresh = fresh };
    gather(r, p, group, row, rows, room, channel);
    r->pairs->multiply(&product, (const u32 *)(const void *)room->lines, p->panels, sums);
}

/* The sums of rows to where they stand in the result; past the caches where it is more than these hold, which nobody reads soon. */
static void turn(const Run *r, int64_t group, int64_t row, int64_t rows, const f32 *sums)
{
    f32 *y = r->y + group * r->results * r->rows + row;
    const bool past = turns_past(r->floats, (size_t)rows, (size_t)(r->results * r->rows), y, (size_t)r->rows);
    if (past)
        r->floats->turn_past((size_t)rows, (size_t)r->results, sums, (size_t)r->results, y, (size_t)r->rows);
    else
        r->floats->turn((size_t)rows, (size_t)r->results, sums, (size_t)r->results, y, (size_t)r->rows);
}

/* Tiles that are turned together: their rows are whole lines of a cache. */
static int64_t turned_rows(const Run *r)
{
    int64_t n = (int64_t)r->pairs->rows;
    while (n % TURNED)
        n += (int64_t)r->pairs->rows;
    return n;
}

/* Positions that are one segment: a few tiles of rows at a time, the sums of which stay in cache. */
static void add_few(const Run *r, int64_t group, int64_t row, int64_t rows, const Room *room)
{
    Positions p[MOST_BLOCKS];
    const int64_t n = open_blocks(r, group, 0, r->positions, room, p), tile = (int64_t)r->pairs->rows,
                  turned = turned_rows(r);
    for (int64_t i = 0; i < rows; i += tile) {
        const int64_t some = rows - i < tile ? rows - i : tile, at = i % turned;
        for (int64_t k = 0; k < n; k++) {
            int64_t channel = -1;
            add_tile(r, group, row + i, some, &p[k], room, k == 0, &channel, room->sums + at * r->results);
        }
        if (at + tile == turned || i + some == rows)
            turn(r, group, row + i - at, at + some, room->sums);
    }
}

/* Others: the sums of all rows, segment by segment. */
static void add_many(const Run *r, int64_t group, int64_t row, int64_t rows, const Room *room)
{
    const size_t sums = (size_t)(rows * r->results);
    for (int64_t s = 0; s < r->positions; s += PANEL_SEGMENT) {
        const int64_t end = s + PANEL_SEGMENT < r->positions ? s + PANEL_SEGMENT : r->positions;
        for (int64_t at = s, tile = (int64_t)r->pairs->rows; at < end; at += BLOCK) {
            Positions p;
            int64_t channel = -1;
            open_blocks(r, group, at, end, room, &p);
            for (int64_t i = 0; i < rows; i += tile)
                add_tile(r, group, row + i, rows - i < tile ? rows - i : tile, &p, room, at == s, &channel,
                         room->sums + i * r->results);
        }
        panel_join_f32(room->sums, 1, sums, sums, room->digits, (size_t)(s / PANEL_SEGMENT), end == r->positions);
    }
    turn(r, group, row, rows, room->sums);
}

/* Sums that a part keeps: of a few tiles, or of all rows and what joins to the whole. */
static size_t sums_of(const Run *r)
{
    if (r->positions <= PANEL_SEGMENT)
        return (size_t)(turned_rows(r) * r->results);
    return (size_t)(r->part * r->results) * (1 + panel_digits((size_t)r->positions));
}

/* Opens the room of a worker, or says how large it is. */
static size_t open_room(const Run *r, char *from, Room *room)
{
    const size_t panels = panels_of(r), blocks = (size_t)r->blocks;
    room->sights = from;
    room->lines = (u16 *)(void *)(from + blocks * r->sights);
    room->columns = room->lines + r->pairs->rows * APART;
    room->panels = (u32 *)(void *)(room->columns + (r->by_columns ? column_room(&r->w, BLOCK) : 0));
    room->back = (u16 *)(void *)(room->panels + blocks * panels);
    room->sums = (f32 *)(void *)(room->back + panels * STEPS);
    room->digits = room->sums + r->part * r->results;
    return ((size_t)((char *)(room->sums + sums_of(r)) - from) + 63) / 64 * 64;
}

static void run_parts(void *arg, int64_t begin, int64_t end, int worker)
{
    const Run *r = arg;
    Room room;
    open_room(r, r->rooms + (size_t)worker * r->room, &room);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % r->parts * r->part, left = r->rows - row;
        (r->positions <= PANEL_SEGMENT ? add_few : add_many)(r, i / r->parts, row, left < r->part ? left : r->part,
                                                             &room);
    }
}

/* Rows for every thread, as many as can be together. */
static void split_rows(Run *r, int64_t threads)
{
    const int64_t tile = turned_rows(r), tiles = (r->rows + tile - 1) / tile, most = MOST_SUMS / r->results / tile;
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
    r.blocks = r.positions <= PANEL_SEGMENT ? (r.positions + BLOCK - 1) / BLOCK : 1;
    r.by_columns = columns_suit(w, BLOCK);
    r.sights = r.by_columns ? column_sights_bytes(w, BLOCK) : window_sights_bytes(w, BLOCK);
    r.room = open_room(&r, NULL, &(Room){ 0 });
    r.rooms = eval_room(e, threads, r.room);
    eval_parallel(e, groups * r.parts, run_parts, &r);
    return true;
}
