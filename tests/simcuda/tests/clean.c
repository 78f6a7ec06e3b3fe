/* Kernels without a mistake: nothing is said of them, whatever the order of threads, and what they give does not depend on it. */
#include "simcuda/tests/bench.h"

typedef struct Clean {
    const char *name, *body; /* of k(const float *x, float *y, unsigned *z, int n); z holds zeros, y nothing yet */
    float first, last;       /* of y, which has n of them */
    unsigned blocks, threads, shared;
} Clean;

enum { FLOATS = 128 };

#define T "const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; "

static const Clean cleans[] = {
    { "each for itself", T "y[i] = 2 * x[i];", 0, 254, 4, 32 },
    { "some have nothing to do", T "if (i >= n) return; y[i] = x[i];", 0, 127, 3, 64 },
    { "a sum through shared memory",
      T "__shared__ float s[128];\ns[t] = x[t];\n__syncthreads();\nfor (int by = 64; by; by /= 2) {\n"
        "    if (t < by) s[t] += s[t + by];\n    __syncthreads();\n}\ny[t] = s[0];",
      8128, 8128, 1, 128 },
    { "shared memory used anew",
      T "__shared__ float s[128];\ns[t] = x[t];\n__syncthreads();\nfloat v = s[127 - t];\n__syncthreads();\ns[t] = v;\n"
        "__syncthreads();\ny[t] = s[127 - t];",
      0, 127, 1, 128 },
    { "sums of warps",
      T "float v = x[t];\nfor (int by = 16; by; by /= 2) v += __shfl_down_sync(0xffffffffu, v, by);\n"
        "y[t] = __shfl_sync(0xffffffffu, v, 0);",
      496, 3568, 1, 128 },
    { "half a warp alone", T "float v = x[t];\nif (t % 32 < 16) v = __shfl_xor_sync(0x0000ffffu, v, 1, 16);\ny[t] = v;",
      1, 127, 1, 128 },
    { "through shared memory of a warp",
      T "__shared__ float s[128];\ns[t] = x[t];\n__syncwarp();\nconst float v = s[t ^ 31];\n__syncwarp();\ns[t] = v;\n"
        "y[t] = s[t];",
      31, 96, 1, 128 },
    { "atomics", T "atomicAdd(&z[0], 1u);\natomicMax(&z[1], (unsigned)i);\n__threadfence();\ny[i] = x[i];", 0, 127, 2,
      64 },
    { "dynamic shared memory", T "extern __shared__ float s[];\ns[t] = x[t];\n__syncthreads();\ny[t] = s[127 - t];",
      127, 0, 1, 128, 512 },
    { "vectors", T "float4 v = ((const float4 *)x)[t];\nv.x += 1;\nv.w += 1;\n((float4 *)y)[t] = v;", 1, 128, 1, 32 },
    { "bytes side by side", T "unsigned char *b = (unsigned char *)z;\nb[i] = (unsigned char)i;\ny[i] = b[i];", 0, 127,
      1, 128 },
    { "votes",
      T "y[t] = (float)(__popc(__ballot_sync(0xffffffffu, t % 2)) + __syncthreads_count(t < 5) +\n"
        "    (__any_sync(0xffffffffu, t == 127) ? 100 : 0) + __syncthreads_or(t == 3));",
      22, 122, 1, 128 },
    { "a table", T "static const float table[4] = { 1, 2, 3, 4 };\ny[t] = table[t % 4];", 1, 4, 1, 128 },
    { "two axes", "const int i = (blockIdx.y * blockDim.y + threadIdx.y) * 8 + threadIdx.x;\ny[i] = x[i];", 0, 127, 1,
      64 },
    { "a block for each", T "if (t == 0) y[blockIdx.x] = x[blockIdx.x];", 0, 127, 128, 32 },
    { "a thousand threads", T "if (t % 8 == 0) y[t / 8] = x[t / 8];", 0, 127, 1, 1024 },
    { "doubles", T "double *d = (double *)z;\nd[t] = x[t];\n__syncthreads();\ny[t] = (float)d[127 - t];", 127, 0, 1,
      128 },
    { "calls", T "float (*f)(float) = t % 2 ? sinf : cosf;\ny[t] = 0 * f(x[t]) + fmaxf(x[t], 3.0f);", 3, 127, 1, 128 },
};

static CudaLoaded *module_of(Bench *b)
{
    Text text;
    text_open(&text, &b->arena);
    for (size_t i = 0; i < COUNT(cleans); i++)
        text_printf(&text,
                    "// __shared__ in a comment\nextern \"C\" __global__ void k%zu(const float *x, float *y,\n"
                    "    unsigned *z, int n)\n{\n%s\n}\n",
                    i, cleans[i].body);
    return bench_module(b, text_get(&text));
}

static void run(Bench *b, CudaLoaded *m, const Clean *c, const char *order)
{
    float x[FLOATS], y[FLOATS];
    int n = FLOATS;
    CudaFunction *f = bench_kernel(b, m, arena_printf(&b->arena, "k%td", c - cleans));
    CudaAddress dx = bench_alloc(b, sizeof x), dy = bench_alloc(b, sizeof y), dz = bench_alloc(b, 2 * sizeof x);
    const unsigned rows = strcmp(c->name, "two axes") == 0 ? 2 : 1;
    for (int i = 0; i < n; i++)
        x[i] = (float)i;
    bench_write(b, dx, x, sizeof x);
    assert_int_equal(b->cu.set(dz, 0, 2 * sizeof x, b->stream), CUDA_OK);
    assert_int_equal(b->cu.launch(f, c->blocks, rows, 1, rows > 1 ? 8 : c->threads, rows > 1 ? 8 : 1, 1, c->shared,
                                  b->stream, (void *[]){ &dx, &dy, &dz, &n }, NULL),
                     CUDA_OK);
    const int code = b->cu.wait(b->stream);
    bench_that(code == CUDA_OK, "%s, %s: error %d, %s\n", c->name, order, code, b->report());
    bench_read(b, y, dy, sizeof y);
    bench_that(y[0] == c->first && y[n - 1] == c->last, "%s, %s: %g and %g, not %g and %g\n", c->name, order, y[0],
               y[n - 1], c->first, c->last);
    assert_int_equal(b->cu.give_back(dx) | b->cu.give_back(dy) | b->cu.give_back(dz), CUDA_OK);
}

static void in_all_orders(const char *checks)
{
    static const char *const orders[] = { "ascending", "descending", "random:1", "random:2", "random:3" };
    Bench b;
    setenv("QCC_SIM_CHECKS", checks, 1);
    bench_open(&b);
    CudaLoaded *m = module_of(&b);
    for (size_t o = 0; o < COUNT(orders); o++) {
        setenv("QCC_SIM_ORDER", orders[o], 1);
        for (size_t i = 0; i < COUNT(cleans); i++)
            run(&b, m, &cleans[i], orders[o]);
    }
    unsetenv("QCC_SIM_ORDER");
    assert_int_equal(bench_counts(&b).reports, 0);
    assert_int_equal(b.cu.unload(m), CUDA_OK);
    bench_close(&b);
}

static void with_checks(void **state)
{
    (void)state;
    in_all_orders("on");
}

static void without_checks(void **state)
{
    (void)state;
    in_all_orders("off");
}

/* What one thread leaves for another without a barrier shows as another result, even where no access is looked at. */
static void orders_differ(void **state)
{
    static const char race[] = "extern \"C\" __global__ void k(float *y) { y[0] = (float)threadIdx.x; }\n";
    static const char *const orders[] = { "ascending", "descending" };
    Bench b;
    float last[2];
    (void)state;
    setenv("QCC_SIM_CHECKS", "off", 1);
    bench_open(&b);
    CudaLoaded *m = bench_module(&b, race);
    CudaAddress y = bench_alloc(&b, sizeof *last);
    for (int o = 0; o < 2; o++) {
        setenv("QCC_SIM_ORDER", orders[o], 1);
        assert_int_equal(bench_run(&b, bench_kernel(&b, m, "k"), 1, 64, (void *[]){ &y }), CUDA_OK);
        bench_read(&b, &last[o], y, sizeof *last);
    }
    unsetenv("QCC_SIM_ORDER");
    assert_true(last[0] == 63 && last[1] == 0);
    assert_int_equal(b.cu.give_back(y) | b.cu.unload(m), CUDA_OK);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(with_checks), cmocka_unit_test(without_checks),
                                        cmocka_unit_test(orders_differ) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
