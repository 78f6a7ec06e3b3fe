/* Every state that a crash during a save may leave: recovery finds the old checkpoint or the new one, two whole ones
 * stay, and once the save has answered it is the new one.  And every process killed meanwhile. */
#include "support/checkpoint_trials.h"

static Status crashes(void *arg)
{
    int n;
    assert_true(crash_folder(arg, 40, 2, true) > 500);
    assert_int_equal(crash_file(arg, 40, false, &n), 0);
    assert_true(n > 200);
    return OK;
}

/* A disk that lies about syncs loses: the test above sees it. */
static Status lying_disk(void *arg)
{
    int n;
    assert_true(crash_file(arg, 40, true, &n) > 0);
    return OK;
}

static Status kills(void *arg)
{
    kill_at_each_call(arg);
    kill_savers(arg, 15, 1);
    return OK;
}

static void test_crashes(void **state)
{
    (void)state;
    with_context(crashes);
}

static void test_lying_disk(void **state)
{
    (void)state;
    with_context(lying_disk);
}

static void test_kills(void **state)
{
    (void)state;
    with_context(kills);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_crashes), cmocka_unit_test(test_lying_disk),
                                        cmocka_unit_test(test_kills) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
