/* What threads of a warp hold of the matrices that it multiplies (ops/warp.h), counted here as the manual of PTX counts the
 * elements of mma.m16n8k32: sums are those of the matrices, and with a mistake in any of the three layouts they are not. */
#include "codegen/cuda/cuda_text.h"
#include "simcuda/tests/bench.h"

enum { ROWS = 16, COLUMNS = 8, DEPTH = 32, LANES = 32 };

static const char kernel[] = "extern \"C\" __global__ void k(const A *a, const B *b, u32 *c)\n"
                             "{\n"
                             "    const u32 group = threadIdx.x / 4, in_group = threadIdx.x % 4;\n"
                             "    u32 x[4] = { 0 }, y[2] = { 0 }, z[4] = { 0 };\n"
                             "    for (u32 i = 0; i < 16; i++) {\n"
                             "        const u32 row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;\n"
                             "        const u32 k = in_group * 4 + i % 4 + (i < 8 ? 0 : 16);\n"
                             "        x[i / 4] |= (u32)(u8)a[row * 32 + k] << 8 * (i % 4);\n"
                             "    }\n"
                             "    for (u32 i = 0; i < 8; i++) {\n"
                             "        const u32 row = in_group * 4 + i % 4 + (i < 4 ? 0 : 16), column = group;\n"
                             "        y[i / 4] |= (u32)(u8)b[row * 8 + column] << 8 * (i % 4);\n"
                             "    }\n"
                             "    warp_product(z, x, y, a, b);\n"
                             "    for (u32 i = 0; i < 4; i++) {\n"
                             "        const u32 row = i < 2 ? group : group + 8, column = in_group * 2 + i % 2;\n"
                             "        c[row * 8 + column] = z[i];\n"
                             "    }\n"
                             "}\n";

/* Mistakes: what stands there, and what might stand there instead. */
static const char *const mistakes[][2] = {
    { "i < 4 || (i >= 8 && i < 12)", "i < 8" },
    { "(i < 8 ? 0 : 16)", "(i < 8 ? 16 : 0)" },
    { "row = in_group * 4 + i % 4", "row = in_group + i % 4 * 4" },
    { "(i < 4 ? 0 : 16), column = group", "(i < 4 ? 0 : 16), column = (group + 1) % 8" },
    { "row = i < 2", "row = i % 2 == 0" },
    { "in_group * 2 + i % 2", "in_group + i % 2 * 4" },
    { "<< 8 * (i % 4);\n    }\n    for", "<< 8 * (3 - i % 4);\n    }\n    for" },
    { "warp_product(z, x, y, a, b)", "warp_product(z, x, y, (const u8 *)a, b)" },
    { "warp_product(z, x, y, a, b)", "warp_product(z, x, y, a, (const u8 *)b)" },
};

static const char *text_with(Bench *b, const char *const *mistake, const char *a_type, const char *b_type)
{
    Text text;
    text_open(&text, &b->arena);
    cuda_prelude(&text);
    text_printf(&text, "typedef %s A;\ntypedef %s B;\n", a_type, b_type);
    const char *at = mistake ? strstr(kernel, mistake[0]) : kernel;
    assert_non_null(at);
    text_bytes(&text, kernel, (size_t)(at - kernel));
    text_add(&text, mistake ? mistake[1] : "");
    text_add(&text, at + (mistake ? strlen(mistake[0]) : 0));
    return text_get(&text);
}

/* An element as its type takes a byte. */
static int value_of(unsigned char byte, bool sign)
{
    return sign && byte > 127 ? byte - 256 : byte;
}

static bool right(const unsigned char *x, bool x_sign, const unsigned char *y, bool y_sign, const unsigned *sums)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int sum = 0;
        for (int k = 0; k < DEPTH; k++)
            sum += value_of(x[i / COLUMNS * DEPTH + k], x_sign) * value_of(y[k * COLUMNS + i % COLUMNS], y_sign);
        if (sums[i] != (unsigned)sum)
            return false;
    }
    return true;
}

/* Whether a kernel gives the sums of two matrices whose elements all differ from their neighbours. */
static bool multiplies(Bench *b, const char *const *mistake, bool x_sign, bool y_sign)
{
    unsigned char x[ROWS * DEPTH], y[DEPTH * COLUMNS];
    unsigned sums[ROWS * COLUMNS];
    unsigned state = 1;
    for (size_t i = 0; i < sizeof x; i++)
        x[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < sizeof y; i++)
        y[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
    CudaLoaded *m = bench_module(b, text_with(b, mistake, x_sign ? "i8" : "u8", y_sign ? "i8" : "u8"));
    CudaAddress dx = bench_alloc(b, sizeof x), dy = bench_alloc(b, sizeof y), dz = bench_alloc(b, sizeof sums);
    bench_write(b, dx, x, sizeof x);
    bench_write(b, dy, y, sizeof y);
    assert_int_equal(bench_run(b, bench_kernel(b, m, "k"), 1, LANES, (void *[]){ &dx, &dy, &dz }), CUDA_OK);
    bench_read(b, sums, dz, sizeof sums);
    assert_int_equal(b->cu.give_back(dx) | b->cu.give_back(dy) | b->cu.give_back(dz) | b->cu.unload(m), CUDA_OK);
    return right(x, x_sign, y, y_sign, sums);
}

static void layouts(void **state)
{
    Bench b;
    (void)state;
    bench_open(&b);
    for (int i = 0; i < 4; i++)
        bench_that(multiplies(&b, NULL, i / 2, i % 2), "codes %s a sign by codes %s one\n", i / 2 ? "with" : "without",
                   i % 2 ? "with" : "without");
    bench_close(&b);
}

static void mistakes_show(void **state)
{
    Bench b;
    (void)state;
    bench_open(&b);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        bench_that(!multiplies(&b, mistakes[i], true, true), "nobody sees %s\n", mistakes[i][1]);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(layouts), cmocka_unit_test(mistakes_show) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
