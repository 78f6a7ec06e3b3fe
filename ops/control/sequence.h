/* What the cards about sequences and optionals share. */
#ifndef OPS_CONTROL_SEQUENCE_H
#define OPS_CONTROL_SEQUENCE_H

#include "ops/card/cards.h"

/* The element type of the sequence that operand i is; null with a complaint. */
const Type *infer_sequence(Infer *q, int i);

/* The sequence that operand i is, where its value is known; null otherwise. */
const Tensor *infer_sequence_value(const Infer *q, int i);

/* Makes a sequence or optional over n items result i. */
void eval_give_group(Eval *e, int i, const Type *type, size_t n, Tensor *const *items);

/* The least type that holds all items; `none` for no items; null when they cannot stand in one sequence. */
const Type *items_type(Types *types, size_t n, Tensor *const *items, const Type *none);

#endif
