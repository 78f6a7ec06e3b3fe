/* label: slow */
/* Whatever tables say, what comes out of insertion is a graph, the second time changes nothing, and stripped it is what
 * it was: tables of random classes and masks, and the lists of others, on every model, golden graph and sample. */
#include "ir/verify.h"
#include "ops/card/words.h"
#include "passes/amp/shipped.h"
#include "passes/amp/table.h"
#include "support/amp_trial.h"
#include "support/seed.h"

/* Classes that compute wide fit everything. */
static const AmpClass wide[] = { AMP_S, AMP_FO, AMP_FI, AMP_F, AMP_EX, AMP_E, AMP_W };
static const AmpClass any[] = { AMP_T, AMP_S, AMP_FO, AMP_FI, AMP_F, AMP_EX, AMP_E, AMP_W, AMP_P, AMP_PW, AMP_PM };

/* A table with a random class for every operator of a graph. */
static const char *wild_table(const AmpTrial *t, Rng *rng, bool narrow_too)
{
    Text text;
    text_open(&text, &t->c->arena);
    text_add(&text, "\n");
    for (Node *n = walk_first(t->graph); n; n = walk_next(t->graph, n)) {
        const AmpClass own = op_of(n)->amp.f16;
        const char *word = amp_word(narrow_too ? any[rng_below(rng, COUNT(any))] : wide[rng_below(rng, COUNT(wide))]);
        if (op_of(n)->structural || own == AMP_N || own == AMP_X)
            continue;
        text_printf(&text, "op:%s fp16=%s bf16=%s", op_of(n)->name, word, word);
        if (narrow_too && rng_below(rng, 4) == 0)
            text_printf(&text, " wide=%d", (int)rng_below(rng, 4));
        text_char(&text, '\n');
    }
    return text_get(&text);
}

/* Whether a graph has 16-bit floats of its own. */
static bool is_narrow_itself(const AmpTrial *t)
{
    for (Node *n = walk_first(t->graph); n; n = walk_next(t->graph, n))
        for (int i = 0; i < type_results(n->type); i++) {
            const Type *x = type_result(n->type, i);
            if (x->kind == TYPE_TENSOR && (x->dtype == F16 || x->dtype == BF16))
                return true;
        }
    return false;
}

/* What a run is told beside its way. */
typedef struct Said {
    const AmpTable *table;
    const char *const *kept;
    size_t n_kept;
} Said;

static const char *run(const AmpTrial *t, Graph *g, const char *pass, AmpWay way, const Said *said)
{
    const Recipe recipe = { .precision = { .on = true,
                                           .narrow = way.narrow,
                                           .walks = way.walks,
                                           .tables = &said->table,
                                           .n_tables = 1,
                                           .keep_wide = said->kept,
                                           .n_keep_wide = said->n_kept } };
    const PassOptions options = { .recipe = &recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    t->c->last = NULL;
    if (pass_run(pass_find(pass), g, &run) != OK)
        return amp_say(t, way, "%s fails: %s", pass, t->c->last);
    if (verify(g, NULL) != OK)
        return amp_say(t, way, "no graph after %s: %s\n%s\n%s", pass, t->c->last, said->table->text, amp_text(t, g));
    return NULL;
}

static const char *check_said(const AmpTrial *t, AmpWay way, const Said *said, const char *bare, bool settles)
{
    Graph *g = graph_copy(t->graph, &t->c->arena);
    const char *wrong = run(t, g, "insert-amp", way, said);
    if (wrong)
        return wrong;
    const char *once = amp_text(t, g);
    Graph *again = graph_copy(g, &t->c->arena);
    wrong = settles ? run(t, again, "insert-amp", way, said) : NULL;
    if (!wrong && settles)
        wrong = amp_differs(t, way, "the second time", once, amp_text(t, again));
    if (!wrong)
        wrong = run(t, g, "strip-casts", way, said);
    return wrong ? wrong : amp_differs(t, way, "stripped", bare, amp_text(t, g));
}

static const char *check_table(const AmpTrial *t, AmpWay way, const char *name, const char *text, const char *bare,
                               bool settles)
{
    Said said = { .n_kept = 0 };
    assert_int_equal(amp_table_read(&said.table, name, text, t->c->ir.ops, &t->c->arena, &t->c->diag), OK);
    return check_said(t, way, &said, bare, settles);
}

static const char *check_lists(AmpTrial *t)
{
    const char *names[MOST_SHIPPED_TABLES], *wrong = NULL;
    const size_t n = amp_tables_shipped(names);
    Graph *bare = graph_copy(t->graph, &t->c->arena);
    wrong = amp_run(t, bare, "strip-casts", amp_ways[0], NULL);
    const char *text = amp_text(t, bare);
    for (size_t i = 0; i < n * AMP_WAYS && !wrong; i++)
        wrong = check_table(t, amp_ways[i / n], names[i % n], amp_table_shipped(names[i % n]), text, true);
    return wrong;
}

static const char *check_random(AmpTrial *t, bool narrow_too)
{
    Rng rng = { seed_of(t->name, narrow_too) };
    Graph *bare = graph_copy(t->graph, &t->c->arena);
    const char *wrong = amp_run(t, bare, "strip-casts", amp_ways[0], NULL);
    const char *text = amp_text(t, bare);
    for (int i = 0; i < AMP_WAYS && !wrong && !is_narrow_itself(t); i++)
        wrong = check_table(t, amp_ways[i], "wild.txt", wild_table(t, &rng, narrow_too), text, !narrow_too);
    return wrong;
}

/* One node of three, by its operator. */
static const char *check_kept(AmpTrial *t)
{
    Rng rng = { seed_of(t->name, 0) };
    const char **kept = NEWS(&t->c->arena, const char *, graph_count(t->graph) + 1), *wrong;
    Graph *bare = graph_copy(t->graph, &t->c->arena);
    Said said = { .kept = kept };
    wrong = amp_run(t, bare, "strip-casts", amp_ways[0], NULL);
    const char *text = amp_text(t, bare);
    assert_int_equal(amp_table_read(&said.table, "none.txt", "", t->c->ir.ops, &t->c->arena, &t->c->diag), OK);
    for (Node *n = walk_first(t->graph); n; n = walk_next(t->graph, n))
        if (!op_of(n)->structural && rng_below(&rng, 3) == 0)
            kept[said.n_kept++] = arena_printf(&t->c->arena, "op:%s", op_of(n)->name);
    for (int i = 0; i < AMP_WAYS && !wrong && !is_narrow_itself(t); i++)
        wrong = check_said(t, amp_ways[i], &said, text, true);
    return wrong;
}

static const char *check_wide(AmpTrial *t)
{
    return check_random(t, false);
}

static const char *check_any(AmpTrial *t)
{
    return check_random(t, true);
}

static void on_everything(AmpCheck *check)
{
    int models, samples, bad = amp_check_models(check, &models);
    bad += amp_check_samples(check, &samples);
    print_message("%d models and goldens, %d samples\n", models, samples);
    assert_true(models > 0 && samples > 0);
    assert_int_equal(bad, 0);
}

static void lists_of_others(void **state)
{
    (void)state;
    on_everything(check_lists);
}

static void random_operators_that_stay_wide(void **state)
{
    (void)state;
    on_everything(check_kept);
}

static void random_tables_of_wide_classes(void **state)
{
    (void)state;
    on_everything(check_wide);
}

static void random_tables(void **state)
{
    (void)state;
    on_everything(check_any);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_others),
        cmocka_unit_test(random_operators_that_stay_wide),
        cmocka_unit_test(random_tables_of_wide_classes),
        cmocka_unit_test(random_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
