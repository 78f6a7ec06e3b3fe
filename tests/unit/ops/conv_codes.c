/* Sums of convolutions of codes are those of loops over integers at every level and with some threads: by words of channels, along
 * planes, and by whatever a level has for the rest; and codes are what becomes of such sums. */
#include "base/parallel.h"
#include "ops/quant/words.h"
#include "ops/scalar.h"
#include "ops/window/window.h"
#include "support/calls.h"

typedef struct Case {
    DType x, w;
    int64_t batch, group, channels, results; /* channels and results of a group */
    int64_t in[2], kernel[2], stride[2], dilation[2], pad[4];
    int x_zero, w_zero;
    int most; /* weights are from -most to most; 0: all there are */
} Case;

static const Case cases[] = {
    { U8, I8, 2, 1, 8, 16, { 9, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 131, 0 },
    { I8, I8, 1, 1, 3, 13, { 21, 19 }, { 7, 7 }, { 2, 2 }, { 1, 1 }, { 3, 3, 3, 3 }, -7, 0 }, /* a stem */
    { U8, I8, 3, 1, 21, 33, { 7, 7 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 255, 0 },
    { U8, I8, 1, 3, 6, 9, { 10, 13 }, { 3, 2 }, { 1, 2 }, { 2, 1 }, { 2, 0, 1, 3 }, 3, 0 },
    { I8, I8, 2, 2, 5, 7, { 8, 9 }, { 2, 4 }, { 3, 1 }, { 1, 2 }, { 0, 4, 2, 0 }, -128, 0 },
    { U8, I8, 1, 1, 70, 40, { 17, 18 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 9, 0 }, /* several parts */
    { U8,
      I8,
      1,
      1,
      2,
      5,
      { 40, 33 },
      { 6, 6 },
      { 1, 1 },
      { 1, 1 },
      { 1, 1, 1, 1 },
      200,
      0 },                                                                                  /* more taps than a line */
    { U8, I8, 2, 5, 1, 1, { 9, 14 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 77, 0 }, /* along planes */
    { I8, U8, 1, 3, 2, 3, { 70, 61 }, { 5, 2 }, { 2, 3 }, { 1, 2 }, { 2, 0, 1, 3 }, 5, 250 },
    { U8, U8, 1, 4, 2, 1, { 11, 9 }, { 11, 11 }, { 1, 1 }, { 1, 1 }, { 5, 5, 5, 5 }, 0, 0 }, /* 242 terms */
    { U8,
      U8,
      1,
      4,
      3,
      1,
      { 11, 9 },
      { 11, 11 },
      { 1, 1 },
      { 1, 1 },
      { 5, 5, 5, 5 },
      255,
      255 },                                                                                 /* too many for floats */
    { I8, I8, 2, 6, 1, 1, { 37, 41 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, -9, 0 }, /* by bytes, in words */
    { U8, I8, 1, 4, 2, 3, { 20, 70 }, { 2, 5 }, { 3, 4 }, { 2, 1 }, { 0, 3, 1, 0 }, 255, 0 },
    { U8, I8, 3, 3, 3, 1, { 18, 23 }, { 5, 1 }, { 1, 3 }, { 1, 1 }, { 2, 0, 2, 0 }, 0, 0 },
    { U8, I8, 2, 1, 9, 14, { 25, 41 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 99, 0 }, /* long lines */
    { I8, I8, 2, 2, 5, 13, { 21, 60 }, { 2, 4 }, { 1, 1 }, { 3, 1 }, { 0, 3, 4, 1 }, -5, 0 },
    { U8, I8, 2, 1, 3, 14, { 44, 51 }, { 7, 7 }, { 2, 2 }, { 1, 1 }, { 3, 3, 3, 3 }, 130, 0 }, /* in parts */
    { I8, I8, 1, 2, 6, 7, { 41, 64 }, { 3, 4 }, { 1, 2 }, { 2, 1 }, { 0, 2, 3, 1 }, 8, 0 },
    { U8, I8, 1, 1, 4, 5, { 50, 30 }, { 3, 2 }, { 2, 1 }, { 1, 2 }, { 1, 0, 0, 2 }, 17, 0 },
    { U8, I8, 1, 1, 50, 3, { 30, 31 }, { 4, 2 }, { 1, 1 }, { 1, 1 }, { 2, 0, 0, 0 }, 3, 0 },
    { I8, I8, 2, 1, 6, 20, { 17, 19 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 4, 0 }, /* data as it lies */
    { U8, I8, 2, 2, 7, 5, { 4, 5 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 200, 0 },
    { U8, U8, 2, 1, 9, 14, { 12, 11 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 128, 128 },
    { U8, I8, 2, 1, 9, 14, { 12, 11 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 128, 3 },
    { U8, I8, 9, 1, 13, 113, { 7, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 7, 0 }, /* images together */
    { I8, I8, 3, 2, 12, 20, { 13, 28 }, { 1, 1 }, { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 }, -1, 0 },
    /* weights whose products are added up in 16 bits, in twos, where that is exact for all data: up to 64 each */
    { U8, I8, 1, 1, 12, 9, { 9, 20 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 80 },
    { U8, I8, 1, 6, 1, 1, { 18, 19 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 80 },
    { U8, I8, 1, 1, 8, 7, { 8, 9 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 0, 0, 64 },
    { U8, I8, 1, 1, 64, 25, { 16, 21 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 0, 0, 40 },
    { U8, I8, 1, 6, 1, 1, { 18, 19 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 20 },
    { U8, I8, 1, 1, 8, 7, { 8, 9 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 0, 0, 65 },
    { U8, I8, 1, 6, 1, 1, { 18, 19 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 40 },
    { U8, I8, 1, 6, 1, 1, { 9, 9 }, { 1, 4 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 0, 0, 70 },
    { U8, I8, 1, 6, 1, 1, { 18, 19 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 64 },
    { U8, I8, 1, 1, 20, 17, { 30, 24 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 66 },
    { U8, I8, 1, 40, 1, 1, { 7, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 90 },
    { U8, I8, 1, 6, 1, 1, { 18, 19 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0, 0, 65 },
};

static int64_t extent(const Case *k, int i)
{
    return (k->in[i] + k->pad[i] + k->pad[2 + i] - (k->kernel[i] - 1) * k->dilation[i] - 1) / k->stride[i] + 1;
}

/* Every third case all of the largest codes, so that sums are as large as they can be. */
static Node *codes(Build *b, const Case *k, DType t, int most, uint64_t seed, const int64_t *dims)
{
    double lo, hi;
    Rng rng = { seed };
    code_range(t, &lo, &hi);
    if (most) {
        lo = -most;
        hi = most;
    }
    return sample_tensor(b, &rng, t, 4, dims, (k - cases) % 3 == 1 ? hi : lo, hi);
}

static int64_t element(const Case *k, const Tensor *x, const Tensor *w, int64_t i)
{
    const int64_t out = extent(k, 0) * extent(k, 1), taps = k->kernel[0] * k->kernel[1];
    const int64_t row = i / out % (k->group * k->results), image = i / out / (k->group * k->results), p = i % out;
    int64_t sum = 0;
    for (int64_t u = 0; u < k->channels * taps; u++) {
        const int64_t plane = (image * k->group + row / k->results) * k->channels + u / taps, t = u % taps;
        const int64_t r = p / extent(k, 1) * k->stride[0] - k->pad[0] + t / k->kernel[1] * k->dilation[0];
        const int64_t c = p % extent(k, 1) * k->stride[1] - k->pad[1] + t % k->kernel[1] * k->dilation[1];
        if (r >= 0 && c >= 0 && r < k->in[0] && c < k->in[1])
            sum += (tensor_get_i64(x, (plane * k->in[0] + r) * k->in[1] + c) - k->x_zero) *
                   (tensor_get_i64(w, row * k->channels * taps + u) - k->w_zero);
    }
    return sum;
}

static ConvAttr attr_of(const Case *k)
{
    return (ConvAttr){ .window = { .kernel_shape = { 2, k->kernel },
                                   .strides = { 2, k->stride },
                                   .dilations = { 2, k->dilation },
                                   .pads = { 4, k->pad } },
                       .group = k->group };
}

static void check(Context *c, const Case *k, const EvalOptions *how)
{
    Build b = fresh(c);
    const ConvAttr at = attr_of(k);
    const int64_t dx[] = { k->batch, k->group * k->channels, k->in[0], k->in[1] },
                  dw[] = { k->group * k->results, k->channels, k->kernel[0], k->kernel[1] };
    Node *ins[] = { codes(&b, k, k->x, 0, 5, dx), codes(&b, k, k->w, k->most, 7, dw), build_scalar(&b, k->x, k->x_zero),
                    build_scalar(&b, k->w, k->w_zero) };
    const Tensor *x = constant(ins[0]), *w = constant(ins[1]);
    const Tensor *y = value_of(c, build_node(&b, OP_conv_integer, &at, k->w_zero ? 4 : 3, ins), how);
    for (int64_t i = 0; i < tensor_elements(y); i += 1 + tensor_elements(y) / 3000)
        require(tensor_get_i64(y, i) == element(k, x, w, i), "case %d, %s, element %d: %d, not %d\n", (int)(k - cases),
                kernels_name(how->kernels), (int)i, (int)tensor_get_i64(y, i), (int)element(k, x, w, i));
}

/* Codes, with a sign or without one, of a bias or none, cut off by relu or at four bits; of a small scale of the result, factors are
 * larger than 1, which other loops take. */
static void check_codes(Context *c, const Case *k, const EvalOptions *how)
{
    Build b = fresh(c);
    Rng rng = { (uint64_t)(k - cases) + 1 };
    const size_t number = (size_t)(k - cases);
    const DType of = number % 2 ? I8 : U8;
    const bool biased = number % 3, large = number % 5 == 4;
    const int64_t rows = k->group * k->results, out = extent(k, 0) * extent(k, 1);
    const QconvAttr at = { .conv = attr_of(k),
                           .codes = { .gain = 1,
                                      .relu = number % 4 == 1,
                                      .least = number % 4 == 2 ? (of == I8 ? -8 : 0) : 0,
                                      .largest = number % 4 == 2 ? (of == I8 ? 7 : 15) : 0 } };
    const int64_t dx[] = { k->batch, k->group * k->channels, k->in[0], k->in[1] },
                  dw[] = { rows, k->channels, k->kernel[0], k->kernel[1] };
    Node *ins[QCONV_BIAS + 1] = {
        [QCONV_X] = codes(&b, k, k->x, 0, 5, dx),
        [QCONV_X_SCALE] = sample_tensor(&b, &rng, F32, 0, NULL, 0.01, 0.02),
        [QCONV_X_ZERO] = build_scalar(&b, k->x, k->x_zero),
        [QCONV_W] = codes(&b, k, k->w, k->most, 7, dw),
        [QCONV_W_SCALE] = sample_tensor(&b, &rng, F32, 1, &rows, 0.01, 0.05),
        [QCONV_W_ZERO] = build_scalar(&b, k->w, k->w_zero),
        [QCONV_Y_SCALE] = sample_tensor(&b, &rng, F32, 0, NULL, large ? 1e-5 : 0.5, large ? 2e-5 : 1),
        [QCONV_Y_ZERO] = build_scalar(&b, of, of == I8 ? -3 : 11),
        [QCONV_BIAS] = biased ? sample_tensor(&b, &rng, I32, 1, &rows, -30000, 30000) : NULL,
    };
    const Tensor *x = constant(ins[QCONV_X]), *w = constant(ins[QCONV_W]), *sw = constant(ins[QCONV_W_SCALE]);
    const f32 sx = (f32)tensor_get_f64(constant(ins[QCONV_X_SCALE]), 0),
              sy = (f32)tensor_get_f64(constant(ins[QCONV_Y_SCALE]), 0);
    const CodeRange range = code_range_of(&at.codes, of, of == I8 ? -3 : 11);
    const Tensor *y = value_of(c, build_node(&b, OP_qconv, &at, QCONV_BIAS + biased, ins), how);
    for (int64_t i = 0; i < tensor_elements(y); i += 1 + tensor_elements(y) / 3000) {
        const int64_t row = i / out % rows, bias = biased ? tensor_get_i64(constant(ins[QCONV_BIAS]), row) : 0;
        const f32 sum = (f32)(i32)(element(k, x, w, i) + bias), factor = sx * (f32)tensor_get_f64(sw, row) / sy;
        const int64_t code = (int64_t)stored_code_f32(sum * factor, range.z, range.lo, range.hi);
        require(tensor_get_i64(y, i) == code, "case %d, %s, code %d: %d, not %d\n", (int)number,
                kernels_name(how->kernels), (int)i, (int)tensor_get_i64(y, i), (int)code);
    }
}

typedef void Check(Context *c, const Case *k, const EvalOptions *how);

static void at_every_level(Context *c, Check *check)
{
    for (size_t l = 0; kernels_levels[l]; l++) {
        EvalOptions how = { .kernels = kernels_named(kernels_levels[l]) };
        for (size_t i = 0; how.kernels && i < COUNT(cases); i++) {
            how.pool = i % 3 ? parallel_open((int)(i % 3) + 1, NULL) : NULL;
            check(c, &cases[i], &how);
            parallel_close(how.pool);
        }
    }
}

static Status sums_are_those_of_loops(void *arg)
{
    at_every_level(arg, check);
    return OK;
}

static Status codes_are_those_of_sums(void *arg)
{
    at_every_level(arg, check_codes);
    return OK;
}

static void test_sums(void **state)
{
    (void)state;
    with_context(sums_are_those_of_loops);
}

static void test_codes(void **state)
{
    (void)state;
    with_context(codes_are_those_of_sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums), cmocka_unit_test(test_codes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
