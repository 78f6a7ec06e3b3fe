#include "ops/window/pool_codes.h"

enum { MOST_TAPS = 256 };

bool pool_codes_serve(const Window *w, DType d)
{
    bool inside = w->rank == 2 && (d == U8 || d == I8) && w->kernel[0] * w->kernel[1] <= MOST_TAPS;
    for (int i = 0; i < w->rank && inside; i++)
        inside = w->begin[i] == 0 && w->dilation[i] == 1 && w->out[i] > 0 &&
                 (w->out[i] - 1) * w->stride[i] + w->kernel[i] <= w->in[i];
    return inside;
}

size_t pool_codes_room(const Window *w)
{
    return (size_t)(w->out[0] * (w->in[1] + w->out[1]));
}

/* A key orders as the code does, and of equals the first tap is the largest. */
static const u16 *keys_of(const Kernels *level, const Window *w, DType d, const uint8_t *x, u16 *room)
{
    const CodeWindows c = { .rows = (size_t)w->out[0],
                            .cols = (size_t)w->out[1],
                            .kernel_rows = (size_t)w->kernel[0],
                            .kernel_cols = (size_t)w->kernel[1],
                            .row_stride = (size_t)w->stride[0],
                            .col_stride = (size_t)w->stride[1],
                            .width = (size_t)w->in[1],
                            .flip = d == I8 ? 0x80 : 0 };
    u16 *keys = room + w->out[0] * w->in[1];
    kernels_code_windows(level)(&c, x, room, keys);
    return keys;
}

void pool_codes_plane(const Kernels *level, const Window *w, DType d, const uint8_t *x, uint8_t *y, u16 *room)
{
    const u16 *keys = keys_of(level, w, d, x, room);
    const u16 flip = d == I8 ? 0x80 : 0;
    for (int64_t i = 0, n = w->out[0] * w->out[1]; i < n; i++)
        y[i] = (uint8_t)(keys[i] >> 8 ^ flip);
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
