#include "unit/check.h"

#include "base/mt19937.h"

/* Written down from numpy.random.RandomState(seed).random_sample(2000). */
static void draws_what_numpy_draws(void **state)
{
    (void)state;
    static const struct {
        uint32_t seed;
        double first[3], at_311, at_312, at_1999;
    } rows[] = {
        { 0,
          { 0x1.18fe1565f12a8p-1, 0x1.6e2d4cf608733p-1, 0x1.349d66b6e894bp-1 },
          0x1.2cf25ce2031ccp-3,
          0x1.45b8f280519f0p-4,
          0x1.00e86864bc501p-1 },
        { 1,
          { 0x1.ab07d0ffa3c06p-2, 0x1.70ce5f3baf051p-1, 0x1.dfb906661c000p-14 },
          0x1.d1bbbf5de4b9cp-1,
          0x1.074a049bfdcd2p-2,
          0x1.e4b9915854642p-1 },
        { 42,
          { 0x1.7f8771e5f51ecp-2, 0x1.e6c4068bbd654p-1, 0x1.76c7e8f1e6751p-1 },
          0x1.415b7a8070ca8p-4,
          0x1.9f58b97983ee0p-6,
          0x1.20f5a604a512ap-2 },
        { 5489,
          { 0x1.a1237688aba7bp-1, 0x1.cfc3f5f570c7dp-1, 0x1.0411a9f807b7cp-3 },
          0x1.098546bbe8537p-1,
          0x1.f229b8891a163p-1,
          0x1.7819cc8715284p-2 },
        { 4294967295u,
          { 0x1.8fe69a3924820p-4, 0x1.d323d824032b1p-1, 0x1.93fc6f61af3f9p-1 },
          0x1.2369739e9c078p-2,
          0x1.cc39c1c9cc10cp-1,
          0x1.6f8e202307648p-3 },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        Mt19937 m;
        mt19937_seed(&m, rows[r].seed);
        for (int i = 0; i < 2000; i++) {
            double x = mt19937_uniform(&m);
            if (i < 3)
                assert_true(x == rows[r].first[i]);
            if (i == 311)
                assert_true(x == rows[r].at_311);
            if (i == 312)
                assert_true(x == rows[r].at_312);
            if (i == 1999)
                assert_true(x == rows[r].at_1999);
        }
    }
}

/* The generator's own known answer: word 10,000 of the standard seed. */
static void word_ten_thousand(void **state)
{
    (void)state;
    Mt19937 m;
    uint32_t x = 0;
    mt19937_seed(&m, 5489);
    for (int i = 0; i < 10000; i++)
        x = mt19937_next(&m);
    assert_int_equal(x, 4123659995u);
    mt19937_seed(&m, 42);
    static const uint32_t words[] = { 1608637542u, 3421126067u, 4083286876u, 787846414u };
    for (int i = 0; i < 4; i++)
        assert_int_equal(mt19937_next(&m), words[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_what_numpy_draws),
        cmocka_unit_test(word_ten_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
