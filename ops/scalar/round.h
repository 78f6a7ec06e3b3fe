/* f32: signs, classes, order and rounding.  All exact. */
#ifndef QCC_OPS_SCALAR_ROUND_H
#define QCC_OPS_SCALAR_ROUND_H

Q_FN f32 abs_f32(f32 x)
{
    return float_of(bits_of(x) & 0x7fffffffu);
}

/* The size of x with the sign of y. */
Q_FN f32 copysign_f32(f32 x, f32 y)
{
    return float_of((bits_of(x) & 0x7fffffffu) | (bits_of(y) & 0x80000000u));
}

Q_FN int isnan_f32(f32 x)
{
    return x != x;
}

Q_FN int isinf_f32(f32 x)
{
    return abs_f32(x) == Q_INF;
}

Q_FN int signbit_f32(f32 x)
{
    return (int)(bits_of(x) >> 31);
}

/* -1, 1, or x itself where it is a zero or NaN. */
Q_FN f32 sign_f32(f32 x)
{
    return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
}

Q_FN int negative_f32(f32 x)
{
    return x < 0;
}

/* The larger; NaN wins, +0 is above -0: the same whatever the order of a reduction. */
Q_FN f32 max_f32(f32 x, f32 y)
{
    const f32 m = x > y ? x : y;
    const f32 n = x == y ? float_of(bits_of(x) & bits_of(y)) : m;
    return x != x ? x : n;
}

Q_FN f32 min_f32(f32 x, f32 y)
{
    const f32 m = x < y ? x : y;
    const f32 n = x == y ? float_of(bits_of(x) | bits_of(y)) : m;
    return x != x ? x : n;
}

/* x held between lo and hi, hi where they cross; a NaN x stays one. */
Q_FN f32 clamp_f32(f32 x, f32 lo, f32 hi)
{
    const f32 y = x < lo ? lo : x;
    return y > hi ? hi : y;
}

/* The nearest integer, ties to even. */
Q_FN f32 rint_f32(f32 x)
{
    const f32 a = abs_f32(x), big = 8388608.0f;
    const f32 r = (a + big) - big;
    return a < big ? copysign_f32(r, x) : x;
}

Q_FN f32 floor_f32(f32 x)
{
    const f32 r = rint_f32(x);
    return r > x ? r - 1 : r;
}

Q_FN f32 ceil_f32(f32 x)
{
    const f32 r = rint_f32(x);
    return copysign_f32(r < x ? r + 1 : r, x);
}

Q_FN f32 trunc_f32(f32 x)
{
    const f32 a = abs_f32(x), r = rint_f32(a);
    return copysign_f32(r > a ? r - 1 : r, x);
}

#endif
