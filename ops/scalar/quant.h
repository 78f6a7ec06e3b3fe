/* The one quantizer: of numbers to codes between lo and hi, which are integers kept as f32, and back. */
#ifndef QCC_OPS_SCALAR_QUANT_H
#define QCC_OPS_SCALAR_QUANT_H

/* ---- roundings: of a number to an integer; infinities and NaN stay what they are ---- */

/* How a number between two codes becomes one of them, in the order of the attribute `rounding`. */
enum {
    ROUND_RNE,       /* the nearest, ties to even */
    ROUND_SR,        /* up as often as it is near: up where a number of [0, 1) is below the fraction */
    ROUND_HALF_UP,   /* the nearest, ties up */
    ROUND_HALF_DOWN, /* the nearest, ties down */
    ROUND_CEIL,      /* up */
    ROUND_FLOOR,     /* down */
    ROUND_ZERO,      /* towards 0 */
    ROUND_AWAY,      /* away from 0 */
    ROUNDINGS
};

/* What lies between a number and the nearest integer is exact, so a tie is seen as one. */
Q_FN f32 half_up_f32(f32 v)
{
    const f32 r = rint_f32(v);
    return v - r == 0.5f ? r + 1 : r;
}

Q_FN f32 half_down_f32(f32 v)
{
    const f32 r = rint_f32(v);
    return r - v == 0.5f ? r - 1 : r;
}

Q_FN f32 away_f32(f32 v)
{
    return copysign_f32(ceil_f32(abs_f32(v)), v);
}

/* Stochastic rounding by a draw of [0, 1) that is a multiple of 2^-24: nothing is added that would be rounded itself.  The
 * fraction is exact for numbers from 0 up, and from -1/2 down; in between it is off by 2^-25 at most. */
Q_FN f32 stochastic_f32(f32 v, f32 draw)
{
    const f32 low = floor_f32(v);
    return draw < v - low ? low + 1 : low;
}

/* All of them by their number; the draw is read by stochastic rounding alone. */
Q_FN f32 round_by_f32(int rounding, f32 v, f32 draw)
{
    return rounding == ROUND_RNE         ? rint_f32(v)
           : rounding == ROUND_SR        ? stochastic_f32(v, draw)
           : rounding == ROUND_HALF_UP   ? half_up_f32(v)
           : rounding == ROUND_HALF_DOWN ? half_down_f32(v)
           : rounding == ROUND_CEIL      ? ceil_f32(v)
           : rounding == ROUND_FLOOR     ? floor_f32(v)
           : rounding == ROUND_ZERO      ? trunc_f32(v)
                                         : away_f32(v);
}

/* What lies between two numbers of a grid of floats that have v's exponent: of so many significand bits, the leading one counted, and
 * with the least number above 0 at 2^low; below the least exponent it is that of the least. */
Q_FN f32 grid_step_f32(i32 digits, i32 low, f32 v)
{
    const i32 step = (i32)(bits_of(v) >> 23 & 255) - 126 - digits;
    return float_of((u32)(127 + (step > low ? step : low)) << 23);
}

/* Stochastic rounding to such a grid by a draw of [0, 1); what is on it, or no number, stays. */
Q_FN f32 grid_round_f32(i32 digits, i32 low, f32 v, f32 draw)
{
    const f32 step = grid_step_f32(digits, low, v);
    return abs_f32(v) < Q_INF ? stochastic_f32(v / step, draw) * step : v;
}

/* A number, whatever stands beside it: what is learned through the other one (ops/rows.def). */
Q_FN f32 straight_f32(f32 x, f32 y)
{
    (void)y;
    return x;
}

Q_FN f64 straight_f64(f64 x, f64 y)
{
    (void)y;
    return x;
}

/* ---- codes ---- */

/* The code of an integer that numbers were rounded to, saturated; a NaN has that of 0. */
Q_FN f32 code_of_f32(f32 r, f32 z, f32 lo, f32 hi)
{
    return clamp_f32(r == r ? r + z : z, lo, hi);
}

/* The code of a number that was divided by the scale: RNE(v) + z, saturated, in ONNX's order of operations.  A NaN stays
 * one. */
Q_FN f32 code_f32(f32 v, f32 z, f32 lo, f32 hi)
{
    return clamp_f32(rint_f32(v) + z, lo, hi);
}

/* The code that is stored: a NaN has that of 0. */
Q_FN f32 stored_code_f32(f32 v, f32 z, f32 lo, f32 hi)
{
    return code_of_f32(rint_f32(v), z, lo, hi);
}

/* The code that is stored of a number in units of the scale to which the zero point was added before it is rounded, as
 * ONNX Runtime adds and pools codes. */
Q_FN f32 shifted_code_f32(f32 u, f32 z, f32 lo, f32 hi)
{
    return code_of_f32(rint_f32(u == u ? u : z), 0, lo, hi);
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

/* ---- scales ---- */

#define SCALE_LEAST 5.9604644775390625e-8f /* 2^-24: below it a range is as good as none */

/* The least power of two that is not below a positive normal number. */
Q_FN f32 power_above_f32(f32 x)
{
    const u32 bits = bits_of(x);
    return float_of((bits + 0x7fffffu) & 0x7f800000u);
}

/* The scale of codes lo .. hi, of 0 at code 0, for numbers up to a bound on either side: the largest has the code hi.  For
 * powers of two the bound has hi + 1 steps, as the codes of a power of two have. */
Q_FN f32 symmetric_scale_f32(f32 bound, f32 hi, int pow2)
{
    const f32 s = pow2 ? power_above_f32(bound / (hi + 1)) : bound / hi;
    return bound >= SCALE_LEAST && bound < Q_INF ? s : 1;
}

/* The scale of codes lo .. hi for numbers from `least` to `most`, 0 among them. */
Q_FN f32 affine_scale_f32(f32 least, f32 most, f32 lo, f32 hi, int pow2)
{
    const f32 bound = most > -least ? most : -least, steps = hi - lo, reach = most - least;
    const f32 each = reach < Q_INF ? reach / steps : most / steps - least / steps,
              s = pow2 ? power_above_f32(each) : each;
    return bound >= SCALE_LEAST && bound < Q_INF && each == each ? s : 1;
}

/* The code of 0 then. */
Q_FN f32 affine_zero_f32(f32 least, f32 s, f32 lo, f32 hi)
{
    const f32 z = rint_f32(lo - least / s);
    return z == z ? clamp_f32(z, lo, hi) : lo;
}

/* The scale of codes lo .. hi for a range and 0, at most `most` where that is above 0, and what 0's code is then. */
Q_FN f32 range_scale_f32(f32 least, f32 most, f32 lo, f32 hi, int symmetric, int pow2, f32 largest, f32 *zero)
{
    const f32 from = least < 0 || least != least ? least : 0, to = most > 0 || most != most ? most : 0;
    const f32 each =
        symmetric ? symmetric_scale_f32(max_f32(-from, to), hi, pow2) : affine_scale_f32(from, to, lo, hi, pow2);
    const f32 scale = largest > 0 && each > largest ? largest : each;
    *zero = symmetric ? 0 : affine_zero_f32(from, scale, lo, hi);
    return scale;
}

#endif
