#include "support/checkpoints.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *new_folder(Context *c)
{
    char path[] = "checkpoints.XXXXXX";
    assert_non_null(mkdtemp(path));
    return arena_string(&c->arena, path);
}

const char *new_memory_folder(Context *c)
{
    char path[] = "/dev/shm/checkpoints.XXXXXX";
    return mkdtemp(path) ? arena_string(&c->arena, path) : new_folder(c);
}

static int each_name(const char *folder, bool remove)
{
    int n = 0;
    char path[512];
    DIR *d = opendir(folder);
    if (!d)
        return 0;
    for (const struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        n++;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (remove)
            assert_int_equal(unlink(path), 0);
    }
    closedir(d);
    return n;
}

void remove_folder(const char *path)
{
    each_name(path, true);
    assert_int_equal(rmdir(path), 0);
}

int count_names(const char *folder)
{
    return each_name(folder, false);
}

Str whole_file(Context *c, const char *path)
{
    Str bytes = { "", 0 };
    assert_int_equal(file_read(&c->arena, &c->diag, path, INT64_MAX, "none", &bytes), OK);
    return bytes;
}

void put_bytes(const char *path, const void *bytes, size_t n)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static int no_sync(const Disk *d, int fd)
{
    (void)d, (void)fd;
    return 0;
}

static int no_sync_folder(const Disk *d, const char *path)
{
    (void)d, (void)path;
    return 0;
}

static const Disk *disk_without_sync(void)
{
    static Disk d;
    d = disk_real;
    d.sync = no_sync;
    d.sync_folder = no_sync_folder;
    return &d;
}

static const struct {
    const char *name;
    DType dtype;
    int rank;
} samples[N_STATES] = {
    { "w.b", F32, 2 }, { "qcc.step", I64, 0 }, { "w.a", F64, 1 }, { "mask\n\"\xc3\xa9\"", BOOL, 1 }, { "four", I4, 1 },
};

static const Type *type_at(Context *c, int i, int64_t width)
{
    return type_tensor(&c->ir.types, samples[i].dtype, samples[i].rank, (const int64_t[]){ width, 3 });
}

NamedTensor *states_at(Context *c, uint64_t step, int64_t width)
{
    NamedTensor *s = NEWS(&c->arena, NamedTensor, N_STATES);
    for (int i = 0; i < N_STATES; i++) {
        Tensor *t = tensor_new(&c->arena, type_at(c, i, width));
        for (int64_t k = 0; k < tensor_elements(t); k++)
            tensor_set_i64(t, k, (int64_t)(step + (uint64_t)i) * 7 + k);
        s[i] = (NamedTensor){ samples[i].name, t };
    }
    return s;
}

CheckpointInfo info_at(uint64_t step)
{
    static const SafePair properties[] = { { "who", "a \"person\"" }, { "qcc.hash", "\"qcc.hash\":\"0\"" } };
    return (CheckpointInfo){ .step = step,
                             .epoch = step / 10,
                             .position = step % 10 * 32,
                             .seed = UINT64_MAX,
                             .shuffle_key = 77,
                             .model_hash = "model",
                             .step_hash = "step",
                             .options = "--lr 0.1",
                             .best_metric = "val_loss",
                             .best = 0.1,
                             .properties = properties,
                             .n_properties = COUNT(properties) };
}

Status open_target(Context *c, CheckpointTarget *t, const char *path, const char *run, int keep, const Disk *disk)
{
    return checkpoint_open(
        t, &c->memory, &c->diag,
        &(CheckpointWish){ .path = path, .run = run, .keep = keep, .disk = disk ? disk : disk_without_sync() });
}

Status save_at(Context *c, CheckpointTarget *t, uint64_t step, int64_t width, bool best)
{
    CheckpointSaved saved;
    CheckpointInfo info = info_at(step);
    info.best_step = best ? step : 0;
    return checkpoint_save(t, &c->arena, &info, states_at(c, step, width), N_STATES, best, &saved);
}

Status load_from(Context *c, const char *path, int64_t width, CheckpointLoaded *loaded)
{
    static const Limits limits = { LIMITS(LIMIT_VALUE) };
    StateSlot *slots = NEWS(&c->arena, StateSlot, N_STATES);
    for (int i = 0; i < N_STATES; i++)
        slots[i] = (StateSlot){ samples[i].name, NULL, type_at(c, i, width), false };
    return checkpoint_load(
        &(CheckpointReader){ &c->ir.types, &c->heap, &c->arena, &c->diag, &limits }, path,
        &(CheckpointWanted){ .model_hash = "model", .step_hash = "step", .slots = slots, .n = N_STATES }, loaded);
}

uint64_t load_step(Context *c, const char *path, int64_t width)
{
    CheckpointLoaded l;
    const Status status = load_from(c, path, width, &l);
    if (status != OK)
        print_error("%s", c->last);
    assert_int_equal(status, OK);
    if (!l.file)
        return 0;
    const NamedTensor *want = states_at(c, l.info.step, width);
    for (int i = 0; i < N_STATES; i++) {
        assert_true(tensor_same(l.states[i], want[i].tensor));
        tensor_drop(&c->heap, l.states[i]);
    }
    assert_int_equal(l.info.position, l.info.step % 10 * 32);
    return l.info.step;
}

const char *step_path(Context *c, const char *folder, uint64_t step)
{
    return arena_printf(&c->arena, "%s/step-%08" PRIu64 ".safetensors", folder, step);
}

void damage(Context *c, const char *path)
{
    const Str bytes = whole_file(c, path);
    char *copy = arena_copy(&c->arena, bytes.p, bytes.n);
    copy[bytes.n - 1] ^= 1;
    put_bytes(path, copy, bytes.n);
}
