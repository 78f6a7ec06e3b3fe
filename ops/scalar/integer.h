/* i64 and u64: total functions, wrapping at 2^64; and conversions between the four arithmetics. */
#ifndef QCC_OPS_SCALAR_INTEGER_H
#define QCC_OPS_SCALAR_INTEGER_H

#define Q_I64_MAX ((i64)0x7fffffffffffffffu)
#define Q_I64_MIN (-Q_I64_MAX - 1)

/* The quotient truncated towards 0; x / 0 = 0; the least i64 over -1 wraps to itself. */
Q_FN i64 div_i64(i64 x, i64 y)
{
    return y == 0 ? 0 : y == -1 ? (i64)(0 - (u64)x) : x / y;
}

Q_FN u64 div_u64(u64 x, u64 y)
{
    return y == 0 ? 0 : x / y;
}

/* The remainder of that quotient, with the sign of x; x modulo 0 = 0. */
Q_FN i64 fmod_i64(i64 x, i64 y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

Q_FN u64 fmod_u64(u64 x, u64 y)
{
    return y == 0 ? 0 : x % y;
}

/* The remainder of the quotient rounded down, with the sign of y; x modulo 0 = 0. */
Q_FN i64 mod_i64(i64 x, i64 y)
{
    const i64 r = fmod_i64(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

Q_FN u64 mod_u64(u64 x, u64 y)
{
    return fmod_u64(x, y);
}

/* Shifts by 64 and more leave 0, and so do negative ones; right shifts of i64 are logical, as all of ONNX's are. */
Q_FN u64 shl_u64(u64 x, u64 n)
{
    return n < 64 ? x << (n & 63) : 0;
}

Q_FN u64 shr_u64(u64 x, u64 n)
{
    return n < 64 ? x >> (n & 63) : 0;
}

Q_FN i64 shl_i64(i64 x, i64 n)
{
    return (i64)shl_u64((u64)x, (u64)n);
}

Q_FN i64 shr_i64(i64 x, i64 n)
{
    const u64 steps = (u64)n < 64 ? (u64)n : 63;
    return n < 0 ? (x < 0 ? -1 : 0) : x >> steps;
}

/* x^y modulo 2^64. */
Q_FN u64 pow_u64(u64 x, u64 y)
{
    u64 result = 1;
    for (u64 left = y, square = x; left != 0; left >>= 1, square *= square)
        result *= (left & 1) ? square : 1;
    return result;
}

/* A negative power is the reciprocal truncated towards 0: of 1 and -1 it is +-1, of all others 0 (of 0 too). */
Q_FN i64 pow_i64(i64 x, i64 y)
{
    const i64 inverse = x == 1 ? 1 : x == -1 ? ((y & 1) ? -1 : 1) : 0;
    return y < 0 ? inverse : (i64)pow_u64((u64)x, (u64)y);
}

Q_FN i64 abs_i64(i64 x)
{
    return x < 0 ? (i64)(0 - (u64)x) : x;
}

Q_FN u64 abs_u64(u64 x)
{
    return x;
}

Q_FN i64 sign_i64(i64 x)
{
    return (x > 0) - (x < 0);
}

Q_FN u64 sign_u64(u64 x)
{
    return x > 0;
}

/* Sums, differences, products and negatives.  Those of i64 wrap, which is said by way of u64: kernels are compiled by
 * compilers that take signed numbers not to overflow. */
#define Q_RING(T, W)                                                                                                   \
    Q_FN T plus_##T(T x, T y)                                                                                          \
    {                                                                                                                  \
        return (T)((W)x + (W)y);                                                                                       \
    }                                                                                                                  \
    Q_FN T minus_##T(T x, T y)                                                                                         \
    {                                                                                                                  \
        return (T)((W)x - (W)y);                                                                                       \
    }                                                                                                                  \
    Q_FN T times_##T(T x, T y)                                                                                         \
    {                                                                                                                  \
        return (T)((W)x * (W)y);                                                                                       \
    }                                                                                                                  \
    Q_FN T neg_##T(T x)                                                                                                \
    {                                                                                                                  \
        return (T)(-(W)x);                                                                                             \
    }
Q_RING(f32, f32)
Q_RING(f64, f64)
Q_RING(i64, u64)
Q_RING(u64, u64)
#undef Q_RING

/* x < 0, sayable of every arithmetic. */
Q_FN int negative_i64(i64 x)
{
    return x < 0;
}

Q_FN int negative_u64(u64 x)
{
    return (void)x, 0;
}

#define Q_ORDER(T)                                                                                                     \
    Q_FN T max_##T(T x, T y)                                                                                           \
    {                                                                                                                  \
        return x > y ? x : y;                                                                                          \
    }                                                                                                                  \
    Q_FN T min_##T(T x, T y)                                                                                           \
    {                                                                                                                  \
        return x < y ? x : y;                                                                                          \
    }                                                                                                                  \
    Q_FN T clamp_##T(T x, T lo, T hi)                                                                                  \
    {                                                                                                                  \
        return min_##T(max_##T(x, lo), hi);                                                                            \
    }
Q_ORDER(i64)
Q_ORDER(u64)
#undef Q_ORDER

/* Float to integer truncates, saturates, and makes 0 of NaN; integer to float rounds to nearest even; i64 and u64 wrap.
 * That |x| < 1 gives 0 is said, not left to the conversion: without trapping math gcc makes (float)(integer)x a
 * truncation, which would give -0. */
#define Q_CONVERT(F)                                                                                                   \
    Q_FN i64 i64_of_##F(F x)                                                                                           \
    {                                                                                                                  \
        const F top = (F)9223372036854775808.0, within = x < top && x >= -top ? x : 0;                                 \
        const i64 beyond = x >= top ? Q_I64_MAX : x < -top ? Q_I64_MIN : 0;                                            \
        return within >= 1 || within <= -1 ? (i64)within : beyond;                                                     \
    }                                                                                                                  \
    Q_FN u64 u64_of_##F(F x)                                                                                           \
    {                                                                                                                  \
        const F top = (F)18446744073709551616.0, within = x < top && x > 0 ? x : 0;                                    \
        return x >= top ? ~(u64)0 : (u64)within;                                                                       \
    }
Q_CONVERT(f32)
Q_CONVERT(f64)
#undef Q_CONVERT

#define Q_CAST(TO, FROM)                                                                                               \
    Q_FN TO TO##_of_##FROM(FROM x)                                                                                     \
    {                                                                                                                  \
        return (TO)x;                                                                                                  \
    }
#define Q_CASTS(FROM) Q_CAST(f32, FROM) Q_CAST(f64, FROM)
Q_CASTS(f32)
Q_CASTS(f64)
Q_CASTS(i64)
Q_CASTS(u64)
Q_CAST(i64, i64)
Q_CAST(i64, u64)
Q_CAST(u64, i64)
Q_CAST(u64, u64)
#undef Q_CASTS
#undef Q_CAST

#endif
