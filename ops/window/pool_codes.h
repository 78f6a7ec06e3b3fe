/* The largest of windows over codes of 8 bits, a channel at a time. */
#ifndef OPS_WINDOW_POOL_CODES_H
#define OPS_WINDOW_POOL_CODES_H

#include "ops/card/cards.h"
#include "ops/window/window.h"

/* Whether max_pool over such data may be done so: every window sees some, and (`inside`) none reaches beyond it. */
bool pool_codes_serve(const Window *w, DType d, bool inside);

/* How many channels, one behind the other, are best pooled as one that is so much higher: more than 1 where no window sees two. */
int64_t pool_codes_stacked(const Window *w);

/* Elements of u16 that the keys of one channel take, and what is worked in. */
size_t pool_codes_room(const Window *w);

/* y: the largest codes of one channel x. */
void pool_codes_plane(const Kernels *level, const Window *w, DType d, const uint8_t *x, uint8_t *y, u16 *room);

/* Adds what reaches each window to where its largest code stands, the first of equals. */
void pool_codes_grad(const Kernels *level, const Window *w, DType d, const uint8_t *x, const f32 *dy, f32 *dx,
                     u16 *room);

#endif
