/* Which calls are products that a library makes, and how their matrices lie (codegen/cuda/cuda_product.c): samples of all cards, and
 * products in every order, as a library reads what it is told gives them. */
#include "codegen/cuda/cuda_call.h"
#include "ops/card/access.h"
#include "ops/contract/contract.h"
#include "ops/window/window.h"
#include "support/asked_product.h"
#include "support/calls.h"
#include "support/samples.h"

enum { MOST_CARDS = 400 };

/* ---- what comes of what it was told ---- */

/* Each element of the result, once. */
static void compare(Context *c, const StackProduct *p, const Node *call, const Tensor *want, double bound)
{
    const Tensor *a = constant(in(call, p->a.argument)), *b = constant(in(call, p->b.argument));
    const int64_t k = p->a.turned ? p->a.rows : p->a.columns;
    int *seen = NEWS(&c->arena, int, tensor_elements(want) + 1);
    assert_int_equal(k, p->b.turned ? p->b.columns : p->b.rows);
    assert_int_equal(p->d.rows, p->a.turned ? p->a.columns : p->a.rows);
    assert_int_equal(p->d.columns, p->b.turned ? p->b.rows : p->b.columns);
    assert_int_equal(p->d.argument, 2);
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t row = 0; row < p->d.rows; row++)
            for (int64_t column = 0; column < p->d.columns; column++) {
                const int64_t at = p->d.from + i * p->d.step + row + column * p->d.line;
                double sum = 0, size = 0;
                for (int64_t s = 0; s < k; s++) {
                    const double x = asked_element(&p->a, a, i, row, s) * asked_element(&p->b, b, i, s, column);
                    sum += x;
                    size += fabs(x);
                }
                assert_true(at >= 0 && at < tensor_elements(want));
                seen[at]++;
                require(fabs(sum - tensor_get_f64(want, at)) <= bound * size, "%s: element %d is %g, not %g\n",
                        op_of(call)->name, (int)at, sum, tensor_get_f64(want, at));
            }
    for (int64_t i = 0; i < tensor_elements(want); i++)
        require(seen[i] == 1, "%s: element %d is made %d times\n", op_of(call)->name, (int)i, seen[i]);
}

static double bound_of(DType type)
{
    return type == BF16 ? 0x1p-7 : type == F16 ? 0x1p-9 : type == F32 ? 1e-5 : 0;
}

/* Whether a library is asked for the call; what it would make is what the evaluator gives. */
static bool asks(Context *c, const Node *call, const Tensor *want, Asked *asked)
{
    CudaLaunch launch;
    Text text;
    *asked = (Asked){ .maker = { asked_take } };
    const KernelTarget target = { .narrow = true, .narrow_codes = true, .products = &asked->maker };
    text_open(&text, &c->arena);
    if (cuda_print_call(&text, &target, call, "k", false, &launch) || !asked->n)
        return false;
    assert_int_equal(asked->n, 1);
    assert_int_equal(launch.n, 1);
    assert_non_null(launch.kernels[0].product);
    assert_int_equal(launch.scratch, ASKED_SCRATCH);
    assert_int_equal(text.n, 0);
    compare(c, &asked->is, call, want, bound_of(access_result(call, 0)->dtype));
    return true;
}

/* ---- samples ---- */

static int asked_of[MOST_CARDS];

static bool has_constants(const Node *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i) && !node_constant(in(call, i), 0))
            return false;
    return true;
}

static Status run_samples(void *context)
{
    Context *c = context;
    Asked asked;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *def = ops_table.defs[i];
        for (int variant = 0; def->sample && variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant), *call = y ? sample_call(y) : NULL;
            Tensor *want = NULL;
            if (!call || !has_constants(call) || type_results(call->type) != 1)
                continue;
            graph_return(call->graph, 1, &call, NULL);
            if (evaluate(call->graph, NULL, &c->heap, NULL, &want) == OK && want && asks(c, call, want, &asked))
                asked_of[i]++;
        }
    }
    for (size_t i = 0; i < ops_table.n; i++)
        require(!asked_of[i] || ops_table.defs[i]->access.kind == ACCESS_CONTRACT, "%s is no product\n",
                ops_table.defs[i]->name);
    return OK;
}

static void samples(void **state)
{
    (void)state;
    with_context(run_samples);
}

/* ---- products in every order ---- */

static void check_matmul(Context *c, DType type, const int64_t *n, MatmulAttr at, bool shared)
{
    Rng rng = { seed_of("products", (size_t)(type * 16 + at.ta * 2 + at.tb)) };
    Build b = fresh(c);
    Asked asked;
    const int64_t left[] = { n[0], at.ta ? n[3] : n[1], at.ta ? n[1] : n[3] };
    const int64_t right[] = { n[0], at.tb ? n[2] : n[3], at.tb ? n[3] : n[2] };
    Node *x = draw(&b, &rng, type, 3, left), *y = draw(&b, &rng, type, shared ? 2 : 3, shared ? right + 1 : right);
    Node *call = build_node(&b, OP_matmul, &at, 2, (Node *[]){ x, y });
    require(asks(c, call, value_of(c, call, NULL), &asked), "matmul of %s, %d %d\n", dtype_name(type), at.ta, at.tb);
    const int64_t stacks = shared && !at.ta ? 1 : n[0]; /* rows of all are those of one matrix */
    require(asked.is.n == stacks, "%d stacks, not %d\n", (int)asked.is.n, (int)stacks);
}

static Status run_products(void *context)
{
    static const DType types[] = { F32, BF16, F16 };
    static const int64_t sizes[][4] = { { 3, 9, 17, 21 }, { 1, 8, 8, 1 }, { 2, 33, 10, 70 } };
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int how = 0; how < 8; how++)
                check_matmul(context, types[t], sizes[s], (MatmulAttr){ .ta = how & 1, .tb = how & 2 }, how & 4);
    return OK;
}

/* Codes go there along k by fours, without zero points. */
static Status run_codes(void *context)
{
    Context *c = context;
    static const struct {
        int64_t m, n, k;
        bool ta, tb, zero, taken;
    } cases[] = { { 12, 16, 20, false, true, false, true },  { 12, 16, 20, false, false, false, false },
                  { 12, 16, 20, true, true, false, false },  { 12, 16, 21, false, true, false, false },
                  { 12, 18, 20, false, true, false, false }, { 12, 16, 20, false, true, true, false } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Rng rng = { seed_of("codes", i) };
        Build b = fresh(c);
        Asked asked;
        const MatmulAttr at = { .ta = cases[i].ta, .tb = cases[i].tb };
        const int64_t m = cases[i].m, n = cases[i].n, k = cases[i].k;
        Node *ins[] = { sample_tensor(&b, &rng, I8, 2, at.ta ? (int64_t[]){ k, m } : (int64_t[]){ m, k }, -128, 127),
                        sample_tensor(&b, &rng, I8, 2, at.tb ? (int64_t[]){ n, k } : (int64_t[]){ k, n }, -128, 127),
                        sample_tensor(&b, &rng, I8, 0, NULL, 1, 3) };
        Node *call = build_node(&b, OP_matmul_integer, &at, cases[i].zero ? 3 : 2, ins);
        require(asks(c, call, value_of(c, call, NULL), &asked) == cases[i].taken, "codes, case %zu\n", i);
    }
    return OK;
}

/* Floats of eight bits go there along k, by sixteens, of e5m2 one factor at most; and with results in f32 alone. */
static Status run_floats(void *context)
{
    Context *c = context;
    static const struct {
        int64_t n, m, columns, k;
        DType a, b;
        bool ta, tb, narrow, taken;
    } cases[] = { { 1, 32, 16, 48, F8E4M3, F8E4M3, false, true, false, true },
                  { 2, 32, 16, 48, F8E4M3, F8E5M2, false, true, false, true },
                  { 1, 32, 16, 48, F8E5M2, F8E4M3, false, true, false, true },
                  { 1, 32, 16, 48, F8E5M2, F8E5M2, false, true, false, false },
                  { 1, 32, 16, 48, F8E4M3, F8E4M3, false, false, false, false },
                  { 1, 32, 16, 48, F8E4M3, F8E4M3, true, true, false, false },
                  { 1, 32, 16, 40, F8E4M3, F8E4M3, false, true, false, false },
                  { 1, 24, 16, 48, F8E4M3, F8E4M3, false, true, false, false },
                  { 1, 32, 24, 48, F8E4M3, F8E4M3, false, true, false, false },
                  { 1, 32, 16, 48, F8E4M3, F8E4M3, false, true, true, false } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Rng rng = { seed_of("floats", i) };
        Build b = fresh(c);
        Asked asked;
        const MatmulAttr at = { .ta = cases[i].ta, .tb = cases[i].tb, .out = cases[i].narrow ? 0 : F32 + 1 };
        const int64_t n = cases[i].n, m = cases[i].m, columns = cases[i].columns, k = cases[i].k;
        Node *x = draw(&b, &rng, cases[i].a, 3, (int64_t[]){ n, at.ta ? k : m, at.ta ? m : k });
        Node *y = draw(&b, &rng, cases[i].b, 3, (int64_t[]){ n, at.tb ? columns : k, at.tb ? k : columns });
        Node *call = build_node(&b, OP_matmul, &at, 2, (Node *[]){ x, y });
        require(asks(c, call, value_of(c, call, NULL), &asked) == cases[i].taken, "floats, case %zu\n", i);
        if (cases[i].taken) {
            assert_int_equal(asked.is.a.type, in(call, asked.is.a.argument)->type->dtype);
            assert_int_equal(asked.is.b.type, in(call, asked.is.b.argument)->type->dtype);
        }
    }
    return OK;
}

/* A convolution of one tap is a product for each image; one of more, or with a bias beside it, is none. */
static Status run_windows(void *context)
{
    Context *c = context;
    static const struct {
        int64_t taps;
        bool bias, taken;
    } cases[] = { { 1, false, true }, { 1, true, false }, { 3, false, false } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Rng rng = { seed_of("windows", i) };
        Build b = fresh(c);
        Asked asked;
        int64_t taps[] = { cases[i].taps, cases[i].taps };
        const ConvAttr at = { .window = { .kernel_shape = { 2, taps } }, .group = 1 };
        Node *ins[] = { DRAW(&b, &rng, F32, 2, 9, 5, 4), DRAW(&b, &rng, F32, 10, 9, taps[0], taps[1]),
                        DRAW(&b, &rng, F32, 10) };
        Node *call = build_node(&b, OP_conv, &at, cases[i].bias ? 3 : 2, ins);
        require(asks(c, call, value_of(c, call, NULL), &asked) == cases[i].taken, "window %zu\n", i);
        assert_true(!cases[i].taken || asked.is.n == 2);
    }
    return OK;
}

static void products(void **state)
{
    (void)state;
    with_context(run_products);
    with_context(run_codes);
    with_context(run_floats);
    with_context(run_windows);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products), cmocka_unit_test(samples) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
