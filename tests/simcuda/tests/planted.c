/* Kernels and launches with one mistake each: the simulated device finds every one, and says which.  Kernels without any are in
 * clean.c. */
#include "simcuda/tests/bench.h"

/* What a launch is given instead of three buffers that are there. */
typedef enum Twist { NONE, FREED, OF_HOST, TWO_ARGUMENTS, UNLOADED } Twist;

typedef struct Bug {
    const char *name, *body; /* of k(float *x, float *y, int n), where x has n floats and y nothing yet */
    const char *says;        /* part of the report */
    int code;
    bool plain; /* it is found without a look at each access */
    unsigned blocks, threads, shared;
    Twist twist;
} Bug;

enum { FLOATS = 32, ILLEGAL = 700, MISALIGNED = 716, FAILED = 719, HANDLE = 400 };

#define T "const int t = threadIdx.x; "

static const Bug bugs[] = {
    { "reads behind", T "y[t] = x[t + 1];", "reads 4 bytes at 0 bytes behind the end of block", ILLEGAL },
    { "reads before", T "y[t] = x[t - 1];", "reads 4 bytes at 4 bytes before block", ILLEGAL },
    { "writes behind", T "y[t + 1] = x[t];", "0 bytes behind the end of block", ILLEGAL, true },
    { "writes before", T "y[t - 1] = x[t];", "bytes before block", ILLEGAL, true },
    { "reads far behind", T "y[t] = x[t + 64];", "behind the end of block", ILLEGAL, true },
    { "a vector over the end", T "if (t == 31) *(float4 *)(y + 32) = make_float4(0, 0, 0, 0);",
      "behind the end of block", ILLEGAL, true },
    { "half of it is there", T "if (t == 31) *(double *)((char *)y + 124) = 1;", "124", MISALIGNED },
    { "bytes behind", T "((unsigned char *)y)[t * 4 + 4] = 1;", "0 bytes behind the end of block", ILLEGAL, true },
    { "an atomic behind", T "atomicAdd(&y[n], 1.0f);", "0 bytes behind the end of block", ILLEGAL, true },
    { "null", T "float *p = (float *)(long)(*(volatile int *)&n - 32); p[t] = x[t];", "the null pointer", ILLEGAL,
      true },
    { "nowhere", T "float *p = (float *)0x123450; p[t] = x[t];", "no memory of a device", ILLEGAL, true },
    { "memory of the host", T "y[t] = *(float *)((char *)__builtin_frame_address(0) + (1 << 18));",
      "no memory of a device", ILLEGAL },
    { "a pointer of the host", T "y[t] = x[t];", "argument 0 points to 0x", ILLEGAL, true, .twist = OF_HOST },
    { "after it was freed", T "y[t] = x[t];", "which was freed", ILLEGAL, true, .twist = FREED },
    { "a vector off its place",
      T "typedef float four __attribute__((vector_size(16))); if (t < 4) *(four *)(y + 1 + 4 * t) = four{};",
      "multiples of 16", MISALIGNED },
    { "a double off its place", T "if (t == 0) *(double *)(y + 1) = 1;", "multiples of 8", MISALIGNED },
    { "a barrier that some miss", T "if (t < 16) __syncthreads(); y[t] = x[t];",
      "it waits at a barrier for thread 31, which has left", FAILED, true },
    { "two barriers", T "if (t < 16)\n    __syncthreads();\nelse\n    __syncthreads();\ny[t] = x[t];",
      "it waits at another barrier than thread 0", FAILED, true },
    { "leaves a loop with a barrier",
      T "for (int i = 0; i < 4; i++) { if (t == 7 && i == 2) return; __syncthreads(); } y[t] = x[t];",
      "for thread 7, which has left", FAILED, true },
    { "no barrier before others read",
      T "__shared__ float s[64]; s[t] = 0; __syncthreads(); s[t] = x[t % 32]; y[t % 32] = s[63 - t];",
      "no barrier stands between them", FAILED, .threads = 64 },
    { "no barrier in a warp", T "__shared__ float s[32]; s[t] = x[t]; __syncthreads(); s[t] += s[t ^ 1]; y[t] = s[t];",
      "no barrier stands between them", FAILED },
    { "no barrier before it is used anew",
      T "__shared__ float s[32]; s[t] = x[t]; __syncthreads(); float v = s[31 - t]; s[t] = v; y[t] = v;",
      "no barrier stands between them", FAILED },
    { "a barrier of the warp alone",
      T "__shared__ float s[64]; s[t] = x[t % 32]; __syncwarp(); if (t < 32) y[t] = s[63 - t];",
      "no barrier stands between them", FAILED, .threads = 64 },
    { "blocks write one element", T "if (t == 0) y[0] = x[blockIdx.x];", "as thread 0 of block 0 writes it", FAILED,
      .blocks = 2 },
    { "a block reads what another writes",
      T "if (t == 0) y[blockIdx.x] = 1; if (t == 1 && blockIdx.x == 1) x[1] = y[0];",
      "as thread 0 of block 0 writes it", FAILED, .blocks = 2 },
    { "threads add without an atomic", T "y[0] = x[t];", "writes byte 0 of a block", FAILED },
    { "an atomic and a store", T "if (t == 0) y[0] = 0; else atomicAdd(&y[0], 1.0f);", "thread 0 of block 0 writes it",
      FAILED },
    { "shared memory that nobody wrote",
      T "__shared__ float s[32]; if (t) s[t] = 1; __syncthreads(); y[t] = s[31 - t];",
      "of shared memory, which nobody wrote", FAILED },
    { "shared memory of the block before",
      T "__shared__ float s[32]; if (blockIdx.x == 0) s[t] = 1; __syncthreads(); if (blockIdx.x) y[t] = s[t];",
      "of shared memory, which nobody wrote", FAILED, .blocks = 2 },
    { "memory that nobody wrote", T "x[t] = y[t];", "of a block of 128 bytes, which nobody wrote", FAILED },
    { "outside of shared memory", T "__shared__ float s[32]; s[t + 1] = x[t]; __syncthreads(); y[t] = s[t + 1];",
      "an index outside of its array", FAILED },
    { "less shared memory than it takes",
      T "extern __shared__ float s[]; s[t] = x[t]; __syncthreads(); y[t] = s[31 - t];", "no memory of a device",
      ILLEGAL, .shared = 64 },
    { "a lane outside of its mask", T "y[t] = __shfl_sync(0xfffffffeu, x[t], 1);",
      "lane 0 is not in the mask 0xfffffffe", FAILED, true },
    { "a shuffle after lanes left", T "if (t >= 16) return; y[t] = __shfl_down_sync(0xffffffffu, x[t], 1);",
      "which has left the kernel", FAILED, true },
    { "a shuffle on one side of a branch",
      T
      "float v = x[t];\nif (t < 16)\n    v += __shfl_xor_sync(0xffffffffu, v, 1);\nelse\n    __syncthreads();\ny[t] = v;",
      "it waits with mask 0xffffffff for lane 16", FAILED, true },
    { "masks that differ", T "y[t] = __shfl_sync(t < 16 ? 0xffffffffu : 0xffff0000u, x[t], 16);",
      "it waits for lane 16, which has left", FAILED, true },
    { "lanes that there are not", T "y[t] = __shfl_down_sync(0xffffffffu, x[t], 1);", "which there is not", FAILED,
      true, .threads = 24 },
    { "a width of three", T "y[t] = __shfl_sync(0xffffffffu, x[t], 0, 3);", "no power of two", FAILED, true },
    { "a division by zero", T "y[t] = (float)(n / (n - 32));", "an integer is divided by zero", FAILED, true },
    { "a trap", T "if (t == 3) __builtin_trap(); y[t] = x[t];", "an instruction that there is not", FAILED, true },
    { "a stack that is full",
      "volatile char a[1 << 17]; for (int i = (1 << 17) - 1; i >= 0; i -= 1024) a[i] = 1; y[threadIdx.x] = a[n];",
      "its stack is full", FAILED, true },
    { "no blocks", "y[threadIdx.x] = 1;", "a grid without blocks", CUDA_INVALID, true, .blocks = 0x80000000u },
    { "too many blocks", "y[threadIdx.x] = 1;", "a grid that is too large", CUDA_INVALID, true, .blocks = 0x80000001u },
    { "more than 1024 threads", "y[threadIdx.x % 32] = 1;", "blocks of more than 1024 threads", CUDA_INVALID, true,
      .threads = 1025 },
    { "more threads than its bounds", "y[threadIdx.x % 32] = 1;", "more threads than its __launch_bounds__",
      CUDA_INVALID, true, .threads = 160 },
    { "too much shared memory", "y[threadIdx.x] = 1;", "more than 48 KiB of shared memory", CUDA_INVALID, true,
      .shared = 49153 },
    { "too few arguments", "y[threadIdx.x] = n;", "nothing lies where argument 2 of 3 should", CUDA_INVALID, true,
      .twist = TWO_ARGUMENTS },
    { "a module that was unloaded", "y[threadIdx.x] = 1;", "was destroyed", HANDLE, true, .twist = UNLOADED },
};

/* All of them in one text, each a kernel under its number. */
static CudaLoaded *module_of(Bench *b)
{
    Text text;
    text_open(&text, &b->arena);
    for (size_t i = 0; i < COUNT(bugs); i++)
        text_printf(&text,
                    "extern \"C\" __global__ void __launch_bounds__(128) k%zu(float *x, float *y, int n)\n{\n%s\n}\n",
                    i, bugs[i].body);
    return bench_module(b, text_get(&text));
}

/* Launches it; how that ends. */
static int launch(Bench *b, const Bug *bug, CudaFunction *f, CudaAddress x, CudaAddress y)
{
    static float on_host[FLOATS];
    int n = FLOATS;
    CudaAddress other = (uintptr_t)on_host;
    void *arguments[] = { bug->twist == OF_HOST ? &other : &x, &y, bug->twist == TWO_ARGUMENTS ? NULL : &n };
    const unsigned blocks = bug->blocks == 0x80000000u ? 0 : bug->blocks ? bug->blocks : 1;
    const unsigned rows = bug->blocks == 0x80000001u ? 65536 : 1;
    const int code = b->cu.launch(f, rows > 1 ? 1 : blocks, rows, 1, bug->threads ? bug->threads : FLOATS, 1, 1,
                                  bug->shared, b->stream, arguments, NULL);
    return code ? code : b->cu.wait(b->stream);
}

/* Whether the report of a bug says what it should; a word where it does not. */
static bool finds(Bench *b, CudaLoaded *all, const Bug *bug)
{
    float x[FLOATS];
    CudaLoaded *m = bug->twist == UNLOADED ? module_of(b) : all;
    CudaFunction *f = bench_kernel(b, m, arena_printf(&b->arena, "k%td", bug - bugs));
    CudaAddress dx = bench_alloc(b, sizeof x), dy = bench_alloc(b, sizeof x);
    for (int i = 0; i < FLOATS; i++)
        x[i] = (float)i;
    bench_write(b, dx, x, sizeof x);
    if (bug->twist == FREED)
        assert_int_equal(b->cu.give_back(dx), CUDA_OK);
    if (bug->twist == UNLOADED)
        assert_int_equal(b->cu.unload(m), CUDA_OK);
    const int code = launch(b, bug, f, dx, dy);
    const bool right = code == bug->code && strstr(b->report(), bug->says);
    if (!right)
        print_error("%s: error %d, \"%s\"\n    wanted %d, \"%s\"\n", bug->name, code, b->report(), bug->code,
                    bug->says);
    if (code >= ILLEGAL && b->cu.wait(b->stream) != code) { /* it stays */
        print_error("%s: the device goes on after it\n", bug->name);
        return false;
    }
    b->forget();
    assert_int_equal(bug->twist == FREED ? CUDA_OK : b->cu.give_back(dx), CUDA_OK);
    assert_int_equal(b->cu.give_back(dy), CUDA_OK);
    return right;
}

static void hunt(const char *checks, bool all)
{
    Bench b;
    int found = 0, missed = 0;
    setenv("QCC_SIM_CHECKS", checks, 1);
    bench_open(&b);
    CudaLoaded *m = module_of(&b);
    for (size_t i = 0; i < COUNT(bugs); i++) {
        if (!all && !bugs[i].plain)
            continue;
        if (finds(&b, m, &bugs[i]))
            found++;
        else
            missed++;
    }
    printf("%d bugs found, %d missed\n", found, missed);
    assert_int_equal(missed, 0);
    assert_true(found >= (all ? 40 : 20));
    assert_int_equal(b.cu.unload(m), CUDA_OK);
    bench_close(&b);
}

static void with_checks(void **state)
{
    (void)state;
    hunt("on", true);
}

static void without_checks(void **state)
{
    (void)state;
    hunt("off", false);
}

/* Kernels behind one that values refused read what it did not write, as long as nobody was told of it. */
static void behind_a_refusal(void **state)
{
    static const char text[] = "typedef unsigned u32;\n"
                               "extern \"C\" __global__ void pick(const int *at, float *y, u32 *refused)\n"
                               "{\n    if (*at) *refused = 1; else *y = 1;\n}\n"
                               "extern \"C\" __global__ void twice(const float *y, float *z) { *z = *y + *y; }\n";
    enum { REFUSES = 1, TOLD = 0 };
    const int at = REFUSES, none = TOLD;
    Bench b;
    (void)state;
    setenv("QCC_SIM_CHECKS", "on", 1);
    bench_open(&b);
    CudaLoaded *m = bench_module(&b, text);
    CudaFunction *pick = bench_kernel(&b, m, "pick"), *twice = bench_kernel(&b, m, "twice");
    CudaAddress where = bench_alloc(&b, 4), y = bench_alloc(&b, 4), z = bench_alloc(&b, 4),
                refused = bench_alloc(&b, 4);
    bench_write(&b, where, &at, sizeof at);
    bench_write(&b, refused, &none, sizeof none);
    assert_int_equal(bench_run(&b, pick, 1, 1, (void *[]){ &where, &y, &refused }), CUDA_OK);
    assert_int_equal(bench_run(&b, twice, 1, 1, (void *[]){ &y, &z }), CUDA_OK);
    bench_write(&b, refused, &none, sizeof none);
    assert_int_equal(bench_run(&b, twice, 1, 1, (void *[]){ &y, &z }), FAILED);
    assert_non_null(strstr(b.report(), "which nobody wrote"));
    b.forget();
    bench_write(&b, where, &none, sizeof none); /* a flag that is not set changes nothing */
    const CudaAddress fresh = bench_alloc(&b, 4);
    assert_int_equal(bench_run(&b, pick, 1, 1, (void *[]){ &where, &y, &refused }), CUDA_OK);
    assert_int_equal(bench_run(&b, twice, 1, 1, (void *[]){ &y, &z }), CUDA_OK);
    assert_int_equal(bench_run(&b, twice, 1, 1, (void *[]){ (void *)&fresh, &z }), FAILED);
    b.forget();
    assert_int_equal(b.cu.give_back(where) | b.cu.give_back(y) | b.cu.give_back(z) | b.cu.give_back(refused) |
                         b.cu.give_back(fresh) | b.cu.unload(m),
                     CUDA_OK);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(with_checks), cmocka_unit_test(without_checks),
                                        cmocka_unit_test(behind_a_refusal) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
