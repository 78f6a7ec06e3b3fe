/* Somebody else's op and rule: a table with one more card, a table of rules of its own, nothing of the product
 * changed. */

#include "ir/text/print.h"
#include "ir/verify.h"
#include "ops/card/cards.h"
#include "passes/engine/pattern.h"
#include "passes/engine/trial.h"
#include "passes/pipelines.h"
#include "support/pace.h"
#include "unit/check.h"

/* twice(x) = x + x. */
static const Type *infer_twice(Infer *q)
{
    return q->in[0] && q->in[0]->kind == TYPE_TENSOR ? q->in[0] : infer_fail(q, "doubles a tensor");
}

static Node *expand_twice(Build *b, const Site *s)
{
    return CALL(b, add, s->in[0], s->in[0]);
}

static const OpDef op_twice = {
    .name = "twice", .min_in = 1, .max_in = 1, .infer = infer_twice, .expand = expand_twice, .access.kind = ACCESS_ROW
};

/* clang-format off */
static const Rule rules[] = {
    /* name             exactness  match                                become             build  when */
    { "neg-twice-neg",  EXACT,     P(neg, PN("twice", P(neg, X))),      PN("twice", X),    NULL,  NULL },
    { "abs-twice-abs",  EXACT,     P(abs, PN("twice", P(abs, X))),      NODE(1),           NULL,  NULL },
};
/* clang-format on */

static const Pass pass_doubles = {
    .name = "doubles", .needs = TYPED, .may = EXACT, .rules = rules, .n_rules = COUNT(rules)
};

typedef struct Words {
    Memory memory;
    Arena arena;
    Diag diag;
    Ir ir;
    Text messages;
    OpTable ops;
} Words;

static void keep(void *user, const Message *m)
{
    message_print(user, m);
}

static void words_open(Words *w)
{
    *w = (Words){ .ops = { .n = ops_table.n + 1 } };
    memory_open(&w->memory, NULL);
    arena_open(&w->arena, &w->memory);
    text_open(&w->messages, &w->arena);
    diag_open(&w->diag, &w->arena, keep, &w->messages);
    const OpDef **defs = NEWS(&w->arena, const OpDef *, w->ops.n);
    for (size_t i = 0; i < ops_table.n; i++)
        defs[i] = ops_table.defs[i];
    defs[ops_table.n] = &op_twice;
    w->ops.defs = defs;
    ir_open(&w->ir, &w->arena, &w->ops, &w->diag);
}

static void own_op_and_rules_run(void **state)
{
    static const char before[] = "graph @f(%x: f32[3]) -> (%y, %z) {\n"
                                 "    %a: f32[3] = neg(%x)\n"
                                 "    %b: f32[3] = twice(%a)\n"
                                 "    %y: f32[3] = neg(%b)\n"
                                 "    %c: f32[3] = abs(%y)\n"
                                 "    %d: f32[3] = twice(%c)\n"
                                 "    %z: f32[3] = abs(%d)\n"
                                 "}\n";
    static const char after[] = "graph @f(%x: f32[3]) -> (%y, %z = %d) {\n"
                                "    %y: f32[3] = twice(%x)\n"
                                "    %c: f32[3] = abs(%y)\n"
                                "    %d: f32[3] = twice(%c)\n"
                                "}\n";
    Words w;
    Module *m;
    Text out;
    (void)state;
    words_open(&w);
    check_that(parse_module(&w.ir, &w.arena, str(before), "own.qir", NULL, NULL, &m) == OK, "%s",
               text_get(&w.messages));
    const Pass *const passes[] = { &pass_doubles };
    const Pipeline p = { "own", TYPED, passes, 1 };
    const PipelineOptions options = { .verify_each = VERIFY_VALUES };
    check_that(verify_module(m, NULL) == OK && pipeline_run_module(&p, m, &options) == OK, "%s", text_get(&w.messages));
    text_open(&out, &w.arena);
    assert_int_equal(print_module(&out, m, NULL), OK);
    assert_string_equal(text_get(&out), after);
    arena_close(&w.arena);
    assert_int_equal(w.memory.used, 0);
}

/* 100,000 nodes: what a pass does is linear, and does not recurse. */
enum { MANY = 100000 };

static Node *link_of(Build *b, Node *x, Node *one, int i)
{
    switch (i % 5) {
    case 0:
        return CALL(b, neg, x);
    case 1:
        return CALL(b, neg, x);
    case 2:
        return CALL(b, mul, x, one);
    case 3:
        return CALL(b, add, x, x);
    default:
        return CALL(b, exp, x);
    }
}

static double time_many_nodes(void *unused)
{
    Words w;
    Text out;
    (void)unused;
    words_open(&w);
    Graph *g = graph_new(&w.ir, &w.arena, "f");
    Node *x = graph_input(g, "x", type_vector(&w.ir.types, F32, 8));
    Build b = build_at_end(g);
    Node *one = build_scalar(&b, F32, 1);
    for (int i = 0; i < MANY; i++)
        x = link_of(&b, x, one, i);
    assert_int_equal(b.status, OK);
    graph_return(g, 1, &x, NULL);
    const double start = cpu_seconds();
    assert_int_equal(verify(g, NULL), OK);
    assert_int_equal(pass_run(pass_find("simplify"), g, NULL), OK);
    text_open(&out, &w.arena);
    assert_int_equal(print_graph(&out, g, NULL), OK);
    const double took = cpu_seconds() - start;
    assert_int_equal(graph_count(g), MANY / 5 * 2); /* add and exp */
    arena_close(&w.arena);
    return took;
}

/* One value that everybody reads: its readers are not walked again and again. */
static double time_many_readers(void *unused)
{
    Words w;
    (void)unused;
    words_open(&w);
    Graph *g = graph_new(&w.ir, &w.arena, "f");
    Node *x = graph_input(g, "x", type_vector(&w.ir.types, F32, 8));
    Build b = build_at_end(g);
    Node *hub = CALL(&b, neg, CALL(&b, neg, x)), *sum = hub;
    for (int i = 0; i < MANY / 4; i++)
        sum = CALL(&b, add, sum, CALL(&b, identity, CALL(&b, mul, hub, sum)));
    graph_return(g, 1, &sum, NULL);
    const double start = cpu_seconds();
    for (size_t i = 0; i < n_all_passes; i++)
        if (all_passes[i] != pass_find("require-shapes") && all_passes[i] != pass_find("attach-loss") &&
            all_passes[i] != pass_find("differentiate") &&
            all_passes[i] != pass_find("require-integers")) /* ask for what this graph lacks */
            assert_int_equal(pass_run(all_passes[i], g, NULL), OK);
    const double took = cpu_seconds() - start;
    assert_int_equal(verify(g, NULL), OK);
    arena_close(&w.arena);
    return took;
}

static void takes_little_time(Timed *work, double enough)
{
    double bound;
    const double took = work(NULL);
    print_message("%.3f s\n", took);
    check_that(!takes_longer(took, enough * slowness(), work, NULL, &bound), "%.3f s where %.3f are enough", took,
               bound);
}

static void many_nodes_take_little_time(void **state)
{
    (void)state;
    takes_little_time(time_many_nodes, 2);
}

static void many_readers_take_little_time(void **state)
{
    (void)state;
    takes_little_time(time_many_readers, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_op_and_rules_run),
        cmocka_unit_test(many_nodes_take_little_time),
        cmocka_unit_test(many_readers_take_little_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
