/* Weights as the packed left operands of correlations. */
#include <string.h>

#include "base/parallel.h"
#include "ops/window/correlate.h"

/* How weights are packed: rows of a tile; columns, or words of two; and those of all taps, filled up. */
typedef struct PackWay {
    int64_t rows, columns, all;
    size_t element; /* bytes */
} PackWay;

static PackWay way_of(const Eval *e, const FilterPack *f)
{
    const PairLoops *pairs = kernels_pairs_bf16(e->kernels);
    const PackedLoops *l = kernels_packed(e->kernels, f->f64 ? ARITH_F64 : ARITH_F32);
    PackWay way = { (int64_t)l->rows, f->columns, f->columns * f->taps, f->f64 ? sizeof(f64) : sizeof(f32) };
    if (f->is_bf16) {
        way = (PackWay){ (int64_t)pairs->rows, (f->columns + 1) / 2, 0, sizeof(u32) };
        way.all = (int64_t)pair_filled(pairs, (size_t)(way.columns * f->taps));
    }
    return way;
}

#define PACK(T)                                                                                                        \
    /* The tile of a group's packed rows that begins with row m. */                                                    \
    static void pack_##T(const FilterPack *f, const PackedLoops *l, int64_t group, int64_t m, T *to)                   \
    {                                                                                                                  \
        const int64_t tile = (int64_t)l->rows, rows = f->rows - m < tile ? f->rows - m : tile;                         \
        const T *from = (const T *)f->from + group * f->group + m * f->row;                                            \
        if (f->taps == 1 && !f->tap) {                                                                                 \
            l->pack_rows((size_t)rows, (size_t)f->columns, from, (size_t)f->row, (size_t)f->column, to, 0);            \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t c = 0; c < f->columns; c++, from += f->column, to += tile) {                                      \
            if (!f->tap) {                                                                                             \
                l->turn((size_t)rows, (size_t)f->taps, from, (size_t)f->row, to, (size_t)(f->columns * tile));         \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t u = 0; u < f->taps; u++)                                                                      \
                for (int64_t i = 0; i < rows; i++)                                                                     \
                    to[u * f->columns * tile + i] = from[i * f->row + f->tap[u]];                                      \
        }                                                                                                              \
    }
PACK(f32)
PACK(f64)
#undef PACK

typedef struct PackRun {
    const FilterPack *filter;
    const PackedLoops *loops;
    const PairLoops *pairs;
    PackWay way;
    size_t group; /* elements of a group */
} PackRun;

enum { TAPS = 32, WORDS = 256 }; /* whose words are made together; of a row that are made at once */

/* The words of taps [first, first + taps) of some rows, which lie beside each other, and then turned. */
static void pack_words(const FilterPack *f, const PackRun *r, int64_t rows, const u16 *low, const u16 *high,
                       int64_t first, int64_t taps, u32 *to)
{
    const bool adjoin = f->row == taps; /* of rows that follow each other all at once */
    const int64_t line = adjoin ? taps : TAPS;
    u32 words[MOST_TILE_ROWS * TAPS];
    if (adjoin)
        r->pairs->pair((size_t)(rows * taps), low, high, words);
    for (int64_t i = 0; i < rows && !adjoin; i++)
        r->pairs->pair((size_t)taps, low + i * f->row + first, high ? high + i * f->row + first : NULL,
                       words + i * TAPS);
    for (int64_t u = 0; u < taps; u++)
        for (int64_t i = 0; i < rows; i++)
            to[u * r->way.columns * r->way.rows + i] = words[i * line + u];
}

/* The words of all taps of so many pairs of columns that follow each other: those of a row at once, and as many between them that
 * nobody reads. */
static void pack_pairs(const FilterPack *f, const PackRun *r, int64_t rows, const u16 *low, int64_t pairs, u32 *to)
{
    const int64_t taps = f->taps, n = (2 * pairs - 1) * taps, tap = r->way.columns * r->way.rows;
    u32 words[MOST_TILE_ROWS][WORDS];
    for (int64_t i = 0; i < rows; i++)
        r->pairs->pair((size_t)n, low + i * f->row, low + i * f->row + taps, words[i]);
    for (int64_t k = 0; k < pairs; k++, to += r->way.rows)
        for (int64_t u = 0; u < taps; u++)
            for (int64_t i = 0; i < rows; i++)
                to[u * tap + i] = words[i][2 * k * taps + u];
}

/* The tile of words that begins with row m: of two columns that follow each other, behind the last a zero. */
static void pack_bf16(const FilterPack *f, const PackRun *r, int64_t group, int64_t m, u32 *to)
{
    const int64_t rows = f->rows - m < r->way.rows ? f->rows - m : r->way.rows, tap = r->way.columns * r->way.rows;
    const u16 *low = (const u16 *)f->from + group * f->group + m * f->row;
    const bool adjoin = !f->tap && f->column == f->taps && f->taps <= TAPS;
    for (int64_t c = 0, some; c < f->columns; c += some, low += some * f->column, to += some / 2 * r->way.rows) {
        const u16 *high = c + 1 < f->columns ? low + f->column : NULL;
        some = 2;
        if (adjoin && high) {
            const int64_t left = (f->columns - c) / 2, most = WORDS / (2 * f->taps);
            some = 2 * (left < most ? left : most);
            pack_pairs(f, r, rows, low, some / 2, to);
            continue;
        }
        for (int64_t u = 0; u < f->taps && !f->tap; u += TAPS)
            pack_words(f, r, rows, low, high, u, f->taps - u < TAPS ? f->taps - u : TAPS, to + u * tap);
        for (int64_t u = 0; u < f->taps && f->tap; u++)
            for (int64_t i = 0; i < rows; i++) {
                const int64_t at = i * f->row + f->tap[u];
                to[u * tap + i] = (u32)low[at] | (high ? (u32)high[at] << 16 : 0);
            }
    }
}

enum { LANES = 16, MOST_TURNED = 320 }; /* words that are turned together; of so many rows and taps */

/* Where the words of a row are neighbours in blocks (PairLoops): those of its taps, and of these the words of some pairs. */
typedef struct BlockPlace {
    const PairLoops *pairs;
    int64_t columns; /* words of a tap */
    u32 *tile;
} BlockPlace;

/* Some words of a row of a tile, which follow each other, to where they stand. */
static void place_words(const BlockPlace *p, int64_t row, int64_t word, const void *from, int64_t n)
{
    const size_t depth = p->pairs->depth;
    const char *words = from;
    for (size_t some, at = (size_t)word, end = at + (size_t)n; at < end; at += some, words += some * sizeof(u32)) {
        some = depth - at % depth;
        some = end - at < some ? end - at : some;
        memcpy(p->tile + pair_place(p->pairs, (size_t)row, at), words, some * sizeof(u32));
    }
}

/* Where what some pairs of columns have of some rows is made to words, and turned, so that those of a row follow each other. */
typedef struct TurnRoom {
    u32 lines[2 * LANES * MOST_TURNED], turned[MOST_TURNED * LANES];
} TurnRoom;

/* The words of some pairs of columns, from column c on: `line` of each, of all taps of some rows.  Returns how far pairs lie apart. */
static size_t make_lines(const FilterPack *f, const PairLoops *l, const u16 *from, int64_t c, int64_t pairs,
                         int64_t line, u32 *to)
{
    const bool follow = f->column == line && c + 2 * pairs <= f->columns; /* as many between them that nobody reads */
    if (follow) {
        l->pair((size_t)((2 * pairs - 1) * line), from, from + line, to);
        return (size_t)(2 * line);
    }
    for (int64_t k = 0; k < pairs; k++, from += 2 * f->column)
        l->pair((size_t)line, from, c + 2 * k + 1 < f->columns ? from + f->column : NULL, to + k * line);
    return (size_t)line;
}

/* The words of one row, whose taps are lines `apart` apart, from word `word` of each tap on.  Whole blocks go where they stand. */
static void place_row(const FilterPack *f, const PackRun *r, const BlockPlace *p, int64_t row, int64_t word,
                      int64_t pairs, const u32 *lines, size_t apart, u32 *turned)
{
    const int64_t depth = (int64_t)p->pairs->depth, seen = f->tap ? f->tap[f->taps - 1] + 1 : f->taps;
    if (pairs == LANES && depth == LANES && p->columns % LANES == 0 && !f->tap) {
        r->loops->turn(LANES, (size_t)f->taps, lines, apart, p->tile + pair_place(p->pairs, (size_t)row, (size_t)word),
                       (size_t)p->columns * p->pairs->rows);
        return;
    }
    r->loops->turn((size_t)pairs, (size_t)seen, lines, apart, turned, LANES);
    for (int64_t u = 0; u < f->taps; u++)
        place_words(p, row, u * p->columns + word, turned + (f->tap ? f->tap[u] : u) * LANES, pairs);
}

/* Word after word, of kernels that are too large for these. */
static void pack_large(const FilterPack *f, const PackRun *r, const u16 *from, int64_t rows, u32 *to)
{
    for (int64_t i = 0; i < rows; i++, from += f->row)
        for (int64_t u = 0; u < f->taps; u++)
            for (int64_t c = 0; c < f->columns; c += 2) {
                const u16 *at = from + c * f->column + (f->tap ? f->tap[u] : u);
                to[pair_place(r->pairs, (size_t)i, (size_t)(u * r->way.columns + c / 2))] =
                    at[0] | (c + 1 < f->columns ? (u32)at[f->column] << 16 : 0);
            }
}

/* The same tile where the words of a row are neighbours in blocks (PairLoops). */
static void pack_blocks(const FilterPack *f, const PackRun *r, int64_t group, int64_t m, u32 *to)
{
    const int64_t rows = f->rows - m < r->way.rows ? f->rows - m : r->way.rows;
    const int64_t seen = f->tap ? f->tap[f->taps - 1] + 1 : f->taps; /* of a line: taps ascend */
    const int64_t adjoin = f->row < MOST_TURNED ? (MOST_TURNED - seen) / f->row + 1 : 1;
    const u16 *from = (const u16 *)f->from + group * f->group + m * f->row;
    const BlockPlace p = { r->pairs, r->way.columns, to };
    TurnRoom room;
    if (rows < r->way.rows || f->taps * r->way.columns != r->way.all)
        memset(to, 0, (size_t)(r->way.rows * r->way.all) * sizeof *to);
    if (f->taps == 1 && !f->tap && f->column == 1) { /* the columns of a row are its words */
        for (int64_t i = 0; i < rows; i++, from += f->row) {
            place_words(&p, i, 0, from, f->columns / 2);
            if (f->columns % 2)
                to[pair_place(r->pairs, (size_t)i, (size_t)(f->columns / 2))] = from[f->columns - 1];
        }
        return;
    }
    if (seen > MOST_TURNED) {
        pack_large(f, r, from, rows, to);
        return;
    }
    for (int64_t c = 0; c < f->columns; c += 2 * LANES)
        for (int64_t i = 0, some; i < rows; i += some) {
            const int64_t left = (f->columns - c + 1) / 2, pairs = left < LANES ? left : LANES;
            some = rows - i < adjoin ? rows - i : adjoin;
            const size_t apart = make_lines(f, r->pairs, from + i * f->row + c * f->column, c, pairs,
                                            (some - 1) * f->row + seen, room.lines);
            for (int64_t n = 0; n < some; n++)
                place_row(f, r, &p, i + n, c / 2, pairs, room.lines + n * f->row, apart, room.turned);
        }
}

static void pack_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const PackRun *r = arg;
    const FilterPack *f = r->filter;
    const int64_t tile = r->way.rows, tiles = (f->rows + tile - 1) / tile;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / tiles, m = i % tiles * tile;
        void *to = (char *)f->to + ((size_t)group * r->group + (size_t)(m * r->way.all)) * r->way.element;
        if (f->is_bf16 && r->pairs->depth > 1)
            pack_blocks(f, r, group, m, to);
        else if (f->is_bf16)
            pack_bf16(f, r, group, m, to);
        else if (f->f64)
            pack_f64(f, r->loops, group, m, to);
        else
            pack_f32(f, r->loops, group, m, to);
    }
}

size_t filter_group(const Eval *e, const FilterPack *f)
{
    const PackWay way = way_of(e, f);
    return (size_t)((f->rows + way.rows - 1) / way.rows * way.rows * way.all);
}

size_t filter_room(const Eval *e, const FilterPack *f)
{
    return (size_t)f->groups * filter_group(e, f);
}

size_t filter_bytes(const Type *filter, int64_t groups, int64_t rows, int64_t columns, int64_t taps)
{
    enum { TILE = MOST_TILE_ROWS, DEPTH = MOST_DEPTH / 2 };
    const size_t element = filter->dtype == F64 ? sizeof(f64) : sizeof(f32);
    const int64_t words = ((columns + 1) / 2 * taps + DEPTH - 1) / DEPTH * DEPTH; /* of bf16 */
    const int64_t all = filter->dtype == BF16 && words > columns * taps ? words : columns * taps;
    return (size_t)(groups * ((rows + TILE - 1) / TILE * TILE) * all) * element;
}

void filter_pack(Eval *e, const FilterPack *f)
{
    PackRun run = { f, kernels_packed(e->kernels, f->f64 ? ARITH_F64 : ARITH_F32), kernels_pairs_bf16(e->kernels),
                    way_of(e, f), filter_group(e, f) };
    eval_parallel(e, f->groups * ((f->rows + run.way.rows - 1) / run.way.rows), pack_tiles, &run);
}

const void *filter_packed(Eval *e, int i, bool is_bf16, int64_t groups, int64_t rows, int64_t channels, int64_t taps)
{
    FilterPack f = { .groups = groups,
                     .rows = rows,
                     .columns = channels,
                     .taps = taps,
                     .group = rows * channels * taps,
                     .row = channels * taps,
                     .column = taps,
                     .f64 = eval_is_f64(e),
                     .is_bf16 = is_bf16 };
    f.from = is_bf16 ? e->in[i]->data : eval_wide(e, i, f.f64 ? ARITH_F64 : ARITH_F32);
    bool made;
    f.to = eval_kept(e, i, filter_room(e, &f), way_of(e, &f).element, &made);
    if (made)
        return f.to;
    if (f.to)
        eval_keep(e);
    else
        f.to = eval_room(e, filter_room(e, &f), way_of(e, &f).element);
    filter_pack(e, &f);
    return f.to;
}
