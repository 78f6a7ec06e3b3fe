/* Products that tensor cores compute compile for every architecture: each kernel has the instruction, none spills registers. */
#include "codegen/cuda/cuda_call.h"
#include "nvrtc/nvrtc.h"
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

/* All that were collected, once to be read and once as the assembler gets them. */
static void compile(Context *c, Checked *all, const char *arch, const char *instruction)
{
    const char *log;
    KernelUse *uses;
    Str bytes;
    char *ptx = nvrtc_ptx(&all->nvrtc, text_get(&all->text), arch);
    assert_non_null(ptx);
    require(nvrtc_count(ptx, instruction) >= (size_t)all->kernels, "%s: %d kernels, %d times %s\n", arch, all->kernels,
            (int)nvrtc_count(ptx, instruction), instruction);
    free(ptx);
    assert_int_equal(
        nvrtc_compile(&all->nvrtc, &c->diag, text_get(&all->text), arch, NVRTC_CUBIN, &c->arena, &bytes, &log), OK);
    assert_int_equal(nvrtc_uses(log, &c->arena, &uses), all->kernels);
    for (int i = 0; i < all->kernels; i++)
        require(!uses[i].spills && !uses[i].stack, "%s for %s spills\n", uses[i].name, arch);
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
    const KernelTarget target = { .narrow = narrow };
    CudaLaunch launch;
    assert_null(cuda_print_call(&all->text, &target, call, arena_printf(&c->arena, "k%d", variant), &launch));
    assert_non_null(strstr(launch.kernels[0].name, "_mma"));
    all->kernels += launch.n;
}

static Status run_codes(void *context)
{
    Context *c = context;
    Checked all;
    if (!begin(c, &all))
        return OK;
    for (int variant = 0; variant < VARIANTS + LARGE_ONES; variant++)
        add(c, &all, false, product_of_codes(c, variant < VARIANTS ? SMALL : LARGE, variant), variant);
    for (size_t i = 0; i < COUNT(nvrtc_archs); i++)
        compile(c, &all, nvrtc_archs[i],
                strcmp(nvrtc_archs[i], "sm_75") == 0 ? "mma.sync.aligned.m8n8k16" : "mma.sync.aligned.m16n8k32");
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
        compile(c, &all, nvrtc_archs[i], "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
    return OK;
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(codes), cmocka_unit_test(halves) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
