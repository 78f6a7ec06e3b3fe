/* Convolutions whose groups are a channel or two: each channel's sums stand for themselves, so they run in the lanes of
 * vectors, or along flat planes, and not as products.  The order of each sum is the one its card states. */
#ifndef OPS_WINDOW_CHANNELS_H
#define OPS_WINDOW_CHANNELS_H

#include "ops/window/window.h"

/* What reaches the weights of a convolution, from x [images, groups * channels, in..] and dy [images, groups * results,
 * out..]; false: it is none of these, and nothing was done. */
bool channel_weights(Eval *e, const Window *w, int64_t groups, const Type *x, const Type *dy);

#endif
