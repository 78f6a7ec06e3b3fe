/* The texts of kernels as the CUDA compiler reads them: every function compiles for every architecture; f32 functions
 * keep their fused multiply-adds exactly as written and hold no f64 instruction, no approximation, no flush to zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "ops/text.h"
#include "tests/nvrtc/nvrtc.h"

/* An f32 expression over x and y, and how many fma's it spells (counted by hand in the source). */
static const struct {
    const char *expression;
    size_t fmas;
} f32_rows[] = {
    { "q_exp(x)", 8 },
    { "q_exp2(x)", 6 },
    { "q_expm1(x)", 9 },
    { "q_log(x)", 11 },
    { "q_log2(x)", 12 },
    { "q_log1p(x)", 12 },
    { "q_sigmoid(x)", 11 },
    { "q_softplus(x)", 20 },
    { "q_sin(x)", 19 },
    { "q_cos(x)", 19 },
    { "q_tan(x)", 19 },
    { "q_asin(x)", 8 },
    { "q_acos(x)", 8 },
    { "q_atan(x)", 9 },
    { "q_atan2(y, x)", 9 },
    { "q_sinh(x)", 12 },
    { "q_cosh(x)", 8 },
    { "q_tanh(x)", 13 },
    { "q_asinh(x)", 13 },
    { "q_acosh(x)", 15 },
    { "q_atanh(x)", 21 },
    { "q_erf(x)", 23 },
    { "q_pow(x, y)", 25 },
    { "q_sqrt(x)", 0 },
    { "q_rsqrt(x)", 0 },
    { "q_fma(x, y, x)", 1 },
    { "x * y + x", 0 },
    { "q_plus(q_times(x, y), q_minus(x, q_neg(y)))", 0 },
    { "sum_add_f32(sum_none_f32(), x) + sum_parts_f32(a, 8, 1)", 0 },
    { "K(0.5) * x * (K(1) + q_abs(y))", 0 },
    { "q_rint(x) + q_floor(y) + q_ceil(x) + q_trunc(y)", 0 },
    { "q_isnan(x) + q_isinf(y) + q_signbit(x)", 0 },
    { "q_copysign(x, y) + q_sign(x)", 0 },
    { "q_max(x, y) + q_min(x, y) + q_clamp(x, K(-1), y)", 0 },
    { "q_div(x, y) + q_fmod(x, y) + q_mod(x, y)", 0 },
    { "fake_quant_f32(x, y, 1, -128, 127)", 0 },
    { "q_f32(q_i64(x)) + q_f32(q_u64(y))", 0 },
    { "sum_total_f32(&c) + sum_warp_f32(a) + max_warp_f32(a) + product_warp_f32(a)", 0 },
};

static const char *const f64_rows[] = {
    "q_exp(x) + q_expm1(x) + q_exp2(y) + q_log(x) + q_log1p(x) + q_log2(x)",
    "q_sin(x) + q_cos(x) + q_tan(x) + q_asin(x) + q_acos(x) + q_atan(x) + q_atan2(x, y)",
    "q_sinh(x) + q_cosh(x) + q_tanh(x) + q_asinh(x) + q_acosh(x) + q_atanh(x) + q_erf(x)",
    "q_sqrt(x) + q_rsqrt(x) + q_pow(x, y) + q_fmod(x, y) + q_mod(x, y) + q_div(x, y)",
    "q_rint(x) + q_floor(x) + q_ceil(x) + q_trunc(x) + q_abs(x) + q_sign(x) + q_copysign(x, y)",
    "q_max(x, y) + q_min(x, y) + q_clamp(x, y, K(1)) + q_sigmoid(x) + q_softplus(x) + q_fma(x, y, x)",
    "q_isnan(x) + q_isinf(x) + q_signbit(x) + q_f64(q_f32(x)) + q_f64(q_i64(x)) + q_f64(q_u64(y))",
    "sum_warp_f64(a) + sum_total_f64(&c)",
};

static const char *const integer_rows[] = {
    "q_div(x, y) + q_mod(x, y) + q_fmod(x, y) + q_pow(x, y)",
    "q_max(x, y) + q_min(x, y) + q_clamp(x, K(1), y) + q_abs(x) + q_sign(y)",
    "q_shl(x, y) + q_shr(x, y)",
    "q_plus(x, y) + q_minus(x, y) + q_times(x, y) + q_neg(x)",
    "(T)q_i64(x) + (T)q_u64(x) + (T)q_f32(x) + (T)q_f64(y)",
    "sum_warp(a) + sum_total(&c)",
};

typedef struct Source {
    char *at;
    size_t used, size;
} Source;

__attribute__((format(printf, 2, 3))) static void put(Source *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->at + t->used, t->size - t->used, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < t->size - t->used);
    t->used += (size_t)n;
}

static Source begin(void)
{
    Source t = { malloc(1 << 19), 0, 1 << 19 };
    assert_non_null(t.at);
    put(&t, "%s\n%s\n", ops_scalar_text, ops_reduce_text);
    return t;
}

static void put_kernel(Source *t, const char *type, const char *name, size_t number, const char *expression)
{
    put(t, "extern \"C\" __global__ void %s_%zu(%s *o, const %s *p, const %s *q, const sum_counter_%s *k)\n{\n", name,
        number, type, type, type, type);
    put(t, "    typedef %s T; const unsigned i = threadIdx.x; const T x = p[i], y = q[i]; T a[8];\n", type);
    put(t, "    sum_counter_%s c; c.count = 0;\n    for (int j = 0; j < 8; j++) a[j] = p[i + j];\n", type);
    put(t, "    if (k) { c.count = k->count; for (int j = 0; j < 64; j++) c.digit[j] = k->digit[j]; }\n");
    put(t, "    o[i] = (T)(%s);\n}\n", expression);
}

static Nvrtc nvrtc_or_skip(void)
{
    Nvrtc nvrtc;
    if (!nvrtc_open(&nvrtc))
        skip();
    return nvrtc;
}

/* The text of one kernel inside the PTX of many. */
static char *kernel_of(const char *ptx, size_t number)
{
    char head[64];
    snprintf(head, sizeof head, ".entry row_%zu(", number);
    const char *from = strstr(ptx, head);
    assert_non_null(from);
    const char *to = strstr(from + 1, ".entry ");
    const size_t n = to ? (size_t)(to - from) : strlen(from);
    char *kernel = malloc(n + 1);
    assert_non_null(kernel);
    memcpy(kernel, from, n);
    kernel[n] = 0;
    return kernel;
}

static int faults_of_row(const char *ptx, size_t i)
{
    static const char *const banned[] = { ".f64", ".approx", ".ftz", "call" };
    char *kernel = kernel_of(ptx, i);
    const size_t fmas = nvrtc_count(kernel, "fma.rn.f32");
    int faults = 0;
    for (size_t b = 0; b < COUNT(banned); b++)
        if (nvrtc_count(kernel, banned[b]) > 0) {
            print_message("%s: has %s\n", f32_rows[i].expression, banned[b]);
            faults++;
        }
    if (fmas != f32_rows[i].fmas) {
        print_message("%s: %zu fma.rn.f32, not %zu\n", f32_rows[i].expression, fmas, f32_rows[i].fmas);
        faults++;
    }
    free(kernel);
    return faults;
}

static void f32_rows_compile_as_written(void **state)
{
    (void)state;
    const Nvrtc nvrtc = nvrtc_or_skip();
    Source text = begin();
    for (size_t i = 0; i < COUNT(f32_rows); i++)
        put_kernel(&text, "f32", "row", i, f32_rows[i].expression);
    int faults = 0;
    for (size_t a = 0; a < COUNT(nvrtc_archs); a++) {
        if (!nvrtc_knows(&nvrtc, nvrtc_archs[a]))
            continue;
        char *ptx = nvrtc_ptx(&nvrtc, text.at, nvrtc_archs[a]);
        assert_non_null(ptx);
        for (size_t i = 0; i < COUNT(f32_rows); i++)
            faults += faults_of_row(ptx, i);
        free(ptx);
    }
    free(text.at);
    assert_int_equal(faults, 0);
}

static void other_rows_compile(void **state)
{
    (void)state;
    const Nvrtc nvrtc = nvrtc_or_skip();
    Source text = begin();
    for (size_t i = 0; i < COUNT(f64_rows); i++)
        put_kernel(&text, "f64", "row", i, f64_rows[i]);
    for (size_t i = 0; i < COUNT(integer_rows); i++) {
        put(&text, "#define sum_warp sum_warp_i64\n#define sum_total sum_total_i64\n");
        put_kernel(&text, "i64", "signed", i, integer_rows[i]);
        put(&text,
            "#undef sum_warp\n#undef sum_total\n#define sum_warp sum_warp_u64\n#define sum_total sum_total_u64\n");
        put_kernel(&text, "u64", "unsigned", i, integer_rows[i]);
        put(&text, "#undef sum_warp\n#undef sum_total\n");
    }
    for (size_t a = 0; a < COUNT(nvrtc_archs); a++) {
        if (!nvrtc_knows(&nvrtc, nvrtc_archs[a]))
            continue;
        char *ptx = nvrtc_ptx(&nvrtc, text.at, nvrtc_archs[a]);
        assert_non_null(ptx);
        assert_true(nvrtc_count(ptx, ".entry ") == COUNT(f64_rows) + 2 * COUNT(integer_rows));
        free(ptx);
    }
    free(text.at);
}

/* The checks can fail: a row that slips into f64 shows it, and a text that is no program does not compile. */
static void a_double_in_a_row_is_seen(void **state)
{
    (void)state;
    const Nvrtc nvrtc = nvrtc_or_skip();
    Source text = begin();
    put_kernel(&text, "f32", "row", 0, "x * 1.1 + y");
    char *ptx = nvrtc_ptx(&nvrtc, text.at, "sm_80");
    assert_non_null(ptx);
    assert_true(nvrtc_count(ptx, ".f64") > 0);
    free(ptx);
    put(&text, "not a kernel\n");
    ptx = nvrtc_ptx(&nvrtc, text.at, "sm_80");
    assert_null(ptx);
    free(text.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_rows_compile_as_written),
        cmocka_unit_test(other_rows_compile),
        cmocka_unit_test(a_double_in_a_row_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
