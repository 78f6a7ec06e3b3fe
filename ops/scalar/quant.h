/* Quantization of one f32 to a code between lo and hi, codes kept as integer-valued f32. */
#ifndef QCC_OPS_SCALAR_QUANT_H
#define QCC_OPS_SCALAR_QUANT_H

/* RNE(x / s) + z, saturated, in ONNX's order of operations.  A NaN stays one. */
Q_FN f32 quantize_f32(f32 x, f32 s, f32 z, f32 lo, f32 hi)
{
    return clamp_f32(rint_f32(x / s) + z, lo, hi);
}

Q_FN f32 dequantize_f32(f32 q, f32 s, f32 z)
{
    return (q - z) * s;
}

/* The value a quantizer leaves behind: dequantize(quantize(x)). */
Q_FN f32 fake_quant_f32(f32 x, f32 s, f32 z, f32 lo, f32 hi)
{
    return dequantize_f32(quantize_f32(x, s, z, lo, hi), s, z);
}

#endif
