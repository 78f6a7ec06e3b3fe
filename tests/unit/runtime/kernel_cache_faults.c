/* label: slow */
/* The folder of compiled kernels on disks that fail, full, shared by processes that die, and without memory. */
#include "support/kernel_compiler.h"
#include "support/faulty_disk.h"

/* What a folder holds when it is used: nothing yet; damaged files; too much. */
typedef enum Before { EMPTY, DAMAGED, FULL, BEFORES } Before;

static void prepare(Context *c, const char *in, const KernelSource *s, Before before)
{
    KernelCache cache = { .folder = in, .version = before == FULL ? "0" : "1" };
    char command[1200];
    KernelObjects o;
    snprintf(command, sizeof command, "rm -rf %s", in);
    assert_int_equal(system(command), 0);
    if (before == EMPTY)
        return;
    compile_with(c, &cache, &fake, 1, s, &o);
    if (before == DAMAGED)
        assert_int_equal(truncate(file_of(in), 100), 0);
}

static Status faults(void *arg)
{
    static const int errors[] = { EIO, ENOSPC, EROFS };
    Context *c = arg;
    const KernelSource s = source_of(TEXTS);
    KernelCache cache = cache_in("new/faults");
    int met = 0;
    for (int before = 0; before < BEFORES; before++)
        for (int at = 0, more = 1; more; at++)
            for (int k = 0; k < 6; k++) {
                const ArenaMark mark = arena_mark(&c->arena);
                Faulty f;
                KernelObjects o;
                prepare(c, in_folder("new"), &s, EMPTY);
                prepare(c, cache.folder, &s, (Before)before);
                faulty_open_disk(&f, at, errors[k / 2], k % 2);
                faulty_folders(&f);
                cache.disk = &f.disk;
                cache.most = before == FULL ? 600 : 0;
                const int open_before = descriptors();
                compile_with(c, &cache, &fake, 2, &s, &o);
                check_objects(c, &s, &o);
                assert_true(n_remarks <= 2); /* of damage, and of the folder */
                assert_int_equal(descriptors(), open_before);
                assert_true(f.removes || count_names(cache.folder, ".tmp-") == 0);
                more = f.calls > at;
                met += more;
                cache.disk = NULL; /* a disk that is well again */
                compile_with(c, &cache, &fake, 1, &s, &o);
                check_objects(c, &s, &o);
                assert_true(n_remarks <= 1);
                arena_reset(&c->arena, mark);
            }
    assert_true(met > 200);
    return OK;
}

static void whatever_fails_kernels_are_there(void **state)
{
    (void)state;
    with_context(faults);
}

/* Remarks say what could not be done. */
static Status full_disk(void *arg)
{
    Context *c = arg;
    const KernelSource s = source_of(TEXTS);
    KernelCache cache = cache_in("full");
    KernelObjects o;
    Faulty f;
    assert_int_equal(mkdir(cache.folder, 0777), 0);
    faulty_open_disk(&f, OBJECTS, ENOSPC, true); /* behind the three that look for files */
    faulty_folders(&f);
    cache.disk = &f.disk;
    compile_with(c, &cache, &fake, 4, &s, &o);
    assert_int_equal(n_remarks, 1);
    assert_non_null(strstr(c->last, "cannot be written: No space left on device; compiled kernels are not kept"));
    faulty_open_disk(&f, 0, EACCES, true);
    faulty_folders(&f);
    compile_with(c, &cache, &fake, 4, &s, &o);
    assert_int_equal(n_remarks, 1);
    assert_non_null(strstr(c->last, "cannot be opened: Permission denied; kernels are compiled without it"));
    cache.disk = NULL;
    compile_with(c, &cache, &fake, 1, &s, &o);
    faulty_open_disk(&f, 1, EIO, false);
    faulty_folders(&f);
    cache.disk = &f.disk;
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1);
    assert_non_null(strstr(c->last, "cannot be read: Input/output error; kernels are compiled without it"));
    return OK;
}

static void what_fails_is_said_once(void **state)
{
    (void)state;
    with_context(full_disk);
}

/* ---- bounds, processes, memory ---- */

static Status bounded(void *arg)
{
    Context *c = arg;
    KernelCache cache = cache_in("bounded");
    KernelSource s = source_of(1);
    KernelObjects o;
    static char words[20][16];
    const struct utimbuf long_ago = { 1000000, 1000000 };
    char first[600];
    compile_with(c, &cache, &fake, 1, &s, &o);
    strcpy(first, file_of(cache.folder));
    const uint64_t each = o.list[0].cubin.n + strlen(o.list[0].log) + 1 + 8 + 128;
    cache.most = 5 * each + each / 2;
    write_bytes(in_folder("bounded/README.cubin"), "mine", 4);
    for (int i = 0; i < 20; i++) {
        const KernelSource used = source_of(1);
        assert_int_equal(utime(first, &long_ago), 0);
        compile_with(c, &cache, &fake, 1, &used, &o); /* the first is used again and again, and stays */
        assert_true(o.list[0].was_kept);
        sprintf(words[i], "text %d", i);
        texts[0] = words[i];
        assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1);
        assert_true(count_names(cache.folder, ".cubin") <= 6);
    }
    assert_int_equal(count_names(cache.folder, ".cubin"), 6);
    assert_int_equal(access(in_folder("bounded/README.cubin"), F_OK), 0);
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 0); /* the last one is there */
    texts[0] = words[0];
    assert_int_equal(compile_with(c, &cache, &fake, 1, &s, &o), 1); /* one of the oldest is not */
    return OK;
}

static void what_was_not_used_for_longest_goes(void **state)
{
    (void)state;
    with_context(bounded);
}

enum { PROCESSES = 4, TURNS = 60 };

static const char *raced;

/* Files come, go, and are damaged, while others use them. */
static Status race(void *arg)
{
    Context *c = arg;
    const KernelSource s = source_of(TEXTS);
    KernelCache cache = { .folder = raced, .version = "1" };
    for (int i = 0; i < TURNS; i++) {
        const ArenaMark mark = arena_mark(&c->arena);
        KernelObjects o;
        cache.most = i % 3 ? 0 : 600;
        compile_with(c, &cache, &fake, 1 + i % 2, &s, &o);
        check_objects(c, &s, &o);
        if ((i + (int)getpid()) % 7 == 0 && truncate(file_of(raced), 50) != 0)
            assert_true(errno == ENOENT); /* another process was faster */
        arena_reset(&c->arena, mark);
    }
    return OK;
}

static void processes_share_a_folder(void **state)
{
    (void)state;
    pid_t child[PROCESSES + 1];
    raced = in_folder("raced");
    for (int i = 0; i <= PROCESSES; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0) {
            Context c;
            context_open(&c);
            _exit(guarded(&c.memory, race, &c) == OK ? 0 : 1);
        }
    }
    kill(child[PROCESSES], SIGKILL); /* one dies at its work */
    for (int i = 0; i <= PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(i == PROCESSES || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
}

static Status sweep_memory(void *arg)
{
    Context *c = arg;
    const KernelSource s = source_of(TEXTS);
    const KernelCache cache = { .folder = raced, .version = "1" };
    KernelObjects o;
    return kernels_compile(&cache, &fake, 2, &c->diag, &s, &c->arena, &o);
}

static void exhausted_memory_leaves_nothing(void **state)
{
    (void)state;
    Status status = NO_MEMORY;
    int tries = 0;
    raced = in_folder("memory");
    for (uint64_t at = 1; status != OK; at++, tries++) {
        Context c;
        context_open(&c);
        c.memory.apart = true;
        c.memory.fail_at = at;
        made = ended = 0;
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", raced);
        assert_int_equal(system(command), 0);
        const int before = descriptors();
        status = guarded(&c.memory, sweep_memory, &c);
        assert_true(status == OK || status == NO_MEMORY);
        assert_int_equal(made, ended);
        assert_int_equal(descriptors(), before);
        if (c.memory.requests >= at) /* threads that are refused are no failure */
            status = NO_MEMORY;
        context_close(&c);
    }
    assert_true(tries > 50);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_fails_kernels_are_there),   cmocka_unit_test(what_fails_is_said_once),
        cmocka_unit_test(what_was_not_used_for_longest_goes), cmocka_unit_test(processes_share_a_folder),
        cmocka_unit_test(exhausted_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
