/* The engine `reference` by itself: values under numbers and of runs, parts, moves, and what is copied. */
#include "ir/text/parse.h"
#include "runtime/engine.h"
#include "support/language.h"
#include "testing.h"

static const char text[] = "graph @g(%a: f32[2], %b: f32[2]) -> (%sum, %product, %a = %a) {\n"
                           "    %sum: f32[2] = add(%a, %b)\n"
                           "    %product: f32[2] = mul(%sum, %b)\n"
                           "}\n";

enum { A, B, N_KEPT };
enum { SUM, PRODUCT, SAME_A };

typedef struct Case {
    Language l;
    const Engine *e;
    Values *v;
    int graph;
    _Atomic int stop;
    float host[2][2];
    Tensor given[2];
} Case;

static Status open_case(Case *c)
{
    Module *m = language_parse(&c->l, text, NULL);
    assert_non_null(m);
    Graph *g = m->graphs[0];
    const Node **ends = NEWS(&c->l.arena, const Node *, 2); /* the sum, then the rest */
    ends[0] = g->first->next;
    const Executable x = { .graph = g, .n_parts = 2, .ends = ends };
    c->e = engine_find("reference");
    assert_non_null(c->e);
    TRY(c->e->open(&c->l.ir, &(EngineOptions){ .stop = &c->stop }, N_KEPT, &c->l.arena, &c->v));
    TRY(c->e->load(c->v, &x, &c->graph));
    for (int i = 0; i < 2; i++)
        c->given[i] = (Tensor){
            .type = type_vector(&c->l.ir.types, F32, 2), .data = c->host[i], .bytes = sizeof c->host[i], .refs = 1
        };
    return OK;
}

static const Tensor *got(Case *c, ValueAt at)
{
    const Tensor *t;
    assert_int_equal(c->e->get(c->v, at, &t), OK);
    return t;
}

static void expect(Case *c, ValueAt at, double a, double b)
{
    const Tensor *t = got(c, at);
    assert_non_null(t);
    assert_true(tensor_get_f64(t, 0) == a && tensor_get_f64(t, 1) == b);
}

static void put(Case *c, int kept, float a, float b, PutHow how)
{
    const ValueAt at = value_kept(kept);
    Tensor *list[] = { &c->given[kept] };
    c->host[kept][0] = a;
    c->host[kept][1] = b;
    assert_int_equal(c->e->put(c->v, 1, &at, list, how), OK);
}

static void begin(Case *c)
{
    static const ValueAt inputs[] = { { KEPT, A }, { KEPT, B } };
    assert_int_equal(c->e->begin(c->v, c->graph, &(EngineRun){ .inputs = inputs }), OK);
}

/* What is lent is not copied on its way in or out; what is kept of it is. */
static Status lent(void *arg)
{
    Case *c = arg;
    EngineStats stats;
    TRY(open_case(c));
    assert_null(got(c, value_kept(A)));
    put(c, A, 1, 2, PUT_LEND);
    put(c, B, 10, 20, PUT_COPY);
    assert_ptr_equal(got(c, value_kept(A))->data, c->host[A]);
    assert_ptr_not_equal(got(c, value_kept(B))->data, c->host[B]);
    begin(c);
    assert_false(c->e->programmed(c->v, c->graph));
    assert_int_equal(c->e->run(c->v, c->graph, 1), OK);
    expect(c, value_result(c->graph, PRODUCT), 110, 440);
    assert_ptr_equal(got(c, value_result(c->graph, SAME_A))->data, c->host[A]);
    const ValueMove keep = { value_kept(B), value_result(c->graph, SAME_A) };
    assert_int_equal(c->e->move(c->v, 1, &keep), OK);
    c->host[A][0] = 7;
    expect(c, value_kept(B), 1, 2);
    expect(c, value_kept(A), 7, 2);
    c->e->stats(c->v, &stats);
    assert_true(stats.runs == 1 && stats.graphs == 1 && stats.bytes == 16);
    c->e->end(c->v, c->graph);
    assert_null(got(c, value_result(c->graph, PRODUCT)));
    c->e->close(c->v);
    return OK;
}

/* Moves happen at once: two values change places; between two parts what was moved or bound is read. */
static Status moved(void *arg)
{
    Case *c = arg;
    const ValueMove swap[] = { { value_kept(A), value_kept(B) }, { value_kept(B), value_kept(A) } };
    const ValueMove forget = { value_kept(A), value_none() };
    TRY(open_case(c));
    put(c, A, 1, 2, PUT_COPY);
    put(c, B, 10, 20, PUT_COPY);
    assert_int_equal(c->e->move(c->v, 2, swap), OK);
    expect(c, value_kept(A), 10, 20);
    expect(c, value_kept(B), 1, 2);
    begin(c);
    assert_int_equal(c->e->run(c->v, c->graph, 0), OK);
    expect(c, value_result(c->graph, SUM), 11, 22);
    assert_null(got(c, value_result(c->graph, PRODUCT)));
    put(c, B, 3, 4, PUT_COPY);
    assert_int_equal(c->e->run(c->v, c->graph, 0), OK); /* it has run */
    assert_int_equal(c->e->run(c->v, c->graph, 1), OK);
    expect(c, value_result(c->graph, PRODUCT), 33, 88);
    begin(c);
    assert_int_equal(c->e->run(c->v, c->graph, 0), OK);
    assert_int_equal(c->e->bind(c->v, c->graph, 1, value_kept(A)), OK);
    const ValueMove replaced = { value_result(c->graph, SUM), value_kept(B) };
    assert_int_equal(c->e->move(c->v, 1, &replaced), OK);
    assert_int_equal(c->e->run(c->v, c->graph, 1), OK);
    expect(c, value_result(c->graph, PRODUCT), 30, 80);
    assert_int_equal(c->e->move(c->v, 1, &forget), OK);
    assert_null(got(c, value_kept(A)));
    c->e->close(c->v);
    return OK;
}

/* A run that was stopped goes on; arithmetic of a session's own is not stopped. */
static Status stopped(void *arg)
{
    Case *c = arg;
    TRY(open_case(c));
    put(c, A, 1, 2, PUT_COPY);
    put(c, B, 10, 20, PUT_COPY);
    begin(c);
    c->stop = 1;
    assert_int_equal(c->e->run(c->v, c->graph, 1), INTERRUPTED);
    c->stop = 0;
    assert_int_equal(c->e->run(c->v, c->graph, 1), OK);
    expect(c, value_result(c->graph, PRODUCT), 110, 440);
    const Module *m = language_parse(&c->l, text, NULL);
    const Executable x = { .graph = m->graphs[0], .n_parts = 1, .brief = true };
    TRY(c->e->load(c->v, &x, &c->graph));
    begin(c);
    c->stop = 1;
    assert_int_equal(c->e->run(c->v, c->graph, 0), OK);
    c->e->close(c->v);
    return OK;
}

/* A graph goes with its arena; the others stay as they are, and its number is the next one's. */
static Status unloaded(void *arg)
{
    Case *c = arg;
    Arena own;
    EngineStats stats;
    int number;
    const int first = 0;
    TRY(open_case(c));
    put(c, A, 1, 2, PUT_COPY);
    put(c, B, 10, 20, PUT_COPY);
    begin(c);
    assert_int_equal(c->e->run(c->v, c->graph, 1), OK);
    assert_int_equal(c->graph, first);
    for (int i = 0; i < 3; i++) {
        const ValueMove swap[] = { { value_kept(A), value_kept(B) }, { value_kept(B), value_kept(A) } };
        arena_open(&own, &c->l.memory);
        const Executable x = {
            .graph = language_parse(&c->l, text, NULL)->graphs[0], .n_parts = 1, .arena = &own, .room_of = &first
        };
        TRY(c->e->load(c->v, &x, &number));
        assert_int_equal(number, 1);
        c->graph = number;
        begin(c);
        assert_int_equal(c->e->run(c->v, number, 0), OK);
        expect(c, value_result(number, PRODUCT), i % 2 ? 11 : 110, i % 2 ? 44 : 440);
        c->graph = first;
        c->e->stats(c->v, &stats);
        assert_int_equal(stats.graphs, 2);
        c->e->unload(c->v, number);
        arena_close(&own);
        c->e->stats(c->v, &stats);
        assert_int_equal(stats.graphs, 1);
        assert_int_equal(c->e->move(c->v, 2, swap), OK);
        begin(c);
        assert_int_equal(c->e->run(c->v, first, 1), OK);
        expect(c, value_result(first, PRODUCT), i % 2 ? 110 : 11, i % 2 ? 440 : 44);
    }
    c->e->close(c->v);
    return OK;
}

static void engines_by_name(void **state)
{
    (void)state;
    assert_non_null(engine_find("reference"));
    assert_ptr_equal(engine_find("auto"), engine_find(NULL));
    assert_null(engine_find("rocm"));
    for (const Engine *const *e = engines_all(); *e; e++)
        assert_ptr_equal(engine_find((*e)->name), *e);
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
TEST(lent)
TEST(moved)
TEST(stopped)
TEST(unloaded)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lent),     cmocka_unit_test(test_moved),      cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_unloaded), cmocka_unit_test(engines_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
