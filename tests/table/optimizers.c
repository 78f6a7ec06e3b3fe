/* Every kind of optimizer, from its line and its card: each setting is read, said back, bounded and known to groups, and a
 * step that it makes keeps what the card says. */
#include "testing.h"

#include "api/options/option_kinds.h"
#include "ir/text/parse.h"
#include "passes/pipelines.h"
#include "passes/recipe/optimizer_read.h"
#include "support/calls.h"

static Status read_words(Context *c, const char *optimizer, const char *group, Recipe *r)
{
    const OptimizerWords words = { .optimizer = optimizer, .groups = &group, .n_groups = group != NULL };
    *r = (Recipe){ .n_groups = 0 };
    c->last = "";
    return recipe_read_optimizer(r, &words, c->ir.ops, &c->arena, &c->diag);
}

static const char *words_of(Context *c, const char *optimizer, const char *group)
{
    Recipe r;
    require(read_words(c, optimizer, group, &r) == OK, "%s %s: %s", optimizer, group ? group : "", c->last);
    return optimizer_text(&c->arena, c->ir.ops, &r.groups[group != NULL]);
}

static void expect_mistake(Context *c, const char *optimizer)
{
    Recipe r;
    require(read_words(c, optimizer, NULL, &r) == USAGE && *c->last, "%s is taken", optimizer);
}

/* What a setting of a kind may be: another value than its own. */
static const char *other_value(const char *setting)
{
    const char *value = strchr(setting, '=') + 1;
    if (strncmp(setting, "states=", 7) == 0)
        return "fp8";
    return strcmp(value, "true") == 0 ? "false" : strcmp(value, "false") == 0 ? "true" : "0.125";
}

static void expect_setting(Context *c, const char *kind, const char *setting)
{
    Arena *a = &c->arena;
    const size_t n = strcspn(setting, "=");
    const char *key = arena_copy(a, setting, n), *value = other_value(setting);
    const char *plain = words_of(c, kind, NULL), *said = arena_printf(a, "%s:%s=%s", kind, key, value);
    assert_string_equal(words_of(c, arena_printf(a, "%s:%s", kind, setting), NULL), plain);
    if (strcmp(said, "sgd:nesterov=true") == 0 ||
        strcmp(said, "nesterov:dampening=0.125") == 0) { /* wants a momentum, none */
        expect_mistake(c, said);
        return;
    }
    const char *changed = words_of(c, said, NULL);
    require(strcmp(changed, plain) != 0, "%s changes nothing", said);
    assert_string_equal(words_of(c, "adam", arena_printf(a, "x:optimizer=%s,%s=%s", kind, key, value)), changed);
    assert_string_equal(words_of(c, kind, arena_printf(a, "x:%s=%s", key, value)), changed);
    expect_mistake(c, arena_printf(a, "%s:%s=-1", kind, key));
    expect_mistake(c, arena_printf(a, "%s:%s=word", kind, key));
    if (strncmp(key, "beta", 4) == 0)
        expect_mistake(c, arena_printf(a, "%s:%s=1", kind, key));
}

static Status settings_hold(void *arg)
{
    Context *c = arg;
    OptionKind *kinds;
    const size_t n = option_kinds(c->ir.ops, &c->arena, OPT_optimizer, &kinds);
    assert_int_equal(n, optimizer_kinds());
    for (size_t i = 0; i < n; i++) {
        const char *kind = kinds[i].word;
        const char *said = words_of(c, kind, NULL);
        require(strncmp(said, kind, strlen(kind)) == 0, "%s is called %s", kind, said);
        assert_non_null(strstr(option_specs[OPT_optimizer].help, kind));
        assert_true(kinds[i].n >= 2 && strncmp(kinds[i].settings[0], "lr=", 3) == 0);
        for (size_t s = 0; s < kinds[i].n; s++)
            expect_setting(c, kind, kinds[i].settings[s]);
        expect_mistake(c, arena_printf(&c->arena, "%s:nothing=1", kind));
        expect_mistake(c, arena_printf(&c->arena, "%s:lr=1,lr=1", kind));
    }
    return OK;
}

/* The step of each kind verifies, and has the states that its card names. */
static Status steps_are_made(void *arg)
{
    static const char text[] = "graph @f(%x: f32[2], state %w: f32[2] trained) -> (%loss, %grad.w = %x) {\n"
                               "    %y: f32[2] = mul(%x, %w)\n"
                               "    %loss: f32[] = reduce_sum(%y, keepdims=false)\n"
                               "}\n";
    Context *c = arg;
    const Pass *const passes[] = { pass_find("update") };
    const Pipeline pipeline = { "optimizers", TYPED | SHAPED, passes, 1 };
    for (size_t i = 0; i < optimizer_kinds(); i++) {
        Recipe r;
        Module *m = NULL;
        const char *names[8];
        const PipelineOptions options = { .pass.recipe = &r, .verify_each = VERIFY_VALUES };
        require(read_words(c, optimizer_kind(i), NULL, &r) == OK, "%s", c->last);
        assert_int_equal(parse_module(&c->ir, &c->arena, str(text), "optimizers.qir", NULL, NULL, &m), OK);
        const Status status = pipeline_run_module(&pipeline, m, &options);
        require(status == OK, "%s: %d %s\n", optimizer_kind(i), status, c->last);
        const OpDef *def = c->ir.ops->defs[r.groups[0].op];
        assert_non_null(def->states);
        const int n = def->states(r.groups[0].attr, names);
        int found = 0;
        for (size_t k = 0; k < m->graphs[0]->n_inputs; k++) {
            const Node *in = m->graphs[0]->inputs[k];
            for (int s = 0; s < n; s++)
                found += in->name && strcmp(in->name, arena_printf(&c->arena, "qcc.%s/w", names[s])) == 0;
        }
        require(found == n, "%s: %d states, not %d", optimizer_kind(i), found, n);
    }
    return OK;
}

static void settings(void **state)
{
    (void)state;
    with_context(settings_hold);
}

static void steps(void **state)
{
    (void)state;
    with_context(steps_are_made);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(settings), cmocka_unit_test(steps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
