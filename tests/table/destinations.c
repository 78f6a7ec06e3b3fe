/* No output replaces an input: every option that is written, against every one that is read and the model itself, for
 * every verb, in every spelling of one file.  The pairs come from the table of options: a new one is tested the day it
 * is written. */
#include "testing.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/options/options.h"
#include "base/file.h"
#include "qcc/qcc.h"

/* What the file is that both name; each is read before anything is written, or would be. */
static const char bytes[] = "\n \n";

#define WRONG(...)                                                                                                     \
    do {                                                                                                               \
        print_error(__VA_ARGS__);                                                                                      \
        print_error("\n");                                                                                             \
        assert_true(false);                                                                                            \
    } while (0)

typedef struct Answer {
    char text[4096];
    qcc_status status;
} Answer;

static void hear(void *user, const qcc_message *m)
{
    Answer *a = user;
    snprintf(a->text + strlen(a->text), sizeof a->text - strlen(a->text), "%s", m->text);
}

static qcc_status swallow(void *user, const void *p, size_t n)
{
    (void)user, (void)p, (void)n;
    return QCC_OK;
}

static void ask(Answer *a, int n, const char *const *argv)
{
    const qcc_context_options options = { .size = sizeof options, .report = hear, .user = a, .threads = 1 };
    const qcc_sink sink = { .write = swallow };
    qcc_context *cx;
    a->text[0] = 0;
    assert_int_equal(qcc_open(&options, &cx), QCC_OK);
    a->status = qcc_command(cx, n, argv, &sink);
    qcc_close(cx);
}

/* ---- the folder ---- */

static void put_file(const char *path)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(bytes, 1, sizeof bytes - 1, f);
    fclose(f);
}

static void see_file(const char *path)
{
    char now[sizeof bytes + 1] = { 0 };
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(now, 1, sizeof now, f);
    fclose(f);
    if (n != sizeof bytes - 1 || memcmp(now, bytes, n) != 0)
        WRONG("%s has changed", path);
}

static int count_entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* A folder with a file f, a link and a second name of it, a link to the folder, and another file. */
static const char *make_folder(Arena *a)
{
    const char *root = arena_printf(a, "%s/destinations-%ld", QCC_BINARY_DIR, (long)getpid());
    static const char *const old[] = { "in/f", "in/link", "in/hard", "in/other", "in", "way", "" };
    for (size_t i = 0; i < COUNT(old); i++)
        remove(arena_printf(a, "%s/%s", root, old[i]));
    assert_int_equal(mkdir(root, 0777), 0);
    assert_int_equal(mkdir(arena_printf(a, "%s/in", root), 0777), 0);
    put_file(arena_printf(a, "%s/in/f", root));
    put_file(arena_printf(a, "%s/in/other", root));
    assert_int_equal(symlink("f", arena_printf(a, "%s/in/link", root)), 0);
    assert_int_equal(link(arena_printf(a, "%s/in/f", root), arena_printf(a, "%s/in/hard", root)), 0);
    assert_int_equal(symlink("in", arena_printf(a, "%s/way", root)), 0);
    return root;
}

static void remove_folder(Arena *a, const char *root)
{
    static const char *const all[] = { "in/f", "in/link", "in/hard", "in/other", "way", "in" };
    for (size_t i = 0; i < COUNT(all); i++)
        assert_int_equal(remove(arena_printf(a, "%s/%s", root, all[i])), 0);
    assert_int_equal(remove(root), 0);
}

/* Ways to spell ROOT/in/f. */
static const char *const spellings[] = { "in/f", "in/../in/./f", "in/link", "in/hard", "way/f" };

/* ---- the table ---- */

/* A value of an option that names a file. */
static const char *value_of(Arena *a, const OptionSpec *o, const char *path, int way)
{
    switch (o->kind) {
    case ARG_PAIR_IN:
    case ARG_OUTPUT:
        return arena_printf(a, "x=%s", path);
    case ARG_DATA:
        return arena_printf(a, way & 1 ? "x=%s" : "x=%s:f32", path);
    case ARG_DATA_LIST:
        return arena_printf(a, way & 1 ? "x=%s" : "w=nothing.npy:mean=1,2,x=%s:f32", path);
    default:
        return path;
    }
}

static bool names_files(const OptionSpec *o)
{
    return strstr(o->form, "FILE") || strstr(o->form, "DIR") || strstr(o->form, "PATH");
}

/* Whoever adds an option that names a file says whether it is read or written. */
static Status every_file_has_a_role(void *arg)
{
    (void)arg;
    for (int i = 0; i < OPT_COUNT; i++)
        for (int v = 0; v < VERB_COUNT; v++) {
            const OptionSpec *o = &option_specs[i];
            const bool applies = o->verbs >> v & 1;
            if ((option_role(o, (Verb)v) != ROLE_NONE) != (applies && names_files(o)))
                WRONG("%s names files and has no kind of files, or the other way round", o->name);
        }
    return OK;
}

static Status one_clash(Context *c, const char *root, Verb v, Option out, int in, int way)
{
    Answer a;
    Arena *arena = &c->arena;
    const int n_ways = COUNT(spellings);
    const OptionSpec *o = &option_specs[out], *from = in < 0 ? NULL : &option_specs[in];
    const char *read = arena_printf(arena, "%s/%s", root, spellings[way]),
               *written = arena_printf(arena, "%s/%s", root, spellings[(way + 1) % n_ways]),
               *other = arena_printf(arena, "%s/in/other", root);
    const char *argv[] = { "qcc",
                           verb_name(v),
                           from ? other : read,
                           o->name,
                           value_of(arena, o, written, 0),
                           from ? from->name : NULL,
                           from ? value_of(arena, from, read, way) : NULL };
    const char *want = arena_printf(arena, "%s%s", from ? from->name : "the model", from ? " reads" : "");
    ask(&a, from ? 7 : 5, argv);
    if (a.status != QCC_USAGE || !strstr(a.text, "is also") || !strstr(a.text, want) || !strstr(a.text, o->name) ||
        !strstr(a.text, "try:"))
        WRONG("%s %s %s, %s: %d %s", argv[1], argv[3], argv[4], want, (int)a.status, a.text);
    see_file(read);
    return OK;
}

static Status no_output_is_an_input(void *arg)
{
    Context *c = arg;
    int pairs = 0;
    const char *root = make_folder(&c->arena);
    const int before = count_entries(arena_printf(&c->arena, "%s/in", root));
    for (int v = 0; v < VERB_COUNT; v++)
        for (int out = 0; out < OPT_COUNT; out++)
            for (int in = -1; in < OPT_COUNT; in++) {
                const bool reads = in < 0 || option_role(&option_specs[in], (Verb)v) == ROLE_READ;
                if (option_role(&option_specs[out], (Verb)v) != ROLE_WRITTEN || !reads)
                    continue;
                for (int way = 0; way < (int)COUNT(spellings); way++)
                    TRY(one_clash(c, root, (Verb)v, (Option)out, in, way));
                pairs++;
            }
    assert_int_equal(count_entries(arena_printf(&c->arena, "%s/in", root)), before);
    remove_folder(&c->arena, root);
    assert_true(pairs > 100);
    print_message("%d pairs of options, %zu spellings\n", pairs, COUNT(spellings));
    return OK;
}

/* Two results in one place: a file that is there, and one that is not yet. */
static Status no_two_outputs_are_one(void *arg)
{
    Context *c = arg;
    Answer a;
    Arena *arena = &c->arena;
    const char *root = make_folder(arena);
    const int before = count_entries(arena_printf(arena, "%s/in", root));
    static const char *const same[][2] = { { "in/new", "way/new" }, { "in/hard", "in/link" }, { "none/a", "none/a" } };
    for (int v = 0; v < VERB_COUNT; v++)
        for (int i = 0; i < OPT_COUNT; i++)
            for (int k = 0; k < OPT_COUNT * (int)COUNT(same); k++) {
                const OptionSpec *x = &option_specs[i], *y = &option_specs[k % OPT_COUNT];
                const char *const *paths = same[k / OPT_COUNT];
                const bool folders = (x->kind == ARG_DIR_OUT || x->kind == ARG_STATES) &&
                                     (y->kind == ARG_DIR_OUT || y->kind == ARG_STATES);
                if (x == y || folders || option_role(x, (Verb)v) != ROLE_WRITTEN ||
                    option_role(y, (Verb)v) != ROLE_WRITTEN)
                    continue;
                const char *one = arena_printf(arena, "%s/%s", root, paths[0]),
                           *two = arena_printf(arena, "%s/%s", root, paths[1]);
                const char *const argv[] = { "qcc",
                                             verb_name((Verb)v),
                                             arena_printf(arena, "%s/in/other", root),
                                             x->name,
                                             value_of(arena, x, one, 0),
                                             y->name,
                                             value_of(arena, y, two, 0) };
                ask(&a, COUNT(argv), argv);
                if (a.status != QCC_USAGE || !strstr(a.text, "is also where") || !strstr(a.text, x->name) ||
                    !strstr(a.text, y->name))
                    WRONG("%s %s %s %s %s: %d %s", argv[1], argv[3], argv[4], argv[5], argv[6], (int)a.status, a.text);
            }
    see_file(arena_printf(arena, "%s/in/f", root));
    assert_int_equal(count_entries(arena_printf(arena, "%s/in", root)), before);
    remove_folder(arena, root);
    return OK;
}

/* What has places of its own is not held up. */
static Status others_go_on(void *arg)
{
    Context *c = arg;
    Answer a;
    Arena *arena = &c->arena;
    const char *root = make_folder(arena);
    for (int v = 0; v < VERB_COUNT; v++)
        for (int out = 0; out < OPT_COUNT; out++)
            for (int in = 0; in < OPT_COUNT; in++) {
                const OptionSpec *o = &option_specs[out], *from = &option_specs[in];
                if (option_role(o, (Verb)v) != ROLE_WRITTEN || option_role(from, (Verb)v) != ROLE_READ)
                    continue;
                const char *argv[] = { "qcc",
                                       verb_name((Verb)v),
                                       arena_printf(arena, "%s/in/other", root),
                                       o->name,
                                       value_of(arena, o, arena_printf(arena, "%s/none/new", root), 0),
                                       from->name,
                                       value_of(arena, from, arena_printf(arena, "%s/in/f", root), 0) };
                ask(&a, COUNT(argv), argv);
                if (strstr(a.text, "is also"))
                    WRONG("%s %s %s: %s", argv[1], o->name, from->name, a.text);
            }
    remove_folder(arena, root);
    return OK;
}

static void roles(void **state)
{
    (void)state;
    with_context(every_file_has_a_role);
}

static void inputs(void **state)
{
    (void)state;
    with_context(no_output_is_an_input);
}

static void outputs(void **state)
{
    (void)state;
    with_context(no_two_outputs_are_one);
}

static void others(void **state)
{
    (void)state;
    with_context(others_go_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),
        cmocka_unit_test(inputs),
        cmocka_unit_test(outputs),
        cmocka_unit_test(others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
