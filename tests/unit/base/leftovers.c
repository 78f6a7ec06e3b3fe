/* Temporary files of processes that are no more go when the same output is written again; all others stay. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/entries.h"
#include "base/file.h"
#include "base/leftovers.h"
#include "support/folder.h"

static const int nobodys = 999999999; /* a process number beyond pid_max */

static int make_folder(void **state)
{
    (void)state;
    return folder_open();
}

static int remove_folder(void **state)
{
    (void)state;
    return folder_close();
}

/* A file that was last written to `age` seconds ago. */
static void put(const char *name, int age)
{
    struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
    const int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    if (age) {
        clock_gettime(CLOCK_REALTIME, &times[1]);
        times[1].tv_sec -= age;
        assert_int_equal(futimens(fd, times), 0);
    }
    close(fd);
}

static bool there(const char *name)
{
    struct stat st;
    return lstat(in_folder(name), &st) == 0;
}

static void must_be(const char *name, bool wanted)
{
    if (there(name) != wanted)
        print_error("%s %s\n", name, wanted ? "is gone" : "is still there");
    assert_int_equal(there(name), wanted);
}

static void write_output(Context *c, const char *name)
{
    FileOut f;
    assert_int_equal(file_create(&f, &c->arena, &c->diag, in_folder(name)), OK);
    assert_int_equal(file_write(&f, "new", 3), OK);
    assert_int_equal(file_keep(&f), OK);
}

static const char *temporary(Context *c, const char *stem, int pid, int i)
{
    return arena_printf(&c->arena, "%s.tmp-%d-%d", stem, pid, i);
}

static Status cleared(void *arg)
{
    Context *c = arg;
    const char *const gone[] = { temporary(c, "out.onnx", nobodys, 0), temporary(c, "out.onnx", nobodys, 17),
                                 temporary(c, "out.onnx", (int)getpid(), 3) }; /* a number that came around to us */
    const char *const stay[] = { temporary(c, "other.onnx", nobodys, 0),
                                 temporary(c, "out.onnx.data", nobodys, 0),
                                 "out.onnx.tmp-999999999",
                                 "out.onnx.tmp-999999999-",
                                 "out.onnx.tmp-999999999-0x",
                                 "out.onnx.tmp--1-0",
                                 "out.onnx.tmp- 999999999-0",
                                 "out.onnx.tmp-0-0",
                                 "out.onnx.tmp-99999999999-0",
                                 "xout.onnx.tmp-999999999-0" };
    for (size_t i = 0; i < COUNT(gone); i++)
        put(gone[i], 0);
    for (size_t i = 0; i < COUNT(stay); i++)
        put(stay[i], 1000);
    write_output(c, "out.onnx");
    for (size_t i = 0; i < COUNT(gone); i++)
        must_be(gone[i], false);
    for (size_t i = 0; i < COUNT(stay); i++)
        must_be(stay[i], true);
    return OK;
}

static void what_the_dead_left_goes(void **state)
{
    (void)state;
    with_context(cleared);
}

/* Whoever writes holds a lock, whatever number it has; another's number in use protects a file that is new. */
static Status in_use(void *arg)
{
    Context *c = arg;
    const char *locked = temporary(c, "a", nobodys, 0), *own = temporary(c, "a", (int)getpid(), 5);
    const char *fresh = temporary(c, "a", 1, 0), *old = temporary(c, "a", 1, 1);
    put(locked, 1000), put(own, 1000), put(fresh, 0), put(old, LEFTOVERS_SECONDS + 5);
    const int fd = open(in_folder(locked), O_RDONLY), mine = open(in_folder(own), O_RDONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(flock(mine, LOCK_EX), 0);
    write_output(c, "a");
    assert_true(there(locked) && there(own) && there(fresh));
    assert_false(there(old));
    close(fd), close(mine);
    write_output(c, "a");
    assert_false(there(locked) || there(own));
    return OK;
}

static void what_somebody_writes_stays(void **state)
{
    (void)state;
    with_context(in_use);
}

/* Two that write the same output at once, in one process and in two. */
static Status at_once(void *arg)
{
    Context *c = arg;
    FileOut one, two;
    int status, ready[2], done[2];
    char byte;
    assert_true(pipe(ready) == 0 && pipe(done) == 0);
    const pid_t child = fork();
    if (child == 0) {
        close(done[1]); /* so that it ends with us, whatever happens */
        _exit(file_create(&one, &c->arena, &c->diag, in_folder("b")) != OK || write(ready[1], "r", 1) != 1 ||
              read(done[0], &byte, 1) != 1 || file_keep(&one) != OK);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(file_create(&one, &c->arena, &c->diag, in_folder("b")), OK);
    assert_int_equal(file_create(&two, &c->arena, &c->diag, in_folder("b")), OK);
    assert_int_equal(file_keep(&one), OK);
    assert_int_equal(file_keep(&two), OK);
    assert_int_equal(write(done[1], "d", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(ready[0]), close(ready[1]), close(done[0]), close(done[1]);
    return OK;
}

static void writers_leave_each_other_alone(void **state)
{
    (void)state;
    with_context(at_once);
}

/* Links, folders, pipes: nobody follows them, opens them for long, or removes them. */
static Status no_files(void *arg)
{
    Context *c = arg;
    const char *link = temporary(c, "l", nobodys, 0), *dangling = temporary(c, "l", nobodys, 1),
               *pipe_name = temporary(c, "l", nobodys, 2), *inner = temporary(c, "l", nobodys, 3);
    put("precious", 1000);
    assert_int_equal(symlink("precious", in_folder(link)), 0);
    assert_int_equal(symlink("nothing", in_folder(dangling)), 0);
    assert_int_equal(mkfifo(in_folder(pipe_name), 0600), 0);
    assert_int_equal(mkdir(in_folder(inner), 0700), 0);
    write_output(c, "l");
    assert_true(there("precious") && there(link) && there(dangling) && there(pipe_name) && there(inner));
    return OK;
}

static void what_is_no_file_stays(void **state)
{
    (void)state;
    with_context(no_files);
}

/* What cannot be removed does not stop who writes. */
static int refuse(const Disk *d, const char *path)
{
    (void)d, (void)path;
    errno = EACCES;
    return -1;
}

static Status refused(void *arg)
{
    Context *c = arg;
    FileOut f;
    Disk disk = disk_real;
    const char *left = temporary(c, "r", nobodys, 0);
    disk.remove = refuse;
    put(left, 0);
    assert_int_equal(file_create_on(&f, &disk, &c->arena, &c->diag, in_folder("r")), OK);
    assert_int_equal(file_keep(&f), OK);
    assert_true(there(left) && there("r"));
    assert_null(c->last);
    assert_int_equal(file_create(&f, &c->arena, &c->diag, in_folder("no/such/folder")), IO);
    return OK;
}

static void clearing_never_fails_the_write(void **state)
{
    (void)state;
    with_context(refused);
}

static void count(void *user, const char *name)
{
    (void)name;
    ++*(size_t *)user;
}

/* A folder of many names is looked at so far and no further. */
static Status bounded(void *arg)
{
    Context *c = arg;
    size_t n = 0;
    for (int i = 0; i < 20; i++)
        put(arena_printf(&c->arena, "many-%d", i), 0);
    assert_int_equal(entries_each(&c->memory, folder, 7, count, &n), EOVERFLOW);
    assert_int_equal(n, 7);
    n = 0;
    assert_int_equal(entries_each(&c->memory, folder, LEFTOVERS_NAMES, count, &n), 0);
    assert_true(n >= 20);
    assert_int_equal(entries_each(&c->memory, in_folder("none"), 7, count, &n), ENOENT);
    return OK;
}

static void folders_are_read_so_far(void **state)
{
    (void)state;
    with_context(bounded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_dead_left_goes),        cmocka_unit_test(what_somebody_writes_stays),
        cmocka_unit_test(writers_leave_each_other_alone), cmocka_unit_test(what_is_no_file_stays),
        cmocka_unit_test(clearing_never_fails_the_write), cmocka_unit_test(folders_are_read_so_far),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
