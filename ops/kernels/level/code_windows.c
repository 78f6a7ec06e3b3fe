/* The largest code of every window, as a key that says where it is, or alone: rows of a window first, for all columns of the data,
 * then its columns. */
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

/* ---- alone ---- */

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The largest of some rows, ordered as numbers without a sign. */
static void largest_rows(size_t rows, size_t n, size_t width, u8 flip, const uint8_t *restrict x, uint8_t *restrict to)
{
    if (rows == 3) { /* as most pools have */
        const uint8_t *restrict second = x + width, *restrict third = second + width;
        for (size_t i = 0; i < n; i++) {
            const u8 a = x[i] ^ flip, b = second[i] ^ flip, c = third[i] ^ flip, best = b > a ? b : a;
            to[i] = c > best ? c : best;
        }
        return;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = x[i] ^ flip;
    for (size_t k = 1; k < rows; k++) {
        x += width;
        for (size_t i = 0; i < n; i++) {
            const u8 code = x[i] ^ flip;
            to[i] = code > to[i] ? code : to[i];
        }
    }
}

/* Where steps are of two, two neighbours are a word of 16 bits. */
static void largest_columns(size_t n, size_t kernel, size_t stride, u8 flip, const u16 *restrict line,
                            uint8_t *restrict to)
{
    enum { LOW = 0xff, BITS = 8 };
    const uint8_t *from = (const uint8_t *)line;
    if (stride == 2 && (kernel == 2 || kernel == 3)) {
        const size_t next = kernel - 2;
        for (size_t i = 0; i < n; i++) {
            const u16 a = line[i] & LOW, b = line[i] >> BITS, c = line[i + next] & LOW, best = b > a ? b : a;
            to[i] = (u8)((c > best ? c : best) ^ flip);
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        u8 best = from[i * stride];
        for (size_t k = 1; k < kernel; k++)
            best = from[i * stride + k] > best ? from[i * stride + k] : best;
        to[i] = best ^ flip;
    }
}

void LEVEL_NAME(largest_codes)(const LargestCodes *l, const uint8_t *x, u16 *room, uint8_t *to)
{
    const CodeWindows *w = &l->windows;
    const size_t reach = (w->cols - 1) * w->col_stride + w->kernel_cols;
    const size_t before = less(l->before_cols, reach), n = less(w->width, reach - before);
    uint8_t *line = (uint8_t *)room;
    for (size_t i = 0; i < reach + 2; i++)
        line[i] = 0;
    for (size_t r = 0; r < w->rows; r++, to += w->cols) {
        const size_t at = r * w->row_stride, first = at > l->before_rows ? at - l->before_rows : 0;
        const size_t end = less(at + w->kernel_rows - l->before_rows, l->height);
        largest_rows(end - first, n, w->width, w->flip, x + first * w->width, line + before);
        largest_columns(w->cols, w->kernel_cols, w->col_stride, w->flip, room, to);
    }
}
