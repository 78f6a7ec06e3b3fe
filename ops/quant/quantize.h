/* The granularity of a linear quantizer and the attributes of its two cards. */
#ifndef OPS_QUANT_QUANTIZE_H
#define OPS_QUANT_QUANTIZE_H

#include "ops/card/cards.h"

typedef struct QuantizeAttr {
    int64_t axis, block_size;
    int output_dtype; /* DType + 1 */
    int precision;    /* DType + 1: the type of the quotient */
    bool saturate;    /* of f8 results */
} QuantizeAttr;

typedef struct DequantizeAttr {
    int64_t axis, block_size;
    int output_dtype; /* DType + 1 */
} DequantizeAttr;

/* Which scale belongs to an element: the operand as [outer, extent, inner] around the quantization axis. */
typedef struct ScaleLayout {
    int64_t extent, inner;
    int64_t block;  /* elements along the axis that share a scale; 0: one scale for everything */
    int64_t blocks; /* along the axis */
    bool per_axis;  /* one scale for every index of the axis, whatever the other indices */
} ScaleLayout;

/* Checks scale (and zero point, when there) against the data; false after a complaint.  Unknown sizes pass. */
bool infer_scale_layout(Infer *q, const Type *x, const Type *scale, const Type *zero, int64_t axis, int64_t block);

/* The granularity of known types that infer_scale_layout accepted. */
ScaleLayout scale_layout_of(const Type *x, const Type *scale, int64_t axis, int64_t block);

/* The indices of the scales of elements first .. first + n - 1. */
void scale_layout_indices(const ScaleLayout *g, int64_t first, int64_t n, int64_t *index);

/* The codes of an integer type. */
void code_range(DType dtype, double *lo, double *hi);

/* Stores floats as f8, f4 or integer codes: integers from integral values within their range. */
void store_codes(Tensor *y, int64_t first, const f32 *value, int64_t n, bool saturate);

/* Whether a type is one that quantizers give. */
bool dtype_is_code(DType dtype);

#endif
