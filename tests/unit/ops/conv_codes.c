/* Sums of convolutions of codes are those of loops over integers at every level and with some threads: by words of channels, along
 * planes, and by whatever a level has for the rest. */
#include "base/parallel.h"
#include "ops/quant/quantize.h"
#include "ops/window/window.h"
#include "support/calls.h"

typedef struct Case {
    DType x, w;
    int64_t batch, group, channels, results; /* channels and results of a group */
    int64_t in[2], kernel[2], stride[2], dilation[2], pad[4];
    int x_zero, w_zero;
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
};

static int64_t extent(const Case *k, int i)
{
    return (k->in[i] + k->pad[i] + k->pad[2 + i] - (k->kernel[i] - 1) * k->dilation[i] - 1) / k->stride[i] + 1;
}

/* Every third case all of the largest codes, so that sums are as large as they can be. */
static Node *codes(Build *b, const Case *k, DType t, uint64_t seed, const int64_t *dims)
{
    double lo, hi;
    Rng rng = { seed };
    code_range(t, &lo, &hi);
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

static void check(Context *c, const Case *k, const EvalOptions *how)
{
    Build b = fresh(c);
    const ConvAttr at = { .window = { .kernel_shape = { 2, k->kernel },
                                      .strides = { 2, k->stride },
                                      .dilations = { 2, k->dilation },
                                      .pads = { 4, k->pad } },
                          .group = k->group };
    const int64_t dx[] = { k->batch, k->group * k->channels, k->in[0], k->in[1] },
                  dw[] = { k->group * k->results, k->channels, k->kernel[0], k->kernel[1] };
    Node *ins[] = { codes(&b, k, k->x, 5, dx), codes(&b, k, k->w, 7, dw), build_scalar(&b, k->x, k->x_zero),
                    build_scalar(&b, k->w, k->w_zero) };
    const Tensor *x = constant(ins[0]), *w = constant(ins[1]);
    const Tensor *y = value_of(c, build_node(&b, OP_conv_integer, &at, k->w_zero ? 4 : 3, ins), how);
    for (int64_t i = 0; i < tensor_elements(y); i += 1 + tensor_elements(y) / 3000)
        require(tensor_get_i64(y, i) == element(k, x, w, i), "case %d, %s, element %d: %d, not %d\n", (int)(k - cases),
                kernels_name(how->kernels), (int)i, (int)tensor_get_i64(y, i), (int)element(k, x, w, i));
}

static Status sums_are_those_of_loops(void *arg)
{
    for (size_t l = 0; kernels_levels[l]; l++) {
        EvalOptions how = { .kernels = kernels_named(kernels_levels[l]) };
        for (size_t i = 0; how.kernels && i < COUNT(cases); i++) {
            how.pool = i % 3 ? parallel_open((int)(i % 3) + 1, NULL) : NULL;
            check(arg, &cases[i], &how);
            parallel_close(how.pool);
        }
    }
    return OK;
}

static void test_sums(void **state)
{
    (void)state;
    with_context(sums_are_those_of_loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
