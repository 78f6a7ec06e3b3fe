#include "ops/window/pool_codes.h"

enum { MOST_TAPS = 256, MOST_PADDED = 1 << 20 };

/* As far as windows see along dimension i. */
static int64_t extent(const Window *w, int i)
{
    return (w->out[i] - 1) * w->stride[i] + w->kernel[i];
}

static bool is_inside(const Window *w, int i)
{
    return w->begin[i] == 0 && extent(w, i) <= w->in[i];
}

/* The first window and the last one see data. */
static bool sees_data(const Window *w, int i)
{
    return w->begin[i] >= 0 && w->begin[i] < w->kernel[i] && (w->out[i] - 1) * w->stride[i] < w->begin[i] + w->in[i];
}

bool pool_codes_serve(const Window *w, DType d, bool inside)
{
    bool serves = w->rank == 2 && (d == U8 || d == I8) && w->kernel[0] <= MOST_TAPS && w->kernel[1] <= MOST_TAPS &&
                  w->kernel[0] * w->kernel[1] <= MOST_TAPS;
    for (int i = 0; i < w->rank && serves; i++)
        serves = w->dilation[i] == 1 && w->out[i] > 0 &&
                 (is_inside(w, i) || (!inside && sees_data(w, i) && extent(w, i) <= MOST_PADDED));
    return serves;
}

int64_t pool_codes_stacked(const Window *w)
{
    enum { MOST_KEYS = 1 << 13 }; /* which stay in a first-level cache */
    const int64_t keys = w->out[0] * (w->in[1] + w->out[1]);
    const bool parts =
        is_inside(w, 0) && is_inside(w, 1) && w->in[0] == w->out[0] * w->stride[0] && w->kernel[0] <= w->stride[0];
    return parts && keys < MOST_KEYS ? MOST_KEYS / keys : 1;
}

size_t pool_codes_room(const Window *w)
{
    return (size_t)(w->out[0] * (w->in[1] + w->out[1]) + extent(w, 1) / 2 + 2);
}

static CodeWindows windows_of(const Window *w, DType d)
{
    return (CodeWindows){ .rows = (size_t)w->out[0],
                          .cols = (size_t)w->out[1],
                          .kernel_rows = (size_t)w->kernel[0],
                          .kernel_cols = (size_t)w->kernel[1],
                          .row_stride = (size_t)w->stride[0],
                          .col_stride = (size_t)w->stride[1],
                          .width = (size_t)w->in[1],
                          .flip = d == I8 ? 0x80 : 0 };
}

/* A key orders as the code does, and of equals the first tap is the largest. */
static const u16 *keys_of(const Kernels *level, const Window *w, DType d, const uint8_t *x, u16 *room)
{
    const CodeWindows c = windows_of(w, d);
    u16 *keys = room + w->out[0] * w->in[1];
    kernels_code_windows(level)(&c, x, room, keys);
    return keys;
}

void pool_codes_plane(const Kernels *level, const Window *w, DType d, const uint8_t *x, uint8_t *y, u16 *room)
{
    const LargestCodes l = { .windows = windows_of(w, d),
                             .height = (size_t)w->in[0],
                             .before_rows = (size_t)w->begin[0],
                             .before_cols = (size_t)w->begin[1] };
    kernels_largest_codes(level)(&l, x, room, y);
}

void pool_codes_grad(const Kernels *level, const Window *w, DType d, const uint8_t *x, const f32 *dy, f32 *dx,
                     u16 *room)
{
    int64_t tap[MOST_TAPS];
    for (int64_t k = 0; k < w->kernel[0] * w->kernel[1]; k++)
        tap[MOST_TAPS - 1 - k] = k / w->kernel[1] * w->in[1] + k % w->kernel[1];
    const u16 *key = keys_of(level, w, d, x, room);
    for (int64_t r = 0; r < w->out[0]; r++, dx += w->stride[0] * w->in[1])
        for (int64_t c = 0; c < w->out[1]; c++)
            dx[c * w->stride[1] + tap[*key++ & 0xff]] += *dy++;
}
