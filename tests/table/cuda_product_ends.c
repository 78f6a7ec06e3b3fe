/* Rows behind a product that a library makes with it (codegen/cuda/cuda_product_end.c): which are, and that what it is told of them
 * gives what the evaluator gives; which are not, and stay kernels. */
#include "codegen/cuda/cuda_product_end.h"
#include "codegen/tape.h"
#include "ir/text/parse.h"
#include "ops/card/eval.h"
#include "ops/region/region.h"
#include "passes/engine/trial.h"
#include "passes/pipelines.h"
#include "support/asked_product.h"
#include "support/calls.h"
#include "support/samples.h"

enum { MOST_INPUTS = 6, MADE = -2 /* an argument that no case has */ };

/* ---- a contract ---- */

/* Its region, and the values of what that reads. */
typedef struct Contract {
    Context *c;
    Launch launch;
    const Tensor *in[MOST_INPUTS];
    Tensor *want;
} Contract;

static Graph *parsed(Context *c, const char *text)
{
    Module *m = NULL;
    require(parse_module(&c->ir, &c->arena, str(text), "end", NULL, NULL, &m) == OK, "%s%s", text, c->last);
    return m->graphs[0];
}

static void fill_inputs(Context *c, Graph *g, const char *name, const Tensor **inputs)
{
    Rng rng = { seed_of(name, 1) };
    for (size_t i = 0; i < g->n_inputs; i++) {
        Build b = fresh(c);
        const Type *t = g->inputs[i]->type;
        inputs[i] = constant(sample_tensor(&b, &rng, t->dtype, t->rank, t->dims, -1, 1));
    }
}

/* The contract that the calls of a graph become, all of them, with one result. */
static void contract_of(Context *c, const char *name, const char *text, Contract *k)
{
    const Tensor *inputs[MOST_INPUTS];
    Graph *g = parsed(c, text);
    Tensor *results[MOST_INPUTS];
    const Node *fused = NULL;
    fill_inputs(c, g, name, inputs);
    require(evaluate(g, NULL, &c->heap, inputs, results) == OK, "%s: %s\n", name, c->last);
    assert_int_equal(pass_run(pass_find("grow-fusion"), g, NULL), OK);
    for (const Node *n = g->first; n; n = n->next)
        fused = n->op == OP_fused ? n : fused;
    require(fused && region_contraction(fused), "%s: no contract\n", name);
    *k = (Contract){ .c = c, .want = results[0] };
    k->launch = (Launch){ .kind = LAUNCH_CONTRACT,
                          .node = fused,
                          .tape = tape_make(fused->regions[0], &c->arena),
                          .contraction = region_contraction(fused),
                          .n_in = fused->n_in };
    for (int i = 0; i < fused->n_in; i++)
        for (size_t at = 0; at < g->n_inputs; at++)
            if (in(fused, i) == g->inputs[at])
                k->in[i] = inputs[at];
}

/* ---- what comes of what it was told ---- */

static double unit_of(DType type)
{
    return type == BF16 ? 0x1p-8 : type == F16 ? 0x1p-11 : 0x1p-22;
}

static void compare(const Contract *k, const char *name, const StackProduct *p)
{
    const int64_t depth = p->a.turned ? p->a.rows : p->a.columns;
    const Tensor *a = k->in[p->a.argument], *b = k->in[p->b.argument];
    assert_int_equal(p->d.argument, k->launch.n_in + 1);
    assert_int_equal(p->n * p->d.rows * p->d.columns, tensor_elements(k->want));
    for (int64_t at = 0; at < tensor_elements(k->want); at++) {
        const int64_t i = at / (p->d.rows * p->d.columns), row = at % p->d.rows;
        const int64_t column = at / p->d.rows % p->d.columns;
        double sum = 0, size = 0;
        for (int64_t s = 0; s < depth; s++) {
            const double x = asked_element(&p->a, a, i, row, s) * asked_element(&p->b, b, i, s, column);
            sum += x;
            size += fabs(x);
        }
        if (p->end.added != NO_ARGUMENT)
            sum += tensor_get_f64(k->in[p->end.added], at);
        if (p->end.bias != NO_ARGUMENT)
            sum += tensor_get_f64(k->in[p->end.bias], row);
        if (p->end.relu && sum < 0)
            sum = 0;
        const double got = tensor_get_f64(k->want, at);
        require(fabs(got - sum) <= unit_of(p->d.type) * fabs(sum) + 1e-5 * size, "%s: element %d is %g, not %g\n", name,
                (int)at, sum, got);
    }
}

/* ---- cases ---- */

typedef struct Case {
    const char *text;
    int added, bias; /* arguments; MADE: a library is not asked */
    bool relu;
    DType type;
} Case;

/* clang-format off */
#define F32_OF(result, calls) "graph @f(%x: f32[9,21], %w: f32[21,16], %b: f32[16], %c: f32[9,16]) -> (" result ") {\n" calls "}\n"
#define BF16_OF(result, calls) "graph @f(%x: bf16[9,21], %w: bf16[21,16], %b: f32[16], %c: bf16[9,16]) -> (" result ") {\n" calls "}\n"
#define PRODUCT "    %y: f32[9,16] = matmul(%x, %w)\n"
#define NARROW "    %y: bf16[9,16] = matmul(%x, %w)\n"
#define WIDE "    %y: f32[9,16] = matmul(%x, %w, out=f32)\n"

static const Case cases[] = {
    { F32_OF("%z", PRODUCT "    %h: f32[9,16] = add(%y, %b)\n    %z: f32[9,16] = relu(%h)\n"), NO_ARGUMENT, 2, true, F32 },
    { F32_OF("%z", PRODUCT "    %z: f32[9,16] = add(%b, %y)\n"), NO_ARGUMENT, 2, false, F32 },
    { F32_OF("%z", PRODUCT "    %z: f32[9,16] = relu(%y)\n"), NO_ARGUMENT, NO_ARGUMENT, true, F32 },
    { F32_OF("%z", PRODUCT "    %z: f32[9,16] = add(%y, %c)\n"), 2, NO_ARGUMENT, false, F32 },
    { F32_OF("%z", PRODUCT "    %z: f32[9,16] = sum(%c, %y)\n"), 2, NO_ARGUMENT, false, F32 },
    { F32_OF("%z", PRODUCT "    %h: f32[9,16] = add(%y, %c)\n    %z: f32[9,16] = relu(%h)\n"), 2, NO_ARGUMENT, true, F32 },
    { BF16_OF("%z", WIDE "    %h: f32[9,16] = add(%y, %b)\n    %z: bf16[9,16] = cast(%h, to=bf16)\n"), NO_ARGUMENT, 2, false, BF16 },
    { BF16_OF("%z", WIDE "    %h: f32[9,16] = add(%y, %b)\n    %r: bf16[9,16] = cast(%h, to=bf16)\n    %z: bf16[9,16] = relu(%r)\n"), NO_ARGUMENT, 2, true, BF16 },
    { BF16_OF("%z", WIDE "    %h: f32[9,16] = relu(%y)\n    %z: bf16[9,16] = cast(%h, to=bf16)\n"), NO_ARGUMENT, NO_ARGUMENT, true, BF16 },
    { BF16_OF("%z", NARROW "    %z: bf16[9,16] = relu(%y)\n"), NO_ARGUMENT, NO_ARGUMENT, true, BF16 },
    { "graph @f(%x: f32[3,9,21], %w: f32[21,16], %b: f32[1,16]) -> (%z) {\n    %y: f32[3,9,16] = matmul(%x, %w)\n    %z: f32[3,9,16] = add(%y, %b)\n}\n", NO_ARGUMENT, 2, false, F32 },
    { "graph @f(%x: f32[3,9,21], %w: f32[3,21,16], %b: f32[16]) -> (%z) {\n    %y: f32[3,9,16] = matmul(%x, %w)\n    %z: f32[3,9,16] = add(%y, %b)\n}\n", NO_ARGUMENT, 2, false, F32 },
    /* what is rounded before something is added, or in the middle; */
    { BF16_OF("%z", NARROW "    %z: bf16[9,16] = add(%y, %c)\n"), MADE, 0, false, BF16 },
    { BF16_OF("%z", NARROW "    %z: f32[9,16] = cast(%y, to=f32)\n"), MADE, 0, false, F32 },
    { BF16_OF("%z", WIDE "    %z: f16[9,16] = cast(%y, to=f16)\n"), MADE, 0, false, F16 },
    { BF16_OF("%z", WIDE "    %r: bf16[9,16] = cast(%y, to=bf16)\n    %s: f32[9,16] = cast(%r, to=f32)\n    %z: f32[9,16] = add(%s, %b)\n"), MADE, 0, false, F32 },
    /* other functions, other orders; */
    { F32_OF("%z", PRODUCT "    %h: f32[9,16] = add(%y, %b)\n    %z: f32[9,16] = gelu(%h)\n"), MADE, 0, false, F32 },
    { F32_OF("%z", PRODUCT "    %z: f32[9,16] = sub(%y, %b)\n"), MADE, 0, false, F32 },
    { F32_OF("%z", PRODUCT "    %z: f32[9,16] = mul(%y, %c)\n"), MADE, 0, false, F32 },
    { F32_OF("%z", PRODUCT "    %h: f32[9,16] = add(%y, %b)\n    %z: f32[9,16] = add(%h, %c)\n"), MADE, 0, false, F32 },
    { F32_OF("%z", PRODUCT "    %h: f32[9,16] = relu(%y)\n    %z: f32[9,16] = add(%h, %b)\n"), MADE, 0, false, F32 },
    { F32_OF("%z", PRODUCT "    %z: f32[9,16] = add(%y, %y)\n"), MADE, 0, false, F32 },
    /* what lies otherwise, and more than one result */
    { "graph @f(%x: f32[9,21], %w: f32[21,16], %b: f32[9,1]) -> (%z) {\n" PRODUCT "    %z: f32[9,16] = add(%y, %b)\n}\n", MADE, 0, false, F32 },
    { "graph @f(%x: f32[16,21], %w: f32[21,16], %b: f32[16,1]) -> (%z) {\n    %y: f32[16,16] = matmul(%x, %w)\n    %z: f32[16,16] = add(%y, %b)\n}\n", MADE, 0, false, F32 },
    { "graph @f(%x: f32[9,21], %w: f32[21,16], %b: f32[]) -> (%z) {\n" PRODUCT "    %z: f32[9,16] = add(%y, %b)\n}\n", MADE, 0, false, F32 },
    { F32_OF("%z, %y", PRODUCT "    %z: f32[9,16] = relu(%y)\n"), MADE, 0, false, F32 },
};
/* clang-format on */

static void check_case(Context *c, const Case *k, const char *name)
{
    Contract contract;
    CudaLaunch launch;
    Asked asked = { .maker = { asked_take } };
    const KernelTarget target = { .narrow = true, .products = &asked.maker };
    contract_of(c, name, k->text, &contract);
    const bool whole = cuda_product_end(&contract.launch, &target, &c->arena, &launch);
    require(whole == (k->added != MADE) && asked.n == whole, "%s: asked %d times of\n%s", name, asked.n, k->text);
    if (!whole)
        return;
    assert_int_equal(launch.n, 1);
    assert_int_equal(launch.scratch, ASKED_SCRATCH);
    assert_non_null(launch.kernels[0].product);
    require(asked.is.end.added == k->added && asked.is.end.bias == k->bias && asked.is.end.relu == k->relu &&
                asked.is.d.type == k->type,
            "%s: %d, %d, %d, %s of\n%s", name, asked.is.end.added, asked.is.end.bias, asked.is.end.relu,
            dtype_name(asked.is.d.type), k->text);
    compare(&contract, name, &asked.is);
}

static Status run_cases(void *context)
{
    Context *c = context;
    for (size_t i = 0; i < COUNT(cases); i++)
        check_case(c, &cases[i], arena_printf(&c->arena, "case %zu", i));
    return OK;
}

static void ends(void **state)
{
    (void)state;
    with_context(run_cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(ends) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
