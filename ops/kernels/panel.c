#include "ops/kernels/panel.h"

#include <string.h>

enum {
    BAND_ROWS = 240,  /* of c that are summed together: whole tiles */
    BAND_COLS = 512,  /* with the block of b that meets them they stay in a second-level cache */
    BAND_DEPTH = 256, /* of k that is packed at a time: a panel of b and a tile of a stay in a first-level cache */
    FEW_ROWS = 24,    /* are not worth packing b for */
    THIN_ROWS = 2,    /* or anything */
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
    return p->m <= THIN_ROWS && p->a_step <= 1 && p->b_step <= 1 && !p->packed;
}

/* Room for the rows that are packed at a time. */
static size_t rows_room(const Panel *p)
{
    return p->packed || is_thin(p) ? 0 : round_up(least(p->m, BAND_ROWS), MOST_TILE_ROWS) * least(p->k, BAND_DEPTH);
}

static size_t columns_room(const Panel *p)
{
    return is_thin(p) ? 0 : round_up(least(p->n, BAND_COLS), MOST_PANEL_WIDTH) * least(p->k, BAND_DEPTH);
}

size_t panel_room(const Panel *p)
{
    return panel_digits(p->k) * least(p->m, BAND_ROWS) * least(p->n, BAND_COLS) + rows_room(p) + columns_room(p);
}

#define PANEL(T)                                                                                                       \
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
    /* c += a b, where c is a band. */                                                                                 \
    static void add_##T(const PackedLoops *l, const Panel *p, const T *a, const T *b, T *c, T *rows, T *columns)       \
    {                                                                                                                  \
        const size_t step = p->b_step ? p->b_step : 1, a_step = p->a_step ? p->a_step : 1;                             \
        for (size_t k = 0, n; k < p->k; k += n) {                                                                      \
            n = least(p->k - k, BAND_DEPTH);                                                                           \
            const T *tiles = p->packed ? a + k * l->rows : rows;                                                       \
            const size_t tile = p->packed ? p->lda : n * l->rows;                                                      \
            if (!p->packed)                                                                                            \
                l->pack_rows(p->m, n, a + k * a_step, p->lda, a_step, rows, tile);                                     \
            if (p->m <= FEW_ROWS && step == 1) {                                                                       \
                l->multiply_beside(p->m, p->n, n, tiles, tile, b + k * p->ldb, p->ldb, c, p->ldc, columns);            \
                continue;                                                                                              \
            }                                                                                                          \
            l->pack_columns(p->n, n, b + k * p->ldb, p->ldb, step, columns, n * l->width);                             \
            l->multiply(p->m, p->n, n, tiles, tile, columns, c, p->ldc);                                               \
        }                                                                                                              \
    }                                                                                                                  \
    /* A band, segment by segment. */                                                                                  \
    static void band_##T(const Kernels *level, const Panel *band, const T *a, const T *b, T *c, T *room)               \
    {                                                                                                                  \
        Panel p = *band;                                                                                               \
        const PackedLoops *l = kernels_packed(level, sizeof(T) == sizeof(f64) ? ARITH_F64 : ARITH_F32);                \
        const size_t a_step = p.packed ? l->rows : p.a_step ? p.a_step : 1;                                            \
        T *rows = room + panel_digits(p.k) * p.m * p.n, *columns = rows + rows_room(&p);                               \
        for (size_t k = 0; k == 0 || k < band->k; k += PANEL_SEGMENT) {                                                \
            p.k = least(band->k - k, PANEL_SEGMENT);                                                                   \
            for (size_t i = 0; i < p.m; i++)                                                                           \
                memset(c + i * p.ldc, 0, p.n * sizeof(T));                                                             \
            if (is_thin(&p))                                                                                           \
                kernels_gemm_##T(level, p.m, p.n, p.k, a + k, p.lda, b + k * p.ldb, p.ldb, c, p.ldc);                  \
            else                                                                                                       \
                add_##T(l, &p, a + k * a_step, b + k * p.ldb, c, rows, columns);                                       \
            if (band->k > PANEL_SEGMENT)                                                                               \
                panel_join_##T(c, p.m, p.n, p.ldc, room, k / PANEL_SEGMENT, k + p.k == band->k);                       \
        }                                                                                                              \
    }                                                                                                                  \
    void panel_##T(const Kernels *level, const Panel *p, const T *a, const T *b, T *c, T *room)                        \
    {                                                                                                                  \
        Panel band = *p;                                                                                               \
        const size_t b_step = p->b_step ? p->b_step : 1;                                                               \
        const PackedLoops *l = kernels_packed(level, sizeof(T) == sizeof(f64) ? ARITH_F64 : ARITH_F32);                \
        for (size_t i = 0; i < p->m; i += BAND_ROWS)                                                                   \
            for (size_t j = 0; j < p->n; j += BAND_COLS) {                                                             \
                band.m = least(p->m - i, BAND_ROWS);                                                                   \
                band.n = least(p->n - j, BAND_COLS);                                                                   \
                band_##T(level, &band, a + (p->packed ? i / l->rows : i) * p->lda, b + j * b_step, c + i * p->ldc + j, \
                         room);                                                                                        \
            }                                                                                                          \
    }
PANEL(f32)
PANEL(f64)
#undef PANEL
