/* Just enough exact integer arithmetic for decimal text: a natural number, times and by words and powers of five. */
#ifndef BASE_BIG_H
#define BASE_BIG_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 Wide;

/* 768 digits shifted for a quotient of 64 bits by the largest power of five that reading a number needs. */
enum { BIG_LIMBS = 48 };

typedef struct Big {
    int n; /* limbs in use; the topmost is not 0 */
    uint64_t limb[BIG_LIMBS];
} Big;

enum { POW5_MAX = 27 }; /* the largest power of five that fits a word */

static const uint64_t pow5_words[POW5_MAX + 1] = {
    1u,
    5u,
    25u,
    125u,
    625u,
    3125u,
    15625u,
    78125u,
    390625u,
    1953125u,
    9765625u,
    48828125u,
    244140625u,
    1220703125u,
    6103515625u,
    30517578125u,
    152587890625u,
    762939453125u,
    3814697265625u,
    19073486328125u,
    95367431640625u,
    476837158203125u,
    2384185791015625u,
    11920928955078125u,
    59604644775390625u,
    298023223876953125u,
    1490116119384765625u,
    7450580596923828125u,
};

/* b = x. */
static inline void big_set(Big *b, uint64_t x)
{
    b->limb[0] = x;
    b->n = x != 0;
}

/* b = b * x + add. */
static inline void big_mul_add(Big *b, uint64_t x, uint64_t add)
{
    uint64_t carry = add;
    for (int i = 0; i < b->n; i++) {
        Wide t = (Wide)b->limb[i] * x + carry;
        b->limb[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
    if (carry)
        b->limb[b->n++] = carry;
}

/* b = b / x; the remainder. */
static inline uint64_t big_div(Big *b, uint64_t x)
{
    Wide rest = 0;
    for (int i = b->n; i-- > 0;) {
        rest = rest << 64 | b->limb[i];
        b->limb[i] = (uint64_t)(rest / x);
        rest %= x;
    }
    while (b->n && b->limb[b->n - 1] == 0)
        b->n--;
    return (uint64_t)rest;
}

/* b = b * 5^k. */
static inline void big_mul_pow5(Big *b, int k)
{
    for (; k > POW5_MAX; k -= POW5_MAX)
        big_mul_add(b, pow5_words[POW5_MAX], 0);
    big_mul_add(b, pow5_words[k], 0);
}

/* b = b / 5^k; whether a remainder was left.  Floors of floors are the floor of the whole. */
static inline bool big_div_pow5(Big *b, int k)
{
    uint64_t rest = 0;
    for (; k > POW5_MAX; k -= POW5_MAX)
        rest |= big_div(b, pow5_words[POW5_MAX]);
    return (rest | big_div(b, pow5_words[k])) != 0;
}

/* b = b * 2^bits. */
static inline void big_shift_left(Big *b, int bits)
{
    if (b->n == 0)
        return;
    int whole = bits / 64, part = bits % 64;
    if (part)
        big_mul_add(b, (uint64_t)1 << part, 0);
    for (int i = b->n; whole && i-- > 0;)
        b->limb[i + whole] = b->limb[i];
    for (int i = 0; i < whole; i++)
        b->limb[i] = 0;
    b->n += whole;
}

/* Length in bits; 0 for 0. */
static inline int big_bits(const Big *b)
{
    return b->n ? b->n * 64 - __builtin_clzll(b->limb[b->n - 1]) : 0;
}

/* The 64 bits of b from bit `low` up; *lost says whether anything was set below. */
static inline uint64_t big_window(const Big *b, int low, bool *lost)
{
    int whole = low / 64, part = low % 64;
    for (int i = 0; i < whole && i < b->n; i++)
        *lost |= b->limb[i] != 0;
    if (whole >= b->n)
        return 0;
    uint64_t window = b->limb[whole] >> part;
    if (part) {
        *lost |= b->limb[whole] << (64 - part) != 0;
        if (whole + 1 < b->n)
            window |= b->limb[whole + 1] << (64 - part);
    }
    return window;
}

#endif
