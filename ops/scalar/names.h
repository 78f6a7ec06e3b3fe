/* The names rows use.  Each picks the arithmetic from its first argument, which must be f32 or f64 (Q_F), or one of
 * those, i64 or u64 (Q_N); anything else does not compile.  Arguments are expressions without side effects: they may be
 * read twice. */
#ifndef QCC_OPS_SCALAR_NAMES_H
#define QCC_OPS_SCALAR_NAMES_H

#ifdef __CUDACC__

template <class F, class D> Q_FN F q_pick(f32, F f, D)
{
    return f;
}

template <class F, class D> Q_FN D q_pick(f64, F, D d)
{
    return d;
}

template <class F, class D, class I, class U> Q_FN F q_pick(f32, F f, D, I, U)
{
    return f;
}

template <class F, class D, class I, class U> Q_FN D q_pick(f64, F, D d, I, U)
{
    return d;
}

template <class F, class D, class I, class U> Q_FN I q_pick(i64, F, D, I i, U)
{
    return i;
}

template <class F, class D, class I, class U> Q_FN U q_pick(u64, F, D, I, U u)
{
    return u;
}

#define Q_F(name, a) q_pick(a, name##f32, name##f64)
#define Q_N(name, a) q_pick(a, name##f32, name##f64, name##i64, name##u64)

#else

#define Q_F(name, a) _Generic((a), f32 : name##f32, f64 : name##f64)
#define Q_N(name, a) _Generic((a), f32 : name##f32, f64 : name##f64, i64 : name##i64, u64 : name##u64)

#endif

#define q_exp(x)         Q_F(exp_, x)(x)
#define q_exp2(x)        Q_F(exp2_, x)(x)
#define q_expm1(x)       Q_F(expm1_, x)(x)
#define q_log(x)         Q_F(log_, x)(x)
#define q_log1p(x)       Q_F(log1p_, x)(x)
#define q_log2(x)        Q_F(log2_, x)(x)
#define q_sigmoid(x)     Q_F(sigmoid_, x)(x)
#define q_softplus(x)    Q_F(softplus_, x)(x)
#define q_sin(x)         Q_F(sin_, x)(x)
#define q_cos(x)         Q_F(cos_, x)(x)
#define q_tan(x)         Q_F(tan_, x)(x)
#define q_asin(x)        Q_F(asin_, x)(x)
#define q_acos(x)        Q_F(acos_, x)(x)
#define q_atan(x)        Q_F(atan_, x)(x)
#define q_atan2(y, x)    Q_F(atan2_, y)(y, x)
#define q_sinh(x)        Q_F(sinh_, x)(x)
#define q_cosh(x)        Q_F(cosh_, x)(x)
#define q_tanh(x)        Q_F(tanh_, x)(x)
#define q_asinh(x)       Q_F(asinh_, x)(x)
#define q_acosh(x)       Q_F(acosh_, x)(x)
#define q_atanh(x)       Q_F(atanh_, x)(x)
#define q_erf(x)         Q_F(erf_, x)(x)
#define q_sqrt(x)        Q_F(sqrt_, x)(x)
#define q_rsqrt(x)       Q_F(rsqrt_, x)(x)
#define q_fma(x, y, z)   Q_F(fma_, x)(x, y, z)
#define q_rint(x)        Q_F(rint_, x)(x)
#define q_floor(x)       Q_F(floor_, x)(x)
#define q_ceil(x)        Q_F(ceil_, x)(x)
#define q_trunc(x)       Q_F(trunc_, x)(x)
#define q_copysign(x, y) Q_F(copysign_, x)(x, y)
#define q_isnan(x)       Q_F(isnan_, x)(x)
#define q_isinf(x)       Q_F(isinf_, x)(x)
#define q_signbit(x)     Q_F(signbit_, x)(x)

#define q_nearest_level(x, levels) Q_F(nearest_level_, x)(x, levels)
#define q_level(x, levels)         Q_F(level_, x)(x, levels)
#define q_stochastic_bf16(x, draw) Q_F(stochastic_bf16_, x)(x, draw)
#define q_straight(x, y)           Q_F(straight_, x)(x, y)

#define q_plus(x, y)       Q_N(plus_, x)(x, y)
#define q_minus(x, y)      Q_N(minus_, x)(x, y)
#define q_times(x, y)      Q_N(times_, x)(x, y)
#define q_neg(x)           Q_N(neg_, x)(x)
#define q_abs(x)           Q_N(abs_, x)(x)
#define q_sign(x)          Q_N(sign_, x)(x)
#define q_negative(x)      Q_N(negative_, x)(x)
#define q_max(x, y)        Q_N(max_, x)(x, y)
#define q_min(x, y)        Q_N(min_, x)(x, y)
#define q_clamp(x, lo, hi) Q_N(clamp_, x)(x, lo, hi)
#define q_div(x, y)        Q_N(div_, x)(x, y)
#define q_mod(x, y)        Q_N(mod_, x)(x, y)  /* sign of y, as Python's */
#define q_fmod(x, y)       Q_N(fmod_, x)(x, y) /* sign of x, as C's */
#define q_pow(x, y)        Q_N(pow_, x)(x, y)

#define q_f32(x) Q_N(f32_of_, x)(x)
#define q_f64(x) Q_N(f64_of_, x)(x)
#define q_i64(x) Q_N(i64_of_, x)(x)
#define q_u64(x) Q_N(u64_of_, x)(x)

#ifdef __CUDACC__
#define q_shl(x, n) q_pick(x, 0, 0, shl_i64, shl_u64)(x, n)
#define q_shr(x, n) q_pick(x, 0, 0, shr_i64, shr_u64)(x, n)
#else
#define q_shl(x, n) _Generic((x), i64 : shl_i64, u64 : shl_u64)(x, n)
#define q_shr(x, n) _Generic((x), i64 : shr_i64, u64 : shr_u64)(x, n)
#endif

#endif
