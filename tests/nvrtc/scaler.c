/* The automaton of the loss scale and the two halves of a master compile for every architecture, as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include "ops/text.h"
#include "tests/nvrtc/nvrtc.h"

/* Takes a line out of a text. */
static void blank(char *text, const char *line)
{
    char *at = strstr(text, line);
    assert_non_null(at);
    memset(at, ' ', strlen(line));
}

static char *source_of(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *f = fopen(path, "rb");
    assert_non_null(text);
    assert_non_null(f);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* Compiles `text` behind the scalar functions for every architecture; it has one kernel. */
static void compile(const char *text, const char *kernel)
{
    Nvrtc nvrtc;
    if (!nvrtc_open(&nvrtc))
        skip();
    const size_t size = strlen(ops_scalar_text) + strlen(text) + strlen(kernel) + 4;
    char *all = malloc(size);
    assert_non_null(all);
    snprintf(all, size, "%s\n%s\n%s\n", ops_scalar_text, text, kernel);
    for (size_t a = 0; a < sizeof nvrtc_archs / sizeof *nvrtc_archs; a++) {
        if (!nvrtc_knows(&nvrtc, nvrtc_archs[a]))
            continue;
        char *ptx = nvrtc_ptx(&nvrtc, all, nvrtc_archs[a]);
        assert_non_null(ptx);
        assert_int_equal(nvrtc_count(ptx, ".entry "), 1);
        assert_int_equal(nvrtc_count(ptx, ".ftz"), 0);
        free(ptx);
    }
    free(all);
}

static void automaton_compiles(void **state)
{
    char *text = source_of(QCC_SOURCE_DIR "/ops/update/scaler.h");
    (void)state;
    blank(text, "#include \"ops/scalar.h\"");
    compile(text,
            "extern \"C\" __global__ void step(f32 *scale, i64 *counters, const ScalerRules *r, i64 first, i64 found)\n"
            "{\n"
            "    ScalerState s = scaler_next(r, scaler_unpack(*scale, counters), first, found);\n"
            "    scaler_pack(&s, counters);\n"
            "    *scale = scaler_applies(found) && scaler_is_scale(s.scale) ? s.scale : scaler_begin(r, 1).scale;\n"
            "}\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(automaton_compiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
