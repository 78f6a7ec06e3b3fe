/* Shadows of a session: at every moment equal, bit for bit, to the master rounded to nearest even. */
#include <math.h>

#include "ir/text/parse.h"
#include "ops/update/shadow.h"
#include "runtime/session/session.h"
#include "support/language.h"
#include "testing.h"

/* 1 + 2^-9 and 1 + 3 2^-9 are ties of bf16: they go to the even neighbours, 1 and 1 + 2^-6 ... */
static const char step_text[] =
    "graph @step(%x: f32[2], state %w: f32[2] = [1.001953125, 1.005859375] trained, state %k: f32[2] = [3.001, -5.007], "
    "state %\"qcc.shadow/w\": bf16[2], state %\"qcc.shadow/k\": f16[2], state %seen: f32[]) -> "
    "(%loss, %y, %grad.w = %g, %w = %w1, %\"qcc.shadow/w\" = %s1, %seen = %n1) {\n"
    "    %xn: bf16[2] = amp_cast(%x, to=bf16)\n"
    "    %p: bf16[2] = mul(%xn, %\"qcc.shadow/w\")\n"
    "    %y: f32[2] = amp_cast(%p, to=f32)\n"
    "    %kw: f32[2] = amp_cast(%\"qcc.shadow/k\", to=f32)\n"
    "    %q: f32[2] = mul(%y, %kw)\n"
    "    %loss: f32[] = reduce_sum(%q, keepdims=false)\n"
    "    const %one: f32[] = 1\n"
    "    %n1: f32[] = add(%seen, %one)\n"
    "    %g: f32[2] = identity(%x) side=backward\n"
    "    const %rate: f32[] = 0.001 side=update\n"
    "    %d: f32[2] = mul(%g, %rate) side=update\n"
    "    %w1: f32[2] = sub(%w, %d) side=update\n"
    "    %s1: bf16[2] = amp_cast(%w1, to=bf16) side=update\n"
    "}\n"
    "graph @eval(%x: f32[2], state %w: f32[2] = [1.001953125, 1.005859375]) -> (%y) {\n"
    "    %y: f32[2] = mul(%x, %w)\n"
    "}\n";

typedef struct Case {
    Language l;
    Session *s;
    float x[2], to[2];
    Tensor input, value;
} Case;

static void equals_rounded(Case *c, const char *master, const char *shadow)
{
    const Tensor *have = session_view(c->s, shadow), *of = session_view(c->s, master);
    assert_non_null(have);
    Tensor *want = tensor_new(&c->l.arena, have->type);
    shadow_fill(want, of);
    assert_true(tensor_same(have, want));
}

static void shadows_follow(Case *c)
{
    equals_rounded(c, "w", "qcc.shadow/w");
    equals_rounded(c, "k", "qcc.shadow/k");
}

static Status open_case(Case *c)
{
    static const SessionOptions options = { 0 };
    Module *m = language_parse(&c->l, step_text, NULL);
    assert_non_null(m);
    TRY(session_open(m, &options, &c->l.arena, &c->s));
    c->input = (Tensor){ .type = type_vector(&m->ir->types, F32, 2), .data = c->x, .bytes = sizeof c->x, .refs = 1 };
    c->value = c->input;
    c->value.data = c->to;
    return OK;
}

static RunResult run(Case *c, unsigned what, float a, float b)
{
    RunResult r;
    c->x[0] = a;
    c->x[1] = b;
    assert_int_equal(session_bind(c->s, "x", &c->input), OK);
    assert_int_equal(session_run(c->s, what, &r), OK);
    return r;
}

static void put(Case *c, const char *name, float a, float b)
{
    c->to[0] = a;
    c->to[1] = b;
    assert_int_equal(session_put(c->s, name, &c->value), OK);
}

/* What forward made of the shadow. */
static void expect_y(Case *c, double a, double b)
{
    const Tensor *y = session_view(c->s, "y");
    assert_true(tensor_get_f64(y, 0) == a && tensor_get_f64(y, 1) == b);
}

static Status from_the_beginning(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    shadows_follow(c);
    run(c, RUN_FORWARD, 1, 1);
    expect_y(c, 1, 1.0078125);
    shadows_follow(c);
    session_close(c->s);
    return OK;
}

static Status after_steps(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    for (int i = 0; i < 20; i++) {
        assert_true(run(c, RUN_STEP, 1 + (float)i, -3).applied);
        shadows_follow(c);
    }
    session_close(c->s);
    return OK;
}

static Status after_a_skipped_step(void *arg)
{
    Case *c = arg;
    uint16_t before[2];
    TRY(open_case(c));
    run(c, RUN_STEP, 1, 2);
    memcpy(before, session_view(c->s, "qcc.shadow/w")->data, sizeof before);
    assert_false(run(c, RUN_STEP, INFINITY, 1).applied);
    assert_memory_equal(session_view(c->s, "qcc.shadow/w")->data, before, sizeof before);
    shadows_follow(c);
    session_close(c->s);
    return OK;
}

static Status after_a_put(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    run(c, RUN_STEP, 1, 2);
    put(c, "w", 7.03125f, -0.1f);
    put(c, "k", 1e-9f, 1e9f);
    run(c, RUN_FORWARD, 1, 0);
    shadows_follow(c);
    put(c, "w", 2.001f, 3.001f); /* in the middle of a step: for what it has still to do */
    shadows_follow(c);
    run(c, RUN_BACKWARD, 1, 0);
    assert_int_equal(session_run(c->s, RUN_UPDATE, NULL), OK);
    shadows_follow(c);
    run(c, RUN_EVAL, 1, 1);
    run(c, RUN_STEP, 1, 1);
    shadows_follow(c);
    assert_int_equal(session_put(c->s, "qcc.shadow/w", &c->value), USAGE);
    session_close(c->s);
    return OK;
}

static Status after_all_were_replaced(void *arg)
{
    Case *c = arg;
    size_t n;
    Heap heap;
    TRY(open_case(c));
    const State *states = session_states(c->s, &n);
    assert_int_equal(n, 3); /* shadows are nobody's business */
    for (size_t i = 0; i < n; i++)
        assert_int_not_equal(states[i].mark.role, STATE_shadow);
    run(c, RUN_STEP, 1, 2);
    heap_open(&heap, &c->l.memory);
    Tensor *values[3] = { tensor_alloc(&heap, states[0].type) };
    tensor_set_f64(values[0], 0, 1.00390625);
    tensor_set_f64(values[0], 1, 1.01171875);
    assert_int_equal(session_adopt(c->s, values), OK);
    heap_close(&heap);
    shadows_follow(c);
    run(c, RUN_FORWARD, 1, 1);
    expect_y(c, 1, 1.015625);
    session_close(c->s);
    return OK;
}

/* Running once more sees the shadows of the states as they are. */
static void hear(void *user, const Node *n, const Tensor *value)
{
    if (n->name && strcmp(n->name, "y") == 0)
        *(double *)user = tensor_get_f64(value, 0);
}

static Status in_a_replay(void *arg)
{
    Case *c = arg;
    double y = 0;
    TRY(open_case(c));
    run(c, RUN_STEP, 1, 1);
    put(c, "w", 5, 6);
    TRY(session_replay(c->s, hear, &y));
    assert_true(y == 5);
    session_close(c->s);
    return OK;
}

static Status without_a_master(void *arg)
{
    Case *c = arg;
    static const SessionOptions options = { 0 };
    static const char *const texts[] = {
        "graph @step(state %\"qcc.shadow/w\": bf16[2]) -> (%\"qcc.shadow/w\") {\n}\n",
        "graph @step(state %w: f32[3], state %\"qcc.shadow/w\": bf16[2]) -> (%\"qcc.shadow/w\") {\n}\n",
        "graph @step(%w: f32[2], state %\"qcc.shadow/w\": bf16[2]) -> (%\"qcc.shadow/w\") {\n}\n",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        Module *m = language_parse(&c->l, texts[i], NULL);
        assert_non_null(m);
        assert_int_equal(session_open(m, &options, &c->l.arena, &c->s), INVALID);
    }
    return OK;
}

static void with_case(Status (*body)(void *))
{
    Case c = { 0 };
    language_open(&c.l);
    assert_int_equal(guarded(&c.l.memory, body, &c), OK);
    language_close(&c.l);
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_case(name);                                                                                               \
    }
TEST(from_the_beginning)
TEST(after_steps)
TEST(after_a_skipped_step)
TEST(after_a_put)
TEST(after_all_were_replaced)
TEST(in_a_replay)
TEST(without_a_master)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_the_beginning),      cmocka_unit_test(test_after_steps),
        cmocka_unit_test(test_after_a_skipped_step),    cmocka_unit_test(test_after_a_put),
        cmocka_unit_test(test_after_all_were_replaced), cmocka_unit_test(test_in_a_replay),
        cmocka_unit_test(test_without_a_master),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
