/* The granularity of a linear quantizer and the attributes of its two cards. */
#ifndef OPS_QUANT_QUANTIZE_H
#define OPS_QUANT_QUANTIZE_H

#include "ops/card/cards.h"

typedef struct QuantizeAttr {
    int64_t axis, block_size;
    int output_dtype; /* DType + 1 */
    int precision;    /* DType + 1: the type of the quotient */
    bool saturate;    /* of f8 results */
    /* ours */
    int64_t least, largest; /* codes; both 0: those of their type */
    int rounding;           /* ops/scalar/quant.h */
    int mask;               /* QuantMask */
    bool learned;           /* the scale has a gradient, */
    float gain;             /* this factor of it */
    bool ends;              /* to which only what lies beyond the codes adds */
    bool learned_zero;      /* so has what the code of 0 stands for: it is learned, and not the code itself */
} QuantizeAttr;

enum { QUANTIZE_X, QUANTIZE_SCALE, QUANTIZE_ZERO, QUANTIZE_DRAW }; /* operands of both cards */

/* Of quantize_both: codes, and how they are rounded (ops/scalar/quant.h). */
typedef struct QuantizeBothAttr {
    int64_t least, largest;
    int rounding;
} QuantizeBothAttr;

/* Of range_scale. */
typedef struct RangeScaleAttr {
    int64_t least, largest; /* codes; both 0: those of their type */
    bool symmetric, pow2;
    int to;   /* DType + 1 of codes; 0: u8 */
    f32 most; /* the codes reach no further above 0 than that; 0: as far as the range says */
} RangeScaleAttr;

/* Of search_range: how, and what range_scale says of the codes. */
typedef struct SearchRangeAttr {
    int kind;
    int64_t least, largest;
    bool symmetric, pow2;
    int to;
} SearchRangeAttr;

/* Where gradients pass a quantizer. */
typedef enum QuantMask {
    MASK_BY_CODE,  /* q: where the rounded number is a code */
    MASK_BY_VALUE, /* v: where the number lies between the least and the largest code */
    MASK_NONE,     /* pass: everywhere */
} QuantMask;

/* The words of the attributes, ended by null. */
extern const char *const quant_roundings[], *const quant_masks[];

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

/* How many elements from `first` on, of at most n, share one scale, whose index is given. */
int64_t scale_layout_run(const ScaleLayout *g, int64_t first, int64_t n, int64_t *index);

/* How many elements from `first` on, of at most n, share one scale, whose index is given, or have scales that lie as they do, from
 * that index on (each). */
int64_t scale_layout_line(const ScaleLayout *g, int64_t first, int64_t n, int64_t *index, bool *each);

/* Whether runs are long enough to be worth a loop each. */
bool scale_layout_shares(const ScaleLayout *g);

/* The codes of an integer type. */
void code_range(DType dtype, double *lo, double *hi);

/* Checks the attributes `least` and `largest` of codes of that type; false after a complaint. */
bool infer_code_limits(Infer *q, DType code, int64_t least, int64_t largest);

/* The codes between them, or those of the type where both are 0; of floats the largest numbers. */
void code_limits(DType code, int64_t least, int64_t largest, double *lo, double *hi);

/* What reaches operands of quantize_linear and dequantize_linear (ops/quant/quantize_adjoint.c). */
void adjoint_quantize_linear(Build *b, const Site *s, Node **dx);
void adjoint_dequantize_linear(Build *b, const Site *s, Node **dx);

/* Numbers over the scale, and what they are beside the codes. */
typedef struct CodeSpot {
    Node *v, *r;        /* r: rounded */
    Node *least, *most; /* the codes' ends without the zero point */
    Node *first, *last; /* what the scale is multiplied by there: those ends, or the codes where 0's is learned */
    Node *seen;         /* what the mask compares with them: v or r */
    int mask;           /* QuantMask */
    bool ends;          /* what rounding adds counts for nothing */
} CodeSpot;
CodeSpot code_spot(Build *b, Node *v, Node *r, double lo, double hi, Node *z, int mask);

/* What the mask, one that lets not everything pass, or `relu` lets through of what reaches codes, by a bit a value:
 * with `relu` only where v is above 0.  If there is a NaN among the numbers x that codes are made of (null: none is
 * looked for), what does not pass is one, too. */
Node *code_gradient(Build *b, const CodeSpot *p, Node *dy, bool relu, Node *x);

/* Of what reaches the scale, each element's part; and the same of what the code of 0 stands for, which is learned: what
 * lies beyond the codes moves with it.  A spot for those who learn says so first. */
void code_spot_learns(Build *b, CodeSpot *p, double lo, double hi, bool ends, bool learned_zero);
Node *code_scale_terms(Build *b, const CodeSpot *p, Node *dy);
Node *code_zero_terms(Build *b, const CodeSpot *p, Node *dy);

/* The type of the quotient: `precision`, else that of the scale (the powers of two of e8m0 divide in f32). */
DType quotient_type(const QuantizeAttr *at, DType scale);

/* The kernels of the two cards (AccessCard.kernels). */
bool kernels_quantize_linear(const Node *n, OwnKernels *to);
bool kernels_dequantize_linear(const Node *n, OwnKernels *to);

/* Stores floats as f8, f4 or integer codes: integers from integral values within their range. */
void store_codes(Tensor *y, int64_t first, const f32 *value, int64_t n, bool saturate);

/* Whether a type is one that ONNX's quantizers give. */
bool dtype_is_code(DType dtype);

#endif
