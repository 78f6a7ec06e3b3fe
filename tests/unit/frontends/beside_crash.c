/* A model and the data beside it change together: every state that a crash during a write may leave is the old pair or
 * the new one, and the next write leaves nothing but its own.  A call of the disk that fails leaves no mixture either. */
#include <errno.h>
#include <unistd.h>

#include "support/crashes.h"
#include "support/pairs.h"

/* What is there, and what is written over it; seed 0: nothing is there. */
typedef struct Change {
    int from, to; /* seeds */
    bool from_apart, to_apart;
    bool other; /* another model reads the old data */
    bool same;  /* the new data is there already */
} Change;

static const Change changes[] = {
    { 1, 2, true, true, false, false },  { 0, 2, false, true, false, false }, { 1, 2, true, false, false, false },
    { 1, 2, false, true, false, false }, { 1, 2, true, true, true, false },   { 1, 2, true, true, false, true },
};

typedef struct Watch {
    Context *c;
    const Change *change;
    const char *path, *folder;
    const char *old, *new; /* values */
    int calls;             /* of the whole write */
    bool fatal;
    int violations, found_old, found_new;
} Watch;

/* The next write to the same output leaves the pair, and what another model reads. */
static bool cleans_up(Watch *w)
{
    Context *c = w->c;
    if (pair_write(c, NULL, w->path, 7, true) != OK || !pair_data(c, w->path))
        return w->change->other;
    const char *wanted = arena_printf(&c->arena, "m.onnx %s ", strrchr(pair_data(c, w->path), '/') + 1);
    const char *names = pair_names(c, w->folder);
    if (strcmp(names, wanted) != 0)
        print_error("%s are there\n", names);
    return strcmp(names, wanted) == 0;
}

static void look(void *user, int calls)
{
    Watch *w = user;
    Context *c = w->c;
    const bool any = access(w->path, F_OK) == 0;
    const char *values = any ? pair_values(c, w->path) : "";
    const bool old = values && strcmp(values, w->old) == 0, new = values &&strcmp(values, w->new) == 0;
    bool good = (old && calls < w->calls) || new;
    if (good && w->change->other)
        good = pair_values(c, arena_printf(&c->arena, "%s/other.onnx", w->folder)) != NULL;
    if (good && !w->change->other && w->fatal)
        good = cleans_up(w);
    w->violations += !good;
    w->found_old += old;
    w->found_new += new;
    if (w->fatal && !good)
        print_error("after %d of %d calls: %s\n", calls, w->calls, c->last ? c->last : "neither the old nor the new");
    assert_true(good || !w->fatal);
}

static void add_before(Context *c, Before *list, int *n, const char *path, const char *as)
{
    Str bytes = { 0 };
    pair_must(c, file_read(&c->arena, &c->diag, path, 1 << 24, "model_bytes", &bytes));
    list[(*n)++] = (Before){ .name = as, .bytes = bytes.p, .n = bytes.n };
}

/* Lays out what is there, records what a write does, and gives what the folder held before. */
static int record(Context *c, Recorder *r, const Change *k, const char *folder, Before before[4], Watch *w)
{
    int n = 0;
    const char *path = arena_printf(&c->arena, "%s/m.onnx", folder);
    const char *other = arena_printf(&c->arena, "%s/other.onnx", folder);
    w->old = "";
    if (k->from) {
        pair_must(c, pair_write(c, NULL, path, k->from, k->from_apart));
        w->old = pair_values(c, path);
        add_before(c, before, &n, path, "m.onnx");
        if (k->from_apart)
            add_before(c, before, &n, pair_data(c, path), strrchr(pair_data(c, path), '/') + 1);
    }
    if (k->other) { /* the same bytes under another name read the same data */
        add_before(c, before, &n, path, "other.onnx");
        assert_int_equal(link(path, other), 0);
    }
    if (k->same) {
        const char *elsewhere = pair_folder(c, "elsewhere", true), *to;
        const char *model = arena_printf(&c->arena, "%s/m.onnx", elsewhere);
        pair_must(c, pair_write(c, NULL, model, k->to, true));
        const char *data = pair_data(c, model), *name = strrchr(data, '/') + 1;
        add_before(c, before, &n, data, name);
        to = arena_printf(&c->arena, "%s/%s", folder, name);
        assert_int_equal(rename(data, to), 0);
        pair_remove(c, elsewhere);
    }
    recorder_open(r, &c->arena);
    pair_must(c, pair_write(c, &r->disk, path, k->to, k->to_apart));
    w->new = pair_values(c, path);
    assert_non_null(w->new);
    return n;
}

static int crash(Context *c, const Change *k, bool lying)
{
    Recorder r;
    Before before[4];
    const char *folder = pair_folder(c, "write", true), *states = pair_folder(c, "states", true);
    Watch w = { .c = c, .change = k, .folder = states, .fatal = !lying };
    w.path = arena_printf(&c->arena, "%s/m.onnx", states);
    const int n_before = record(c, &r, k, folder, before, &w);
    w.calls = r.n;
    const int n = crashes_replay(&r, before, n_before, states, lying, look, &w);
    print_message("%d states of %d calls: %d old, %d new, %d neither\n", n, r.n, w.found_old, w.found_new,
                  w.violations);
    assert_true(w.found_old > 0 && w.found_new > 0);
    pair_remove(c, folder);
    pair_remove(c, states);
    return w.violations;
}

static Status crashes(void *arg)
{
    for (size_t i = 0; i < COUNT(changes); i++)
        assert_int_equal(crash(arg, &changes[i], false), 0);
    return OK;
}

static void every_crash_leaves_a_pair(void **state)
{
    (void)state;
    with_context(crashes);
}

/* A disk that lies about syncs loses: the test above sees it. */
static Status lying(void *arg)
{
    assert_true(crash(arg, &changes[0], true) > 0);
    return OK;
}

static void a_disk_that_lies_is_seen(void **state)
{
    (void)state;
    with_context(lying);
}

/* ---- calls that fail ---- */

typedef struct Refusing {
    Disk disk;
    int calls, at;
} Refusing;

static bool fails(const Disk *d)
{
    Refusing *f = d->user;
    errno = ENOSPC;
    return f->calls++ == f->at;
}

static int refusing_create(const Disk *d, const char *path)
{
    return fails(d) ? -1 : disk_real.create(d, path);
}

static ssize_t refusing_write(const Disk *d, int fd, const void *bytes, size_t n, uint64_t offset)
{
    return fails(d) ? -1 : disk_real.write(d, fd, bytes, n, offset);
}

static int refusing_sync(const Disk *d, int fd)
{
    (void)fd;
    return fails(d) ? -1 : 0;
}

static int refusing_rename(const Disk *d, const char *from, const char *to, bool replace)
{
    return fails(d) ? -1 : disk_real.rename(d, from, to, replace);
}

static int refusing_remove(const Disk *d, const char *path)
{
    return fails(d) ? -1 : disk_real.remove(d, path);
}

static int refusing_sync_folder(const Disk *d, const char *path)
{
    (void)path;
    return fails(d) ? -1 : 0;
}

/* One write whose call number `at` fails: the pair that is there is whole, and nothing else is; whether it came to it. */
static bool one_fault(Context *c, const char *folder, const char *path, int at)
{
    Pair p;
    Refusing f = { .disk = disk_real, .at = at };
    f.disk.user = &f;
    f.disk.create = refusing_create, f.disk.write = refusing_write, f.disk.sync = refusing_sync;
    f.disk.rename = refusing_rename, f.disk.remove = refusing_remove, f.disk.sync_folder = refusing_sync_folder;
    pair_must(c, pair_write(c, NULL, path, 1, true));
    const char *old = pair_values(c, path);
    if (at == 0) { /* the model's own temporary file */
        assert_int_equal(file_create_on(&p.model, &f.disk, &c->arena, &c->diag, path), IO);
        return true;
    }
    const Status status = pair_write(c, &f.disk, path, 2, true);
    const char *values = pair_values(c, path), *names = pair_names(c, folder);
    assert_non_null(values);
    if (status == OK)
        assert_string_not_equal(values, old);
    else
        assert_int_equal(status, IO);
    /* what could not be removed stays: data of the old, or of the new; a whole pair and at most one more */
    if (!pair_data(c, path))
        print_message("call %d leaves %s\n", at, names);
    assert_true(pair_data(c, path) || f.calls > at);
    pair_must(c, pair_write(c, NULL, path, 3, true));
    names = pair_names(c, folder);
    assert_string_equal(names, arena_printf(&c->arena, "m.onnx %s ", strrchr(pair_data(c, path), '/') + 1));
    return f.calls > at;
}

static Status faults(void *arg)
{
    Context *c = arg;
    const char *folder = pair_folder(c, "faults", true), *path = arena_printf(&c->arena, "%s/m.onnx", folder);
    int at = 0;
    while (one_fault(c, folder, path, at))
        at++;
    print_message("%d calls\n", at);
    assert_true(at > 10);
    pair_remove(c, folder);
    return OK;
}

static void a_disk_that_refuses_leaves_a_pair(void **state)
{
    (void)state;
    with_context(faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_crash_leaves_a_pair),
        cmocka_unit_test(a_disk_that_lies_is_seen),
        cmocka_unit_test(a_disk_that_refuses_leaves_a_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
