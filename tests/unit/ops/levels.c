/* Which level of inner loops a machine takes. */
#include <string.h>

#include "ops/kernels/kernels.h"
#include "testing.h"

static void best_is_one_of_them(void **state)
{
    (void)state;
    assert_ptr_equal(kernels_named(kernels_name(kernels_best())), kernels_best());
    assert_non_null(kernels_named("base"));
    assert_null(kernels_named("none"));
}

/* Where products of bf16 by AVX512-BF16 are slower than those of f32 they are there and not taken; tiles are. */
static void slow_instructions_are_left(void **state)
{
    (void)state;
#if defined(__x86_64__)
    const bool tiles = kernels_named("v4amx"), pairs = kernels_named("v4bf16");
    const char *wanted = tiles ? "v4amx" : __builtin_cpu_is("intel") ? "v4vnni" : "v4bf16";
    if (pairs)
        assert_string_equal(kernels_name(kernels_best()), wanted);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(best_is_one_of_them),
                                        cmocka_unit_test(slow_instructions_are_left) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
