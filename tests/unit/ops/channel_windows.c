/* Convolutions of small groups: forward, to the data and to the weights, against the sums that the cards state, at every level
 * and with some threads. */
#include <math.h>

#include "base/parallel.h"
#include "ops/window/window.h"
#include "support/calls.h"
#include "support/chain.h"

typedef struct Case {
    int64_t batch, group, channels, results; /* channels and results of a group */
    int64_t in[2], kernel[2], stride[2], dilation[2], pad[4];
    int rank; /* of one dimension the last counts */
} Case;

static const Case cases[] = {
    { 2, 19, 1, 1, { 9, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 2 },
    { 2, 16, 1, 1, { 12, 13 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 2 },
    { 1, 33, 1, 1, { 7, 7 }, { 5, 5 }, { 1, 2 }, { 1, 1 }, { 2, 0, 1, 3 }, 2 },
    { 1, 5, 1, 1, { 20, 17 }, { 3, 2 }, { 3, 1 }, { 2, 3 }, { 0, 4, 2, 0 }, 2 },
    { 3,
      8,
      1,
      1,
      { 60, 37 },
      { 3, 3 },
      { 1, 1 },
      { 1, 1 },
      { 1, 1, 1, 1 },
      2 }, /* several segments, which end in lines */
    { 2, 6, 2, 2, { 11, 10 }, { 3, 3 }, { 2, 1 }, { 1, 2 }, { 1, 2, 0, 2 }, 2 },
    { 1, 4, 1, 3, { 8, 9 }, { 3, 4 }, { 2, 2 }, { 1, 1 }, { 1, 2, 1, 1 }, 2 },
    { 1, 4, 4, 1, { 8, 9 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, 2 },
    { 2, 17, 1, 1, { 6, 5 }, { 2, 2 }, { 3, 3 }, { 1, 1 }, { 0, 0, 0, 0 }, 2 },  /* what no window sees */
    { 1, 8, 1, 1, { 3, 3 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 5, 5, 5, 5 }, 2 },   /* windows in the padding alone */
    { 1, 9, 1, 1, { 700, 3 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 2 }, /* several blocks of lines */
    { 2, 7, 1, 1, { 15, 18 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 0, 0, 1, 1 }, 2 },
    { 2, 5, 1, 2, { 17, 15 }, { 3, 3 }, { 2, 2 }, { 3, 3 }, { 2, 3, 3, 2 }, 2 },
    { 1, 6, 2, 1, { 9, 31 }, { 5, 4 }, { 2, 2 }, { 1, 1 }, { 4, 1, 0, 3 }, 2 },
    { 2, 7, 1, 1, { 1, 50 }, { 1, 4 }, { 1, 3 }, { 1, 2 }, { 0, 3, 0, 2 }, 1 },
    { 2, 5, 1, 1, { 112, 30 }, { 3, 3 }, { 3, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 2 },
    { 2, 4, 2, 1, { 30, 21 }, { 4, 4 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 2 },
    { 1, 3, 1, 1, { 6, 6 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 2 }, /* too few groups */
};

static int64_t extent(const Case *k, int i)
{
    return (k->in[i] + k->pad[i] + k->pad[2 + i] - (k->kernel[i] - 1) * k->dilation[i] - 1) / k->stride[i] + 1;
}

static ConvAttr window_of(const Case *k, int64_t pads[4])
{
    const int from = 2 - k->rank;
    pads[0] = k->pad[from], pads[1] = k->rank == 1 ? k->pad[3] : k->pad[1];
    pads[2] = k->pad[2], pads[3] = k->pad[3];
    return (ConvAttr){ .window = { .kernel_shape = { k->rank, k->kernel + from },
                                   .strides = { k->rank, k->stride + from },
                                   .dilations = { k->rank, k->dilation + from },
                                   .pads = { 2 * k->rank, pads } },
                       .group = k->group };
}

static Node *drawn(Build *b, Rng *rng, const Case *k, int64_t n, int64_t channels, int64_t rows, int64_t cols)
{
    const int64_t plane[] = { n, channels, rows, cols }, line[] = { n, channels, cols };
    return sample_tensor(b, rng, F32, 2 + k->rank, k->rank == 1 ? line : plane, -2, 2);
}

/* Which element of a plane tap t sees at position p; -1: padding. */
static int64_t seen(const Case *k, int64_t p, int64_t t)
{
    const int64_t cols = extent(k, 1);
    const int64_t y = p / cols * k->stride[0] - k->pad[0] + t / k->kernel[1] * k->dilation[0];
    const int64_t x = p % cols * k->stride[1] - k->pad[1] + t % k->kernel[1] * k->dilation[1];
    return y < 0 || x < 0 || y >= k->in[0] || x >= k->in[1] ? -1 : y * k->in[1] + x;
}

typedef struct Sizes {
    int64_t in, out, taps, columns; /* columns: of x */
} Sizes;

static Sizes sizes_of(const Case *k)
{
    return (Sizes){ k->in[0] * k->in[1], extent(k, 0) * extent(k, 1), k->kernel[0] * k->kernel[1],
                    k->group * k->channels };
}

static double forward_at(const Case *k, const Tensor *x, const Tensor *w, int64_t i)
{
    const Sizes s = sizes_of(k);
    const int64_t row = i / s.out % (k->group * k->results), image = i / s.out / (k->group * k->results);
    Chain sum = { 0 };
    for (int64_t t = 0; t < s.taps; t++)
        for (int64_t c = 0; c < k->channels; c++) {
            const int64_t p = seen(k, i % s.out, t), plane = image * s.columns + row / k->results * k->channels + c;
            chain_add(&sum, at(w, (row * k->channels + c) * s.taps + t), p < 0 ? 0 : at(x, plane * s.in + p));
        }
    return chain_total(&sum);
}

/* Taps whose window could stand where they reach from, whether or not there is a result. */
static double data_at(const Case *k, const Tensor *w, const Tensor *dy, int64_t i)
{
    const Sizes s = sizes_of(k);
    const int64_t column = i / s.in % s.columns, image = i / s.in / s.columns, group = column / k->channels;
    const int64_t rows = extent(k, 0), cols = extent(k, 1);
    Chain sum = { 0 };
    for (int64_t t = 0; t < s.taps; t++) {
        const int64_t y = i % s.in / k->in[1] + k->pad[0] - t / k->kernel[1] * k->dilation[0];
        const int64_t x = i % k->in[1] + k->pad[1] - t % k->kernel[1] * k->dilation[1];
        if (y % k->stride[0] || x % k->stride[1])
            continue;
        const bool inside = y >= 0 && x >= 0 && y / k->stride[0] < rows && x / k->stride[1] < cols;
        for (int64_t r = 0; r < k->results; r++) {
            const int64_t row = group * k->results + r, p = (image * k->group * k->results + row) * s.out +
                                                            y / k->stride[0] * cols + x / k->stride[1];
            chain_add(&sum, at(w, (row * k->channels + column % k->channels) * s.taps + t), inside ? at(dy, p) : 0);
        }
    }
    return chain_total(&sum);
}

static double weight_at(const Case *k, const Tensor *x, const Tensor *dy, int64_t i)
{
    const Sizes s = sizes_of(k);
    const int64_t row = i / s.taps / k->channels, column = row / k->results * k->channels + i / s.taps % k->channels;
    Chain sum = { 0 };
    for (int64_t n = 0; n < k->batch; n++)
        for (int64_t o = 0; o < s.out; o++) {
            const int64_t p = seen(k, o, i % s.taps);
            chain_add(&sum, p < 0 ? 0 : at(x, (n * s.columns + column) * s.in + p),
                      at(dy, (n * k->group * k->results + row) * s.out + o));
        }
    return chain_total(&sum);
}

typedef double ElementFn(const Case *k, const Tensor *x, const Tensor *y, int64_t i);

/* The call's elements are those of the loop. */
static void check(Context *c, const Case *k, Op op, const ConvAttr *attr, ElementFn *element, const EvalOptions *how)
{
    Build b = fresh(c);
    Rng rng = { 5 };
    const bool to_weights = op == OP_conv_weight_grad, back = op == OP_conv_transpose;
    Node *x = drawn(&b, &rng, k, k->batch, k->group * k->channels, k->in[0], k->in[1]),
         *w = drawn(&b, &rng, k, k->group * k->results, k->channels, k->kernel[0], k->kernel[1]),
         *dy = drawn(&b, &rng, k, k->batch, k->group * k->results, extent(k, 0), extent(k, 1));
    Node *ins[] = { back ? dy : x, to_weights ? dy : w };
    const Tensor *left = constant(back ? w : x), *right = constant(back || to_weights ? dy : w);
    Window place;
    assert_null(window_place(&place, b.graph->arena, &attr->window, k->rank, k->in + 2 - k->rank, NULL));
    const Tensor *y =
        value_of(c, back ? window_input_grad(&b, &place, k->group, dy, w) : build_node(&b, op, attr, 2, ins), how);
    for (int64_t i = 0; i < tensor_elements(y); i += 1 + tensor_elements(y) / 1500)
        if (at(y, i) != element(k, left, right, i)) {
            print_error("case %d, %s, element %d: %.9g, not %.9g\n", (int)(k - cases), ops_table.defs[op]->name, (int)i,
                        at(y, i), element(k, left, right, i));
            assert_true(false);
        }
}

static void check_case(Context *c, const Case *k, const EvalOptions *how)
{
    int64_t pads[4];
    const ConvAttr conv = window_of(k, pads);
    check(c, k, OP_conv, &conv, forward_at, how);
    check(c, k, OP_conv_weight_grad, &conv, weight_at, how);
    check(c, k, OP_conv_transpose, &conv, data_at, how);
}

static Status sums_are_those_of_loops(void *arg)
{
    Context *c = arg;
    for (size_t l = 0; kernels_levels[l]; l++) {
        EvalOptions how = { .kernels = kernels_named(kernels_levels[l]) };
        for (size_t i = 0; how.kernels && i < COUNT(cases); i++) {
            how.pool = i % 3 ? parallel_open((int)(i % 3) + 1, NULL) : NULL;
            check_case(c, &cases[i], &how);
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
