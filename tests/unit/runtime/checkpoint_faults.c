/* Disks that refuse, that are full, and that give back other bytes: a save answers, leaves what was there, and the next
 * one works. */
#include "support/checkpoints.h"
#include "support/faulty_disk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WIDTH = 30 };

static int temporaries(Context *c, const char *folder)
{
    return system(arena_printf(&c->arena, "ls -a %s | grep -q tmp-", folder)) == 0;
}

/* One save of step 3 with a fault; whether the save came to the call that fails. */
static bool one_fault(Context *c, const char *path, const char *folder, int at, int error, bool for_good)
{
    Faulty f;
    CheckpointTarget t;
    faulty_open_disk(&f, INT32_MAX, error, false);
    assert_int_equal(open_target(c, &t, path, run_a, 2, &f.disk), OK);
    for (uint64_t step = 1; step <= 2; step++)
        assert_int_equal(save_at(c, &t, step, WIDTH, false), OK);
    const int before = descriptors();
    f.calls = 0;
    f.at = at;
    f.for_good = for_good;
    const Status status = save_at(c, &t, 3, WIDTH, true);
    const bool hit = f.calls > at;
    assert_int_equal(descriptors(), before);
    const uint64_t found = load_step(c, path, WIDTH);
    assert_true(found == 3 || (status == IO && found == 2));
    assert_true(status == OK || status == IO);
    assert_true(status == OK || hit);
    if (status != OK)
        assert_non_null(strstr(c->last, "cannot be"));
    assert_int_equal(temporaries(c, folder), 0);
    f.at = INT32_MAX;
    assert_int_equal(save_at(c, &t, 4, WIDTH, false), OK); /* the target is as good as before */
    assert_int_equal(load_step(c, path, WIDTH), 4);
    checkpoint_close(&t);
    return hit;
}

static Status each_call_fails(void *arg)
{
    Context *c = arg;
    static const int errors[] = { EIO, ENOSPC };
    for (int variant = 0; variant < 8; variant++) {
        int at = 0;
        bool hit = true;
        for (; hit; at++) {
            const char *folder = new_memory_folder(c), *path = folder;
            if (variant & 4)
                path = arena_printf(&c->arena, "%s/one.safetensors", folder);
            hit = one_fault(c, path, folder, at, errors[variant & 1], variant & 2);
            remove_folder(folder);
        }
        assert_true(at > 15);
    }
    return OK;
}

/* A file that could not be brought to the disk is thrown away and written anew, from memory. */
static Status written_anew(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    Faulty f;
    const char *folder = new_memory_folder(c);
    faulty_open_disk(&f, 8, EIO, false); /* create, reserve, head and five tensors, then sync */
    assert_int_equal(open_target(c, &t, folder, run_a, 2, &f.disk), OK);
    assert_int_equal(save_at(c, &t, 1, WIDTH, false), OK);
    assert_int_not_equal(f.failed_sync, 0);
    assert_true(f.calls > 20);
    f.flips = 1; /* read back wrong once, then right */
    assert_int_equal(save_at(c, &t, 2, WIDTH, false), OK);
    assert_int_equal(load_step(c, folder, WIDTH), 2);
    f.flips = 1000;
    assert_int_equal(save_at(c, &t, 3, WIDTH, false), IO);
    assert_non_null(strstr(c->last, "what was read back is not what was written"));
    assert_int_equal(load_step(c, folder, WIDTH), 2);
    assert_int_equal(temporaries(c, folder), 0);
    checkpoint_close(&t);
    remove_folder(folder);
    return OK;
}

/* The real calls under a limit of the process: an answer, no signal. */
static Status too_large(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    struct rlimit before, small;
    const char *folder = new_folder(c);
    assert_int_equal(open_target(c, &t, folder, run_a, 2, &disk_real), OK);
    assert_int_equal(save_at(c, &t, 1, WIDTH, false), OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const Status status = save_at(c, &t, 2, WIDTH, false);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, IO);
    assert_non_null(strstr(c->last, "/step-00000002.safetensors: cannot be written: File too large: "));
    assert_non_null(strstr(c->last, " bytes wanted\n"));
    assert_int_equal(load_step(c, folder, WIDTH), 1);
    assert_int_equal(save_at(c, &t, 2, WIDTH, false), OK);
    checkpoint_close(&t);
    remove_folder(folder);
    return OK;
}

/* ---- a save inside a save ---- */

typedef struct Nested {
    Disk disk;
    Context *c;
    const char *path;
    int left;
} Nested;

static ssize_t nested_write(const Disk *d, int fd, const void *bytes, size_t n, uint64_t offset)
{
    Nested *w = d->user;
    CheckpointTarget t;
    if (w->left-- == 0) {
        assert_int_equal(open_target(w->c, &t, w->path, run_b, 0, NULL), OK);
        assert_int_equal(save_at(w->c, &t, 50, WIDTH, false), OK);
        checkpoint_close(&t);
        assert_int_equal(load_step(w->c, w->path, WIDTH), 50);
    }
    return disk_real.write(d, fd, bytes, n, offset);
}

/* Two writers of one file: each save is whole, the last one stays, and none takes what the other writes for a
 * leftover. */
static Status save_during_save(void *arg)
{
    Context *c = arg;
    CheckpointTarget t;
    const char *folder = new_memory_folder(c), *one = arena_printf(&c->arena, "%s/one.safetensors", folder);
    for (int left = 0; left < 6; left++) {
        Nested w = { .disk = disk_real, .c = c, .path = one, .left = left };
        w.disk.user = &w;
        w.disk.write = nested_write;
        assert_int_equal(open_target(c, &t, one, run_a, 0, &w.disk), OK);
        assert_int_equal(save_at(c, &t, 60, WIDTH, false), OK);
        assert_true(w.left > -10); /* at the first attempt */
        checkpoint_close(&t);
        assert_int_equal(load_step(c, one, WIDTH), 60);
        assert_int_equal(count_names(folder), 1);
    }
    remove_folder(folder);
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(each_call_fails)
TEST(written_anew)
TEST(too_large)
TEST(save_during_save)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_written_anew),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_save_during_save),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
