/* Products of integers: exact 32-bit accumulation, and the way back to codes. */
#ifndef OPS_QUANT_INTEGER_H
#define OPS_QUANT_INTEGER_H

#include "ops/quant/quantize.h"

/* RNE(acc * m) + z within the codes [lo, hi]; m is f32(f32(sx * sw) / sy), evaluated once per channel. */
typedef struct Requantizer {
    f32 z, lo, hi;
} Requantizer;

/* The codes of an integer result with that zero point. */
static inline Requantizer requantizer_of(DType code, f32 z)
{
    double lo, hi;
    code_range(code, &lo, &hi);
    return (Requantizer){ .z = z, .lo = (f32)lo, .hi = (f32)hi };
}

static inline f32 requantize(const Requantizer *r, i32 acc, f32 m)
{
    const f32 code = clamp_f32(rint_f32((f32)acc * m) + r->z, r->lo, r->hi);
    return code == code ? code : r->z;
}

static inline f32 requantize_scale(f32 sx, f32 sw, f32 sy)
{
    const f32 product = sx * sw;
    return product / sy;
}

/* Operand i as i32 in scratch. */
i32 *eval_i32(Eval *e, int i);

/* Whether operand i (when there) is a tensor of u8 or i8, or of f8 where those are allowed; complains otherwise. */
bool infer_codes(Infer *q, int i, bool floats);

/* Whether operand i is one element, of the same element type as operand `like` (-1: any float); complains otherwise. */
bool infer_single(Infer *q, int i, int like);

#endif
