#include "unit/check.h"

#include <math.h>

#include "base/philox.h"

static void known_answers(void **state)
{
    (void)state;
    /* of the Random123 distribution: zeros, ones, digits of pi */
    static const struct {
        Philox4 counter;
        uint32_t key[2];
        Philox4 want;
    } rows[] = {
        { { { 0, 0, 0, 0 } }, { 0, 0 }, { { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } } },
        { { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff } },
          { 0xffffffff, 0xffffffff },
          { { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } } },
        { { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 } },
          { 0xa4093822, 0x299f31d0 },
          { { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Philox4 got = philox4x32(rows[i].counter, rows[i].key[0], rows[i].key[1]);
        for (int j = 0; j < 4; j++)
            assert_int_equal(got.v[j], rows[i].want.v[j]);
    }
}

static void layout_of_key_and_counter(void **state)
{
    (void)state;
    Philox4 want = philox4x32((Philox4){ { 25, 7, 3, PHILOX_ROUND } }, 11, 13);
    for (uint64_t j = 0; j < 4; j++)
        assert_int_equal(philox_at(11, 13, 100 + j, 7, 3, PHILOX_ROUND), want.v[j]);
}

/* Every part of the address matters, the upper halves too. */
static void addresses_differ(void **state)
{
    (void)state;
    const uint64_t far = (uint64_t)1 << 34;
    uint32_t words[] = {
        philox_at(1, 2, 0, 3, 4, 0),   philox_at(2, 2, 0, 3, 4, 0),        philox_at(1, 3, 0, 3, 4, 0),
        philox_at(1, 2, 1, 3, 4, 0),   philox_at(1, 2, 4, 3, 4, 0),        philox_at(1, 2, 0, 4, 4, 0),
        philox_at(1, 2, 0, 3, 5, 0),   philox_at(1, 2, 0, 3, 4, 1),        philox_at(far | 1, 2, 0, 3, 4, 0),
        philox_at(1, 2, far, 3, 4, 0), philox_at(1, 2, far << 1, 3, 4, 0),
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(words[i], words[j]);
}

static void uniform_numbers(void **state)
{
    (void)state;
    assert_true(philox_uniform(0) == 0);
    assert_true(philox_uniform(UINT32_MAX) == 1 - 0x1p-24f);
    assert_true(philox_uniform(0x80000000u) == 0.5f);
    assert_true(philox_uniform(0x1ff) == 0x1p-24f);
    assert_true(philox_uniform_positive(0) == 0x1p-24f);
    assert_true(philox_uniform_positive(UINT32_MAX) == 1);
    assert_true(philox_uniform_f64(UINT32_MAX, UINT32_MAX) == 1 - 0x1p-53);
    assert_true(philox_uniform_f64(0, 64) == 0x1p-53);
    assert_true(philox_uniform_f64(32, 0) == 0x1p-27);

    enum { N = 1 << 18, BINS = 256 };
    double sum = 0, chi = 0;
    int bins[BINS] = { 0 };
    for (uint64_t i = 0; i < N; i++) {
        float u = philox_uniform(philox_at(42, 1, i, 0, 0, PHILOX_VALUE));
        sum += (double)u;
        bins[(int)(u * BINS)]++;
    }
    for (int b = 0; b < BINS; b++)
        chi += (bins[b] - (double)N / BINS) * (bins[b] - (double)N / BINS) / ((double)N / BINS);
    check_that(fabs(sum / N - 0.5) < 0.003, "mean %g", sum / N);
    check_that(chi > 170 && chi < 350, "chi square %g of 255 degrees", chi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(layout_of_key_and_counter),
        cmocka_unit_test(addresses_differ),
        cmocka_unit_test(uniform_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
