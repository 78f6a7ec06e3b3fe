#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "ir/store/safetensors_head.h"
#include "runtime/checkpoint/content.h"
#include "runtime/checkpoint/folder.h"
#include "runtime/checkpoint/keep.h"
#include "runtime/checkpoint/probe.h"

/* ---- the target ---- */

bool checkpoint_is_file(const char *path)
{
    static const char suffix[] = ".safetensors";
    struct stat st;
    const size_t n = strlen(path), k = sizeof suffix - 1;
    if (n < k || strcmp(path + n - k, suffix) != 0)
        return false;
    return stat(path, &st) != 0 || !S_ISDIR(st.st_mode);
}

static Status make_folder(const CheckpointTarget *t, Arena *scratch)
{
    const Disk *disk = t->wish.disk;
    if (disk->make_folder(disk, t->wish.path) == 0) {
        disk->sync_folder(disk, file_folder(scratch, t->wish.path));
        return OK;
    }
    return errno == EEXIST ? OK : file_failed(t->diag, t->wish.path, "cannot be made", errno);
}

bool checkpoint_is_of(const char *path, const char *run, Memory *memory, const Limits *limits)
{
    Probe p;
    Types types;
    Arena scratch;
    arena_open(&scratch, memory);
    types_open(&types, &scratch);
    probe_open(&p, &types, &scratch, limits, path);
    const bool is = !p.damage && strcmp(p.info.run, run) == 0;
    arena_close(&scratch);
    return is;
}

static Status refuse_file(const char *path, const char *option, Arena *scratch, Diag *diag, const Limits *limits)
{
    Probe p;
    Types types;
    struct stat st;
    if (lstat(path, &st) != 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
        return OK;
    types_open(&types, scratch);
    probe_open(&p, &types, scratch, limits, path);
    const Place place = { .file = path, .byte = -1 };
    Message *m = p.damage ? message_new(diag, SEVERITY_ERROR, USAGE, place, "is there already")
                          : message_new(diag, SEVERITY_ERROR, USAGE, place,
                                        "holds the states of a run already, up to step %" PRIu64, p.info.step);
    if (!p.damage && strcmp(option, "--checkpoint") == 0)
        message_try(m, "--resume");
    message_try(m, "%s another file", option);
    message_try(m, "--overwrite");
    return message_send(m);
}

Status checkpoint_is_free(const char *path, const char *option, Memory *memory, Diag *diag, const Limits *limits)
{
    Arena scratch;
    arena_open(&scratch, memory);
    const Status status = refuse_file(path, option, &scratch, diag, limits);
    arena_close(&scratch);
    return status;
}

static Status refuse_old(const CheckpointTarget *t, Arena *scratch)
{
    CheckpointFile *list;
    size_t n;
    TRY(folder_list(scratch, t->diag, t->wish.path, &list, &n));
    if (!n)
        return OK;
    Message *m = message_new(t->diag, SEVERITY_ERROR, USAGE, (Place){ .file = t->wish.path, .byte = -1 },
                             "holds checkpoints of a run already, up to step %" PRIu64, list[0].step);
    message_try(m, "--resume");
    message_try(m, "--checkpoint another folder");
    message_try(m, "--overwrite");
    return message_send(m);
}

static Status open_folder(CheckpointTarget *t, Arena *scratch)
{
    TRY(make_folder(t, scratch));
    const char *lock = file_in(scratch, t->wish.path, CHECKPOINT_LOCK);
    TRY(file_lock(&t->lock, t->diag, lock));
    if (t->wish.fresh)
        TRY(refuse_old(t, scratch));
    folder_clear(t->wish.disk, scratch, t->wish.path, t->lock.held);
    const size_t n = (size_t)(t->wish.keep > CHECKPOINT_KEEP_LEAST ? t->wish.keep : CHECKPOINT_KEEP_LEAST) + 1;
    t->whole = memory_block(t->memory, n * sizeof *t->whole);
    t->cap_whole = n;
    return OK;
}

static void close_target(void *thing)
{
    CheckpointTarget *t = thing;
    memory_release(t->memory, t->whole, t->cap_whole * sizeof *t->whole);
    t->whole = NULL;
    t->cap_whole = t->n_whole = 0;
    file_unlock(&t->lock);
}

Status checkpoint_open(CheckpointTarget *t, Memory *memory, Diag *diag, const CheckpointWish *wish)
{
    Arena scratch;
    Status status = OK;
    *t = (CheckpointTarget){ .wish = *wish, .memory = memory, .diag = diag, .lock = { .fd = -1 } };
    t->limits = wish->limits ? *wish->limits : LIMITS_DEFAULT;
    if (!t->wish.disk)
        t->wish.disk = &disk_real;
    t->is_folder = !checkpoint_is_file(wish->path);
    BUG_IF(memory, strlen(wish->run) > 16);
    cleanup_push(memory, &t->cleanup, close_target, t);
    arena_open(&scratch, memory);
    if (t->is_folder)
        status = open_folder(t, &scratch);
    else if (!wish->fresh || (status = refuse_file(wish->path, "--checkpoint", &scratch, diag, &t->limits)) == OK)
        leftovers_clear_of(t->wish.disk, &scratch, wish->path);
    arena_close(&scratch);
    if (status != OK)
        checkpoint_close(t);
    return status;
}

void checkpoint_close(CheckpointTarget *t)
{
    cleanup_drop(&t->cleanup);
    close_target(t);
}

/* ---- one save ---- */

typedef struct Save {
    CheckpointTarget *t; /* null: bytes for a sink */
    Diag *diag;
    Arena *scratch;
    const CheckpointInfo *info;
    NamedTensor *states; /* in the order of the file */
    size_t n;
    Text head;
    uint64_t size;
    const char *name; /* in the folder; null: one file */
    const char *path;
    FileOut file;
} Save;

static unsigned alignment(const NamedTensor *s)
{
    const DType dtype = s->tensor->type->dtype;
    return safetensors_dtype(dtype) ? (unsigned)dtype_bits(dtype) / 8 : 1;
}

/* Wide elements first, so that all are aligned; then by name. */
static int file_order(const void *a, const void *b)
{
    const unsigned x = alignment(a), y = alignment(b);
    if (x != y)
        return x < y ? 1 : -1;
    return strcmp(((const NamedTensor *)a)->name, ((const NamedTensor *)b)->name);
}

static Status check_names(const Save *s)
{
    Map seen;
    map_open(&seen, s->scratch);
    for (size_t i = 0; i < s->n; i++) {
        bool fresh;
        const NamedTensor *state = &s->states[i];
        map_put(&seen, state->name, &fresh);
        if (!fresh || !str_is_utf8(str(state->name)) || strcmp(state->name, "__metadata__") == 0 ||
            state->tensor->type->dtype == STRING)
            return fail_as(s->diag, INTERNAL, (Place){ .byte = -1, .where = state->name }, "cannot be stored");
    }
    return OK;
}

static Status make_head(Save *s)
{
    SafeEntry *entries = NEWS(s->scratch, SafeEntry, s->n);
    size_t n_pairs;
    char hex[SHA256_TEXT];
    uint8_t digest[SHA256_BYTES];
    Sha256 sha;
    TRY(check_names(s));
    if (s->n)
        qsort(s->states, s->n, sizeof *s->states, file_order);
    for (size_t i = 0; i < s->n; i++)
        entries[i] = (SafeEntry){ s->states[i].name, s->states[i].tensor->type };
    const SafePair *pairs = info_pairs(s->scratch, s->info, &n_pairs);
    text_open(&s->head, s->scratch);
    safetensors_head(&s->head, entries, s->n, pairs, n_pairs);
    s->size = s->head.n;
    char *digits = content_begin(&sha, s->head.p, s->head.n);
    BUG_IF(s->scratch->memory, !digits);
    for (size_t i = 0; i < s->n; i++) {
        sha256_add(&sha, s->states[i].tensor->data, s->states[i].tensor->bytes);
        s->size += s->states[i].tensor->bytes;
    }
    sha256_end(&sha, digest);
    sha256_text(hex, digest);
    memcpy(digits, hex, SHA256_TEXT - 1);
    return OK;
}

static void begin(Save *s, Arena *scratch, Diag *diag, const CheckpointInfo *info, const NamedTensor *states, size_t n)
{
    *s = (Save){ .diag = diag, .scratch = scratch, .info = info, .n = n };
    s->states = NEWS(scratch, NamedTensor, n);
    if (n)
        memcpy(s->states, states, n * sizeof *states);
}

static Status write_bytes(Save *s)
{
    TRY(file_reserve(&s->file, s->size));
    TRY(file_write(&s->file, s->head.p, s->head.n));
    for (size_t i = 0; i < s->n; i++)
        TRY(file_write(&s->file, s->states[i].tensor->data, s->states[i].tensor->bytes));
    return OK;
}

static Status read_back(void *user, uint64_t offset, void *out, size_t n)
{
    return file_read_back(user, offset, out, n);
}

/* What the disk gives back is what was meant: the head byte for byte, the rest by its hash. */
static Status verify(Save *s)
{
    bool whole;
    char *head = arena_alloc(s->scratch, s->head.n);
    TRY(file_read_back(&s->file, 0, head, s->head.n));
    TRY(content_check(s->t->memory, read_back, &s->file, s->head.n, s->size, &whole));
    if (whole && memcmp(head, s->head.p, s->head.n) == 0)
        return OK;
    return fail_as(s->file.diag, IO, (Place){ .file = s->path, .byte = -1 },
                   "what was read back is not what was written: the disk or the memory is faulty");
}

/* Whether the file that has the name is of this run. */
static bool is_own(const Save *s, const char *path)
{
    Probe p;
    Types types;
    types_open(&types, s->scratch);
    probe_open(&p, &types, s->scratch, &s->t->limits, path);
    return !p.damage && strcmp(p.info.run, s->t->wish.run) == 0;
}

/* The first save of a run that begins replaces nothing that came there since. */
static Status name_file(Save *s)
{
    bool taken;
    if (!s->t->wish.fresh || s->t->begun)
        return file_keep(&s->file);
    const Status status = file_keep_as(&s->file, s->path, false, &taken);
    s->t->begun = s->file.named; /* what is there is ours, however that ended */
    if (status != OK || !taken)
        return status;
    file_drop(&s->file);
    return fail_as(s->t->diag, IO, (Place){ .file = s->path, .byte = -1 }, "another run has written it meanwhile");
}

static Status give_name(Save *s)
{
    bool taken;
    if (!s->t->is_folder)
        return name_file(s);
    TRY(file_keep_as(&s->file, s->path, false, &taken));
    if (!taken)
        return OK;
    if (!is_own(s, s->path)) {
        s->name = folder_name(s->scratch, s->info->step, s->t->wish.run);
        s->path = file_in(s->scratch, s->t->wish.path, s->name);
    }
    return file_keep_as(&s->file, s->path, true, &taken);
}

/* The whole file under its temporary name. */
static Status write_file(Save *s, Diag *diag)
{
    TRY(file_create_on(&s->file, s->t->wish.disk, s->scratch, diag, s->path));
    Status status = write_bytes(s);
    if (status == OK)
        status = file_sync(&s->file);
    if (status == OK)
        status = verify(s);
    if (status != OK)
        file_drop(&s->file);
    s->file.diag = s->t->diag;
    return status;
}

/* A file that could not be brought to the disk is thrown away, and written anew from memory once. */
static Status write_twice(Save *s)
{
    Diag quiet;
    diag_open(&quiet, s->scratch, NULL, NULL);
    quiet.files = s->t->diag->files;
    return write_file(s, &quiet) == OK ? OK : write_file(s, s->t->diag);
}

/* Links come before what they pointed to goes. */
static Status settle(Save *s, bool first, bool best)
{
    const CheckpointTarget *t = s->t;
    TRY(folder_point(t->wish.disk, s->scratch, t->diag, t->wish.path, "last", s->name));
    if (first && t->wish.replaces)
        TRY(keep_alone(t, s->scratch, s->name));
    if (best)
        TRY(folder_point(t->wish.disk, s->scratch, t->diag, t->wish.path, "best", s->name));
    return keep_newest(s->t, s->scratch, s->name, s->info->best_step);
}

static Status save(Save *s, bool best)
{
    CheckpointTarget *t = s->t;
    TRY(make_head(s));
    s->name = t->is_folder ? folder_name(s->scratch, s->info->step, NULL) : NULL;
    s->path = s->name ? file_in(s->scratch, t->wish.path, s->name) : t->wish.path;
    TRY(write_twice(s));
    TRY(give_name(s));
    const bool first = !t->begun;
    t->begun = true;
    if (!t->is_folder)
        return OK;
    keep_note(t, s->name);
    return settle(s, first, best);
}

Status checkpoint_save(CheckpointTarget *t, Arena *arena, const CheckpointInfo *info, const NamedTensor *states,
                       size_t n, bool best, CheckpointSaved *saved)
{
    Arena scratch;
    Save s;
    CheckpointInfo own = *info;
    own.run = t->wish.run;
    arena_open(&scratch, t->memory);
    begin(&s, &scratch, t->diag, &own, states, n);
    s.t = t;
    const Status status = save(&s, best);
    if (status == OK)
        *saved = (CheckpointSaved){ arena_string(arena, s.path), s.size };
    arena_close(&scratch);
    return status;
}

static Status put_all(Save *s, Sink to)
{
    TRY(make_head(s));
    TRY(to.put(to.user, s->head.p, s->head.n));
    for (size_t i = 0; i < s->n; i++)
        TRY(to.put(to.user, s->states[i].tensor->data, s->states[i].tensor->bytes));
    return OK;
}

Status checkpoint_put(Sink to, Memory *memory, Diag *diag, const CheckpointInfo *info, const NamedTensor *states,
                      size_t n)
{
    Arena scratch;
    Save s;
    arena_open(&scratch, memory);
    begin(&s, &scratch, diag, info, states, n);
    const Status status = put_all(&s, to);
    arena_close(&scratch);
    return status;
}
