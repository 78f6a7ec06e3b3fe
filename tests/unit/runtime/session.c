/* A session: phases, gradients that add up, what the host puts and views, and steps that change nothing. */
#include <math.h>

#include "ir/text/parse.h"
#include "runtime/session/session.h"
#include "support/language.h"
#include "testing.h"

static const char step_text[] = "graph @step(%x: f32[2], state %w: f32[2] = [1, 2] trained, state %seen: f32[] = 0) -> "
                                "(%loss, %grad.w = %g, %w = %w1, %seen = %s1) {\n"
                                "    const %one: f32[] = 1\n"
                                "    %p: f32[2] = mul(%x, %w)\n"
                                "    %s1: f32[] = add(%seen, %one)\n"
                                "    %loss: f32[] = reduce_sum(%p, keepdims=false)\n"
                                "    %g: f32[2] = identity(%x) side=backward\n"
                                "    const %rate: f32[] = 0.5 side=update\n"
                                "    %d: f32[2] = mul(%g, %rate) side=update\n"
                                "    %w1: f32[2] = sub(%w, %d) side=update\n"
                                "}\n"
                                "graph @eval(%x: f32[2], state %w: f32[2] = [1, 2]) -> (%y) {\n"
                                "    %y: f32[2] = mul(%x, %w)\n"
                                "}\n";

static const char idle_text[] = "graph @step(%grad.y: f32[], state %w: f32[] = 1 trained) -> (%y, %w = %w1) {\n"
                                "    const %y: f32[] = 1\n"
                                "    %g: f32[] = identity(%y) side=backward\n"
                                "    %w1: f32[] = add(%w, %g) side=update\n"
                                "}\n";

static const char narrow_text[] = "graph @step(%x: f32[2], state %w: f32[2] = [1, 2] trained) -> "
                                  "(%loss, %grad.w = %g, %w = %w1) {\n"
                                  "    %xn: f16[2] = amp_cast(%x, to=f16)\n"
                                  "    %wn: f16[2] = amp_cast(%w, to=f16)\n"
                                  "    %p: f16[2] = mul(%xn, %wn)\n"
                                  "    %u: f32[2] = amp_cast(%p, to=f32)\n"
                                  "    %loss: f32[] = reduce_sum(%u, keepdims=false)\n"
                                  "    %g: f32[2] = identity(%x) side=backward\n"
                                  "    %w1: f32[2] = sub(%w, %g) side=update\n"
                                  "}\n";

/* A third graph, with an input of another shape than the step's and a state that no other graph has. */
static const char observed_text[] =
    "graph @step(%x: f32[2], state %w: f32[2] = [1, 2] trained) -> (%loss, %w = %w1) {\n"
    "    %p: f32[2] = mul(%x, %w)\n"
    "    %loss: f32[] = reduce_sum(%p, keepdims=false)\n"
    "    %w1: f32[2] = add(%w, %x) side=update\n"
    "}\n"
    "graph @probe(state %scale: f32[] = 3, state %w: f32[2] = [1, 2], %x: f32[?]) -> "
    "(%y, %loss) {\n"
    "    %y: f32[2] = mul(%w, %scale)\n"
    "    %loss: f32[] = reduce_sum(%x, keepdims=false)\n"
    "}\n";

typedef struct Case {
    Language l;
    Session *s;
    float x[2];
    Tensor value;
} Case;

static void expect(Case *c, const char *name, double a, double b)
{
    const Tensor *t = session_view(c->s, name);
    assert_non_null(t);
    assert_true(tensor_get_f64(t, 0) == a);
    assert_true(tensor_elements(t) == 1 || tensor_get_f64(t, 1) == b);
}

static Status open_text(Case *c, const char *text, const SessionOptions *options)
{
    Module *m = language_parse(&c->l, text, NULL);
    assert_non_null(m);
    TRY(session_open(m, options, &c->l.arena, &c->s));
    c->value = (Tensor){ .type = type_vector(&m->ir->types, F32, 2), .data = c->x, .bytes = sizeof c->x, .refs = 1 };
    return OK;
}

static Status open_case(void *arg)
{
    return open_text(arg, step_text, &(SessionOptions){ 0 });
}

static RunResult run(Case *c, unsigned what, float a, float b)
{
    RunResult r;
    c->x[0] = a;
    c->x[1] = b;
    assert_int_equal(session_bind(c->s, "x", &c->value), OK);
    assert_int_equal(session_run(c->s, what, &r), OK);
    return r;
}

static Status whole_steps(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    RunResult r = run(c, RUN_STEP, 1, -1);
    assert_true(r.applied && r.finite && r.step == 1 && r.has_loss && r.loss == -1);
    expect(c, "w", 0.5, 2.5);
    expect(c, "grad.w", 1, -1);
    expect(c, "seen", 1, 0);
    r = run(c, RUN_EVAL, 2, 2);
    expect(c, "y", 1, 5);
    assert_null(session_view(c->s, "loss"));
    r = run(c, RUN_STEP, NAN, 0);
    assert_true(!r.applied && !r.finite && r.step == 2);
    expect(c, "w", 0.5, 2.5);
    expect(c, "seen", 1, 0);
    session_close(c->s);
    return OK;
}

static Status parts(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    run(c, RUN_FORWARD, 1, -1);
    expect(c, "loss", -1, 0);
    expect(c, "w", 1, 2);
    assert_int_equal(session_run(c->s, RUN_UPDATE, NULL), USAGE);
    run(c, RUN_BACKWARD, 1, -1);
    c->x[0] = 4;
    c->x[1] = 2;
    assert_int_equal(session_put(c->s, "grad.w", &c->value), OK);
    assert_int_equal(session_run(c->s, RUN_UPDATE, NULL), OK);
    expect(c, "w", -1, 1);
    assert_int_equal(session_put(c->s, "grad.w", &c->value), USAGE);
    assert_int_equal(session_put(c->s, "w", &c->value), OK);
    expect(c, "w", 4, 2);
    session_close(c->s);
    return OK;
}

static Status sums(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    run(c, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 1, 2);
    run(c, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 3, 4);
    expect(c, "grad.w", 4, 6);
    expect(c, "seen", 0, 0);
    assert_int_equal(session_run(c->s, RUN_UPDATE, NULL), OK);
    expect(c, "w", -1, -1);
    expect(c, "seen", 2, 0);
    run(c, RUN_STEP, 1, 1);
    expect(c, "w", -1.5, -1.5);
    session_close(c->s);
    return OK;
}

/* The gradient of an output that no parameter moves: nobody reads it, and nobody has to bind it. */
static Status idle_gradient(void *arg)
{
    Case *c = arg;
    static const SessionOptions options = { 0 };
    Module *m = language_parse(&c->l, idle_text, NULL);
    assert_non_null(m);
    TRY(session_open(m, &options, &c->l.arena, &c->s));
    for (int i = 0; i < 3; i++)
        assert_int_equal(session_run(c->s, RUN_STEP, NULL), OK);
    assert_true(tensor_get_f64(session_view(c->s, "w"), 0) == 4);
    session_close(c->s);
    return OK;
}

/* What rounding did to the results of a step is added up over the steps. */
static Status roundings(void *arg)
{
    Case *c = arg;
    RoundingCounts counts = { 0 };
    TRY(open_text(c, narrow_text, &(SessionOptions){ .rounding = &counts }));
    run(c, RUN_STEP, 3, 0x1p-16f);
    assert_true(counts.rounded == 6 && counts.subnormal == 2 && counts.flushed == 0 && counts.overflowed == 0);
    run(c, RUN_STEP, 65536, 1e-9f);
    assert_true(counts.rounded == 12 && counts.subnormal == 2 && counts.flushed == 1 && counts.overflowed == 1);
    session_close(c->s);
    return OK;
}

/* Graphs are asked for by name; each has its own results, and all of them the same states. */
static Status many_graphs(void *arg)
{
    static const char *const names[] = { "step", "eval", "probe", NULL };
    Case *c = arg;
    RunResult r;
    TRY(open_text(c, observed_text, &(SessionOptions){ .graphs = names }));
    run(c, RUN_STEP, 1, -1);
    assert_int_equal(session_run_graph(c->s, "probe", &r), OK);
    assert_true(r.has_loss && r.loss == 0 && r.step == 1);
    expect(c, "y", 6, 3);
    expect(c, "scale", 3, 0);
    c->value.type = type_vector(&c->l.ir.types, F32, 1); /* which the step would not take */
    c->value.bytes = sizeof *c->x;
    c->x[0] = 5;
    assert_int_equal(session_bind(c->s, "x", &c->value), OK);
    assert_int_equal(session_run_graph(c->s, "probe", &r), OK);
    assert_true(r.loss == 5);
    assert_int_equal(session_run(c->s, RUN_STEP, NULL), USAGE);
    assert_int_equal(session_run(c->s, RUN_EVAL, NULL), USAGE);
    assert_int_equal(session_run_graph(c->s, "step", NULL), USAGE);
    session_close(c->s);
    TRY(open_text(c, observed_text, &(SessionOptions){ 0 }));
    assert_int_equal(session_run_graph(c->s, "probe", NULL), USAGE); /* nobody asked for it */
    assert_null(session_view(c->s, "scale"));
    session_close(c->s);
    return OK;
}

static Status refusals(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    assert_int_equal(session_run(c->s, RUN_STEP, NULL), USAGE);
    assert_int_equal(session_run(c->s, RUN_BACKWARD, NULL), USAGE);
    assert_int_equal(session_bind(c->s, "y", &c->value), USAGE);
    assert_int_equal(session_run(c->s, RUN_EVAL | RUN_FORWARD, NULL), USAGE);
    session_close(c->s);
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
TEST(whole_steps)
TEST(parts)
TEST(sums)
TEST(idle_gradient)
TEST(roundings)
TEST(many_graphs)
TEST(refusals)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_steps),   cmocka_unit_test(test_parts),     cmocka_unit_test(test_sums),
        cmocka_unit_test(test_idle_gradient), cmocka_unit_test(test_roundings), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
