/* Which elements of a value share a scale. */
#ifndef PASSES_QUANT_GRAIN_H
#define PASSES_QUANT_GRAIN_H

#include "passes/codes/blocks.h"
#include "passes/quant/placement.h"

/* The dimension of an operand along which a call adds up its products; QUANT_WHOLE where there is none, or where nobody
 * knows. */
int quant_sum_axis(const Node *call, int operand);

/* Whether scales change along that dimension, so that sums of products of codes have no one scale. */
bool quant_splits_sums(const Quantizer *q);

/* Whether a quantizer has a scale for each row: of what a product adds up along it. */
bool quant_has_rows(const Quantizer *q);

/* Whether scales of data are of rows, or of parts of rows: they stay where the product is. */
bool quant_goes_by_rows(const Quantizer *q);

/* The dimension of an operand that blocks lie along: that of its sums, of what filters read that of its channels. */
int quant_block_axis(const Node *call, int operand);

/* The grain of data that go by rows, along that dimension of them. */
QuantGrain quant_grain_of_rows(const Quantizer *q, int axis, const Type *data);

/* Whether the data that are an operand of a call have scales that go by rows; the reason and what to write instead where they
 * have none. */
Status quant_check_rows(Placement *p, const Node *call, int operand, const Quantizer *q);

/* The grain of the weight that is an operand of a call; the reason and what to write instead where there is none. */
Status quant_grain_of_weight(Placement *p, const Quantizer *by, const Node *call, int operand, QuantGrain *grain);

#endif
