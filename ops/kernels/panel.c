#include "ops/kernels/panel.h"

#include <string.h>

enum {
    BAND_ROWS = 48,   /* of c that are summed together where there are several segments: a whole number of tiles */
    BAND_COLS = 1024, /* what packing a for them costs is little, and they stay in a second-level cache */
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

size_t panel_room(const Panel *p)
{
    return panel_digits(p->k) * least(p->m, BAND_ROWS) * least(p->n, BAND_COLS);
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
    /* One segment, or none. */                                                                                        \
    static void segment_##T(const Kernels *level, const Panel *p, const T *a, const T *b, T *c)                        \
    {                                                                                                                  \
        for (size_t i = 0; p->n && i < p->m; i++)                                                                      \
            memset(c + i * p->ldc, 0, p->n * sizeof(T));                                                               \
        kernels_gemm_##T(level, p->m, p->n, p->k, a, p->lda, b, p->ldb, c, p->ldc);                                    \
    }                                                                                                                  \
    static void band_##T(const Kernels *level, const Panel *band, const T *a, const T *b, T *c, T *room)               \
    {                                                                                                                  \
        Panel p = *band;                                                                                               \
        for (size_t k = 0; k < band->k; k += PANEL_SEGMENT) {                                                          \
            p.k = least(band->k - k, PANEL_SEGMENT);                                                                   \
            segment_##T(level, &p, a + k, b + k * p.ldb, c);                                                           \
            panel_join_##T(c, p.m, p.n, p.ldc, room, k / PANEL_SEGMENT, k + p.k == band->k);                           \
        }                                                                                                              \
    }                                                                                                                  \
    void panel_##T(const Kernels *level, const Panel *p, const T *a, const T *b, T *c, T *room)                        \
    {                                                                                                                  \
        if (p->k <= PANEL_SEGMENT) {                                                                                   \
            segment_##T(level, p, a, b, c);                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
        Panel band = *p;                                                                                               \
        for (size_t i = 0; i < p->m; i += BAND_ROWS)                                                                   \
            for (size_t j = 0; j < p->n; j += BAND_COLS) {                                                             \
                band.m = least(p->m - i, BAND_ROWS);                                                                   \
                band.n = least(p->n - j, BAND_COLS);                                                                   \
                band_##T(level, &band, a + i * p->lda, b + j, c + i * p->ldc + j, room);                               \
            }                                                                                                          \
    }
PANEL(f32)
PANEL(f64)
#undef PANEL
