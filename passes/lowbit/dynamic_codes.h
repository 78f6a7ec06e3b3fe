/* Values as codes with scales that are computed of themselves: what products of low bits read. */
#ifndef PASSES_LOWBIT_DYNAMIC_CODES_H
#define PASSES_LOWBIT_DYNAMIC_CODES_H

#include "ops/card/make.h"
#include "passes/recipe/quantizer.h"

/* The codes of one value, for a product that sums along `axis` of it. */
typedef struct DynamicCodes {
    Node *codes;  /* in the layout of the value */
    Node *scale;  /* f32, one along each summed axis so that it leaves the sum; null: there are several along a sum */
    Node *number; /* what the codes stand for, in f32 */
} DynamicCodes;

/* Numbers of [0, 1). */
typedef struct DynamicDraws {
    Node *of_elements; /* one for each, where rounding is by chance or by ms-eden; else null */
    Node *of_turn; /* of what is turned otherwise each time: for each of those that are turned together; else null */
} DynamicDraws;

/* Quantizes `x` as `q` says: its grain `row` and `channel` are all but `axis`, `group` and `block` are along it.  `draws`
 * may be null where there is nothing to draw.  UNSUPPORTED where a record has no dynamic codes, which names it. */
Status dynamic_codes(Build *b, Node *x, const Quantizer *q, int axis, const DynamicDraws *draws, DynamicCodes *to);

#endif
