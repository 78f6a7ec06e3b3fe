/* Words on codes in fixed point, against the two roundings written out one after the other: the upper half of a doubled
 * product, saturated and truncated towards 0 behind a nudge, and a shift by its mask and threshold. */
#include "ops/card/make.h"
#include "ops/quant/words.h"
#include "support/calls.h"

/* ---- the arithmetic ---- */

static int64_t high_half(int64_t a, int64_t b)
{
    const int64_t ab = a * b, nudge = ab >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
    return a == INT32_MIN && b == INT32_MIN ? INT32_MAX : (ab + nudge) / ((int64_t)1 << 31);
}

/* What is cut off, two's complement, against half of what it may be; of numbers below 0 half is not enough. */
static int64_t shifted(int64_t v, int shift)
{
    const int64_t by = (int64_t)1 << shift, mask = by - 1, rest = (int64_t)((uint64_t)v & (uint64_t)mask);
    return (v - rest) / by + (rest > (mask >> 1) + (v < 0));
}

static int64_t saturated(int64_t v)
{
    return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v;
}

static int64_t times(int64_t sum, float factor)
{
    int power;
    const int64_t m = (int64_t)(frexp((double)factor, &power) * 0x1p31);
    const int64_t v = power > 0 ? saturated(sum * ((int64_t)1 << power)) : sum;
    return shifted(high_half(v, m), power < 0 ? -power : 0);
}

static void test_factors_have_the_bits_of_floats(void **state)
{
    static const float factors[] = { 0x1p-149f, 1e-30f, 0x1.fffffep-9f, 0.37f, 0.5f, 0.75f, 1, 1.5f, 3e9f };
    (void)state;
    for (size_t i = 0; i < COUNT(factors); i++) {
        const FixedFactor f = fixed_factor(factors[i]);
        const bool exact = f.left < FIXED_MOST_LEFT && f.right < FIXED_MOST_RIGHT;
        assert_true(f.m >= 1 << 30);
        assert_true(!exact || ldexp(f.m, f.left - f.right - FIXED_BITS) == (double)factors[i]);
    }
    assert_int_equal(fixed_factor(0).m, 0);
    assert_int_equal(fixed_factor(-1).m, 0);
    assert_int_equal(fixed_factor(NAN).m, 0);
    assert_int_equal(fixed_factor(INFINITY).m, 0);
}

static void test_sums_are_rounded_twice(void **state)
{
    static const float factors[] = {
        0x1p-20f, 0x1.8p-12f, 0.001953f, 0.0123f, 0.25f, 0.499f, 0.5f, 0.9f, 1, 1.75f, 260
    };
    static const int64_t edges[] = { INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX };
    Rng rng = { 31 };
    (void)state;
    for (size_t f = 0; f < COUNT(factors); f++) {
        const FixedFactor by = fixed_factor(factors[f]);
        for (int64_t i = -70000; i < 70000; i++)
            assert_true(fixed_times(i, by) == times(i, factors[f]));
        for (size_t i = 0; i < COUNT(edges); i++)
            assert_true(fixed_times(edges[i], by) == times(edges[i], factors[f]));
        for (int i = 0; i < 70000; i++) {
            const int64_t sum = rng_range(&rng, INT32_MIN, INT32_MAX);
            assert_true(fixed_times(sum, by) == times(sum, factors[f]));
        }
    }
    assert_int_equal(fixed_times(3, fixed_factor(0.5f)), 2); /* ties of the first go upwards .. */
    assert_int_equal(fixed_times(-3, fixed_factor(0.5f)), -1);
    assert_int_equal(fixed_times(6, fixed_factor(0.25f)), 2); /* .. and those of the second away from 0 */
    assert_int_equal(fixed_times(-6, fixed_factor(0.25f)), -2);
    assert_true(fixed_times(INT32_MAX, fixed_factor(0x1p-45f)) == 0);
    assert_true(fixed_times(-1, fixed_factor(1e9f)) < -255);
}

/* ---- words ---- */

static Node *code(Build *b, DType dtype, int64_t v)
{
    return build_scalar(b, dtype, (double)v);
}

static int64_t clamped(int64_t v, int64_t z, DType dtype)
{
    double lo, hi;
    code_range(dtype, &lo, &hi);
    return v + z < (int64_t)lo ? (int64_t)lo : v + z > (int64_t)hi ? (int64_t)hi : v + z;
}

static Node *codes(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims)
{
    double lo, hi;
    code_range(dtype, &lo, &hi);
    return sample_tensor(b, rng, dtype, rank, dims, lo, hi);
}

enum { ROWS = 9, SUMS = 40, COLUMNS = 700, ZX = 3, ZY = 7 };
static const float sx = 0.03f, sy = 1.25f;

static int64_t sum_of(const Tensor *x, const Tensor *w, int64_t row, int64_t column)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < SUMS; k++)
        sum += (tensor_get_i64(x, row * SUMS + k) - ZX) * tensor_get_i64(w, k * COLUMNS + column);
    return sum;
}

/* A product of matrices, and the same as a convolution of one position. */
static Status products(void *arg)
{
    Context *c = arg;
    const int64_t dx[] = { ROWS, SUMS, 1, 1 }, dw[] = { SUMS, COLUMNS }, columns = COLUMNS;
    Rng rng = { 5 };
    Build b = fresh(c);
    const QmatmulAttr attr = { .codes = { .gain = 1, .factor = FACTOR_Q31 } };
    const QconvAttr conv = { .conv = { .group = 1 }, .codes = attr.codes };
    Node *x = codes(&b, &rng, U8, 2, dx), *w = codes(&b, &rng, I8, 2, dw);
    Node *ins[] = { x,
                    build_scalar(&b, F32, (double)sx),
                    code(&b, U8, ZX),
                    w,
                    sample_tensor(&b, &rng, F32, 1, &columns, 0.01, 0.5),
                    code(&b, I8, 0),
                    build_scalar(&b, F32, (double)sy),
                    code(&b, U8, ZY),
                    sample_tensor(&b, &rng, I32, 1, &columns, -5000, 5000) };
    const Tensor *y = value_of(c, build_node_n(&b, OP_qmatmul, &attr, 9, ins, 2), NULL), *sw = constant(ins[4]);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) {
        const int64_t sum =
            sum_of(constant(x), constant(w), i / COLUMNS, i % COLUMNS) + tensor_get_i64(constant(ins[8]), i % COLUMNS);
        const float by = sx * (float)at(sw, i % COLUMNS), m = by / sy;
        assert_int_equal(tensor_get_i64(y->items[0], i), clamped(times(sum, m), ZY, U8));
        assert_true(at(y->items[1], i) == (double)((float)(int32_t)sum * m));
    }
    const int64_t tall[] = { ROWS, SUMS, 1, 1 }, wide[] = { COLUMNS, SUMS, 1, 1 };
    Build same = fresh(c);
    for (int i = 0; i < 9; i++)
        ins[i] = build_const(&same, constant(ins[i]));
    ins[0] = make_reshape(&same, ins[0], 4, tall);
    ins[3] = make_reshape(&same, make_swap_last(&same, ins[3]), 4, wide);
    const Tensor *z = value_of(c, build_node_n(&same, OP_qconv, &conv, 9, ins, 2), NULL);
    assert_memory_equal(z->items[0]->data, y->items[0]->data, ROWS * COLUMNS);
    assert_memory_equal(z->items[1]->data, y->items[1]->data, ROWS * COLUMNS * sizeof(float));
    return OK;
}

static void test_products_are_those_of_fixed_point(void **state)
{
    (void)state;
    with_context(products);
}

/* Sums and products of every pair of codes. */
static void pairs(Context *c, OpWord word, float sa, float sb, float scale)
{
    const int64_t column[] = { 256, 1 }, row = 256, za = 3, zb = -77;
    const QbinaryAttr attr = { .codes = { .gain = 1, .factor = FACTOR_Q31 } };
    Build b = fresh(c);
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, U8, 2, column)),
           *y = tensor_new(&c->arena, type_tensor(&c->ir.types, I8, 1, &row));
    for (int64_t i = 0; i < 256; i++)
        tensor_set_i64(x, i, i), tensor_set_i64(y, i, i - 128);
    Node *ins[] = { build_const(&b, x),
                    build_scalar(&b, F32, (double)sa),
                    code(&b, U8, za),
                    build_const(&b, y),
                    build_scalar(&b, F32, (double)sb),
                    code(&b, I8, zb),
                    build_scalar(&b, F32, (double)scale),
                    code(&b, U8, ZY) };
    const Tensor *out = value_of(c, build_node_n(&b, word, &attr, 8, ins, 2), NULL);
    const float most = 2 * (sa > sb ? sa : sb), below = 0x1p20f * scale, by = sa * sb;
    for (int64_t i = 0; i < 256 * 256; i++) {
        const int64_t p = i / 256 - za, q = i % 256 - 128 - zb;
        const int64_t sum = times(p * (1 << 20), sa / most) + times(q * (1 << 20), sb / most);
        const int64_t v = word == OP_qadd ? times(sum, most / below) : times(p * q, by / scale);
        const double exact = word == OP_qadd ? ((double)p * (double)sa + (double)q * (double)sb) / (double)scale
                                             : (double)(p * q) * (double)by / (double)scale;
        assert_int_equal(tensor_get_i64(out->items[0], i), clamped(v, ZY, U8));
        assert_true(fabs((double)v - exact) < 0.57); /* the first rounding leaves few bits to the second */
        assert_true(fabs(at(out->items[1], i) - exact) < 1e-3);
    }
}

static Status words(void *arg)
{
    Context *c = arg;
    const int64_t dims[] = { 3, 5, 7, 11 }, plane = 77;
    Rng rng = { 6 };
    pairs(c, OP_qadd, 0.5f, 0.25f, 1);
    pairs(c, OP_qadd, 0.013f, 0.5f, 0.7f);
    pairs(c, OP_qmul, 0.5f, 0.25f, 2);
    pairs(c, OP_qmul, 0.013f, 0.02f, 0.011f);
    Build b = fresh(c);
    const QglobalAttr attr = { .codes = { .gain = 1, .factor = FACTOR_Q31 } };
    Node *ins[] = { codes(&b, &rng, U8, 4, dims), build_scalar(&b, F32, 0.03), code(&b, U8, ZX),
                    build_scalar(&b, F32, 0.011), code(&b, U8, ZY) };
    const Tensor *x = constant(ins[0]),
                 *y = value_of(c, build_node_n(&b, OP_qglobal_average_pool, &attr, 5, ins, 2), NULL);
    for (int64_t i = 0; i < 15; i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < plane; k++)
            sum += tensor_get_i64(x, i * plane + k) - ZX;
        const float all = 0.011f * (float)plane;
        assert_int_equal(tensor_get_i64(y->items[0], i), clamped(times(sum, 0.03f / all), ZY, U8));
    }
    return OK;
}

static void test_words_are_those_of_fixed_point(void **state)
{
    (void)state;
    with_context(words);
}

/* What fixed point has no form for. */
static Status refused(void *arg)
{
    Context *c = arg;
    const int64_t n = 4, plane[] = { 1, 1, 4, 4 }, kernel[] = { 2, 2 };
    const QbinaryAttr attr = { .codes = { .gain = 1, .factor = FACTOR_Q31 } };
    const QpoolAttr pool = { .pool = { .window = { .kernel_shape = { 2, kernel } } }, .codes = attr.codes };
    Rng rng = { 7 };
    Build b = fresh(c);
    Node *one = build_scalar(&b, F32, 1), *x = codes(&b, &rng, U16, 1, &n), *z = code(&b, U16, 0);
    expect_refused(c, &b, build_node(&b, OP_qadd, &attr, 8, (Node *[]){ x, one, z, x, one, z, one, z }),
                   "codes of 8 bits");
    Build p = fresh(c);
    one = build_scalar(&p, F32, 1), z = code(&p, U8, 0);
    expect_refused(
        c, &p, build_node(&p, OP_qaverage_pool, &pool, 5, (Node *[]){ codes(&p, &rng, U8, 4, plane), one, z, one, z }),
        "no averages of windows");
    return OK;
}

static void test_what_has_no_form_is_refused(void **state)
{
    (void)state;
    with_context(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factors_have_the_bits_of_floats),   cmocka_unit_test(test_sums_are_rounded_twice),
        cmocka_unit_test(test_products_are_those_of_fixed_point), cmocka_unit_test(test_words_are_those_of_fixed_point),
        cmocka_unit_test(test_what_has_no_form_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
