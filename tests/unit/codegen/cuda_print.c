/* Tapes that become kernels of a rare kind, and those that become none: the reason is said, and nothing is printed. */
#include "codegen/cuda/cuda_text.h"
#include "codegen/tape.h"
#include "ir/text/parse.h"
#include "testing.h"

/* The tape of the one fused node of a text. */
static Tape *tape_of(Context *c, const char *text)
{
    Module *m = NULL;
    SourceMap source;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(text), "test.qir", NULL, &source, &m), OK);
    for (const Node *n = m->graphs[0]->first; n; n = n->next)
        if (n->op == OP_fused)
            return tape_make(n->regions[0], &c->arena);
    return NULL;
}

static const char *kernels_of(Context *c, const Tape *t, CudaLaunch *launch)
{
    Text out;
    text_open(&out, &c->arena);
    const char *why = cuda_print(&out, t, c->ir.ops, "k", false, launch);
    assert_null(why);
    return text_get(&out);
}

static void is_refused(Context *c, const Tape *t, const char *reason)
{
    Text out;
    CudaLaunch launch;
    text_open(&out, &c->arena);
    const char *why = cuda_print(&out, t, c->ir.ops, "k", false, &launch);
    assert_non_null(why);
    assert_string_equal(why, reason);
    assert_int_equal(out.n, 0);
    assert_int_equal(launch.n, 0);
}

static Tape *row_sums(Context *c, const char *rows, const char *length)
{
    return tape_of(c, arena_printf(&c->arena,
                                   "graph @f(%%x: f32[%s,%s]) -> (%%y) {\n"
                                   "    %%y: f32[%s,1] = fused(%%x) { (%%0: f32[%s,%s]) -> (%%1)\n"
                                   "        const %%2: i64[1] = [1]\n"
                                   "        %%1: f32[%s,1] = reduce_sum(%%0, %%2)\n"
                                   "    }\n"
                                   "}\n",
                                   rows, length, rows, rows, length, rows));
}

static Tape *sum_of(Context *c, int n)
{
    Text t;
    text_open(&t, &c->arena);
    for (int part = 0; part < 3; part++) {
        text_add(&t, (const char *[]){ "graph @f(", ") -> (%y) {\n    %y: f32[4] = fused(", ") { (" }[part]);
        for (int i = 0; i < n; i++)
            text_printf(&t, "%s%%%c%d%s", i ? ", " : "", part < 2 ? 'a' : 'b', i, part == 1 ? "" : ": f32[4]");
    }
    text_add(&t, ") -> (%z)\n        %z: f32[4] = sum(");
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%%b%d", i ? ", " : "", i);
    text_add(&t, ")\n    }\n}\n");
    return tape_of(c, text_get(&t));
}

static Status refusals(void *context)
{
    Context *c = context;
    CudaLaunch launch;
    kernels_of(c, row_sums(c, "2", "6291456"), &launch);
    is_refused(c, row_sums(c, "2", "6291457"), "a row that is too long for the memory of a block");
    kernels_of(c, row_sums(c, "2147483647", "2"), &launch);
    is_refused(c, row_sums(c, "2147483648", "2"), "more blocks than a launch takes");
    kernels_of(c, sum_of(c, 498), &launch);
    is_refused(c, sum_of(c, 499), "more arguments than a launch takes");
    Tape *t = row_sums(c, "2", "2");
    t->in[0] = type_tensor(&c->ir.types, F4E2M1, 2, t->in[0]->dims);
    is_refused(c, t, "an argument of a type that kernels do not know");
    t = row_sums(c, "2", "2");
    t->out[0] = type_tensor(&c->ir.types, STRING, 2, t->out[0]->dims);
    is_refused(c, t, "a result of a type that kernels do not know");
    t = row_sums(c, "2", "2");
    t->cut = -1;
    is_refused(c, t, "a reduction that does not fit its space");
    t = row_sums(c, "2", "2");
    t->rows = 0;
    is_refused(c, t, "a space without elements");
    return OK;
}

/* Indices have 32 bits where they count all elements, and 64 elsewhere. */
static Status indices(void *context)
{
    Context *c = context;
    CudaLaunch launch;
    const char *narrow = kernels_of(c, row_sums(c, "1048576", "2047"), &launch);
    assert_non_null(strstr(narrow, "const u32 row = blockIdx.x;"));
    assert_null(strstr(narrow, "i64"));
    const char *wide = kernels_of(c, row_sums(c, "1048576", "2048"), &launch);
    assert_non_null(strstr(wide, "const i64 row = (i64)blockIdx.x;"));
    assert_non_null(strstr(wide, "const i64 e = row * 2048 + i;"));
    assert_int_equal(launch.kernels[0].blocks, 1048576);
    return OK;
}

/* A warp for each segment of a row, eight at most. */
static Status warps(void *context)
{
    Context *c = context;
    CudaLaunch launch;
    static const struct {
        const char *length;
        int threads;
    } cases[] = { { "2", 32 }, { "1024", 32 }, { "1025", 64 }, { "7169", 256 }, { "100000", 256 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        kernels_of(c, row_sums(c, "3", cases[i].length), &launch);
        assert_int_equal(launch.n, 1);
        assert_int_equal(launch.kernels[0].blocks, 3);
        assert_int_equal(launch.kernels[0].threads, cases[i].threads);
    }
    return OK;
}

static void test_refusals(void **state)
{
    (void)state;
    with_context(refusals);
}

static void test_indices(void **state)
{
    (void)state;
    with_context(indices);
}

static void test_warps(void **state)
{
    (void)state;
    with_context(warps);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals), cmocka_unit_test(test_indices),
                                        cmocka_unit_test(test_warps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
