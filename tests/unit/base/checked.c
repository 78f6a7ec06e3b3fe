#include "unit/check.h"

#include "base/checked.h"

static void sums_and_products_at_the_edges(void **state)
{
    (void)state;
    size_t s = 7;
    assert_true(checked_add_size(SIZE_MAX - 1, 1, &s));
    assert_true(s == SIZE_MAX);
    s = 7;
    assert_false(checked_add_size(SIZE_MAX, 1, &s));
    assert_false(checked_sub_size(1, 2, &s));
    assert_false(checked_mul_size(SIZE_MAX / 2 + 1, 2, &s));
    assert_false(checked_mul_add_size(SIZE_MAX / 2, 2, 2, &s));
    assert_true(s == 7);
    assert_true(checked_mul_add_size(SIZE_MAX / 2, 2, 1, &s));
    assert_true(s == SIZE_MAX);
    assert_true(checked_sub_size(2, 2, &s));
    assert_true(s == 0);

    int64_t i = 7;
    assert_false(checked_add_i64(INT64_MAX, 1, &i));
    assert_false(checked_sub_i64(INT64_MIN, 1, &i));
    assert_false(checked_mul_i64(INT64_MIN, -1, &i));
    assert_true(i == 7);
    assert_true(checked_mul_i64(INT64_MIN, 1, &i));
    assert_true(i == INT64_MIN);

    uint64_t u = 7;
    assert_false(checked_add_u64(UINT64_MAX, 1, &u));
    assert_false(checked_mul_u64(UINT64_MAX, 2, &u));
    assert_true(u == 7);
}

/* Operands about every power of two, against 128-bit arithmetic. */
static void agrees_with_wide_arithmetic(void **state)
{
    (void)state;
    __extension__ typedef __int128 Wide;
    int fitted = 0;
    for (int p = 0; p < 64; p++)
        for (int q = 0; q < 64; q++)
            for (int sign = 0; sign < 4; sign++) {
                int64_t a = (int64_t)(((uint64_t)1 << p) - (sign & 1)), b = (int64_t)(((uint64_t)1 << q) + (sign >> 1));
                Wide product = (Wide)a * b, sum = (Wide)a + b, difference = (Wide)a - b;
                int64_t r;
                assert_int_equal(checked_mul_i64(a, b, &r), product >= INT64_MIN && product <= INT64_MAX);
                if (checked_mul_i64(a, b, &r)) {
                    assert_true(r == (int64_t)product);
                    fitted++;
                }
                assert_int_equal(checked_add_i64(a, b, &r), sum >= INT64_MIN && sum <= INT64_MAX);
                assert_int_equal(checked_sub_i64(a, b, &r), difference >= INT64_MIN && difference <= INT64_MAX);
            }
    assert_true(fitted > 4000);
}

static void conversions(void **state)
{
    (void)state;
    size_t s = 7;
    int64_t i = 7;
    assert_false(checked_size_of_i64(-1, &s));
    assert_true(s == 7);
    assert_true(checked_size_of_i64(INT64_MAX, &s));
    assert_true(s == (size_t)INT64_MAX);
    assert_false(checked_i64_of_size(SIZE_MAX, &i));
    assert_true(i == 7);
    assert_true(checked_i64_of_size(3, &i));
    assert_true(i == 3);
}

static void shapes(void **state)
{
    (void)state;
    int64_t n = 7;
    assert_true(checked_product_i64(NULL, 0, INT64_MAX, &n));
    assert_true(n == 1);
    assert_true(checked_product_i64((const int64_t[]){ 2, 3, 4 }, 3, 24, &n));
    assert_true(n == 24);
    assert_false(checked_product_i64((const int64_t[]){ 2, 3, 4 }, 3, 23, &n));
    assert_false(checked_product_i64((const int64_t[]){ 2, -1 }, 2, INT64_MAX, &n));
    assert_false(checked_product_i64((const int64_t[]){ INT64_MIN, 0 }, 2, INT64_MAX, &n));
    /* a product that wraps to a small positive number */
    assert_false(checked_product_i64((const int64_t[]){ (int64_t)1 << 33, (int64_t)1 << 31, 5 }, 3, INT64_MAX, &n));
    assert_true(n == 24);
    assert_true(checked_product_i64((const int64_t[]){ 0, 5 }, 2, 100, &n));
    assert_true(n == 0);
    n = 7;
    assert_false(checked_product_i64((const int64_t[]){ 0, (int64_t)1 << 40, (int64_t)1 << 40 }, 3, INT64_MAX, &n));
    assert_true(n == 7);
}

static void rounding_up(void **state)
{
    (void)state;
    size_t s;
    assert_true(checked_round_up_size(0, 64, &s) && s == 0);
    assert_true(checked_round_up_size(1, 64, &s) && s == 64);
    assert_true(checked_round_up_size(64, 64, &s) && s == 64);
    assert_true(checked_round_up_size(65, 24, &s) && s == 72);
    assert_true(checked_round_up_size(SIZE_MAX - 63, 64, &s) && s == SIZE_MAX - 63);
    assert_false(checked_round_up_size(SIZE_MAX - 62, 64, &s));
}

static void packed_bytes(void **state)
{
    (void)state;
    size_t s;
    for (int64_t n = 0; n < 100; n++)
        for (unsigned bits = 1; bits <= 128; bits++) {
            assert_true(checked_bytes_of_bits(n, bits, &s));
            assert_true(s == ((size_t)n * bits + 7) / 8);
        }
    assert_true(checked_bytes_of_bits(INT64_MAX, 4, &s));
    assert_true(s == (size_t)1 << 62);
    assert_true(checked_bytes_of_bits(INT64_MAX, 8, &s));
    assert_true(s == (size_t)INT64_MAX);
    assert_true(checked_bytes_of_bits(INT64_MAX, 16, &s));
    assert_true(s == SIZE_MAX - 1);
    assert_false(checked_bytes_of_bits(INT64_MAX, 32, &s));
    assert_false(checked_bytes_of_bits(-1, 8, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_at_the_edges),
        cmocka_unit_test(agrees_with_wide_arithmetic),
        cmocka_unit_test(conversions),
        cmocka_unit_test(shapes),
        cmocka_unit_test(rounding_up),
        cmocka_unit_test(packed_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
