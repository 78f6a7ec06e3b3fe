/* How reductions, running results and choices along an axis walk their operand. */
#ifndef OPS_FOLD_FOLD_ACCESS_H
#define OPS_FOLD_FOLD_ACCESS_H

#include "ops/card/access.h"
#include "ops/card/reduction.h"

/* Axes as a mask, with what no axes mean. */
uint32_t reduce_mask(const ReduceAttr *at, int rank, int64_t n, const int64_t *axes);

bool iterate_reduce(const Node *n, Arena *arena, Iteration *to);
bool iterate_arg(const Node *n, Arena *arena, Iteration *to);
bool iterate_hardmax(const Node *n, Arena *arena, Iteration *to);
bool iterate_top_k(const Node *n, Arena *arena, Iteration *to);
bool iterate_cumulate(const Node *n, Arena *arena, Iteration *to);

#endif
