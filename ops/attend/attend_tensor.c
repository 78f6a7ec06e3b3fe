/* Attention of narrow types by tensor cores (ops/warp/attend.h).
 *
 * A block walks the keys that its tile of queries may see, piece by piece; while it works on one, the next one comes.  Scores become
 * exponentials against the largest so far, what was summed before shrinks as a larger one appears, and the sum of the row
 * divides in the end.  The way back is three walks, none of which adds to what another block made:
 *
 *     rows      of each row of scores its largest and the sum of its exponentials, and what reaches its probabilities, mixed by them
 *     queries   what reaches a tile of queries
 *     keys      what reaches a tile of keys and of values, from all queries that see some of them: the matrix is walked the other
 *               way, so that its columns lie as a warp needs them (`values` is a kernel of its own where heads are so wide that
 *               the sums of both would not fit into registers)
 *
 * Keys that position hides from all rows of a tile are not read. */
#include "ops/attend/attend_writer.h"

#include "ops/attend/attend_kernels.h"

enum {
    THREADS = 128,
    TILE = 64, /* rows of a block */
    UNIT = 16, /* what sizes of heads are filled up to */
    NARROW =
        64, /* sizes up to this one have pieces of 64 rows, wider ones of 32, so that two of each operand fit beside each other */
    WIDEST = 128,  /* heads whose sums fit into registers */
    LEAST = 8,     /* rows that are worth a tile */
    FAR = 1 << 30, /* numbers of rows and keys, and all distances between them, are below */
    MOST_BLOCKS = 0x7fffffff
};

/* Which side of the matrix a block has a tile of, and which products it sums. */
typedef enum Walk { FORWARD, ROW_STATS, QUERIES, KEYS, VALUES, BOTH } Walk;

typedef struct Tiles {
    AttendWriter w;
    Walk walk;
    int64_t rows, tiles; /* below each other of a head of keys; tiles of a side of the matrix */
    int64_t size, v_size, piece;
} Tiles;

static int64_t filled(int64_t n)
{
    return (n + UNIT - 1) / UNIT * UNIT;
}

static bool is_turned(const Tiles *t)
{
    return t->walk >= KEYS;
}

/* Whether what reaches the probabilities is wanted. */
static bool goes_back(const Tiles *t)
{
    return t->walk != FORWARD && t->walk != VALUES;
}

static bool open_tiles(Tiles *t, const AttendWriter *w)
{
    const Heads *h = &w->h;
    const int operands[] = { w->k, w->v, w->dy ? w->dy : w->v };
    *t = (Tiles){ .w = *w, .rows = w->group * h->queries, .size = filled(h->size), .v_size = filled(h->v_size) };
    for (size_t i = 0; i < COUNT(operands); i++)
        if (in(w->n, operands[i])->type->dtype != w->own)
            return false;
    t->piece = t->size > NARROW || t->v_size > NARROW ? TILE / 2 : TILE;
    const int64_t most = t->rows > h->total ? t->rows : h->total;
    return w->to->narrow && dtype_is_narrow(w->own) && t->size <= WIDEST && t->v_size <= WIDEST && t->rows >= LEAST &&
           most < FAR && h->batch * h->heads <= MOST_BLOCKS / ((most + TILE - 1) / TILE);
}

/* ---- what a kernel begins with ---- */

static double by_scale(const AttendWriter *w)
{
    const double scale = attention_scale(w->at, &w->h);
    return w->at->scaled == SCALE_QUOTIENTS ? 1 / scale : scale;
}

static bool adds_mask(const AttendWriter *w)
{
    return w->mask != NO_MASK && !attend_mask_chooses(w);
}

/* Whether scores are made of products before anything is subtracted from them; else that multiplies them with all that there is. */
static bool is_prepared(const AttendWriter *w)
{
    return w->at->softcap > 0 || adds_mask(w) || !(by_scale(w) > 0);
}

static void print_place(Text *t, const char *name, int64_t n, int64_t steps, int64_t size, HeadStrides at)
{
    text_printf(t, "    const HeadPlace %s = { %" LD ", %" LD ", %" LD ", %" LD ", %" LD " };\n", name, n, steps, size,
                at.head, at.step);
}

static void print_operand(Text *t, const char *name, int operand, HeadStrides at, int64_t heads)
{
    text_printf(t, "    const u16 *const %s = RAW%d + b * %" LD " + shared * %" LD ";\n", name, operand, at.batch,
                heads * at.head);
}

static int64_t near(int64_t window)
{
    return window < FAR ? window : -1;
}

static void print_sight(Tiles *t)
{
    const AttendWriter *w = &t->w;
    const Heads *h = &w->h;
    Text *out = &t->w.t;
    if (w->lengths == NO_MASK) {
        text_printf(out, "    const Sight sight = { %" LD ", %" LD ", %" LD ", %" LD ", %" LD ", 0 };\n", t->rows,
                    h->queries, near(attention_left(w->at)), near(attention_right(w->at)), h->total);
        return;
    }
    text_printf(out, "    const i64 said = IN%d(b), length = said < -%d ? -%d : said > %d ? %d : said;\n", w->lengths,
                FAR, FAR, FAR, FAR);
    text_printf(out,
                "    const Sight sight = { %" LD ", %" LD ", %" LD ", %" LD ", (i32)(length < %" LD " ? length : %" LD
                "), (i32)length - %" LD " };\n",
                t->rows, h->queries, near(attention_left(w->at)), near(attention_right(w->at)), h->total, h->total,
                h->queries);
}

/* The digit of a block's number that goes on at every `below` and counts to `extent` (0: the last one). */
static const char *digit(Arena *arena, int64_t below, int64_t extent)
{
    if (extent == 1)
        return "0";
    const char *over = below > 1 ? arena_printf(arena, "block / %" LD, below) : "block";
    return extent ? arena_printf(arena, "%s %% %" LD, over, extent) : over;
}

/* Tiles of queries in descending order: where keys behind them are hidden, the last ones have most to do, and begin first. */
static void print_head(Tiles *t)
{
    const AttendWriter *w = &t->w;
    const Heads *h = &w->h;
    Text *out = &t->w.t;
    const int64_t side = is_turned(t) ? h->total : t->rows;
    t->tiles = (side + TILE - 1) / TILE;
    own_kernel_open(w->to, out);
    text_printf(out, "    typedef %s H;\n    const i32 N = %" LD ";\n", w->own == BF16 ? "Bf16" : "F16", t->piece);
    const char *tile = t->tiles == 1 ? "0"
                       : is_turned(t)
                           ? arena_printf(w->to->arena, "(i32)(block %% %" LD ")", t->tiles)
                           : arena_printf(w->to->arena, "(%" LD " - (i32)(block %% %" LD "))", t->tiles - 1, t->tiles);
    text_printf(out, "    const i32 first = %s * ATTEND_TILE;\n", tile);
    text_printf(out, "    const i64 shared = %s, b = %s;\n", digit(w->to->arena, t->tiles, h->heads),
                digit(w->to->arena, t->tiles * h->heads, 0));
    print_operand(out, "q", w->q, w->of_q, w->group);
    print_operand(out, "k", w->k, w->of_k, 1);
    print_operand(out, "v", w->v, w->of_v, 1);
    print_place(out, "of_q", t->rows, h->queries, h->size, w->of_q);
    print_place(out, "of_k", h->total, h->total, h->size, w->of_k);
    print_place(out, "of_v", h->total, h->total, h->v_size, w->of_v);
    if (t->walk != FORWARD)
        print_operand(out, "dy", w->dy, w->of_y, w->group);
    print_place(out, "of_y", t->rows, h->queries, h->v_size, w->of_y);
    print_sight(t);
    text_printf(out, "    const f32 factor = %s;\n",
                attend_number(w, 1.4426950408889634 * (is_prepared(w) ? 1 : by_scale(w))));
}

/* ---- a tile's own rows, and the pieces of the other side ---- */

/* What lies where: the rows that a block has, and the pieces that it walks, of what scores are made of and of the other two. */
typedef struct Side {
    const char *scores, *others, *of_scores, *of_others;
} Side;

static const Side of_queries = { "q", "dy", "of_q", "of_y" }, of_keys = { "k", "v", "of_k", "of_v" };

static void print_shared(Tiles *t)
{
    const Side *own = is_turned(t) ? &of_keys : &of_queries;
    Text *out = &t->w.t;
    const bool two = goes_back(t);
    text_printf(out,
                "    __shared__ HeadRow<%" LD "> pieces[2][%" LD "];\n    __shared__ HeadRow<%" LD "> others[2][%" LD
                "];\n",
                t->size, t->piece, t->v_size, t->piece);
    if (is_turned(t))
        text_printf(out, "    __shared__ RowStats stats[2][%" LD "];\n", t->piece);
    text_printf(out, "    Copies copies = {};\n    u32 held[%" LD "][4];\n", t->size / 16);
    text_printf(out, "    rows_fetch<ATTEND_TILE>(&copies, pieces[0], %s, &%s, first);\n", own->scores, own->of_scores);
    if (two)
        text_printf(out,
                    "    u32 other[%" LD "][4];\n    rows_fetch<ATTEND_TILE>(&copies, others[0], %s, &%s, first);\n",
                    t->v_size / 16, own->others, own->of_others);
    text_add(out, "    copy_commit(&copies);\n    copy_wait<0>(&copies);\n    __syncthreads();\n"
                  "    warp_hold(held, pieces[0]);\n");
    if (two)
        text_add(out, "    warp_hold(other, others[0]);\n");
    text_add(out, "    __syncthreads();\n");
}

/* Pieces of the other side from row `at` on begin their way. */
static void print_fetch(Tiles *t, const char *at, const char *where, int indent)
{
    const Side *side = is_turned(t) ? &of_queries : &of_keys;
    Text *out = &t->w.t;
    text_printf(out, "%*srows_fetch<N>(&copies, pieces[%s], %s, &%s, %s);\n", indent, "", where, side->scores,
                side->of_scores, at);
    text_printf(out, "%*srows_fetch<N>(&copies, others[%s], %s, &%s, %s);\n", indent, "", where, side->others,
                side->of_others, at);
    if (is_turned(t))
        text_printf(out,
                    "%*sif (threadIdx.x < N)\n%*sstats[%s][threadIdx.x] = stats_of(of_rows, %s + (i32)threadIdx.x, %" LD
                    ");\n",
                    indent, "", indent + 4, "", where, at, t->rows);
}

/* ---- scores ---- */

static void print_each(Tiles *t, int indent)
{
    text_printf(
        &t->w.t,
        "#pragma unroll\n%*sfor (i32 c = 0; c < N / 8; c++)\n#pragma unroll\n%*sfor (i32 i = 0; i < 4; i++) {\n",
        indent, "", indent + 4, "");
}

/* What products become before anything is hidden. */
static void print_prepare(Tiles *t)
{
    const AttendWriter *w = &t->w;
    Text *out = &t->w.t;
    if (w->at->softcap > 0 && t->walk != FORWARD && t->walk != VALUES && t->walk != ROW_STATS)
        text_add(out, "        f32 slope[N / 8][4];\n");
    if (!is_prepared(w))
        return;
    print_each(t, 8);
    text_printf(out, "                s[c][i] *= %s;\n", attend_number(w, by_scale(w)));
    if (w->at->softcap > 0) {
        text_printf(
            out, "                const f32 tangent = q_tanh(s[c][i] * %s);\n                s[c][i] = tangent * %s;\n",
            attend_number(w, 1 / (double)w->at->softcap), attend_number(w, (double)w->at->softcap));
        if (t->walk != FORWARD && t->walk != VALUES && t->walk != ROW_STATS)
            text_add(out, "                slope[c][i] = 1 - tangent * tangent;\n");
    }
    text_add(out, "            }\n");
}

/* Scores that are hidden become -inf, and what reaches them 0; of tiles that see all of a piece there are none. */
static void print_hide(Tiles *t)
{
    const AttendWriter *w = &t->w;
    const char *mask = attend_mask_element(w);
    const bool counts = t->walk == FORWARD || t->walk == ROW_STATS;
    Text *out = &t->w.t;
    if (!mask && is_turned(t))
        text_add(out, "        if (first < tile.all_from || first + ATTEND_TILE > tile.all_to) {\n");
    else if (!mask)
        text_add(out, "        if (at < tile.all_from || at + N > tile.all_to) {\n");
    else
        text_add(out, "        {\n");
    print_each(t, 12);
    if (is_turned(t))
        text_add(out, "                    const i32 j = first + attend_line() + i / 2 * 8;\n"
                      "                    const i32 row = at + 8 * c + (i32)(threadIdx.x % 4 * 2) + i % 2;\n");
    else
        text_add(out, "                    const i32 row = first + attend_line() + i / 2 * 8;\n"
                      "                    const i32 j = at + 8 * c + (i32)(threadIdx.x % 4 * 2) + i % 2;\n");
    text_printf(out, "                    const i32 query = row %% %" LD ";\n", w->h.queries);
    if (mask)
        text_printf(out, "                    const i64 head = shared * %" LD " + row / %" LD ";\n", w->group,
                    w->h.queries);
    text_add(out, "                    bool seen = sight_has(&sight, query, j);\n");
    if (mask)
        text_printf(out, "                    seen = seen && row < %" LD " && j < %" LD " && %s%s;\n", t->rows,
                    attend_mask_keys(w), mask, attend_mask_chooses(w) ? " != 0" : " != -Q_INF");
    text_printf(out, "                    s[c][i] = seen ? s[c][i]%s%s : -Q_INF;\n", adds_mask(w) ? " + (f32)" : "",
                adds_mask(w) ? mask : "");
    if (goes_back(t))
        text_add(out, "                    d[c][i] = seen ? d[c][i] : 0;\n");
    if (counts)
        text_add(out, "                    softmax.any[i / 2] = softmax.any[i / 2] || seen;\n");
    text_add(out, "                }\n        }");
    if (counts && !mask)
        text_add(out, " else {\n            softmax.any[0] = softmax.any[1] = true;\n        }");
    text_add(out, "\n");
}

static void print_scores(Tiles *t)
{
    Text *out = &t->w.t;
    text_add(out, "        copy_commit(&copies);\n        copy_wait<1>(&copies);\n        __syncthreads();\n"
                  "        f32 s[N / 8][4];\n        warp_scores<H, N>(s, held, pieces[odd]);\n");
    if (goes_back(t))
        text_add(out, "        f32 d[N / 8][4];\n        warp_scores<H, N>(d, other, others[odd]);\n");
    print_prepare(t);
    print_hide(t);
}

/* ---- along keys ---- */

/* The pieces of keys that a tile of queries may see, one after the other. */
static void print_along_keys(Tiles *t)
{
    Text *out = &t->w.t;
    text_add(out, "    const TileSight tile = sight_tile(&sight, first, ATTEND_TILE);\n    u32 odd = 0;\n");
    print_fetch(t, "tile.from", "0", 4);
    text_add(out, "    copy_commit(&copies);\n    for (i32 at = tile.from; at < tile.to; at += N, odd ^= 1) {\n"
                  "        if (at + N < tile.to) {\n");
    print_fetch(t, "at + N", "odd ^ 1", 12);
    text_add(out, "        }\n");
    print_scores(t);
}

static void close_tiles(Tiles *t, const char *part)
{
    AttendWriter *w = &t->w;
    own_kernel_close(w->to, part, t->tiles * w->h.heads * w->h.batch, THREADS, &w->t);
    w->to->list[w->to->n - 1].tensor = true;
}

static void print_sums(Tiles *t, const char *name, int64_t size)
{
    text_printf(&t->w.t, "    f32 %s[%" LD "][4] = { { 0 } };\n", name, size / 8);
}

static void print_store(Tiles *t, int result, HeadStrides at, int64_t heads, const char *place, const char *sums,
                        const char *by)
{
    text_printf(&t->w.t, "    rows_store<H, %" LD ">(OUTRAW%d + b * %" LD " + shared * %" LD ", &%s, first, %s, %s);\n",
                strcmp(place, "of_q") == 0 || strcmp(place, "of_k") == 0 ? t->size : t->v_size, result, at.batch,
                heads * at.head, place, sums, by);
}

bool attend_by_tensor(const AttendWriter *w)
{
    Tiles t;
    if (!open_tiles(&t, w))
        return false;
    Text *out = &t.w.t;
    print_head(&t);
    print_shared(&t);
    text_add(out, "    RowsSoftmax softmax = softmax_begin();\n");
    print_sums(&t, "y", t.v_size);
    print_along_keys(&t);
    text_printf(out,
                "        f32 shrink[2];\n        warp_soften<N>(&softmax, s, shrink, factor);\n"
                "        warp_shrink<%" LD ">(y, shrink);\n        warp_mix<H, N>(y, s, others[odd]);\n"
                "        __syncthreads();\n    }\n",
                t.v_size);
    text_add(
        out,
        "    const f32 by[2] = { softmax_end(&softmax, 0, factor).share, softmax_end(&softmax, 1, factor).share };\n");
    print_store(&t, 0, w->of_y, w->group, "of_y", "y", "by");
    close_tiles(&t, "mma");
    return true;
}

/* ---- the way back ---- */

static void print_of_rows(Tiles *t, bool writes)
{
    text_printf(&t->w.t, "    %sRowStats *const of_rows = (%sRowStats *)scratch + (b * %" LD " + shared) * %" LD ";\n",
                writes ? "" : "const ", writes ? "" : "const ", t->w.h.heads, t->rows);
}

static void print_rows_walk(Tiles *t)
{
    Text *out = &t->w.t;
    t->walk = ROW_STATS;
    print_head(t);
    print_of_rows(t, true);
    print_shared(t);
    text_add(out, "    RowsSoftmax softmax = softmax_begin();\n");
    print_along_keys(t);
    text_add(out, "        f32 shrink[2];\n        warp_soften<N>(&softmax, s, shrink, factor);\n"
                  "        warp_weigh<N>(&softmax, s, d, shrink);\n        __syncthreads();\n    }\n");
    text_add(out, "#pragma unroll\n    for (u32 r = 0; r < 2; r++) {\n"
                  "        const RowStats found = softmax_end(&softmax, r, factor);\n"
                  "        const i32 row = first + attend_line() + 8 * (i32)r;\n");
    text_printf(out, "        if (threadIdx.x %% 4 == 0 && row < %" LD ")\n            of_rows[row] = found;\n    }\n",
                t->rows);
    close_tiles(t, "rows_mma");
}

static const char *sloped(const Tiles *t)
{
    return t->w.at->softcap > 0 ? " * slope[c][i]" : "";
}

static void print_queries_walk(Tiles *t)
{
    Text *out = &t->w.t;
    t->walk = QUERIES;
    print_head(t);
    print_of_rows(t, false);
    print_shared(t);
    text_printf(
        out,
        "    const i32 line = first + attend_line();\n    const RowStats found[2] = { stats_of(of_rows, line, %" LD
        "), stats_of(of_rows, line + 8, %" LD ") };\n",
        t->rows, t->rows);
    print_sums(t, "dq", t->size);
    print_along_keys(t);
    print_each(t, 8);
    text_printf(
        out,
        "                const RowStats *const r = &found[i / 2];\n"
        "                s[c][i] = stats_probability(r, s[c][i], factor) * (d[c][i] - r->mean)%s;\n            }\n",
        sloped(t));
    text_add(out, "        warp_mix<H, N>(dq, s, pieces[odd]);\n        __syncthreads();\n    }\n");
    const char *scale = attend_number(&t->w, by_scale(&t->w));
    text_printf(out, "    const f32 by[2] = { %s, %s };\n", scale, scale);
    print_store(t, 0, t->w.of_q, t->w.group, "of_q", "dq", "by");
    close_tiles(t, "queries_mma");
}

static void print_keys_walk(Tiles *t, Walk walk)
{
    Text *out = &t->w.t;
    t->walk = walk;
    const bool keys = walk != VALUES, values = walk != KEYS;
    print_head(t);
    print_of_rows(t, false);
    print_shared(t);
    if (keys)
        print_sums(t, "dk", t->size);
    if (values)
        print_sums(t, "dv", t->v_size);
    text_add(out, "    u32 odd = 0;\n    i32 at = sight_next(&sight, 0, N, first, first + ATTEND_TILE);\n");
    print_fetch(t, "at", "0", 4);
    text_printf(out,
                "    copy_commit(&copies);\n    while (at < %" LD ") {\n"
                "        const i32 next = sight_next(&sight, at + N, N, first, first + ATTEND_TILE);\n"
                "        const TileSight tile = sight_tile(&sight, at, N);\n        if (next < %" LD ") {\n",
                t->rows, t->rows);
    print_fetch(t, "next", "odd ^ 1", 12);
    text_add(out, "        }\n");
    print_scores(t);
    print_each(t, 8);
    text_add(out, "                const RowStats *const r = &stats[odd][8 * c + (i32)(threadIdx.x % 4 * 2) + i % 2];\n"
                  "                s[c][i] = stats_probability(r, s[c][i], factor);\n");
    if (keys)
        text_printf(out, "                d[c][i] = s[c][i] * (d[c][i] - r->mean)%s;\n", sloped(t));
    text_add(out, "            }\n");
    if (values)
        text_add(out, "        warp_mix<H, N>(dv, s, others[odd]);\n");
    if (keys)
        text_add(out, "        warp_mix<H, N>(dk, d, pieces[odd]);\n");
    text_add(out, "        __syncthreads();\n        at = next;\n        odd ^= 1;\n    }\n");
    const char *scale = attend_number(&t->w, by_scale(&t->w));
    if (keys) {
        text_printf(out, "    const f32 by[2] = { %s, %s };\n", scale, scale);
        print_store(t, 1, t->w.of_k, 1, "of_k", "dk", "by");
    }
    if (values) {
        text_add(out, "    const f32 as_it_is[2] = { 1, 1 };\n");
        print_store(t, 2, t->w.of_v, 1, "of_v", "dv", "as_it_is");
    }
    close_tiles(t, keys ? "keys_mma" : "values_mma");
}

bool attend_back_by_tensor(const AttendWriter *w)
{
    enum { STATS = 3 }; /* numbers of a row */
    Tiles t;
    if (!open_tiles(&t, w))
        return false;
    own_scratch(w->to, w->rows * STATS * (int64_t)sizeof(f32));
    print_rows_walk(&t);
    print_queries_walk(&t);
    if (t.size <= NARROW && t.v_size <= NARROW) {
        print_keys_walk(&t, BOTH);
    } else {
        print_keys_walk(&t, KEYS);
        print_keys_walk(&t, VALUES);
    }
    return true;
}
