/* quantize_linear and dequantize_linear as rows: the functions of ops/scalar/quant.h as graph, in their order, for what is
 * fused and for what goes back. */
#ifndef OPS_QUANT_QUANTIZE_ROWS_H
#define OPS_QUANT_QUANTIZE_ROWS_H

#include "ops/quant/quantize.h"

/* A call that is written as rows: the data, and how many elements share a scale. */
typedef struct QuantRows {
    Build *b;
    const Type *x;
    ScaleLayout layout;
    int axis; /* where there are several scales */
} QuantRows;
QuantRows quant_rows(Build *b, const Type *x, const Type *scale, int64_t axis, int64_t block);

/* One for each scale, in a type and in a shape that broadcasts with the data. */
Node *quant_spread(const QuantRows *k, Node *p, DType to);

/* The data over its scale, as a call has it whose scale is of that type. */
Node *quant_quotient(const QuantRows *k, const QuantizeAttr *at, Node *x, Node *scale, DType type);

/* A quotient of f32 rounded to an integer; `draw` is read by stochastic rounding alone. */
Node *quant_rounded(Build *b, int rounding, Node *v, Node *draw);

/* Both words as rows of tapes; null where tapes have none for them: codes that are floats or share bytes, and scales of
 * blocks. */
Node *open_quantize_linear(Build *b, const Site *s);
Node *open_dequantize_linear(Build *b, const Site *s);

#endif
