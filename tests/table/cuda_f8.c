/* label: slow */
/* Products of floats of eight bits, run on this machine thread by thread: by plain kernels, and by those for tensor cores, which here add
 * up as the evaluator does, so that each product is seen to be in its sum, and where segments end; and mistakes show. */
#include "codegen/cuda/cuda_call.h"
#include "ops/contract/contract.h"
#include "support/calls.h"
#include "support/cuda_host.h"
#include "support/seed.h"

/* Any codes that are finite numbers, of all sizes. */
static Node *draw_codes(Build *b, Rng *rng, DType type, int rank, const int64_t *dims)
{
    Node *x = draw(b, rng, type, rank, dims);
    const Tensor *t = constant(x);
    unsigned char *bytes = t->data;
    const unsigned most = type == F8E4M3 ? 0x7e : 0x7b;
    for (int64_t i = 0; i < tensor_elements(t); i++)
        bytes[i] = (unsigned char)(rng_below(rng, most + 1) | rng_below(rng, 2) << 7);
    return x;
}

/* Of stacks, rows, columns and k. */
static Node *product(Context *c, Rng *rng, const int64_t *n, const DType *types, MatmulAttr at)
{
    Build b = fresh(c);
    at.out = F32 + 1;
    Node *x =
        draw_codes(&b, rng, types[0], 3, at.ta ? (int64_t[]){ n[0], n[3], n[1] } : (int64_t[]){ n[0], n[1], n[3] });
    Node *y =
        draw_codes(&b, rng, types[1], 3, at.tb ? (int64_t[]){ n[0], n[2], n[3] } : (int64_t[]){ n[0], n[3], n[2] });
    return build_node(&b, OP_matmul, &at, 2, (Node *[]){ x, y });
}

static void add(Context *c, CudaHost *h, const Node *call, const char *kernel)
{
    assert_true(cuda_host_add_call(h, call, cuda_host_operands(c, call), value_of(c, (Node *)call, NULL)));
    const char *name = h->jobs[h->n - 1].launch.kernels[0].name;
    require(strstr(name, kernel) != NULL, "%s is no %s\n", name, kernel);
}

/* Sides that end within a tile and within a copy, one segment and several, read either way: by sixteens along k, by squares across it,
 * and code by code; and tiles of 128 of many matrices. */
static const int64_t sizes[][4] = { { 1, 70, 65, 33 }, { 1, 16, 12, 2112 }, { 2, 9, 20, 17 }, { 1, 72, 40, 80 } };
static const DType kinds[][2] = { { F8E4M3, F8E4M3 }, { F8E4M3, F8E5M2 }, { F8E5M2, F8E4M3 }, { F8E5M2, F8E5M2 } };

static Status run_products(void *context)
{
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "floats");
    h.runs_long = true;
    for (size_t i = 0; i < 4 * COUNT(sizes); i++) {
        Rng rng = { seed_of("floats", i) };
        const int64_t *n = sizes[i / 4];
        const MatmulAttr at = { .ta = i % 2, .tb = i / 2 % 2 };
        const Node *call = product(c, &rng, n, kinds[(i + i / 4) % COUNT(kinds)], at);
        h.target = (KernelTarget){ .narrow_codes = true };
        add(c, &h, call, "_mma");
        h.target = (KernelTarget){ .narrow = true };
        if (i % 4 == i / 4)
            add(c, &h, call, "_tile");
    }
    Rng rng = { seed_of("many", 0) };
    h.target = (KernelTarget){ .narrow_codes = true };
    add(c, &h, product(c, &rng, (int64_t[]){ 128, 68, 72, 16 }, kinds[0], (MatmulAttr){ .tb = true }), "_mma");
    add(c, &h, product(c, &rng, (int64_t[]){ 1, 3, 20, 70 }, kinds[1], (MatmulAttr){ .tb = true }), "_chain");
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

static void products(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_products);
}

/* Results that are rounded have the bits of the evaluator, which no tensor core promises. */
static Status run_rounded(void *context)
{
    Context *c = context;
    Rng rng = { seed_of("rounded", 0) };
    const int64_t side[] = { 16, 16 };
    const KernelTarget target = { .narrow = true, .narrow_codes = true };
    CudaLaunch launch;
    Text text;
    Build b = fresh(c);
    Node *x = draw_codes(&b, &rng, F8E4M3, 2, side), *y = draw_codes(&b, &rng, F8E4M3, 2, side);
    text_open(&text, &c->arena);
    assert_null(
        cuda_print_call(&text, &target, build_node(&b, OP_matmul, NULL, 2, (Node *[]){ x, y }), "k", false, &launch));
    assert_non_null(strstr(launch.kernels[0].name, "_tile"));
    return OK;
}

static void rounded(void **state)
{
    (void)state;
    with_context(run_rounded);
}

/* What stands in these kernels, and what might stand there instead. */
static const char *const mistakes[][2] = {
    { "copy_wait<1>", "copy_wait<2>" },
    { "xs[odd ^ 1]", "xs[odd]" },
    { "k0 += 64", "k0 += 32" },
    { "turn_words(v);", "" },
    { "e % 4 * 4 + p", "e % 4 + p * 4" },
    { "F8e4m3, F8e5m2", "F8e5m2, F8e4m3" },
    { "if (k0 > from)", "if (k0 > from + 64)" },
};

static Status run_mistakes(void *context)
{
    const int64_t n[] = { 1, 72, 80, 160 };
    bool shown[COUNT(mistakes)] = { false };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "mistakes-in-floats");
    h.runs_long = true;
    h.target.narrow_codes = true;
    for (size_t i = 0; i < COUNT(shown); i++) {
        Rng rng = { 5 };
        h.mistake = mistakes[i];
        h.shows = &shown[i];
        add(c, &h, product(c, &rng, n, kinds[1], (MatmulAttr){ .ta = false }), "_mma");
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    for (size_t i = 0; i < COUNT(shown); i++)
        require(shown[i], "nobody sees mistake %d\n", (int)i);
    return OK;
}

static void mistakes_show(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products), cmocka_unit_test(rounded),
                                        cmocka_unit_test(mistakes_show) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
