/* Where a grid looks along one axis of its data, for the host and for kernels (the common subset of C11 and CUDA C++). */
#ifndef OPS_SAMPLE_GRID_LOOK_H
#define OPS_SAMPLE_GRID_LOOK_H

#ifndef __CUDACC__ /* host */
#include "ops/scalar.h"
#endif /* host */

typedef enum GridMode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } GridMode;
typedef enum GridPadding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } GridPadding;

typedef struct GridAttr {
    int mode, padding_mode;
    bool align_corners;
} GridAttr;

enum { GRID_TAPS = 4 }; /* neighbours along an axis, most */

Q_FN int grid_taps(int mode)
{
    return mode == GRID_LINEAR ? 2 : GRID_TAPS;
}

/* In the arithmetic T:
 *
 *     grid_reflect     x reflected between lo and hi as often as needed; *slope is the sign that x then has
 *     grid_coordinate  the normalized coordinate v on an axis of n elements, brought back as the padding says; NaN is outside.
 *                      *slope is how fast it moves with v
 *     grid_element     the element that stands for position x (an integer); -1: none
 *     grid_neighbours  those of x along one axis, as offsets into an image (-1: none), and their weights
 *     grid_slopes      how fast these weights move with the coordinate, which lies `d` from the neighbour before it
 *     grid_centre      the middle of element i of n in [-1, 1]; with corners aligned the first is -1 and the last 1 */
#define GRID_LOOK(T)                                                                                                   \
    Q_FN T grid_reflect_##T(T x, T lo, T hi, T *slope)                                                                 \
    {                                                                                                                  \
        const T size = hi - lo;                                                                                        \
        *slope = 0;                                                                                                    \
        if (!(size > 0))                                                                                               \
            return lo;                                                                                                 \
        const T from = x < lo ? lo - x : x - hi, turns = floor_##T(from / size), rest = from - turns * size;           \
        const bool even = turns - 2 * floor_##T(turns / 2) == 0;                                                       \
        *slope = (T)(even ? -1 : 1);                                                                                   \
        return (x < lo) == even ? lo + rest : hi - rest;                                                               \
    }                                                                                                                  \
    Q_FN T grid_lowest_##T(GridAttr at)                                                                                \
    {                                                                                                                  \
        return at.align_corners ? 0 : (T)-0.5;                                                                         \
    }                                                                                                                  \
    Q_FN T grid_highest_##T(GridAttr at, i64 n)                                                                        \
    {                                                                                                                  \
        return at.align_corners ? (T)n - 1 : (T)n - (T)0.5;                                                            \
    }                                                                                                                  \
    Q_FN T grid_coordinate_##T(GridAttr at, T v, i64 n, T *slope)                                                      \
    {                                                                                                                  \
        const T size = (T)n, lo = grid_lowest_##T(at), hi = grid_highest_##T(at, n),                                   \
                scale = at.align_corners ? size - 1 : size;                                                            \
        T x = at.align_corners ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;                                  \
        *slope = x == x ? scale / 2 : 0;                                                                               \
        if (at.mode == GRID_NEAREST)                                                                                   \
            x = rint_##T(x);                                                                                           \
        if (at.padding_mode == GRID_ZEROS)                                                                             \
            return x == x ? x : -8;                                                                                    \
        if (x >= lo && x <= hi)                                                                                        \
            return x;                                                                                                  \
        *slope = 0;                                                                                                    \
        if (at.padding_mode == GRID_BORDER)                                                                            \
            return x > 0 ? x < size - 1 ? x : size - 1 : 0;                                                            \
        if (x - x != 0)                                                                                                \
            return 0;                                                                                                  \
        x = grid_reflect_##T(x, lo, hi, slope);                                                                        \
        *slope *= scale / 2;                                                                                           \
        return x;                                                                                                      \
    }                                                                                                                  \
    Q_FN i64 grid_element_##T(GridAttr at, T x, i64 n)                                                                 \
    {                                                                                                                  \
        const T last = (T)n - 1;                                                                                       \
        T slope;                                                                                                       \
        if (x >= 0 && x <= last)                                                                                       \
            return (i64)x;                                                                                             \
        if (at.padding_mode == GRID_ZEROS)                                                                             \
            return -1;                                                                                                 \
        if (at.padding_mode == GRID_REFLECTION)                                                                        \
            x = trunc_##T(grid_reflect_##T(x, grid_lowest_##T(at), grid_highest_##T(at, n), &slope));                  \
        return x > 0 ? x < last ? (i64)x : n - 1 : 0;                                                                  \
    }                                                                                                                  \
    Q_FN void grid_neighbours_##T(GridAttr at, T x, i64 n, i64 stride, i64 *offset, T *w)                              \
    {                                                                                                                  \
        const T first = floor_##T(x), d = x - first, a = (T)-0.75, e = 1 - d;                                          \
        const int taps = grid_taps(at.mode), before = at.mode == GRID_LINEAR ? 0 : 1;                                  \
        if (at.mode == GRID_LINEAR) {                                                                                  \
            w[0] = e;                                                                                                  \
            w[1] = d;                                                                                                  \
        } else {                                                                                                       \
            w[0] = ((a * (d + 1) - 5 * a) * (d + 1) + 8 * a) * (d + 1) - 4 * a;                                        \
            w[1] = ((a + 2) * d - (a + 3)) * d * d + 1;                                                                \
            w[2] = ((a + 2) * e - (a + 3)) * e * e + 1;                                                                \
            w[3] = ((a * (e + 1) - 5 * a) * (e + 1) + 8 * a) * (e + 1) - 4 * a;                                        \
        }                                                                                                              \
        for (int i = 0; i < taps; i++) {                                                                               \
            const i64 at_i = grid_element_##T(at, first + (T)(i - before), n);                                         \
            offset[i] = at_i < 0 ? -1 : at_i * stride;                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    Q_FN void grid_slopes_##T(GridAttr at, T d, T slope, T *w)                                                         \
    {                                                                                                                  \
        const T a = (T)-0.75, e = 1 - d, f = d + 1, g = e + 1;                                                         \
        if (at.mode == GRID_LINEAR) {                                                                                  \
            w[0] = -slope;                                                                                             \
            w[1] = slope;                                                                                              \
            return;                                                                                                    \
        }                                                                                                              \
        w[0] = ((3 * a * f - 10 * a) * f + 8 * a) * slope;                                                             \
        w[1] = (3 * (a + 2) * d - 2 * (a + 3)) * d * slope;                                                            \
        w[2] = -(3 * (a + 2) * e - 2 * (a + 3)) * e * slope;                                                           \
        w[3] = -((3 * a * g - 10 * a) * g + 8 * a) * slope;                                                            \
    }                                                                                                                  \
    Q_FN T grid_centre_##T(bool corners, i64 i, i64 n)                                                                 \
    {                                                                                                                  \
        if (corners)                                                                                                   \
            return n > 1 ? (T)(2 * i - (n - 1)) / (T)(n - 1) : -1;                                                     \
        return (T)(2 * i + 1 - n) / (T)n;                                                                              \
    }
GRID_LOOK(f32)
GRID_LOOK(f64)
#undef GRID_LOOK

#endif
