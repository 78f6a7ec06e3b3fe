/* f32: inverse sine, cosine, tangent. */
#ifndef QCC_OPS_SCALAR_ARC_H
#define QCC_OPS_SCALAR_ARC_H

#define Q_PI_HI      3.14159274f
#define Q_PI_LO      -8.74227766e-08f
#define Q_HALF_PI_HI 1.57079637f
#define Q_HALF_PI_LO -4.37113883e-08f

/* atan(t), 0 <= t <= 1, error 2^-28.5 */
Q_FN f32 atan_kernel(f32 t)
{
    const f32 z = t * t;
    f32 p = -0.00178214419f;
    p = fma_f32(p, z, 0.0108662713f);
    p = fma_f32(p, z, -0.0310935341f);
    p = fma_f32(p, z, 0.0578788705f);
    p = fma_f32(p, z, -0.0839920789f);
    p = fma_f32(p, z, 0.109508611f);
    p = fma_f32(p, z, -0.142640144f);
    p = fma_f32(p, z, 0.199985296f);
    p = fma_f32(p, z, -0.333332986f);
    return fma_f32(p * z, t, t);
}

Q_FN f32 atan_f32(f32 x)
{
    const f32 a = abs_f32(x), p = atan_kernel(a > 1 ? 1 / a : a);
    return copysign_f32(a > 1 ? (Q_HALF_PI_HI - p) + Q_HALF_PI_LO : p, x);
}

Q_FN f32 atan2_f32(f32 y, f32 x)
{
    const f32 ay = abs_f32(y), ax = abs_f32(x);
    const f32 least = ay < ax ? ay : ax, most = ay < ax ? ax : ay;
    const f32 ratio = least / most;
    const f32 p = atan_kernel(most == 0 ? 0.0f : least == Q_INF ? 1.0f : ratio);
    const f32 first = ay > ax ? (Q_HALF_PI_HI - p) + Q_HALF_PI_LO : p;
    const f32 half = (bits_of(x) >> 31) ? (Q_PI_HI - first) + Q_PI_LO : first;
    return x != x || y != y ? x + y : copysign_f32(half, y);
}

/* (asin(s) - s) / s^3 where z = s^2, s up to 9/16; error of asin 2^-28.9 */
Q_FN f32 asin_tail(f32 z)
{
    f32 p = 0.0476544201f;
    p = fma_f32(p, z, 0.00658368506f);
    p = fma_f32(p, z, 0.0340661332f);
    p = fma_f32(p, z, 0.044223357f);
    p = fma_f32(p, z, 0.0750216022f);
    return fma_f32(p, z, 0.166666299f);
}

/* asin(a) up to 9/16; above it asin(sqrt((1 - a) / 2)), half the angle that is missing to pi/2.  NaN above 1.  (At 9/16
 * the half angle has fallen below 1/2, where its last place is worth less.) */
Q_FN f32 asin_half(f32 a)
{
    const int far = a > 0.5625f;
    const f32 z = far ? fma_f32(-0.5f, a, 0.5f) : a * a, s = far ? sqrt_f32(z) : a;
    return fma_f32(asin_tail(z) * z, s, s);
}

Q_FN f32 asin_f32(f32 x)
{
    const f32 a = abs_f32(x), p = asin_half(a);
    return copysign_f32(a > 0.5625f ? fma_f32(-2.0f, p, Q_HALF_PI_HI) + Q_HALF_PI_LO : p, x);
}

Q_FN f32 acos_f32(f32 x)
{
    const f32 a = abs_f32(x), p = asin_half(a), signed_p = copysign_f32(p, x);
    const f32 near = (Q_HALF_PI_HI - signed_p) + Q_HALF_PI_LO;
    const f32 far = x > 0 ? 2 * p : fma_f32(-2.0f, p, Q_PI_HI) + Q_PI_LO;
    return a > 0.5625f ? far : near;
}

#endif
