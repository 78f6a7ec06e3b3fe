/* What is written for people: JSON that parses, pages without foreign markup, the same bytes again. */
#include "frontends/view/precision.h"
#include "frontends/view/view.h"

#include <jansson.h>
#include <string.h>

#include "support/language.h"
#include "support/pace.h"
#include "unit/check.h"

typedef Status View(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink);

static Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

static const char *viewed_with(Language *l, View *view, const Module *m, const ViewFacts *facts)
{
    Text t;
    text_open(&t, &l->arena);
    assert_int_equal(view(m, facts, &l->diag, &(Sink){ append, &t }), OK);
    return text_get(&t);
}

static const char *viewed(Language *l, View *view, const Module *m)
{
    return viewed_with(l, view, m, NULL);
}

static Module *parsed(Language *l, const char *text)
{
    language_open(l);
    Module *m = language_parse(l, text, NULL);
    check_that(m, "%s", text_get(&l->messages));
    return m;
}

static json_t *parsed_json(const char *text)
{
    json_error_t error;
    json_t *j = json_loads(text, 0, &error);
    check_that(j, "line %d: %s", error.line, error.text);
    return j;
}

static json_t *member(json_t *j, const char *graphs_or_ops, size_t graph, size_t node)
{
    return json_array_get(json_object_get(json_array_get(json_object_get(j, graphs_or_ops), graph), "nodes"), node);
}

static void json_says_every_kind_of_attribute(void **state)
{
    (void)state;
    Language l;
    Module *m = parsed(
        &l, "graph @f(%x: f32[]) -> (%0) {\n"
            "    %0: f32[] = every(%x, _, i=-9007199254740993, f=0x7fc00000, b=false, s=\"a\\n\\x01\", e=red, d=bf16,"
            " is=[1, -2], fs=[0.1, 0x7f800000], ss=[\"x\", \"\"], p=f32[2] [1, 2], t=(f32[2], none), needed=0)\n"
            "}\n");
    json_t *j = parsed_json(viewed(&l, view_json, m));
    char *text =
        json_dumps(json_object_get(member(j, "graphs", 0, 1), "attributes"), JSON_COMPACT | JSON_REAL_PRECISION(9));
    assert_string_equal(text,
                        "{\"i\":\"-9007199254740993\",\"f\":\"nan\",\"b\":false,\"s\":\"a\\n\\u0001\",\"e\":\"red\","
                        "\"d\":\"bf16\",\"is\":[1,-2],\"fs\":[0.1,\"inf\"],\"ss\":[\"x\",\"\"],"
                        "\"p\":{\"type\":\"f32[2]\",\"first\":[1,2]},\"t\":\"(f32[2], none)\",\"needed\":0}");
    free(text);
    json_decref(j);
    language_close(&l);
}

static const char hostile[] =
    "graph @\"</script><script>x</script>\"(%\"<!--\": f32[2], %\"]]>\\xff\\xc0\\x80\": f32[2], %\"\xE2\x80\xAE\xE2\x80\xA8\": f32[2])"
    " -> (%\"<img src=x>\" = %1) {\n"
    "    %0: f32[2] = same(%\"<!--\", %\"]]>\\xff\\xc0\\x80\") node=\"--></svg></script>\\n'\\\"&\"\n"
    "    %1: f32[2] = every(%0, %\"\xE2\x80\xAE\xE2\x80\xA8\", s=\"</script>\\x01\", ss=[\"<!--\"], needed=1)\n"
    "}\n";

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/* Beside the page's own tags there are none, and nothing ends a comment or a script early. */
static void what_a_model_says_is_no_markup(void **state)
{
    (void)state;
    Language l;
    Module *m = parsed(&l, hostile);
    m->file = "</title><script>.qir";
    const char *page = viewed(&l, view_page, m);
    assert_int_equal(count(page, "<script"), 3);
    assert_int_equal(count(page, "</script"), 3);
    assert_int_equal(count(page, "</title"), 1);
    assert_int_equal(count(page, "<svg"), 1);
    assert_int_equal(count(page, "</svg"), 1);
    assert_int_equal(count(page, "<img"), 0);
    const char *from = strstr(page, "<body>"), *to = strstr(from, "id=\"layout\"");
    assert_non_null(to);
    const char *body = arena_copy(&l.arena, from, (size_t)(to - from));
    assert_int_equal(count(body, "<!--") + count(body, "-->"), 0);
    assert_int_equal(count(body, "\xE2\x80\xAE"), 1); /* in the JSON, where it is only data */
    assert_true(str_is_utf8(str(page)));
    const char *data = strstr(page, "id=\"model\">");
    assert_non_null(data);
    data += strlen("id=\"model\">");
    json_t *j = parsed_json(arena_copy(&l.arena, data, strcspn(data, "<")));
    assert_string_equal(json_string_value(json_object_get(member(j, "graphs", 0, 0), "name")), "<!--");
    json_decref(j);
    language_close(&l);
}

static void equal_modules_give_equal_bytes(void **state)
{
    (void)state;
    View *const views[] = { view_page, view_dot, view_json };
    for (size_t i = 0; i < COUNT(views); i++) {
        Language a, b;
        Module *m = parsed(&a, hostile), *n = parsed(&b, hostile);
        assert_string_equal(viewed(&a, views[i], m), viewed(&b, views[i], n));
        language_close(&a);
        language_close(&b);
    }
}

typedef struct Full {
    size_t room, calls_after;
    bool over;
} Full;

static Status put_some(void *user, const void *bytes, size_t n)
{
    Full *f = user;
    (void)bytes;
    f->calls_after += f->over;
    f->over |= n > f->room;
    f->room -= f->over ? 0 : n;
    return f->over ? IO : OK;
}

/* A chain of n nodes, every tenth reading far back as well. */
static Module *chain(Language *l, int n)
{
    Text t;
    language_open(l);
    text_open(&t, &l->arena);
    text_add(&t, "graph @chain(%x: f32[2]) -> (%v0) {\n    %v0: f32[2] = same(%x)\n");
    for (int i = 1; i < n; i++)
        if (i % 10)
            text_linef(&t, "    %%v%d: f32[2] = same(%%v%d) node=\"/layer%d/same\"", i, i - 1, i);
        else
            text_linef(&t, "    %%v%d: f32[2] = same(%%v%d, %%v%d)", i, i - 1, i / 2);
    text_add(&t, "}\n");
    Module *m = language_parse(l, text_get(&t), NULL);
    check_that(m, "%s", text_get(&l->messages));
    return m;
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    View *const views[] = { view_page, view_dot, view_json };
    Language l;
    Module *m = chain(&l, 3000);
    for (size_t i = 0; i < COUNT(views); i++) {
        Full f = { .room = 100000 };
        assert_int_equal(views[i](m, NULL, &l.diag, &(Sink){ put_some, &f }), IO);
        assert_int_equal(f.calls_after, 0);
    }
    language_close(&l);
}

/* Tiles of a large page are comments that hold what a small page has in the open. */
static void large_pages_sleep(void **state)
{
    (void)state;
    Language l;
    const char *small = viewed(&l, view_page, chain(&l, 3900));
    const size_t tiles = count(small, "<g class=\"tile\"");
    assert_int_equal(count(small, "<!--"), 0);
    assert_true(tiles > 100);
    language_close(&l);
    const char *large = viewed(&l, view_page, chain(&l, 4100));
    assert_true(count(large, "<g class=\"tile\"") > tiles);
    assert_int_equal(count(large, "<!--"), count(large, "<g class=\"tile\""));
    assert_int_equal(count(large, "-->"), count(large, "<g class=\"tile\""));
    language_close(&l);
}

static Status count_bytes(void *user, const void *bytes, size_t n)
{
    (void)bytes;
    *(size_t *)user += n;
    return OK;
}

typedef struct Timing {
    View *view;
    const Module *m;
    Language *l;
    size_t bytes;
} Timing;

static double time_view(void *user)
{
    Timing *t = user;
    const double start = cpu_seconds();
    t->bytes = 0;
    assert_int_equal(t->view(t->m, NULL, &t->l->diag, &(Sink){ count_bytes, &t->bytes }), OK);
    return cpu_seconds() - start;
}

static void a_hundred_thousand_nodes_take_little_time(void **state)
{
    (void)state;
    View *const views[] = { view_page, view_dot, view_json };
    Language l;
    Module *m = chain(&l, 100000);
    for (size_t i = 0; i < COUNT(views); i++) {
        Timing t = { views[i], m, &l, 0 };
        double bound;
        const double took = time_view(&t);
        print_message("%zu bytes in %.2f s\n", t.bytes, took);
        assert_true(t.bytes > 1000000);
        check_that(!takes_longer(took, 2 * slowness(), time_view, &t, &bound), "%.2f s where %.2f are enough", took,
                   bound);
    }
    language_close(&l);
}

/* Memory that runs out leaves through the guard, and nothing stays behind. */
typedef struct Starved {
    const Module *m;
    View *view;
    size_t bytes;
} Starved;

static Status view_starved(void *arg)
{
    Starved *s = arg;
    return s->view(s->m, NULL, s->m->ir->diag, &(Sink){ count_bytes, &s->bytes });
}

static void memory_may_run_out(void **state)
{
    (void)state;
    View *const views[] = { view_page, view_dot, view_json };
    Language l;
    Module *m = chain(&l, 500);
    for (size_t i = 0; i < COUNT(views); i++) {
        const uint64_t before = l.memory.used;
        Status status = NO_MEMORY;
        int failures = 0;
        for (uint64_t n = 1; status == NO_MEMORY; n++, failures++) {
            Starved s = { m, views[i], 0 };
            l.memory.fail_at = l.memory.requests + n;
            status = guarded(&l.memory, view_starved, &s);
        }
        l.memory.fail_at = 0;
        assert_int_equal(status, OK);
        assert_true(failures > 3);
        assert_int_equal(l.memory.used, before);
    }
    language_close(&l);
}

static const ViewNote narrow = { "bf16", "f32", "class S for <range>", 8192 };

static const ViewNote *note_softmax(void *user, const Node *n)
{
    return strcmp(op_of(n)->name, user) == 0 ? &narrow : NULL;
}

/* What is known beside the graph stands in the head and with the node it is about. */
static void a_page_says_what_it_is_given(void **state)
{
    (void)state;
    Language l;
    char same[] = "same";
    const ViewFacts facts = { .title = "m<1>: training step", .line = "bf16: all", .note = note_softmax, .user = same };
    Module *m = parsed(
        &l, "graph @f(%x: f32[2]) -> (%z) {\n    %y: f32[2] = same(%x)\n    %z: f32[2] = every(%y, %x, needed=1)\n}\n");
    Text t;
    text_open(&t, &l.arena);
    assert_int_equal(view_page(m, &facts, &l.diag, &(Sink){ append, &t }), OK);
    const char *page = text_get(&t);
    assert_non_null(strstr(page, "<title>m&#60;1&#62;: training step</title>"));
    assert_non_null(strstr(page, "<h1>m&#60;1&#62;: training step<small>bf16: all</small></h1>"));
    assert_int_equal(count(page, "\"width\":{\"stored\":\"bf16\",\"computes\":\"f32\",\"why\":\"class S for "), 1);
    assert_int_equal(count(page, "\"saved\":8192"), 1);
    language_close(&l);
}

/* ---- launches ---- */

typedef struct Runs {
    const Node *nodes[3];
    int launches[2];
} Runs;

/* Node 0 in launches 0 and 12, node 1 one with it in the second, node 2 nowhere. */
static ViewRun run_of(void *user, const Node *n)
{
    const Runs *r = user;
    if (n == r->nodes[0])
        return (ViewRun){ .n = 2, .launches = r->launches, .main = 12 };
    if (n == r->nodes[1])
        return (ViewRun){ .n = 1, .launches = r->launches + 1, .main = 12, .one = r->nodes[0] };
    return (ViewRun){ .none = n == r->nodes[2] ? "folded: </script>" : NULL };
}

static const char launched[] = "graph @f(%x: f32[2]) -> (%c) {\n    %a: f32[2] = same(%x)\n    %b: f32[2] = same(%a)\n"
                               "    %c: f32[2] = same(%b)\n}\n";

enum { LAUNCHES = 13 };

static ViewFacts facts_of(const Module *m, Runs *r, ViewLaunch *list, ViewProgram *p)
{
    const Graph *g = m->graphs[0];
    *r = (Runs){ { g->first, g->first->next, g->last }, { 0, 12 } };
    for (int i = 0; i < LAUNCHES; i++)
        list[i] = (ViewLaunch){ .kind = "region", .part = "forward", .what = "region mul <x>", .n_beside = 1 };
    list[0] = (ViewLaunch){ "region", "forward", "<a>", "region mul <x>", r->nodes, 1, 24, 8, 64, 0, 3 };
    list[12] = (ViewLaunch){ "matmul", "late", NULL, "matmul", r->nodes, 2, 16, 8, 128, 12, 1 };
    *p = (ViewProgram){ .graph = g, .arena = 192, .n = LAUNCHES, .launches = list };
    return (ViewFacts){ .programs = p, .n_programs = 1, .run = run_of, .runs = r };
}

static void launches_stand_with_their_nodes(void **state)
{
    (void)state;
    Language l;
    Runs runs;
    ViewLaunch list[LAUNCHES];
    ViewProgram program;
    Module *m = parsed(&l, launched);
    const ViewFacts facts = facts_of(m, &runs, list, &program);
    const char *text = viewed_with(&l, view_json, m, &facts);
    json_t *j = parsed_json(text), *graph = json_array_get(json_object_get(j, "graphs"), 0);
    assert_int_equal(json_array_size(json_object_get(graph, "launches")), LAUNCHES);
    assert_int_equal(json_integer_value(json_object_get(graph, "arena")), 192);
    json_decref(j);
    assert_non_null(
        strstr(text, "{\"number\":0,\"kind\":\"region\",\"part\":\"forward\",\"name\":\"\\u003ca\\u003e\",\"what\":\""
                     "region mul \\u003cx\\u003e\",\"reads\":24,\"writes\":8,\"alive\":64,\"beside\":[0,2],"
                     "\"nodes\":[1]}"));
    assert_non_null(strstr(text, "\"what\":\"matmul\",\"reads\":16,\"writes\":8,\"alive\":128,\"nodes\":[1,2]}"));
    assert_int_equal(count(text, "\"ours\":true,\"nodes\":[]"), LAUNCHES - 2);
    assert_non_null(strstr(text, "\"inputs\":[0],\"launches\":[0,12],\"main\":12}"));
    assert_non_null(strstr(text, "\"inputs\":[1],\"launches\":[12],\"one\":1}"));
    assert_non_null(strstr(text, "\"inputs\":[2],\"idle\":\"folded: \\u003c/script\\u003e\"}"));
    const char *page = viewed_with(&l, view_page, m, &facts);
    assert_int_equal(count(page, "style=\"--hue:204\""), 2);
    assert_int_equal(count(page, "<text class=\"l\" x=\"4\" y=\"-4\">launch 0, 12</text>"), 1);
    assert_int_equal(count(page, "<text class=\"l\" x=\"4\" y=\"-4\">launch 12</text>"), 1);
    assert_non_null(strstr(page, "<a href=\"#l0-0\"><rect"));
    assert_non_null(strstr(page, "<title>launch 0, forward region &#60;a&#62;: 64 bytes</title>"));
    assert_int_equal(count(page, "</script>"), 3);
    const char *dot = viewed_with(&l, view_dot, m, &facts);
    assert_non_null(strstr(dot, "label=\"same\\la: f32[2]\\llaunch 0, 12\\l\""));
    assert_non_null(strstr(dot, "label=\"same\\lc: f32[2]\\l\""));
    language_close(&l);
}

static void a_graph_without_a_program_says_why(void **state)
{
    (void)state;
    Language l;
    Module *m = parsed(&l, launched);
    const ViewProgram program = { .graph = m->graphs[0], .why = "a \"call\"" };
    const ViewFacts facts = { .programs = &program, .n_programs = 1 };
    const char *text = viewed_with(&l, view_json, m, &facts);
    assert_non_null(strstr(text, ",\"no_program\":\"a \\\"call\\\"\",\"nodes\":["));
    assert_null(strstr(text, "\"launches\""));
    assert_null(strstr(viewed_with(&l, view_page, m, &facts), "class=\"memory\""));
    language_close(&l);
}

/* Each precision has a colour of its own, by day and by night; the script knows a type by the same word. */
static void every_precision_has_its_colours(void **state)
{
    (void)state;
    Language l;
    const char *page = viewed(&l, view_page, parsed(&l, "graph @f(%x: f32[2]) -> (%x) {\n}\n"));
    const char *seen[VIEW_PRECISION_COUNT][2];
    for (int k = 0; k < VIEW_PRECISION_COUNT; k++) {
        const char *word = view_precision_word((ViewPrecision)k), *at[2] = { NULL, NULL };
        const char *colour = arena_printf(&l.arena, "--p-%s: #", word);
        at[0] = strstr(page, colour);
        at[1] = at[0] ? strstr(at[0] + 1, colour) : NULL;
        check_that(at[1] && !strstr(at[1] + 1, colour), "%s", word);
        assert_int_equal(count(page, arena_printf(&l.arena, ".p-%s { --tone: var(--p-%s); }", word, word)), 1);
        for (int i = 0; i < 2; i++) {
            const char *hex = at[i] + strlen(colour);
            for (int other = 0; other < k; other++)
                check_that(strncmp(seen[other][i], hex, 6) != 0, "%s", word);
            seen[k][i] = hex;
        }
    }
    language_close(&l);
}

/* A section for each group; every node is drawn once, and what holds a group is told. */
static void a_large_graph_opens_in_groups(void **state)
{
    (void)state;
    Language l;
    const char *page = viewed(&l, view_page, chain(&l, 3900));
    const size_t sections = count(page, "<section id=\"m0-");
    assert_true(sections > 20 && sections <= 64);
    assert_int_equal(count(page, "<a class=\"n group\" href=\"#m0-"), sections);
    assert_int_equal(count(page, "class=\"n opaque") + count(page, "class=\"n pointwise"), 3900);
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_says_every_kind_of_attribute),
        cmocka_unit_test(what_a_model_says_is_no_markup),
        cmocka_unit_test(equal_modules_give_equal_bytes),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(large_pages_sleep),
        cmocka_unit_test(a_page_says_what_it_is_given),
        cmocka_unit_test(every_precision_has_its_colours),
        cmocka_unit_test(launches_stand_with_their_nodes),
        cmocka_unit_test(a_graph_without_a_program_says_why),
        cmocka_unit_test(a_large_graph_opens_in_groups),
        cmocka_unit_test(a_hundred_thousand_nodes_take_little_time),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
