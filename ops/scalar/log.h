/* f32: logarithms. */
#ifndef QCC_OPS_SCALAR_LOG_H
#define QCC_OPS_SCALAR_LOG_H

/* x = 2^e m with sqrt(1/2) <= m < sqrt(2), for finite x > 0. */
typedef struct Q_Split {
    f32 e, m;
} Q_Split;

Q_FN Q_Split split_f32(f32 x)
{
    const int tiny = x < 1.17549435e-38f;
    const u32 w = bits_of(tiny ? x * 8388608.0f : x);
    const i32 k = (i32)((w - 0x3f3504f3u + 0x80000000u) >> 23) - 256;
    const Q_Split s = { (f32)k - (tiny ? 23.0f : 0.0f), float_of(w - ((u32)k << 23)) };
    return s;
}

/* (log(1+f) - f) / f^2 for sqrt(1/2) <= 1+f < sqrt(2); error of log 2^-27.2 */
Q_FN f32 log_tail(f32 f)
{
    f32 p = -0.0749295875f;
    p = fma_f32(p, f, 0.128278702f);
    p = fma_f32(p, f, -0.132532373f);
    p = fma_f32(p, f, 0.141928568f);
    p = fma_f32(p, f, -0.166094705f);
    p = fma_f32(p, f, 0.200016066f);
    p = fma_f32(p, f, -0.250015616f);
    p = fma_f32(p, f, 0.333333254f);
    return fma_f32(p, f, -0.499999881f);
}

/* The answers of a logarithm outside the positive finite numbers; y elsewhere. */
Q_FN f32 log_edges(f32 x, f32 y)
{
    const f32 z = x > 0 ? y : x == 0 ? -Q_INF : Q_NAN;
    return x < Q_INF ? z : x;
}

Q_FN f32 log_f32(f32 x)
{
    const Q_Split s = split_f32(x);
    const f32 f = s.m - 1;
    return log_edges(x, fma_f32(s.e, Q_LN2_HI, fma_f32(f * f, log_tail(f), fma_f32(s.e, Q_LN2_LO, f))));
}

Q_FN f32 log2_f32(f32 x)
{
    const Q_Split s = split_f32(x);
    const f32 f = s.m - 1, ff = f * f, tail = log_tail(f);
    const f32 hi = fma_f32(ff, tail, f), lo = fma_f32(ff, tail, f - hi);
    const f32 y = hi * Q_LOG2E, rest = fma_f32(hi, Q_LOG2E, -y) + fma_f32(hi, 1.92596303e-08f, lo * Q_LOG2E);
    return log_edges(x, s.e + (y + rest));
}

/* log(1 + hi + lo), hi > -1 and finite: f = 2^-e (1 + hi) - 1 with one rounding, and lo beside it.  Beyond 2^25 the 1
 * is nothing. */
Q_FN f32 log1p_sum(f32 hi, f32 lo)
{
    const f32 u = 1 + hi;
    const Q_Split s = split_f32(u);
    const f32 e = s.e > 25 ? 25.0f : s.e, t = power_of_2(-(i32)e);
    const f32 f = s.e > 25 ? s.m - 1 : fma_f32(hi, t, t - 1);
    return fma_f32(s.e, Q_LN2_HI, f + fma_f32(f * f, log_tail(f), fma_f32(s.e, Q_LN2_LO, lo * t)));
}

Q_FN f32 log1p_f32(f32 x)
{
    const f32 y = x == 0 ? x : log1p_sum(x, 0);
    const f32 z = x > -1 ? y : x == -1 ? -Q_INF : Q_NAN;
    return x < Q_INF ? z : x;
}

/* log(1 + exp(x)) without overflow. */
Q_FN f32 softplus_f32(f32 x)
{
    const f32 y = log1p_sum(exp_f32(-abs_f32(x)), 0);
    return (x < 0 ? 0.0f : x) + y;
}

#endif
