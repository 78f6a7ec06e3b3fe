/* label: slow */
/* Crashes of many saves, and 300 processes killed at random moments of saving. */
#include "support/checkpoint_trials.h"

static Status crashes(void *arg)
{
    int n = 0, states;
    static const int64_t widths[] = { 0, 1, 100, 600 };
    for (size_t i = 0; i < COUNT(widths); i++) {
        for (int keep = 0; keep <= 3; keep += 1 + (keep == 0))
            n += crash_folder(arg, widths[i], keep, keep % 2 == 0);
        assert_int_equal(crash_file(arg, widths[i], false, &states), 0);
        n += states;
    }
    print_message("%d states\n", n);
    assert_true(n > 5000);
    return OK;
}

static Status kills(void *arg)
{
    kill_savers(arg, 300, 20240601);
    return OK;
}

static void test_crashes(void **state)
{
    (void)state;
    with_context(crashes);
}

static void test_kills(void **state)
{
    (void)state;
    with_context(kills);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_crashes), cmocka_unit_test(test_kills) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
