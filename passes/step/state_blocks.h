/* Which parameters have states in few bits, and which elements of them share a scale. */
#ifndef PASSES_STEP_STATE_BLOCKS_H
#define PASSES_STEP_STATE_BLOCKS_H

#include "passes/recipe/groups.h"

/* The codes in which the states of a parameter are kept, and how many share a scale at most; false: they are floats. */
bool state_codes_of(const OptimizerGroup *group, const Node *x, DType *code, int64_t *block);

/* How the trained states of a graph lie: of each the dimensions that are one output channel (passes/step/state_blocks.c). */
typedef struct StateBlocks {
    Facts channels;
} StateBlocks;

StateBlocks state_blocks_find(Graph *g, Arena *arena);

/* The type of the scales of a state of that parameter: blocks lie within a channel, or, where channels are shorter than 32
 * and where there are none, are consecutive elements. */
const Type *state_scale_type(StateBlocks *blocks, const Node *x, int64_t block);

#endif
