/* Operands of products, as these are computed. */
#ifndef OPS_CONTRACT_OPERANDS_H
#define OPS_CONTRACT_OPERANDS_H

#include "ops/card/eval.h"

/* Whether two operands may be multiplied as they lie, for so many rows: what the instruction makes of products of bf16 is near what
 * the reference has (docs/arithmetic.md); few rows are not worth packing the right operand for. */
bool operands_narrow(const Type *a, const Type *b, int64_t rows);

/* Operand i in an arithmetic; of codes, threads share out the work. */
const void *operand_wide(Eval *e, int i, Arithmetic arithmetic);

#endif
