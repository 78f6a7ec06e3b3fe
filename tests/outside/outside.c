/* An op and a rule that are not ours, as docs/ops.md and docs/passes.md show them: read, verified, evaluated, rewritten,
 * and held to what ours are held to. */
#include <math.h>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify.h"
#include "ops/card/make.h"
#include "ops/control/reverse.h"
#include "outside/words.h"
#include "passes/engine/pattern.h"
#include "passes/engine/trial.h"
#include "passes/pipelines.h"
#include "support/cards_hold.h"

extern const Pass pass_distances;

enum { WANTED = 20 };

/* Fails with a message when the condition is false. */
#define check_that(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error(__VA_ARGS__);                                                                                  \
            assert_true(condition);                                                                                    \
        }                                                                                                              \
    } while (0)

/* Our cards, and one more. */
static const OpDef *const defs[] = {
#define OP(word) [OP_##word] = &op_##word,
#include "ir/ops.def"
#undef OP
    [OP_pairwise_distance] = &op_pairwise_distance,
};
static const OpTable table = { defs, COUNT(defs) };

static const char before[] = "graph @f(%x: f32[2,2], %y: f32[3,2]) -> (%d) {\n"
                             "    %s: f32[2,3] = pairwise_distance(%x, %y, squared=true)\n"
                             "    %d: f32[2,3] = sqrt(%s)\n"
                             "}\n";
static const char after[] = "graph @f(%x: f32[2,2], %y: f32[3,2]) -> (%d) {\n"
                            "    %d: f32[2,3] = pairwise_distance(%x, %y)\n"
                            "}\n";

static Module *read(Context *c, const char *text)
{
    Module *m = NULL;
    c->ir.ops = &table;
    check_that(parse_module(&c->ir, &c->arena, str(text), "outside.qir", NULL, NULL, &m) == OK, "%s", c->last);
    return m;
}

static const char *text_of(Context *c, const Module *m)
{
    Text t;
    text_open(&t, &c->arena);
    assert_int_equal(print_module(&t, m, NULL), OK);
    return text_get(&t);
}

static Tensor *matrix(Context *c, int64_t rows, int64_t columns, const double *v)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ rows, columns }));
    for (int64_t i = 0; i < rows * columns; i++)
        tensor_set_f64(t, i, v[i]);
    return t;
}

/* The distances of a 3-4-5 triangle and some others. */
static void expect_distances(Context *c, Graph *g)
{
    static const double x[] = { 0, 0, 1, 1 }, y[] = { 3, 4, 1, 1, -5, -7 };
    static const double want[] = { 5, 1.4142135381698608, 8.602325439453125, 3.6055512428283691, 0, 10 };
    const Tensor *const inputs[] = { matrix(c, 2, 2, x), matrix(c, 3, 2, y) };
    Tensor *d = NULL;
    check_that(evaluate(g, NULL, &c->heap, inputs, &d) == OK, "%s", c->last);
    for (int64_t i = 0; i < (int64_t)COUNT(want); i++)
        check_that(tensor_get_f64(d, i) == want[i], "distance %d is %.17g, not %.17g", (int)i, tensor_get_f64(d, i),
                   want[i]);
    tensor_drop(&c->heap, d);
}

static Status read_and_evaluate(void *context)
{
    Context *c = context;
    Module *m = read(c, before);
    assert_string_equal(text_of(c, m), before);
    check_that(verify_module(m, NULL) == OK, "%s", c->last);
    expect_distances(c, m->graphs[0]);
    return OK;
}

static Status complain(void *context)
{
    Context *c = context;
    static const char wrong[] = "graph @f(%x: f32[2,2], %y: f32[3,4]) -> (%d) {\n"
                                "    %d: f32[2,3] = pairwise_distance(%x, %y)\n"
                                "}\n";
    assert_int_equal(verify_module(read(c, wrong), NULL), INVALID);
    check_that(strstr(c->last, "rows have 2 and 4 columns"), "%s", c->last);
    return OK;
}

static Status rewrite(void *context)
{
    Context *c = context;
    const Pass *const passes[] = { &pass_distances };
    const Pipeline pipeline = { "outside", TYPED, passes, 1 };
    const PipelineOptions options = { .verify_each = VERIFY_VALUES };
    Module *m = read(c, before);
    check_that(pipeline_run_module(&pipeline, m, &options) == OK, "%s", c->last);
    assert_string_equal(text_of(c, m), after);
    expect_distances(c, m->graphs[0]);
    return OK;
}

static double sum_of_distances(Context *c, Graph *g, const Tensor *const *inputs)
{
    Tensor *d = NULL;
    double sum = 0;
    check_that(evaluate(g, NULL, &c->heap, inputs, &d) == OK, "%s", c->last);
    for (int64_t i = 0; i < tensor_elements(d); i++)
        sum += tensor_get_f64(d, i);
    tensor_drop(&c->heap, d);
    return sum;
}

/* Appends the gradients of the sum of all distances. */
static Graph *gradients_of(Context *c, const char *text)
{
    Graph *g = read(c, text)->graphs[0];
    Build b = build_at_end(g);
    Node *y = graph_result(g, 0), *dy = make_expand(&b, build_scalar(&b, F64, 1), y->type->rank, y->type->dims);
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 2, .x = g->inputs };
    ReverseResult r;
    check_that(reverse(&b, &q, &c->arena, &r) == OK && r.dx[0] && r.dx[1], "%s", c->last);
    graph_return(g, 2, r.dx, NULL);
    return g;
}

static void compare_gradients(Context *c, const char *text)
{
    static const double v[] = { 0.25, 1, -2, 0.5, 3, 4, 1.5, 1, -5, -7 }, h = 1e-5;
    Graph *value = read(c, text)->graphs[0], *back = gradients_of(c, text);
    Tensor *x[2], *dx[2];
    for (int i = 0, at = 0; i < 2; i++) {
        x[i] = tensor_new(&c->arena, value->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(x[i]); k++)
            tensor_set_f64(x[i], k, v[at++]);
    }
    const Tensor *const inputs[] = { x[0], x[1] };
    check_that(evaluate(back, NULL, &c->heap, inputs, dx) == OK, "%s", c->last);
    for (int i = 0; i < 2; i++) {
        for (int64_t k = 0; k < tensor_elements(x[i]); k++) {
            const double here = tensor_get_f64(x[i], k), got = tensor_get_f64(dx[i], k);
            tensor_set_f64(x[i], k, here + h);
            double want = sum_of_distances(c, value, inputs);
            tensor_set_f64(x[i], k, here - h);
            want = (want - sum_of_distances(c, value, inputs)) / (2 * h);
            tensor_set_f64(x[i], k, here);
            check_that(fabs(got - want) < 1e-7 * (1 + fabs(want)), "gradient %g, difference %g", got, want);
        }
        tensor_drop(&c->heap, dx[i]);
    }
}

static Status differentiate(void *context)
{
    compare_gradients(context, "graph @f(%x: f64[2,2], %y: f64[3,2]) -> (%d) {\n"
                               "    %d: f64[2,3] = pairwise_distance(%x, %y)\n"
                               "}\n");
    compare_gradients(context, "graph @f(%x: f64[2,2], %y: f64[3,2]) -> (%d) {\n"
                               "    %d: f64[2,3] = pairwise_distance(%x, %y, squared=true)\n"
                               "}\n");
    return OK;
}

/* One sample of the card under a root: 1 when the rule took it, and both sides agree. */
static int try_sample(Context *c, int variant)
{
    Rng rng = { seed_of(op_pairwise_distance.name, (uint64_t)variant) };
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    Node *y = CALL(&b, sqrt, op_pairwise_distance.sample(&b, &rng, variant % op_pairwise_distance.n_variants));
    PassRun run = { .options = &(const PassOptions){ 0 }, .diag = &c->diag, .scratch = &c->arena, .allowed = -1 };
    int64_t applied = 0;
    bool ran;
    assert_non_null(y);
    run.applied = &applied;
    graph_return(g, 1, &y, NULL);
    Graph *was = graph_copy(g, &c->arena);
    assert_int_equal(rules_run(pass_distances.rules, pass_distances.n_rules, g, &run), OK);
    check_that(verify(g, NULL) == OK, "%s", c->last);
    const char *difference = trial_compare(was, g, pass_distances.rules[0].exactness, 7, &c->arena, &ran);
    check_that(!difference && ran, "variant %d: %s", variant, difference ? difference : "not evaluated");
    return applied > 0;
}

static Status rule_holds(void *context)
{
    Context *c = context;
    int taken = 0;
    c->ir.ops = &table;
    for (int variant = 0; variant < 4 * op_pairwise_distance.n_variants; variant++)
        taken += try_sample(c, variant);
    check_that(taken >= WANTED, "%d instances", taken);
    return OK;
}

static void card_is_read_and_evaluated(void **state)
{
    (void)state;
    with_context(read_and_evaluate);
}

static void card_complains(void **state)
{
    (void)state;
    with_context(complain);
}

static void card_holds(void **state)
{
    (void)state;
    const char *lacks = card_lacks(&op_pairwise_distance);
    check_that(!lacks, "the card lacks %s", lacks);
    assert_int_equal(card_samples_fail(&table, &op_pairwise_distance), 0);
}

static void card_is_differentiated(void **state)
{
    (void)state;
    with_context(differentiate);
}

static void rule_is_applied(void **state)
{
    (void)state;
    with_context(rewrite);
}

static void rule_keeps_what_it_claims(void **state)
{
    (void)state;
    with_context(rule_holds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(card_is_read_and_evaluated),
        cmocka_unit_test(card_complains),
        cmocka_unit_test(card_holds),
        cmocka_unit_test(card_is_differentiated),
        cmocka_unit_test(rule_is_applied),
        cmocka_unit_test(rule_keeps_what_it_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
