/* How products walk their operands. */
#ifndef OPS_CONTRACT_CONTRACT_ACCESS_H
#define OPS_CONTRACT_CONTRACT_ACCESS_H

#include "ops/card/access.h"

bool iterate_matmul(const Node *n, Arena *arena, Iteration *to);
bool iterate_accumulate(const Node *n, Arena *arena, Iteration *to);

/* A matrix at a time: the last two axes are folded, the others kept. */
bool iterate_matrices(const Node *n, Arena *arena, Iteration *to);

#endif
