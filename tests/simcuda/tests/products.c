/* The simulated cuBLASLt through the table of the real one: products are what they ought to be, in stacks, turned, of every type, and
 * what a real library refuses, or computes nonsense from, is found. */
#include <stdlib.h>

#include "base/half.h"
#include "runtime/cuda/cublas.h"
#include "simcuda/tests/bench.h"

enum { M = 8, N = 12, K = 52, STACK = 2, ROOM = 1 << 16 };

/* d = a b of a stack, everything that a call takes. */
typedef struct Scene {
    Bench b;
    Cublas blas;
    CublasHandle *handle;
    CublasProduct *product;
    CublasMatrix *of_a, *of_b, *of_d;
    CublasWishes *wishes;
    CublasChoice choice;
    CudaAddress a, x, d, c, scratch; /* c 0: that of d */
    float alpha, beta;
} Scene;

typedef struct Types {
    int factor, result, compute, scale;
    int right;    /* the other factor's; 0: the same */
    int64_t d[3]; /* rows, columns and k; 0: M, N, K */
} Types;

static void scene_types(Scene *s, const Types *t, int turn_a, int turn_b)
{
    const int32_t stack = STACK;
    const int64_t m = t->d[0] ? t->d[0] : M, n = t->d[1] ? t->d[1] : N, k = t->d[2] ? t->d[2] : K;
    const int64_t steps[] = { m * k + 16, n * k + 32, (m + 4) * n };
    const uint64_t most = ROOM;
    const uint32_t splits = CUBLAS_SPLITS_IN_SCRATCH, at = 64;
    const Cublas *c = &s->blas;
    int code = c->product(&s->product, t->compute, t->scale) | c->set_product(s->product, CUBLAS_TURN_A, &turn_a, 4) |
               c->set_product(s->product, CUBLAS_TURN_B, &turn_b, 4) |
               c->matrix(&s->of_a, t->factor, (uint64_t)(turn_a ? k : m), (uint64_t)(turn_a ? m : k), turn_a ? k : m) |
               c->matrix(&s->of_b, t->right ? t->right : t->factor, (uint64_t)(turn_b ? n : k),
                         (uint64_t)(turn_b ? k : n), turn_b ? n : k) |
               c->matrix(&s->of_d, t->result, (uint64_t)m, (uint64_t)n, m + 4) | c->wishes(&s->wishes) |
               c->set_wishes(s->wishes, CUBLAS_MOST_SCRATCH, &most, sizeof most) |
               c->set_wishes(s->wishes, CUBLAS_SPLITS, &splits, sizeof splits);
    for (int i = 0; i < 4; i++)
        code |= c->set_wishes(s->wishes, CUBLAS_ALIGNMENT_A + i, &at, sizeof at);
    CublasMatrix *const matrices[] = { s->of_a, s->of_b, s->of_d };
    for (int i = 0; i < 3; i++)
        code |= c->set_matrix(matrices[i], CUBLAS_STACK, &stack, sizeof stack) |
                c->set_matrix(matrices[i], CUBLAS_STACK_STEP, &steps[i], sizeof steps[i]);
    assert_int_equal(code, CUBLAS_OK);
}

static void scene_open(Scene *s, const Types *t, int turn_a, int turn_b)
{
    *s = (Scene){ .alpha = 1 };
    bench_open(&s->b);
    assert_null(cublas_find(&s->blas, &s->b.arena));
    assert_string_equal(s->blas.library, "libcublasLt.so.13");
    assert_int_equal(s->blas.open(&s->handle), CUBLAS_OK);
    scene_types(s, t, turn_a, turn_b);
    s->a = bench_alloc(&s->b, ROOM);
    s->x = bench_alloc(&s->b, ROOM);
    s->d = bench_alloc(&s->b, ROOM);
    s->scratch = bench_alloc(&s->b, ROOM);
}

static void scene_close(Scene *s)
{
    const Cublas *c = &s->blas;
    s->b.forget();
    assert_int_equal(c->end_product(s->product) | c->end_matrix(s->of_a) | c->end_matrix(s->of_b) |
                         c->end_matrix(s->of_d) | c->end_wishes(s->wishes) | c->close(s->handle),
                     CUBLAS_OK);
    assert_int_equal(s->b.cu.give_back(s->a) | s->b.cu.give_back(s->x) | s->b.cu.give_back(s->d) |
                         s->b.cu.give_back(s->scratch),
                     CUDA_OK);
    bench_close(&s->b);
}

static int choose(Scene *s)
{
    int n = 0;
    const int code =
        s->blas.choose(s->handle, s->product, s->of_a, s->of_b, s->of_d, s->of_d, s->wishes, 1, &s->choice, &n);
    return code ? code : n == 1 ? s->choice.state : -1;
}

static void *memory(CudaAddress at)
{
    return (void *)(uintptr_t)at;
}

static int multiply(Scene *s)
{
    return s->blas.multiply(s->handle, s->product, &s->alpha, memory(s->a), s->of_a, memory(s->x), s->of_b, &s->beta,
                            memory(s->c ? s->c : s->d), s->of_d, memory(s->d), s->of_d, &s->choice.way,
                            memory(s->scratch), s->choice.scratch, s->b.stream);
}

/* ---- products ---- */

static const Types singles = { CUBLAS_F32, CUBLAS_F32, CUBLAS_EXACT_F32, CUBLAS_F32 };

/* Small whole numbers, whose sums are exact. */
static float number(int which, int stack, int row, int column)
{
    return (float)((which * 5 + stack * 3 + row * 7 + column * 11) % 9 - 4);
}

static void f32_products(void **state)
{
    static float a[ROOM / 4], x[ROOM / 4], d[ROOM / 4];
    (void)state;
    for (int turns = 0; turns < 4; turns++) {
        Scene s;
        const int ta = turns & 1, tb = turns >> 1;
        scene_open(&s, &singles, ta, tb);
        for (int i = 0; i < STACK; i++)
            for (int k = 0; k < K; k++) {
                for (int r = 0; r < M; r++)
                    a[i * (M * K + 16) + (ta ? k + r * K : r + k * M)] = number(1, i, r, k);
                for (int c = 0; c < N; c++)
                    x[i * (N * K + 32) + (tb ? c + k * N : k + c * K)] = number(2, i, k, c);
            }
        bench_write(&s.b, s.a, a, sizeof a);
        bench_write(&s.b, s.x, x, sizeof x);
        assert_int_equal(choose(&s), CUBLAS_OK);
        assert_true(s.choice.scratch > 0); /* a sum of so many has parts */
        assert_int_equal(multiply(&s), CUBLAS_OK);
        bench_read(&s.b, d, s.d, sizeof d);
        for (int i = 0; i < STACK; i++)
            for (int r = 0; r < M; r++)
                for (int c = 0; c < N; c++) {
                    float sum = 0;
                    for (int k = 0; k < K; k++)
                        sum += number(1, i, r, k) * number(2, i, k, c);
                    bench_that(d[i * (M + 4) * N + r + c * (M + 4)] == sum, "turns %d: [%d][%d,%d]\n", turns, i, r, c);
                }
        assert_string_equal(s.b.report(), "");
        scene_close(&s);
    }
}

/* ---- what becomes of them ---- */

/* A bias by row, something added, and what is below zero, each with and without the others: whole numbers, which are exact. */
static void describe_end(Scene *s, bool bias, bool relu, CudaAddress at)
{
    const uint32_t end = bias || relu ? (bias ? CUBLAS_END_BIAS : 0) | (relu ? CUBLAS_END_RELU : 0) : CUBLAS_END_NONE;
    const void *place = memory(at);
    const int32_t type = CUBLAS_F32;
    assert_int_equal(s->blas.set_product(s->product, CUBLAS_END, &end, sizeof end) |
                         s->blas.set_product(s->product, CUBLAS_BIAS, &place, sizeof place) |
                         s->blas.set_product(s->product, CUBLAS_BIAS_TYPE, &type, sizeof type),
                     CUBLAS_OK);
}

static float wanted(int stack, int r, int c, bool adds, bool bias, bool relu)
{
    float sum = (adds ? number(3, stack, r, c) : 0) + (bias ? number(4, 0, r, 0) : 0);
    for (int k = 0; k < K; k++)
        sum += number(1, stack, r, k) * number(2, stack, k, c);
    return relu && sum < 0 ? 0 : sum;
}

static void fill_scene(Scene *s, CudaAddress bias)
{
    static float a[ROOM / 4], x[ROOM / 4], c[ROOM / 4], b[M];
    for (int i = 0; i < STACK; i++)
        for (int k = 0; k < K; k++) {
            for (int r = 0; r < M; r++)
                a[i * (M * K + 16) + r + k * M] = number(1, i, r, k);
            for (int j = 0; j < N; j++)
                x[i * (N * K + 32) + k + j * K] = number(2, i, k, j);
        }
    for (int i = 0; i < STACK; i++)
        for (int r = 0; r < M; r++)
            for (int j = 0; j < N; j++)
                c[i * (M + 4) * N + r + j * (M + 4)] = number(3, i, r, j);
    for (int r = 0; r < M; r++)
        b[r] = number(4, 0, r, 0);
    bench_write(&s->b, s->a, a, sizeof a);
    bench_write(&s->b, s->x, x, sizeof x);
    bench_write(&s->b, s->c, c, sizeof c);
    bench_write(&s->b, bias, b, sizeof b);
}

static void ends(void **state)
{
    static float d[ROOM / 4];
    (void)state;
    for (int how = 0; how < 8; how++) {
        Scene s;
        const bool adds = how & 1, bias = how & 2, relu = how & 4;
        scene_open(&s, &singles, 0, 0);
        const CudaAddress c = s.c = bench_alloc(&s.b, ROOM), at = bench_alloc(&s.b, ROOM);
        fill_scene(&s, at);
        describe_end(&s, bias, relu, at);
        s.beta = adds;
        assert_int_equal(choose(&s), CUBLAS_OK);
        assert_int_equal(multiply(&s), CUBLAS_OK);
        bench_read(&s.b, d, s.d, sizeof d);
        for (int i = 0; i < STACK; i++)
            for (int r = 0; r < M; r++)
                for (int j = 0; j < N; j++)
                    bench_that(d[i * (M + 4) * N + r + j * (M + 4)] == wanted(i, r, j, adds, bias, relu),
                               "end %d: [%d][%d,%d]\n", how, i, r, j);
        assert_string_equal(s.b.report(), "");
        assert_int_equal(s.b.cu.give_back(c) | s.b.cu.give_back(at), CUDA_OK);
        scene_close(&s);
    }
}

/* What is no number stays none, but where a library is that loses it. */
static void what_is_no_number(void **state)
{
    static unsigned char nan[ROOM];
    float d[1];
    (void)state;
    memset(nan, 0xff, sizeof nan);
    for (int loses = 0; loses < 2; loses++) {
        Scene s;
        scene_open(&s, &singles, 0, 0);
        assert_int_equal(setenv("QCC_SIM_RELU", loses ? "zero" : "", 1), 0);
        describe_end(&s, false, true, 0);
        bench_write(&s.b, s.a, nan, sizeof nan);
        bench_write(&s.b, s.x, nan, sizeof nan);
        assert_int_equal(choose(&s), CUBLAS_OK);
        assert_int_equal(multiply(&s), CUBLAS_OK);
        bench_read(&s.b, d, s.d, sizeof d);
        assert_true(loses ? d[0] == 0 : d[0] != d[0]);
        scene_close(&s);
    }
    assert_int_equal(unsetenv("QCC_SIM_RELU"), 0);
}

/* ---- what is refused ---- */

/* Does something wrong; what the library then answers to a choice, or to the product. */
typedef struct Wrong {
    void (*spoil)(Scene *s, bool chosen);
    int chooses, multiplies;
    const char *said;
} Wrong;

static void another_line(Scene *s, bool chosen)
{
    if (!chosen) {
        assert_int_equal(s->blas.end_matrix(s->of_a), CUBLAS_OK);
        assert_int_equal(s->blas.matrix(&s->of_a, CUBLAS_F32, M, K, M - 1), CUBLAS_OK);
    }
}

static void another_type(Scene *s, bool chosen)
{
    if (!chosen) {
        assert_int_equal(s->blas.end_matrix(s->of_a), CUBLAS_OK);
        assert_int_equal(s->blas.matrix(&s->of_a, CUBLAS_BF16, M, K, M), CUBLAS_OK);
        another_line(s, true);
    }
}

static void another_shape(Scene *s, bool chosen)
{
    const int32_t turned = CUBLAS_TURNED;
    if (!chosen)
        assert_int_equal(s->blas.set_product(s->product, CUBLAS_TURN_B, &turned, sizeof turned), CUBLAS_OK);
}

static void no_such_attribute(Scene *s, bool chosen)
{
    const int32_t one = 1;
    if (!chosen)
        assert_int_equal(s->blas.set_product(s->product, 1000, &one, sizeof one), CUBLAS_INVALID);
}

static void attribute_of_another_size(Scene *s, bool chosen)
{
    const int64_t one = 1;
    if (!chosen)
        assert_int_equal(s->blas.set_product(s->product, CUBLAS_TURN_A, &one, sizeof one), CUBLAS_INVALID);
}

static void results_over_each_other(Scene *s, bool chosen)
{
    const int64_t step = M;
    if (!chosen)
        assert_int_equal(s->blas.set_matrix(s->of_d, CUBLAS_STACK_STEP, &step, sizeof step), CUBLAS_OK);
}

static void any_order_of_sums(Scene *s, bool chosen)
{
    const uint32_t any = 7;
    if (!chosen)
        assert_int_equal(s->blas.set_wishes(s->wishes, CUBLAS_SPLITS, &any, sizeof any), CUBLAS_OK);
}

static void crooked_scratch(Scene *s, bool chosen)
{
    s->scratch += chosen ? 64 : 0;
}

static void small_scratch(Scene *s, bool chosen)
{
    s->choice.scratch -= chosen ? 1 : 0;
}

static void crooked_operand(Scene *s, bool chosen)
{
    s->a += chosen ? 4 : 0;
}

static void another_way(Scene *s, bool chosen)
{
    const int64_t step = M * K;
    if (chosen)
        assert_int_equal(s->blas.set_matrix(s->of_a, CUBLAS_STACK_STEP, &step, sizeof step), CUBLAS_OK);
}

static void adds_half(Scene *s, bool chosen)
{
    s->beta = chosen ? 0.5f : 0;
}

static void adds_what_lies_over_it(Scene *s, bool chosen)
{
    s->beta = chosen ? 1 : 0;
    s->c = chosen ? s->d + 256 : 0;
}

static void set_end(Scene *s, uint32_t end)
{
    assert_int_equal(s->blas.set_product(s->product, CUBLAS_END, &end, sizeof end), CUBLAS_OK);
}

static void unknown_end(Scene *s, bool chosen)
{
    if (!chosen)
        set_end(s, 32);
}

static void bias_nowhere(Scene *s, bool chosen)
{
    if (!chosen)
        set_end(s, CUBLAS_END_BIAS);
}

static void another_end(Scene *s, bool chosen)
{
    if (chosen)
        set_end(s, CUBLAS_END_RELU);
}

static const Wrong wrongs[] = {
    { another_line, CUBLAS_INVALID, CUBLAS_INVALID, "lie closer than they are long" },
    { another_type, CUBLAS_INVALID, CUBLAS_INVALID, "stacks of matrices that do not go together" },
    { another_shape, CUBLAS_INVALID, CUBLAS_INVALID, "the matrices do not fit together" },
    { no_such_attribute, CUBLAS_OK, CUBLAS_OK, "attribute 1000, which" },
    { attribute_of_another_size, CUBLAS_OK, CUBLAS_OK, "attribute 3 is of 4 bytes, not 8" },
    { results_over_each_other, CUBLAS_INVALID, CUBLAS_INVALID, "results of a stack lie over each other" },
    { any_order_of_sums, CUBLAS_INVALID, CUBLAS_INVALID, "sums may be joined in any order" },
    { crooked_scratch, CUBLAS_OK, CUBLAS_INVALID, "lies at no multiple of 256" },
    { small_scratch, CUBLAS_OK, CUBLAS_INVALID, "a scratch that is too small" },
    { crooked_operand, CUBLAS_OK, CUBLAS_INVALID, "at no multiple of what was promised" },
    { another_way, CUBLAS_OK, CUBLAS_INVALID, "a way that is of another product" },
    { adds_half, CUBLAS_OK, CUBLAS_INVALID, "factors other than 1 and 0" },
    { adds_what_lies_over_it, CUBLAS_OK, CUBLAS_INVALID, "what is added lies over what is made" },
    { unknown_end, CUBLAS_INVALID, CUBLAS_INVALID, "an end that the simulated library does not know" },
    { bias_nowhere, CUBLAS_INVALID, CUBLAS_INVALID, "a bias that lies nowhere" },
    { another_end, CUBLAS_OK, CUBLAS_INVALID, "a way that is of another product" },
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(wrongs); i++) {
        Scene s;
        scene_open(&s, &singles, 0, 0);
        const CudaAddress a = s.a, scratch = s.scratch;
        wrongs[i].spoil(&s, false);
        const int chooses = choose(&s);
        if (chooses == CUBLAS_OK)
            wrongs[i].spoil(&s, true);
        const int multiplies = chooses ? chooses : multiply(&s);
        bench_that(chooses == wrongs[i].chooses && multiplies == wrongs[i].multiplies, "%zu: %d, %d\n", i, chooses,
                   multiplies);
        bench_that(strstr(s.b.report(), wrongs[i].said) != NULL, "%zu: \"%s\"\n", i, s.b.report());
        s.a = a;
        s.scratch = scratch;
        scene_close(&s);
    }
}

/* What the library makes no way for, and says so: codes that are no multiples of four, or lie the other way, or of which something
 * becomes; a bias of another type. */
static void what_it_does_not_take(void **state)
{
    static const Types halves = { CUBLAS_BF16, CUBLAS_BF16, CUBLAS_SUMS_F32, CUBLAS_F32 };
    static const Types codes = { CUBLAS_I8, CUBLAS_I32, CUBLAS_SUMS_I32, CUBLAS_I32 };
    Scene s;
    (void)state;
    scene_open(&s, &codes, CUBLAS_TURNED, CUBLAS_AS_IT_LIES);
    assert_int_equal(choose(&s), CUBLAS_OK);
    scene_close(&s);
    scene_open(&s, &codes, CUBLAS_AS_IT_LIES, CUBLAS_AS_IT_LIES);
    assert_int_equal(choose(&s), CUBLAS_NOT_SUPPORTED);
    assert_string_equal(s.b.report(), "");
    scene_close(&s);
    scene_open(&s, &codes, CUBLAS_TURNED, CUBLAS_AS_IT_LIES);
    describe_end(&s, false, true, 0);
    assert_int_equal(choose(&s), CUBLAS_NOT_SUPPORTED);
    scene_close(&s);
    scene_open(&s, &halves, CUBLAS_AS_IT_LIES, CUBLAS_AS_IT_LIES);
    describe_end(&s, true, false, s.x);
    assert_int_equal(choose(&s), CUBLAS_NOT_SUPPORTED); /* a bias of f32 beside results of 16 bits */
    scene_close(&s);
}

/* ---- floats of eight bits ---- */

/* Codes of both kinds along k, whose numbers are halves and whole ones. */
static void f8_products(void **state)
{
    static const Types floats = {
        CUBLAS_F8E4M3, CUBLAS_F32, CUBLAS_SUMS_F32, CUBLAS_F32, CUBLAS_F8E5M2, { 16, 32, 64 }
    };
    static unsigned char a[ROOM], x[ROOM];
    static float d[ROOM / 4];
    const int64_t m = floats.d[0], n = floats.d[1], k = floats.d[2];
    Scene s;
    (void)state;
    scene_open(&s, &floats, CUBLAS_TURNED, CUBLAS_AS_IT_LIES);
    for (int i = 0; i < STACK; i++)
        for (int64_t t = 0; t < k; t++) {
            for (int64_t r = 0; r < m; r++)
                a[i * (m * k + 16) + t + r * k] = f8e4m3fn_from_f32(number(1, i, (int)r, (int)t) / 2, true);
            for (int64_t c = 0; c < n; c++)
                x[i * (n * k + 32) + t + c * k] = f8e5m2_from_f32(number(2, i, (int)t, (int)c), true);
        }
    bench_write(&s.b, s.a, a, sizeof a);
    bench_write(&s.b, s.x, x, sizeof x);
    assert_int_equal(choose(&s), CUBLAS_OK);
    assert_int_equal(multiply(&s), CUBLAS_OK);
    bench_read(&s.b, d, s.d, sizeof d);
    for (int i = 0; i < STACK; i++)
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < n; c++) {
                float sum = 0;
                for (int64_t t = 0; t < k; t++)
                    sum += number(1, i, (int)r, (int)t) * number(2, i, (int)t, (int)c) / 2;
                bench_that(d[i * (m + 4) * n + r + c * (m + 4)] == sum, "[%d][%d,%d]\n", i, (int)r, (int)c);
            }
    assert_string_equal(s.b.report(), "");
    scene_close(&s);
}

/* What it makes no way for: a side that is no multiple of sixteen, another order, a device before sm_89, a bias in f32, places that
 * are not said to lie at sixteen bytes; and two factors of e5m2 are nothing that goes together. */
static void f8_that_it_does_not_take(void **state)
{
    static const Types good = { CUBLAS_F8E4M3, CUBLAS_F32, CUBLAS_SUMS_F32, CUBLAS_F32, 0, { 16, 32, 64 } };
    (void)state;
    for (int how = 0; how < 9; how++) {
        Types t = good;
        Scene s;
        const uint32_t eight = 8;
        if (how >= 1 && how <= 3)
            t.d[how - 1] -= 8;
        if (how == 4)
            t.factor = CUBLAS_F8E5M2;
        assert_int_equal(setenv("QCC_SIM_CAPABILITY", how == 5 ? "80" : "90", 1), 0);
        scene_open(&s, &t, how == 6 ? CUBLAS_AS_IT_LIES : CUBLAS_TURNED, CUBLAS_AS_IT_LIES);
        if (how == 7)
            describe_end(&s, true, false, s.x);
        if (how == 8)
            assert_int_equal(s.blas.set_wishes(s.wishes, CUBLAS_ALIGNMENT_A + 1, &eight, sizeof eight), CUBLAS_OK);
        const int wanted = how == 0 ? CUBLAS_OK : how == 4 ? CUBLAS_INVALID : CUBLAS_NOT_SUPPORTED, got = choose(&s);
        bench_that(got == wanted, "case %d: %d, not %d\n", how, got, wanted);
        scene_close(&s);
    }
    assert_int_equal(unsetenv("QCC_SIM_CAPABILITY"), 0);
}

/* Work of a library is late, belongs to a stream, and is captured as kernels are. */
static void is_captured(void **state)
{
    static float ones[ROOM / 4], d[ROOM / 4];
    CudaGraph *graph;
    CudaGraphExec *made;
    Scene s;
    (void)state;
    scene_open(&s, &singles, 0, 0);
    for (size_t i = 0; i < COUNT(ones); i++)
        ones[i] = 1;
    bench_write(&s.b, s.a, ones, sizeof ones);
    bench_write(&s.b, s.x, ones, sizeof ones);
    assert_int_equal(choose(&s), CUBLAS_OK);
    assert_int_equal(s.b.cu.capture(s.b.stream, CUDA_CAPTURE_THREAD), CUDA_OK);
    assert_int_equal(multiply(&s), CUBLAS_OK);
    assert_int_equal(s.b.cu.end_capture(s.b.stream, &graph) | s.b.cu.instantiate(&made, graph, 0), CUDA_OK);
    assert_int_equal(s.b.cu.wait(s.b.stream), CUDA_OK);
    assert_int_equal(bench_counts(&s.b).works, 0);
    assert_int_equal(s.b.cu.launch_graph(made, s.b.stream) | s.b.cu.launch_graph(made, s.b.stream), CUDA_OK);
    bench_read(&s.b, d, s.d, sizeof d);
    assert_int_equal(bench_counts(&s.b).works, 2);
    assert_true(d[0] == K);
    assert_int_equal(s.b.cu.end_made(made) | s.b.cu.end_graph(graph), CUDA_OK);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(is_captured), cmocka_unit_test(f32_products),
                                        cmocka_unit_test(ends),        cmocka_unit_test(what_is_no_number),
                                        cmocka_unit_test(refusals),    cmocka_unit_test(what_it_does_not_take),
                                        cmocka_unit_test(f8_products), cmocka_unit_test(f8_that_it_does_not_take) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
