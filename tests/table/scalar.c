/* The f32 functions of ops/scalar.h against the f64 libm: every value of the 16-bit formats, all special values, and
 * every 2003rd bit pattern.  QCC_SWEEP=61 visits every 61st, QCC_SWEEP=full all (hours); each function's largest error
 * is printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ops/scalar.h"
#include "support/seed.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

typedef f32 Unary(f32);
typedef f32 Binary(f32, f32);
typedef f64 Unary64(f64);
typedef f64 Binary64(f64, f64);

static const u32 special[] = {
    0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x00000001, 0x80000001,
    0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f800000, 0xbf800000, 0x3f000000,
    0xbf000000, 0x3f800001, 0x3f7fffff, 0xbf7fffff, 0xbf800001, 0x40000000, 0xc0000000, 0x40400000, 0xc0400000,
    0x3fc00000, 0xbfc00000, 0x40200000, 0x4b000000, 0x4affffff, 0x4b800000, 0xcb000000, 0x4b7fffff, 0x5f000000,
    0xdf000000, 0x5f800000, 0x42b17218, 0x42b17217, 0xc2cff1b5, 0xc2aeac50, 0x3f490fdb, 0x3fc90fdb, 0x40490fdb,
    0x47ffffff, 0x48000000, 0x48000001, 0x42fe0000, 0xc3140000, 0x33800000, 0x34000000, 0x3ed413cd,
};

static f64 rsqrt(f64 x)
{
    return 1 / sqrt(x);
}

static f64 sigmoid(f64 x)
{
    return 1 / (1 + exp(-x));
}

static f64 softplus(f64 x)
{
    return (x > 0 ? x : x < 0 ? 0 : x + 0.0) + log1p(exp(-fabs(x)));
}

/* clang-format off */
static const struct { const char *name; Unary *mine; Unary64 *exact; f64 ulps, beyond, ulps_beyond; } unary[] = {
    /*  name       ours           f64        bound  beyond this size  */
    { "exp",      exp_f32,      exp,       2,     0,      0 },
    { "exp2",     exp2_f32,     exp2,      2,     0,      0 },
    { "expm1",    expm1_f32,    expm1,     2,     0,      0 },
    { "log",      log_f32,      log,       2,     0,      0 },
    { "log2",     log2_f32,     log2,      2,     0,      0 },
    { "log1p",    log1p_f32,    log1p,     2,     0,      0 },
    { "sigmoid",  sigmoid_f32,  sigmoid,   2,     0,      0 },
    { "softplus", softplus_f32, softplus,  2,     0,      0 },
    { "sin",      sin_f32,      sin,       2,     131072, 4 },
    { "cos",      cos_f32,      cos,       2,     131072, 4 },
    { "tan",      tan_f32,      tan,       4,     0,      0 },
    { "asin",     asin_f32,     asin,      2,     0,      0 },
    { "acos",     acos_f32,     acos,      2,     0,      0 },
    { "atan",     atan_f32,     atan,      2,     0,      0 },
    { "sinh",     sinh_f32,     sinh,      2,     0,      0 },
    { "cosh",     cosh_f32,     cosh,      2,     0,      0 },
    { "tanh",     tanh_f32,     tanh,      2,     0,      0 },
    { "asinh",    asinh_f32,    asinh,     2,     0,      0 },
    { "acosh",    acosh_f32,    acosh,     2,     0,      0 },
    { "atanh",    atanh_f32,    atanh,     2,     0,      0 },
    { "erf",      erf_f32,      erf,       2,     0,      0 },
    { "rsqrt",    rsqrt_f32,    rsqrt,     2,     0,      0 },
    { "sqrt",     sqrt_f32,     sqrt,      0.5,   0,      0 },
    { "rint",     rint_f32,     rint,      0,     0,      0 },
    { "floor",    floor_f32,    floor,     0,     0,      0 },
    { "ceil",     ceil_f32,     ceil,      0,     0,      0 },
    { "trunc",    trunc_f32,    trunc,     0,     0,      0 },
    { "abs",      abs_f32,      fabs,      0,     0,      0 },
};

static f64 python_mod(f64 x, f64 y)
{
    const f64 r = fmod(x, y);
    return r == 0 ? copysign(r, y) : (r < 0) != (y < 0) ? r + y : r;
}

static const struct { const char *name; Binary *mine; Binary64 *exact; f64 ulps; } binary[] = {
    { "pow",      pow_f32,      pow,        4   },
    { "atan2",    atan2_f32,    atan2,      2   },
    { "fmod",     fmod_f32,     fmod,       0   },
    { "mod",      mod_f32,      python_mod, 0.5 },
    { "copysign", copysign_f32, copysign,   0   },
};
/* clang-format on */

/* The distance of got from the exact value in units of the f32 last place there; infinite where the kinds differ. */
static f64 distance(f32 got, f64 exact)
{
    const f32 nearest = (f32)exact;
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : HUGE_VAL;
    if (got == nearest && (got != 0 || !signbit(got) == !signbit(exact)) && isinf(got))
        return 0;
    if (isinf(exact) || isinf(got) || (got == 0 && !signbit(got) != !signbit(exact)))
        return isinf(got) && fabs(exact) > 0x1.ffffffp+127 ? 1 : HUGE_VAL;
    if (exact == 0)
        return got == 0 ? 0 : HUGE_VAL;
    int e;
    frexp(exact, &e);
    return fabs((f64)got - exact) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

/* Every how many bit patterns are visited. */
static uint64_t sweep_step(void)
{
    const char *how = getenv("QCC_SWEEP");
    if (!how)
        return 2003;
    return strcmp(how, "full") == 0 || atoi(how) < 1 ? 1 : (uint64_t)atoi(how);
}

typedef struct Worst {
    f64 error;
    u32 x, y;
} Worst;

static void note(Worst *w, f64 error, u32 x, u32 y)
{
    if (error > w->error)
        *w = (Worst){ error, x, y };
}

/* The i-th operand: all bf16, all f16, the special values, then the sweep; false past its end. */
static bool operand(uint64_t i, uint64_t step, u32 *bits)
{
    const uint64_t sixteen = 65536, swept = 2 * sixteen + COUNT(special);
    const uint64_t n = i < swept ? 0 : (i - swept) * step;
    *bits = i < sixteen       ? (u32)i << 16
            : i < 2 * sixteen ? bits_of(f16_to_f32((uint16_t)i))
            : i < swept       ? special[i - 2 * sixteen]
                              : (u32)n;
    return n <= UINT32_MAX;
}

static void functions_of_one_are_accurate(void **state)
{
    (void)state;
    const uint64_t step = sweep_step();
    int failures = 0;
    for (size_t i = 0; i < COUNT(unary); i++) {
        Worst near = { 0 }, far = { 0 };
        u32 bits;
        for (uint64_t n = 0; operand(n, step, &bits); n++) {
            const f32 x = float_of(bits);
            const bool beyond = unary[i].beyond > 0 && fabsf(x) > unary[i].beyond;
            note(beyond ? &far : &near, distance(unary[i].mine(x), unary[i].exact(x)), bits, 0);
        }
        const bool ok = near.error <= unary[i].ulps && far.error <= unary[i].ulps_beyond;
        printf("%-9s %.3f ulp at %08x", unary[i].name, near.error, near.x);
        if (unary[i].beyond > 0)
            printf(", beyond %g: %.3f ulp at %08x", unary[i].beyond, far.error, far.x);
        printf("%s\n", ok ? "" : "  <-- above its bound");
        failures += !ok;
    }
    assert_int_equal(failures, 0);
}

/* A pair of sizes that meet: random bits, or random significands with exponents near one another. */
static void draw(uint64_t *seed, u32 *x, u32 *y)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t r = *seed ^ (*seed >> 29);
    *x = (u32)(r >> 32);
    *y = (u32)r * 2654435761u;
    if (r & (UINT64_C(1) << 33))
        *y = (*y & 0x807fffffu) | ((*x & 0x7f800000u) ^ ((*y >> 3) & 0x03800000u));
    if (r & (UINT64_C(1) << 34))
        *x = (*x & 0x80ffffffu) | 0x3f000000u;
}

static void functions_of_two_are_accurate(void **state)
{
    (void)state;
    const uint64_t pairs = 1000000000 / sweep_step();
    int failures = 0;
    for (size_t i = 0; i < COUNT(binary); i++) {
        Worst w = { 0 };
        for (size_t a = 0; a < COUNT(special); a++)
            for (size_t b = 0; b < COUNT(special); b++) {
                const f32 x = float_of(special[a]), y = float_of(special[b]);
                note(&w, distance(binary[i].mine(x, y), binary[i].exact(x, y)), special[a], special[b]);
            }
        uint64_t seed = seed_of(binary[i].name, 0);
        for (uint64_t n = 0; n < pairs; n++) {
            u32 x, y;
            draw(&seed, &x, &y);
            note(&w, distance(binary[i].mine(float_of(x), float_of(y)), binary[i].exact(float_of(x), float_of(y))), x,
                 y);
        }
        const bool ok = w.error <= binary[i].ulps;
        printf("%-9s %.3f ulp at %08x %08x%s\n", binary[i].name, w.error, w.x, w.y, ok ? "" : "  <-- above its bound");
        failures += !ok;
    }
    assert_int_equal(failures, 0);
}

/* The power of 2^12 pairs where the result is near 1, overflow, and underflow. */
static void pow_is_accurate_where_it_is_hard(void **state)
{
    (void)state;
    f64 worst = 0;
    uint64_t seed = 7;
    for (int n = 0; n < 300000; n++) {
        u32 a, b;
        draw(&seed, &a, &b);
        const f32 x = float_of((a & 0x03ffffffu) + 0x3e000000u);
        const f32 reach = (f32)(140 / log2(x == 1 ? 2 : x)), y = reach * ((f32)(b >> 8) / 8388608.0f - 1);
        const f64 d = distance(pow_f32(x, y), pow(x, y));
        worst = d > worst ? d : worst;
    }
    printf("pow       %.3f ulp over the whole range of results\n", worst);
    assert_true(worst <= 4);
}

static void check_order(f32 x, f32 y)
{
    const u32 hi = bits_of(max_f32(x, y)), lo = bits_of(min_f32(x, y));
    if (isnan(x) || isnan(y)) {
        assert_true(isnan(float_of(hi)) && isnan(float_of(lo)));
        return;
    }
    assert_int_equal(hi, bits_of(max_f32(y, x)));
    assert_int_equal(lo, bits_of(min_f32(y, x)));
    assert_true(float_of(hi) == fmaxf(x, y) && float_of(lo) == fminf(x, y));
    if (x == 0 && y == 0 && signbit(x) != signbit(y))
        assert_true(hi == 0 && lo == 0x80000000u);
}

static void nan_wins_and_order_does_not_matter(void **state)
{
    (void)state;
    for (size_t a = 0; a < COUNT(special); a++)
        for (size_t b = 0; b < COUNT(special); b++) {
            const f32 x = float_of(special[a]), y = float_of(special[b]);
            check_order(x, y);
            const f64 d = max_f64(x, y), e = min_f64(x, y);
            assert_true(distance(max_f32(x, y), d) == 0 && distance(min_f32(x, y), e) == 0);
        }
    assert_true(isnan(q_clamp(Q_NAN, 0.0f, 1.0f)));
    assert_true(q_clamp(-3.0f, 0.0f, 1.0f) == 0 && q_clamp(3.0f, 0.0f, 1.0f) == 1 && q_clamp(0.5f, 0.0f, 1.0f) == 0.5f);
    assert_true(isnan(q_sign(Q_NAN)) && signbit(q_sign(-0.0f)) && q_sign(-2.0f) == -1 && q_sign(1e-45f) == 1);
}

static void integers_are_total(void **state)
{
    (void)state;
    const i64 least = INT64_MIN;
    assert_int_equal(q_div(least, (i64)-1), least);
    assert_int_equal(q_div((i64)-7, (i64)2), -3);
    assert_int_equal(q_div((i64)7, (i64)0), 0);
    assert_int_equal(q_div((u64)7, (u64)0), 0);
    assert_int_equal(q_fmod(least, (i64)-1), 0);
    assert_int_equal(q_fmod((i64)-7, (i64)3), -1);
    assert_int_equal(q_mod((i64)-7, (i64)3), 2);
    assert_int_equal(q_mod((i64)7, (i64)-3), -2);
    assert_int_equal(q_mod((i64)7, (i64)0), 0);
    assert_int_equal(q_mod((u64)7, (u64)4), 3);
    assert_true(q_shl((u64)1, (u64)63) == UINT64_C(1) << 63);
    assert_int_equal(q_shl((u64)1, (u64)64), 0);
    assert_int_equal(q_shr((u64)8, (u64)2), 2);
    assert_int_equal(q_shr((u64)8, (u64)200), 0);
    assert_int_equal(q_shr((i64)8, (i64)-1), 0);
    assert_int_equal(q_pow((i64)-3, (i64)3), -27);
    assert_int_equal(q_pow((i64)0, (i64)0), 1);
    assert_int_equal(q_pow((i64)-1, (i64)-3), -1);
    assert_int_equal(q_pow((i64)2, (i64)-1), 0);
    assert_true(q_pow((u64)3, (u64)40) == UINT64_C(12157665459056928801));
    assert_int_equal(q_abs(least), least);
    assert_int_equal(q_neg(least), least);
    assert_int_equal(q_plus(least, least), 0);
    assert_int_equal(q_minus(least, (i64)1), Q_I64_MAX);
    assert_int_equal(q_times(Q_I64_MAX, Q_I64_MAX), 1);
    assert_int_equal(q_sign((i64)-5), -1);
    assert_int_equal(q_clamp((i64)300, (i64)-128, (i64)127), 127);
    assert_int_equal(q_max((u64)3, (u64)4), 4);
}

static void conversions_saturate(void **state)
{
    (void)state;
    assert_int_equal(q_i64(Q_NAN), 0);
    assert_int_equal(q_i64(Q_INF), INT64_MAX);
    assert_int_equal(q_i64(-Q_INF), INT64_MIN);
    assert_int_equal(q_i64(9223371487098961920.0f), INT64_C(9223371487098961920));
    assert_int_equal(q_i64(-2.9), -2);
    assert_int_equal(q_i64(-0.9f), 0);
    assert_int_equal(bits_of(q_f32(q_i64(-0.9f))), 0);
    assert_int_equal(q_u64(-1.0f), 0);
    assert_true(q_u64(1e30) == UINT64_MAX);
    assert_true(q_f32((u64)0xffffff7fffffffff) == 18446742974197923840.0f);
    assert_true(q_f32((u64)0xffffff8000000000) == 18446744073709551616.0f);
    assert_true(q_f32((i64)16777217) == 16777216.0f);
}

static void quantization_rounds_then_shifts(void **state)
{
    (void)state;
    assert_true(quantize_f32(2.5f, 1, 1, -128, 127) == 3);
    assert_true(quantize_f32(3.5f, 1, 1, -128, 127) == 5);
    assert_true(quantize_f32(1e30f, 1e-9f, 0, -128, 127) == 127);
    assert_true(quantize_f32(-1e30f, 0.1f, 5, 0, 255) == 0);
    assert_true(fake_quant_f32(0.7f, 0.5f, 3, 0, 15) == 0.5f);
}

static void turns_are_correctly_rounded(void **state)
{
    (void)state;
    for (i64 n = 1; n <= 700; n++)
        for (i64 k = -2; k <= n; k++) {
            const long double angle =
                6.283185307179586476925286766559L * (long double)(8 * k % (8 * n)) / (long double)(8 * n);
            const f64 s = turn_sin(k, n), c = turn_cos(k, n);
            assert_true(fabsl(s - sinl(angle)) < 0x1p-52L && fabsl(c - cosl(angle)) < 0x1p-52L);
            if (4 * k % n != 0)
                assert_true((f32)s == (f32)sinl(angle) && (f32)c == (f32)cosl(angle));
        }
    assert_true(turn_sin(0, 7) == 0 && turn_sin(1, 4) == 1 && turn_sin(1, 2) == 0 && turn_sin(3, 4) == -1);
    assert_true(turn_cos(0, 7) == 1 && turn_cos(1, 4) == 0 && turn_cos(1, 2) == -1 && turn_cos(3, 4) == 0);
    assert_true((f32)turn_sin(1, 12) == 0.5f && (f32)turn_cos(1, 6) == 0.5f && turn_cos(INT64_C(1) << 61, 1) == 1);
}

static void normal_draws_have_their_moments(void **state)
{
    (void)state;
    f64 n1 = 0, n2 = 0, n4 = 0;
    const u32 n = 100000;
    for (u32 i = 0; i < n; i++) {
        const Philox4 w = philox_group(1, 2, (uint64_t)i * 4, 0, 0, PHILOX_VALUE);
        const Q_Pair z = normal_pair(w.v[0], w.v[1]);
        assert_true(isfinite(z.hi) && isfinite(z.lo));
        n1 += z.hi + z.lo, n2 += (f64)z.hi * z.hi + (f64)z.lo * z.lo;
        n4 += pow(z.hi, 4) + pow(z.lo, 4);
    }
    assert_true(fabs(n1 / (2 * n)) < 0.01 && fabs(n2 / (2 * n) - 1) < 0.02 && fabs(n4 / (2 * n) - 3) < 0.1);
    const f64 r = sqrt(-2 * log(0x12345700p-32)), angle = 6.283185307179586 * 0xcafebabep-32;
    assert_true(fabs(normal_pair(0x12345678, 0xcafebabe).hi - r * cos(angle)) < 1e-6);
    assert_true(fabs(normal_pair(0x12345678, 0xcafebabe).lo - r * sin(angle)) < 1e-6);
    assert_true(normal_pair(~0u, 0).hi == 0 && normal_pair(0, 0).hi > 5.7f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_one_are_accurate),
        cmocka_unit_test(functions_of_two_are_accurate),
        cmocka_unit_test(pow_is_accurate_where_it_is_hard),
        cmocka_unit_test(nan_wins_and_order_does_not_matter),
        cmocka_unit_test(integers_are_total),
        cmocka_unit_test(conversions_saturate),
        cmocka_unit_test(quantization_rounds_then_shifts),
        cmocka_unit_test(turns_are_correctly_rounded),
        cmocka_unit_test(normal_draws_have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
