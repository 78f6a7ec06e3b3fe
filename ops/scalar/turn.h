/* Sine and cosine of k / n of a full turn, for Fourier transforms: the angle is reduced as a fraction, so that no error
 * of 2 pi k / n enters, and the f64 arithmetic is plain + and *, so that f64 and f32 results have the same bits on
 * every machine.  f64 within about 1 ulp; f32 correctly rounded but for one case in about 2^26. */
#ifndef QCC_OPS_SCALAR_TURN_H
#define QCC_OPS_SCALAR_TURN_H

/* sin and cos of pi/4 t, 0 <= t <= 1: Taylor in the angle, whose first terms left out are below 2^-56. */
Q_FN f64 turn_sin_kernel(f64 t)
{
    const f64 a = t * 0.78539816339744831, z = a * a;
    f64 p = -1.0 / 1307674368000.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z - 1.0 / 39916800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z - 1.0 / 5040.0;
    p = p * z + 1.0 / 120.0;
    p = p * z - 1.0 / 6.0;
    return a + a * z * p;
}

Q_FN f64 turn_cos_kernel(f64 t)
{
    const f64 a = t * 0.78539816339744831, z = a * a;
    f64 p = 1.0 / 20922789888000.0;
    p = p * z - 1.0 / 87178291200.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z - 1.0 / 3628800.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z - 1.0 / 720.0;
    p = p * z + 1.0 / 24.0;
    return (1.0 - 0.5 * z) + z * z * p;
}

/* sin(2 pi k / n) for 0 < n < 2^50 and any k; the four exact values are exact, zeros positive. */
Q_FN f64 turn_sin(i64 k, i64 n)
{
    const i64 whole = mod_i64(k, n), octant = 8 * whole / n, rest = 8 * whole - octant * n;
    const f64 t = (f64)((octant & 1) ? n - rest : rest) / (f64)n;
    const f64 v = ((octant + 1) & 2) ? turn_cos_kernel(t) : turn_sin_kernel(t);
    return octant >= 4 && v != 0 ? -v : v;
}

/* cos(2 pi k / n), a quarter turn ahead. */
Q_FN f64 turn_cos(i64 k, i64 n)
{
    return turn_sin(4 * mod_i64(k, n) + n, 4 * n);
}

#endif
