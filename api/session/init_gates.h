/* Weights of recurrent layers in other programs: each direction and both biases apart, gates in another order. */
#ifndef API_SESSION_INIT_GATES_H
#define API_SESSION_INIT_GATES_H

#include "ir/graph.h"
#include "runtime/checkpoint/checkpoint.h"

/* The recurrent layer that reads a state or parameter as its weights W or R, or as its biases B; null: none does. */
const Node *gates_reader(const Node *n);

/* The tensors of PyTorch's module that a state holds, `label` being their names with + between; null: that is not said, or
 * not sure. */
const StateGates *gates_pieces(Ir *ir, Arena *arena, const Node *n, const char *label);

#endif
