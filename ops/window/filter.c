/* Weights as the packed left operands of correlations. */
#include "base/parallel.h"
#include "ops/window/correlate.h"

/* How weights are packed: rows of a tile; columns, or words of two. */
typedef struct PackWay {
    int64_t rows, columns;
    size_t element; /* bytes */
} PackWay;

static PackWay way_of(const Eval *e, const FilterPack *f)
{
    if (f->is_bf16)
        return (PackWay){ (int64_t)kernels_pairs_bf16(e->kernels)->rows, (f->columns + 1) / 2, sizeof(u32) };
    const PackedLoops *l = kernels_packed(e->kernels, f->f64 ? ARITH_F64 : ARITH_F32);
    return (PackWay){ (int64_t)l->rows, f->columns, f->f64 ? sizeof(f64) : sizeof(f32) };
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

static void pack_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const PackRun *r = arg;
    const FilterPack *f = r->filter;
    const int64_t tile = r->way.rows, tiles = (f->rows + tile - 1) / tile;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / tiles, m = i % tiles * tile;
        void *to = (char *)f->to + ((size_t)group * r->group + (size_t)(m * f->taps * r->way.columns)) * r->way.element;
        if (f->is_bf16)
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
    return (size_t)((f->rows + way.rows - 1) / way.rows * way.rows * way.columns * f->taps);
}

size_t filter_room(const Eval *e, const FilterPack *f)
{
    return (size_t)f->groups * filter_group(e, f);
}

size_t filter_bytes(const Type *filter, int64_t groups, int64_t rows, int64_t columns, int64_t taps)
{
    enum { TILE = MOST_TILE_ROWS };
    const size_t element = filter->dtype == F64 ? sizeof(f64) : sizeof(f32);
    return (size_t)(groups * ((rows + TILE - 1) / TILE * TILE) * columns * taps) * element;
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
    f.to = eval_room(e, filter_room(e, &f), way_of(e, &f).element);
    filter_pack(e, &f);
    return f.to;
}
