#include "support/checkpoint_trials.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 300, KEEP = 2 };

static uint32_t draw(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static void die_unless(bool good)
{
    if (!good)
        _exit(1);
}

/* Goes on from what is there, and says through the pipe what was saved; ends with a signal. */
static void save_for_ever(Context *c, const char *folder, const Disk *disk, int say, int most)
{
    CheckpointTarget t;
    CheckpointLoaded l;
    die_unless(load_from(c, folder, WIDTH, &l) == OK);
    die_unless(open_target(c, &t, folder, run_a, KEEP, disk) == OK);
    uint64_t step = l.file ? l.info.step : 0;
    for (int i = 0; i != most; i++) {
        step++;
        die_unless(save_at(c, &t, step, WIDTH, step % 3 == 0) == OK);
        die_unless(write(say, &step, sizeof step) == sizeof step);
    }
    _exit(0);
}

/* The last step that a process said was saved, or `last`. */
static uint64_t last_said(int hear, uint64_t last)
{
    uint64_t step;
    while (read(hear, &step, sizeof step) == sizeof step)
        last = step;
    close(hear);
    return last;
}

static int whole_files(Context *c, const char *folder, uint64_t newest)
{
    int n = 0;
    for (uint64_t step = newest > 6 ? newest - 6 : 1; step <= newest; step++) {
        CheckpointLoaded l;
        if (access(step_path(c, folder, step), F_OK) != 0)
            continue;
        assert_int_equal(load_from(c, step_path(c, folder, step), WIDTH, &l), OK);
        for (int i = 0; i < N_STATES; i++)
            tensor_drop(&c->heap, l.states[i]);
        n++;
    }
    return n;
}

static pid_t start(Context *c, const char *folder, const Disk *disk, int most, int *hear)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        save_for_ever(c, folder, disk, ends[1], most);
    }
    close(ends[1]);
    *hear = ends[0];
    return pid;
}

static int end(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

void kill_savers(Context *c, int times, uint32_t seed)
{
    const char *folder = new_folder(c);
    uint64_t last = 0;
    for (int i = 0; i < times; i++) {
        int hear;
        const pid_t pid = start(c, folder, NULL, -1, &hear);
        nanosleep(&(struct timespec){ 0, 1000 * draw(&seed, 12000) }, NULL);
        kill(pid, SIGKILL);
        const int status = end(pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it found nothing wrong itself */
        last = last_said(hear, last);
        const uint64_t found = load_step(c, folder, WIDTH);
        assert_true(found == last || found == last + 1);
        assert_true(whole_files(c, folder, found) >= (found < KEEP ? (int)found : KEEP));
        last = found;
    }
    print_message("%d kills, %d steps saved\n", times, (int)last);
    assert_true(last > (uint64_t)times / 4);
    remove_folder(folder);
}

/* ---- at each call ---- */

typedef struct Fuse {
    Disk disk;
    int left;
} Fuse;

static const Disk *burn(const Disk *d)
{
    Fuse *f = d->user;
    if (f->left-- == 0)
        raise(SIGKILL);
    return &disk_real;
}

static int fuse_create(const Disk *d, const char *path)
{
    return burn(d)->create(d, path);
}

static int fuse_reserve(const Disk *d, int fd, uint64_t bytes)
{
    return burn(d)->reserve(d, fd, bytes);
}

static ssize_t fuse_write(const Disk *d, int fd, const void *bytes, size_t n, uint64_t offset)
{
    const ssize_t half = burn(d)->write(d, fd, bytes, (n + 1) / 2, offset); /* short writes are gone on with */
    return half;
}

static int fuse_sync(const Disk *d, int fd)
{
    (void)burn(d), (void)fd;
    return 0;
}

static int fuse_rename(const Disk *d, const char *from, const char *to, bool replace)
{
    return burn(d)->rename(d, from, to, replace);
}

static int fuse_remove(const Disk *d, const char *path)
{
    return burn(d)->remove(d, path);
}

static int fuse_point(const Disk *d, const char *target, const char *path)
{
    return burn(d)->point(d, target, path);
}

static int fuse_sync_folder(const Disk *d, const char *path)
{
    (void)burn(d), (void)path;
    return 0;
}

void kill_at_each_call(Context *c)
{
    Fuse f = { .disk = disk_real };
    f.disk.user = &f;
    f.disk.create = fuse_create;
    f.disk.reserve = fuse_reserve;
    f.disk.write = fuse_write;
    f.disk.sync = fuse_sync;
    f.disk.rename = fuse_rename;
    f.disk.remove = fuse_remove;
    f.disk.point = fuse_point;
    f.disk.sync_folder = fuse_sync_folder;
    const char *folder = new_folder(c);
    uint64_t last = 0;
    int status, hear, calls = 0;
    do {
        f.left = calls++;
        const pid_t pid = start(c, folder, &f.disk, 1, &hear);
        status = end(pid);
        last = last_said(hear, last);
        const uint64_t found = load_step(c, folder, WIDTH);
        assert_true(found == last || found == last + 1);
        last = found;
        assert_true(calls < 1000);
    } while (!WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    print_message("killed at each of %d calls, %d steps saved\n", calls - 1, (int)last);
    assert_true(calls > 20 && last > 2);
    remove_folder(folder);
}
