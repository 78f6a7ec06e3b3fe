/* The options table and everything that is made of it. */
#include "testing.h"

#include "api/options/options.h"
#include "qcc/qcc.h"

typedef struct Page {
    char p[65536];
    size_t n;
} Page;

static qcc_status put(void *user, const void *bytes, size_t n)
{
    Page *page = user;
    if (n >= sizeof page->p - page->n)
        return QCC_IO;
    memcpy(page->p + page->n, bytes, n);
    page->n += n;
    page->p[page->n] = 0;
    return QCC_OK;
}

static void page_of(Page *page, const char *option)
{
    qcc_context *cx;
    const char *const argv[] = { "qcc", option };
    const qcc_sink sink = { .write = put, .user = page };
    page->n = 0;
    assert_int_equal(qcc_open(NULL, &cx), QCC_OK);
    assert_int_equal(qcc_command(cx, 2, argv, &sink), QCC_OK);
    qcc_close(cx);
}

/* The name as roff writes it. */
static const char *roff(Arena *a, const char *name)
{
    Text t;
    text_open(&t, a);
    for (; *name; name++)
        text_printf(&t, *name == '-' ? "\\-" : "%c", *name);
    return text_get(&t);
}

static Status all_pages_show_all_options(void *arg)
{
    Context *c = arg;
    static Page all, day, man, completion;
    int everyday = 0;
    page_of(&all, "--help=all");
    page_of(&day, "--help");
    page_of(&man, "--help=man");
    page_of(&completion, "--help=completion");
    for (int i = 0; i < OPT_COUNT; i++) {
        const OptionSpec *o = &option_specs[i];
        assert_non_null(strstr(all.p, o->help));
        assert_non_null(strstr(man.p, roff(&c->arena, o->name)));
        assert_non_null(strstr(completion.p, o->name));
        assert_int_equal(strstr(day.p, o->help) != NULL, o->everyday);
        everyday += o->everyday;
        for (int k = 0; k < i; k++)
            assert_string_not_equal(option_specs[k].name, o->name);
    }
    assert_in_range(everyday, 25, 40);
    return OK;
}

/* A value that fits the form of an option; null: it has none. */
static const char *value_for(const OptionSpec *o)
{
    static const char *const values[] = {
        [ARG_COUNT] = "3",       [ARG_REAL] = "0.5",          [ARG_TEXT] = "x:3",    [ARG_PAIR] = "a=b",
        [ARG_SELECTOR] = "fc1",  [ARG_FILE_IN] = "f",         [ARG_FILE_OUT] = "f",  [ARG_DIR_IN] = "d",
        [ARG_DEVICE] = "cuda:1", [ARG_DIR_OUT] = "d",         [ARG_PAIR_IN] = "a=f", [ARG_OUTPUT] = "a=f",
        [ARG_DATA] = "x=f",      [ARG_DATA_LIST] = "x=f,y=f", [ARG_STATES] = "f"
    };
    return o->kind == ARG_FLAG || o->kind == ARG_CHOICE ? NULL : values[o->kind];
}

/* Each option, with = and without, reads as itself; its configuration reads back as the same. */
static Status every_option_reads(void *arg)
{
    Context *c = arg;
    for (int i = 0; i < OPT_COUNT; i++) {
        const OptionSpec *o = &option_specs[i];
        const char *value = value_for(o), *first = o->form + (option_may_lack(o) ? 2 : 0);
        if (o->kind == ARG_CHOICE)
            value = arena_copy(&c->arena, first, strcspn(first, "|]"));
        if (i == OPT_config)
            continue;
        for (int way = 0; way < 2; way++) {
            CommandLine line;
            const char *glued =
                arena_printf(&c->arena, "%s%s%s", o->name, o->name[1] == '-' ? "=" : "", value ? value : "");
            const char *apart[] = { o->name, value }, *together[] = { value ? glued : o->name };
            if (way == 0 && option_may_lack(o))
                continue;
            assert_int_equal(options_read(&c->diag, &c->arena, way || !value ? 1 : 2, way ? together : apart, &line),
                             OK);
            assert_int_equal(line.n_given, 1);
            assert_int_equal(line.given[0].option, i);
            if (value)
                assert_string_equal(line.given[0].value, value);
            assert_int_equal(line.n_paths, 0);
        }
    }
    return OK;
}

static Status texts_are_split_as_a_shell_would(void *arg)
{
    Context *c = arg;
    CommandLine line;
    const char *text = "  --batch 3 --dim 'a b=4' --dim \"c\\\"=5\" --shape=x:1\\ 2 ";
    size_t at = 0;
    assert_int_equal(options_read_text(&c->diag, &c->arena, "test", text, TEXT_READS, &line), OK);
    assert_int_equal(option_count(&line, OPT_batch, 0), 3);
    assert_string_equal(option_next(&line, OPT_dim, &at), "a b=4");
    assert_string_equal(option_next(&line, OPT_dim, &at), "c\"=5");
    assert_null(option_next(&line, OPT_dim, &at));
    assert_string_equal(option_text(&line, OPT_shape), "x:1 2");
    assert_int_equal(options_read_text(&c->diag, &c->arena, "test", "--emit ir", TEXT_READS, &line), USAGE);
    assert_int_equal(options_read_text(&c->diag, &c->arena, "test", "batch", TEXT_READS, &line), USAGE);
    return OK;
}

static void pages(void **state)
{
    (void)state;
    with_context(all_pages_show_all_options);
}

static void reading(void **state)
{
    (void)state;
    with_context(every_option_reads);
}

static void splitting(void **state)
{
    (void)state;
    with_context(texts_are_split_as_a_shell_would);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pages), cmocka_unit_test(reading),
                                        cmocka_unit_test(splitting) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
