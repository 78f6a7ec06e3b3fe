/* A life of training in which one call of the engine fails, each in turn, or a run is stopped and ends late: what was going on
 * changed no state, and, done once more, ends in the bits of a life without. */
#include <math.h>
#include <string.h>

#include "double/engine_double.h"
#include "passes/pipelines.h"
#include "runtime/session/session.h"
#include "support/language.h"
#include "support/recipe.h"
#include "unit/check.h"

/* Weights with shadows, a state that forward moves, @eval. */
static const char shadows[] = "graph @step(%x: f32[2], state %w: f32[2] = [1.001953125, 1.005859375] trained, "
                              "state %\"qcc.shadow/w\": bf16[2], state %seen: f32[]) -> "
                              "(%loss, %grad.w = %g, %w = %w1, %\"qcc.shadow/w\" = %s1, %seen = %n1) {\n"
                              "    %xn: bf16[2] = amp_cast(%x, to=bf16)\n"
                              "    %p: bf16[2] = mul(%xn, %\"qcc.shadow/w\")\n"
                              "    %y: f32[2] = amp_cast(%p, to=f32)\n"
                              "    %loss: f32[] = reduce_sum(%y, keepdims=false)\n"
                              "    const %one: f32[] = 1\n"
                              "    %n1: f32[] = add(%seen, %one)\n"
                              "    %g: f32[2] = mul(%x, %y) side=backward\n"
                              "    const %rate: f32[] = 0.001 side=update\n"
                              "    %d: f32[2] = mul(%g, %rate) side=update\n"
                              "    %w1: f32[2] = sub(%w, %d) side=update\n"
                              "    %s1: bf16[2] = amp_cast(%w1, to=bf16) side=update\n"
                              "}\n"
                              "graph @eval(%x: f32[2], state %w: f32[2] = [1.001953125, 1.005859375]) -> (%y) {\n"
                              "    %y: f32[2] = mul(%x, %w)\n"
                              "}\n";

static const char scaled[] = "graph @step(%x: f32[2], state %w: f32[2] = [0.5, -1] trained, state %seen: f32[]) -> "
                             "(%loss, %seen = %more) {\n"
                             "    %y: f32[2] = mul(%x, %w)\n"
                             "    %loss: f32[] = reduce_sum_square(%y, keepdims=false)\n"
                             "    %mean: f32[] = reduce_mean(%x, keepdims=false)\n"
                             "    %more: f32[] = add(%seen, %mean)\n"
                             "}\n";

typedef struct Kind {
    const char *text, *options; /* null: the text is a whole step */
    bool evaluates;
} Kind;

static const Kind kinds[] = {
    { shadows, NULL, true },
    { scaled, "--optimizer momentum:lr=0.05 --clip-norm 0.4 --loss-scale dynamic:init=1024,interval=2", false },
};

enum { STATES = 512 };

typedef struct Life {
    Language l;
    const Kind *kind;
    Session *s;
    float x[2], put[2], given[2];
    char bytes[STATES]; /* of all states at its end */
    size_t n;
} Life;

/* ---- a session ---- */

static Status make_step(Life *c, Module *m)
{
    static const char *const names[] = { "differentiate", "scale-loss", "accumulate", "clip", "update", "ema" };
    Recipe recipe = { .n_groups = 0 };
    TRY(recipe_from_options(&recipe, &c->l.ir, &c->l.arena, str(c->kind->options), NULL));
    const PassOptions options = { .recipe = &recipe };
    for (size_t i = 0; i < COUNT(names); i++) {
        const Pass *pass = pass_find(names[i]);
        PassRun run = { .pass = pass, .options = &options, .diag = &c->l.diag, .scratch = &c->l.arena, .allowed = -1 };
        TRY(pass_run(pass, m->graphs[0], &run));
    }
    return OK;
}

static Status open_session(Life *c)
{
    static const SessionOptions options = { .engine = &engine_double };
    Module *m = language_parse(&c->l, c->kind->text, NULL);
    assert_non_null(m);
    if (c->kind->options)
        TRY(make_step(c, m));
    return session_open(m, &options, &c->l.arena, &c->s);
}

/* All states, without the failure that is planned. */
static size_t states_of(Session *s, char *to)
{
    const DoublePlan plan = double_plan;
    size_t n, at = 0;
    const State *states = session_states(s, &n);
    double_plan.fail_at = 0;
    for (size_t i = 0; i < n; i++) {
        const Tensor *value;
        assert_int_equal(session_value(s, &states[i], &value), OK);
        assert_true(at + value->bytes <= STATES);
        memcpy(to + at, value->data, value->bytes);
        at += value->bytes;
    }
    double_plan = plan;
    return at;
}

/* ---- what is done with it ---- */

static Tensor vector(Life *c, float *values)
{
    return (
        Tensor){ .type = type_vector(&c->l.ir.types, F32, 2), .data = values, .bytes = 2 * sizeof *values, .refs = 1 };
}

static Status run(Life *c, unsigned what, int i)
{
    const Tensor x = vector(c, c->x);
    c->x[0] = (float)sin(0.37 * (i + 1));
    c->x[1] = (float)cos(0.9 * (i + 2));
    TRY(session_bind(c->s, "x", &x));
    return session_run(c->s, what, NULL);
}

static Status put(Life *c, const char *name, float a, float b)
{
    const Tensor value = vector(c, c->put);
    c->put[0] = a;
    c->put[1] = b;
    return session_put(c->s, name, &value);
}

static Status see(Life *c, const char *name)
{
    return session_view(c->s, name) ? OK : DEVICE;
}

static Status whole_step(Life *c)
{
    return run(c, RUN_STEP, 1);
}

static Status window(Life *c)
{
    TRY(run(c, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 2));
    TRY(run(c, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 3));
    TRY(see(c, "grad.w"));
    TRY(run(c, RUN_FORWARD | RUN_BACKWARD | RUN_ACCUMULATE, 4));
    return run(c, RUN_UPDATE, 4);
}

/* Gradients of the host; what a step reads is put in its midst. */
static Status sides(Life *c)
{
    TRY(run(c, RUN_FORWARD, 5));
    TRY(run(c, RUN_BACKWARD, 5));
    TRY(put(c, "grad.w", 0.25f, -3));
    return run(c, RUN_UPDATE, 5);
}

/* A step before which the one behind it is given what it reads; */
static Status giving_step(Life *c)
{
    const Tensor given = vector(c, c->given);
    c->given[0] = -0.75f;
    c->given[1] = 0.625f;
    TRY(session_bind_next(c->s, "x", &given));
    return run(c, RUN_STEP, 7);
}

/* and that one. */
static Status given_step(Life *c)
{
    return session_run(c->s, RUN_STEP, NULL);
}

static Status put_weight(Life *c)
{
    return put(c, "w", 1.25f, 1.0078f);
}

static Status put_amid(Life *c)
{
    TRY(run(c, RUN_FORWARD, 6));
    return put(c, "w", 1.375f, 0.0078f);
}

static Status evaluation(Life *c)
{
    return c->kind->evaluates ? run(c, RUN_EVAL, 6) : OK;
}

static Status shadow_seen(Life *c)
{
    return c->kind->evaluates ? see(c, "qcc.shadow/w") : OK;
}

static Status (*const acts[])(Life *c) = { whole_step, window,      evaluation, put_weight,  shadow_seen,
                                           sides,      put_amid,    whole_step, giving_step, evaluation,
                                           given_step, shadow_seen, whole_step };

/* One act.  What fails leaves the states as they were, and is done again. */
static Status act(Life *c, Status (*what)(Life *c))
{
    char before[STATES], after[STATES];
    const size_t n = states_of(c->s, before);
    const Status status = what(c);
    if (status == OK)
        return OK;
    assert_int_equal(states_of(c->s, after), n);
    check_that(memcmp(before, after, n) == 0, "call %d of the engine failed and changed a state", double_plan.fail_at);
    assert_true(status == (double_plan.late_at ? INTERRUPTED : DEVICE));
    double_plan.fail_at = 0;
    TRY(session_forget(c->s));
    return what(c);
}

static Status live(void *arg)
{
    Life *c = arg;
    const Status status = open_session(c);
    if (status != OK) {
        double_plan.fail_at = 0;
        TRY(open_session(c));
    }
    for (size_t i = 0; i < COUNT(acts); i++)
        TRY(act(c, acts[i]));
    double_plan.fail_at = 0;
    c->n = states_of(c->s, c->bytes);
    session_close(c->s);
    return OK;
}

/* A life with that plan; what it took is in double_plan. */
static void with_plan(Life *c, const Kind *kind, DoublePlan plan)
{
    memset(c, 0, sizeof *c);
    c->kind = kind;
    double_plan = plan;
    language_open(&c->l);
    const Status status = guarded(&c->l.memory, live, c);
    check_that(status == OK, "fails at %d, late at %d: %s", plan.fail_at, plan.late_at, text_get(&c->l.messages));
    language_close(&c->l);
}

/* ---- tests ---- */

static void every_call_may_fail(void **state)
{
    static Life whole, broken;
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        with_plan(&whole, &kinds[k], (DoublePlan){ 0 });
        const int calls = double_plan.calls;
        assert_true(calls > 100);
        for (int i = 1; i <= calls; i++) {
            with_plan(&broken, &kinds[k], (DoublePlan){ .fail_at = i });
            check_that(broken.n == whole.n && memcmp(broken.bytes, whole.bytes, whole.n) == 0,
                       "call %d of %d failed: other states", i, calls);
        }
    }
}

static void every_run_may_end_late(void **state)
{
    static Life whole, stopped;
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        with_plan(&whole, &kinds[k], (DoublePlan){ 0 });
        const int runs = double_plan.runs;
        assert_true(runs > 10);
        for (int i = 1; i <= runs; i++) {
            with_plan(&stopped, &kinds[k], (DoublePlan){ .late_at = i });
            check_that(stopped.n == whole.n && memcmp(stopped.bytes, whole.bytes, whole.n) == 0,
                       "run %d of %d ended late: other states", i, runs);
        }
    }
}

/* Stopped between its sides, a step goes on where it was. */
static Status goes_on(void *arg)
{
    Life *c = arg;
    TRY(open_session(c));
    TRY(run(c, RUN_FORWARD, 1));
    double_plan.late_at = double_plan.runs + 1;
    assert_int_equal(session_run(c->s, RUN_BACKWARD, NULL), INTERRUPTED);
    assert_int_equal(session_run(c->s, RUN_BACKWARD, NULL), OK);
    double_plan.late_at = double_plan.runs + 1;
    assert_int_equal(session_run(c->s, RUN_UPDATE, NULL), INTERRUPTED);
    assert_int_equal(session_run(c->s, RUN_UPDATE, NULL), OK);
    c->n = states_of(c->s, c->bytes);
    session_close(c->s);
    return OK;
}

static Status in_one(void *arg)
{
    Life *c = arg;
    TRY(open_session(c));
    TRY(run(c, RUN_STEP, 1));
    c->n = states_of(c->s, c->bytes);
    session_close(c->s);
    return OK;
}

static void a_stopped_side_goes_on(void **state)
{
    static Life c[2];
    Status (*const lives[])(void *) = { goes_on, in_one };
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (int i = 0; i < 2; i++) {
            memset(&c[i], 0, sizeof c[i]);
            c[i].kind = &kinds[k];
            double_plan = (DoublePlan){ 0 };
            language_open(&c[i].l);
            assert_int_equal(guarded(&c[i].l.memory, lives[i], &c[i]), OK);
            language_close(&c[i].l);
        }
        assert_int_equal(c[0].n, c[1].n);
        assert_memory_equal(c[0].bytes, c[1].bytes, c[0].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(every_run_may_end_late),
        cmocka_unit_test(a_stopped_side_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
