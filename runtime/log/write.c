#include "runtime/log/write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_set.h"
#include "ir/store/json_text.h"
#include "ir/store/json_text.h"

enum { CHUNK = 1 << 16, LONGEST_LINE = 1 << 20 };

static Status lost(Log *l, int error)
{
    char text[128];
    l->lost = l->goes_on;
    if (!l->goes_on)
        return file_failed(l->diag, l->path, "cannot be written", error);
    return warn(l->diag, (Place){ .file = l->path, .byte = -1 }, "cannot be written: %s: the run goes on without it",
                strerror_r(error, text, sizeof text));
}

void log_go_on(Log *l)
{
    l->goes_on = true;
}

Status log_write(Log *l, const char *line, size_t n)
{
    if (l->lost)
        return OK;
    const off_t before = lseek(l->fd, 0, SEEK_END);
    for (size_t done = 0; done < n;) {
        const ssize_t got = file_write_quietly(l->fd, line + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            const int error = got < 0 ? errno : ENOSPC;
            if (before >= 0 && done && ftruncate(l->fd, before) != 0) { /* then it is repaired by log_resume */
            }
            return lost(l, error);
        }
        done += (size_t)got;
    }
    return OK;
}

/* ---- what is there already ---- */

typedef struct Scan {
    Log *l;
    int64_t step;  /* of the checkpoint; lines of later ones go */
    Text line;     /* the beginning of a line that is not complete */
    uint64_t at;   /* where that line begins */
    uint64_t end;  /* what stays */
    bool any, cut; /* a line was seen; a later step was */
} Scan;

static Status foreign(const Log *l)
{
    Message *m = message_new(l->diag, SEVERITY_ERROR, USAGE, (Place){ .file = l->path, .byte = -1 },
                             "is there, and is no log of qcc");
    message_try(m, "--log another name");
    return message_send(m);
}

/* Whether the first line begins a log of ours, and at which step a line stands. */
static Status see_line(Scan *s)
{
    json_error_t error;
    json_t *o = json_text(s->l->arena.memory, s->line.p, s->line.n, 0, &error);
    const json_t *step = json_object_get(o, "step");
    const char *event = json_string_value(json_object_get(o, "event"));
    const bool begins = event && strcmp(event, "start") == 0 && json_is_integer(json_object_get(o, "schema"));
    if (json_is_integer(step) && json_integer_value(step) > s->step)
        s->cut = true;
    json_decref(o);
    if (!s->any && !begins)
        return foreign(s->l);
    s->any = true;
    return OK;
}

static Status see_chunk(Scan *s, const char *p, size_t n)
{
    while (n && !s->cut) {
        const char *newline = memchr(p, '\n', n);
        const size_t part = newline ? (size_t)(newline - p) + 1 : n;
        if (s->line.n + part > LONGEST_LINE)
            return foreign(s->l);
        text_bytes(&s->line, p, part);
        p += part;
        n -= part;
        if (!newline)
            break;
        TRY(see_line(s));
        s->at += s->line.n;
        s->line.n = 0;
        if (!s->cut)
            s->end = s->at;
    }
    return OK;
}

static Status scan(Scan *s, uint64_t size)
{
    char *chunk = arena_alloc(&s->l->arena, CHUNK);
    text_open(&s->line, &s->l->arena);
    for (uint64_t at = 0; at < size && !s->cut;) {
        const ssize_t got = pread(s->l->fd, chunk, CHUNK, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return file_failed(s->l->diag, s->l->path, "cannot be read", got < 0 ? errno : EIO);
        TRY(see_chunk(s, chunk, (size_t)got));
        at += (uint64_t)got;
    }
    return OK;
}

/* Cuts what does not stay; a pipe or a terminal keeps all. */
static Status cut(Log *l, int64_t step)
{
    struct stat st;
    Scan s = { .l = l, .step = step };
    if (fstat(l->fd, &st) != 0)
        return file_failed(l->diag, l->path, "cannot be read", errno);
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return OK;
    const ArenaMark mark = arena_mark(&l->arena);
    TRY(scan(&s, (uint64_t)st.st_size));
    if (!s.any && s.line.n && s.line.p[0] != '{')
        return foreign(l);
    if (s.end < (uint64_t)st.st_size && ftruncate(l->fd, (off_t)s.end) != 0)
        return file_failed(l->diag, l->path, "cannot be written", errno);
    arena_reset(&l->arena, mark);
    return OK;
}

static void undo(void *thing)
{
    Log *l = thing;
    close(l->fd);
}

/* A file is read too, since lines may have to go from it.  What is no file is only written to: whoever reads a named pipe
 * must be the only reader, or nobody would notice that he has left. */
static int open_path(const char *path)
{
    struct stat st;
    const bool file = stat(path, &st) != 0 || S_ISREG(st.st_mode);
    int fd = file ? open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (!file || (fd < 0 && errno == EACCES))
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return file_above_standard(fd);
}

static Status open_log(Log *l, Memory *memory, Diag *diag, const char *path, int64_t step)
{
    Cleanup cleanup;
    *l = (Log){ 0 };
    TRY(file_may_write(diag, path));
    *l = (Log){ .diag = diag, .path = path };
    arena_open(&l->arena, memory);
    l->fd = open_path(path);
    Status status = OK;
    if (l->fd < 0) {
        status = file_failed(diag, path, "cannot be written", errno);
    } else {
        cleanup_push(memory, &cleanup, undo, l);
        status = cut(l, step);
        cleanup_drop(&cleanup);
        if (status != OK)
            close(l->fd);
    }
    if (status == OK)
        arena_keep(&l->arena);
    else
        arena_close(&l->arena);
    if (status != OK)
        *l = (Log){ 0 };
    return status;
}

Status log_resume(Log *l, Memory *memory, Diag *diag, const char *path, int64_t step)
{
    return open_log(l, memory, diag, path, step);
}

Status log_open(Log *l, Memory *memory, Diag *diag, const char *path)
{
    struct stat st;
    TRY(open_log(l, memory, diag, path, INT64_MIN));
    if (fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(l->fd, 0) != 0) {
        const Status status = file_failed(diag, path, "cannot be written", errno);
        log_close(l);
        return status;
    }
    return OK;
}

void log_close(Log *l)
{
    if (!l || !l->path)
        return;
    close(l->fd);
    arena_close(&l->arena);
    *l = (Log){ 0 };
}
