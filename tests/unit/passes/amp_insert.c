/* What golden files cannot show of insertion: numbers that f16 does not hold, and what the ledger says. */
#include "ir/text/parse.h"
#include "ir/verify.h"
#include "support/amp_trial.h"

static const AmpWay f16_by_the_cut = { F16, false };

static Graph *parsed(Context *c, const char *text)
{
    Module *m;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(text), "test.qir", NULL, NULL, &m), OK);
    assert_int_equal(verify_module(m, NULL), OK);
    return m->graphs[0];
}

static void insert(Context *c, Graph *g, AmpLedger *ledger)
{
    const AmpTrial t = { .c = c };
    const char *wrong = amp_run(&t, g, "insert-amp", f16_by_the_cut, ledger);
    if (wrong)
        print_error("%s\n", wrong);
    assert_null(wrong);
}

/* Minimal test list, 20: 70091 narrow ones are added in f32, and the sum, which f16 does not hold, is f32. */
static Status add_ones(void *context)
{
    Context *c = context;
    Graph *g = parsed(c, "graph @f(%x: f32[70091,1], %w: f32[1,1]) -> (%s, %q, %n, %m) {\n"
                         "    %h: f32[70091,1] = matmul(%x, %w)\n"
                         "    %s: f32[] = reduce_sum(%h, keepdims=false)\n"
                         "    %q: f32[] = reduce_sum_square(%h, keepdims=false)\n"
                         "    %n: f32[] = reduce_l1(%h, keepdims=false)\n"
                         "    %m: f32[] = reduce_mean(%h, keepdims=false)\n"
                         "}\n");
    Tensor *in[2], *y[4];
    for (int i = 0; i < 2; i++) {
        in[i] = tensor_new(&c->arena, g->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(in[i]); k++)
            tensor_set_f64(in[i], k, 1);
    }
    insert(c, g, NULL);
    assert_int_equal(g->first->op, OP_amp_cast);
    TRY(evaluate(g, NULL, &c->heap, (const Tensor *const *)in, y));
    for (int i = 0; i < 4; i++) {
        assert_true(tensor_get_f64(y[i], 0) == (i < 3 ? 70091 : 1));
        tensor_drop(&c->heap, y[i]);
    }
    return OK;
}

static void sums_leave_the_range_of_f16(void **state)
{
    (void)state;
    with_context(add_ones);
}

static int computing(const AmpLedger *l)
{
    int n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->list[i].computes;
    return n;
}

/* Minimal test list, 24: where nothing computes narrow, nothing is stored so either, and the ledger shows it. */
static Status convert_nothing(void *context)
{
    Context *c = context;
    AmpTrial t = { .c = c };
    Graph *g = parsed(c, "graph @f(%x: f32[4,4]) -> (%a, %b, %c, %s) {\n"
                         "    %h: f32[4,4] = tanh(%x)\n"
                         "    %r: f32[4,4] = relu(%h)\n"
                         "    %a: f32[4,4] = softmax(%r)\n"
                         "    %b: f32[4,4] = exp(%r)\n"
                         "    %c: f32[4,4] = log_softmax(%r)\n"
                         "    %s: f32[] = reduce_sum(%r, keepdims=false)\n"
                         "}\n");
    const char *before = amp_text(&t, g);
    AmpLedger *ledger = amp_ledger(&t);
    insert(c, g, ledger);
    assert_string_equal(amp_text(&t, g), before);
    assert_int_equal(computing(ledger), 0);
    assert_int_equal(ledger->inserted, 0);
    assert_true(ledger->cost == ledger->wide_cost);
    Graph *product = parsed(c, "graph @f(%x: f32[4,4]) -> (%y) {\n"
                               "    %y: f32[4,4] = matmul(%x, %x)\n"
                               "}\n");
    ledger = amp_ledger(&t);
    insert(c, product, ledger);
    assert_int_equal(computing(ledger), 1);
    return OK;
}

static void nothing_narrow_is_nothing_changed(void **state)
{
    (void)state;
    with_context(convert_nothing);
}

/* A chain of moves, long as a program unrolled, is painted back from its end in one go: twice as long takes twice the
 * time, by either solver. */
static Status paint_a_chain(void *context)
{
    enum { LONG = 20000 };
    Context *c = context;
    const AmpTrial t = { .c = c };
    for (int walks = 0; walks < 2; walks++) {
        Graph *g = graph_new(&c->ir, &c->arena, "f");
        Build b = build_at_end(g);
        Node *x = graph_input(g, "x", type_tensor(&c->ir.types, F32, 2, (const int64_t[]){ 4, 4 })),
             *y = CALL(&b, exp, x);
        for (int i = 0; i < LONG; i++)
            y = CALL(&b, relu, y);
        y = CALL(&b, matmul, y, x);
        graph_return(g, 1, &y, NULL);
        assert_null(amp_run(&t, g, "insert-amp", (AmpWay){ BF16, walks }, NULL));
        int narrow = 0;
        for (const Node *n = g->first; n; n = n->next)
            narrow += n->op == OP_relu && n->type->dtype == BF16;
        assert_int_equal(narrow, LONG);
    }
    return OK;
}

static void long_chains_are_painted(void **state)
{
    (void)state;
    with_context(paint_a_chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_leave_the_range_of_f16),
        cmocka_unit_test(nothing_narrow_is_nothing_changed),
        cmocka_unit_test(long_chains_are_painted),
    };
    return cmocka_run_group_tests_name("amp_insert", tests, NULL, NULL);
}
