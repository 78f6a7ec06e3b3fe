/* What planes (ops/window/planes.h) and the results that several of them make together share. */
#ifndef OPS_WINDOW_PLANE_PARTS_H
#define OPS_WINDOW_PLANE_PARTS_H

#include <string.h>

#include "ops/window/planes.h"

/* What a worker works in. */
typedef struct PlaneRoom {
    size_t *at; /* where in the planes (tap, channel) stands */
    f32 *weights, *planes, *sums;
    f32 *data, *taken; /* a channel that is loaded; results on their way to who takes them */
} PlaneRoom;

/* The place of every tap of every channel. */
void planes_place_taps(const Correlation *c, size_t *at);

/* The planes of a group, the first channel of which is number `plane` of all, at some lines of positions. */
void planes_fill(const Correlation *c, int64_t plane, int64_t first, int64_t lines, const PlaneRoom *room);

/* A few elements, without a call. */
static inline void plane_copy(f32 *to, const f32 *from, int64_t n)
{
    enum { MANY = 256, SOME = 8, HALF = 4, PAIR = 2 };
    if (n >= MANY) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    for (; n >= SOME; n -= SOME, to += SOME, from += SOME)
        memcpy(to, from, SOME * sizeof *to);
    if (n & HALF)
        memcpy(to, from, HALF * sizeof *to), to += HALF, from += HALF;
    if (n & PAIR)
        memcpy(to, from, PAIR * sizeof *to), to += PAIR, from += PAIR;
    if (n & 1)
        *to = *from;
}

#endif
