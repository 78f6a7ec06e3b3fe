#include "support/crashes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- recording ---- */

static Recorder *recorder_of(const Disk *d)
{
    return d->user;
}

static DiskCall *record(const Disk *d, CallKind kind, int fd)
{
    Recorder *r = recorder_of(d);
    if (r->n == MOST_CALLS || fd >= MOST_FILES)
        abort();
    DiskCall *op = &r->list[r->n++];
    *op = (DiskCall){ .kind = kind, .inode = fd >= 0 ? r->inode_of[fd] : -1 };
    return op;
}

static const char *name_in(const Disk *d, const char *path)
{
    const char *slash = strrchr(path, '/');
    return arena_string(recorder_of(d)->arena, slash ? slash + 1 : path);
}

static int rec_create(const Disk *d, const char *path)
{
    Recorder *r = recorder_of(d);
    const int fd = disk_real.create(d, path);
    if (fd < 0)
        return fd;
    r->inode_of[fd] = r->n_inodes++;
    record(d, CALL_CREATE, fd)->to = name_in(d, path);
    return fd;
}

static int rec_open(const Disk *d, const char *path)
{
    const int fd = disk_real.open(d, path);
    if (fd >= 0)
        recorder_of(d)->inode_of[fd] = -1;
    return fd;
}

static int rec_reserve(const Disk *d, int fd, uint64_t bytes)
{
    record(d, CALL_RESERVE, fd)->offset = bytes;
    return disk_real.reserve(d, fd, bytes);
}

static ssize_t rec_write(const Disk *d, int fd, const void *bytes, size_t n, uint64_t offset)
{
    DiskCall *op = record(d, CALL_WRITE, fd);
    op->bytes = arena_copy(recorder_of(d)->arena, bytes, n);
    op->n = n;
    op->offset = offset;
    return disk_real.write(d, fd, bytes, n, offset);
}

static int rec_sync(const Disk *d, int fd)
{
    record(d, CALL_SYNC, fd);
    return 0;
}

static int rec_rename(const Disk *d, const char *from, const char *to, bool replace)
{
    const int answer = disk_real.rename(d, from, to, replace);
    if (answer == 0) {
        DiskCall *op = record(d, CALL_RENAME, -1);
        op->from = name_in(d, from);
        op->to = name_in(d, to);
    }
    return answer;
}

static int rec_remove(const Disk *d, const char *path)
{
    record(d, CALL_REMOVE, -1)->to = name_in(d, path);
    return disk_real.remove(d, path);
}

static int rec_point(const Disk *d, const char *target, const char *path)
{
    DiskCall *op = record(d, CALL_POINT, -1);
    op->from = arena_string(recorder_of(d)->arena, target);
    op->to = name_in(d, path);
    return disk_real.point(d, target, path);
}

static int rec_sync_folder(const Disk *d, const char *path)
{
    (void)path;
    record(d, CALL_SYNC_FOLDER, -1);
    return 0;
}

void recorder_open(Recorder *r, Arena *arena)
{
    *r = (Recorder){ .disk = disk_real, .arena = arena };
    r->disk.user = r;
    r->disk.create = rec_create;
    r->disk.open = rec_open;
    r->disk.reserve = rec_reserve;
    r->disk.write = rec_write;
    r->disk.sync = rec_sync;
    r->disk.rename = rec_rename;
    r->disk.remove = rec_remove;
    r->disk.point = rec_point;
    r->disk.sync_folder = rec_sync_folder;
}

/* ---- one state ---- */

typedef struct Content {
    char *bytes;
    size_t n;
} Content;

typedef struct Name {
    const char *name, *link; /* a link, or */
    int content;
} Name;

typedef struct State {
    Name names[MOST_FILES];
    int n_names;
    Content contents[MOST_FILES];
} State;

static Name *find(State *s, const char *name)
{
    for (int i = 0; i < s->n_names; i++)
        if (strcmp(s->names[i].name, name) == 0)
            return &s->names[i];
    return NULL;
}

static void forget(State *s, const char *name)
{
    Name *n = find(s, name);
    if (n)
        *n = s->names[--s->n_names];
}

static void change_names(State *s, const DiskCall *op, int n_before)
{
    Name new = { op->to, NULL, n_before + op->inode };
    if (op->kind == CALL_REMOVE) {
        forget(s, op->to);
        return;
    }
    if (op->kind == CALL_POINT)
        new.link = op->from;
    if (op->kind == CALL_RENAME) {
        const Name *from = find(s, op->from);
        if (!from)
            return;
        new = *from;
        new.name = op->to;
        forget(s, op->from);
    }
    forget(s, op->to);
    s->names[s->n_names++] = new;
}

static void grow(Arena *arena, Content *c, size_t n)
{
    if (n <= c->n)
        return;
    char *bytes = arena_alloc(arena, n);
    if (c->n)
        memcpy(bytes, c->bytes, c->n);
    *c = (Content){ bytes, n };
}

static void change_bytes(Arena *arena, Content *c, const DiskCall *op, size_t begin, size_t end)
{
    if (op->kind == CALL_RESERVE) {
        grow(arena, c, op->offset);
    } else if (begin < end) {
        grow(arena, c, op->offset + end);
        memcpy(c->bytes + op->offset + begin, op->bytes + begin, end - begin);
    }
}

static bool names_op(const DiskCall *op)
{
    return op->kind == CALL_CREATE || op->kind == CALL_RENAME || op->kind == CALL_REMOVE || op->kind == CALL_POINT;
}

static bool bytes_op(const DiskCall *op)
{
    return op->kind == CALL_RESERVE || op->kind == CALL_WRITE;
}

/* Whether what the op did is on the disk for certain after `calls` calls. */
static bool certain(const Recorder *r, int i, int calls, bool lying)
{
    for (int k = i + 1; k < calls && !lying; k++) {
        if (names_op(&r->list[i]) && r->list[k].kind == CALL_SYNC_FOLDER)
            return true;
        if (bytes_op(&r->list[i]) && r->list[k].kind == CALL_SYNC && r->list[k].inode == r->list[i].inode)
            return true;
    }
    return false;
}

/* ---- all states ---- */

typedef struct Replay {
    const Recorder *r;
    Arena *arena;
    const Before *before;
    int n_before, calls;
    const char *folder;
    int loose_names[MOST_CALLS], n_loose_names, loose_bytes[MOST_CALLS], n_loose_bytes;
    bool lying;
} Replay;

static void clear(const char *folder)
{
    char path[512];
    DIR *d = opendir(folder);
    for (const struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    closedir(d);
}

static void lay_out(const Replay *p, const State *s)
{
    char path[512];
    clear(p->folder);
    for (int i = 0; i < s->n_names; i++) {
        const Name *n = &s->names[i];
        snprintf(path, sizeof path, "%s/%s", p->folder, n->name);
        if (n->link) {
            if (symlink(n->link, path) != 0)
                abort();
            continue;
        }
        const Content *c = &s->contents[n->content];
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd < 0 || (c->n && write(fd, c->bytes, c->n) != (ssize_t)c->n))
            abort();
        close(fd);
    }
}

static bool in(const int *list, int n, int i, uint64_t mask)
{
    for (int k = 0; k < n; k++)
        if (list[k] == i)
            return mask >> k & 1;
    return true;
}

/* The state in which of the loose names and bytes those of the masks are there; the write `torn` only from `begin` to
 * `end`. */
static void make_state(const Replay *p, State *s, uint64_t names, uint64_t bytes, int torn, size_t begin, size_t end)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < p->n_before; i++) {
        s->contents[i] = (Content){ (char *)(uintptr_t)p->before[i].bytes, p->before[i].n };
        s->names[s->n_names++] = (Name){ p->before[i].name, p->before[i].link, i };
    }
    for (int i = 0; i < p->calls; i++) {
        const DiskCall *op = &p->r->list[i];
        if (names_op(op) && in(p->loose_names, p->n_loose_names, i, names))
            change_names(s, op, p->n_before);
        else if (bytes_op(op) && i == torn)
            change_bytes(p->arena, &s->contents[p->n_before + op->inode], op, begin, end);
        else if (bytes_op(op) && in(p->loose_bytes, p->n_loose_bytes, i, bytes))
            change_bytes(p->arena, &s->contents[p->n_before + op->inode], op, 0, op->n);
    }
}

static void find_loose(Replay *p)
{
    p->n_loose_names = p->n_loose_bytes = 0;
    for (int i = 0; i < p->calls; i++) {
        const DiskCall *op = &p->r->list[i];
        if (names_op(op) && !certain(p->r, i, p->calls, p->lying))
            p->loose_names[p->n_loose_names++] = i;
        if (bytes_op(op) && !certain(p->r, i, p->calls, p->lying))
            p->loose_bytes[p->n_loose_bytes++] = i;
    }
    if (p->n_loose_names > 10 || p->n_loose_bytes > 10)
        abort(); /* more states than one waits for */
}

static int each_tear(const Replay *p, State *s, uint64_t names, void (*look)(void *user, int calls), void *user)
{
    int n = 0;
    for (int k = 0; k < p->n_loose_bytes; k++) {
        const DiskCall *op = &p->r->list[p->loose_bytes[k]];
        for (size_t at = 512; op->kind == CALL_WRITE && at < op->n; at += 512) {
            make_state(p, s, names, UINT64_MAX, p->loose_bytes[k], 0, at);
            lay_out(p, s);
            look(user, p->calls);
            make_state(p, s, names, UINT64_MAX, p->loose_bytes[k], at, op->n);
            lay_out(p, s);
            look(user, p->calls);
            n += 2;
        }
    }
    return n;
}

int crashes_replay(const Recorder *r, const Before *before, int n_before, const char *folder, bool lying,
                   void (*look)(void *user, int calls), void *user)
{
    Arena scratch;
    arena_open(&scratch, r->arena->memory);
    Replay p = { .r = r, .arena = &scratch, .before = before, .n_before = n_before, .folder = folder, .lying = lying };
    State *s = NEW(&scratch, State);
    int n = 0;
    for (p.calls = 0; p.calls <= r->n; p.calls++) {
        find_loose(&p);
        for (uint64_t names = 0; names < (uint64_t)1 << p.n_loose_names; names++) {
            const ArenaMark mark = arena_mark(&scratch);
            for (uint64_t bytes = 0; bytes < (uint64_t)1 << p.n_loose_bytes; bytes++, n++) {
                make_state(&p, s, names, bytes, -1, 0, 0);
                lay_out(&p, s);
                look(user, p.calls);
            }
            n += each_tear(&p, s, names, look, user);
            arena_reset(&scratch, mark);
        }
    }
    clear(folder);
    arena_close(&scratch);
    return n;
}
