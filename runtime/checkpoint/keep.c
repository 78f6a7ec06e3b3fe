#include "runtime/checkpoint/keep.h"

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

void keep_newest(CheckpointTarget *t, Arena *scratch, const char *just_saved, uint64_t best_step)
{
    CheckpointFile *list;
    size_t n;
    int whole = 1; /* the one just saved */
    const int keep = t->wish.keep < CHECKPOINT_KEEP_LEAST ? CHECKPOINT_KEEP_LEAST : t->wish.keep;
    if (!t->wish.keep || folder_list(scratch, t->diag, t->wish.path, &list, &n) != OK)
        return;
    for (size_t i = 0; i < n; i++) {
        const char *name = list[i].name;
        if (strcmp(name, just_saved) == 0)
            continue;
        const ArenaMark mark = arena_mark(scratch);
        if (whole < keep) {
            whole += own(t, scratch, name, true);
        } else if (list[i].step != best_step && own(t, scratch, name, false)) {
            t->wish.disk->remove(t->wish.disk, file_in(scratch, t->wish.path, name));
            if (place_of(t, name) < t->n_whole)
                forget(t, place_of(t, name));
        }
        arena_reset(scratch, mark);
    }
}
