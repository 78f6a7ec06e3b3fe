/* Words that compute on codes, against loops over integers and the formulas of ONNX Runtime written out, on grids where
 * every other quotient is a tie too. */
#include "ops/quant/words.h"
#include "support/calls.h"

/* Codes of a type; at the extremes, where sums grow as large as they can, all of one sign. */
static Node *codes_of(Build *b, Rng *rng, DType dtype, bool extreme, int rank, const int64_t *dims)
{
    double lo, hi;
    code_range(dtype, &lo, &hi);
    if (extreme)
        lo = dtype_class(dtype) == CLASS_INT ? lo : hi, hi = lo;
    else if (dtype_bits(dtype) == 16) /* sums of theirs have 32 bits */
        lo /= 4, hi /= 4;
    return sample_tensor(b, rng, dtype, rank, dims, lo, hi);
}

static Node *code(Build *b, DType dtype, int64_t v)
{
    return build_scalar(b, dtype, (double)v);
}

static int64_t code_at(const Tensor *t, int64_t i)
{
    return tensor_get_i64(t, i);
}

static double clamped(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Whether the code of a number in units of the scale is c, as is its quotient. */
static bool is_code(const Tensor *y, int64_t i, float v, int64_t z, double lo, double hi)
{
    const double want = clamped((double)rintf(v) + (double)z, lo, hi);
    return (double)code_at(y->items[0], i) == want && at(y->items[1], i) == (double)v;
}

/* ---- products ---- */

typedef struct Product {
    DType a, b, y;
    int64_t batches, m, k, n;
    bool ta, tb, extreme;
    int threads;
} Product;

static const Product products[] = {
    { U8, I8, U8, 1, 5, 1700, 3, false, false, true, 1 },   { U8, U8, I8, 1, 3, 1100, 70, false, true, true, 2 },
    { I8, I8, U8, 2, 37, 300, 41, true, false, true, 3 },   { U8, I8, U8, 3, 1, 64, 129, false, false, false, 1 },
    { U8, U8, U8, 1, 300, 530, 290, true, true, false, 2 }, { I8, U8, I8, 1, 2, 9, 600, false, false, false, 3 },
    { U16, I8, U16, 1, 7, 40, 9, false, false, true, 1 },   { U16, I16, I16, 1, 6, 8, 5, false, true, false, 2 },
    { I16, U16, U8, 2, 20, 1, 30, true, true, false, 1 },   { U8, I8, I8, 2, 4, 0, 5, false, false, false, 1 },
};

/* The sum of a row and a column of a batch, and what it is multiplied by. */
static int64_t product_at(const Product *p, const Tensor *a, const Tensor *b, int64_t za, const Tensor *zb, int64_t at,
                          int64_t i, int64_t j)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < p->k; k++) {
        const int64_t x = at * p->m * p->k + (p->ta ? k * p->m + i : i * p->k + k);
        const int64_t y = p->tb ? j * p->k + k : k * p->n + j;
        sum += (code_at(a, x) - za) * (code_at(b, y) - code_at(zb, j));
    }
    return sum;
}

static void check_product(Context *c, const Product *p)
{
    const int64_t a_dims[] = { p->batches, p->ta ? p->k : p->m, p->ta ? p->m : p->k };
    const int64_t b_dims[] = { p->tb ? p->n : p->k, p->tb ? p->k : p->n }, za = p->extreme ? 0 : 3, zy = 5;
    const float sa = 0.5f, sy = 0.37f * (float)(p->k * 100);
    const QmatmulAttr attr = { p->ta, p->tb, { .gain = 1 } };
    Parallel *pool = parallel_open(p->threads, NULL);
    Rng rng = { 77 };
    double lo, hi;
    Build b = fresh(c);
    Node *ins[] = { codes_of(&b, &rng, p->a, p->extreme, 3, a_dims),
                    build_scalar(&b, F32, (double)sa),
                    code(&b, p->a, za),
                    codes_of(&b, &rng, p->b, p->extreme, 2, b_dims),
                    sample_tensor(&b, &rng, F32, 1, &p->n, 0.125, 0.5),
                    sample_tensor(&b, &rng, p->b, 1, &p->n, 0, p->extreme ? 0 : 7),
                    build_scalar(&b, F32, (double)sy),
                    code(&b, p->y, zy),
                    sample_tensor(&b, &rng, I32, 1, &p->n, -1000, 1000) };
    const Tensor *x = constant(ins[0]), *w = constant(ins[3]), *sw = constant(ins[4]), *zw = constant(ins[5]),
                 *bias = constant(ins[8]);
    const Tensor *y = value_of(c, build_node_n(&b, OP_qmatmul, &attr, 9, ins, 2), &(EvalOptions){ .pool = pool });
    code_range(p->y, &lo, &hi);
    assert_int_equal(tensor_elements(y->items[0]), p->batches * p->m * p->n);
    for (int64_t i = 0; i < p->batches * p->m * p->n; i++) {
        const int64_t j = i % p->n, sum = product_at(p, x, w, za, zw, i / p->n / p->m, i / p->n % p->m, j);
        const float m = sa * (float)at(sw, j) / sy;
        assert_true(sum == (int32_t)sum);
        require(is_code(y, i, (float)(int32_t)(sum + code_at(bias, j)) * m, zy, lo, hi), "product %zu, element %zu\n",
                (size_t)(p - products), (size_t)i);
    }
    parallel_close(pool);
}

static Status products_are_those_of_integers(void *arg)
{
    for (size_t i = 0; i < COUNT(products); i++)
        check_product(arg, &products[i]);
    return OK;
}

static void test_products_are_those_of_integers(void **state)
{
    (void)state;
    with_context(products_are_those_of_integers);
}

/* ---- convolutions ---- */

typedef struct Conv {
    DType x, w, y;
    int64_t images, groups, channels, results, height, width, kernel, stride, dilation, pad;
    bool extreme;
    int threads;
} Conv;

static const Conv convs[] = {
    { U8, I8, U8, 2, 1, 3, 20, 9, 13, 3, 1, 1, 1, false, 1 },
    { U8, I8, I8, 1, 6, 1, 1, 20, 20, 3, 2, 1, 1, false, 2 },
    { U8, U8, U8, 1, 1, 120, 5, 6, 7, 3, 1, 1, 0, true, 3 },
    { I8, I8, U8, 9, 2, 40, 280, 3, 3, 1, 1, 1, 0, false, 2 },
    { U8, I8, U8, 2, 1, 700, 9, 17, 19, 1, 1, 1, 0, true, 1 },
    { U8, I8, U8, 3, 3, 5, 7, 11, 10, 5, 3, 2, 4, false, 2 },
    { U16, I8, U16, 1, 1, 4, 6, 8, 8, 3, 1, 1, 1, false, 2 },
    { I16, I16, U8, 2, 1, 2, 3, 5, 5, 2, 1, 1, 0, false, 1 },
};

static int64_t extent(const Conv *k, int64_t in)
{
    return (in + 2 * k->pad - (k->kernel - 1) * k->dilation - 1) / k->stride + 1;
}

/* The sum of a window. */
static int64_t window_at(const Conv *k, const Tensor *x, const Tensor *w, int64_t zx, int64_t zw, int64_t image,
                         int64_t result, int64_t row, int64_t col)
{
    const int64_t first = (image * k->groups + result / k->results) * k->channels;
    int64_t sum = 0;
    for (int64_t t = 0; t < k->channels * k->kernel * k->kernel; t++) {
        const int64_t channel = t / k->kernel / k->kernel;
        const int64_t y = row * k->stride - k->pad + t / k->kernel % k->kernel * k->dilation;
        const int64_t z = col * k->stride - k->pad + t % k->kernel * k->dilation;
        if (y < 0 || z < 0 || y >= k->height || z >= k->width)
            continue;
        sum += (code_at(x, ((first + channel) * k->height + y) * k->width + z) - zx) *
               (code_at(w, result * k->channels * k->kernel * k->kernel + t) - zw);
    }
    return sum;
}

/* Without a scale of the result: f32(sum + bias) * f32(sx * sw), or a bias of f32 behind that, not fused. */
static void check_numbers(Context *c, const Conv *k, Build *b, Node *const *ins, const QconvAttr *attr,
                          const EvalOptions *how)
{
    Node *own[QCONV_BIAS + 1];
    Rng rng = { 79 };
    memcpy(own, ins, sizeof own);
    own[QCONV_Y_SCALE] = own[QCONV_Y_ZERO] = NULL;
    const Tensor *x = constant(ins[0]), *w = constant(ins[3]), *sw = constant(ins[4]), *zw = constant(ins[5]);
    const int64_t m = tensor_elements(sw);
    const float sx = (float)at(constant(ins[1]), 0);
    for (int floats = 0; floats < 2; floats++) {
        if (floats)
            own[QCONV_BIAS] = sample_tensor(b, &rng, F32, 1, &m, -2, 2);
        const Tensor *bias = constant(own[QCONV_BIAS]);
        const Tensor *y = value_of(c, build_node(b, OP_qconv, attr, QCONV_BIAS + 1, own), how);
        const int64_t cols = y->type->dims[3], plane = y->type->dims[2] * cols;
        assert_int_equal(y->type->dtype, F32);
        for (int64_t i = 0; i < tensor_elements(y); i++) {
            const int64_t result = i / plane % m;
            const int64_t sum = window_at(k, x, w, k->extreme ? 0 : 3, code_at(zw, result), i / plane / m, result,
                                          i % plane / cols, i % cols);
            const float by = sx * (float)at(sw, result);
            const float scaled = (float)(int32_t)(floats ? sum : sum + code_at(bias, result)) * by;
            const float want = floats ? scaled + (float)at(bias, result) : scaled;
            require(at(y, i) == (double)want, "numbers of convolution %zu, element %d: %g, not %g\n",
                    (size_t)(k - convs), (int)i, at(y, i), (double)want);
        }
    }
}

static void check_conv(Context *c, const Conv *k)
{
    const int64_t dx[] = { k->images, k->groups * k->channels, k->height, k->width }, m = k->groups * k->results;
    const int64_t dw[] = { m, k->channels, k->kernel, k->kernel }, zx = k->extreme ? 0 : 3, zy = 9;
    const int64_t strides[] = { k->stride, k->stride }, dilations[] = { k->dilation, k->dilation },
                  pads[] = { k->pad, k->pad, k->pad, k->pad };
    const int64_t rows = extent(k, k->height), cols = extent(k, k->width), plane = rows * cols;
    const float sx = 0.03f, sy = 0.11f * (float)(k->channels * k->kernel * k->kernel);
    const QconvAttr attr = {
        .conv = { .window = { .strides = { 2, strides }, .dilations = { 2, dilations }, .pads = { 4, pads } },
                  .group = k->groups },
        .codes = { .gain = 1, .least = k->y == U8 ? 3 : 0, .largest = k->y == U8 ? 200 : 0, .relu = k->images == 2 }
    };
    Parallel *pool = parallel_open(k->threads, NULL);
    Rng rng = { 78 };
    double lo, hi;
    Build b = fresh(c);
    Node *ins[] = { codes_of(&b, &rng, k->x, k->extreme, 4, dx),
                    build_scalar(&b, F32, (double)sx),
                    code(&b, k->x, zx),
                    codes_of(&b, &rng, k->w, k->extreme, 4, dw),
                    sample_tensor(&b, &rng, F32, 1, &m, 0.125, 0.5),
                    sample_tensor(&b, &rng, k->w, 1, &m, 0, k->extreme ? 0 : 7),
                    build_scalar(&b, F32, (double)sy),
                    code(&b, k->y, zy),
                    sample_tensor(&b, &rng, I32, 1, &m, -1000, 1000) };
    const Tensor *x = constant(ins[0]), *w = constant(ins[3]), *sw = constant(ins[4]), *zw = constant(ins[5]),
                 *bias = constant(ins[8]);
    const Tensor *y = value_of(c, build_node_n(&b, OP_qconv, &attr, 9, ins, 2), &(EvalOptions){ .pool = pool });
    code_range(k->y, &lo, &hi);
    lo = k->y == U8 ? 3 : lo, hi = k->y == U8 ? 200 : hi;
    lo = attr.codes.relu && lo < (double)zy ? (double)zy : lo;
    assert_int_equal(tensor_elements(y->items[0]), k->images * m * plane);
    for (int64_t i = 0; i < k->images * m * plane; i++) {
        const int64_t result = i / plane % m;
        const int64_t sum =
            window_at(k, x, w, zx, code_at(zw, result), i / plane / m, result, i % plane / cols, i % cols);
        const float by = sx * (float)at(sw, result) / sy;
        require(is_code(y, i, (float)(int32_t)(sum + code_at(bias, result)) * by, zy, lo, hi),
                "convolution %zu, element %zu\n", (size_t)(k - convs), (size_t)i);
    }
    check_numbers(c, k, &b, ins, &attr, &(EvalOptions){ .pool = pool });
    parallel_close(pool);
}

static Status convolutions_are_those_of_integers(void *arg)
{
    for (size_t i = 0; i < COUNT(convs); i++)
        check_conv(arg, &convs[i]);
    return OK;
}

static void test_convolutions_are_those_of_integers(void **state)
{
    (void)state;
    with_context(convolutions_are_those_of_integers);
}

/* ---- sums, element by element products, averages ---- */

/* Scales that are powers of two, odd zero points: ties are common; or any. */
typedef struct Grid {
    DType code;
    float sa, sb, sy;
    int64_t za, zb, zy;
} Grid;

static const Grid grids[] = {
    { U8, 0.5f, 0.25f, 1, 3, 5, 7 },
    { I8, 0.125f, 0.5f, 0.25f, -3, 77, -11 },
    { U8, 0.0371f, 0.0118f, 0.0532f, 121, 130, 99 },
    { I8, 0.0625f, 0.03125f, 0.5f, 1, 1, 127 },
};

/* Whether a code is that of a number to which the zero point was added, and its quotient rounds to it without. */
static bool is_shifted(const Tensor *y, int64_t i, float u, const Grid *g)
{
    double lo, hi;
    code_range(g->code, &lo, &hi);
    const double v = at(y->items[1], i), whole = (double)rintf(u);
    return (double)code_at(y->items[0], i) == clamped(whole, lo, hi) &&
           (double)rintf((float)v) + (double)g->zy == whole &&
           fabs(v - ((double)u - (double)g->zy)) <= 3e-7 * (200 + fabs(v));
}

/* Every pair of codes. */
static void check_pairs(Context *c, const Grid *g, OpWord word)
{
    const int64_t column[] = { 256, 1 }, row = 256;
    const QbinaryAttr attr = { .codes = { .gain = 1 } };
    Build b = fresh(c);
    double lo, hi;
    code_range(g->code, &lo, &hi);
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, g->code, 2, column)),
           *y = tensor_new(&c->arena, type_tensor(&c->ir.types, g->code, 1, &row));
    for (int64_t i = 0; i < 256; i++) {
        tensor_set_f64(x, i, lo + (double)i);
        tensor_set_f64(y, i, lo + (double)i);
    }
    Node *ins[] = { build_const(&b, x),
                    build_scalar(&b, F32, (double)g->sa),
                    code(&b, g->code, g->za),
                    build_const(&b, y),
                    build_scalar(&b, F32, (double)g->sb),
                    code(&b, g->code, g->zb),
                    build_scalar(&b, F32, (double)g->sy),
                    code(&b, g->code, g->zy) };
    const Tensor *out = value_of(c, build_node_n(&b, word, &attr, 8, ins, 2), NULL);
    const float ra = g->sa / g->sy, rb = g->sb / g->sy, by = g->sa * g->sb, m = by / g->sy, side = rb * (float)g->zb;
    const float base = (float)g->zy - fmaf(ra, (float)g->za, side);
    for (int64_t i = 0; i < 256 * 256; i++) {
        const float p = (float)(lo + (double)(i / 256)), q = (float)(lo + (double)(i % 256));
        const float product = (p - (float)g->za) * (q - (float)g->zb), scaled = product * m;
        const float u = word == OP_qadd ? fmaf(p, ra, fmaf(q, rb, base)) : scaled + (float)g->zy;
        require(is_shifted(out, i, u, g), "grid %zu, codes %g and %g\n", (size_t)(g - grids), (double)p, (double)q);
    }
}

static void check_averages(Context *c, const Grid *g)
{
    enum { HEIGHT = 9, WIDTH = 8, PLANES = 40 };
    const int64_t dims[] = { 4, 10, HEIGHT, WIDTH }, kernel[] = { 3, 2 }, pads[] = { 1, 0, 1, 0 };
    const QpoolAttr attr = { .pool = { .window = { .kernel_shape = { 2, kernel }, .pads = { 4, pads } } },
                             .codes = { .gain = 1 } };
    Rng rng = { 12 };
    for (int global = 0; global < 2; global++) {
        Build b = fresh(c);
        Node *ins[] = { codes_of(&b, &rng, g->code, false, 4, dims), build_scalar(&b, F32, (double)g->sa),
                        code(&b, g->code, g->za), build_scalar(&b, F32, (double)g->sy), code(&b, g->code, g->zy) };
        const Tensor *x = constant(ins[0]);
        const QglobalAttr whole = { .codes = { .gain = 1 } };
        Node *y = global ? build_node_n(&b, OP_qglobal_average_pool, &whole, 5, ins, 2)
                         : build_node_n(&b, OP_qaverage_pool, &attr, 5, ins, 2);
        const Tensor *out = value_of(c, y, NULL);
        const int64_t rows = global ? 1 : HEIGHT, cols = global ? 1 : WIDTH - 1;
        for (int64_t i = 0; i < PLANES * rows * cols; i++) {
            const int64_t row = i / cols % rows, col = i % cols, plane = i / rows / cols;
            int64_t acc = 0, n = 0;
            float sum = 0;
            for (int64_t k = 0; k < HEIGHT * WIDTH; k++) {
                if (!global && (k / WIDTH < row - 1 || k / WIDTH > row + 1 || k % WIDTH < col || k % WIDTH > col + 1))
                    continue;
                const int64_t v = code_at(x, plane * HEIGHT * WIDTH + k) - g->za;
                const float number = (float)v * g->sa;
                acc += v, n++;
                sum += number;
            }
            double lo, hi;
            code_range(g->code, &lo, &hi);
            const float all = g->sy * (float)n, factor = g->sa / all, mean = sum / (float)n, v = mean / g->sy;
            assert_true(global ? is_code(out, i, (float)acc * factor, g->zy, lo, hi)
                               : is_shifted(out, i, v + (float)g->zy, g));
        }
    }
}

static Status rounding_is_that_of_each_word(void *arg)
{
    for (size_t i = 0; i < COUNT(grids); i++) {
        check_pairs(arg, &grids[i], OP_qadd);
        check_pairs(arg, &grids[i], OP_qmul);
        check_averages(arg, &grids[i]);
    }
    return OK;
}

static void test_rounding_is_that_of_each_word(void **state)
{
    (void)state;
    with_context(rounding_is_that_of_each_word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_are_those_of_integers),
        cmocka_unit_test(test_convolutions_are_those_of_integers),
        cmocka_unit_test(test_rounding_is_that_of_each_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
