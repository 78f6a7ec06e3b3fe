/* Copies to the memory that a block shares, which are there after a wait and a barrier, and squares that a warp loads from it
 * (ops/warp/copy.h), counted here as the manual of PTX counts the elements of ldmatrix: threads get what lies there, and with a
 * wait, a barrier or an index that is wrong they do not, or the device stops. */
#include "codegen/cuda/cuda_text.h"
#include "simcuda/tests/bench.h"

enum { PIECES = 4, ROWS = 64, SIZE = 16, THREADS = 128, WORDS = 4, ELEMENTS = PIECES * ROWS * SIZE };

static const char kernel[] = "extern \"C\" __global__ void k(const u16 *x, u32 *y)\n"
                             "{\n"
                             "    __shared__ HeadRow<16> pieces[2][64];\n"
                             "    const HeadPlace place = { 256, 256, 16, 0, 16 };\n"
                             "    const u32 lane = threadIdx.x % 32, warp = (threadIdx.x / 32 + 1) % 4;\n"
                             "    u32 odd = 0;\n"
                             "    Copies copies = {};\n"
                             "    rows_fetch<64>(&copies, pieces[0], x, &place, 0);\n"
                             "    copy_commit(&copies);\n"
                             "    for (i32 at = 0; at < 256; at += 64, odd ^= 1) {\n"
                             "        u32 word[4];\n"
                             "        rows_fetch<64>(&copies, pieces[odd ^ 1], x, &place, at + 64);\n"
                             "        copy_commit(&copies);\n"
                             "        copy_wait<1>(&copies);\n"
                             "        __syncthreads(); /* there */\n"
                             "        warp_load(word, &pieces[odd][16 * warp + lane % 16].part[lane / 16]);\n"
                             "        for (i32 i = 0; i < 4; i++)\n"
                             "            y[(at / 64 * 128 + threadIdx.x) * 4 + i] = word[i];\n"
                             "        __syncthreads(); /* read */\n"
                             "    }\n"
                             "}\n";

/* What stands there, and what might stand there instead. */
static const char *const mistakes[][2] = {
    { "        copy_wait<1>(&copies);\n", "" },
    { "copy_wait<1>", "copy_wait<2>" },
    { "        copy_commit(&copies);\n", "" },
    { "__syncthreads(); /* there */", "" },
    { "__syncthreads(); /* read */", "" },
    { "pieces[odd ^ 1]", "pieces[odd]" },
    { "&place, at + 64", "&place, at" },
    { "lane % 16].part[lane / 16]", "lane / 16 * 8 + lane % 8].part[lane / 8 % 2]" },
    { "warp_load(", "warp_load_turned(" },
};
static const char *const turned[] = { "warp_load(", "warp_load_turned(" };

static const char *text_of(Bench *b, const char *const *change)
{
    Text text;
    text_open(&text, &b->arena);
    cuda_prelude(&text);
    const char *at = change ? strstr(kernel, change[0]) : kernel;
    assert_non_null(at);
    text_bytes(&text, kernel, (size_t)(at - kernel));
    text_add(&text, change ? change[1] : "");
    text_add(&text, at + (change ? strlen(change[0]) : 0));
    return text_get(&text);
}

/* Number `half` of what a thread is to have of a square: the threads of a warp read what the next one copied. */
static unsigned wanted(const unsigned short *x, int piece, int thread, int square, int half, bool turns)
{
    const int warp = (thread / 32 + 1) % 4, group = thread % 32 / 4, pair = thread % 4 * 2 + half;
    const int row = warp * 16 + square % 2 * 8 + (turns ? pair : group),
              column = square / 2 * 8 + (turns ? group : pair);
    return x[(piece * ROWS + row) * SIZE + column];
}

/* Whether the kernel runs to its end and gives each thread its numbers. */
static bool loads(Bench *b, const char *const *change, bool turns)
{
    unsigned short x[ELEMENTS];
    unsigned y[PIECES * THREADS * WORDS];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (unsigned short)i;
    CudaLoaded *m = bench_module(b, text_of(b, change));
    CudaAddress dx = bench_alloc(b, sizeof x), dy = bench_alloc(b, sizeof y);
    bench_write(b, dx, x, sizeof x);
    bool right = bench_run(b, bench_kernel(b, m, "k"), 1, THREADS, (void *[]){ &dx, &dy }) == CUDA_OK;
    if (right)
        bench_read(b, y, dy, sizeof y);
    b->forget();
    for (int i = 0; right && i < PIECES * THREADS * WORDS; i++)
        for (int half = 0; half < 2; half++)
            right = right && (y[i] >> 16 * half & 0xffff) ==
                                 wanted(x, i / WORDS / THREADS, i / WORDS % THREADS, i % WORDS, half, turns);
    assert_int_equal(b->cu.give_back(dx) | b->cu.give_back(dy) | b->cu.unload(m), CUDA_OK);
    return right;
}

static void pieces_arrive(void **state)
{
    Bench b;
    (void)state;
    bench_open(&b);
    bench_that(loads(&b, NULL, false), "squares as they lie\n");
    bench_that(loads(&b, turned, true), "squares turned\n");
    bench_close(&b);
}

static void mistakes_show(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        Bench b;
        bench_open(&b);
        bench_that(!loads(&b, mistakes[i], false), "nobody sees %s instead of %s\n", mistakes[i][1], mistakes[i][0]);
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pieces_arrive), cmocka_unit_test(mistakes_show) };
    if (!bench_there())
        return 0;
    setenv("QCC_SIM_CHECKS", "on", 1); /* barriers that are missing show */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
