/* f32: roots and powers. */
#ifndef QCC_OPS_SCALAR_POWER_H
#define QCC_OPS_SCALAR_POWER_H

Q_FN f32 rsqrt_f32(f32 x)
{
    return 1 / sqrt_f32(x);
}

/* log2(a) to about 2^-33, for finite a > 0: log2(m) = 2 / ln 2 s + z s p(z), s = (m - 1) / (m + 1), z = s^2.  What
 * each step loses is kept (_lo) until it is below that; error of p 2^-34.9. */
Q_FN Q_Pair log2_pair(f32 a)
{
    const Q_Split v = split_f32(a);
    const f32 n = v.m - 1, d = v.m + 1, d_lo = v.m - (d - 1), inv = 1 / d;
    const f32 s = n * inv, s_lo = fma_f32(-s, d_lo, fma_f32(-s, d, n)) * inv;
    const f32 z = s * s, z_lo = fma_f32(s + s, s_lo, fma_f32(s, s, -z));
    const f32 c = 0.961796701f, r = fma_f32(fma_f32(0.336624652f, z, 0.411921471f), z, 0.577078879f);
    const f32 p = fma_f32(r, z, c), p_lo = fma_f32(r, z, c - p);
    const f32 w = z * p, w_lo = fma_f32(z, p_lo, fma_f32(z_lo, p, fma_f32(z, p, -w)));
    const f32 h = s * 2.88539004f, h_lo = fma_f32(s, 2.88539004f, -h);
    const f32 linear = fma_f32(s, 3.85192607e-08f, fma_f32(s_lo, 2.88539004f, h_lo));
    const f32 tail = fma_f32(w, s, fma_f32(w_lo, s, fma_f32(w, s_lo, linear)));
    const f32 t = v.e + h, t_lo = (h - (t - v.e)) + tail, hi = t + t_lo;
    const Q_Pair y = { hi, t_lo - (hi - t) };
    return y;
}

/* x^y for x > 0, or where the sign is dealt with elsewhere. */
Q_FN f32 pow_positive(f32 a, f32 y)
{
    const Q_Pair l = log2_pair(a);
    const f32 q = y * l.hi, q_lo = fma_f32(y, l.lo, fma_f32(y, l.hi, -q));
    const f32 p = exp2_sum(q, abs_f32(q) < 200.0f ? q_lo : 0.0f);
    const f32 at_zero = y < 0 ? Q_INF : 0.0f, at_inf = y < 0 ? 0.0f : Q_INF;
    const f32 v = a == 0 ? at_zero : a == Q_INF ? at_inf : p;
    return a == 1 ? 1.0f : v;
}

/* C's pow with every special case: x^0 = 1^y = 1 even for NaN; a negative x wants an integer y, whose parity gives the
 * sign. */
Q_FN f32 pow_f32(f32 x, f32 y)
{
    const f32 a = abs_f32(x), p = pow_positive(a, y);
    const int whole = rint_f32(y) == y, even = rint_f32(0.5f * y) == 0.5f * y, odd = whole && !even;
    const f32 s = odd ? copysign_f32(p, x) : p;
    const f32 v = x < 0 && a < Q_INF && !whole ? Q_NAN : s;
    const f32 w = x != x || y != y ? x + y : v;
    return x == 1 || y == 0 ? 1.0f : w;
}

#endif
