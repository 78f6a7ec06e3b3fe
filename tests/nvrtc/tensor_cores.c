/* Products that tensor cores compute compile for every architecture: each kernel has the instruction, none spills registers. */
#include "codegen/cuda/cuda_call.h"
#include "nvrtc/nvrtc.h"
#include "ops/attend/attention.h"
#include "ops/contract/contract.h"
#include "ops/quant/words.h"
#include "ops/window/window.h"
#include "support/calls.h"

enum { SMALL = 60, LARGE = 2000, VARIANTS = 16, LARGE_ONES = 4 };

/* Two matrices of codes, whose product has one tile or many. */
static Node *product_of_codes(Context *c, int64_t side, int variant)
{
    static const DType types[] = { U8, I8 };
    const QmatmulAttr at = { .transpose_a = variant & 1, .transpose_b = variant & 2 };
    const DType a = types[variant / 4 % 2], b = types[variant / 8 % 2];
    Build build = fresh(c);
    Graph *g = build.graph;
    const Type *x = type_tensor(&c->ir.types, a, 2, (int64_t[]){ side, side });
    const Type *y = type_tensor(&c->ir.types, b, 2, (int64_t[]){ side, side });
    const Type *one = type_tensor(&c->ir.types, F32, 0, NULL);
    Node *in[9] = { graph_input(g, "x", x),
                    graph_input(g, "xs", one),
                    graph_input(g, "xz", type_tensor(&c->ir.types, a, 0, NULL)),
                    graph_input(g, "y", y),
                    graph_input(g, "ys", type_tensor(&c->ir.types, F32, 1, &side)),
                    graph_input(g, "yz", type_tensor(&c->ir.types, b, 1, &side)),
                    graph_input(g, "zs", one),
                    graph_input(g, "zz", type_tensor(&c->ir.types, U8, 0, NULL)),
                    graph_input(g, "bias", type_tensor(&c->ir.types, I32, 1, &side)) };
    return build_node_n(&build, OP_qmatmul, &at, 9, in, 1);
}

typedef struct Checked {
    Nvrtc nvrtc;
    Text text;
    int kernels;
} Checked;

/* All that were collected, once to be read and once as the assembler gets them; `instructions` end with null. */
static void compile(Context *c, Checked *all, const char *arch, const char *const *instructions)
{
    const char *log;
    KernelUse *uses;
    Str bytes;
    bool spills = false;
    char *ptx = nvrtc_ptx(&all->nvrtc, text_get(&all->text), arch);
    assert_non_null(ptx);
    for (; *instructions; instructions++)
        require(nvrtc_count(ptx, *instructions) >= (size_t)all->kernels, "%s: %d kernels, %d times %s\n", arch,
                all->kernels, (int)nvrtc_count(ptx, *instructions), *instructions);
    free(ptx);
    assert_int_equal(
        nvrtc_compile(&all->nvrtc, &c->diag, text_get(&all->text), arch, NVRTC_CUBIN, &c->arena, &bytes, &log), OK);
    assert_int_equal(nvrtc_uses(log, &c->arena, &uses), all->kernels);
    for (int i = 0; i < all->kernels; i++)
        if (uses[i].spills || uses[i].stack) {
            print_error("%s for %s spills %d, stack %d, %d registers\n", uses[i].name, arch, (int)uses[i].spills,
                        (int)uses[i].stack, (int)uses[i].registers);
            spills = true;
        }
    assert_false(spills);
}

/* An empty program; false where nobody compiles it. */
static bool begin(Context *c, Checked *all)
{
    *all = (Checked){ .kernels = 0 };
    if (!nvrtc_open(&all->nvrtc))
        return false;
    text_open(&all->text, &c->arena);
    cuda_prelude(&all->text);
    return true;
}

static void add(Context *c, Checked *all, bool narrow, const Node *call, int variant)
{
    const KernelTarget target = { .narrow = narrow, .narrow_codes = narrow };
    CudaLaunch launch;
    assert_null(cuda_print_call(&all->text, &target, call, arena_printf(&c->arena, "k%d", variant), false, &launch));
    assert_non_null(strstr(launch.kernels[0].name, "_mma"));
    all->kernels += launch.n;
}

/* A convolution of codes, whose sums one block makes or several. */
static Node *conv_of_codes(Context *c, int64_t channels)
{
    const ConvAttr at = { .group = 1 };
    Build build = fresh(c);
    Graph *g = build.graph;
    const Type *x = type_tensor(&c->ir.types, U8, 4, (int64_t[]){ 2, channels, 14, 14 });
    const Type *w = type_tensor(&c->ir.types, I8, 4, (int64_t[]){ 64, channels, 3, 3 });
    Node *in[] = { graph_input(g, "x", x), graph_input(g, "w", w),
                   graph_input(g, "z", type_tensor(&c->ir.types, U8, 0, NULL)) };
    return build_node(&build, OP_conv_integer, &at, 3, in);
}

static Status run_codes(void *context)
{
    Context *c = context;
    Checked all;
    if (!begin(c, &all))
        return OK;
    for (int variant = 0; variant < VARIANTS + LARGE_ONES; variant++)
        add(c, &all, false, product_of_codes(c, variant < VARIANTS ? SMALL : LARGE, variant), variant);
    add(c, &all, false, conv_of_codes(c, 20), VARIANTS + LARGE_ONES);
    add(c, &all, false, conv_of_codes(c, 200), VARIANTS + LARGE_ONES + 1);
    for (size_t i = 0; i < COUNT(nvrtc_archs); i++)
        compile(c, &all, nvrtc_archs[i],
                (const char *[]){ strcmp(nvrtc_archs[i], "sm_75") == 0 ? "mma.sync.aligned.m8n8k16"
                                                                       : "mma.sync.aligned.m16n8k32",
                                  NULL });
    return OK;
}

/* Products of bf16 of one segment and of several, read either way, and a convolution. */
static Node *product_of_halves(Context *c, int64_t side, int variant)
{
    const MatmulAttr at = { .ta = variant & 1, .tb = variant & 2 };
    Build build = fresh(c);
    Graph *g = build.graph;
    if (variant == VARIANTS) {
        const ConvAttr window = { .group = 1 };
        const Type *x = type_tensor(&c->ir.types, BF16, 4, (int64_t[]){ 2, 64, 30, 30 });
        const Type *f = type_tensor(&c->ir.types, BF16, 4, (int64_t[]){ 64, 64, 3, 3 });
        return build_node(&build, OP_conv, &window, 2, (Node *[]){ graph_input(g, "x", x), graph_input(g, "f", f) });
    }
    const Type *t = type_tensor(&c->ir.types, BF16, 2, (int64_t[]){ side, side });
    return build_node(&build, OP_matmul, &at, 2, (Node *[]){ graph_input(g, "x", t), graph_input(g, "y", t) });
}

static Status run_halves(void *context)
{
    static const int64_t sides[] = { SMALL, LARGE, 2 * LARGE };
    enum { WAYS = 4 };
    Context *c = context;
    Checked all;
    if (!begin(c, &all))
        return OK;
    for (int variant = 0; variant < WAYS * (int)COUNT(sides); variant++)
        add(c, &all, true, product_of_halves(c, sides[variant / WAYS], variant), variant);
    add(c, &all, true, product_of_halves(c, 0, VARIANTS), VARIANTS);
    for (size_t i = 1; i < COUNT(nvrtc_archs); i++)
        compile(c, &all, nvrtc_archs[i],
                (const char *[]){ "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", NULL });
    return OK;
}

/* Products of floats of eight bits of both kinds, of one segment and of several, read either way. */
static Node *product_of_floats(Context *c, int64_t side, DType a, DType b, int variant)
{
    const MatmulAttr at = { .ta = variant & 1, .tb = variant & 2, .out = F32 + 1 };
    Build build = fresh(c);
    Graph *g = build.graph;
    const Type *x = type_tensor(&c->ir.types, a, 2, (int64_t[]){ side, side });
    const Type *y = type_tensor(&c->ir.types, b, 2, (int64_t[]){ side, side });
    return build_node(&build, OP_matmul, &at, 2, (Node *[]){ graph_input(g, "x", x), graph_input(g, "y", y) });
}

/* Architectures whose tensor cores multiply them; those before these compile what everybody has. */
static Status run_floats(void *context)
{
    static const int64_t sides[] = { SMALL + 1, 2 * LARGE };
    static const char *const each[] = { ".e4m3.e4m3.", ".e4m3.e5m2.", ".e5m2.e4m3.", ".e5m2.e5m2." };
    static const char *const all_have[] = { "mma.sync.aligned.m16n8k32.row.col.f32.e", NULL };
    enum { WAYS = 4, OF_ONE_KIND = WAYS + 2 };
    Context *c = context;
    Checked all;
    if (!begin(c, &all))
        return OK;
    for (int i = 0; i < OF_ONE_KIND; i++)
        add(c, &all, true, product_of_floats(c, sides[i / WAYS], F8E4M3, F8E4M3, i), i);
    for (int k = 1; k < (int)COUNT(each); k++)
        add(c, &all, true, product_of_floats(c, SMALL, k / 2 ? F8E5M2 : F8E4M3, k % 2 ? F8E5M2 : F8E4M3, k),
            OF_ONE_KIND + k);
    for (size_t i = 0; i < COUNT(nvrtc_archs); i++) {
        const bool has = nvrtc_arch_number(nvrtc_archs[i]) >= CUDA_NARROW_CODES_ARCH;
        char *ptx = nvrtc_ptx(&all.nvrtc, text_get(&all.text), nvrtc_archs[i]);
        assert_non_null(ptx);
        for (size_t k = 0; k < COUNT(each); k++)
            require((strstr(ptx, each[k]) != NULL) == has, "%s: %s\n", nvrtc_archs[i], each[k]);
        free(ptx);
        if (has)
            compile(c, &all, nvrtc_archs[i], all_have);
    }
    return OK;
}

/* Attention and the way back through it, of heads of several sizes, causal or not, beneath a mask. */
static void add_attention(Context *c, Checked *all, DType type, int64_t size, int number)
{
    const AttentionAttr at = { .left_window_size = -1, .right_window_size = -1, .is_causal = number % 2 };
    const int64_t q[] = { 2, 8, 1000, size }, k[] = { 2, 4, 1000, size }, mask[] = { 1, 1, 1000, 1000 };
    Build build = fresh(c);
    Graph *g = build.graph;
    Node *in[] = { graph_input(g, "q", type_tensor(&c->ir.types, type, 4, q)),
                   graph_input(g, "k", type_tensor(&c->ir.types, type, 4, k)),
                   graph_input(g, "v", type_tensor(&c->ir.types, type, 4, k)),
                   graph_input(g, "mask", type_tensor(&c->ir.types, number % 3 ? BOOL : type, 4, mask)) };
    Node *back[] = { in[0], in[1], in[2], graph_input(g, "dy", type_tensor(&c->ir.types, type, 4, q)), in[3] };
    const int masked = number % 2;
    add(c, all, true, build_node_n(&build, OP_attention, &at, 3 + masked, in, 1), 2 * number);
    add(c, all, true, build_node_n(&build, OP_attention_grad, &at, 4 + masked, back, 3), 2 * number + 1);
}

static Status run_attention(void *context)
{
    static const struct {
        DType type;
        int64_t size;
    } heads[] = { { BF16, 64 }, { BF16, 64 }, { BF16, 33 }, { F16, 128 }, { BF16, 128 }, { F16, 64 } };
    Context *c = context;
    Checked all;
    if (!begin(c, &all))
        return OK;
    for (int i = 0; i < (int)COUNT(heads); i++)
        add_attention(c, &all, heads[i].type, heads[i].size, i);
    for (size_t i = 1; i < COUNT(nvrtc_archs); i++)
        compile(c, &all, nvrtc_archs[i],
                (const char *[]){ "mma.sync.aligned.m16n8k16", "cp.async.wait_group 1",
                                  "ldmatrix.sync.aligned.m8n8.x4.trans", "ex2.approx.ftz.f32", NULL });
    return OK;
}

static void attention(void **state)
{
    (void)state;
    with_context(run_attention);
}

static void floats(void **state)
{
    (void)state;
    with_context(run_floats);
}

static void halves(void **state)
{
    (void)state;
    with_context(run_halves);
}

static void codes(void **state)
{
    (void)state;
    with_context(run_codes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(codes), cmocka_unit_test(halves), cmocka_unit_test(floats),
                                        cmocka_unit_test(attention) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
