/* Prints one hash for each function of ops/scalar.h and ops/reduce.h over a strided sweep of bit patterns, evaluated as
 * loops over arrays so that the compiler vectorizes them.  Built by several compilers for several instruction sets;
 * tests/levels/compare wants equal output of all.  A NaN counts as one NaN, whatever its bits. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "ops/reduce.h"
#include "ops/scalar.h"

enum { N = 1 << 18, STEP = 16381, BLOCK = 1024 };

static f32 x[N + BLOCK], y[N + BLOCK], z[N + BLOCK];

static uint64_t mix(uint64_t h, u32 w)
{
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static uint64_t hash(const f32 *v, size_t n)
{
    uint64_t h = 1;
    for (size_t i = 0; i < n; i++)
        h = mix(h, v[i] != v[i] ? 0x7fc00000u : bits_of(v[i]));
    return h;
}

/* Bit patterns far apart, and next to them numbers of ordinary size. */
static void fill(void)
{
    for (size_t i = 0; i < N + BLOCK; i++) {
        const u32 w = (u32)i * STEP;
        x[i] = float_of(i % 2 ? w : 0x3f800000u + (w >> 7) - (1u << 24));
        y[i] = float_of((w * 2654435761u & 0x83ffffffu) | 0x3c000000u);
    }
}

#define MAP(name, value)                                                                                               \
    static void map_##name(void)                                                                                       \
    {                                                                                                                  \
        for (size_t base = 0; base < N; base += BLOCK) {                                                               \
            const f32 *restrict p = x + base, *restrict q = y + base;                                                  \
            f32 *restrict o = z + base;                                                                                \
            for (size_t i = 0; i < BLOCK; i++) {                                                                       \
                const f32 a = p[i], b = q[i];                                                                          \
                o[i] = (value);                                                                                        \
                (void)a, (void)b;                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        printf("%-10s %016" PRIx64 "\n", #name, hash(z, N));                                                           \
    }

/* clang-format off */
#define FUNCTIONS(_)                                                                                                   \
    _(exp, q_exp(a)) _(exp2, q_exp2(a)) _(expm1, q_expm1(a)) _(log, q_log(a)) _(log2, q_log2(a))                       \
    _(log1p, q_log1p(a)) _(sigmoid, q_sigmoid(a)) _(softplus, q_softplus(a)) _(sin, q_sin(a)) _(cos, q_cos(a))         \
    _(tan, q_tan(a)) _(asin, q_asin(b)) _(acos, q_acos(b)) _(atan, q_atan(a)) _(atan2, q_atan2(a, b))                  \
    _(sinh, q_sinh(a)) _(cosh, q_cosh(a)) _(tanh, q_tanh(a)) _(asinh, q_asinh(a)) _(acosh, q_acosh(a))                 \
    _(atanh, q_atanh(b)) _(erf, q_erf(a)) _(pow, q_pow(a, b * 8)) _(sqrt, q_sqrt(a)) _(rsqrt, q_rsqrt(a))              \
    _(rint, q_rint(a)) _(floor, q_floor(a)) _(ceil, q_ceil(a)) _(trunc, q_trunc(a)) _(sign, q_sign(a))                 \
    _(max, q_max(a, b)) _(min, q_min(a, b)) _(clamp, q_clamp(a, -b, b)) _(mod, q_mod(a, b))                            \
    _(fmod, q_fmod(a, b)) _(copysign, q_copysign(a, b)) _(multiply, a * b + a) _(fused, q_fma(a, b, a))                \
    _(divide, q_div(a, b)) _(quantize, quantize_f32(a, b, 3, -128, 127)) _(to_i64, q_f32(q_i64(a)))                    \
    _(to_u64, q_f32(q_u64(a))) _(from_i64, q_f32((i64)((u64)bits_of(a) * bits_of(b))))                                 \
    _(from_u64, q_f32((u64)bits_of(a) << 31)) _(normal, normal_pair(bits_of(a), bits_of(b)).hi)
/* clang-format on */

FUNCTIONS(MAP)

static void reductions(void)
{
    uint64_t h = 1;
    f32 out[100];
    for (size_t n = 0; n < 3000; n++) {
        const f32 v[] = { sum_row_f32(y + n % 5, n), squares_row_f32(y, n), product_row_f32(y, n % 40),
                          max_row_f32(x, n),         min_row_f32(x, n),     sum_strided_f32(y, n, 3) };
        h = mix(h, (u32)hash(v, sizeof v / sizeof v[0]));
    }
    printf("%-10s %016" PRIx64 "\n", "rows", h);
    for (size_t rows = 0; rows < 600; rows++) {
        sum_cols_f32(y, rows, rows % 100, 100, out);
        h = mix(h, (u32)hash(out, rows % 100));
        squares_cols_f32(y + 1, rows, rows % 100, 100, out);
        h = mix(h, (u32)hash(out, rows % 100));
    }
    printf("%-10s %016" PRIx64 "\n", "columns", h);
}

#define RUN(name, value) map_##name();

int main(void)
{
    fill();
    FUNCTIONS(RUN)
    reductions();
    return 0;
}
