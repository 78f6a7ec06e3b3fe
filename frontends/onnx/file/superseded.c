#include "frontends/onnx/file/superseded.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/entries.h"
#include "base/leftovers.h"
#include "frontends/onnx/file/references.h"

/* A file that data lies in, or lay in. */
typedef struct Data {
    const char *name; /* in the folder of the model, or beneath it */
    bool named;       /* by us */
    bool before;      /* the old model read it */
    bool read;        /* the new one does */
    const char *why;  /* it stays; null: it may go */
} Data;

/* ---- files by name ---- */

/* File systems may not tell capital letters: what differs in nothing else counts as one. */
static const char *key_of(Arena *arena, const char *name)
{
    char *key = arena_string(arena, name);
    for (char *p = key; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    return key;
}

static Data *add(Superseded *s, const char *name, bool named)
{
    bool fresh;
    Arena *arena = s->weight_file->arena;
    MapEntry *e = map_put(&s->files, key_of(arena, name), &fresh);
    if (fresh) {
        Data *d = NEW(arena, Data);
        *d = (Data){ .name = arena_string(arena, name), .named = named };
        e->value.p = d;
    }
    return e->value.p;
}

/* The file at a location, or one of the folder that has its last name: rather too many than too few. */
static Data *find(Superseded *s, const char *location)
{
    const ArenaMark mark = arena_mark(s->weight_file->arena);
    const char *slash = strrchr(location, '/');
    const MapEntry *e = map_find(&s->files, key_of(s->weight_file->arena, location));
    if (!e && slash)
        e = map_find(&s->files, key_of(s->weight_file->arena, slash + 1));
    arena_reset(s->weight_file->arena, mark);
    return e ? e->value.p : NULL;
}

/* ---- before ---- */

static void read_before(void *user, const char *location)
{
    Superseded *s = user;
    Data *d = find(s, location);
    if (!d && s->files.n < (size_t)s->weight_file->limits->external_files)
        d = add(s, location, weight_file_names(location, s->weight_file->stem, NULL));
    if (d)
        d->before = true;
}

void superseded_read(Superseded *s, WeightFile *b)
{
    *s = (Superseded){ .weight_file = b };
    map_open(&s->files, b->arena);
    if (file_exists(b->model))
        (void)refers_each(b->arena->memory, b->limits, b->model, read_before, s);
}

/* ---- after ---- */

static void see_temporary(Superseded *s, const char *name)
{
    const WeightFile *b = s->weight_file;
    long pid;
    if (!leftovers_name(name, b->stem, &pid) && !leftovers_name(name, arena_printf(b->arena, "%s.data", b->stem), &pid))
        return;
    const char *path = file_in(b->arena, b->folder, name);
    if (leftovers_abandoned(path, pid))
        b->disk->remove(b->disk, path);
    else
        s->busy = true;
}

static void see_name(void *user, const char *name)
{
    Superseded *s = user;
    WeightFile *b = s->weight_file;
    const size_t n = strlen(name);
    if (weight_file_names(name, b->stem, NULL))
        add(s, name, true);
    if (strstr(name, ".tmp-"))
        see_temporary(s, name);
    if (n < 5 || strcasecmp(name + n - 5, ".onnx") != 0 || strcmp(name, b->stem) == 0)
        return;
    if (s->n_models == SUPERSEDED_MODELS) {
        s->why = "there are more than 1024 models in the folder";
        return;
    }
    GROW(b->arena, s->models, s->n_models, s->cap_models);
    s->models[s->n_models++] = arena_string(b->arena, name);
}

static void look_around(Superseded *s)
{
    const int error =
        entries_each(s->weight_file->arena->memory, s->weight_file->folder, SUPERSEDED_NAMES, see_name, s);
    if (error)
        s->why = error == EOVERFLOW ? "there are more than 65536 names in the folder" : "the folder cannot be read";
}

static void read_by_new(void *user, const char *location)
{
    Data *d = find(user, location);
    if (d)
        d->read = true;
}

typedef struct Other {
    Superseded *s;
    const char *model;
} Other;

static void read_by_other(void *user, const char *location)
{
    const Other *o = user;
    Data *d = find(o->s, location);
    if (d && !d->why)
        d->why = arena_printf(o->s->weight_file->arena, "%s reads it", o->model);
}

/* Whether something is left over that would go if no other model reads it. */
static bool any_to_go(const Superseded *s)
{
    for (size_t i = 0; i < s->files.n; i++) {
        const Data *d = s->files.entries[i].value.cp;
        if (d->named && !d->read)
            return true;
    }
    return false;
}

static void ask_models(Superseded *s)
{
    WeightFile *b = s->weight_file;
    if (!file_is_absent(b->model) && refers_each(b->arena->memory, b->limits, b->model, read_by_new, s) != OK &&
        !s->why)
        s->why = arena_printf(b->arena, "%s cannot be read", b->stem);
    if (!any_to_go(s))
        return;
    for (size_t i = 0; i < s->n_models; i++) {
        Other other = { s, s->models[i] };
        const char *path = file_in(b->arena, b->folder, s->models[i]);
        if (refers_each(b->arena->memory, b->limits, path, read_by_other, &other) != OK && !s->why)
            s->why = arena_printf(b->arena, "%s cannot be read, and may read it", s->models[i]);
    }
}

/* ---- one file ---- */

/* Whether a file holds what its name says. */
static bool is_what_it_says(const WeightFile *b, const char *path, const char *name)
{
    char hex[SHA256_TEXT];
    uint8_t digest[SHA256_BYTES];
    const char *digits;
    FileId id;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool says = fd >= 0 && file_id(fd, &id) && weight_file_names(name, b->stem, &digits) &&
                digest_sha256(b->arena->memory, fd, id.size, digest) == 0;
    if (fd >= 0)
        close(fd);
    if (says)
        sha256_text(hex, digest);
    return says && memcmp(digits, hex, WEIGHT_FILE_DIGITS) == 0;
}

static void settle(Superseded *s, Data *d, bool alone)
{
    WeightFile *b = s->weight_file;
    const char *path = file_in(b->arena, b->folder, d->name);
    if (d->read || !file_exists(path))
        return;
    if (!d->named)
        d->why = "it is not named after this model";
    else if (!d->why && map_find(&b->read, d->name))
        d->why = "a model that is open reads it";
    else if (!d->why && (s->busy || !alone))
        d->why = "somebody else may be writing here";
    else if (!d->why)
        d->why = s->why;
    if (!d->why && !is_what_it_says(b, path, d->name))
        d->why = "its content is not what its name says";
    if (!d->why && b->disk->remove(b->disk, path) != 0)
        d->why = "it cannot be removed";
}

static void tell(const Superseded *s)
{
    Message *m = NULL;
    for (size_t i = 0; i < s->files.n; i++) {
        const Data *d = s->files.entries[i].value.cp;
        if (!d->before || !d->why)
            continue;
        if (!m)
            m = message_new(s->weight_file->diag, SEVERITY_NOTE, OK,
                            (Place){ .file = s->weight_file->model, .byte = -1 },
                            "data of the model that was here stays");
        message_at(m, "%s: %s", d->name, d->why);
    }
    if (m)
        (void)message_send(m);
}

void superseded_clear(Superseded *s, bool alone, bool replaced)
{
    const WeightFile *b = s->weight_file;
    look_around(s);
    if (!s->files.n)
        return;
    ask_models(s);
    for (size_t i = 0; i < s->files.n; i++) {
        Data *d = s->files.entries[i].value.p;
        if (replaced || (b->kept && strcmp(d->name, b->name) == 0))
            settle(s, d, alone);
    }
    if (replaced)
        tell(s);
}
