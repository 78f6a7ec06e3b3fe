/* The weights' gradient of a convolution is one sum in a stated order, whatever is multiplied at a time and by how many
 * threads. */
#include <math.h>

#include "ops/window/window.h"
#include "support/calls.h"
#include "support/chain.h"

typedef struct Case {
    DType dtype;
    int64_t batch, group, channels, size, results, kernel, stride; /* channels and results of a group */
} Case;

static const Case cases[] = {
    { F32, 5, 1, 3, 9, 7, 3, 1 },    /* blocks end inside an image */
    { F32, 40, 1, 2, 11, 17, 3, 2 }, /* many positions, several blocks */
    { F32, 3, 1, 20, 19, 33, 1, 1 }, /* the data is its own window matrix */
    { F32, 2, 3, 4, 12, 5, 3, 1 },   /* groups */
    { F32, 2, 6, 1, 30, 1, 3, 1 },   /* a kernel for every channel */
    { F32, 2, 1, 60, 4, 3, 3, 1 },   /* many rows: they are split */
    { F32, 23, 1, 1, 89, 2, 1, 1 },  /* 89 segments, which end inside images */
    { F32, 2, 1, 3, 32, 5, 3, 1 },   /* two segments */
    { F64, 3, 1, 2, 37, 3, 3, 1 },   /* three, the last one short */
    { F64, 6, 1, 3, 16, 9, 3, 1 },   { F64, 2, 2, 5, 23, 3, 1, 1 },
};

static Tensor *gradient(Context *c, const Case *k, int threads, Tensor **x, Tensor **dy)
{
    const int64_t kernel[] = { k->kernel, k->kernel }, side = k->kernel / 2, pads[] = { side, side, side, side };
    const int64_t strides[] = { k->stride, k->stride };
    const ConvAttr at = { .window = { .pads = { 4, pads }, .kernel_shape = { 2, kernel }, .strides = { 2, strides } },
                          .group = k->group };
    const int64_t out = (k->size - 1) / k->stride + 1;
    Rng rng = { 31 };
    Build b = fresh(c);
    Node *data = DRAW(&b, &rng, k->dtype, k->batch, k->group * k->channels, k->size, k->size),
         *reaching = DRAW(&b, &rng, k->dtype, k->batch, k->group * k->results, out, out);
    Parallel *pool = threads ? parallel_open(threads, NULL) : NULL;
    Tensor *dw = value_of(c, CALL_ATTR(&b, conv_weight_grad, at, data, reaching), &(EvalOptions){ .pool = pool });
    parallel_close(pool);
    *x = (Tensor *)(uintptr_t)node_constant(data, 0);
    *dy = (Tensor *)(uintptr_t)node_constant(reaching, 0);
    return dw;
}

/* One element as the card states it: images and positions ascending, as any contraction. */
static double plain(const Case *k, const Tensor *x, const Tensor *dy, int64_t element)
{
    const int64_t taps = k->kernel * k->kernel, m = element / taps / k->channels, c = element / taps % k->channels;
    const int64_t tap_y = element % taps / k->kernel, tap_x = element % k->kernel, group = m / k->results;
    const int64_t out = (k->size - 1) / k->stride + 1, all = k->group * k->channels;
    Chain sum = { .wide = k->dtype == F64 };
    for (int64_t p = 0; p < k->batch * out * out; p++) {
        const int64_t n = p / out / out, i = p / out % out * k->stride - k->kernel / 2 + tap_y,
                      j = p % out * k->stride - k->kernel / 2 + tap_x;
        const bool inside = i >= 0 && j >= 0 && i < k->size && j < k->size;
        const double v = inside ? at(x, ((n * all + group * k->channels + c) * k->size + i) * k->size + j) : 0;
        const double d = at(dy, (n * k->group * k->results + m) * out * out + p % (out * out));
        chain_add(&sum, v, d);
    }
    return chain_total(&sum);
}

static Status sums_go_in_order(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Tensor *x, *dy;
        const Tensor *alone = gradient(c, &cases[i], 0, &x, &dy);
        for (int64_t e = 0; e < tensor_elements(alone); e += 1 + tensor_elements(alone) / 97)
            if (at(alone, e) != plain(&cases[i], x, dy, e)) {
                print_error("case %zu, element %d: %.9g, not %.9g\n", i, (int)e, at(alone, e),
                            plain(&cases[i], x, dy, e));
                assert_true(false);
            }
        for (int threads = 1; threads <= 5; threads++) {
            const Tensor *dw = gradient(c, &cases[i], threads, &x, &dy);
            assert_int_equal(dw->bytes, alone->bytes);
            assert_memory_equal(dw->data, alone->data, dw->bytes);
        }
    }
    return OK;
}

static void test_sums_go_in_order(void **state)
{
    (void)state;
    with_context(sums_go_in_order);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums_go_in_order) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
