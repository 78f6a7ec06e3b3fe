/* How loops end, what they give when they never ran, and what bodies may do. */
#include "testing.h"

static Build fresh(Context *c)
{
    return build_at_end(graph_new(&c->ir, &c->arena, "f"));
}

static Status run(Context *c, Node *y, Tensor **out)
{
    assert_non_null(y);
    graph_return(y->graph, 1, &y, NULL);
    *out = NULL;
    return evaluate(y->graph, NULL, &c->heap, NULL, out);
}

static void expect_i64s(Context *c, Node *y, const char *type, int n, const int64_t *v)
{
    Tensor *t;
    assert_int_equal(run(c, y, &t), OK);
    assert_string_equal(type_text(&c->arena, t->type), type);
    for (int i = 0; i < n; i++)
        assert_int_equal(tensor_get_i64(t, i), v[i]);
    tensor_drop(&c->heap, t);
}

typedef struct LoopAttr {
    int64_t operands;
} LoopAttr;

/* A body that adds one to what it carries, gives the old value out, and goes on while the new one is below 3. */
static Graph *counting_body(Build *b)
{
    Types *types = &b->graph->ir->types;
    Graph *g = region_new(b->graph);
    Build in = build_at_end(g);
    graph_input(g, "i", type_scalar(types, I64));
    graph_input(g, "cond", type_scalar(types, BOOL));
    Node *x = graph_input(g, "x", type_scalar(types, I64));
    Node *next = CALL(&in, add, x, build_scalar(&in, I64, 1));
    Node *results[] = { CALL(&in, less, next, build_scalar(&in, I64, 3)), next, x };
    assert_int_equal(in.status, OK);
    graph_return(g, 3, results, NULL);
    return g;
}

static Node *counting(Build *b, Node *most, Node *cond, int result)
{
    Graph *body = counting_body(b);
    Node *ins[] = { most, cond, build_scalar(b, I64, 0) };
    return build_part(b, build_with_regions(b, OP_loop, NULL, 3, ins, 2, 1, &body), result);
}

static Status loops_end(void *arg)
{
    Context *c = arg;
    /* while: the condition alone */
    Build b = fresh(c);
    expect_i64s(c, counting(&b, NULL, build_scalar(&b, BOOL, 1), 1), "i64[3]", 3, (int64_t[]){ 0, 1, 2 });
    b = fresh(c);
    expect_i64s(c, counting(&b, NULL, build_scalar(&b, BOOL, 0), 0), "i64[]", 1, (int64_t[]){ 0 });
    /* for: a condition that was not given is not asked for */
    b = fresh(c);
    expect_i64s(c, counting(&b, build_scalar(&b, I64, 5), NULL, 1), "i64[5]", 5, (int64_t[]){ 0, 1, 2, 3, 4 });
    /* both: whichever ends first */
    b = fresh(c);
    expect_i64s(c, counting(&b, build_scalar(&b, I64, 2), build_scalar(&b, BOOL, 1), 0), "i64[]", 1, (int64_t[]){ 2 });
    b = fresh(c);
    expect_i64s(c, counting(&b, build_scalar(&b, I64, 9), build_scalar(&b, BOOL, 1), 0), "i64[]", 1, (int64_t[]){ 3 });
    /* no turn: nothing is stacked, and the type says so before anything runs */
    b = fresh(c);
    Node *none = counting(&b, build_scalar(&b, I64, -4), build_scalar(&b, BOOL, 1), 1);
    assert_string_equal(type_text(&c->arena, none->type), "i64[0]");
    expect_i64s(c, none, "i64[0]", 0, NULL);
    return OK;
}

static Status endless_loops_end(void *arg)
{
    Context *c = arg;
    c->ir.limits.loop_iterations = 50;
    Build b = fresh(c);
    Tensor *out;
    assert_int_equal(run(c, counting(&b, NULL, NULL, 0), &out), INVALID);
    assert_non_null(strstr(c->last, "loop_iterations (50)"));
    return OK;
}

/* The number of turns is known where nothing can end the loop early. */
static Status turns_are_inferred(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Node *cond = graph_input(b.graph, "c", type_scalar(&c->ir.types, BOOL));
    assert_string_equal(type_text(&c->arena, counting(&b, build_scalar(&b, I64, 5), NULL, 1)->type), "i64[5]");
    assert_string_equal(type_text(&c->arena, counting(&b, build_scalar(&b, I64, 5), cond, 1)->type), "i64[?]");
    return OK;
}

static Status bodies_must_fit(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Graph *body = counting_body(&b);
    Node *ins[] = { build_scalar(&b, I64, 1), NULL, build_scalar(&b, F32, 0) };
    assert_null(build_with_regions(&b, OP_loop, NULL, 3, ins, 2, 1, &body));
    assert_non_null(strstr(c->last, "takes i64[] as parameter 2 and is given f32[]"));
    b = fresh(c), body = counting_body(&b);
    Node *few[] = { build_scalar(&b, I64, 1), NULL };
    assert_null(build_with_regions(&b, OP_loop, NULL, 2, few, 2, 1, &body));
    assert_non_null(strstr(c->last, "takes 3 values"));
    b = fresh(c), body = counting_body(&b);
    const LoopAttr at = { 7 };
    Node *some[] = { build_scalar(&b, I64, 1), NULL, build_scalar(&b, I64, 0) };
    assert_null(build_with_regions(&b, OP_loop, &at, 3, some, 2, 1, &body));
    assert_non_null(strstr(c->last, "7 operands of its own"));
    return OK;
}

/* An optional that the first turn fills: later turns carry its element. */
static Status optionals_unwrap(void *arg)
{
    Context *c = arg;
    Types *types = &c->ir.types;
    const Type *list = type_seq(types, type_unranked(types, I64));
    for (int most = 0; most < 3; most++) {
        Build b = fresh(c);
        Graph *body = region_new(b.graph), *bodies[2] = { region_new(b.graph), region_new(b.graph) };
        Build in = build_at_end(body), yes = build_at_end(bodies[0]), no = build_at_end(bodies[1]);
        Node *i = graph_input(body, "i", type_scalar(types, I64));
        Node *cond = graph_input(body, "cond", type_scalar(types, BOOL));
        Node *x = graph_input(body, "x", type_optional(types, list));
        Node *got = CALL(&yes, optional_get_element, graph_input(bodies[0], "x", x->type));
        graph_input(bodies[1], "x", x->type);
        struct {
            int dtype;
        } empty = { I64 + 1 };
        Node *none = build_node(&no, OP_sequence_empty, &empty, 0, NULL);
        graph_return(bodies[0], 1, &got, NULL);
        graph_return(bodies[1], 1, &none, NULL);
        Node *ins[] = { CALL(&in, optional_has_element, x), x };
        Node *s = build_with_regions(&in, OP_if, NULL, 2, ins, 1, 2, bodies);
        Node *results[] = { cond, CALL(&in, sequence_insert, s, i) };
        assert_int_equal(in.status, OK);
        graph_return(body, 2, results, NULL);

        struct {
            const Type *type;
        } of = { list };
        Node *outer[] = { build_scalar(&b, I64, most), NULL, build_node(&b, OP_optional, &of, 0, NULL) };
        Node *y = build_with_regions(&b, OP_loop, NULL, 3, outer, 1, 1, &body);
        Tensor *out;
        assert_non_null(y);
        assert_true(y->type->kind == TYPE_SEQ);
        if (most == 0) {
            assert_int_equal(run(c, y, &out), INVALID);
            assert_non_null(strstr(c->last, "empty optional"));
            continue;
        }
        assert_int_equal(run(c, y, &out), OK);
        assert_int_equal(out->n_items, most);
        assert_int_equal(tensor_get_i64(out->items[most - 1], 0), most - 1);
        tensor_drop(&c->heap, out);
    }
    return OK;
}

/* Deep in a loop nothing piles up in scratch memory. */
static Status long_loops_stay_small(void *arg)
{
    Context *c = arg;
    Types *types = &c->ir.types;
    Build b = fresh(c);
    Graph *g = region_new(b.graph);
    Build in = build_at_end(g);
    graph_input(g, "i", type_scalar(types, I64));
    Node *cond = graph_input(g, "cond", type_scalar(types, BOOL)), *x = graph_input(g, "x", type_scalar(types, I64));
    Node *results[] = { cond, CALL(&in, add, x, x) };
    graph_return(g, 2, results, NULL);
    Node *ins[] = { build_scalar(&b, I64, 20000), NULL, build_scalar(&b, I64, 0) };
    Node *y = build_with_regions(&b, OP_loop, NULL, 3, ins, 1, 1, &g);
    const uint64_t before = c->memory.peak;
    Tensor *out;
    assert_int_equal(run(c, y, &out), OK);
    tensor_drop(&c->heap, out);
    assert_true(c->memory.peak - before < 1 << 20);
    return OK;
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
TEST(loops_end)
TEST(endless_loops_end)
TEST(turns_are_inferred)
TEST(bodies_must_fit)
TEST(optionals_unwrap)
TEST(long_loops_stay_small)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_end),          cmocka_unit_test(test_endless_loops_end),
        cmocka_unit_test(test_turns_are_inferred), cmocka_unit_test(test_bodies_must_fit),
        cmocka_unit_test(test_optionals_unwrap),   cmocka_unit_test(test_long_loops_stay_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
