/* Shortest decimal text.  The reals that round to x form an interval; scaled by the power of ten that makes it 1 to 10
 * wide, it holds at most two multiples of ten and at least one integer, and a look at four integers finds the
 * shortest (R. Giulietti's Schubfach).  Where the original approximates powers of ten by a table, the scaling here is
 * done exactly: one product or quotient of 128 bits for ordinary numbers, a few limbs for the others. */
#include "base/number_text.h"

#include <string.h>

#include "base/big.h"
#include "base/half.h"

/* x = c * 2^q. */
typedef struct Binary {
    uint64_t c;
    int q;
    bool narrow_below; /* a power of two: the neighbour below is half as far as the one above */
} Binary;

/* digits * 10^k. */
typedef struct Decimal {
    uint64_t digits;
    int k;
} Decimal;

/* c * 2^q * 10^-k, below 2^60: its integer part, with the last bit set when there is a fraction (round to odd). */
static uint64_t scale(uint64_t c, int q, int k)
{
    bool rest = false;
    uint64_t whole;
    if (k <= 0 && k >= -POW5_MAX && q >= k) {
        whole = c * pow5_words[-k] << (q - k);
    } else if (k <= 0 && k >= -POW5_MAX && k - q < 128) {
        Wide product = (Wide)c * pow5_words[-k];
        whole = (uint64_t)(product >> (k - q));
        rest = (Wide)whole << (k - q) != product;
    } else if (k > 0 && k <= POW5_MAX && q - k <= 64) {
        Wide dividend = (Wide)c << (q - k), quotient = dividend / pow5_words[k];
        whole = (uint64_t)quotient;
        rest = quotient * pow5_words[k] != dividend;
    } else {
        Big b;
        big_set(&b, c);
        if (k <= 0) {
            big_mul_pow5(&b, -k);
            whole = big_window(&b, k - q, &rest);
        } else {
            big_shift_left(&b, q - k);
            rest = big_div_pow5(&b, k);
            whole = b.n ? b.limb[0] : 0;
        }
    }
    return whole | rest;
}

static Decimal shortest(Binary x)
{
    /* floor(log10(2^q)), of 3/4 of that where the interval is narrower; exact for all exponents of f64 */
    int k = (x.q * 1262611 - (x.narrow_below ? 524031 : 0)) >> 22;
    uint64_t odd = x.c & 1; /* the ends of the interval round to an even x */
    uint64_t low = scale(4 * x.c - (x.narrow_below ? 1 : 2), x.q, k) + odd;
    uint64_t mid = scale(4 * x.c, x.q, k);
    uint64_t high = scale(4 * x.c + 2, x.q, k) - odd;

    uint64_t s = mid / 4, ten = s - s % 10;
    if (s >= 10) {
        bool down = low <= 4 * ten, up = 4 * (ten + 10) <= high;
        if (down != up)
            return (Decimal){ down ? ten : ten + 10, k };
    }
    bool down = low <= 4 * s, up = 4 * (s + 1) <= high;
    if (down == up) {
        uint64_t half = 4 * s + 2;
        down = mid < half || (mid == half && s % 2 == 0);
    }
    return (Decimal){ down ? s : s + 1, k };
}

static size_t put_digits(char *out, uint64_t digits)
{
    char reversed[20];
    size_t n = 0;
    do {
        reversed[n++] = (char)('0' + digits % 10);
        digits /= 10;
    } while (digits);
    for (size_t i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    return n;
}

static size_t put_exponent(char *out, int exponent)
{
    size_t n = 0;
    out[n++] = 'e';
    if (exponent < 0)
        out[n++] = '-';
    return n + put_digits(out + n, (uint64_t)(exponent < 0 ? -exponent : exponent));
}

/* Plain notation for numbers that need no more than `plain` places before the point or four zeros after it. */
static size_t put_decimal(char *out, Decimal d, int plain)
{
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.k++;
    }
    char digits[20];
    size_t n = put_digits(digits, d.digits);
    int point = (int)n + d.k; /* digits before the point */
    if (point > plain || point < -3) {
        size_t at = 0;
        out[at++] = digits[0];
        if (n > 1) {
            out[at++] = '.';
            memcpy(out + at, digits + 1, n - 1);
            at += n - 1;
        }
        return at + put_exponent(out + at, point - 1);
    }
    if (point <= 0) {
        size_t zeros = (size_t)-point;
        memcpy(out, "0.000", 2 + zeros);
        memcpy(out + 2 + zeros, digits, n);
        return 2 + zeros + n;
    }
    size_t before = (size_t)point;
    if (before >= n) {
        memcpy(out, digits, n);
        memset(out + n, '0', before - n);
        return before;
    }
    memcpy(out, digits, before);
    out[before] = '.';
    memcpy(out + before + 1, digits + before, n - before);
    return n + 1;
}

/* bits: without the sign.  fraction, bias: of the format. */
static size_t to_text(char *out, bool negative, uint64_t bits, int fraction, int bias, int plain)
{
    size_t n = 0;
    uint64_t hidden = (uint64_t)1 << fraction, field = bits >> fraction, infinite = 2 * (uint64_t)bias + 1;
    if (field == infinite && bits & (hidden - 1)) {
        memcpy(out, "nan", 4);
        return 3;
    }
    if (negative)
        out[n++] = '-';
    if (field == infinite) {
        memcpy(out + n, "inf", 3);
        n += 3;
    } else if (bits == 0) {
        out[n++] = '0';
    } else {
        Binary x = { .c = bits & (hidden - 1), .q = 1 - bias - fraction };
        if (field) {
            x.narrow_below = x.c == 0 && field > 1;
            x.c += hidden;
            x.q += (int)field - 1;
        }
        n += put_decimal(out + n, shortest(x), plain);
    }
    out[n] = 0;
    return n;
}

size_t f64_to_text(char out[NUMBER_TEXT], double x)
{
    uint64_t bits = half_bits64(x);
    return to_text(out, bits >> 63, bits & ~((uint64_t)1 << 63), 52, 1023, 16);
}

size_t f32_to_text(char out[NUMBER_TEXT], float x)
{
    uint32_t bits = half_bits32(x);
    return to_text(out, bits >> 31, bits & 0x7fffffffu, 23, 127, 8);
}
