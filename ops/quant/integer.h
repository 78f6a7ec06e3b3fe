/* Words that compute on codes: what of them is a code again, and their operands. */
#ifndef OPS_QUANT_INTEGER_H
#define OPS_QUANT_INTEGER_H

#include "ops/quant/fixed.h"
#include "ops/quant/quantize.h"

/* What sums are multiplied by on the way to codes. */
typedef enum CodesFactor {
    FACTOR_F32, /* floats, as ONNX Runtime does */
    FACTOR_Q31, /* integers and shifts (ops/quant/fixed.h) */
} CodesFactor;

extern const char *const codes_factors[];

/* What becomes codes: attributes of the words that give some. */
typedef struct CodesAttr {
    int64_t least, largest; /* both 0: all that the type has */
    bool relu;              /* nothing below the code of 0 */
    bool learned;           /* the scale of the result has a gradient */
    int mask;               /* QuantMask */
    float gain;             /* factor of that gradient */
    bool ends;              /* only what lies beyond the codes adds to it */
    bool learned_zero;      /* what the code of 0 stands for has a gradient */
    int factor;             /* CodesFactor */
} CodesAttr;

#define CODES_ATTRS(S)                                                                                                 \
    CODES_ATTR(S, least, ATTR_INT, 0), CODES_ATTR(S, largest, ATTR_INT, 0), CODES_ATTR(S, relu, ATTR_BOOL, 0),         \
        CODES_ATTR(S, learned, ATTR_BOOL, 0), CODES_ATTR(S, gain, ATTR_FLOAT, 1), CODES_ATTR(S, ends, ATTR_BOOL, 0),   \
        CODES_ATTR(S, learned_zero, ATTR_BOOL, 0), CODES_CHOICE(S, factor, codes_factors),                             \
        CODES_CHOICE(S, mask, quant_masks)
#define CODES_CHOICE(S, field, words)                                                                                  \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_ENUM, .offset = offsetof(S, codes.field), .choices = (words)                      \
    }
#define CODES_ATTR(S, field, k, v)                                                                                     \
    {                                                                                                                  \
        .name = #field, .kind = k, .offset = offsetof(S, codes.field), .value = (v)                                    \
    }

/* Names of the results behind the codes. */
extern const char *const codes_saved[];

/* The smallest and the largest code that a result may be, for a zero point. */
CodeRange code_range_of(const CodesAttr *at, DType code, f32 z);

/* f32(f32(sx * sw) / sy): what sums of products are multiplied by. */
static inline f32 requantize_scale(f32 sx, f32 sw, f32 sy)
{
    const f32 product = sx * sw;
    return product / sy;
}

/* Result 0, and result 1 where somebody asked for the quotient: what the codes were rounded from. */
typedef struct CodesOut {
    Tensor *codes;
    f32 *quotient;
    CodeRange range;
    bool floats; /* f8: codes that are numbers */
    bool fixed;  /* FACTOR_Q31 */
    const Kernels *kernels;
} CodesOut;

/* Opens both; the zero point is operand `zero`. */
CodesOut codes_out(Eval *e, const CodesAttr *at, int zero);

/* Stores n codes from element `first` on: RNE(v) + z, clamped (of f8: v + z, narrowed). */
void codes_put(const CodesOut *o, int64_t first, int64_t n, const f32 *v);

/* Where codes from element `first` on lie that loops may write as bytes; null: they are of other bits or made otherwise, or
 * somebody asked for their quotients. */
u8 *codes_bytes(const CodesOut *o, int64_t first);

/* The same, and where loops may write the quotients (null: nobody asked for them). */
u8 *codes_bytes_beside(const CodesOut *o, int64_t first, f32 **quotients);

/* The same of numbers to which the zero point was added before they are rounded.  The quotient is such that
 * RNE(quotient) + z is the code before it is clamped. */
void codes_put_shifted(const CodesOut *o, int64_t first, int64_t n, const f32 *u);

/* The same of what integers alone gave (FACTOR_Q31): v + z, clamped.  Quotients, where somebody asked for them, are the
 * numbers that floats would have given: the codes are those but for what is rounded on the way. */
void codes_put_fixed(const CodesOut *o, int64_t first, int64_t n, const i64 *v, const f32 *quotients);

/* Operand i as i32 in scratch. */
const i32 *eval_i32(Eval *e, int i);

/* Which element types an operand may have. */
typedef enum CodeKinds {
    CODES_8,  /* u8, i8 */
    CODES_16, /* u16 and i16, too */
    CODES_F8, /* f8 beside u8 and i8 */
} CodeKinds;

/* Whether operand i (when there) is a tensor of codes of some kind; complains otherwise. */
bool infer_codes(Infer *q, int i, CodeKinds kinds);

/* Whether operand i is one element, of the same element type as operand `like` (-1: any float); complains otherwise. */
bool infer_single(Infer *q, int i, int like);

/* Whether operand `zero` has the type of the codes of operand `codes`; complains otherwise. */
bool infer_zero_type(Infer *q, int codes, int zero);

/* The types of results 0 and 1 for codes of the zero point's type, in the shape of y; null after a complaint. */
const Type *infer_codes_out(Infer *q, const CodesAttr *at, int zero, const Type *y);

/* Attributes that say something now and then, and operands that are drawn for it: codes, one number that is their zero
 * point or a scale. */
CodesAttr sample_codes_attr(Rng *rng, DType code);
Node *sample_codes(Build *b, Rng *rng, DType code, int rank, const int64_t *dims);
Node *sample_zero_point(Build *b, Rng *rng, DType code);
Node *sample_scale(Build *b, Rng *rng);

#endif
