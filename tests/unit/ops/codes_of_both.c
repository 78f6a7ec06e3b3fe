/* Words that products of few bits are made of: codes of a matrix along both axes against the formula, a number at a time;
 * sums of codes against sums of 64 bits; whatever the threads. */
#include <math.h>

#include "ops/quant/quantize.h"
#include "ops/quant/words.h"
#include "ops/window/window.h"
#include "support/calls.h"

enum { THREADS = 3 };

static Tensor *value_by(Context *c, Node *y, int threads)
{
    Parallel *pool = threads > 1 ? parallel_open(threads, NULL) : NULL;
    Tensor *t = value_of(c, y, &(EvalOptions){ .pool = pool });
    parallel_close(pool);
    return t;
}

static void same(const Tensor *a, const Tensor *b)
{
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->data, b->data, a->bytes);
}

/* ---- quantize_both ---- */

typedef struct Shape {
    DType dtype;
    int rank;
    int64_t dims[4];
    bool chance;
    int64_t least, largest;
} Shape;

static const Shape shapes[] = {
    { F32, 2, { 7, 5 }, false, -127, 127 },       { F32, 2, { 3, 1300 }, false, -127, 127 },
    { BF16, 2, { 40, 33 }, true, -127, 127 },     { F32, 3, { 4, 6, 700 }, true, -127, 127 },
    { F16, 4, { 5, 3, 4, 4 }, false, -128, 127 }, { F32, 4, { 2, 9, 1, 3 }, false, -7, 7 },
    { F32, 2, { 0, 4 }, false, -127, 127 },       { F32, 3, { 1, 1, 65 }, true, -127, 127 },
};

static float scale_of(const Shape *s, double size)
{
    return fmaxf((float)size, 1e-12f) / (float)s->largest;
}

/* x over the scale is a quotient in f32; everything behind it is exact. */
static double code_of(const Shape *s, double x, float scale, const Tensor *draw, int64_t i)
{
    const float v = (float)x / scale;
    const float low = floorf(v), r = !s->chance ? rintf(v) : (float)at(draw, i) < v - low ? low + 1 : low;
    return fmin(fmax((double)r, (double)s->least), (double)s->largest);
}

/* The index of an element along axis 0 or 1. */
static int64_t index_of(const Shape *s, int64_t i, int axis)
{
    int64_t inner = 1;
    for (int d = axis + 1; d < s->rank; d++)
        inner *= s->dims[d];
    return i / inner % s->dims[axis];
}

static void compare(const Shape *s, const Tensor *x, const Tensor *draw, const Tensor *codes, const Tensor *scales,
                    int axis)
{
    const int64_t n = tensor_elements(x), lanes = s->dims[axis];
    assert_int_equal(tensor_elements(scales), lanes);
    for (int64_t lane = 0; lane < lanes; lane++) {
        double size = 0;
        for (int64_t i = 0; i < n; i++)
            size = index_of(s, i, axis) == lane ? fmax(size, fabs(at(x, i))) : size;
        assert_true(at(scales, lane) == (double)scale_of(s, size));
    }
    for (int64_t i = 0; i < n; i++) {
        const float scale = (float)at(scales, index_of(s, i, axis));
        assert_true(at(codes, i) == code_of(s, at(x, i), scale, draw, i));
    }
}

static Status both_axes_have_their_codes(void *arg)
{
    Context *c = arg;
    for (size_t k = 0; k < COUNT(shapes); k++) {
        const Shape *s = &shapes[k];
        Rng rng = { 3 + k };
        Build b = fresh(c);
        Node *ins[2] = { draw(&b, &rng, s->dtype, s->rank, s->dims) };
        if (s->chance)
            ins[1] = sample_tensor(&b, &rng, F32, s->rank, s->dims, 0, 0.99);
        const QuantizeBothAttr at_both = { s->least, s->largest, s->chance ? ROUND_SR : ROUND_RNE };
        Node *both = build_node_n(&b, OP_quantize_both, &at_both, s->chance ? 2 : 1, ins, 4);
        for (int i = 0; i < 4; i++) {
            Node *part = build_part(&b, both, i);
            const Tensor *alone = value_by(c, part, 1);
            for (int threads = 2; threads <= THREADS; threads++)
                same(value_by(c, part, threads), alone);
            if (i % 2 == 0)
                compare(s, constant(ins[0]), s->chance ? constant(ins[1]) : NULL, alone,
                        value_by(c, build_part(&b, both, i + 1), 1), i / 2);
        }
    }
    return OK;
}

/* What is no number shows in the scales of its row and its column; the codes beside it are 0 or the ends. */
static Status a_nan_shows(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Tensor *t = tensor_new(b.graph->arena, type_tensor(&b.graph->ir->types, F32, 2, (const int64_t[]){ 2, 3 }));
    const double v[] = { 1, (double)NAN, 2, (double)INFINITY, 1, -1 };
    for (int i = 0; i < 6; i++)
        tensor_set_f64(t, i, v[i]);
    Node *x = build_const(&b, t);
    const QuantizeBothAttr at_both = { -127, 127, ROUND_RNE };
    Node *both = build_node_n(&b, OP_quantize_both, &at_both, 1, &x, 4);
    const Tensor *rows = value_of(c, build_part(&b, both, 1), NULL),
                 *columns = value_of(c, build_part(&b, both, 3), NULL);
    assert_true(isnan(at(rows, 0)) && isinf(at(rows, 1)));
    assert_true(isinf(at(columns, 0)) && isnan(at(columns, 1)) && at(columns, 2) == (double)(2.0f / 127.0f));
    const Tensor *codes = value_of(c, build_part(&b, both, 2), NULL);
    assert_true(at(codes, 1) == 0 && at(codes, 2) == 127 && at(codes, 5) == -64);
    return OK;
}

static Status what_is_wrong_is_said(void *arg)
{
    Context *c = arg;
    Rng rng = { 1 };
    Build b = fresh(c);
    Node *x[] = { DRAW(&b, &rng, F32, 3, 4), DRAW(&b, &rng, F32, 4, 3) }, *v = DRAW(&b, &rng, F32, 4);
    const QuantizeBothAttr sr = { -127, 127, ROUND_SR }, rne = { -127, 127, ROUND_RNE }, up = { -127, 127, ROUND_CEIL },
                           none = { -3, 0, ROUND_RNE };
    expect_refused(c, &b, build_node_n(&b, OP_quantize_both, &sr, 1, x, 4),
                   "rounding=sr wants a draw for each element");
    expect_refused(c, &b, build_node_n(&b, OP_quantize_both, &rne, 2, x, 4), "draws for rounding=sr alone");
    expect_refused(c, &b, build_node_n(&b, OP_quantize_both, &sr, 2, x, 4), "wants draws of f32 like f32[3,4]");
    expect_refused(c, &b, build_node_n(&b, OP_quantize_both, &up, 1, x, 4), "rounds by rne or sr");
    expect_refused(c, &b, build_node_n(&b, OP_quantize_both, &none, 1, x, 4), "largest=0: wants a code above 0");
    expect_refused(c, &b, build_node_n(&b, OP_quantize_both, &rne, 1, &v, 4), "wants rows and columns");
    return OK;
}

/* ---- sums ---- */

static Node *codes(Build *b, Rng *rng, int rank, const int64_t *dims)
{
    return sample_tensor(b, rng, I8, rank, dims, -128, 127);
}

static Status turned_factors(void *arg)
{
    enum { M = 5, K = 2100, N = 7 };
    Context *c = arg;
    Rng rng = { 9 };
    for (int way = 0; way < 4; way++) {
        const MatmulIntegerAttr turned = { way & 1, way & 2 };
        Build b = fresh(c);
        Node *x = codes(&b, &rng, 2, (const int64_t[]){ turned.ta ? K : M, turned.ta ? M : K }),
             *y = codes(&b, &rng, 2, (const int64_t[]){ turned.tb ? N : K, turned.tb ? K : N });
        const Tensor *sums = value_by(c, CALL_ATTR(&b, matmul_integer, turned, x, y), 1), *tx = constant(x),
                     *ty = constant(y);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                int64_t sum = 0;
                for (int k = 0; k < K; k++)
                    sum += (int64_t)at(tx, turned.ta ? k * M + i : i * K + k) *
                           (int64_t)at(ty, turned.tb ? j * K + k : k * N + j);
                assert_true(at(sums, i * N + j) == (double)sum);
            }
    }
    return OK;
}

typedef struct Case {
    int64_t batch, group, channels, size, results, kernel, stride, dilation;
} Case;

static const Case cases[] = {
    { 5, 1, 3, 9, 7, 3, 1, 1 },  { 40, 1, 2, 11, 17, 3, 2, 1 }, { 2, 3, 4, 12, 5, 3, 1, 2 },
    { 2, 6, 1, 30, 1, 3, 1, 1 }, { 23, 1, 1, 89, 2, 1, 1, 1 },
};

static int64_t out_of(const Case *k)
{
    return (k->size + 2 * (k->kernel / 2) - (k->kernel - 1) * k->dilation - 1) / k->stride + 1;
}

static double plain_weight(const Case *k, const Tensor *x, const Tensor *dy, int64_t e)
{
    const int64_t taps = k->kernel * k->kernel, m = e / taps / k->channels, ch = e / taps % k->channels;
    const int64_t out = out_of(k), group = m / k->results, side = k->kernel / 2;
    int64_t sum = 0;
    for (int64_t p = 0; p < k->batch * out * out; p++) {
        const int64_t n = p / out / out, i = p / out % out * k->stride - side + e % taps / k->kernel * k->dilation,
                      j = p % out * k->stride - side + e % k->kernel * k->dilation;
        if (i >= 0 && j >= 0 && i < k->size && j < k->size)
            sum +=
                (int64_t)at(x, ((n * k->group * k->channels + group * k->channels + ch) * k->size + i) * k->size + j) *
                (int64_t)at(dy, (n * k->group * k->results + m) * out * out + p % (out * out));
    }
    return (double)sum;
}

static Status weights_of_windows(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const Case *k = &cases[i];
        const int64_t side = k->kernel / 2, out = out_of(k), kernel[] = { k->kernel, k->kernel },
                      strides[] = { k->stride, k->stride }, dilations[] = { k->dilation, k->dilation },
                      pads[] = { side, side, side, side };
        const ConvAttr conv = { .window = { .pads = { 4, pads },
                                            .kernel_shape = { 2, kernel },
                                            .strides = { 2, strides },
                                            .dilations = { 2, dilations } },
                                .group = k->group };
        Rng rng = { 31 };
        Build b = fresh(c);
        Node *x = codes(&b, &rng, 4, (const int64_t[]){ k->batch, k->group * k->channels, k->size, k->size }),
             *dy = codes(&b, &rng, 4, (const int64_t[]){ k->batch, k->group * k->results, out, out });
        Node *dw = CALL_ATTR(&b, conv_integer_weight_grad, conv, x, dy);
        const Tensor *alone = value_by(c, dw, 1);
        for (int64_t e = 0; e < tensor_elements(alone); e += 1 + tensor_elements(alone) / 97)
            assert_true(at(alone, e) == plain_weight(k, constant(x), constant(dy), e));
        for (int threads = 2; threads <= THREADS; threads++)
            same(value_by(c, dw, threads), alone);
    }
    return OK;
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
TEST(both_axes_have_their_codes)
TEST(a_nan_shows)
TEST(what_is_wrong_is_said)
TEST(turned_factors)
TEST(weights_of_windows)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_axes_have_their_codes), cmocka_unit_test(test_a_nan_shows),
        cmocka_unit_test(test_what_is_wrong_is_said),      cmocka_unit_test(test_turned_factors),
        cmocka_unit_test(test_weights_of_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
