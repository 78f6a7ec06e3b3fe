#include "runtime/checkpoint/keep.h"

#include <errno.h>
#include <string.h>

#include "runtime/checkpoint/folder.h"
#include "runtime/checkpoint/probe.h"

static size_t place_of(const CheckpointTarget *t, const char *name)
{
    size_t i = 0;
    while (i < t->n_whole && strcmp(t->whole[i], name) != 0)
        i++;
    return i;
}

static void forget(CheckpointTarget *t, size_t i)
{
    memmove(t->whole + i, t->whole + i + 1, (t->n_whole - i - 1) * sizeof *t->whole);
    t->n_whole--;
}

void keep_note(CheckpointTarget *t, const char *name)
{
    const size_t n = strlen(name) + 1;
    if (n > CHECKPOINT_NAME || place_of(t, name) < t->n_whole)
        return; /* a name that is not ours is looked at again each time */
    if (t->n_whole == t->cap_whole)
        forget(t, 0);
    memcpy(t->whole[t->n_whole++], name, n);
}

/* Whether a file is of this run, and whether it is whole where that is asked. */
static bool own(CheckpointTarget *t, Arena *scratch, const char *name, bool whole)
{
    if (place_of(t, name) < t->n_whole)
        return true;
    Probe p;
    Types types;
    types_open(&types, scratch);
    probe_open(&p, &types, scratch, &t->limits, file_in(scratch, t->wish.path, name));
    if (p.damage || strcmp(p.info.run, t->wish.run) != 0 || (whole && !probe_verify(&p)))
        return false;
    if (whole)
        keep_note(t, name);
    return true;
}

/* ---- what goes ---- */

static void hear(void *user, const Message *m)
{
    *(const char **)user = m->text;
}

/* The files of the folder; that it cannot be read is a warning, and there are none. */
static Status list_old(const CheckpointTarget *t, Arena *scratch, CheckpointFile **list, size_t *n)
{
    Diag quiet;
    const char *why = "";
    diag_open(&quiet, scratch, hear, &why);
    if (folder_list(scratch, &quiet, t->wish.path, list, n) == OK)
        return OK;
    *n = 0;
    return warn(t->diag, (Place){ .file = t->wish.path, .byte = -1 }, "old checkpoints stay, the folder %s", why);
}

static Status remove_old(const CheckpointTarget *t, Arena *scratch, const char *name)
{
    char text[128];
    const char *path = file_in(scratch, t->wish.path, name);
    if (t->wish.disk->remove(t->wish.disk, path) == 0 || errno == ENOENT)
        return OK;
    return warn(t->diag, (Place){ .file = path, .byte = -1 }, "is old and cannot be removed: %s",
                strerror_r(errno, text, sizeof text));
}

Status keep_alone(const CheckpointTarget *t, Arena *scratch, const char *just_saved)
{
    CheckpointFile *list;
    size_t n;
    Status status = remove_old(t, scratch, "best"); /* before what it points to */
    const Status listed = list_old(t, scratch, &list, &n);
    status = status == OK ? listed : status;
    for (size_t i = 0; i < n; i++) {
        const Status gone = strcmp(list[i].name, just_saved) == 0 ? OK : remove_old(t, scratch, list[i].name);
        status = status == OK ? gone : status;
    }
    return status;
}

Status keep_newest(CheckpointTarget *t, Arena *scratch, const char *just_saved, uint64_t best_step)
{
    CheckpointFile *list;
    size_t n;
    int whole = 1; /* the one just saved */
    const int keep = t->wish.keep < CHECKPOINT_KEEP_LEAST ? CHECKPOINT_KEEP_LEAST : t->wish.keep;
    Status status = OK;
    if (!t->wish.keep)
        return OK;
    TRY(list_old(t, scratch, &list, &n));
    for (size_t i = 0; i < n && status == OK; i++) {
        const char *name = list[i].name;
        if (strcmp(name, just_saved) == 0)
            continue;
        const ArenaMark mark = arena_mark(scratch);
        if (whole < keep) {
            whole += own(t, scratch, name, true);
        } else if (list[i].step != best_step && own(t, scratch, name, false)) {
            status = remove_old(t, scratch, name);
            if (place_of(t, name) < t->n_whole)
                forget(t, place_of(t, name));
        }
        arena_reset(scratch, mark);
    }
    return status;
}
