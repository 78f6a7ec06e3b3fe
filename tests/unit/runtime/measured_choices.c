/* Choices that are made by measuring: what is kept is told again, whatever is measured then; two that measure at once agree; and
 * what cannot be kept is the first way. */
#include "runtime/cuda/choices.h"

#include <dirent.h>
#include <errno.h>

#include "support/faulty_disk.h"
#include "support/folder.h"

enum { WAYS = 3 };

/* What is measured: by way its seconds. */
typedef struct Measure {
    double seconds[WAYS];
    int asked;
    void (*meanwhile)(struct Measure *m); /* somebody else is at it, too */
    Context *c;
} Measure;

static double seconds_of(void *user, int way)
{
    Measure *m = user;
    if (m->meanwhile && !m->asked)
        m->meanwhile(m);
    m->asked++;
    return m->seconds[way];
}

static const Str ways[WAYS] = { { "first", 5 }, { "second", 6 }, { "third", 5 } };
static int n_remarks;

static void hear(void *user, const Message *m)
{
    n_remarks += m->severity == SEVERITY_REMARK;
    context_report(user, m);
}

/* What is chosen through a cache. */
static int choose_of(Context *c, const KernelCache *cache, const char *word, int n, Measure *m)
{
    const char *words[] = { "a device", word, NULL };
    const Choice choice = { .words = words, .ways = ways, .n = n, .seconds = seconds_of, .user = m };
    Choices choices;
    c->diag.report = hear;
    m->c = c;
    m->asked = n_remarks = 0;
    choices_open(&choices, cache, &c->diag, &c->arena);
    const int way = choice_make(&choices, &choice);
    choices_settle(&choices);
    assert_true(choices.measured <= (m->asked > 0));
    return way;
}

static int choose(Context *c, const char *in, const char *word, Measure *m)
{
    return choose_of(c, &(KernelCache){ .folder = in_folder(in) }, word, WAYS, m);
}

static Measure takes(double a, double b, double c)
{
    return (Measure){ .seconds = { a, b, c } };
}

/* ---- what is kept ---- */

static Status kept(void *context)
{
    Context *c = context;
    Measure m = takes(3, 1, 2), other = takes(1, 2, 3);
    assert_int_equal(choose(c, "new/kept", "x", &m), 1);
    assert_int_equal(m.asked, WAYS);
    assert_int_equal(choose(c, "new/kept", "x", &other), 1); /* what is measured now is another matter */
    assert_int_equal(other.asked, 0);
    assert_int_equal(choose(c, "new/kept", "y", &other), 0);
    assert_int_equal(choose(c, "other", "x", &other), 0);
    assert_int_equal(choose(c, "other", "x", &m), 0);
    assert_int_equal(n_remarks, 0);
    return OK;
}

static void what_was_chosen_stays(void **state)
{
    (void)state;
    with_context(kept);
}

/* Ways that nobody can say anything of are slow; without any the first is kept, and if measuring fails nothing is. */
static Status unknown(void *context)
{
    Context *c = context;
    Measure some = takes(CHOICE_UNKNOWN, 5, CHOICE_UNKNOWN),
            none = takes(CHOICE_UNKNOWN, CHOICE_UNKNOWN, CHOICE_UNKNOWN);
    Measure failed = takes(2, CHOICE_FAILED, 1), well = takes(3, 2, 1);
    assert_int_equal(choose(c, "unknown", "some", &some), 1);
    assert_int_equal(choose(c, "unknown", "none", &none), 0);
    assert_int_equal(choose(c, "unknown", "none", &well), 0);
    assert_int_equal(choose(c, "unknown", "failed", &failed), 0);
    assert_int_equal(choose(c, "unknown", "failed", &well), 2);
    return OK;
}

static void what_nobody_can_say(void **state)
{
    (void)state;
    with_context(unknown);
}

/* Of another list of ways, which what was kept is none of, the first is taken, and nothing is measured. */
static Status another_list(void *context)
{
    Context *c = context;
    Measure m = takes(3, 2, 1);
    const KernelCache cache = { .folder = in_folder("list") };
    assert_int_equal(choose_of(c, &cache, "x", WAYS, &m), 2);
    assert_int_equal(choose_of(c, &cache, "x", WAYS - 1, &m), 0);
    assert_int_equal(m.asked, 0);
    assert_int_equal(choose_of(c, &cache, "x", WAYS, &m), 2);
    return OK;
}

static void a_way_that_is_there_no_more(void **state)
{
    (void)state;
    with_context(another_list);
}

/* ---- others ---- */

static void another_process(Measure *m)
{
    Measure other = takes(3, 2, 1);
    Context *c = m->c;
    assert_int_equal(choose(c, "race", "x", &other), 2);
}

static Status race(void *context)
{
    Measure m = takes(2, 1, 3);
    m.meanwhile = another_process;
    assert_int_equal(choose(context, "race", "x", &m), 2);
    return OK;
}

static void whoever_keeps_first_decides_for_both(void **state)
{
    (void)state;
    with_context(race);
}

static const char *file_of(const char *of)
{
    static char path[600];
    const struct dirent *e;
    DIR *d = opendir(of);
    *path = 0;
    while (d && (e = readdir(d)))
        if (strstr(e->d_name, ".choice"))
            snprintf(path, sizeof path, "%s/%s", of, e->d_name);
    if (d)
        closedir(d);
    return path;
}

static Status damaged(void *context)
{
    Context *c = context;
    Measure m = takes(3, 1, 2), other = takes(3, 2, 1);
    assert_int_equal(choose(c, "damaged", "x", &m), 1);
    assert_int_equal(truncate(file_of(in_folder("damaged")), 130), 0);
    assert_int_equal(choose(c, "damaged", "x", &other), 2);
    assert_int_equal(n_remarks, 1);
    assert_non_null(strstr(c->last, "is damaged; its choice is made anew"));
    assert_int_equal(choose(c, "damaged", "x", &m), 2);
    return OK;
}

static void what_is_damaged_is_chosen_anew(void **state)
{
    (void)state;
    with_context(damaged);
}

static Status no_folder(void *context)
{
    Context *c = context;
    Measure m = takes(3, 1, 2);
    write_bytes(in_folder("file"), "x", 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(choose(c, "file", "x", &m), 0);
        assert_int_equal(n_remarks, 1);
        assert_non_null(strstr(c->last, "cannot be made a folder: Not a directory; nothing is measured without it"));
    }
    return OK;
}

static void without_a_folder_it_is_the_first(void **state)
{
    (void)state;
    with_context(no_folder);
}

/* ---- disks that fail ---- */

/* Whatever fails: an answer other than the first is one that the next run gives, too. */
static Status faults(void *context)
{
    static const int errors[] = { EIO, ENOSPC, EROFS };
    Context *c = context;
    KernelCache cache = { .folder = in_folder("faults") };
    char command[400];
    int met = 0, lost = 0;
    snprintf(command, sizeof command, "rm -rf %s", cache.folder);
    for (int before = 0; before < 2; before++)
        for (int at = 0, more = 1; more; at++)
            for (int k = 0; k < 6; k++) {
                Measure m = takes(3, 1, 2), other = takes(4, 3, 2), again = takes(3, 2, 1);
                Faulty f;
                assert_int_equal(system(command), 0);
                cache.disk = NULL;
                if (before)
                    assert_int_equal(choose_of(c, &cache, "x", WAYS, &again), 2);
                faulty_open_disk(&f, at, errors[k / 2], k % 2);
                faulty_folders(&f);
                cache.disk = &f.disk;
                const int open_before = descriptors(), way = choose_of(c, &cache, "x", WAYS, &m);
                assert_int_equal(descriptors(), open_before);
                assert_true(n_remarks <= 1);
                more = f.calls > at;
                met += more;
                lost += way == 0;
                cache.disk = NULL;
                assert_true(way == 0 || way == choose_of(c, &cache, "x", WAYS, &other));
                assert_true(way == 0 || way == 1 + before);
            }
    assert_true(met > 60 && lost > 20);
    return OK;
}

static void whatever_fails_choices_are_the_same(void **state)
{
    (void)state;
    with_context(faults);
}

static int open_folder(void **state)
{
    (void)state;
    return folder_open();
}

static int close_folder(void **state)
{
    (void)state;
    return folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_chosen_stays),
        cmocka_unit_test(what_nobody_can_say),
        cmocka_unit_test(a_way_that_is_there_no_more),
        cmocka_unit_test(whoever_keeps_first_decides_for_both),
        cmocka_unit_test(what_is_damaged_is_chosen_anew),
        cmocka_unit_test(without_a_folder_it_is_the_first),
        cmocka_unit_test(whatever_fails_choices_are_the_same),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
