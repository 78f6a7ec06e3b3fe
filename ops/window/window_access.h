/* How convolutions and pools walk their operands. */
#ifndef OPS_WINDOW_WINDOW_ACCESS_H
#define OPS_WINDOW_WINDOW_ACCESS_H

#include "ops/card/access.h"
#include "ops/window/window.h"

bool iterate_conv(const Node *n, Arena *arena, Iteration *to);
bool iterate_qlinear_conv(const Node *n, Arena *arena, Iteration *to);
bool iterate_conv_transpose(const Node *n, Arena *arena, Iteration *to);
bool iterate_conv_weight_grad(const Node *n, Arena *arena, Iteration *to);
bool iterate_conv_integer(const Node *n, Arena *arena, Iteration *to);
bool iterate_max_pool(const Node *n, Arena *arena, Iteration *to);
bool iterate_mean_pool(const Node *n, Arena *arena, Iteration *to);

#endif
