/* The quoted text of every row compiles for every architecture, in every arithmetic the row has, and the f32 form holds
 * no f64 instruction and no approximation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include "ops/card/cards.h"
#include "ops/card/row.h"
#include "ops/text.h"
#include "tests/nvrtc/nvrtc.h"

typedef struct Source {
    char *at;
    size_t used, size, kernels;
} Source;

__attribute__((format(printf, 2, 3))) static void put(Source *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->at + t->used, t->size - t->used, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < t->size - t->used);
    t->used += (size_t)n;
}

static void put_row(Source *t, const OpDef *def, const char *type)
{
    put(t, "extern \"C\" __global__ void %s_%s(%s *o, const %s *p, const %s *q, const %s *r, %s a, %s b)\n{\n", type,
        def->name, type, type, type, type, type, type);
    put(t, "    typedef %s T; const unsigned i = threadIdx.x; const T x = p[i], y = q[i], z = r[i];\n", type);
    put(t, "    o[i] = (T)(%s);\n}\n", def->row->text);
    t->kernels++;
}

static void put_rows(Source *t, unsigned kinds, const char *type)
{
    for (size_t i = 0; i < ops_table.n; i++)
        if (ops_table.defs[i]->row && (ops_table.defs[i]->row->kinds & kinds))
            put_row(t, ops_table.defs[i], type);
}

static Source begin(void)
{
    Source t = { malloc(1 << 20), 0, 1 << 20, 0 };
    assert_non_null(t.at);
    put(&t, "%s\n", ops_scalar_text);
    return t;
}

/* Compiles for every architecture; `banned` words must not occur. */
static void compile(const Source *t, size_t n_banned, const char *const *banned)
{
    Nvrtc nvrtc;
    if (!nvrtc_open(&nvrtc)) {
        free(t->at);
        skip();
    }
    assert_true(t->kernels > 0);
    for (size_t a = 0; a < sizeof nvrtc_archs / sizeof *nvrtc_archs; a++) {
        if (!nvrtc_knows(&nvrtc, nvrtc_archs[a]))
            continue;
        char *ptx = nvrtc_ptx(&nvrtc, t->at, nvrtc_archs[a]);
        assert_non_null(ptx);
        assert_int_equal(nvrtc_count(ptx, ".entry "), t->kernels);
        for (size_t i = 0; i < n_banned; i++)
            assert_int_equal(nvrtc_count(ptx, banned[i]), 0);
        free(ptx);
    }
    print_message("%zu rows\n", t->kernels);
    free(t->at);
}

static void f32_rows_compile(void **state)
{
    static const char *const banned[] = { ".f64", ".approx", ".ftz" };
    (void)state;
    Source t = begin();
    put_rows(&t, ROW_F, "f32");
    compile(&t, 3, banned);
}

static void f64_rows_compile(void **state)
{
    (void)state;
    Source t = begin();
    put_rows(&t, ROW_F, "f64");
    compile(&t, 0, NULL);
}

static void integer_rows_compile(void **state)
{
    (void)state;
    Source t = begin();
    put_rows(&t, ROW_I | ROW_B, "i64");
    put_rows(&t, ROW_U, "u64");
    compile(&t, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_rows_compile),
        cmocka_unit_test(f64_rows_compile),
        cmocka_unit_test(integer_rows_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
