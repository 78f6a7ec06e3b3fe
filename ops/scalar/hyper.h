/* f32: hyperbolic functions and their inverses. */
#ifndef QCC_OPS_SCALAR_HYPER_H
#define QCC_OPS_SCALAR_HYPER_H

/* Below 0.625 an odd polynomial, error 2^-27.8; above it 1 - 2 / (exp(2a) + 1). */
Q_FN f32 tanh_f32(f32 x)
{
    const f32 a = abs_f32(x), z = a * a;
    f32 p = -0.00571406353f;
    p = fma_f32(p, z, 0.0206480622f);
    p = fma_f32(p, z, -0.0537427738f);
    p = fma_f32(p, z, 0.133314833f);
    p = fma_f32(p, z, -0.333332837f);
    const f32 near = fma_f32(p * z, a, a), far = 1 - 2 / (exp_f32(a + a) + 1);
    return copysign_f32(a < 0.625f ? near : far, x);
}

/* Below 1 an odd polynomial, error 2^-31.5; above it h - 1 / (4 h), h = exp(a) / 2. */
Q_FN f32 sinh_f32(f32 x)
{
    const f32 a = abs_f32(x), z = a * a, h = exp_scaled(a, -1);
    f32 p = 2.78401626e-06f;
    p = fma_f32(p, z, 0.000198426278f);
    p = fma_f32(p, z, 0.00833331142f);
    p = fma_f32(p, z, 0.166666672f);
    return copysign_f32(a < 1 ? fma_f32(p * z, a, a) : h - 0.25f / h, x);
}

Q_FN f32 cosh_f32(f32 x)
{
    const f32 h = exp_scaled(abs_f32(x), -1);
    return h + 0.25f / h;
}

/* log(a + sqrt(a^2 + 1)) = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), and log(2a) beyond 2^28. */
Q_FN f32 asinh_f32(f32 x)
{
    const f32 a = abs_f32(x);
    const int far = a > 268435456.0f;
    const f32 q = a * a / (1 + sqrt_f32(fma_f32(a, a, 1.0f))), hi = a + q, lo = q - (hi - a);
    const f32 y = log1p_sum(far ? a : hi, far ? 0.0f : lo) + (far ? Q_LN2_HI : 0.0f);
    return a > 0 && a < Q_INF ? copysign_f32(y, x) : x;
}

/* log1p(t + sqrt(t^2 + 2t)) with t = x - 1, the root with what it and its operand lose; log(2x) beyond 2^28. */
Q_FN f32 acosh_f32(f32 x)
{
    const int far = x > 268435456.0f;
    const f32 t = x - 1, w = fma_f32(t, t, t + t), w_lo = t < 2 ? fma_f32(t, t, (t + t) - w) : 0.0f;
    const f32 u = sqrt_f32(w), u_lo = u > 0 ? (fma_f32(-u, u, w) + w_lo) / (u + u) : 0.0f;
    const f32 hi = t + u, lo = (t - (hi - u)) + u_lo;
    const f32 y = log1p_sum(far ? x : hi, far ? 0.0f : lo) + (far ? Q_LN2_HI : 0.0f);
    const f32 z = x < 1 ? Q_NAN : y;
    return x < Q_INF ? z : x;
}

/* Below 1/2 an odd polynomial, error 2^-32.8; above it log1p(2a / (1 - a)) / 2, with the quotient's remainder. */
Q_FN f32 atanh_f32(f32 x)
{
    const f32 a = abs_f32(x), z = a * a, d = 1 - a;
    f32 p = 0.184647754f;
    p = fma_f32(p, z, 0.0173221622f);
    p = fma_f32(p, z, 0.105144247f);
    p = fma_f32(p, z, 0.109306894f);
    p = fma_f32(p, z, 0.142977402f);
    p = fma_f32(p, z, 0.199996233f);
    p = fma_f32(p, z, 0.333333373f);
    const f32 q = (a + a) / d, lo = fma_f32(-q, d, a + a) * fma_f32(0.5f, q, 1.0f);
    const f32 far = 0.5f * log1p_sum(q, lo), y = a < 0.5f ? fma_f32(p * z, a, a) : far;
    const f32 v = a < 1 ? y : a == 1 ? Q_INF : Q_NAN;
    return x != x ? x : copysign_f32(v, x);
}

#endif
