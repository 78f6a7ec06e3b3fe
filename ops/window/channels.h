/* What reaches the weights of convolutions by ways of their own.  Convolutions whose groups are a channel or two: each channel's sums stand for themselves, so they run in the lanes of
 * vectors, or along flat planes, and not as products.  The order of each sum is the one its card states. */
#ifndef OPS_WINDOW_CHANNELS_H
#define OPS_WINDOW_CHANNELS_H

#include "ops/window/window.h"

/* What reaches the weights of a convolution, from x [images, groups * channels, in..] and dy [images, groups * results,
 * out..]; false: it is none of these, and nothing was done. */
bool channel_weights(Eval *e, const Window *w, int64_t groups, const Type *x, const Type *dy);

/* The same of operands in bf16 that are multiplied as they lie; false: the engine may not, the machine cannot, or they are of
 * other types or empty. */
bool word_weights(Eval *e, const Window *w, int64_t groups, const Type *x, const Type *dy);

/* Whether groups are so small that channel_weights takes them, if nothing else is against it. */
bool channels_are_few(int64_t groups, int64_t channels, int64_t results);

#endif
