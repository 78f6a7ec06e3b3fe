/* What a call of `transpose` does to axes, for who looks at graphs. */
#ifndef OPS_MOVE_TRANSPOSED_H
#define OPS_MOVE_TRANSPOSED_H

#include "ir/build.h"

/* The axis of the operand that axis `i` of the result is. */
int transpose_source(const Node *n, int i);

/* Whether a call, of a known rank, exchanges axis `first` and the next one, and keeps the others. */
bool transpose_swaps(const Node *n, int first);

/* What a transpose of a transpose gives, by one; by none where the axes are back. */
Node *transpose_joined(Build *b, const Node *second);

#endif
