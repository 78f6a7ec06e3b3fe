/* Windows over images wide enough for what works on whole lines and planes: pools and convolutions against loops. */
#include "ops/window/window.h"
#include "support/calls.h"

enum { IMAGES = 4, HEIGHT = 9, WIDTH = 37, AREA = HEIGHT * WIDTH };

typedef struct Case {
    int64_t kernel, stride, dilation, pad;
} Case;

static const Case cases[] = {
    { 2, 2, 1, 0 }, { 2, 1, 1, 0 }, { 3, 1, 1, 1 }, { 3, 2, 1, 1 },
    { 2, 2, 2, 1 }, { 3, 3, 1, 0 }, { 1, 1, 1, 0 }, { 3, 1, 2, 2 },
};

/* The window of a case; its lists live in `lists`. */
static WindowAttr window_of(const Case *k, int64_t lists[10])
{
    for (int i = 0; i < 2; i++)
        lists[i] = k->kernel, lists[2 + i] = k->stride, lists[4 + i] = k->dilation;
    for (int i = 6; i < 10; i++)
        lists[i] = k->pad;
    return (WindowAttr){ .kernel_shape = { 2, lists },
                         .strides = { 2, lists + 2 },
                         .dilations = { 2, lists + 4 },
                         .pads = { 4, lists + 6 } };
}

static int64_t extent(const Case *k, int64_t in)
{
    return (in + 2 * k->pad - (k->kernel - 1) * k->dilation - 1) / k->stride + 1;
}

/* Where tap (i, j) of window (y, x) stands in an image; -1: in the padding. */
static int64_t seen(const Case *k, int64_t y, int64_t x, int64_t i, int64_t j)
{
    const int64_t row = y * k->stride - k->pad + i * k->dilation, col = x * k->stride - k->pad + j * k->dilation;
    return row < 0 || col < 0 || row >= HEIGHT || col >= WIDTH ? -1 : row * WIDTH + col;
}

/* The first of the largest; the first NaN is larger. */
static int64_t largest(const Case *k, const Tensor *x, int64_t image, int64_t row, int64_t col)
{
    int64_t best = -1;
    for (int64_t t = 0; t < k->kernel * k->kernel; t++) {
        const int64_t p = seen(k, row, col, t / k->kernel, t % k->kernel);
        if (p < 0)
            continue;
        const double v = at(x, image * AREA + p), top = best < 0 ? 0 : at(x, image * AREA + best);
        if (best < 0 || (!isnan(top) && (isnan(v) || v > top)))
            best = p;
    }
    return best;
}

/* Small whole numbers, so that many are equal, and some NaNs. */
static Node *image_of(Build *b, DType dtype, bool nans)
{
    const int64_t dims[] = { 2, IMAGES / 2, HEIGHT, WIDTH };
    Rng rng = { 7 };
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dtype, 4, dims));
    for (int64_t i = 0; i < IMAGES * AREA; i++)
        tensor_set_f64(t, i, nans && rng_below(&rng, 40) == 0 ? NAN : (double)rng_range(&rng, -3, 3));
    return build_const(b, t);
}

static void check_pool(Context *c, const Case *k, DType dtype)
{
    int64_t lists[10];
    const PoolAttr pool = { .window = window_of(k, lists) };
    const int64_t rows = extent(k, HEIGHT), cols = extent(k, WIDTH), n = rows * cols;
    Build b = fresh(c);
    Rng rng = { 3 };
    Node *x = image_of(&b, dtype, true), *dy = DRAW(&b, &rng, dtype, 2, IMAGES / 2, rows, cols);
    Node *both[] = { x, dy };
    const Tensor *xs = constant(x), *dys = constant(dy);
    const Tensor *dx = value_of(c, build_node(&b, OP_max_pool_grad, &pool, 2, both), NULL);
    Build again = fresh(c);
    Node *same = image_of(&again, dtype, true);
    const Tensor *y = value_of(c, build_node_n(&again, OP_max_pool, &pool, 1, &same, 2), NULL);
    Build alone = fresh(c);
    Node *too = image_of(&alone, dtype, true);
    const Tensor *values = value_of(c, build_node_n(&alone, OP_max_pool, &pool, 1, &too, 1), NULL);
    double *sum = NEWS(&c->arena, double, AREA);
    for (int64_t image = 0; image < IMAGES; image++) {
        memset(sum, 0, AREA * sizeof *sum);
        for (int64_t j = 0; j < n; j++) {
            const int64_t p = largest(k, xs, image, j / cols, j % cols);
            assert_true(p >= 0);
            assert_int_equal(tensor_get_i64(y->items[1], image * n + j), image * AREA + p);
            assert_true(close_to(at(y->items[0], image * n + j), at(xs, image * AREA + p), 0));
            assert_true(close_to(at(values, image * n + j), at(xs, image * AREA + p), 0));
            sum[p] += at(dys, image * n + j);
        }
        for (int64_t p = 0; p < AREA; p++)
            assert_true(close_to(at(dx, image * AREA + p), sum[p], 1e-6));
    }
}

static Status pools_pick_the_first_of_the_largest(void *arg)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_pool(arg, &cases[i], F32);
        check_pool(arg, &cases[i], F64);
    }
    return OK;
}

/* Windows of any size and place: the values alone are those that come with places. */
static Status values_alone_are_the_same(void *arg)
{
    enum { TIMES = 600 };
    static const DType types[] = { F32, BF16, F64, I8, U8, U16, I32 };
    Context *c = arg;
    int64_t compared = 0;
    for (int k = 0; k < TIMES; k++) {
        const DType dtype = types[k / 2 % COUNT(types)];
        const Tensor *y[2];
        for (int n = 1; n <= 2; n++) {
            Build b = fresh(c);
            Rng rng = { (uint64_t)k };
            PoolAttr at = { .storage_order = 0 };
            Node *x = sample_pooled(&b, &rng, k % 2 ? 1 : k, dtype, &at); /* of two dimensions, and of any */
            const Tensor *v = value_of(c, build_node_n(&b, OP_max_pool, &at, 1, &x, n), NULL);
            y[n - 1] = n == 1 ? v : v->items[0];
        }
        require(tensor_same(y[0], y[1]), "draw %d of %s: values differ\n", k, dtype_name(dtype));
        compared += tensor_elements(y[0]);
    }
    assert_true(compared > TIMES);
    return OK;
}

/* Values of windows of two by two, side by side, of lines of some widths, with zeros of both signs and a NaN or none, at every level. */
static Status values_of_squares_are_the_same(void *arg)
{
    Context *c = arg;
    static const int64_t sizes[][2] = { { 2, 8 },   { 4, 8 },  { 6, 16 }, { 2, 32 },
                                        { 10, 48 }, { 4, 64 }, { 2, 20 }, { 2, 2 } };
    static int64_t two[] = { 2, 2 };
    static const double few[] = { -0.0, 0, -1, 1, -INFINITY };
    for (size_t l = 0; kernels_levels[l]; l++)
        for (size_t k = 0; k < 2 * COUNT(sizes); k++) {
            const EvalOptions how = { .kernels = kernels_named(kernels_levels[l]) };
            const int64_t dims[] = { 1, 3, sizes[k / 2][0], sizes[k / 2][1] };
            const PoolAttr at = { .window = { .kernel_shape = { 2, two }, .strides = { 2, two } } };
            const Tensor *y[2];
            for (int n = 1; n <= 2 && how.kernels; n++) {
                Build b = fresh(c);
                Rng rng = { k };
                Tensor *t = tensor_new(b.graph->arena, type_tensor(&b.graph->ir->types, F32, 4, dims));
                for (int64_t i = 0; i < tensor_elements(t); i++)
                    tensor_set_f64(t, i, few[rng_below(&rng, COUNT(few))]);
                if (k % 2)
                    tensor_set_f64(t, (int64_t)rng_below(&rng, (uint64_t)tensor_elements(t)), NAN);
                Node *x = build_const(&b, t);
                const Tensor *v = value_of(c, build_node_n(&b, OP_max_pool, &at, 1, &x, n), &how);
                y[n - 1] = n == 1 ? v : v->items[0];
            }
            require(!how.kernels || tensor_same(y[0], y[1]), "%s: values of %d x %d differ\n", kernels_levels[l],
                    (int)dims[2], (int)dims[3]);
        }
    return OK;
}

/* Weights [1, channels, kernel, kernel]: conv, and what reaches them and the data. */
static void check_conv(Context *c, const Case *k, DType dtype)
{
    enum { CHANNELS = IMAGES / 2 };
    int64_t lists[10];
    const ConvAttr conv = { .window = window_of(k, lists), .group = 1 };
    const int64_t rows = extent(k, HEIGHT), cols = extent(k, WIDTH), n = rows * cols, taps = k->kernel * k->kernel;
    Build b = fresh(c);
    Rng rng = { 3 };
    Node *x = image_of(&b, dtype, false), *w = DRAW(&b, &rng, dtype, 1, CHANNELS, k->kernel, k->kernel);
    const Tensor *xs = constant(x), *ws = constant(w), *y = value_of(c, CALL_ATTR(&b, conv, conv, x, w), NULL);
    Build again = fresh(c);
    Node *dy = DRAW(&again, &rng, dtype, 2, 1, rows, cols);
    const Tensor *dys = constant(dy),
                 *dw = value_of(c, CALL_ATTR(&again, conv_weight_grad, conv, image_of(&again, dtype, false), dy), NULL);
    double *grad = NEWS(&c->arena, double, CHANNELS *taps);
    for (int64_t j = 0; j < 2 * n; j++) {
        double sum = 0;
        for (int64_t t = 0; t < CHANNELS * taps; t++) {
            const int64_t p = seen(k, j % n / cols, j % cols, t % taps / k->kernel, t % k->kernel);
            const double v = p < 0 ? 0 : at(xs, (j / n * CHANNELS + t / taps) * AREA + p);
            sum += v * at(ws, t);
            grad[t] += v * at(dys, j);
        }
        assert_true(close_to(at(y, j), sum, 1e-5));
    }
    for (int64_t t = 0; t < CHANNELS * taps; t++)
        assert_true(close_to(at(dw, t), grad[t], 1e-4));
}

static Status convolutions_see_what_loops_see(void *arg)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        check_conv(arg, &cases[i], F32);
        check_conv(arg, &cases[i], F64);
    }
    return OK;
}

/* Each element of a constant image of ones gets the weights of the windows that see it. */
static Status transposed_convolutions_add_what_loops_add(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const Case *k = &cases[i];
        int64_t lists[10];
        ConvTransposeAttr up = { .window = window_of(k, lists),
                                 .group = 1,
                                 .output_shape = { 2, (int64_t[]){ HEIGHT, WIDTH } } };
        const int64_t rows = extent(k, HEIGHT), cols = extent(k, WIDTH);
        if ((rows - 1) * k->stride + (k->kernel - 1) * k->dilation + 1 - 2 * k->pad != HEIGHT ||
            (cols - 1) * k->stride + (k->kernel - 1) * k->dilation + 1 - 2 * k->pad != WIDTH)
            continue; /* the window leaves a rest */
        Build b = fresh(c);
        Rng rng = { 5 };
        Node *x = DRAW(&b, &rng, F32, 1, 1, rows, cols), *w = DRAW(&b, &rng, F32, 1, 1, k->kernel, k->kernel);
        const Tensor *xs = constant(x), *ws = constant(w),
                     *y = value_of(c, CALL_ATTR(&b, conv_transpose, up, x, w), NULL);
        double *sum = NEWS(&c->arena, double, AREA);
        for (int64_t j = 0; j < rows * cols; j++)
            for (int64_t t = 0; t < k->kernel * k->kernel; t++) {
                const int64_t p = seen(k, j / cols, j % cols, t / k->kernel, t % k->kernel);
                if (p >= 0)
                    sum[p] += at(xs, j) * at(ws, t);
            }
        for (int64_t p = 0; p < AREA; p++)
            assert_true(close_to(at(y, p), sum[p], 1e-5));
    }
    return OK;
}

static void test_pools(void **state)
{
    (void)state;
    with_context(pools_pick_the_first_of_the_largest);
}

static void test_values_alone(void **state)
{
    (void)state;
    with_context(values_alone_are_the_same);
}

static void test_squares(void **state)
{
    (void)state;
    with_context(values_of_squares_are_the_same);
}

static void test_convolutions(void **state)
{
    (void)state;
    with_context(convolutions_see_what_loops_see);
}

static void test_transposed(void **state)
{
    (void)state;
    with_context(transposed_convolutions_add_what_loops_add);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pools), cmocka_unit_test(test_values_alone),
                                        cmocka_unit_test(test_squares), cmocka_unit_test(test_convolutions),
                                        cmocka_unit_test(test_transposed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
