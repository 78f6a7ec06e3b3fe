/* Which elements of a value share a scale, and what is made of those. */
#ifndef PASSES_CODES_BLOCKS_H
#define PASSES_CODES_BLOCKS_H

#include "passes/engine/pass.h"

/* One scale for all; for each index of `axis`; or, of blocks, for each `block` elements along it, whatever the other
 * indices are, but that `wide` indices of dimension `across` share theirs. */
typedef struct QuantGrain {
    int axis; /* QUANT_WHOLE: one for all */
    int64_t block;
    int across;
    int64_t wide; /* 1: each index has its own */
} QuantGrain;

/* One scale for all. */
extern const QuantGrain quant_whole;

/* The type of the scales of a value, f32; those of a row's are kept apart by dimensions of 1. */
const Type *quant_scale_type(Types *types, const QuantGrain *grain, const Type *value);

/* How many elements share a scale, at most. */
double quant_sharing(const QuantGrain *grain, const Type *value);

/* What is made of the elements that share a scale, where a block that is not full ends in zeros; and that in the
 * shape of the scales of the value. */
typedef enum QuantFold { FOLD_LEAST, FOLD_LARGEST, FOLD_SUM, FOLD_MEAN } QuantFold;
Node *quant_fold(Build *b, QuantFold how, const QuantGrain *grain, Node *value);
Node *quant_as_scales(Build *b, const QuantGrain *grain, Node *reduced, const Type *value);

/* A value as a matrix: a row of each scale's elements, a block that is not full ending in zeros. */
Node *quant_rows_of(Build *b, const QuantGrain *grain, Node *value);

/* As a constant, how many elements each scale is of. */
Node *quant_counts(Build *b, const QuantGrain *grain, const Type *value);

/* Scales, or zero points, as quantizers read them: those of a tile for each index across it. */
Node *spread_scales(Build *b, const QuantGrain *grain, Node *scales, const Type *value);

#endif
