/* How fast the scalar functions and reductions run over arrays that stay in the cache, on one core: G elements/s at
 * each instruction set level this CPU has.  `ninja bench_scalar` builds it once per level and runs all. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "ops/reduce.h"
#include "ops/scalar.h"

enum { N = 4096 };

static f32 x[N], y[N];

/* Visible from outside, so that what is stored here counts as used. */
extern f32 z[N];
f32 z[N];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define LOOP(name, value)                                                                                              \
    static void run_##name(void)                                                                                       \
    {                                                                                                                  \
        const f32 *restrict p = x, *restrict q = y;                                                                    \
        f32 *restrict o = z;                                                                                           \
        for (size_t i = 0; i < N; i++) {                                                                               \
            const f32 a = p[i], b = q[i];                                                                              \
            o[i] = (value);                                                                                            \
            (void)a, (void)b;                                                                                          \
        }                                                                                                              \
    }

/* clang-format off */
#define FUNCTIONS(_)                                                                                                   \
    _(add, a + b) _(exp, q_exp(a)) _(expm1, q_expm1(a)) _(log, q_log(b)) _(log1p, q_log1p(b)) _(sigmoid, q_sigmoid(a))  \
    _(softplus, q_softplus(a)) _(tanh, q_tanh(a)) _(erf, q_erf(a)) _(sin, q_sin(a)) _(tan, q_tan(a))                    \
    _(asin, q_asin(b)) _(atan, q_atan(a)) _(atan2, q_atan2(a, b)) _(sinh, q_sinh(a)) _(asinh, q_asinh(a))               \
    _(atanh, q_atanh(b)) _(pow, q_pow(b, a)) _(rsqrt, q_rsqrt(b)) _(rint, q_rint(a)) _(max, q_max(a, b))                \
    _(mod, q_mod(a, b)) _(quantize, quantize_f32(a, b, 3, -128, 127))
/* clang-format on */

FUNCTIONS(LOOP)

static void run_sum_row(void)
{
    z[0] = sum_row_f32(x, N);
}

static void run_max_row(void)
{
    z[0] = max_row_f32(x, N);
}

static void run_sum_cols(void)
{
    sum_cols_f32(x, 64, N / 64, N / 64, z);
}

static void measure(const char *name, void (*run)(void))
{
    double best = 1e9;
    for (int turn = 0; turn < 5; turn++) {
        const double from = now();
        int times = 0;
        double spent;
        do {
            run();
            times++;
            spent = now() - from;
        } while (spent < 0.01);
        best = spent / times < best ? spent / times : best;
    }
    printf("    %-9s %7.3f\n", name, N / best * 1e-9);
}

#define MEASURE(name, value) measure(#name, run_##name);

int main(int argc, char **argv)
{
    for (size_t i = 0; i < N; i++) {
        x[i] = (f32)i * (16.0f / N) - 8;
        y[i] = ((f32)i + 0.5f) / N;
    }
    printf("%s: G elements/s on one core\n", argc > 1 ? argv[1] : "scalar");
    FUNCTIONS(MEASURE)
    measure("sum row", run_sum_row);
    measure("max row", run_max_row);
    measure("sum cols", run_sum_cols);
    return 0;
}
