#include "api/hall/out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/hall/words.h"
#include "frontends/onnx/file/references.h"

qcc_source qcc_file(const char *path)
{
    return (qcc_source){ .path = path };
}

qcc_source qcc_bytes(const void *bytes, size_t n)
{
    return (qcc_source){ .bytes = bytes, .size = n };
}

qcc_sink qcc_to_file(const char *path)
{
    return (qcc_sink){ .path = path };
}

static Status cannot_write(Out *o, int error)
{
    char text[128];
    const char *path = !o->to.path ? "output" : strcmp(o->to.path, "-") == 0 ? "standard output" : o->to.path;
    return fail_as(&o->cx->diag, IO, (Place){ .file = path, .byte = -1 }, "cannot be written: %s",
                   strerror_r(error, text, sizeof text));
}

static void close_stream(void *thing)
{
    Out *o = thing;
    if (o->fd > STDOUT_FILENO)
        close(o->fd);
}

Status out_open(Out *o, qcc_context *cx, const qcc_sink *sink)
{
    struct stat s;
    *o = (Out){ .cx = cx, .to = *sink, .fd = -1 };
    o->cleanup.next = o->cleanup.prev = &o->cleanup;
    if (!sink->path || (sink->write && strcmp(sink->path, "-") == 0))
        return sink->write ? OK : fail_as(&cx->diag, USAGE, NOWHERE, "a sink without path and function");
    if (strcmp(sink->path, "-") == 0) {
        o->fd = STDOUT_FILENO;
        return OK;
    }
    if (stat(sink->path, &s) == 0 && !S_ISREG(s.st_mode)) {
        o->fd = file_above_standard(open(sink->path, O_WRONLY | O_CLOEXEC));
        if (o->fd < 0)
            return cannot_write(o, errno);
        cleanup_push(&cx->memory, &o->cleanup, close_stream, o);
        return OK;
    }
    o->is_file = true;
    return file_create(&o->file, &cx->scratch, &cx->diag, sink->path);
}

/* 0 or an errno. */
static int write_stream(const Out *o, const char *bytes, size_t n)
{
    while (n) {
        const ssize_t got = file_write_quietly(o->fd, bytes, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : ENOSPC;
        bytes += got;
        n -= (size_t)got;
    }
    return 0;
}

/* The same by the host's function, which may leave an errno that says why it failed. */
static int write_sink(const Out *o, const void *bytes, size_t n)
{
    errno = 0;
    return o->to.write(o->to.user, bytes, n) == QCC_OK ? 0 : errno ? errno : EIO;
}

static Status lost(Out *o, int error)
{
    o->lost = error;
    if (o->if_lost == OUT_GOES_ON)
        return OK;
    return o->if_lost == OUT_ENDS && error == EPIPE && o->to.write ? IO : cannot_write(o, error);
}

/* ---- results as objects ---- */

static Status raw_bytes(Out *o, const void *bytes, size_t n);

void out_speak_json(Out *o)
{
    o->as_json = true;
    text_open(&o->words, &o->cx->scratch);
}

Status out_objects(Out *o, const Text *lines)
{
    return lines->n ? raw_bytes(o, lines->p, lines->n) : OK;
}

Status out_event(Out *o, const char *event, const LogExtra *fields, size_t n)
{
    Text line;
    if (!o->as_json)
        return OK;
    text_open(&line, &o->cx->scratch);
    log_any_line(&line, event, fields, n);
    return out_objects(o, &line);
}

/* Lines of words: -q leaves them out. */
static Status wrap_words(Out *o, const char *bytes, size_t n)
{
    for (const char *end; n && (end = memchr(bytes, '\n', n));) {
        const size_t length = (size_t)(end - bytes);
        text_bytes(&o->words, bytes, length);
        const LogExtra text = { "text", logged_text(text_get(&o->words)) };
        if (o->words.n && o->cx->verbosity >= 0)
            TRY(out_event(o, "text", &text, 1));
        text_open(&o->words, &o->cx->scratch);
        bytes = end + 1;
        n -= length + 1;
    }
    if (n)
        text_bytes(&o->words, bytes, n);
    return OK;
}

Status out_bytes(Out *o, const void *bytes, size_t n)
{
    return o->as_json ? wrap_words(o, bytes, n) : raw_bytes(o, bytes, n);
}

static Status raw_bytes(Out *o, const void *bytes, size_t n)
{
    memory_poll(&o->cx->memory);
    o->bytes += n;
    if (o->is_file)
        return file_write(&o->file, bytes, n);
    if (o->lost)
        return o->if_lost == OUT_GOES_ON ? OK : IO;
    const int error = o->fd >= 0 ? write_stream(o, bytes, n) : write_sink(o, bytes, n);
    return error ? lost(o, error) : OK;
}

Status out_printf(Out *o, const char *format, ...)
{
    const ArenaMark mark = arena_mark(&o->cx->scratch);
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(&o->cx->scratch, format, args);
    va_end(args);
    const Status status = out_bytes(o, text, strlen(text));
    if (status == OK && !o->as_json) /* words of a line that is not whole stay */
        arena_reset(&o->cx->scratch, mark);
    return status;
}

static Status keep(Out *o)
{
    return o->is_model ? weight_file_keep(&o->weight_file, &o->file) : file_keep(&o->file);
}

Status out_close(Out *o, Status status)
{
    if (o->as_json && o->words.n)
        (void)wrap_words(o, "\n", 1);
    if (status == OK && o->cx->diag.n_errors) /* something was not read: what was written is not the whole */
        status = o->cx->diag.first;
    if (o->is_file && (status == OK || status == MISMATCH)) {
        const Status kept = keep(o);
        return kept == OK ? status : kept;
    }
    if (o->is_file) {
        file_drop(&o->file);
        if (o->is_model)
            weight_file_drop(&o->weight_file);
        return status;
    }
    if (o->fd > STDOUT_FILENO) {
        cleanup_drop(&o->cleanup);
        close(o->fd);
    }
    if (!o->lost || o->if_lost != OUT_GOES_ON)
        return status;
    const Status said = cannot_write(o, o->lost);
    return status == OK ? said : status;
}

WeightFile *out_weight_file(Out *o)
{
    if (!o->is_file)
        return NULL;
    if (!o->is_model)
        weight_file_open(&o->weight_file, &o->cx->scratch, &o->cx->diag, &o->cx->limits, o->file.disk, o->to.path);
    o->is_model = true;
    return &o->weight_file;
}

/* Files that a model which was written reads, its own data apart. */
typedef struct Others {
    const Out *o;
    Map seen;
    Text text;
    uint64_t bytes;
} Others;

static void see_other(void *user, const char *location)
{
    Others *x = user;
    bool fresh;
    struct stat s;
    Arena *arena = &x->o->cx->scratch;
    map_put(&x->seen, arena_string(arena, location), &fresh);
    if (!fresh || (x->o->weight_file.kept && strcmp(location, x->o->weight_file.name) == 0))
        return;
    const char *path = arena_printf(arena, "%s/%s", file_folder(arena, x->o->to.path), location);
    if (stat(path, &s) != 0 || s.st_size < 0)
        return;
    x->bytes += (uint64_t)s.st_size;
    text_printf(&x->text, "%s%s (%s)", x->text.n ? ", " : "", location, bytes_text(arena, (uint64_t)s.st_size));
}

const char *out_others(const Out *o)
{
    Others x = { .o = o };
    qcc_context *cx = o->cx;
    if (!o->is_model)
        return NULL;
    map_open(&x.seen, &cx->scratch);
    text_open(&x.text, &cx->scratch);
    if (refers_each(&cx->memory, &cx->limits, o->to.path, see_other, &x) != OK || !x.text.n)
        return NULL;
    const uint64_t all = o->bytes + (o->weight_file.kept ? o->weight_file.at : 0) + x.bytes;
    return arena_printf(&cx->scratch, "reads %s: %s in all", text_get(&x.text), bytes_text(&cx->scratch, all));
}

const char *out_told(const Out *o)
{
    Arena *arena = &o->cx->scratch;
    const char *told = arena_printf(arena, "%s (%s)", o->to.path, bytes_text(arena, o->bytes)), *others = out_others(o);
    if (o->is_model && o->weight_file.kept)
        told = arena_printf(arena, "%s and %s (%s)", told, o->weight_file.path, bytes_text(arena, o->weight_file.at));
    return others ? arena_printf(arena, "%s; it %s", told, others) : told;
}

static Status put(void *user, const void *bytes, size_t n)
{
    return out_bytes(user, bytes, n);
}

Sink out_sink(Out *o)
{
    return (Sink){ put, o };
}
