/* The largest code of every window: rows of a window first, for all columns of the data, then its columns. */
#include "ops/kernels/level/level.h"

enum { LAST_TAP = 255 };

/* Keys of the columns of one row of windows. */
static void rows_of(const CodeWindows *w, const uint8_t *restrict x, u16 *restrict to)
{
    for (size_t i = 0; i < w->width; i++)
        to[i] = (u16)((u32)(x[i] ^ w->flip) << 8 | LAST_TAP);
    for (size_t k = 1; k < w->kernel_rows; k++) {
        const u32 tap = LAST_TAP - (u32)(k * w->kernel_cols);
        x += w->width;
        for (size_t i = 0; i < w->width; i++) {
            const u16 key = (u16)((u32)(x[i] ^ w->flip) << 8 | tap);
            to[i] = key > to[i] ? key : to[i];
        }
    }
}

#define COLUMNS(stride)                                                                                                \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        u16 best = from[i * (stride)];                                                                                 \
        for (size_t k = 1; k < kernel; k++) {                                                                          \
            const u16 key = (u16)(from[i * (stride) + k] - k);                                                         \
            best = key > best ? key : best;                                                                            \
        }                                                                                                              \
        to[i] = best;                                                                                                  \
    }
static void columns_of(size_t n, size_t kernel, size_t stride, const u16 *restrict from, u16 *restrict to)
{
    if (kernel == 2 && stride == 2) {
        for (size_t i = 0; i < n; i++) {
            const u16 first = from[2 * i], second = (u16)(from[2 * i + 1] - 1);
            to[i] = second > first ? second : first;
        }
    } else if (kernel == 3 && stride == 2) {
        for (size_t i = 0; i < n; i++) {
            const u16 first = from[2 * i], second = (u16)(from[2 * i + 1] - 1), third = (u16)(from[2 * i + 2] - 2);
            const u16 best = second > first ? second : first;
            to[i] = third > best ? third : best;
        }
    } else if (stride == 1) {
        COLUMNS(1)
    } else {
        COLUMNS(stride)
    }
}
#undef COLUMNS

void LEVEL_NAME(code_windows)(const CodeWindows *w, const uint8_t *x, u16 *room, u16 *keys)
{
    for (size_t r = 0; r < w->rows; r++)
        rows_of(w, x + r * w->row_stride * w->width, room + r * w->width);
    if (w->width == w->cols * w->col_stride && w->kernel_cols <= w->col_stride) {
        columns_of(w->rows * w->cols, w->kernel_cols, w->col_stride, room, keys);
        return;
    }
    for (size_t r = 0; r < w->rows; r++)
        columns_of(w->cols, w->kernel_cols, w->col_stride, room + r * w->width, keys + r * w->cols);
}
