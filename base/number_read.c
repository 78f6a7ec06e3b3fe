/* Decimal text to binary.  digits * 10^e is brought to 64 exact leading bits and a note whether anything is left below
 * them, which is all that one correct rounding needs: by one product or quotient of 128 bits for up to 19 digits and
 * ordinary exponents, by long arithmetic otherwise. */
#include "base/number_text.h"

#include "base/big.h"
#include "base/half.h"

enum {
    WORD_DIGITS = 19,    /* fit a word */
    MOST_DIGITS = 768,   /* more than any midpoint of two f64 has; what follows only matters by not being zero */
    LARGEST_POINT = 310, /* 10^310 is infinite */
    SMALLEST_POINT = -345,
};

/* (top + something below 1 if `rest`) * 2^exponent, the highest bit of `top` set. */
typedef struct Leading {
    uint64_t top;
    int exponent;
    bool rest;
} Leading;

typedef struct Target {
    int fraction, least; /* bits of fraction; exponent of the smallest normal number */
    uint64_t infinite;
} Target;

static const Target target_f64 = { 52, -1022, (uint64_t)0x7ff << 52 };
static const Target target_f32 = { 23, -126, (uint64_t)0xff << 23 };

static uint64_t round_leading(Leading x, const Target *t)
{
    int exponent = x.exponent + 63, shift = 63 - t->fraction;
    if (exponent < t->least)
        shift += t->least - exponent;
    if (shift > 64)
        return 0;
    uint64_t half = (uint64_t)1 << (shift - 1), below = x.top & (half | (half - 1));
    uint64_t bits = shift == 64 ? 0 : x.top >> shift;
    bool up = below > half || (below == half && (x.rest || bits & 1));
    if (exponent > t->least)
        bits += (uint64_t)(exponent - t->least) << t->fraction; /* the leading bit counts as one more */
    bits += up;
    return bits < t->infinite ? bits : t->infinite;
}

static Leading leading_of_wide(Wide x, int exponent, bool rest)
{
    uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    int up = high ? __builtin_clzll(high) : 64 + __builtin_clzll(low);
    x <<= up;
    return (Leading){ (uint64_t)(x >> 64), exponent + 64 - up, rest || (uint64_t)x };
}

static Leading leading_of_word(uint64_t digits, int e)
{
    if (e >= 0)
        return leading_of_wide((Wide)digits * pow5_words[e], e, false);
    int up = __builtin_clzll(digits);
    Wide dividend = (Wide)(digits << up) << 64, quotient = dividend / pow5_words[-e];
    return leading_of_wide(quotient, e - up - 64, quotient * pow5_words[-e] != dividend);
}

static Leading leading_of_big(Big *b, int e, bool rest)
{
    int exponent = e;
    if (e >= 0) {
        big_mul_pow5(b, e);
    } else {
        int bits_of_divisor = -e * 7 / 3 + 1; /* log2(5) is below 7/3 */
        int up = bits_of_divisor + 65 - big_bits(b);
        if (up > 0) {
            big_shift_left(b, up);
            exponent -= up;
        }
        rest |= big_div_pow5(b, -e);
    }
    int low = big_bits(b) - 64;
    if (low < 0) {
        big_shift_left(b, -low);
        exponent += low;
        low = 0;
    }
    uint64_t top = big_window(b, low, &rest);
    return (Leading){ top, exponent + low, rest };
}

/* What the text says, before any arithmetic. */
typedef struct Scan {
    const char *digits, *end; /* from the first digit that is not 0 to behind the last digit; a point may be inside */
    int64_t n_digits;         /* from that digit on */
    int64_t point;            /* where the point is, counted from that digit */
    bool negative;
} Scan;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_sign(const char *s, size_t n, bool *negative)
{
    *negative = n && s[0] == '-';
    return n && (s[0] == '-' || s[0] == '+');
}

/* The exponent part at s, if there is a whole one; far exponents stop counting. */
static size_t scan_exponent(const char *s, size_t n, int64_t *exponent)
{
    if (n == 0 || (s[0] != 'e' && s[0] != 'E'))
        return 0;
    bool negative;
    size_t i = 1 + skip_sign(s + 1, n - 1, &negative), first = i;
    int64_t value = 0;
    for (; i < n && is_digit(s[i]); i++)
        if (value < (int64_t)1 << 40)
            value = value * 10 + (s[i] - '0');
    if (i == first)
        return 0;
    *exponent += negative ? -value : value;
    return i;
}

/* The bytes of the decimal number at s, 0 for none. */
static size_t scan(const char *s, size_t n, Scan *out)
{
    *out = (Scan){ 0 };
    size_t i = skip_sign(s, n, &out->negative), any = 0;
    bool pointed = false;
    for (; i < n && (is_digit(s[i]) || (s[i] == '.' && !pointed)); i++) {
        if (s[i] == '.') {
            pointed = true;
            continue;
        }
        any++;
        if (!out->digits && s[i] != '0')
            out->digits = s + i;
        out->n_digits += out->digits != NULL;
        if (out->digits && !pointed)
            out->point++;
        if (!out->digits && pointed)
            out->point--;
    }
    out->end = s + i;
    if (!any)
        return 0;
    return i + scan_exponent(s + i, n - i, &out->point);
}

/* The first `n` digits into b. */
static void big_of_digits(Big *b, const char *s, int64_t n)
{
    uint64_t word = 0, scale = 1;
    big_set(b, 0);
    for (; n > 0; s++) {
        if (*s == '.')
            continue;
        word = word * 10 + (uint64_t)(*s - '0');
        scale *= 10;
        n--;
        if (n == 0 || scale == 1000000000000000000u) {
            big_mul_add(b, scale, word);
            word = 0, scale = 1;
        }
    }
}

static bool any_digit_after(const Scan *x, int64_t n)
{
    for (const char *s = x->digits; s < x->end; s++)
        if (*s != '.' && n-- <= 0 && *s != '0')
            return true;
    return false;
}

static uint64_t bits_of(const Scan *x, const Target *t)
{
    if (!x->digits || x->point < SMALLEST_POINT)
        return 0;
    if (x->point > LARGEST_POINT)
        return t->infinite;
    int64_t e = x->point - x->n_digits;
    if (x->n_digits <= WORD_DIGITS && e >= -POW5_MAX && e <= POW5_MAX) {
        uint64_t word = 0;
        for (const char *s = x->digits; s < x->end; s++)
            if (*s != '.')
                word = word * 10 + (uint64_t)(*s - '0');
        return round_leading(leading_of_word(word, (int)e), t);
    }
    Big b;
    int64_t used = x->n_digits < MOST_DIGITS ? x->n_digits : MOST_DIGITS;
    big_of_digits(&b, x->digits, used);
    return round_leading(leading_of_big(&b, (int)(x->point - used), any_digit_after(x, used)), t);
}

/* Whether the n bytes begin with `word`, whatever the case of their letters. */
static bool begins(const char *s, size_t n, const char *word)
{
    size_t i = 0;
    for (; word[i]; i++)
        if (i >= n || (s[i] | 0x20) != word[i])
            return false;
    return true;
}

static size_t read_word(const char *s, size_t n, const Target *t, uint64_t *bits, bool *negative)
{
    size_t sign = skip_sign(s, n, negative);
    *bits = t->infinite;
    if (begins(s + sign, n - sign, "infinity"))
        return sign + 8;
    if (begins(s + sign, n - sign, "inf"))
        return sign + 3;
    *bits |= t->infinite >> 1; /* the quiet bit, and bits of the exponent that are set anyway */
    return begins(s + sign, n - sign, "nan") ? sign + 3 : 0;
}

static size_t read_bits(const char *s, size_t n, const Target *t, uint64_t *bits, bool *negative)
{
    Scan x;
    size_t used = scan(s, n, &x);
    if (!used)
        return read_word(s, n, t, bits, negative);
    *bits = bits_of(&x, t);
    *negative = x.negative;
    return used;
}

size_t f64_read(const char *s, size_t n, double *out)
{
    uint64_t bits;
    bool negative;
    size_t used = read_bits(s, n, &target_f64, &bits, &negative);
    if (used)
        *out = half_f64(bits | (uint64_t)negative << 63);
    return used;
}

size_t f32_read(const char *s, size_t n, float *out)
{
    uint64_t bits;
    bool negative;
    size_t used = read_bits(s, n, &target_f32, &bits, &negative);
    if (used)
        *out = half_f32((uint32_t)bits | (uint32_t)negative << 31);
    return used;
}

bool f64_from_text(const char *s, size_t n, double *out)
{
    double x;
    if (n == 0 || f64_read(s, n, &x) != n)
        return false;
    *out = x;
    return true;
}

bool f32_from_text(const char *s, size_t n, float *out)
{
    float x;
    if (n == 0 || f32_read(s, n, &x) != n)
        return false;
    *out = x;
    return true;
}

bool u64_from_text(const char *s, size_t n, uint64_t *out)
{
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s[i]) || __builtin_mul_overflow(x, (uint64_t)10, &x) ||
            __builtin_add_overflow(x, (uint64_t)(s[i] - '0'), &x))
            return false;
    }
    if (n)
        *out = x;
    return n > 0;
}

bool i64_from_text(const char *s, size_t n, int64_t *out)
{
    bool negative;
    uint64_t x;
    size_t sign = skip_sign(s, n, &negative);
    if (!u64_from_text(s + sign, n - sign, &x) || x > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - x) : (int64_t)x;
    return true;
}

bool parse_bits(const char *s, size_t n, uint64_t *out)
{
    if (n < 3 || n > 18 || s[0] != '0' || s[1] != 'x')
        return false;
    uint64_t x = 0;
    for (size_t i = 2; i < n; i++) {
        char c = s[i], low = (char)(c | 0x20);
        if (!is_digit(c) && (low < 'a' || low > 'f'))
            return false;
        x = x << 4 | (uint64_t)(is_digit(c) ? c - '0' : low - 'a' + 10);
    }
    *out = x;
    return true;
}
