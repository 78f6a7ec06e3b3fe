#include "unit/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "base/half.h"

/* Each format as a list of its non-negative finite values, built with ldexp; rounding is then a search for the
 * nearest one in f64 arithmetic, which shares nothing with the conversions under test. */
typedef enum Kind {
    IEEE,  /* f16, bf16, f8e5m2 */
    FN,    /* f8e4m3fn */
    FNUZ,  /* f8e4m3fnuz, f8e5m2fnuz */
    SMALL, /* f4e2m1, f6: no NaN, always saturate */
} Kind;

typedef struct Format {
    const char *name;
    Kind kind;
    int mant, bias, width;
    uint32_t n_finite; /* codes 0 .. n_finite - 1 are the non-negative finite values */
    uint32_t nan;
    bool has_saturate;
    uint32_t (*from32)(float x, bool saturate);
    uint32_t (*from64)(double x, bool saturate);
    float (*to32)(uint32_t code);
} Format;

#define ADAPT(NAME, ARGS)                                                                                              \
    static uint32_t NAME##_32(float x, bool saturate)                                                                  \
    {                                                                                                                  \
        (void)saturate;                                                                                                \
        return NAME##_from_f32 ARGS;                                                                                   \
    }                                                                                                                  \
    static uint32_t NAME##_64(double x, bool saturate)                                                                 \
    {                                                                                                                  \
        (void)saturate;                                                                                                \
        return NAME##_from_f64 ARGS;                                                                                   \
    }
#define ADAPT_TO(NAME, T)                                                                                              \
    static float NAME##_to(uint32_t code)                                                                              \
    {                                                                                                                  \
        return NAME##_to_f32((T)code);                                                                                 \
    }
ADAPT(f16, (x))
ADAPT(bf16, (x))
ADAPT(f8e4m3fn, (x, saturate))
ADAPT(f8e4m3fnuz, (x, saturate))
ADAPT(f8e5m2, (x, saturate))
ADAPT(f8e5m2fnuz, (x, saturate))
ADAPT(f4e2m1, (x))
ADAPT(f6e2m3, (x))
ADAPT(f6e3m2, (x))
ADAPT_TO(f16, uint16_t)
ADAPT_TO(bf16, uint16_t)
ADAPT_TO(f8e4m3fn, uint8_t)
ADAPT_TO(f8e4m3fnuz, uint8_t)
ADAPT_TO(f8e5m2, uint8_t)
ADAPT_TO(f8e5m2fnuz, uint8_t)
ADAPT_TO(f4e2m1, uint8_t)
ADAPT_TO(f6e2m3, uint8_t)
ADAPT_TO(f6e3m2, uint8_t)

#define ROW(NAME, ...)                                                                                                 \
    {                                                                                                                  \
#NAME, __VA_ARGS__, NAME##_32, NAME##_64, NAME##_to                                                            \
    }
static const Format formats[] = {
    ROW(f16, IEEE, 10, 15, 16, 0x7c00, 0x7e00, false), ROW(bf16, IEEE, 7, 127, 16, 0x7f80, 0x7fc0, false),
    ROW(f8e4m3fn, FN, 3, 7, 8, 0x7f, 0x7f, true),      ROW(f8e4m3fnuz, FNUZ, 3, 8, 8, 0x80, 0x80, true),
    ROW(f8e5m2, IEEE, 2, 15, 8, 0x7c, 0x7e, true),     ROW(f8e5m2fnuz, FNUZ, 2, 16, 8, 0x80, 0x80, true),
    ROW(f4e2m1, SMALL, 1, 1, 4, 8, 8, false),          ROW(f6e2m3, SMALL, 3, 1, 6, 32, 32, false),
    ROW(f6e3m2, SMALL, 2, 3, 6, 32, 32, false),
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static double value_of(const Format *f, uint32_t code)
{
    uint32_t exponent = code >> f->mant, fraction = code & ((1u << f->mant) - 1);
    if (exponent)
        fraction += 1u << f->mant;
    else
        exponent = 1;
    return ldexp(fraction, (int)exponent - f->bias - f->mant);
}

static uint32_t overflowed(const Format *f, uint32_t sign, bool saturate)
{
    if (f->kind == SMALL || (saturate && f->has_saturate))
        return sign | (f->n_finite - 1);
    return f->kind == FNUZ ? f->nan : sign | f->n_finite;
}

static uint32_t expected(const Format *f, double x, bool saturate)
{
    if (isnan(x))
        return f->nan;
    uint32_t sign = signbit(x) ? 1u << (f->width - 1) : 0;
    double a = fabs(x);
    if (isinf(a))
        return overflowed(f, sign, saturate);
    uint32_t low = 0, high = f->n_finite; /* value(low) <= a < value(high), had n_finite a value */
    while (high - low > 1) {
        uint32_t mid = (low + high) / 2;
        if (value_of(f, mid) <= a)
            low = mid;
        else
            high = mid;
    }
    double down = a - value_of(f, low), up = value_of(f, high) - a;
    uint32_t code = down < up || (down == up && low % 2 == 0) ? low : high;
    if (code == f->n_finite)
        return overflowed(f, sign, saturate);
    return f->kind == FNUZ && code == 0 ? 0 : sign | code;
}

static uint32_t magnitude(const Format *f, uint32_t code)
{
    return code & ((1u << (f->width - 1)) - 1);
}

static bool is_nan_code(const Format *f, uint32_t code)
{
    switch (f->kind) {
    case IEEE:
        return magnitude(f, code) > f->n_finite;
    case FN:
        return magnitude(f, code) == f->nan;
    case FNUZ:
        return code == f->nan;
    case SMALL:
        break;
    }
    return false;
}

static bool same_code(const Format *f, uint32_t want, uint32_t got)
{
    return want == got || (is_nan_code(f, want) && is_nan_code(f, got));
}

static void try_value(const Format *f, double x)
{
    for (int saturate = 0; saturate <= (f->has_saturate ? 1 : 0); saturate++) {
        uint32_t want = expected(f, x, saturate), got = f->from64(x, saturate);
        if (!same_code(f, want, got))
            fail_msg("%s from f64 %a (saturate %d): %#x, not %#x", f->name, x, saturate, got, want);
        if (!isnan(x) && (double)(float)x != x)
            continue;
        got = f->from32((float)x, saturate);
        if (!same_code(f, want, got))
            fail_msg("%s from f32 %a (saturate %d): %#x, not %#x", f->name, x, saturate, got, want);
    }
}

static void every_code_has_its_value(void **state)
{
    (void)state;
    for (const Format *f = formats; f < formats + N_FORMATS; f++)
        for (uint32_t code = 0; code < 1u << f->width; code++) {
            float got = f->to32(code);
            double sign = code >> (f->width - 1) ? -1 : 1;
            if (is_nan_code(f, code)) {
                check_that(isnan(got), "%s %#x: %a, not NaN", f->name, code, (double)got);
                continue;
            }
            double want = magnitude(f, code) == f->n_finite ? INFINITY : value_of(f, magnitude(f, code));
            if ((double)got != sign * want || !signbit(got) != (sign > 0))
                fail_msg("%s %#x: %a, not %a", f->name, code, (double)got, sign * want);
        }
}

/* Bit for bit, the NaNs too; by way of f64 only as NaNs, for widening a signalling one changes it. */
static void every_code_comes_back(void **state)
{
    (void)state;
    for (const Format *f = formats; f < formats + N_FORMATS; f++)
        for (uint32_t code = 0; code < 1u << f->width; code++) {
            float x = f->to32(code);
            bool infinite = f->kind == IEEE && f->has_saturate && magnitude(f, code) == f->n_finite;
            uint32_t want = infinite ? code - 1 : code;
            check_that(f->from32(x, false) == code, "%s %#x: %#x", f->name, code, f->from32(x, false));
            check_that(same_code(f, f->from64(x, false), code), "%s %#x: %#x", f->name, code, f->from64(x, false));
            check_that(f->from32(x, true) == want, "%s %#x saturated: %#x", f->name, code, f->from32(x, true));
            check_that(same_code(f, f->from64(x, true), want), "%s %#x saturated: %#x", f->name, code,
                       f->from64(x, true));
        }
}

/* Between two neighbours everything turns on the midpoint. */
static void rounding_turns_at_the_midpoints(void **state)
{
    (void)state;
    for (const Format *f = formats; f < formats + N_FORMATS; f++)
        for (uint32_t code = 0; code < f->n_finite; code++) {
            double mid = (value_of(f, code) + value_of(f, code + 1)) / 2; /* exact: at most 24 bits */
            for (int sign = -1; sign <= 1; sign += 2) {
                double x = sign * mid;
                try_value(f, x);
                try_value(f, nextafter(x, 0));
                try_value(f, nextafter(x, sign * INFINITY));
                try_value(f, nextafterf((float)x, 0));
                try_value(f, nextafterf((float)x, sign * INFINITY));
                try_value(f, sign * value_of(f, code));
                try_value(f, sign * nextafter(value_of(f, code), INFINITY));
            }
        }
}

static void special_values(void **state)
{
    (void)state;
    static const double values[] = { 0.0,       -0.0,
                                     NAN,       -NAN,
                                     INFINITY,  -INFINITY,
                                     1e6,       -1e6,
                                     1e-7,      -1e-7,
                                     0x1p-149,  0x1p-150,
                                     0x1p-1074, 0x1p1023,
                                     -0x1p1023, 0x1.fffffep127,
                                     0x1p128,   0x1.fffffffp127,
                                     464,       465,
                                     448,       480,
                                     248,       247,
                                     61440,     61439,
                                     65519,     65520,
                                     5,         -5,
                                     7,         0.25,
                                     0.75 };
    for (const Format *f = formats; f < formats + N_FORMATS; f++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            try_value(f, values[i]);
    assert_int_equal(f4e2m1_from_f32(-NAN), f4e2m1_from_f32(NAN));
}

static void sweep_of_f32(void **state)
{
    (void)state;
    for (const Format *f = formats; f < formats + N_FORMATS; f++)
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 30011)
            try_value(f, (double)half_f32((uint32_t)bits));
}

/* Values whose rounding to f32 lands on a midpoint: two roundings would go the wrong way. */
static void f64_rounds_once(void **state)
{
    (void)state;
    int differ = 0;
    for (const Format *f = formats; f < formats + N_FORMATS; f++)
        for (uint32_t code = 0; code + 1 < f->n_finite; code += f->width == 16 ? 37 : 1) {
            double mid = (value_of(f, code) + value_of(f, code + 1)) / 2;
            double x = code % 2 ? mid * (1 - 0x1p-40) : mid * (1 + 0x1p-40);
            try_value(f, x);
            differ += f->from64(x, true) != f->from32((float)x, true);
        }
    assert_true(differ > 1000);
}

static double scale_of(int code)
{
    return ldexp(1, code - 127);
}

static uint32_t expected_e8m0(double x, E8m0Round round, bool saturate)
{
    if (isnan(x))
        return 0xff;
    if (!(x >= scale_of(0)))
        return saturate ? 0 : 0xff;
    if (x > scale_of(254))
        return saturate ? 254 : 0xff;
    int code = 0;
    while (code < 254 && scale_of(code + 1) <= x)
        code++;
    if (scale_of(code) == x || round == E8M0_DOWN)
        return (uint32_t)code;
    if (round == E8M0_UP)
        return (uint32_t)code + 1;
    return (uint32_t)code + (x - scale_of(code) >= scale_of(code + 1) - x);
}

static void try_e8m0(double x)
{
    for (int round = 0; round < 3; round++)
        for (int saturate = 0; saturate < 2; saturate++) {
            uint32_t want = expected_e8m0(x, (E8m0Round)round, saturate);
            uint32_t got = e8m0_from_f64(x, (E8m0Round)round, saturate);
            check_that(got == want, "e8m0 from f64 %a, mode %d, saturate %d: %#x, not %#x", x, round, saturate, got,
                       want);
            if ((double)(float)x != x && !isnan(x))
                continue;
            got = e8m0_from_f32((float)x, (E8m0Round)round, saturate);
            check_that(got == want, "e8m0 from f32 %a, mode %d, saturate %d: %#x, not %#x", x, round, saturate, got,
                       want);
        }
}

static void powers_of_two(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 255; code++) {
        double v = scale_of((int)code);
        assert_true((double)e8m0_to_f32((uint8_t)code) == v);
        try_e8m0(v);
        try_e8m0(1.5 * v);
        for (int up = 0; up < 2; up++) {
            try_e8m0(nextafter(v, up ? INFINITY : 0));
            try_e8m0(nextafterf((float)v, up ? INFINITY : 0));
            try_e8m0(nextafter(1.5 * v, up ? INFINITY : 0));
            try_e8m0(nextafterf((float)(1.5 * v), up ? INFINITY : 0));
        }
    }
    assert_true(isnan(e8m0_to_f32(255)));
    static const double values[] = { 0.0, -0.0, NAN, -NAN, INFINITY, -INFINITY, -1, -3, 0x1p-149, 0x1p-1074, 1e300 };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        try_e8m0(values[i]);
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 300007)
        try_e8m0((double)half_f32((uint32_t)bits));
}

/* An integer narrowed through f64 rounds as the integer: compared where f64 itself would fall on a midpoint. */
static void wide_integers_round_once(void **state)
{
    (void)state;
    for (int shift = 20; shift < 55; shift++)
        for (int64_t top = 128; top < 256; top++)
            for (int64_t off = -1; off <= 1; off++) {
                int64_t n = (2 * top + 1) * ((int64_t)1 << (shift - 1)) + off; /* about a midpoint of bf16 */
                int64_t up = off > 0 || (off == 0 && top % 2);
                float want = (float)((top + up) * ((int64_t)1 << shift));
                assert_true(bf16_to_f32(bf16_from_f64(f64_odd_from_i64(n))) == want);
                assert_true(bf16_to_f32(bf16_from_f64(f64_odd_from_i64(-n))) == -want);
                assert_true((float)f64_odd_from_i64(n) == (float)n);
            }
    assert_true(f64_odd_from_u64(UINT64_MAX) < 0x1p64);
    assert_true(f64_odd_from_i64(INT64_MIN) == -0x1p63);
    assert_true(f64_odd_from_i64(((int64_t)1 << 53) - 1) == 0x1p53 - 1);
}

static void blocks_do_as_scalars(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float in[N + 1], wide[N + 1];
    static uint16_t out[N + 1];
    uint32_t bits = 1;
    for (int round = 0; round < 300; round++) {
        size_t n = (size_t)(round * 7 % N);
        for (size_t i = 0; i < N; i++, bits = bits * 1664525 + 1013904223)
            in[i] = half_f32(round % 2 ? bits : (bits & 0x8fffffff) | 0x30000000);
        out[n] = 0xabcd;
        f16_from_f32_block(out, in, n);
        f16_to_f32_block(wide, out, n);
        for (size_t i = 0; i < n; i++)
            if (out[i] != f16_from_f32(in[i]) || half_bits32(wide[i]) != half_bits32(f16_to_f32(out[i])))
                fail_msg("f16 block of %zu differs at %zu", n, i);
        bf16_from_f32_block(out, in, n);
        bf16_to_f32_block(wide, out, n);
        for (size_t i = 0; i < n; i++)
            if (out[i] != bf16_from_f32(in[i]) || half_bits32(wide[i]) != half_bits32(bf16_to_f32(out[i])))
                fail_msg("bf16 block of %zu differs at %zu", n, i);
        assert_int_equal(out[n], 0xabcd);
    }
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static void compare_with_f16c(void)
{
    for (uint32_t code = 0; code < 0x10000; code++) {
        float want = _cvtsh_ss((unsigned short)code), got = f16_to_f32((uint16_t)code);
        assert_true(half_bits32(want) == half_bits32(got) || (isnan(want) && isnan(got)));
    }
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 211) {
        float x = half_f32((uint32_t)bits);
        uint16_t want = _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT), got = f16_from_f32(x);
        if (want != got && !isnan(x))
            fail_msg("f16 of %a: %#x, the processor says %#x", (double)x, got, want);
    }
}
#endif

static void agrees_with_the_processor(void **state)
{
    (void)state;
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && (c & bit_OSXSAVE)) {
        compare_with_f16c();
        return;
    }
#endif
    print_message("skipped: this processor has no F16C\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_value),
        cmocka_unit_test(every_code_comes_back),
        cmocka_unit_test(rounding_turns_at_the_midpoints),
        cmocka_unit_test(special_values),
        cmocka_unit_test(sweep_of_f32),
        cmocka_unit_test(f64_rounds_once),
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(wide_integers_round_once),
        cmocka_unit_test(blocks_do_as_scalars),
        cmocka_unit_test(agrees_with_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
