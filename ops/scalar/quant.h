/* The one quantizer: of numbers to codes between lo and hi, which are integers kept as f32, and back. */
#ifndef QCC_OPS_SCALAR_QUANT_H
#define QCC_OPS_SCALAR_QUANT_H

/* The code of a number that was divided by the scale: RNE(v) + z, saturated, in ONNX's order of operations.  A NaN stays
 * one. */
Q_FN f32 code_f32(f32 v, f32 z, f32 lo, f32 hi)
{
    return clamp_f32(rint_f32(v) + z, lo, hi);
}

/* The code that is stored: a NaN has that of 0. */
Q_FN f32 stored_code_f32(f32 v, f32 z, f32 lo, f32 hi)
{
    const f32 code = code_f32(v, z, lo, hi);
    return code == code ? code : z;
}

Q_FN f32 quantize_f32(f32 x, f32 s, f32 z, f32 lo, f32 hi)
{
    return code_f32(x / s, z, lo, hi);
}

/* The number of a code; the difference of codes below 2^24 is exact. */
Q_FN f32 dequantize_f32(f32 q, f32 s, f32 z)
{
    return (q - z) * s;
}

/* The same for integers of any size: the difference is exact, then rounded, then multiplied. */
Q_FN f32 dequantize_i64(i64 q, f32 s, i64 z)
{
    return (f32)(q - z) * s;
}

/* The value a quantizer leaves behind: dequantize(quantize(x)). */
Q_FN f32 fake_quant_f32(f32 x, f32 s, f32 z, f32 lo, f32 hi)
{
    return dequantize_f32(quantize_f32(x, s, z, lo, hi), s, z);
}

#endif
