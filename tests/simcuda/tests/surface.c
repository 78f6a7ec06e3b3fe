/* The simulated driver through the table of the real one: kernels give what they should, and calls answer as they do. */
#include "simcuda/tests/bench.h"

static const char text[] = "extern \"C\" __global__ void __launch_bounds__(128)\n"
                           "add(const float *x, const float *y, float *z, int n)\n"
                           "{\n"
                           "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                           "    if (i < n)\n"
                           "        z[i] = x[i] + y[i];\n"
                           "}\n"
                           "extern \"C\" __global__ void __launch_bounds__(128)\n"
                           "sum(const float *x, float *z)\n"
                           "{\n"
                           "    __shared__ float part[4];\n"
                           "    extern __shared__ float all[];\n"
                           "    float v = x[blockIdx.x * 128 + threadIdx.x];\n"
                           "    for (int by = 16; by; by /= 2)\n"
                           "        v += __shfl_down_sync(0xffffffffu, v, by);\n"
                           "    if (threadIdx.x % 32 == 0)\n"
                           "        part[threadIdx.x / 32] = v;\n"
                           "    all[threadIdx.x] = 1;\n"
                           "    __syncthreads();\n"
                           "    if (threadIdx.x == 0)\n"
                           "        z[blockIdx.x] = part[0] + part[1] + part[2] + part[3] + all[127] - 1;\n"
                           "}\n";

enum { N = 1000 };

static void adds(void **state)
{
    Bench b;
    float x[N], y[N], z[N];
    int n = N;
    (void)state;
    bench_open(&b);
    CudaLoaded *m = bench_module(&b, text);
    CudaFunction *add = bench_kernel(&b, m, "add");
    CudaAddress dx = bench_alloc(&b, sizeof x), dy = bench_alloc(&b, sizeof y), dz = bench_alloc(&b, sizeof z);
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = (float)(2 * i);
    }
    bench_write(&b, dx, x, sizeof x);
    bench_write(&b, dy, y, sizeof y);
    assert_int_equal(bench_run(&b, add, 8, 128, (void *[]){ &dx, &dy, &dz, &n }), CUDA_OK);
    bench_read(&b, z, dz, sizeof z);
    for (int i = 0; i < N; i++)
        assert_true(z[i] == (float)(3 * i));
    assert_int_equal(b.cu.give_back(dx) | b.cu.give_back(dy) | b.cu.give_back(dz) | b.cu.unload(m), CUDA_OK);
    assert_string_equal(b.report(), "");
    bench_close(&b);
}

static void sums(void **state)
{
    static const char *const orders[] = { "ascending", "descending", "random:1", "random:2" };
    Bench b;
    float x[512], z[4];
    (void)state;
    bench_open(&b);
    CudaLoaded *m = bench_module(&b, text);
    CudaFunction *sum = bench_kernel(&b, m, "sum");
    CudaAddress dx = bench_alloc(&b, sizeof x), dz = bench_alloc(&b, sizeof z);
    for (int i = 0; i < 512; i++)
        x[i] = (float)(i / 128 + 1);
    bench_write(&b, dx, x, sizeof x);
    for (size_t o = 0; o < COUNT(orders); o++) {
        setenv("QCC_SIM_ORDER", orders[o], 1);
        assert_int_equal(
            b.cu.launch(sum, 4, 1, 1, 128, 1, 1, 128 * sizeof(float), b.stream, (void *[]){ &dx, &dz }, NULL), CUDA_OK);
        bench_read(&b, z, dz, sizeof z);
        for (int i = 0; i < 4; i++)
            assert_true(z[i] == (float)(128 * (i + 1)));
        assert_int_equal(b.cu.set(dz, 0, sizeof z, b.stream), CUDA_OK);
    }
    unsetenv("QCC_SIM_ORDER");
    assert_int_equal(b.cu.give_back(dx) | b.cu.give_back(dz) | b.cu.unload(m), CUDA_OK);
    assert_string_equal(b.report(), "");
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(adds), cmocka_unit_test(sums) };
    if (!bench_there())
        return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
