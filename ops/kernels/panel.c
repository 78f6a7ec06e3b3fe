#include "ops/kernels/panel.h"

#include <string.h>

enum {
    BAND_ROWS = 1152,         /* of a, at most, that are packed together: what is packed of b serves all of them */
    SUMMED_ROWS = 384,        /* where there are segments to join */
    BAND_DEPTH = USUAL_DEPTH, /* of k, at most, at a time; where b is packed already the level says how much */
    DEEP_BYTES = 1 << 19,     /* of a, at most, that are multiplied together then; they stay in a second-level cache */
    DEEP_SUMMED = 96,         /* rows, where there are segments to join */
    BAND_COLS = 512,          /* of c that are summed together, where there are segments to join */
    SLICE_BYTES = 1 << 18,    /* of b, as f32 or bf16, that are packed at a time and stay in a second-level cache */
    TOLD_ROWS = 48,           /* that are told of at a time, in whole tiles: what is made is in that cache still */
    MOST_TOLD_ROWS = 64,      /* so many, at any level */
    FEW_ROWS = 24,            /* are not worth packing b for */
    THIN_ROWS = 2,            /* or anything */
};

size_t panel_digits(size_t k)
{
    const size_t segments = k / PANEL_SEGMENT + (k % PANEL_SEGMENT != 0);
    size_t digits = 0;
    for (size_t before = segments ? segments - 1 : 0; before; before >>= 1) /* those before the last one */
        digits++;
    return digits;
}

static size_t least(size_t x, size_t y)
{
    return x < y ? x : y;
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static bool is_thin(const Panel *p)
{
    return p->m <= THIN_ROWS && p->a_step <= 1 && p->b_step <= 1 && !p->packed && !p->columns_packed && !p->is_bf16;
}

/* So many of `n` at a time, at most: even shares of a multiple of `whole`, of which `most` is one, too. */
static size_t even_share(size_t n, size_t most, size_t whole)
{
    const size_t shares = (n + most - 1) / most;
    return shares ? round_up((n + shares - 1) / shares, whole) : whole;
}

static size_t band_cols(const Panel *p)
{
    return p->k > PANEL_SEGMENT ? least(p->n, BAND_COLS) : p->n;
}

static size_t band_rows(const Panel *p)
{
    return p->k > PANEL_SEGMENT ? SUMMED_ROWS : BAND_ROWS;
}

/* Room for so many lanes of so many k, packed, in elements of sums. */
static size_t lanes_room(const Panel *p, size_t lanes, size_t k)
{
    enum { IN_ONE = sizeof(f32) / sizeof(u16) };
    return p->is_bf16 ? lanes * round_up(k, MOST_DEPTH) / IN_ONE : lanes * k;
}

/* Rows of so many k that are multiplied together where all of k is: whole tiles. */
static size_t deep_rows(size_t k)
{
    const size_t most = DEEP_BYTES / sizeof(u16) / (k ? k : 1), rows = most / WHOLE_TILES * WHOLE_TILES;
    return k > PANEL_SEGMENT || !rows ? DEEP_SUMMED : least(rows, BAND_ROWS);
}

/* So much of k at a time: where b would be packed for a band of rows, as many rows as can be count for more. */
static size_t most_depth(const PackedLoops *l, const Panel *p)
{
    return p->apart || p->past ? PANEL_SEGMENT : p->columns_packed ? l->at_a_time : BAND_DEPTH;
}

static size_t rows_of_band(const PackedLoops *l, const Panel *p)
{
    return even_share(p->m, most_depth(l, p) > BAND_DEPTH ? deep_rows(p->k) : band_rows(p), WHOLE_TILES);
}

/* Room for the rows that are packed at a time, at any level: a product of fewer rows never needs more. */
static size_t room_of_rows(const Panel *p)
{
    const size_t rows = p->m + MOST_TILE_ROWS - 1,
                 flat = lanes_room(p, least(rows, band_rows(p)), least(p->k, BAND_DEPTH));
    const size_t deep = p->is_bf16 ? lanes_room(p, least(rows, deep_rows(p->k)), least(p->k, PANEL_SEGMENT)) : 0;
    return flat > deep ? flat : deep;
}

static size_t rows_room(const Panel *p)
{
    return p->packed || is_thin(p) ? 0 : room_of_rows(p);
}

/* Columns of so many k that are packed at a time. */
static size_t most_cols(const Panel *p, size_t k)
{
    const size_t most = SLICE_BYTES / sizeof(f32) / (k ? lanes_room(p, MOST_PANEL_WIDTH, k) / MOST_PANEL_WIDTH : 1);
    return most < MOST_PANEL_WIDTH ? MOST_PANEL_WIDTH : most / MOST_PANEL_WIDTH * MOST_PANEL_WIDTH;
}

static size_t slice_cols(const Panel *p, size_t k)
{
    return even_share(p->n, most_cols(p, k), MOST_PANEL_WIDTH);
}

/* Room for them: of fewer k they are more, but not more elements. */
static size_t columns_room(const Panel *p)
{
    const size_t k = least(p->k, BAND_DEPTH), cols = round_up(p->n, MOST_PANEL_WIDTH);
    const size_t most = SLICE_BYTES / sizeof(f32), least_of_all = lanes_room(p, MOST_PANEL_WIDTH, k);
    if (is_thin(p) || p->columns_packed)
        return 0;
    return least(lanes_room(p, cols, k), most < least_of_all ? least_of_all : most);
}

size_t panel_packed(const Panel *p)
{
    return round_up(p->n, MOST_PANEL_WIDTH) * round_up(p->k, MOST_DEPTH);
}

/* Where row k and column j of b are; packed, a panel begins with that column. */
static size_t place_in_b(const PackedLoops *l, const Panel *p, size_t k, size_t j)
{
    if (p->columns_packed)
        return j / l->width * p->ldb + k * l->width;
    return k * p->ldb + j * (p->b_step ? p->b_step : 1);
}

/* Room for a block of sums that are told of and then forgotten. */
static size_t sums_room(const Panel *p)
{
    if (!p->apart && !p->past)
        return 0;
    const bool whole = p->k == 0 || p->k > PANEL_SEGMENT; /* a band is told of in the end */
    return whole ? least(p->m, band_rows(p)) * band_cols(p)
                 : MOST_TOLD_ROWS * least(round_up(p->n, MOST_PANEL_WIDTH), most_cols(p, p->k));
}

size_t panel_room(const Panel *p)
{
    return panel_digits(p->k) * least(p->m, band_rows(p)) * band_cols(p) + sums_room(p) + rows_room(p) +
           columns_room(p);
}

/* Says that some rows and columns of c are done. */
static void tell(const Panel *p, size_t row, size_t rows, size_t col, size_t cols, const void *c, size_t ldc)
{
    const PanelBlock b = { p->row + row, p->col + col, rows, cols, c, ldc };
    if (p->watch)
        p->watch->done(p->watch->user, &b);
}

/* Columns of c are done one after the other where a sum is one segment; else they are when its segments have joined. */
static bool ends_by_columns(const Panel *band)
{
    return band->k > 0 && band->k <= PANEL_SEGMENT && !is_thin(band);
}

static Panel panel_of(const Panel *p, const PanelSide *side)
{
    Panel of = *p;
    of.n = side->n;
    of.ldb = side->ldb;
    of.b_step = side->b_step;
    of.ldc = side->ldc;
    of.col = side->col;
    of.watch = side->watch;
    of.apart = side->c == NULL;
    of.past = side->past;
    return of;
}

/* Whether what is packed of a serves all of them: they are packed for, and a sum is one segment. */
static bool shares_rows(const Panel *p, const PanelSide *sides, size_t n)
{
    bool shares = n > 1 && p->k > 0 && p->k <= PANEL_SEGMENT && !p->packed;
    for (size_t i = 0; i < n && shares; i++) {
        const Panel of = panel_of(p, &sides[i]);
        shares = !is_thin(&of);
    }
    return shares;
}

/* Room for the sums of each of them, one after the other. */
static size_t most_sums(const Panel *p, const PanelSide *sides, size_t n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        const Panel of = panel_of(p, &sides[i]);
        most = sums_room(&of) > most ? sums_room(&of) : most;
    }
    return most;
}

static size_t told_rows(const PackedLoops *l)
{
    return round_up(TOLD_ROWS, l->rows);
}

static size_t packed_depth(const PackedLoops *l, size_t k)
{
    return round_up(k, l->depth);
}

size_t panel_apart(const Kernels *level, size_t k)
{
    const PackedLoops *l = kernels_packed_bf16(level);
    return packed_depth(l, k) * l->width;
}

/* Whether a is multiplied as it lies: its rows begin lines of a cache. */
static bool is_lying(const PackedLoops *l, const Panel *p, const void *a)
{
    enum { LINE = 64 };
    return l->multiply_lying && !p->packed && p->a_step <= 1 && p->k % l->depth == 0 && p->lda % l->depth == 0 &&
           (uintptr_t)a % LINE == 0;
}

/* Some rows of a, packed or as they lie. */
typedef struct Rows {
    const void *at;
    size_t tile; /* elements from tile to tile, or from row to row */
    bool lie;
} Rows;

/* Some rows from row i on against packed columns. */
static void multiply(const PackedLoops *l, const Rows *rows, size_t size, size_t i, size_t m, size_t n, size_t k,
                     const void *columns, void *c, size_t ldc, bool fresh)
{
    const void *at = (const char *)rows->at + (rows->lie ? i : i / l->rows) * rows->tile * size;
    (rows->lie ? l->multiply_lying : l->multiply)(m, n, k, at, rows->tile, columns, c, ldc, fresh);
}

/* Columns that are multiplied at a time: of those that are packed already as many as follow each other. */
static size_t columns_at_once(const PackedLoops *l, const Panel *p)
{
    const bool follow = !p->columns_packed || p->ldb == packed_depth(l, p->k) * l->width;
    return follow ? slice_cols(p, p->k) : l->width;
}

#define SUMS(T)                                                                                                        \
    static void add_left_##T(T *sum, size_t rows, size_t cols, size_t stride, const T *digit)                          \
    {                                                                                                                  \
        for (size_t i = 0; i < rows; i++)                                                                              \
            for (size_t j = 0; j < cols; j++)                                                                          \
                sum[i * stride + j] = digit[i * cols + j] + sum[i * stride + j];                                       \
    }                                                                                                                  \
    void panel_join_##T(T *sum, size_t rows, size_t cols, size_t stride, T *digits, size_t count, bool last)           \
    {                                                                                                                  \
        size_t k = 0;                                                                                                  \
        for (; last ? count >> k != 0 : (count >> k & 1) != 0; k++)                                                    \
            if (count >> k & 1)                                                                                        \
                add_left_##T(sum, rows, cols, stride, digits + k * rows * cols);                                       \
        for (size_t i = 0; !last && i < rows; i++)                                                                     \
            memcpy(digits + (k * rows + i) * cols, sum + i * stride, cols * sizeof(T));                                \
    }                                                                                                                  \
    static void clear_##T(const Panel *p, T *c)                                                                        \
    {                                                                                                                  \
        for (size_t i = 0; i < p->m; i++)                                                                              \
            memset(c + i * p->ldc, 0, p->n * sizeof(T));                                                               \
    }
#define LOOPS_f32(level)  kernels_packed(level, ARITH_F32)
#define LOOPS_f64(level)  kernels_packed(level, ARITH_F64)
#define LOOPS_bf16(level) kernels_packed_bf16(level)
#define THIN_f32          kernels_gemm_f32
#define THIN_f64          kernels_gemm_f64
#define THIN_bf16(...)    ((void)0) /* no product is thin */
#define PAST_f32(...)     ((void)0) /* nor is any written past the caches, but of bf16 */
#define PAST_f64(...)     ((void)0)
#define PAST_bf16(l, ...) (l)->copy_past(__VA_ARGS__)
/* Operands of type T, sums of type S; room for sums is enough for as many operands, which are no wider. */
#define PANEL(N, T, S)                                                                                                 \
    void panel_pack_##N(const Kernels *level, Panel *p, const T *b, T *to)                                             \
    {                                                                                                                  \
        const PackedLoops *l = LOOPS_##N(level);                                                                       \
        const size_t apart = packed_depth(l, p->k) * l->width;                                                         \
        l->pack_columns(p->n, p->k, b, p->ldb, p->b_step ? p->b_step : 1, to, apart);                                  \
        p->columns_packed = true;                                                                                      \
        p->ldb = apart;                                                                                                \
    }                                                                                                                  \
    /* Some k of a segment: fresh, the first ones; last, those after which it is done. */                              \
    static void add_##N(const PackedLoops *l, const Panel *p, const Rows *rows, const T *b, S *c, T *columns, S *sums, \
                        bool fresh, bool last)                                                                         \
    {                                                                                                                  \
        const size_t step = p->b_step ? p->b_step : 1, cols = columns_at_once(l, p);                                   \
        const bool beside = !p->columns_packed && p->m <= FEW_ROWS && step == 1 && l->multiply_beside;                 \
        for (size_t j = 0, n; j < p->n; j += n) {                                                                      \
            n = least(p->n - j, cols);                                                                                 \
            const T *some = b + place_in_b(l, p, 0, j), *packed = p->columns_packed ? some : columns;                  \
            if (beside)                                                                                                \
                l->multiply_beside(p->m, n, p->k, rows->at, rows->tile, some, p->ldb, c + j, p->ldc, fresh, columns);  \
            else if (!p->columns_packed)                                                                               \
                l->pack_columns(n, p->k, some, p->ldb, step, columns, packed_depth(l, p->k) * l->width);               \
            for (size_t i = 0, m; i < p->m; i += m) {                                                                  \
                m = least(p->m - i, told_rows(l));                                                                     \
                S *const to = sums ? sums : c + i * p->ldc + j;                                                        \
                const size_t ldc = sums ? n : p->ldc;                                                                  \
                if (!beside)                                                                                           \
                    multiply(l, rows, sizeof(T), i, m, n, p->k, packed, to, ldc, fresh);                               \
                if (p->past)                                                                                           \
                    PAST_##N(l, m, n, to, ldc, c + i * p->ldc + j, p->ldc);                                            \
                if (last)                                                                                              \
                    tell(p, i, m, j, n, to, ldc);                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* Rows of a band at some k from step k on, packed into `room` unless they are or need not be. */                  \
    static Rows rows_##N(const PackedLoops *l, const Panel *p, const T *a, size_t k, T *room)                          \
    {                                                                                                                  \
        const size_t a_step = p->a_step ? p->a_step : 1;                                                               \
        if (p->packed)                                                                                                 \
            return (Rows){ a + k * l->rows, p->lda, false };                                                           \
        if (is_lying(l, p, a))                                                                                         \
            return (Rows){ a + k, p->lda, true };                                                                      \
        const Rows packed = { room, packed_depth(l, p->k) * l->rows, false };                                          \
        l->pack_rows(p->m, p->k, a + k * a_step, p->lda, a_step, room, packed.tile);                                   \
        return packed;                                                                                                 \
    }                                                                                                                  \
    /* A segment of a band. */                                                                                         \
    static void segment_##N(const PackedLoops *l, const Panel *segment, const T *a, const T *b, S *c, T *room,         \
                            T *columns, S *sums, bool ends)                                                            \
    {                                                                                                                  \
        Panel p = *segment;                                                                                            \
        const size_t depth = even_share(p.k, most_depth(l, &p), l->depth);                                             \
        for (size_t k = 0; k < segment->k; k += p.k) {                                                                 \
            p.k = least(segment->k - k, depth);                                                                        \
            const Rows rows = rows_##N(l, &p, a, k, room);                                                             \
            add_##N(l, &p, &rows, b + place_in_b(l, &p, k, 0), c, columns, sums, k == 0 && !p.onto,                    \
                    ends && k + p.k == segment->k);                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    /* A band, segment by segment. */                                                                                  \
    static void band_##N(const Kernels *level, const Panel *band, const T *a, const T *b, S *c, S *room)               \
    {                                                                                                                  \
        Panel p = *band;                                                                                               \
        const PackedLoops *l = LOOPS_##N(level);                                                                       \
        const size_t a_step = p.packed ? l->rows : p.a_step ? p.a_step : 1;                                            \
        S *const sums = p.apart || p.past ? room + panel_digits(p.k) * p.m * p.n : NULL;                               \
        S *const packed = room + panel_digits(p.k) * p.m * p.n + sums_room(&p);                                        \
        T *rows = (T *)packed, *columns = (T *)(packed + rows_room(&p));                                               \
        const bool by_columns = ends_by_columns(band);                                                                 \
        if (p.apart && !by_columns) {                                                                                  \
            c = sums;                                                                                                  \
            p.ldc = p.n;                                                                                               \
        }                                                                                                              \
        for (size_t k = 0; k == 0 || k < band->k; k += PANEL_SEGMENT) {                                                \
            p.k = least(band->k - k, PANEL_SEGMENT);                                                                   \
            if ((p.k == 0 || is_thin(&p)) && !p.onto)                                                                  \
                clear_##S(&p, c);                                                                                      \
            if (is_thin(&p))                                                                                           \
                THIN_##N(level, p.m, p.n, p.k, a + k, p.lda, b + k * p.ldb, p.ldb, c, p.ldc);                          \
            else                                                                                                       \
                segment_##N(l, &p, a + k * a_step, b + place_in_b(l, &p, k, 0), c, rows, columns,                      \
                            by_columns ? sums : NULL, by_columns);                                                     \
            if (band->k > PANEL_SEGMENT)                                                                               \
                panel_join_##S(c, p.m, p.n, p.ldc, room, k / PANEL_SEGMENT, k + p.k == band->k);                       \
        }                                                                                                              \
        if (!by_columns)                                                                                               \
            tell(band, 0, band->m, 0, band->n, c, p.ldc);                                                              \
    }                                                                                                                  \
    void panel_##N(const Kernels *level, const Panel *p, const T *a, const T *b, S *c, S *room)                        \
    {                                                                                                                  \
        Panel band = *p;                                                                                               \
        const PackedLoops *l = LOOPS_##N(level);                                                                       \
        const size_t rows = rows_of_band(l, p), cols = band_cols(p);                                                   \
        for (size_t i = 0; i < p->m; i += rows)                                                                        \
            for (size_t j = 0; j < p->n; j += cols) {                                                                  \
                band.m = least(p->m - i, rows);                                                                        \
                band.n = least(p->n - j, cols);                                                                        \
                band.row = p->row + i;                                                                                 \
                band.col = p->col + j;                                                                                 \
                band_##N(level, &band, a + (p->packed ? i / l->rows : i) * p->lda, b + place_in_b(l, p, 0, j),         \
                         p->apart ? NULL : c + i * p->ldc + j, room);                                                  \
            }                                                                                                          \
    }
#define SIDES(N, T, S)                                                                                                 \
    /* Some rows of all of them. */                                                                                    \
    static void sides_##N(const PackedLoops *l, const Panel *band, const T *a, const PanelSide *sides, size_t n,       \
                          size_t row, T *rows, T *columns, S *sums)                                                    \
    {                                                                                                                  \
        Panel p = *band;                                                                                               \
        const size_t most = even_share(band->k, most_depth(l, band), l->depth);                                        \
        for (size_t k = 0; k < band->k; k += p.k) {                                                                    \
            p.k = least(band->k - k, most);                                                                            \
            const Rows of_band = rows_##N(l, &p, a, k, rows);                                                          \
            for (size_t i = 0; i < n; i++) {                                                                           \
                const Panel of = panel_of(&p, &sides[i]);                                                              \
                add_##N(l, &of, &of_band, (const T *)sides[i].b + place_in_b(l, &of, k, 0),                            \
                        of.apart ? NULL : (S *)sides[i].c + row * of.ldc, columns, of.apart || of.past ? sums : NULL,  \
                        k == 0, k + of.k == band->k);                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    void panel_sides_##N(const Kernels *level, const Panel *p, const T *a, const PanelSide *sides, size_t n, S *room)  \
    {                                                                                                                  \
        const PackedLoops *l = LOOPS_##N(level);                                                                       \
        Panel band = *p;                                                                                               \
        for (size_t i = 0; i < n; i++)                                                                                 \
            band.apart = band.apart || !sides[i].c || sides[i].past;                                                   \
        for (size_t i = 0; i < n && !shares_rows(p, sides, n); i++) {                                                  \
            const Panel of = panel_of(p, &sides[i]);                                                                   \
            panel_##N(level, &of, a, sides[i].b, sides[i].c, room);                                                    \
        }                                                                                                              \
        const size_t most = rows_of_band(l, &band);                                                                    \
        for (size_t i = 0; i < p->m && shares_rows(p, sides, n); i += most) {                                          \
            band.m = least(p->m - i, most);                                                                            \
            band.row = p->row + i;                                                                                     \
            S *const packed = room + most_sums(p, sides, n);                                                           \
            sides_##N(l, &band, a + i * p->lda, sides, n, i, (T *)packed, (T *)(packed + room_of_rows(p)), room);      \
        }                                                                                                              \
    }
SUMS(f32)
SUMS(f64)
PANEL(f32, f32, f32)
PANEL(f64, f64, f64)
PANEL(bf16, u16, f32)
SIDES(f32, f32, f32)
SIDES(f64, f64, f64)
SIDES(bf16, u16, f32)
#undef SIDES
#undef PANEL
#undef SUMS
