/* Numbers become codes: the functions of ops/scalar/quant.h side by side. */
#include "ops/kernels/level/level.h"

static void rescale(size_t n, const i32 *restrict sums, u32 bias, f32 factor, f32 *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (f32)(i32)((u32)sums[i] + bias) * factor;
}

static void rescale_each(size_t n, const i32 *restrict sums, const i32 *restrict bias, const f32 *restrict factor,
                         f32 *restrict v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (f32)(i32)((u32)sums[i] + (u32)bias[i]) * factor[i];
}

static void sum(size_t n, const f32 *restrict a, const f32 *restrict b, f32 ra, f32 rb, f32 base, f32 *restrict u)
{
    for (size_t i = 0; i < n; i++)
        u[i] = fma_f32(a[i], ra, fma_f32(b[i], rb, base));
}

static void product(size_t n, const f32 *restrict a, const f32 *restrict b, f32 za, f32 zb, f32 m, f32 z,
                    f32 *restrict u)
{
    for (size_t i = 0; i < n; i++)
        u[i] = (a[i] - za) * (b[i] - zb) * m + z;
}

static void divide(size_t n, f32 *v, f32 scale)
{
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] / scale;
}

static void nearest(size_t n, const f32 *restrict v, f32 *restrict r)
{
    for (size_t i = 0; i < n; i++)
        r[i] = rint_f32(v[i]);
}

static void settle(size_t n, f32 *r, f32 z, f32 lo, f32 hi)
{
    for (size_t i = 0; i < n; i++)
        r[i] = code_of_f32(r[i], z, lo, hi);
}

static void round_codes(size_t n, const f32 *restrict v, f32 z, f32 lo, f32 hi, f32 *restrict codes)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = stored_code_f32(v[i], z, lo, hi);
}

static void round_shifted(size_t n, const f32 *restrict u, f32 z, f32 lo, f32 hi, f32 *restrict codes)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = shifted_code_f32(u[i], z, lo, hi);
}

static void divide_each(size_t n, f32 *restrict v, const f32 *restrict scale)
{
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] / scale[i];
}

static void chance(size_t n, const f32 *restrict v, const f32 *restrict draw, f32 *restrict r)
{
    for (size_t i = 0; i < n; i++)
        r[i] = stochastic_f32(v[i], draw[i]);
}

static void sizes(size_t n, const f32 *restrict x, f32 *restrict most)
{
    for (size_t i = 0; i < n; i++)
        most[i] = max_f32(most[i], abs_f32(x[i]));
}

const CodeLoops LEVEL_NAME(codes) = {
    .rescale = rescale,
    .rescale_each = rescale_each,
    .sum = sum,
    .product = product,
    .divide = divide,
    .nearest = nearest,
    .settle = settle,
    .round = round_codes,
    .round_shifted = round_shifted,
    .divide_each = divide_each,
    .chance = chance,
    .sizes = sizes,
};
