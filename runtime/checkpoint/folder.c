#include "runtime/checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number_text.h"

static const char prefix[] = "step-", suffix[] = ".safetensors";

const char *folder_name(Arena *arena, uint64_t step, const char *run)
{
    return arena_printf(arena, "%s%08" PRIu64 "%s%s%s", prefix, step, run ? "-" : "", run ? run : "", suffix);
}

const char *folder_path(Arena *arena, const char *folder, const char *name)
{
    const size_t n = strlen(folder);
    return arena_printf(arena, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
}

bool folder_step(const char *name, uint64_t *step)
{
    const size_t before = sizeof prefix - 1;
    if (strncmp(name, prefix, before) != 0)
        return false;
    const char *p = name + before;
    const size_t digits = strspn(p, "0123456789");
    if (!u64_from_text(p, digits, step))
        return false;
    p += digits;
    if (*p == '-') {
        const size_t run = strspn(p + 1, "0123456789abcdef");
        if (!run)
            return false;
        p += 1 + run;
    }
    return strcmp(p, suffix) == 0;
}

static int newest_first(const void *a, const void *b)
{
    const CheckpointFile *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void close_folder(void *thing)
{
    closedir(thing);
}

/* Every name of a folder; a jump closes it. */
static void each_name(DIR *d, Arena *arena, void (*see)(void *user, const char *name), void *user)
{
    Cleanup cleanup;
    const struct dirent *e;
    cleanup_push(arena->memory, &cleanup, close_folder, d);
    while ((e = readdir(d)))
        see(user, e->d_name);
    cleanup_drop(&cleanup);
    closedir(d);
}

typedef struct Listing {
    Arena *arena;
    CheckpointFile *list;
    size_t n, cap;
} Listing;

static void list_one(void *user, const char *name)
{
    Listing *l = user;
    uint64_t step;
    if (!folder_step(name, &step))
        return;
    GROW(l->arena, l->list, l->n, l->cap);
    l->list[l->n++] = (CheckpointFile){ step, arena_string(l->arena, name) };
}

Status folder_list(Arena *arena, Diag *diag, const char *folder, CheckpointFile **list, size_t *n)
{
    Listing l = { .arena = arena };
    *list = NULL;
    *n = 0;
    DIR *d = opendir(folder);
    if (!d)
        return errno == ENOENT ? OK : file_failed(diag, folder, "cannot be read", errno);
    each_name(d, arena, list_one, &l);
    if (l.n)
        qsort(l.list, l.n, sizeof *l.list, newest_first);
    *list = l.list;
    *n = l.n;
    return OK;
}

const char *folder_link(Arena *arena, const char *folder, const char *link)
{
    char target[256];
    uint64_t step;
    const ssize_t n = readlink(folder_path(arena, folder, link), target, sizeof target - 1);
    if (n <= 0)
        return NULL;
    target[n] = 0;
    return folder_step(target, &step) ? arena_string(arena, target) : NULL;
}

void folder_point(const Disk *disk, Arena *arena, const char *folder, const char *link, const char *name)
{
    const char *path = folder_path(arena, folder, link);
    const char *temporary = arena_printf(arena, "%s.tmp-%ld-0", path, (long)getpid());
    if (disk->point(disk, name, temporary) == 0 && disk->rename(disk, temporary, path, true) != 0)
        disk->remove(disk, temporary);
}

typedef struct Clearing {
    const Disk *disk;
    Arena *arena;
    const char *folder, *stem;
    bool alone;
} Clearing;

/* Whether a name is that of a temporary file of ours, and of whom. */
static bool left_over(const Clearing *c, const char *name, long *pid)
{
    uint64_t step;
    const char *end = strstr(name, ".tmp-");
    if (!end)
        return false;
    const char *stem = arena_copy(c->arena, name, (size_t)(end - name));
    if (c->stem ? strcmp(stem, c->stem) != 0
                : !folder_step(stem, &step) && strcmp(stem, "last") != 0 && strcmp(stem, "best") != 0)
        return false;
    return file_is_temporary(name, stem, pid);
}

static void clear_one(void *user, const char *name)
{
    const Clearing *c = user;
    const ArenaMark mark = arena_mark(c->arena);
    const char *path = folder_path(c->arena, c->folder, name);
    long pid;
    if (left_over(c, name, &pid) && (c->alone || file_is_abandoned(path, pid)))
        c->disk->remove(c->disk, path);
    arena_reset(c->arena, mark);
}

void folder_clear(const Disk *disk, Arena *arena, const char *folder, const char *stem, bool alone)
{
    Clearing c = { disk, arena, folder, stem, alone };
    DIR *d = opendir(folder);
    if (d)
        each_name(d, arena, clear_one, &c);
}
