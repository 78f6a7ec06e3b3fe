/* What the assembler says of kernels, from a log of it. */
#include "runtime/cuda/nvrtc.h"
#include "testing.h"

static const char log_text[] =
    "ptxas info    : 0 bytes gmem, 4096 bytes cmem[3]\n"
    "ptxas info    : Compiling entry function 'k1_map' for 'sm_90a'\n"
    "ptxas info    : Function properties for k1_map\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 10 registers, used 0 barriers\n"
    "ptxas info    : Compile time = 10.494 ms\n"
    "ptxas info    : Compiling entry function 'k0_rows' for 'sm_90a'\n"
    "ptxas info    : Function properties for k0_rows\n"
    "ptxas         .     24 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 1 barriers, 24 bytes cumulative stack size, 1024 bytes smem, 400 bytes cmem[0]\n";

static Status read_log(void *context)
{
    Context *c = context;
    KernelUse *uses;
    assert_int_equal(nvrtc_uses("", &c->arena, &uses), 0);
    assert_int_equal(nvrtc_uses("kernels.cu(3): warning\n", &c->arena, &uses), 0);
    assert_int_equal(nvrtc_uses(log_text, &c->arena, &uses), 2);
    assert_string_equal(uses[0].name, "k1_map");
    assert_int_equal(uses[0].registers, 10);
    assert_int_equal(uses[0].shared + uses[0].stack + uses[0].spills + uses[0].barriers, 0);
    assert_string_equal(uses[1].name, "k0_rows");
    assert_int_equal(uses[1].registers, 255);
    assert_int_equal(uses[1].barriers, 1);
    assert_int_equal(uses[1].shared, 1024);
    assert_int_equal(uses[1].stack, 24);
    assert_int_equal(uses[1].spills, 20);
    return OK;
}

static void uses(void **state)
{
    (void)state;
    with_context(read_log);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(uses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
