#include "unit/check.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "base/fp_env.h"

static double third(void)
{
    volatile double one = 1, three = 3, quotient = one / three; /* computed here and not where it is read */
    return quotient;
}

static void foreign_environment_is_left_and_put_back(void **state)
{
    (void)state;
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    double nearest = third();
    int differ = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        double before = third();
        FpEnv was = fp_env_enter();
        double inside = third();
        int mode_inside = fegetround();
        fp_env_leave(was);
        double after = third();
        int mode_after = fegetround();
        fesetround(FE_TONEAREST);

        assert_int_equal(mode_inside, FE_TONEAREST);
        assert_int_equal(mode_after, modes[i]);
        assert_true(inside == nearest);
        assert_true(before == after);
        differ += before != nearest;
    }
    assert_true(differ > 0);
}

static void exception_flags_of_the_caller_survive(void **state)
{
    (void)state;
    feclearexcept(FE_ALL_EXCEPT);
    FpEnv was = fp_env_enter();
    third();
    volatile double zero = 0, infinite = 1 / zero;
    (void)infinite;
    fp_env_leave(was);
    assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
}

#if defined(__x86_64__)
static void subnormals_are_kept_inside(void **state)
{
    (void)state;
    FpEnv host = fp_env_get(), flushing = host;
    flushing.mxcsr |= 0x8040; /* flush to zero, subnormals are zero */
    fp_env_set(flushing);
    volatile double small = 0x1p-1060, half = 0.5, outside = small * half;
    FpEnv was = fp_env_enter();
    volatile double inside = small * half;
    fp_env_leave(was);
    FpEnv after = fp_env_get();
    fp_env_set(host);
    assert_true(outside == 0);
    assert_true(inside == 0x1p-1061);
    assert_int_equal(after.mxcsr & 0xffc0, flushing.mxcsr & 0xffc0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_environment_is_left_and_put_back),
        cmocka_unit_test(exception_flags_of_the_caller_survive),
#if defined(__x86_64__)
        cmocka_unit_test(subnormals_are_kept_inside),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
