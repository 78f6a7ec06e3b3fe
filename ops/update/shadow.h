/* Weights that are read narrow: beside the master, a state of f32 called NAME, stands its shadow, the state
 * of the role shadow, of NAME (called qcc.shadow/NAME), f16 or bf16, whose value is always the master's, rounded.  A shadow has no initial value of its own
 * and is in no checkpoint: whoever gives states their values fills it. */
#ifndef OPS_UPDATE_SHADOW_H
#define OPS_UPDATE_SHADOW_H

#include "ir/tensor.h"

/* Rounds a master, to nearest even, into its shadow, a tensor of the same shape. */
void shadow_fill(Tensor *shadow, const Tensor *master);

#endif
