#include "unit/check.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/number_text.h"

static uint64_t next_random(uint64_t *x)
{
    *x += 0x9e3779b97f4a7c15u;
    uint64_t z = (*x ^ *x >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void texts_of_f64(void **state)
{
    (void)state;
    static const struct {
        double x;
        const char *text;
    } rows[] = {
        { 0.0, "0" },
        { -0.0, "-0" },
        { 1, "1" },
        { -1.5, "-1.5" },
        { 0.1, "0.1" },
        { 100, "100" },
        { 0.3, "0.3" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 1e15, "1000000000000000" },
        { 9007199254740993.0, "9007199254740992" },
        { 1e16, "1e16" },
        { 1e22, "1e22" },
        { 1e23, "1e23" },
        { 0.0001, "0.0001" },
        { 0.00001234, "1.234e-5" },
        { DBL_MAX, "1.7976931348623157e308" },
        { DBL_MIN, "2.2250738585072014e-308" },
        { 0x1p-1074, "5e-324" },
        { 0x1p-1073, "1e-323" },
        { 0x1p-44, "5.684341886080802e-14" },
        { 9.5367431640625e-07, "9.5367431640625e-7" },
        { 2.0 / 3, "0.6666666666666666" },
        { 123456.789, "123456.789" },
        { INFINITY, "inf" },
        { -INFINITY, "-inf" },
        { NAN, "nan" },
        { -NAN, "nan" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[NUMBER_TEXT];
        size_t n = f64_to_text(text, rows[i].x);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(n, strlen(text));
    }
}

static void texts_of_f32(void **state)
{
    (void)state;
    static const struct {
        float x;
        const char *text;
    } rows[] = {
        { 0.1f, "0.1" },
        { 16777216, "16777216" },
        { 1e8f, "1e8" },
        { FLT_MAX, "3.4028235e38" },
        { FLT_MIN, "1.1754944e-38" },
        { 0x1p-149f, "1e-45" },
        { 1e-7f, "1e-7" },
        { 3.14159274f, "3.1415927" },
        { 33554432, "33554432" },
        { 9e9f, "9e9" },
        { -0.0f, "-0" },
        { 0.001f, "0.001" },
        { INFINITY, "inf" },
        { -NAN, "nan" },
        { 8388608.5f, "8388608" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[NUMBER_TEXT];
        size_t n = f32_to_text(text, rows[i].x);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(n, strlen(text));
    }
}

/* Digits of a text without sign, point, exponent and the zeros at both ends. */
static int digits_of(const char *text, char *out)
{
    int n = 0;
    for (const char *s = text; *s && *s != 'e'; s++)
        if (*s >= '0' && *s <= '9' && (n || *s != '0'))
            out[n++] = *s;
    while (n && out[n - 1] == '0')
        n--;
    out[n] = 0;
    return n;
}

/* Reads back by libc and by us; no shorter text would do; of the texts as short it is the nearest. */
static void try_f64(double x)
{
    char text[NUMBER_TEXT], other[64], digits[64], wanted[64];
    double back;
    size_t length = f64_to_text(text, x);
    if (half_bits64(strtod(text, NULL)) != half_bits64(x))
        fail_msg("%a became %s", x, text);
    if (!f64_from_text(text, length, &back) || half_bits64(back) != half_bits64(x))
        fail_msg("%s was read as %a, not %a", text, back, x);
    int n = digits_of(text, digits), exponent;
    if (n > 1) {
        snprintf(other, sizeof other, "%.*e", n - 2, x);
        if (strtod(other, NULL) == x)
            fail_msg("%s for %s", text, other);
    }
    if (n > 0 && frexp(fabs(x), &exponent) != 0.5) {
        snprintf(other, sizeof other, "%.*e", n - 1, x);
        digits_of(other, wanted);
        if (strcmp(digits, wanted) != 0)
            fail_msg("%s, but %s is nearer", text, other);
    }
}

static void try_f32(float x)
{
    char text[NUMBER_TEXT], other[64], digits[64], wanted[64];
    float back;
    size_t length = f32_to_text(text, x);
    if (half_bits32(strtof(text, NULL)) != half_bits32(x))
        fail_msg("%a became %s", (double)x, text);
    if (!f32_from_text(text, length, &back) || half_bits32(back) != half_bits32(x))
        fail_msg("%s was read as %a, not %a", text, (double)back, (double)x);
    int n = digits_of(text, digits), exponent;
    if (n > 1) {
        snprintf(other, sizeof other, "%.*e", n - 2, (double)x);
        if (strtof(other, NULL) == x)
            fail_msg("%s for %s", text, other);
    }
    if (n > 0 && frexpf(fabsf(x), &exponent) != 0.5f) {
        snprintf(other, sizeof other, "%.*e", n - 1, (double)x);
        digits_of(other, wanted);
        if (strcmp(digits, wanted) != 0)
            fail_msg("%s, but %s is nearer", text, other);
    }
}

static void every_binade_there_and_back(void **state)
{
    (void)state;
    for (uint64_t field = 0; field < 2047; field++)
        for (uint64_t low = 0; low < 4; low++) {
            try_f64(half_f64(field << 52 | low));
            try_f64(half_f64((field << 52 | (((uint64_t)1 << 52) - 1)) - low));
        }
    for (uint32_t field = 0; field < 255; field++)
        for (uint32_t low = 0; low < 4; low++) {
            try_f32(half_f32(field << 23 | low));
            try_f32(half_f32((field << 23 | 0x7fffff) - low));
        }
}

static void random_patterns_there_and_back(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 60000; i++) {
        uint64_t r = next_random(&seed);
        double wide = half_f64(r);
        float narrow = half_f32((uint32_t)r);
        if (isfinite(wide))
            try_f64(wide);
        if (isfinite(narrow))
            try_f32(narrow);
        try_f64((double)narrow == (double)narrow && isfinite(narrow) ? (double)narrow : 0);
        try_f64(ldexp((double)(r >> 11), -60 - (int)(r % 8))); /* what weights look like */
        try_f64((double)(r >> (r % 64)));
        try_f64((double)(r % 100000) / 1000);
        try_f32((float)(r % 100000) / 1000);
    }
}

static void try_text(const char *text)
{
    double want = strtod(text, NULL), got;
    float want32 = strtof(text, NULL), got32;
    if (!f64_from_text(text, strlen(text), &got) || half_bits64(got) != half_bits64(want))
        fail_msg("%.60s: %a, not %a", text, got, want);
    if (!f32_from_text(text, strlen(text), &got32) || half_bits32(got32) != half_bits32(want32))
        fail_msg("%.60s: %a, not %a", text, (double)got32, (double)want32);
}

static void awkward_texts(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "0",
        "-0",
        "+0.0",
        "000",
        "0e999999999999999999999",
        "1e999999999999999999999",
        "1e-999999999999999999999",
        "-1e400",
        "1e308",
        "1.8e308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "4.9e-324",
        "2.2250738585072011e-308",
        "9007199254740993",
        "9007199254740992.99999999999999999999999999999999",
        "9007199254740993.00000000000000000001",
        "16777217",
        "16777216.999999999999999999999999999",
        "16777217.0000000000000000000000001",
        "1.",
        ".5",
        "-.5e1",
        "00001.5000000",
        "123456789012345678901234567890",
        "0.000000000000000000000000000000000000000000000001",
        "7.0064923216240853546186479164495806564013097093825788587853e-46",
        "7.0064923216240854e-46",
        "3.4028235677973366e38",
        "3.40282356779733661637539395458142568447e38",
        "3.4028235677973367e38",
        "1E5",
        "1e+5",
        "89255e-22",
        "8.5e27",
        "8.5e28",
        "1e-28",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        try_text(rows[i]);
}

/* Exact midpoints between neighbours, written out in full, then a little more and a little less. */
static void midpoints_round_to_even(void **state)
{
    (void)state;
    static char text[2000];
    uint64_t seed = 5;
    for (int i = 0; i < 3000; i++) {
        uint64_t r = next_random(&seed);
        float low = half_f32((uint32_t)r & 0x7fffffff);
        if (!isfinite(low) || low == FLT_MAX)
            continue;
        double mid = ((double)low + (double)nextafterf(low, INFINITY)) / 2;
        int n = snprintf(text, sizeof text - 900, "%.160f", mid);
        try_text(text);
        memset(text + n, '0', 700); /* a one far behind everything still decides */
        text[n + 700] = '1';
        text[n + 701] = 0;
        try_text(text);
        n = snprintf(text, sizeof text, "%.120e", mid);
        char *e = strchr(text, 'e'), *last = e - 1;
        while (*last == '0')
            last--;
        --*last;
        try_text(text);
    }
    for (int i = 0; i < 300; i++) { /* f64: the last bit of a long double's worth of digits */
        double low = half_f64(next_random(&seed) >> 12 | (uint64_t)(i * 6 + 1) << 52);
        long double mid = ((long double)low + (long double)nextafter(low, INFINITY)) / 2;
        snprintf(text, sizeof text, "%.800Le", mid);
        try_text(text);
    }
}

static void random_texts(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int i = 0; i < 100000; i++) {
        char text[128];
        uint64_t a = next_random(&seed), b = next_random(&seed);
        int span = i % 2 ? 700 : 60;
        switch (i % 3) {
        case 0:
            snprintf(text, sizeof text, "%" PRIu64 "e%d", a >> b % 64, (int)(b >> 32) % span - span / 2);
            break;
        case 1:
            snprintf(text, sizeof text, "-%" PRIu64 ".%" PRIu64 "e%d", a >> b % 64, b,
                     (int)(b >> 32) % span - span / 2);
            break;
        default:
            snprintf(text, sizeof text, "0.%" PRIu64, a >> b % 60);
        }
        try_text(text);
    }
}

static void what_is_not_a_number(void **state)
{
    (void)state;
    static const char *const rows[] = { "",    "-",  "+",  ".",  "e5", "-.",   "1e",  "1e+",     "1.2.3",
                                        "--1", "in", "na", "1 ", " 1", "0x10", "1,5", "infinit", "nano" };
    double x = 7;
    float y = 7;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(f64_from_text(rows[i], strlen(rows[i]), &x));
        assert_false(f32_from_text(rows[i], strlen(rows[i]), &y));
    }
    assert_true(x == 7 && y == 7);

    assert_int_equal(f64_read("1.5e-3,", 7, &x), 6);
    assert_true(x == 0.0015);
    assert_int_equal(f64_read("12e", 3, &x), 2);
    assert_int_equal(f64_read("12345", 2, &x), 2); /* never looks beyond n */
    assert_true(x == 12);
    assert_int_equal(f64_read("infinity]", 9, &x), 8);
    assert_int_equal(f64_read("inf]", 4, &x), 3);

    assert_true(f64_from_text("-INF", 4, &x) && x == -INFINITY);
    assert_true(f32_from_text("+Infinity", 9, &y) && y == INFINITY);
    assert_true(f32_from_text("NaN", 3, &y) && half_bits32(y) == 0x7fc00000);
    assert_true(f64_from_text("nan", 3, &x) && half_bits64(x) == 0x7ff8000000000000);
}

static void integers(void **state)
{
    (void)state;
    int64_t i = 7;
    uint64_t u = 7;
    assert_true(i64_from_text("9223372036854775807", 19, &i) && i == INT64_MAX);
    assert_true(i64_from_text("-9223372036854775808", 20, &i) && i == INT64_MIN);
    assert_true(u64_from_text("18446744073709551615", 20, &u) && u == UINT64_MAX);
    assert_true(i64_from_text("-0", 2, &i) && i == 0);
    assert_true(i64_from_text("+12x", 3, &i) && i == 12);
    u = 7;
    assert_false(i64_from_text("9223372036854775808", 19, &i));
    assert_false(i64_from_text("-9223372036854775809", 20, &i));
    assert_false(u64_from_text("18446744073709551616", 20, &u));
    assert_false(u64_from_text("-1", 2, &u));
    assert_false(u64_from_text("", 0, &u));
    assert_false(i64_from_text("-", 1, &i));
    assert_false(i64_from_text("1.0", 3, &i));
    assert_true(i == 12 && u == 7);
}

static void bits_in_hexadecimal(void **state)
{
    (void)state;
    uint64_t u = 7;
    assert_false(parse_bits("0x", 2, &u));
    assert_false(parse_bits("7fc00000", 8, &u));
    assert_false(parse_bits("0xg", 3, &u));
    assert_false(parse_bits("0x00000000000000000", 19, &u));
    assert_true(u == 7);
    assert_true(parse_bits("0x7fC00000", 10, &u) && u == 0x7fc00000);
    assert_true(parse_bits("0xffffffffffffffff", 18, &u) && u == UINT64_MAX);
    assert_true(parse_bits("0x0", 3, &u) && u == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_f64),
        cmocka_unit_test(texts_of_f32),
        cmocka_unit_test(every_binade_there_and_back),
        cmocka_unit_test(random_patterns_there_and_back),
        cmocka_unit_test(awkward_texts),
        cmocka_unit_test(midpoints_round_to_even),
        cmocka_unit_test(random_texts),
        cmocka_unit_test(what_is_not_a_number),
        cmocka_unit_test(integers),
        cmocka_unit_test(bits_in_hexadecimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
