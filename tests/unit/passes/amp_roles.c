/* The role of each node in mixed precision: cards, --keep-fp32, f64, operators without a class, the way back. */
#include "testing.h"

#include "ir/text/parse.h"
#include "ops/card/words.h"
#include "passes/amp/amp.h"

static const char model[] = "graph @f(%x: f32[2,3], %d: f64[2]) -> (%p, %e, %g, %q) {\n"
                            "    param %head.weight: f32[3,3] = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
                            "    %a: f32[2,3] = matmul(%x, %head.weight) !1 node=\"/body/MatMul\"\n"
                            "    %t: f32[3,3] = transpose(%head.weight) !2 node=\"/tied/Transpose\"\n"
                            "    %b: f32[2,3] = matmul(%a, %t) !3 node=\"/tied/MatMul\"\n"
                            "    %p: f32[2,3] = softmax(%b) !4 node=\"/tied/Softmax\"\n"
                            "    %e: f64[2] = exp(%d) !5\n"
                            "    %g: f32[2,3] = mul(%p, %b) !4 side=backward\n"
                            "    %q: f32[2,3] = mul(%a, %b) !1 side=backward\n"
                            "}\n";

/* The roles of a text's first graph. */
static Status roles_of(Context *c, const char *text, const Precision *p, Graph **g, AmpRoles **roles)
{
    Module *m = NULL;
    PassRun run = { .scratch = &c->arena, .diag = &c->diag };
    assert_int_equal(parse_module(&c->ir, &c->arena, str(text), "t.qir", NULL, NULL, &m), OK);
    *g = m->graphs[0];
    return amp_roles_open(*g, &run, p, roles);
}

static AmpRole role_named(Graph *g, const AmpRoles *roles, const char *name)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        if (n->name && strcmp(n->name, name) == 0)
            return amp_role(roles, n);
    print_error("no node is called %s\n", name);
    assert_true(false);
    return (AmpRole){ .class = AMP_UNSET };
}

static void is_role(Graph *g, const AmpRoles *roles, const char *name, AmpClass class, const char *forced)
{
    const AmpRole r = role_named(g, roles, name);
    assert_string_equal(amp_word(r.class), amp_word(class));
    assert_string_equal(r.forced ? r.forced : "the card", forced ? forced : "the card");
}

static Status cards_speak(void *arg)
{
    Context *c = arg;
    Graph *g;
    AmpRoles *roles;
    const Precision p = { .on = true, .narrow = BF16 };
    assert_int_equal(roles_of(c, model, &p, &g, &roles), OK);
    is_role(g, roles, "a", AMP_T, NULL);
    is_role(g, roles, "t", AMP_P, NULL);
    is_role(g, roles, "p", AMP_S, NULL);
    is_role(g, roles, "e", AMP_X, "holds f64");
    is_role(g, roles, "g", AMP_W, NULL);
    amp_roles_close(roles);
    return OK;
}

static Status kept_nodes_keep_their_way_back(void *arg)
{
    Context *c = arg;
    Graph *g;
    AmpRoles *roles;
    const char *kept[] = { "op:Softmax", "body" };
    const Precision p = { .on = true, .narrow = F16, .keep_wide = kept, .n_keep_wide = 2 };
    assert_int_equal(roles_of(c, model, &p, &g, &roles), OK);
    is_role(g, roles, "a", AMP_F, "--keep-fp32 'body'");
    is_role(g, roles, "b", AMP_T, NULL);
    is_role(g, roles, "p", AMP_F, "--keep-fp32 'op:Softmax'");
    is_role(g, roles, "g", AMP_F, "--keep-fp32 'op:Softmax'");
    is_role(g, roles, "q", AMP_F, "--keep-fp32 'body'");
    amp_roles_close(roles);
    return OK;
}

/* A parameter keeps what reads it, and what reads it through moves. */
static Status kept_parameters_keep_their_readers(void *arg)
{
    Context *c = arg;
    Graph *g;
    AmpRoles *roles;
    const char *kept[] = { "^head" };
    const Precision p = { .on = true, .narrow = F16, .keep_wide = kept, .n_keep_wide = 1 };
    assert_int_equal(roles_of(c, model, &p, &g, &roles), OK);
    is_role(g, roles, "a", AMP_F, "--keep-fp32 '^head'");
    is_role(g, roles, "t", AMP_F, "--keep-fp32 '^head'");
    is_role(g, roles, "b", AMP_F, "--keep-fp32 '^head'");
    is_role(g, roles, "p", AMP_S, NULL);
    amp_roles_close(roles);
    return OK;
}

static Status a_selector_that_matches_nothing(void *arg)
{
    Context *c = arg;
    Graph *g;
    AmpRoles *roles;
    const char *kept[] = { "op:Sofmax" };
    const Precision p = { .on = true, .narrow = F16, .keep_wide = kept, .n_keep_wide = 1 };
    assert_int_equal(roles_of(c, model, &p, &g, &roles), USAGE);
    assert_non_null(strstr(c->last, "--keep-fp32 'op:Sofmax' matches no operator\n  try: op:Softmax"));
    return OK;
}

/* As a table of somebody else's operators would have it: no class for relu. */
static Status operators_without_a_class(void *arg)
{
    static const char text[] = "graph @f(%x: f32[2]) -> (%y, %z) {\n"
                               "    %y: f32[2] = relu(%x) !1 node=\"/first\"\n"
                               "    %z: f32[2] = relu(%y) !2 node=\"/second\"\n"
                               "}\n";
    Context *c = arg;
    Graph *g;
    AmpRoles *roles;
    OpDef plain = *ops_table.defs[OP_relu];
    const OpDef **defs = NEWS(&c->arena, const OpDef *, ops_table.n);
    memcpy(defs, ops_table.defs, ops_table.n * sizeof *defs);
    plain.amp = (AmpCard){ .f16 = AMP_UNSET };
    defs[OP_relu] = &plain;
    const OpTable table = { defs, ops_table.n };
    c->ir.ops = &table;
    Precision p = { .on = true, .narrow = F16 };
    assert_int_equal(roles_of(c, text, &p, &g, &roles), USAGE);
    assert_non_null(strstr(c->last, "/first"));
    assert_non_null(strstr(c->last, "/second"));
    assert_non_null(strstr(c->last, "--lenient"));
    p.lenient = true;
    assert_int_equal(roles_of(c, text, &p, &g, &roles), OK);
    is_role(g, roles, "y", AMP_F, "no entry");
    is_role(g, roles, "z", AMP_F, "no entry");
    const char *kept[] = { "op:Relu" };
    p = (Precision){ .on = true, .narrow = F16, .keep_wide = kept, .n_keep_wide = 1 };
    assert_int_equal(roles_of(c, text, &p, &g, &roles), OK);
    is_role(g, roles, "y", AMP_F, "--keep-fp32 'op:Relu'");
    c->ir.ops = &ops_table;
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(cards_speak)
TEST(kept_nodes_keep_their_way_back)
TEST(kept_parameters_keep_their_readers)
TEST(a_selector_that_matches_nothing)
TEST(operators_without_a_class)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards_speak),
        cmocka_unit_test(test_kept_nodes_keep_their_way_back),
        cmocka_unit_test(test_kept_parameters_keep_their_readers),
        cmocka_unit_test(test_a_selector_that_matches_nothing),
        cmocka_unit_test(test_operators_without_a_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
