/* Passes and pipelines: their order, what is checked after each, and the examples in their own files. */
#include "passes/pipelines.h"

#include <glob.h>
#include <stdlib.h>

#include "base/file.h"
#include "ir/verify.h"
#include "passes/engine/pattern.h"
#include "passes/engine/trial.h"
#include "support/language.h"
#include "support/recipe.h"
#include "unit/check.h"

static Graph *parsed(Language *l, const char *text)
{
    Module *m = language_parse(l, text, NULL);
    check_that(m && verify_module(m, NULL) == OK, "%s", text_get(&l->messages));
    return m->graphs[0];
}

static const char *printed(Language *l, const Graph *g)
{
    Text t;
    text_open(&t, &l->arena);
    assert_int_equal(print_graph(&t, g, NULL), OK);
    return text_get(&t);
}

/* ---- examples ---- */

/* Beside it are the teachers that examples name. */
#define TEACHERS QCC_SOURCE_DIR "/tests/golden/passes/attach-teacher/plain.qir"

/* Lines of the first comment that are indented deeper than its prose. */
static void example(Language *l, const Pass *pass, Text *before, Text *after)
{
    static const char margin[] = " *     ";
    Str file;
    char *pattern = arena_printf(&l->arena, "%s/passes/*/%s.c", QCC_SOURCE_DIR, pass->name);
    for (char *p = pattern + strlen(QCC_SOURCE_DIR); *p; p++)
        *p = *p == '-' ? '_' : *p;
    glob_t found;
    check_that(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1, "%s: not one file", pattern);
    const char *path = arena_printf(&l->arena, "%s", found.gl_pathv[0]);
    globfree(&found);
    assert_int_equal(file_read(&l->arena, &l->diag, path, 1 << 20, "file", &file), OK);
    Text *to = before;
    for (const char *line = file.p, *end; line < strstr(file.p, "*/"); line = end + 1) {
        end = strchr(line, '\n');
        if (strncmp(line, margin, sizeof margin - 1) != 0)
            continue;
        line += sizeof margin - 1;
        if (strncmp(line, "==>", 3) == 0)
            to = after;
        else
            text_printf(to, "%.*s\n", (int)(end - line), line);
    }
    check_that(before->n && after->n, "%s has no example", path);
}

static void headers_do_not_lie(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_all_passes; i++) {
        Language l;
        Text before, after;
        language_open(&l);
        text_open(&before, &l.arena);
        text_open(&after, &l.arena);
        example(&l, all_passes[i], &before, &after);
        Graph *g = parsed(&l, text_get(&before));
        const Pipeline alone = { "example", all_passes[i]->needs, &all_passes[i], 1 };
        Str said;
        Recipe recipe = { .n_groups = 0 };
        const PipelineOptions options = { .pass.recipe = &recipe, .verify_each = VERIFY_VALUES };
        if (recipe_line((Str){ text_get(&before), before.n }, &said))
            assert_int_equal(recipe_from_options(&recipe, &l.ir, &l.arena, said, NULL), OK);
        assert_int_equal(recipe_teacher(&recipe, &l.ir, &l.arena, TEACHERS), OK);
        check_that(pipeline_run(&alone, g, &options) == OK, "%s: %s", all_passes[i]->name, text_get(&l.messages));
        assert_string_equal(printed(&l, g), text_get(&after));
        language_close(&l);
    }
}

static void names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_all_passes; i++) {
        assert_ptr_equal(pass_find(all_passes[i]->name), all_passes[i]);
        assert_true(!all_passes[i]->run == !!all_passes[i]->n_rules);
    }
    assert_null(pass_find("nothing"));
    assert_ptr_equal(pass_find("fold_casts"), pass_find("fold-casts"));
}

/* ---- order ---- */

static void every_pipeline_is_well_ordered(void **state)
{
    Language l;
    (void)state;
    language_open(&l);
    for (size_t i = 0; i < n_all_pipelines; i++) {
        check_that(pipeline_check(&all_pipelines[i], &l.diag) == OK, "%s", text_get(&l.messages));
        assert_ptr_equal(pipeline_find(all_pipelines[i].name), &all_pipelines[i]);
    }
    language_close(&l);
}

static Status nothing(Graph *g, PassRun *run)
{
    (void)g, (void)run;
    return OK;
}

static const Pass needs_shapes = { .name = "needs-shapes", .needs = SHAPED, .run = nothing };
static const Pass makes_shapes = { .name = "makes-shapes", .makes = SHAPED, .run = nothing };
static const Pass breaks_shapes = { .name = "breaks-shapes", .breaks = SHAPED, .run = nothing };

static void check_order(size_t n, const Pass *const *passes, const char *message)
{
    Language l;
    language_open(&l);
    const Pipeline p = { "p", TYPED, passes, n };
    assert_int_equal(pipeline_check(&p, &l.diag), message ? INVALID : OK);
    assert_string_equal(l.messages.n ? text_get(&l.messages) : "", message ? message : "");
    language_close(&l);
}

static void wrong_orders_are_named(void **state)
{
    (void)state;
    check_order(1, (const Pass *const[]){ &needs_shapes },
                "pipeline p: needs-shapes needs SHAPED, which nothing before it makes\n");
    check_order(2, (const Pass *const[]){ &makes_shapes, &needs_shapes }, NULL);
    check_order(3, (const Pass *const[]){ &makes_shapes, &breaks_shapes, &needs_shapes },
                "pipeline p: needs-shapes needs SHAPED, which breaks-shapes breaks\n");
    check_order(4, (const Pass *const[]){ &makes_shapes, &breaks_shapes, &makes_shapes, &needs_shapes }, NULL);
}

/* ---- what is checked after a pass ---- */

static const char small[] = "graph @f(%x: f32[4], %u: f32[?]) -> (%y, %v) {\n"
                            "    %a: f32[4] = neg(%x)\n"
                            "    %b: f32[4] = neg(%a)\n"
                            "    %y: f32[4] = exp(%b)\n"
                            "    %v: f32[?] = exp(%u)\n"
                            "}\n";

static Status check_blame(const Pass *pass, VerifyEach each, const char *blame)
{
    Language l;
    language_open(&l);
    Graph *g = parsed(&l, small);
    const Pipeline p = { "p", TYPED, &pass, 1 };
    const PipelineOptions options = { .verify_each = each };
    const Status status = pipeline_run(&p, g, &options);
    check_that(!blame == (status == OK) && (!blame || strstr(text_get(&l.messages), blame)), "%s",
               text_get(&l.messages));
    language_close(&l);
    return status;
}

static Status change_values(Graph *g, PassRun *run)
{
    (void)run;
    for (Node *n = g->first; n; n = n->next)
        if (n->op == OP_exp)
            n->op = OP_tanh;
    return OK;
}

static Status change_types(Graph *g, PassRun *run)
{
    (void)run;
    g->first->type = type_scalar(&g->ir->types, F32);
    return OK;
}

static void wrong_passes_are_blamed(void **state)
{
    (void)state;
    const Pass values = { .name = "values", .may = EXACT, .run = change_values };
    const Pass types = { .name = "types", .may = EXACT, .run = change_types };
    (void)check_blame(&values, VERIFY_VALUES, "after values: the values changed: result 0 y is another");
    (void)check_blame(&values, VERIFY_GRAPH, NULL);
    (void)check_blame(&types, VERIFY_GRAPH, "after types: the graph is no longer one");
    (void)check_blame(&makes_shapes, VERIFY_GRAPH, "after makes-shapes: a fact that it makes does not hold");
#ifdef QCC_DEBUG
    (void)check_blame(&makes_shapes, VERIFY_NOTHING, "after makes-shapes: a fact that it makes does not hold");
#else
    (void)check_blame(&makes_shapes, VERIFY_NOTHING, NULL);
#endif
}

static void missing_shapes_are_located(void **state)
{
    Language l;
    (void)state;
    language_open(&l);
    Graph *g = parsed(&l, small);
    assert_int_equal(facts_check(SHAPED, g), INVALID);
    check_that(strstr(text_get(&l.messages), "at: node v: f32[?]") && strstr(text_get(&l.messages), "try: --shape u:"),
               "%s", text_get(&l.messages));
    language_close(&l);
}

/* ---- budgets of folding ---- */

static const char folds[] = "graph @f(%x: f32[4]) -> (%y, %z) {\n"
                            "    const %k: f32[4] = [1, 2, 3, 4]\n"
                            "    const %two: i64[2] = [8, 4]\n"
                            "    %a: f32[8,4] = expand(%k, %two)\n"
                            "    %y: f32[8,4] = mul(%a, %x)\n"
                            "    %b: f32[4] = exp(%k)\n"
                            "    %z: f32[4] = add(%b, %x)\n"
                            "}\n";

static void check_budget(Limits limits, const char *named, int64_t changes)
{
    Language l;
    language_open(&l);
    Graph *g = parsed(&l, folds);
    l.ir.limits = limits;
    PassRun run = { .allowed = -1 };
    assert_int_equal(pass_run(pass_find("fold-constants"), g, &run), OK);
    assert_int_equal(run.changes, changes);
    check_that(named ? strstr(text_get(&l.messages), named) != NULL : l.messages.n == 0, "%s",
               l.messages.n ? text_get(&l.messages) : "no remark");
    language_close(&l);
}

static void folding_keeps_its_budgets(void **state)
{
    Limits small = LIMITS_DEFAULT;
    (void)state;
    check_budget(small, NULL, 2);
    small.fold_output = 127;
    check_budget(small, "node a: remark: not folded: more than the limit fold_output (127)", 1);
    small = LIMITS_DEFAULT;
    small.fold_total = 130;
    check_budget(small, "node b: remark: not folded: more than the limit fold_total (2)", 1);
    small = LIMITS_DEFAULT;
    small.fold_work = 10;
    check_budget(small, "more than the limit fold_work (10)", 0);
}

/* ---- options ---- */

typedef struct Heard {
    int prints, reports;
    int64_t changes;
    const char *last;
} Heard;

static void hear_print(void *user, const char *pass, const char *text)
{
    Heard *h = user;
    h->prints++;
    h->last = pass;
    assert_non_null(strstr(text, "graph @f"));
}

static void hear_report(void *user, const PassReport *r)
{
    Heard *h = user;
    h->reports++;
    h->changes += r->changes;
    assert_true(r->seconds >= 0);
    assert_true(r->pass->n_rules == 0 || r->applied);
}

static Heard run_clean(PipelineOptions options, size_t *nodes)
{
    Language l;
    Heard heard = { 0 };
    language_open(&l);
    Graph *g = parsed(&l, small);
    options.print = hear_print;
    options.report = hear_report;
    options.user = &heard;
    check_that(pipeline_run(pipeline_find("clean"), g, &options) == OK, "%s", text_get(&l.messages));
    *nodes = graph_count(g);
    language_close(&l);
    return heard;
}

static void options_do_what_they_say(void **state)
{
    size_t nodes;
    (void)state;
    Heard h = run_clean((PipelineOptions){ .verify_each = VERIFY_VALUES }, &nodes);
    assert_int_equal(h.prints, 0);
    assert_int_equal(h.reports, (int)pipeline_find("clean")->n);
    assert_int_equal(nodes, 2);
    h = run_clean((PipelineOptions){ .print_after = "all" }, &nodes);
    assert_int_equal(h.prints, h.reports);
    h = run_clean((PipelineOptions){ .print_after = "simplify", .stop_after = "simplify" }, &nodes);
    assert_int_equal(h.prints, 1);
    assert_string_equal(h.last, "simplify");
    assert_int_equal(h.reports, 8);
    h = run_clean((PipelineOptions){ .pass_limit = 7 }, &nodes); /* no rule yet */
    assert_int_equal(h.changes, 0);
    assert_int_equal(nodes, 4);
    h = run_clean((PipelineOptions){ .pass_limit = 8 }, &nodes);
    assert_int_equal(h.changes, 1);
    assert_int_equal(nodes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_do_not_lie),
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(every_pipeline_is_well_ordered),
        cmocka_unit_test(wrong_orders_are_named),
        cmocka_unit_test(wrong_passes_are_blamed),
        cmocka_unit_test(missing_shapes_are_located),
        cmocka_unit_test(folding_keeps_its_budgets),
        cmocka_unit_test(options_do_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
