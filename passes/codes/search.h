/* Ranges that are looked for among numbers that are at hand. */
#ifndef PASSES_CODES_SEARCH_H
#define PASSES_CODES_SEARCH_H

#include "ops/quant/quantize.h"
#include "passes/codes/blocks.h"
#include "passes/recipe/quantizer.h"

/* The two ends of the range of what shares a scale, as the source of a quantizer has it: mse, kl, hqo or sigma; `codes`
 * says what range_scale says of them. */
Status codes_search(Build *b, const Quantizer *q, const QuantGrain *grain, Node *value, const RangeScaleAttr *codes,
                    Node **lo, Node **hi);

/* The search of a source, in the order of search_range; -1: another source. */
int codes_search_kind(const Quantizer *q);

#endif
