/* What a step keeps of options, for all of the table: those that are compiled in survive the file and are refused by its
 * runs, those that are free leave the file as it is, and each is refused where it does not belong.  A new option is
 * tested the day it is written. */
#include "testing.h"

#include "api/options/recipe_options.h"
#include "base/file.h"
#include "qcc/qcc.h"
#include "support/calls.h"
#include "support/folder.h"
#include "support/recipe.h"

#define MODEL QCC_SOURCE_DIR "/tests/command/models/mlp.onnx"
#define VALUE QCC_SOURCE_DIR "/tests/command/models/x.npy"

/* ---- commands ---- */

typedef struct Answer {
    char text[8192], said[8192]; /* results, messages */
    size_t n;
    qcc_status status;
} Answer;

static void hear(void *user, const qcc_message *m)
{
    Answer *a = user;
    const size_t n = strlen(a->said);
    snprintf(a->said + n, sizeof a->said - n, "%s: %s\n", m->place ? m->place : "", m->text);
}

static qcc_status keep_text(void *user, const void *p, size_t n)
{
    Answer *a = user;
    const size_t room = sizeof a->text - 1 - a->n, most = n < room ? n : room;
    memcpy(a->text + a->n, p, most);
    a->n += most;
    a->text[a->n] = 0;
    return QCC_OK;
}

/* qcc, with the words up to the first null. */
static void ask(Answer *a, const char *const *words)
{
    const qcc_context_options options = { .size = sizeof options, .report = hear, .user = a, .threads = 1 };
    const qcc_sink sink = { .write = keep_text, .user = a };
    const char *argv[32] = { "qcc" };
    qcc_context *cx;
    int n = 1;
    for (; words[n - 1]; n++)
        argv[n] = words[n - 1];
    *a = (Answer){ .status = QCC_OK };
    assert_int_equal(qcc_open(&options, &cx), QCC_OK);
    a->status = qcc_command(cx, n, argv, &sink);
    qcc_close(cx);
}

/* ---- values ---- */

/* Values that the form of an option does not tell, and what they have to stand beside. */
static const struct {
    Option option;
    const char *value, *beside, *with;
} samples[] = {
    { OPT_batch, "4", NULL, NULL },
    { OPT_dim, "batch=4", NULL, NULL },
    { OPT_shape, "x:4x4", NULL, NULL },
    { OPT_constant, "x=" VALUE, "--freeze", "fc1" },
    { OPT_opset, "17", NULL, NULL },
    { OPT_tie, "off", NULL, NULL },
    { OPT_loss, "mse:y", NULL, NULL },
    { OPT_teacher, "self", "--loss", "cross_entropy:y" },
    { OPT_optimizer, "lion", NULL, NULL },
    { OPT_group, "fc2:lr=0.5x", NULL, NULL },
    { OPT_schedule, "cosine:warmup=3", NULL, NULL },
    { OPT_accumulate, "2", "--batch", "4" },
    { OPT_amp_table, "mxnet-fp16", "--amp", "fp16" },
    { OPT_loss_scale, "static:8", "--amp", "fp16" },
    { OPT_quant, "w8a8", NULL, NULL },
    { OPT_quant_op, "op:MatMul=off", "--quant", "w8a8" },
    { OPT_memory_limit, "50%", NULL, NULL },
    { OPT_device, "reference", NULL, NULL },
};

/* A value that fits an option; null: it takes none. */
static const char *value_of_option(Arena *arena, Option o)
{
    const OptionSpec *spec = &option_specs[o];
    for (size_t i = 0; i < COUNT(samples); i++)
        if (samples[i].option == o)
            return samples[i].value;
    switch (spec->kind) {
    case ARG_FLAG:
        return NULL;
    case ARG_CHOICE: { /* the last word: the first is mostly what is done anyway */
        const char *p = spec->form + strspn(spec->form, "[="), *last = strrchr(spec->form, '|');
        p = last ? last + 1 : p;
        return arena_copy(arena, p, strcspn(p, "]"));
    }
    case ARG_COUNT:
        return "2";
    case ARG_REAL:
        return "0.5";
    case ARG_SELECTOR:
        return "fc1";
    case ARG_FILE_IN:
        return in_folder("empty");
    default:
        return "a=b";
    }
}

typedef struct Line {
    const char *words[24];
    int n;
} Line;

static void say(Line *l, const char *word)
{
    if (word)
        l->words[l->n++] = word;
}

static void say_option(Line *l, Arena *arena, Option o, const char *value)
{
    const OptionSpec *spec = &option_specs[o];
    if (option_may_lack(spec) && value)
        say(l, arena_printf(arena, "%s=%s", spec->name, value));
    else {
        say(l, spec->name);
        say(l, value);
    }
}

/* What has to stand beside an option for it to mean something: another option. */
static void say_beside(Line *l, Option o)
{
    for (size_t i = 0; i < COUNT(samples); i++)
        if (samples[i].option == o && samples[i].beside) {
            say(l, samples[i].beside);
            say(l, samples[i].with);
            return;
        }
    if (option_specs[o].topic == TOPIC_QUANT && option_is_recorded(o) && o != OPT_amp) {
        say(l, "--amp");
        say(l, "fp16");
    }
}

static bool is_served(Option o)
{
    return option_specs[o].needs == NEEDS_NOW;
}

/* ---- what is compiled in ---- */

/* The line of a configuration that an option is. */
static const char *config_of(Arena *arena, Option o, const char *value)
{
    const char *name = option_specs[o].name;
    name += strspn(name, "-");
    return value ? arena_printf(arena, "# %s = %s\n", name, value) : arena_printf(arena, "# %s\n", name);
}

/* The runs of a step refuse what was compiled into it, and name the line that compiles again; --lr they take. */
static void expect_refusal(Context *c, Option o, const char *value, const char *step)
{
    static const char *const verbs[] = { "eval", "explain", "export", "train" };
    for (size_t v = 0; v < COUNT(verbs); v++) {
        Answer a;
        Line l = { .n = 0 };
        say(&l, verbs[v]);
        say(&l, step);
        say(&l, "--print-config");
        say_option(&l, &c->arena, o, value);
        ask(&a, l.words);
        if (!option_is_compiled(o)) {
            require(a.status == QCC_OK, "%s %s: %s", verbs[v], option_specs[o].name, a.said);
            continue;
        }
        require(a.status == QCC_USAGE && strstr(a.said, option_specs[o].name) &&
                    strstr(a.said, "decided when the step was compiled"),
                "%s %s is not refused: %s", verbs[v], option_specs[o].name, a.said);
    }
}

static void survives(Context *c, Option o)
{
    Answer a;
    Line l = { .n = 0 };
    const char *value = value_of_option(&c->arena, o), *step = in_folder("kept.step.onnx"),
               *name = option_specs[o].name;
    say(&l, MODEL);
    say_option(&l, &c->arena, o, value);
    say_beside(&l, o);
    say(&l, "-o");
    say(&l, step);
    ask(&a, l.words);
    require(a.status == QCC_OK, "%s %s: %s", name, value ? value : "", a.said);
    ask(&a, (const char *const[]){ step, "--print-config", NULL });
    require(a.status == QCC_OK, "%s: its step is not read: %s", name, a.said);
    require(strstr(a.text, config_of(&c->arena, o, o == OPT_loss ? "mse:y" : value)), "%s %s is lost: %s", name,
            value ? value : "", a.text);
    expect_refusal(c, o, value, step);
}

static Status compiled_ones_survive(void *arg)
{
    int n = 0;
    for (int o = 0; o < OPT_COUNT; o++)
        if (option_is_recorded((Option)o)) {
            assert_true(is_served((Option)o));
            survives(arg, (Option)o);
            n++;
        }
    assert_true(n >= 26);
    return OK;
}

/* ---- what is free ---- */

static Str bytes_of(Context *c, const char *path)
{
    Str bytes = { NULL, 0 };
    assert_int_equal(file_read(&c->arena, &c->diag, path, 1 << 24, "test", &bytes), OK);
    return bytes;
}

/* 1 when the option lets a step be written, which is then the one without it. */
static int leaves_the_step(Context *c, Option o, Str without)
{
    Answer a;
    Line l = { .n = 0 };
    const char *path = in_folder("free.step.onnx"), *value = value_of_option(&c->arena, o);
    remove(path);
    say(&l, "compile");
    say(&l, MODEL);
    say_option(&l, &c->arena, o, value);
    say(&l, "-o");
    say(&l, path);
    ask(&a, l.words);
    if (!file_exists(path) || a.status != QCC_OK)
        return 0;
    const Str with = bytes_of(c, path);
    require(with.n == without.n && memcmp(with.p, without.p, with.n) == 0, "%s changes the step", option_specs[o].name);
    return 1;
}

/* What -o is then is no step. */
static bool writes_else(Option o)
{
    static const Option all[] = { OPT_help,         OPT_version, OPT_list_ops, OPT_print_table,
                                  OPT_print_config, OPT_emit,    OPT_export_,  OPT_output_path };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i] == o)
            return true;
    return false;
}

static Status free_ones_change_nothing(void *arg)
{
    Context *c = arg;
    Answer a;
    const char *path = in_folder("plain.step.onnx");
    int n = 0;
    ask(&a, (const char *const[]){ MODEL, "-o", path, NULL });
    require(a.status == QCC_OK, "%s", a.said);
    const Str without = bytes_of(c, path);
    for (int o = 0; o < OPT_COUNT; o++) {
        const OptionSpec *spec = &option_specs[o];
        if (spec->keep == KEEP_FREE && spec->verbs & V_COMPILE && is_served((Option)o) && !writes_else((Option)o))
            n += leaves_the_step(c, (Option)o, without);
    }
    require(n >= 12, "only %d options were tried", n);
    return OK;
}

/* ---- where options do not belong ---- */

static Status refused_elsewhere(void *arg)
{
    Context *c = arg;
    for (int o = 0; o < OPT_COUNT; o++)
        for (int v = 0; v < VERB_COUNT; v++) {
            CommandLine line = { .verb = (Verb)v };
            const OptionSpec *spec = &option_specs[o];
            option_add(&c->arena, &line, (Option)o, value_of_option(&c->arena, (Option)o));
            c->last = "";
            const Status status = options_allowed(&c->diag, &line);
            if (spec->verbs >> v & 1) {
                require(status == (is_served((Option)o) ? OK : USAGE), "%s %s: %s", verb_name((Verb)v), spec->name,
                        c->last);
                continue;
            }
            require(status == USAGE && strstr(c->last, spec->name) &&
                        strstr(c->last, arena_printf(&c->arena, "does not apply to %s", verb_name((Verb)v))),
                    "%s %s: %s", verb_name((Verb)v), spec->name, c->last);
        }
    return OK;
}

/* Options as one text: a call takes what it answers, and the file of a step what it keeps. */
static Status texts_take_what_they_answer(void *arg)
{
    static const unsigned verbs[] = { V_MODEL, V_COMPILE, V_EXPORT, V_COMPILE, V_COMPILE };
    Context *c = arg;
    for (int o = 0; o < OPT_COUNT; o++)
        for (int what = TEXT_READS; what <= TEXT_RECORDED; what++) {
            CommandLine line;
            Text t;
            const OptionSpec *spec = &option_specs[o];
            const char *value = value_of_option(&c->arena, (Option)o);
            text_open(&t, &c->arena);
            text_printf(&t, "%s%s%s", spec->name, !value ? "" : option_may_lack(spec) ? "=" : " ", value ? value : "");
            c->last = "";
            const Status status = options_read_text(&c->diag, &c->arena, "a call", text_get(&t), (TextFor)what, &line);
            const bool kept = option_is_recorded((Option)o);
            require(status == OK || strstr(c->last, spec->name), "%s: %s", spec->name, c->last);
            if (what == TEXT_RECORDED)
                require(status == (kept ? OK : INVALID), "%s is %srecorded: %s", spec->name, kept ? "not " : "",
                        c->last);
            else if (status == OK)
                require(spec->verbs & verbs[what] && is_served((Option)o), "%s is taken", spec->name);
            else
                require(status == USAGE && !(kept && what == TEXT_COMPILES), "%s: %s", spec->name, c->last);
        }
    return OK;
}

/* ---- fields of recipes ---- */

static bool same_field(const Recipe *a, const Recipe *b, const RecipeField *f, size_t n)
{
    return memcmp((const char *)a + f->at, (const char *)b + f->at, n) == 0;
}

/* Each option that has a field changes that field, and no other that is a number or a switch. */
static Status fields_are_filled(void *arg)
{
    static const size_t sizes[] = { [FILL_WORD] = sizeof(bool),
                                    [FILL_NUMBER] = sizeof(double),
                                    [FILL_INTEGER] = sizeof(int64_t),
                                    [FILL_GIVEN] = sizeof(bool) };
    Context *c = arg;
    Recipe none = { 0 };
    assert_int_equal(recipe_from_options(&none, &c->ir, &c->arena, str(""), NULL), OK);
    for (int o = 0; o < OPT_COUNT; o++) {
        const RecipeField *f = &recipe_fields[o];
        const char *value = value_of_option(&c->arena, (Option)o), *name = option_specs[o].name;
        Recipe r = { 0 };
        if (f->kind == FILL_NONE)
            continue;
        assert_true(option_is_recorded((Option)o));
        if (f->kind == FILL_WORD)
            value = f->word;
        const Str text = str(arena_printf(&c->arena, "%s %s", name, value ? value : ""));
        require(recipe_from_options(&r, &c->ir, &c->arena, text, NULL) == OK, "%s: %s", name, c->last);
        if (f->kind == FILL_TEXTS)
            require(*(const size_t *)(const void *)((const char *)&r + f->n_at) == 1, "%s is not in its field", name);
        for (int k = 0; k < OPT_COUNT; k++) {
            const RecipeField *other = &recipe_fields[k];
            if (other->kind != FILL_NONE && other->kind != FILL_TEXTS && other->kind != FILL_READ)
                require(same_field(&r, &none, other, sizes[other->kind]) == (k != o), "%s: the field of %s", name,
                        option_specs[k].name);
        }
    }
    return OK;
}

static void compiled(void **state)
{
    (void)state;
    with_context(compiled_ones_survive);
}

static void runs(void **state)
{
    (void)state;
    with_context(free_ones_change_nothing);
}

static void elsewhere(void **state)
{
    (void)state;
    with_context(refused_elsewhere);
}

static void texts(void **state)
{
    (void)state;
    with_context(texts_take_what_they_answer);
}

static void fields(void **state)
{
    (void)state;
    with_context(fields_are_filled);
}

static int setup(void **state)
{
    (void)state;
    if (folder_open() != 0)
        return -1;
    write_bytes(in_folder("empty"), "", 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(compiled), cmocka_unit_test(runs), cmocka_unit_test(elsewhere),
                                        cmocka_unit_test(texts), cmocka_unit_test(fields) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
