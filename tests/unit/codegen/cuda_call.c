/* Calls that have no kernels: the reason is said, and nothing is printed. */
#include "codegen/cuda/cuda_call.h"
#include "ir/text/parse.h"
#include "testing.h"

static const struct {
    const char *body, *reason;
} cases[] = {
    { "%i: i64[2,3]) -> (%y) {\n    %y: i64[2] = shape(%x)\n", "a call whose card does not say how it walks" },
    { "%w: f32[4,5]) -> (%y) {\n    %y: f32[2,5] = gemm(%x, %w)\n", "a composite, which its parts compute" },
    { "%w: f4e2m1[4,5]) -> (%y) {\n    %y: f4e2m1[5,4] = transpose(%w, perm=[1, 0])\n",
      "an operand of a type that kernels do not know" },
    { "%p: i64[4]) -> (%y) {\n    const %v: f32[] = 3\n    %y: f32[4,4] = pad(%x, %p, %v)\n",
      "a call whose card does not say how it walks" },
};

static Status run_cases(void *context)
{
    Context *c = context;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *text = arena_printf(&c->arena, "graph @f(%%x: f32[2,4], %s}\n", cases[i].body);
        SourceMap source;
        CudaLaunch launch;
        Module *m = NULL;
        Text out;
        TRY(parse_module(&c->ir, &c->arena, str(text), "test.qir", NULL, &source, &m));
        text_open(&out, &c->arena);
        const char *why = cuda_print_call(&out, &(KernelTarget){ 0 }, m->graphs[0]->last, "k", false, &launch);
        assert_non_null(why);
        if (cases[i].reason)
            assert_string_equal(why, cases[i].reason);
        assert_int_equal(out.n, 0);
        assert_int_equal(launch.n, 0);
    }
    return OK;
}

static void no_kernels(void **state)
{
    (void)state;
    with_context(run_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_kernels) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
