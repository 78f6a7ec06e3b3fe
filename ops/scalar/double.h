/* f64: what the platform's libm gives. */
#ifndef QCC_OPS_SCALAR_DOUBLE_H
#define QCC_OPS_SCALAR_DOUBLE_H

#define Q_LIBM(name)                                                                                                   \
    Q_FN f64 name##_f64(f64 x)                                                                                         \
    {                                                                                                                  \
        return name(x);                                                                                                \
    }
/* clang-format off */
Q_LIBM(exp)  Q_LIBM(exp2) Q_LIBM(expm1) Q_LIBM(log)  Q_LIBM(log1p) Q_LIBM(log2)  Q_LIBM(sin)   Q_LIBM(cos)
Q_LIBM(tan)  Q_LIBM(asin) Q_LIBM(acos)  Q_LIBM(atan) Q_LIBM(sinh)  Q_LIBM(cosh)  Q_LIBM(tanh)  Q_LIBM(asinh)
Q_LIBM(erf)  Q_LIBM(sqrt) Q_LIBM(rint)  Q_LIBM(ceil) Q_LIBM(floor) Q_LIBM(trunc) Q_LIBM(acosh) Q_LIBM(atanh)
/* clang-format on */
#undef Q_LIBM

#define Q_LIBM2(name)                                                                                                  \
    Q_FN f64 name##_f64(f64 x, f64 y)                                                                                  \
    {                                                                                                                  \
        return name(x, y);                                                                                             \
    }
            Q_LIBM2(pow) Q_LIBM2(atan2) Q_LIBM2(fmod) Q_LIBM2(copysign)
#undef Q_LIBM2

                Q_FN f64 abs_f64(f64 x)
{
    return fabs(x);
}

Q_FN int isnan_f64(f64 x)
{
    return x != x;
}

Q_FN int isinf_f64(f64 x)
{
    return x == (f64)Q_INF || x == -(f64)Q_INF;
}

Q_FN int signbit_f64(f64 x)
{
    return copysign(1.0, x) < 0;
}

Q_FN f64 sign_f64(f64 x)
{
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
}

Q_FN int negative_f64(f64 x)
{
    return x < 0;
}

Q_FN f64 max_f64(f64 x, f64 y)
{
    const f64 m = x > y ? x : y;
    const f64 n = x == 0 && y == 0 ? x + y : m;
    return x != x ? x : n;
}

Q_FN f64 min_f64(f64 x, f64 y)
{
    return -max_f64(-x, -y);
}

Q_FN f64 clamp_f64(f64 x, f64 lo, f64 hi)
{
    const f64 y = x < lo ? lo : x;
    return y > hi ? hi : y;
}

Q_FN f64 rsqrt_f64(f64 x)
{
    return 1 / sqrt(x);
}

Q_FN f64 sigmoid_f64(f64 x)
{
    const f64 e = exp(-fabs(x));
    return (x < 0 ? e : 1.0) / (1 + e);
}

Q_FN f64 softplus_f64(f64 x)
{
    return (x < 0 ? 0.0 : x) + log1p(exp(-fabs(x)));
}

Q_FN f64 div_f64(f64 x, f64 y)
{
    return x / y;
}

Q_FN f64 mod_f64(f64 x, f64 y)
{
    const f64 r = fmod(x, y);
    return r == 0 ? copysign(r, y) : (r < 0) != (y < 0) ? r + y : r;
}

#endif
