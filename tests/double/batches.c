/* @eval of batches that somebody makes for a session: which are kept, what goes, and that a call of the engine that
 * fails leaves everything as it was. */
#include "double/engine_double.h"
#include "runtime/session/session.h"
#include "support/language.h"
#include "unit/check.h"

enum { OWN = 2, MOST = 9, KEPT_BATCHES = 4 };

static const char step_text[] = "graph @step(%x: f32[2], state %w: f32[] = 3 trained) -> (%loss, %w = %w1) {\n"
                                "    %loss: f32[] = reduce_sum(%x, keepdims=false)\n"
                                "    %w1: f32[] = add(%w, %loss) side=update\n"
                                "}\n"
                                "graph @eval(%x: f32[2], state %w: f32[] = 3) -> (%y) {\n"
                                "    %y: f32[2] = mul(%x, %w)\n"
                                "}\n"
                                "graph @other(%x: f32[2]) -> (%z) {\n"
                                "    %z: f32[2] = neg(%x)\n"
                                "}\n";

typedef struct Case {
    Language l;
    Session *s;
    int made, alive, kept;
    float x[MOST];
} Case;

/* What was made is an arena of its own, over the memory of the case. */
typedef struct Owner {
    Arena arena;
    Case *of;
} Owner;

static Status make(void *user, const Graph *g, const Node *input, const Type *type, GraphAgain *made)
{
    Case *c = user;
    *made = (GraphAgain){ .graph = NULL };
    assert_ptr_equal(g->inputs[0], input);
    if (type->rank != 1 || type->dims[0] > MOST)
        return OK;
    const char *text = arena_printf(&c->l.arena,
                                    "graph @eval(%%x: f32[%lld], state %%w: f32[] = 3) -> (%%y) {\n"
                                    "    %%y: f32[%lld] = mul(%%x, %%w)\n"
                                    "}\n",
                                    (long long)type->dims[0], (long long)type->dims[0]);
    Owner *o = NEW(&c->l.arena, Owner);
    o->of = c;
    arena_open(&o->arena, &c->l.memory);
    c->made++;
    c->alive++;
    *made = (GraphAgain){ language_parse(&c->l, text, NULL)->graphs[0], &o->arena, o };
    return OK;
}

static void keep(GraphAgain *made)
{
    Owner *o = made->owner;
    arena_keep(&o->arena);
    o->of->kept++;
}

static void drop(GraphAgain *made)
{
    Owner *o = made->owner;
    arena_close(&o->arena);
    o->of->alive--;
}

static void open_case(Case *c)
{
    static const char *const graphs[] = { "step", "eval", "other", NULL };
    const SessionOptions options = { .engine = &engine_double, .graphs = graphs, .again = { make, keep, drop, c } };
    Module *m = language_parse(&c->l, step_text, NULL);
    assert_non_null(m);
    for (int i = 0; i < MOST; i++)
        c->x[i] = (float)(i + 1);
    assert_int_equal(session_open(m, &options, &c->l.arena, &c->s), OK);
}

static Tensor rows(Case *c, int64_t n)
{
    return (Tensor){ .type = type_vector(&c->l.ir.types, F32, n), .data = c->x, .bytes = (size_t)n * 4, .refs = 1 };
}

static Status evaluate_rows(Case *c, int64_t n)
{
    const Tensor x = rows(c, n);
    TRY(session_bind(c->s, "x", &x));
    return session_run(c->s, RUN_EVAL, NULL);
}

/* The weight times 1, 2, 3 .. */
static void are_rows(Case *c, int64_t n, double weight)
{
    const Tensor *y = session_view(c->s, "y");
    assert_non_null(y);
    assert_int_equal(y->type->dims[0], n);
    for (int64_t i = 0; i < n; i++)
        assert_true(tensor_get_f64(y, i) == weight * (double)(i + 1));
}

/* The last four stay; what was evaluated last is there as long as it may be looked at. */
static Status some_stay(Case *c)
{
    static const struct {
        int64_t n;
        int made;
    } wanted[] = { { 3, 1 }, { OWN, 1 }, { 4, 2 }, { 3, 2 }, { 5, 3 }, { 6, 4 }, { 4, 4 },
                   { 7, 5 }, { 4, 5 },   { 3, 6 }, { 7, 6 }, { 6, 6 }, { 5, 7 }, { OWN, 7 } };
    for (size_t i = 0; i < COUNT(wanted); i++) {
        TRY(evaluate_rows(c, wanted[i].n));
        are_rows(c, wanted[i].n, 3);
        assert_int_equal(c->made, wanted[i].made);
        assert_int_equal(c->alive, c->made < KEPT_BATCHES ? c->made : KEPT_BATCHES);
    }
    TRY(evaluate_rows(c, 8));
    for (int64_t n = 3; n < 8; n++) {
        const Tensor x = rows(c, n);
        TRY(session_bind(c->s, "x", &x));
    }
    are_rows(c, 8, 3);
    return OK;
}

/* Neither the step nor other graphs run on it, and what nobody makes is refused. */
static Status others_refuse(Case *c)
{
    const Tensor three = rows(c, 3), two = rows(c, OWN);
    Tensor flat = rows(c, 4);
    flat.type = type_tensor(&c->l.ir.types, F32, 2, (int64_t[]){ 2, 2 });
    TRY(session_bind(c->s, "x", &three));
    assert_int_equal(session_run(c->s, RUN_STEP, NULL), USAGE);
    assert_int_equal(session_run_graph(c->s, "other", NULL), USAGE);
    assert_int_equal(session_bind(c->s, "x", &flat), USAGE);
    TRY(session_run(c->s, RUN_EVAL, NULL));
    are_rows(c, 3, 3);
    TRY(session_bind(c->s, "x", &two));
    TRY(session_run_graph(c->s, "other", NULL));
    return session_run(c->s, RUN_STEP, NULL);
}

/* Steps, and between them batches that come and go. */
static Status live(Case *c)
{
    static const int64_t sizes[] = { 3, 4, OWN, 5, 6, 7, 3 };
    double weight = 3;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const Tensor x = rows(c, OWN);
        const Status status = evaluate_rows(c, sizes[i]);
        if (status != OK) /* once more */
            TRY(evaluate_rows(c, sizes[i]));
        const DoublePlan plan = double_plan;
        double_plan.fail_at = 0;
        are_rows(c, sizes[i], weight);
        TRY(session_bind(c->s, "x", &x));
        TRY(session_run(c->s, RUN_STEP, NULL));
        weight += 3;
        double_plan = plan;
    }
    return OK;
}

static void with_case(Status (*body)(Case *c))
{
    Case c = { 0 };
    language_open(&c.l);
    double_plan = (DoublePlan){ 0 };
    open_case(&c);
    session_keep(c.s);
    assert_int_equal(body(&c), OK);
    session_close(c.s);
    assert_int_equal(c.alive, 0);
    assert_int_equal(c.kept, c.made);
    language_close(&c.l);
}

static void keeps_some(void **state)
{
    (void)state;
    with_case(some_stay);
}

static void refuses(void **state)
{
    (void)state;
    with_case(others_refuse);
}

static void survives_failures(void **state)
{
    int failed = 0;
    (void)state;
    for (int at = 1;; at++) {
        Case c = { 0 };
        language_open(&c.l);
        double_plan = (DoublePlan){ 0 };
        open_case(&c);
        session_keep(c.s);
        double_plan.fail_at = double_plan.calls + at;
        const Status status = live(&c);
        const bool any = double_plan.calls >= double_plan.fail_at;
        assert_int_equal(status, OK);
        failed += any;
        session_close(c.s);
        assert_int_equal(c.alive, 0);
        language_close(&c.l);
        if (!any)
            break;
    }
    print_message("%d calls failed\n", failed);
    assert_true(failed > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(keeps_some), cmocka_unit_test(refuses),
                                        cmocka_unit_test(survives_failures) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
