#include "ops/signal/unit_circle.h"

#include <math.h>

#include "testing.h"

/* Rounded to f32, every sine and cosine of the small counts is what a longer type rounds to. */
static void turns_are_correctly_rounded(void **state)
{
    (void)state;
    const long double turn = 6.283185307179586476925286766559L;
    for (int64_t n = 1; n <= 500; n++)
        for (int64_t j = 0; j < n; j++) {
            const UnitRoot t = unit_root(j, n);
            const long double angle = turn * (long double)j / (long double)n;
            const bool quarter = 4 * j % n == 0; /* exact zeros, where the longer type has none */
            if (quarter ? fabsl((long double)t.c - cosl(angle)) > 1e-18L : (float)t.c != (float)cosl(angle))
                print_error("cos of %d / %d turns: %a\n", (int)j, (int)n, t.c), assert_true(false);
            if (quarter ? fabsl((long double)t.s - sinl(angle)) > 1e-18L : (float)t.s != (float)sinl(angle))
                print_error("sin of %d / %d turns: %a\n", (int)j, (int)n, t.s), assert_true(false);
        }
}

static void quarters_are_exact(void **state)
{
    (void)state;
    for (int64_t n = 4; n < (int64_t)1 << 58; n *= 4) {
        assert_true(unit_root(0, n).c == 1 && unit_root(0, n).s == 0);
        assert_true(unit_root(n / 4, n).c == 0 && unit_root(n / 4, n).s == 1);
        assert_true(unit_root(n / 2, n).c == -1 && unit_root(n / 2, n).s == 0);
        assert_true(unit_root(n / 4 * 3, n).c == 0 && unit_root(n / 4 * 3, n).s == -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(turns_are_correctly_rounded),
                                        cmocka_unit_test(quarters_are_exact) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
