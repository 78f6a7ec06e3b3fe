#include "runtime/checkpoint/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/entries.h"
#include "base/leftovers.h"
#include "base/number_text.h"

static const char prefix[] = "step-", suffix[] = ".safetensors";

const char *folder_name(Arena *arena, uint64_t step, const char *run)
{
    return arena_printf(arena, "%s%08" PRIu64 "%s%s%s", prefix, step, run ? "-" : "", run ? run : "", suffix);
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
    const int error = entries_each(arena->memory, folder, SIZE_MAX, list_one, &l);
    if (error)
        return error == ENOENT ? OK : file_failed(diag, folder, "cannot be read", error);
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
    const ssize_t n = readlink(file_in(arena, folder, link), target, sizeof target - 1);
    if (n <= 0)
        return NULL;
    target[n] = 0;
    return folder_step(target, &step) ? arena_string(arena, target) : NULL;
}

Status folder_point(const Disk *disk, Arena *arena, Diag *diag, const char *folder, const char *link, const char *name)
{
    char text[128];
    const char *path = file_in(arena, folder, link);
    const char *temporary = arena_printf(arena, "%s.tmp-%ld-0", path, (long)getpid());
    const bool made = disk->point(disk, name, temporary) == 0;
    if (made && disk->rename(disk, temporary, path, true) == 0)
        return OK;
    const int error = errno;
    if (made)
        disk->remove(disk, temporary);
    return warn(diag, (Place){ .file = path, .byte = -1 }, "cannot be made to point to %s: %s", name,
                strerror_r(error, text, sizeof text));
}

static bool is_stem(const char *stem)
{
    uint64_t step;
    return folder_step(stem, &step) || strcmp(stem, "last") == 0 || strcmp(stem, "best") == 0;
}

void folder_clear(const Disk *disk, Arena *arena, const char *folder, bool alone)
{
    const Leftovers l = { .disk = disk, .folder = folder, .is_stem = is_stem, .links = true, .alone = alone };
    leftovers_clear(&l, arena);
}
