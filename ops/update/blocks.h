/* States of an optimizer in few bits: which elements share a scale, and the way from codes to numbers and back. */
#ifndef OPS_UPDATE_BLOCKS_H
#define OPS_UPDATE_BLOCKS_H

#include "ops/update/update.h"

/* A state as [before, n, after]: blocks are `size` elements along n, `count` of them, the last one perhaps shorter. */
typedef struct Blocks {
    int64_t before, n, after, size, count;
} Blocks;

/* The blocks of `block` elements of a value of type x whose scales have the type `scale`: they lie along the first
 * dimension in which the two differ and along those behind it in which a scale is 1.  False: they do not fit together. */
bool blocks_of(const Type *x, const Type *scale, int64_t block, Blocks *to);

/* Whether a state's type is one of codes, which have a scale. */
bool is_state_code(DType d);

/* Checks the scales of the states; false after a complaint. */
bool infer_state_scales(Infer *q, int n_states);

/* The numbers of state i, and the way back: what is stored, and its scale. */
Node *stored_state_open(Update *u, const Site *s, int i);
Node *stored_state_close(Update *u, const Site *s, int i, Node *x, Node **scale);

/* What an update stores of numbers x (f32) as a state that it calls `name`: codes of that type, and their scales. */
Node *state_rounded(Build *b, const char *name, int64_t block, const Type *type, const Type *of_scale, Node *x,
                    Node **scale);

/* What a state's codes stand for, as the update reads them, in the order of the elements; `name` is what the optimizer
 * calls the state, `block` what the form says. */
void state_numbers(const char *name, int64_t block, const Tensor *codes, const Tensor *scale, float *numbers);

#endif
