/* Size arithmetic that says when it does not fit.  Every function answers true and stores the result, or false
 * and leaves *out alone. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKED static inline __attribute__((warn_unused_result))

#define CHECKED_OP(NAME, T, BUILTIN)                                                                                   \
    CHECKED bool NAME(T a, T b, T *out)                                                                                \
    {                                                                                                                  \
        T r;                                                                                                           \
        if (BUILTIN(a, b, &r))                                                                                         \
            return false;                                                                                              \
        *out = r;                                                                                                      \
        return true;                                                                                                   \
    }

/* a + b, a - b, a * b. */
CHECKED_OP(checked_add_size, size_t, __builtin_add_overflow)
CHECKED_OP(checked_sub_size, size_t, __builtin_sub_overflow)
CHECKED_OP(checked_mul_size, size_t, __builtin_mul_overflow)
CHECKED_OP(checked_add_i64, int64_t, __builtin_add_overflow)
CHECKED_OP(checked_sub_i64, int64_t, __builtin_sub_overflow)
CHECKED_OP(checked_mul_i64, int64_t, __builtin_mul_overflow)
CHECKED_OP(checked_add_u64, uint64_t, __builtin_add_overflow)
CHECKED_OP(checked_mul_u64, uint64_t, __builtin_mul_overflow)

#undef CHECKED_OP

/* A non-negative count as a size_t. */
CHECKED bool checked_size_of_i64(int64_t n, size_t *out)
{
    if (n < 0 || (uint64_t)n > SIZE_MAX)
        return false;
    *out = (size_t)n;
    return true;
}

/* A size as an int64_t. */
CHECKED bool checked_i64_of_size(size_t n, int64_t *out)
{
    if (n > (uint64_t)INT64_MAX)
        return false;
    *out = (int64_t)n;
    return true;
}

/* a * b + c, what offsets and headers need. */
CHECKED bool checked_mul_add_size(size_t a, size_t b, size_t c, size_t *out)
{
    size_t ab;
    return checked_mul_size(a, b, &ab) && checked_add_size(ab, c, out);
}

/* The number of elements of a shape, refused above `limit` or for a negative dimension.  A shape with a zero has
 * none, but its other dimensions must fit as well: strides are made from them. */
CHECKED bool checked_product_i64(const int64_t *dims, int rank, int64_t limit, int64_t *out)
{
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        if (dims[i] == 0)
            empty = true;
        else if (!checked_mul_i64(product, dims[i], &product) || product > limit)
            return false;
    }
    if (!empty && product > limit)
        return false;
    *out = empty ? 0 : product;
    return true;
}

/* The smallest multiple of `to` (not 0) that is not below n. */
CHECKED bool checked_round_up_size(size_t n, size_t to, size_t *out)
{
    size_t rest = n % to;
    return checked_add_size(n, rest ? to - rest : 0, out);
}

/* Bytes that n elements of `bits` bits take when packed without gaps: n * bits / 8, rounded up. */
CHECKED bool checked_bytes_of_bits(int64_t n, unsigned bits, size_t *out)
{
    size_t count, whole;
    if (!checked_size_of_i64(n, &count) || !checked_mul_size(count / 8, bits, &whole))
        return false;
    return checked_add_size(whole, (count % 8 * (size_t)bits + 7) / 8, out);
}

#undef CHECKED

#endif
