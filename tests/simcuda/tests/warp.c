/* What threads of a warp hold of the matrices that it multiplies (ops/warp.h), counted here as the manual of PTX counts the
 * elements of mma.m16n8k32 and m16n8k16: sums are those of the matrices, and with a mistake in any of the three layouts they are not. */
#include "base/half.h"
#include "codegen/cuda/cuda_text.h"
#include "simcuda/tests/bench.h"

enum { ROWS = 16, COLUMNS = 8, CODES_DEPTH = 32, HALVES_DEPTH = 16, LANES = 32 };

static const char of_codes[] = "extern \"C\" __global__ void k(const A *a, const B *b, u32 *c)\n"
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

static const char of_halves[] = "extern \"C\" __global__ void k(const u16 *a, const u16 *b, f32 *c)\n"
                                "{\n"
                                "    const u32 group = threadIdx.x / 4, in_group = threadIdx.x % 4;\n"
                                "    u32 x[4] = { 0 }, y[2] = { 0 };\n"
                                "    f32 z[4] = { 0 };\n"
                                "    const Bf16 *const halves = 0;\n"
                                "    for (u32 i = 0; i < 8; i++) {\n"
                                "        const u32 row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;\n"
                                "        const u32 k = in_group * 2 + i % 2 + (i < 4 ? 0 : 8);\n"
                                "        x[i / 2] |= (u32)a[row * 16 + k] << 16 * (i % 2);\n"
                                "    }\n"
                                "    for (u32 i = 0; i < 4; i++) {\n"
                                "        const u32 row = in_group * 2 + i % 2 + (i < 2 ? 0 : 8), column = group;\n"
                                "        y[i / 2] |= (u32)b[row * 8 + column] << 16 * (i % 2);\n"
                                "    }\n"
                                "    warp_product(z, x, y, halves, halves);\n"
                                "    for (u32 i = 0; i < 4; i++) {\n"
                                "        const u32 row = i < 2 ? group : group + 8, column = in_group * 2 + i % 2;\n"
                                "        c[row * 8 + column] = z[i];\n"
                                "    }\n"
                                "}\n";

/* The kernel of codes, with sums of f32. */
static const char of_floats[] = "extern \"C\" __global__ void k(const u8 *a, const u8 *b, f32 *c)\n"
                                "{\n"
                                "    const u32 group = threadIdx.x / 4, in_group = threadIdx.x % 4;\n"
                                "    u32 x[4] = { 0 }, y[2] = { 0 };\n"
                                "    f32 z[4] = { 0 };\n"
                                "    for (u32 i = 0; i < 16; i++) {\n"
                                "        const u32 row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;\n"
                                "        const u32 k = in_group * 4 + i % 4 + (i < 8 ? 0 : 16);\n"
                                "        x[i / 4] |= (u32)a[row * 32 + k] << 8 * (i % 4);\n"
                                "    }\n"
                                "    for (u32 i = 0; i < 8; i++) {\n"
                                "        const u32 row = in_group * 4 + i % 4 + (i < 4 ? 0 : 16), column = group;\n"
                                "        y[i / 4] |= (u32)b[row * 8 + column] << 8 * (i % 4);\n"
                                "    }\n"
                                "    warp_product(z, x, y, (const F8e4m3 *)0, (const F8e5m2 *)0);\n"
                                "    for (u32 i = 0; i < 4; i++) {\n"
                                "        const u32 row = i < 2 ? group : group + 8, column = in_group * 2 + i % 2;\n"
                                "        c[row * 8 + column] = z[i];\n"
                                "    }\n"
                                "}\n";

/* Mistakes: what stands there, and what might stand there instead. */
static const char *const mistakes_of_codes[][2] = {
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
static const char *const mistakes_of_halves[][2] = {
    { "i < 2 || (i >= 4 && i < 6)", "i < 4" },
    { "(i < 4 ? 0 : 8)", "(i < 4 ? 8 : 0)" },
    { "row = in_group * 2 + i % 2", "row = in_group + i % 2 * 4" },
    { "row = i < 2 ?", "row = i % 2 == 0 ?" },
    { "column = in_group * 2 + i % 2", "column = in_group + i % 2 * 4" },
    { "<< 16 * (i % 2);\n    }\n    warp", "<< 16 * (1 - i % 2);\n    }\n    warp" },
};
static const char *const mistakes_of_floats[][2] = {
    { "i < 4 || (i >= 8 && i < 12)", "i < 8" },
    { "(i < 8 ? 0 : 16)", "(i < 8 ? 16 : 0)" },
    { "row = in_group * 4 + i % 4", "row = in_group + i % 4 * 4" },
    { "row = i < 2", "row = i % 2 == 0" },
    { "in_group * 2 + i % 2", "in_group + i % 2 * 4" },
    { "<< 8 * (i % 4);\n    }\n    for", "<< 8 * (3 - i % 4);\n    }\n    for" },
    { "(const F8e4m3 *)0", "(const F8e5m2 *)0" },
    { "(const F8e5m2 *)0", "(const F8e4m3 *)0" },
};

typedef enum Elements { CODES, HALVES, FLOATS } Elements;

/* A kernel, whose two matrices are drawn and whose types of codes have a sign or none. */
typedef struct Case {
    const char *kernel;
    const char *const *mistake; /* null: none */
    Elements elements;
    bool x_sign, y_sign;
} Case;

static const char *text_of(Bench *b, const Case *c)
{
    Text text;
    text_open(&text, &b->arena);
    cuda_prelude(&text);
    text_printf(&text, "typedef %s A;\ntypedef %s B;\n", c->x_sign ? "i8" : "u8", c->y_sign ? "i8" : "u8");
    const char *at = c->mistake ? strstr(c->kernel, c->mistake[0]) : c->kernel;
    assert_non_null(at);
    text_bytes(&text, c->kernel, (size_t)(at - c->kernel));
    text_add(&text, c->mistake ? c->mistake[1] : "");
    text_add(&text, at + (c->mistake ? strlen(c->mistake[0]) : 0));
    return text_get(&text);
}

/* What a byte stands for: the number that it is, or one of few bits, whose sums are exact. */
static int value_of(unsigned char byte, const Case *c, bool sign)
{
    return c->elements == HALVES   ? byte % 32 - 16
           : c->elements == FLOATS ? byte % 16 - 8
           : sign && byte > 127    ? byte - 256
                                   : byte;
}

static bool right(const Case *c, const unsigned char *x, const unsigned char *y, int depth, const void *sums)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int sum = 0, got;
        for (int k = 0; k < depth; k++)
            sum += value_of(x[i / COLUMNS * depth + k], c, c->x_sign) *
                   value_of(y[k * COLUMNS + i % COLUMNS], c, c->y_sign);
        if (c->elements != CODES)
            got = (int)((const float *)sums)[i];
        else
            got = ((const int *)sums)[i];
        if (got != sum)
            return false;
    }
    return true;
}

/* Bytes drawn, and what the device gets for them: floats of eight bits of one kind at the left, of the other at the right. */
static void draw(const Case *c, unsigned *state, unsigned char *bytes, uint16_t *halves, int n, bool left)
{
    unsigned char *const floats = (unsigned char *)halves;
    for (int i = 0; i < n; i++) {
        bytes[i] = (unsigned char)((*state = *state * 1664525 + 1013904223) >> 24);
        const float x = (float)value_of(bytes[i], c, false);
        if (c->elements == HALVES)
            halves[i] = bf16_from_f32(x);
        else
            floats[i] = left ? f8e4m3fn_from_f32(x, true) : f8e5m2_from_f32(x, true);
    }
}

static CudaAddress to_device(Bench *b, const Case *c, const unsigned char *bytes, const uint16_t *halves, size_t n)
{
    const size_t size = c->elements == HALVES ? n * sizeof *halves : n;
    const CudaAddress at = bench_alloc(b, size);
    bench_write(b, at, c->elements == CODES ? (const void *)bytes : halves, size);
    return at;
}

/* Whether a kernel gives the sums of two matrices whose elements differ from their neighbours. */
static bool multiplies(Bench *b, const Case *c)
{
    unsigned char x[ROWS * CODES_DEPTH], y[CODES_DEPTH * COLUMNS];
    uint16_t x_halves[ROWS * CODES_DEPTH], y_halves[CODES_DEPTH * COLUMNS];
    unsigned sums[ROWS * COLUMNS], state = 1;
    const int depth = c->elements == HALVES ? HALVES_DEPTH : CODES_DEPTH;
    draw(c, &state, x, x_halves, ROWS * depth, true);
    draw(c, &state, y, y_halves, depth * COLUMNS, false);
    CudaLoaded *m = bench_module(b, text_of(b, c));
    CudaAddress dx = to_device(b, c, x, x_halves, (size_t)(ROWS * depth));
    CudaAddress dy = to_device(b, c, y, y_halves, (size_t)(depth * COLUMNS)), dz = bench_alloc(b, sizeof sums);
    assert_int_equal(bench_run(b, bench_kernel(b, m, "k"), 1, LANES, (void *[]){ &dx, &dy, &dz }), CUDA_OK);
    bench_read(b, sums, dz, sizeof sums);
    assert_int_equal(b->cu.give_back(dx) | b->cu.give_back(dy) | b->cu.give_back(dz) | b->cu.unload(m), CUDA_OK);
    return right(c, x, y, depth, sums);
}

static void layouts(void **state)
{
    Bench b;
    (void)state;
    bench_open(&b);
    for (int i = 0; i < 4; i++)
        bench_that(multiplies(&b, &(const Case){ of_codes, NULL, CODES, i / 2, i % 2 }),
                   "codes %s a sign by codes %s one\n", i / 2 ? "with" : "without", i % 2 ? "with" : "without");
    bench_that(multiplies(&b, &(const Case){ of_halves, NULL, HALVES, false, false }), "bf16\n");
    bench_that(multiplies(&b, &(const Case){ of_floats, NULL, FLOATS, false, false }), "floats of eight bits\n");
    bench_close(&b);
}

static void mistakes_show(void **state)
{
    Bench b;
    (void)state;
    bench_open(&b);
    for (size_t i = 0; i < COUNT(mistakes_of_codes); i++)
        bench_that(!multiplies(&b, &(const Case){ of_codes, mistakes_of_codes[i], CODES, true, true }),
                   "nobody sees %s\n", mistakes_of_codes[i][1]);
    for (size_t i = 0; i < COUNT(mistakes_of_halves); i++)
        bench_that(!multiplies(&b, &(const Case){ of_halves, mistakes_of_halves[i], HALVES, false, false }),
                   "nobody sees %s\n", mistakes_of_halves[i][1]);
    for (size_t i = 0; i < COUNT(mistakes_of_floats); i++)
        bench_that(!multiplies(&b, &(const Case){ of_floats, mistakes_of_floats[i], FLOATS, false, false }),
                   "nobody sees %s\n", mistakes_of_floats[i][1]);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(layouts), cmocka_unit_test(mistakes_show) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
