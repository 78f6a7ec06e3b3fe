/* f32: exponentials.  Coefficients here and in the files that follow: tools/minimax.py. */
#ifndef QCC_OPS_SCALAR_EXP_H
#define QCC_OPS_SCALAR_EXP_H

#define Q_LOG2E  1.44269502f
#define Q_LN2_HI 0.693147182f
#define Q_LN2_LO -1.90465421e-09f

/* (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2; error of exp 2^-27.9 */
Q_FN f32 exp_tail(f32 r)
{
    f32 p = 0.00139257638f;
    p = fma_f32(p, r, 0.0083715003f);
    p = fma_f32(p, r, 0.0416665673f);
    p = fma_f32(p, r, 0.166664958f);
    return fma_f32(p, r, 0.5f);
}

/* e 2^k, rounded once: the first factor keeps e normal, so only the second can round. */
Q_FN f32 scale_f32(f32 e, i32 k)
{
    const i32 half = (i32)(((u32)k + 1024u) >> 1) - 512;
    return e * power_of_2(half) * power_of_2((i32)((u32)k - (u32)half));
}

/* x = k ln 2 + r, k also as the low bits of magic.  The limits lie beyond all overflow and underflow, and let NaN
 * through. */
typedef struct Q_Reduced {
    f32 r, magic;
} Q_Reduced;

Q_FN Q_Reduced exp_reduce(f32 x)
{
    const f32 low = x < -104.0f ? -104.0f : x, c = low > 91.0f ? 91.0f : low;
    const f32 magic = fma_f32(c, Q_LOG2E, Q_MAGIC), k = magic - Q_MAGIC;
    const Q_Reduced v = { fma_f32(k, -Q_LN2_LO, fma_f32(k, -Q_LN2_HI, c)), magic };
    return v;
}

Q_FN i32 magic_integer(f32 magic)
{
    return (i32)(bits_of(magic) - bits_of(Q_MAGIC));
}

/* exp(x) 2^shift, shift 0 or -1.  What is sure to round to 0, as what a mask forbids does, is 0 before it is scaled: some
 * processors take a hundred cycles for a product that underflows. */
Q_FN f32 exp_scaled(f32 x, i32 shift)
{
    const Q_Reduced v = exp_reduce(x);
    const f32 e = fma_f32(v.r * v.r, exp_tail(v.r), v.r) + 1;
    return scale_f32(x < -104.0f ? 0 : e, magic_integer(v.magic) + shift);
}

/* exp(x) and what its last addition loses. */
Q_FN Q_Pair exp_pair(f32 x)
{
    const Q_Reduced v = exp_reduce(x);
    const f32 t = fma_f32(v.r * v.r, exp_tail(v.r), v.r), e = 1 + t, lost = t - (e - 1);
    const i32 k = magic_integer(v.magic);
    const Q_Pair y = { scale_f32(e, k), scale_f32(lost, k) };
    return y;
}

Q_FN f32 exp_f32(f32 x)
{
    return exp_scaled(x, 0);
}

/* 2^(x + lo): |lo| is far below 1; error of 2^r 2^-26.8 */
Q_FN f32 exp2_sum(f32 x, f32 lo)
{
    const f32 low = x < -151.0f ? -151.0f : x, c = low > 129.0f ? 129.0f : low;
    const f32 magic = c + Q_MAGIC, k = magic - Q_MAGIC, r = (c - k) + lo;
    f32 p = 0.000154334906f;
    p = fma_f32(p, r, 0.00133982324f);
    p = fma_f32(p, r, 0.00961811095f);
    p = fma_f32(p, r, 0.0555034168f);
    p = fma_f32(p, r, 0.240226507f);
    p = fma_f32(p, r, 0.693147182f);
    return scale_f32(fma_f32(p, r, 1.0f), magic_integer(magic));
}

Q_FN f32 exp2_f32(f32 x)
{
    return exp2_sum(x, 0);
}

/* exp(x) - 1 = 2^k (exp(r) - 1) + (2^k - 1); half of it is formed, so that k = 128 does not overflow too early. */
Q_FN f32 expm1_f32(f32 x)
{
    const Q_Reduced v = exp_reduce(x);
    const f32 p = fma_f32(v.r * v.r, exp_tail(v.r), v.r);
    const f32 t = scale_f32(0.5f, magic_integer(v.magic));
    const f32 y = 2 * fma_f32(p, t, t - 0.5f);
    const f32 near = v.magic == Q_MAGIC ? p : y;
    const f32 high = x > 89.0f ? Q_INF : near;
    return x == 0 ? x : high;
}

/* 1 / (1 + exp(-x)) as n / (1 + e), e = exp(-|x|), n = 1 or e, and one correction by the remainder: 1 / (1 + e) is the
 * quotient, or 1 less the quotient. */
Q_FN f32 sigmoid_f32(f32 x)
{
    const Q_Pair e = exp_pair(-abs_f32(x));
    const f32 d = 1 + e.hi, d_lo = (e.hi - (d - 1)) + e.lo;
    const f32 n = x < 0 ? e.hi : 1.0f, n_lo = x < 0 ? e.lo : 0.0f, q = n / d;
    const f32 rest = fma_f32(-q, d_lo, fma_f32(-q, d, n) + n_lo);
    return fma_f32(rest, x < 0 ? 1 - q : q, q);
}

#endif
