#include "base/file_set.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { MOST_LINKS = 40, LONGEST_LINK = 4096 };

/* ---- places ---- */

static FilePlace place_there(const struct stat *st)
{
    return (FilePlace){ .device = st->st_dev, .inode = st->st_ino, .is_folder = S_ISDIR(st->st_mode) };
}

/* Where a link that leads nowhere yet would lead. */
static const char *follow(Arena *arena, const char *path)
{
    char to[LONGEST_LINK];
    for (int i = 0; i < MOST_LINKS; i++) {
        const ssize_t n = readlink(path, to, sizeof to - 1);
        if (n <= 0)
            break;
        to[n] = 0;
        path = to[0] == '/' ? arena_string(arena, to) : arena_printf(arena, "%s/%s", file_folder(arena, path), to);
    }
    return path;
}

static FilePlace place_of(Arena *arena, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return place_there(&st);
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    path = follow(arena, arena_copy(arena, path, n));
    const char *slash = strrchr(path, '/');
    if (stat(file_folder(arena, path), &st) != 0)
        return (FilePlace){ .name = path };
    FilePlace place = place_there(&st);
    place.name = slash ? slash + 1 : path;
    place.is_folder = false;
    return place;
}

static bool same_place(const FilePlace *a, const FilePlace *b)
{
    if (a->device != b->device || a->inode != b->inode || !a->name != !b->name)
        return false;
    return !a->name || strcmp(a->name, b->name) == 0;
}

typedef struct Key {
    uint64_t device, inode;
} Key;

static MapEntry *find_in(const Map *map, const FilePlace *place)
{
    const Key key = { place->device, place->inode };
    return place->name ? NULL : map_find_n(map, (const char *)&key, sizeof key);
}

static MapEntry *put_in(Map *map, const FilePlace *place)
{
    Key *key = NEW(map->arena, Key);
    *key = (Key){ place->device, place->inode };
    return map_put_n(map, (const char *)key, sizeof *key, NULL);
}

/* ---- messages ---- */

/* "m.onnx" to "m.new.onnx", or a number behind it where that is there. */
static const char *another(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    const int n = (int)(dot && dot > name ? (size_t)(dot - path) : strlen(path));
    const char *end = path + n, *wish = arena_printf(arena, "%.*s.new%s", n, path, end);
    for (int i = 2; file_exists(wish); i++)
        wish = arena_printf(arena, "%.*s.new%d%s", n, path, i, end);
    return wish;
}

static Status send(Message *m, const FileUse *use, const char *other)
{
    if (strcmp(use->path, other) != 0)
        message_at(m, "%s", other);
    const char *like = use->is_stream ? other : use->path;
    if (use->another && (!use->is_stream || file_exists(like)))
        message_try(m, "%s%s", use->another, another(m->diag->arena, like));
    return message_send(m);
}

static Status refuse(Diag *d, const FileUse *use, const FileUse *read)
{
    const Place place = { .file = use->path, .byte = -1 };
    return send(message_new(d, SEVERITY_ERROR, USAGE, place, "%s%sis also %s: it is not replaced",
                            use->what ? use->what : "", use->what ? " " : "", read->what),
                use, read->path);
}

static Status refuse_both(Diag *d, const FileUse *use, const FileUse *first)
{
    const Place place = { .file = use->path, .byte = -1 };
    return send(message_new(d, SEVERITY_ERROR, USAGE, place, "%s%sis also where %s goes: one of them would be lost",
                            use->what ? use->what : "", use->what ? " " : "", first->what),
                use, first->path);
}

/* ---- the set ---- */

void file_set_open(FileSet *s, Arena *arena)
{
    *s = (FileSet){ .arena = arena };
    map_open(&s->by_place, arena);
    map_open(&s->made, arena);
}

void file_set_open_over(FileSet *s, Arena *arena, const FileSet *outer)
{
    file_set_open(s, arena);
    s->outer = outer;
}

/* What is read at a place, in the set or in those that it lies over. */
static const FileUse *read_at(const FileSet *s, const FilePlace *place)
{
    for (; s; s = s->outer) {
        const MapEntry *e = find_in(&s->by_place, place);
        if (e)
            return &s->reads[e->value.u];
    }
    return NULL;
}

static void add_read(FileSet *s, const char *path, const char *what, const FilePlace *place)
{
    if (place->name || read_at(s, place) || find_in(&s->made, place))
        return;
    GROW(s->arena, s->reads, s->n_reads, s->cap_reads);
    s->reads[s->n_reads] =
        (FileUse){ .path = arena_string(s->arena, path), .what = arena_string(s->arena, what), .place = *place };
    put_in(&s->by_place, place)->value.u = s->n_reads++;
}

void file_set_reads(FileSet *s, const char *path, const char *what)
{
    const FilePlace place = place_of(s->arena, path);
    const MapEntry *known = find_in(&s->by_place, &place);
    if (known)
        s->reads[known->value.u].what = arena_string(s->arena, what);
    else
        add_read(s, path, what, &place);
}

void file_set_reads_open(FileSet *s, const char *path, const char *what, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    const FilePlace place = place_there(&st);
    add_read(s, path, what, &place);
}

static Status check_use(const FileSet *s, Diag *d, const FileUse *use)
{
    const FileUse *read = read_at(s, &use->place);
    if (!read || (use->takes_folder && use->place.is_folder))
        return OK;
    return refuse(d, use, read);
}

static Status add_write(FileSet *s, Diag *d, const FileUse *use)
{
    TRY(check_use(s, d, use));
    for (size_t i = 0; i < s->n_writes; i++)
        if (same_place(&s->writes[i].place, &use->place) && !(use->what && strcmp(s->writes[i].what, use->what) == 0) &&
            !(s->writes[i].takes_folder && use->takes_folder))
            return refuse_both(d, use, &s->writes[i]);
    GROW(s->arena, s->writes, s->n_writes, s->cap_writes);
    s->writes[s->n_writes++] = *use;
    return OK;
}

Status file_set_writes(FileSet *s, Diag *d, const FileUse *use)
{
    FileUse known = *use;
    known.place = place_of(s->arena, use->path);
    return add_write(s, d, &known);
}

Status file_set_writes_open(FileSet *s, Diag *d, const FileUse *use, int fd)
{
    struct stat st;
    FileUse known = *use;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return OK;
    known.place = place_there(&st);
    return add_write(s, d, &known);
}

Status file_set_check(const FileSet *s, Diag *d)
{
    for (size_t i = 0; i < s->n_writes; i++)
        TRY(check_use(s, d, &s->writes[i]));
    return OK;
}

void file_set_join(FileSet *s, const FileSet *other)
{
    for (size_t i = 0; i < other->n_reads; i++)
        add_read(s, other->reads[i].path, other->reads[i].what, &other->reads[i].place);
}

/* ---- those who open and write ---- */

void file_is_read(Diag *d, const char *path, const char *what, int fd)
{
    if (d->files)
        file_set_reads_open(d->files, path, what, fd);
}

void file_is_made(Diag *d, int fd)
{
    struct stat st;
    if (!d->files || fstat(fd, &st) != 0)
        return;
    const FilePlace place = place_there(&st);
    if (!find_in(&d->files->made, &place))
        put_in(&d->files->made, &place);
}

Status file_may_write(Diag *d, const char *path)
{
    FileSet *s = d->files;
    if (!s)
        return OK;
    FileUse use = { .path = path, .place = place_of(s->arena, path) };
    for (size_t i = 0; i < s->n_writes; i++)
        if (strcmp(s->writes[i].path, path) == 0 || same_place(&s->writes[i].place, &use.place)) {
            use.what = s->writes[i].what;
            use.another = s->writes[i].another;
        }
    return check_use(s, d, &use);
}
