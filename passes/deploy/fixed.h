/* Fixed point in operators of ONNX: constants of 64 bits, products with multipliers of 31 bits, tables of codes. */
#ifndef PASSES_DEPLOY_FIXED_H
#define PASSES_DEPLOY_FIXED_H

#include "ir/build.h"
#include "ops/quant/fixed.h"

/* One number of 64 bits. */
Node *fixed_constant(Build *b, int64_t v);

/* Numbers that a dequantizer multiplies with: one, or one a channel. */
Node *fixed_scales(Build *b, int64_t n, const f32 *v);

/* Integers of 64 bits times a factor; those of 32 bits times that of their channel, behind which there are so many axes. */
Node *fixed_scaled(Build *b, Node *v, FixedFactor f);
Node *fixed_product(Build *b, Node *sums, int64_t channels, const f32 *factors, int behind);

/* Codes that are functions of one code each, or such side by side, looked up in tables; null: they are not. */
Node *fixed_tables(Build *b, Node *quantizer);

#endif
