/* An optimizer, a pass and an option that are not ours, as the pages show them: a card and a line, a file and a line, a
 * line and its use. */
#include "api/options/option_kinds.h"
#include "api/options/recipe_options.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/pipelines.h"
#include "passes/recipe/optimizer_read.h"
#include "qcc/qcc.h"
#include "support/cards_hold.h"
#include "support/calls.h"
#include "support/folder.h"
#include "support/recipe.h"

static const char *model;

/* Our cards, and one more: the whole program is linked with this table in place of ours. */
static const OpDef *const defs[] = {
#define OP(word) [OP_##word] = &op_##word,
#include "ir/ops.def"
#undef OP
    [OP_update_signum] = &op_update_signum,
};
const OpTable ops_table = { defs, COUNT(defs) };

static const char *text_of(Context *c, const Module *m)
{
    Text t;
    text_open(&t, &c->arena);
    assert_int_equal(print_module(&t, m, NULL), OK);
    return text_get(&t);
}

static Module *read_text(Context *c, const char *text)
{
    Module *m = NULL;
    require(parse_module(&c->ir, &c->arena, str(text), "rows.qir", NULL, NULL, &m) == OK, "%s", c->last);
    return m;
}

/* ---- the optimizer ---- */

static Status read_recipe(Context *c, const char *options, Recipe *r)
{
    *r = (Recipe){ .n_groups = 0 };
    c->last = "";
    return recipe_from_options(r, &c->ir, &c->arena, str(options), NULL);
}

static void expect_words(Context *c, const char *options, size_t group, const char *words)
{
    Recipe r;
    require(read_recipe(c, options, &r) == OK, "%s: %s", options, c->last);
    assert_string_equal(optimizer_text(&c->arena, &ops_table, &r.groups[group]), words);
}

static void expect_mistake(Context *c, const char *options, const char *said)
{
    Recipe r;
    require(read_recipe(c, options, &r) == USAGE && strstr(c->last, said), "%s: %s", options, c->last);
}

static Status optimizer_is_read(void *context)
{
    Context *c = context;
    expect_words(c, "--optimizer signum", 0, "signum lr 0.0001");
    expect_words(c, "--optimizer signum:lr=0.01,momentum=0.5,wd=0.1", 0,
                 "signum lr 0.01, momentum 0.5, weight_decay 0.1");
    expect_words(c, "--group fc:optimizer=signum,momentum=0", 1, "signum lr 0.0001, momentum 0");
    expect_words(c, "--optimizer adamw:lr=2", 0, "adamw lr 2");
    expect_mistake(c, "--optimizer signun", "signum");
    expect_mistake(c, "--optimizer signum:momentum=1", "from 0 to below 1");
    expect_mistake(c, "--optimizer signum:nesterov=true", "has no setting nesterov");
    return OK;
}

/* Help, its list of kinds, and completion know it. */
static Status optimizer_is_shown(void *context)
{
    Context *c = context;
    Text t;
    text_open(&t, &c->arena);
    kinds_print(&t, &ops_table);
    assert_non_null(strstr(text_get(&t), "signum          lr=0.0001 momentum=0.9 weight_decay=0 states=f32\n"));
    kinds_complete(&t, &ops_table, OPT_optimizer);
    assert_non_null(strstr(text_get(&t), "signum[:,]*) words=\"lr= momentum= weight_decay= states=\""));
    assert_non_null(strstr(option_specs[OPT_optimizer].help, "signum"));
    return OK;
}

/* One step through the pass `update`: the parameter goes by the rate against the sign of the average. */
static Status optimizer_trains(void *context)
{
    static const char text[] = "graph @f(%x: f32[2], state %w: f32[2] trained) -> (%loss, %grad.w = %x) {\n"
                               "    %y: f32[2] = mul(%x, %w)\n"
                               "    %loss: f32[] = reduce_sum(%y, keepdims=false)\n"
                               "}\n";
    Context *c = context;
    Recipe r;
    const Pass *const passes[] = { pass_find("update") };
    const Pipeline pipeline = { "rows", TYPED | SHAPED, passes, 1 };
    const PipelineOptions options = { .pass.recipe = &r, .verify_each = VERIFY_VALUES };
    Module *m = read_text(c, text);
    require(read_recipe(c, "--optimizer signum:lr=0.25,momentum=0.5", &r) == OK, "%s", c->last);
    const Status status = pipeline_run_module(&pipeline, m, &options);
    require(status == OK, "%d %s", status, c->last);
    const char *after = text_of(c, m);
    require(strstr(after, "= update_signum(") && strstr(after, "state %\"qcc.m/w\": f32[2] role=moment of=%w"), "%s",
            after);
    return OK;
}

/* ---- the pass ---- */

static Status pass_is_found(void *context)
{
    static const char before[] = "graph @f(%x: f32[2], %y: f32[2]) -> (%d) {\n"
                                 "    %d: f32[2] = sub(%x, %y)\n"
                                 "}\n";
    static const char after[] = "graph @f(%x: f32[2], %y: f32[2]) -> (%d) {\n"
                                "    %0: f32[2] = neg(%y)\n"
                                "    %d: f32[2] = add(%x, %0)\n"
                                "}\n";
    Context *c = context;
    const Pass *pass = pass_find("add-negative");
    assert_non_null(pass);
    const Pipeline pipeline = { "rows", TYPED, &pass, 1 };
    const PipelineOptions options = { .verify_each = VERIFY_VALUES };
    Module *m = read_text(c, before);
    const Status status = pipeline_run_module(&pipeline, m, &options);
    require(status == OK, "%s", c->last);
    assert_string_equal(text_of(c, m), after);
    return OK;
}

/* ---- the option ---- */

typedef struct Answer {
    char text[65536], said[4096];
    size_t n;
    qcc_status status;
} Answer;

static void hear(void *user, const qcc_message *m)
{
    Answer *a = user;
    const size_t n = strlen(a->said);
    snprintf(a->said + n, sizeof a->said - n, "%s", m->text);
}

static qcc_status keep(void *user, const void *p, size_t n)
{
    Answer *a = user;
    if (n >= sizeof a->text - a->n)
        return QCC_IO;
    memcpy(a->text + a->n, p, n);
    a->n += n;
    a->text[a->n] = 0;
    return QCC_OK;
}

/* qcc, with the words up to the first null. */
static const char *ask(Answer *a, qcc_status status, const char *const *words)
{
    const qcc_context_options options = { .size = sizeof options, .report = hear, .user = a, .threads = 1 };
    const qcc_sink sink = { .write = keep, .user = a };
    const char *argv[16] = { "qcc" };
    qcc_context *cx;
    int n = 1;
    for (; words[n - 1]; n++)
        argv[n] = words[n - 1];
    *a = (Answer){ .status = QCC_OK };
    assert_int_equal(qcc_open(&options, &cx), QCC_OK);
    a->status = qcc_command(cx, n, argv, &sink);
    qcc_close(cx);
    require(a->status == status, "%s", a->said);
    return a->text;
}

#define ASK(a, status, ...) ask(a, status, (const char *const[]){ __VA_ARGS__, NULL })

/* It is shown, fills its field, stands in the file of a step, is printed from there, and refused there. */
static Status option_is_known(void *context)
{
    static Answer a;
    Context *c = context;
    Recipe r;
    const char *step = in_folder("rows.step.onnx");
    assert_int_equal(option_specs[OPT_COUNT - 1].verbs, V_STEP);
    require(read_recipe(c, "--whole a --whole b --clip-norm 2", &r) == OK, "%s", c->last);
    assert_true(r.n_whole == 2 && strcmp(r.whole[1], "b") == 0 && r.clip_norm == 2);
    assert_non_null(strstr(ASK(&a, QCC_OK, "--help=all"), "inputs that every micro-batch reads whole"));
    assert_non_null(strstr(ASK(&a, QCC_OK, "--help=completion"), "--whole"));
    (void)ASK(&a, QCC_OK, model, "--whole", "a", "-o", step);
    assert_non_null(strstr(ASK(&a, QCC_OK, step, "--print-config"), "# whole = a\n"));
    (void)ASK(&a, QCC_USAGE, "train", step, "--whole", "b");
    require(strstr(a.said, "--whole: was decided when the step was compiled") && strstr(a.said, "--whole b -o"), "%s",
            a.said);
    (void)ASK(&a, QCC_USAGE, "run", model, "--whole", "b");
    require(strstr(a.said, "--whole: does not apply to run"), "%s", a.said);
    return OK;
}

/* The command compiles a step with the optimizer, and the file of the step is read back. */
static Status optimizer_is_compiled(void *context)
{
    static Answer a;
    const char *step = in_folder("signum.step.onnx");
    (void)context;
    assert_non_null(strstr(ASK(&a, QCC_OK, "--help=loss"), "signum          lr=0.0001"));
    (void)ASK(&a, QCC_OK, model, "--optimizer", "signum:momentum=0.5", "-o", step);
    assert_non_null(strstr(a.text, "signum lr 0.0001, momentum 0.5 "));
    assert_non_null(strstr(ASK(&a, QCC_OK, step, "--print-config"), "# optimizer = signum:momentum=0.5\n"));
    assert_non_null(strstr(ASK(&a, QCC_OK, step, "--emit", "ir"), "= update_signum("));
    return OK;
}

/* ---- all of them ---- */

static void optimizer(void **state)
{
    (void)state;
    const char *lacks = card_lacks(&op_update_signum);
    require(!lacks, "the card lacks %s", lacks);
    assert_int_equal(card_samples_fail(&ops_table, &op_update_signum), 0);
    with_context(optimizer_is_read);
    with_context(optimizer_is_shown);
    with_context(optimizer_trains);
    with_context(optimizer_is_compiled);
}

static void pass(void **state)
{
    (void)state;
    with_context(pass_is_found);
}

static void option(void **state)
{
    (void)state;
    with_context(option_is_known);
}

static int setup(void **state)
{
    (void)state;
    return folder_open();
}

static int teardown(void **state)
{
    (void)state;
    return folder_close();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(optimizer), cmocka_unit_test(pass), cmocka_unit_test(option) };
    if (argc < 2)
        return 2;
    model = argv[1];
    return cmocka_run_group_tests(tests, setup, teardown);
}
