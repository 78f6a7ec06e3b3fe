#include "runtime/data/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

Status fault_set(Fault *f, Status status, const char *file, const char *format, ...)
{
    va_list args;
    *f = (Fault){ .status = status, .file = file };
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    return status;
}

Status fault_where(Fault *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->where, sizeof f->where, format, args);
    va_end(args);
    return f->status;
}

Status fault_send(const Fault *f, Diag *d)
{
    const Place place = { .file = f->file, .where = f->where[0] ? f->where : NULL, .byte = -1 };
    Message *m = message_new(d, SEVERITY_ERROR, f->status, place, "%s", f->text);
    if (f->instead)
        message_try(m, "%s", f->instead);
    return message_send(m);
}

Status bytes_open(Bytes *b, Diag *d, const char *path)
{
    *b = (Bytes){ .name = path, .fd = -1 };
    TRY(file_open(d, path, &b->fd, &b->file_size));
    b->size = b->file_size;
    return OK;
}

void bytes_close(void *bytes)
{
    Bytes *b = bytes;
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

Bytes bytes_of(const char *name, const void *p, uint64_t n)
{
    return (Bytes){ .name = name, .p = p, .fd = -1, .size = n };
}

Bytes bytes_part(const Bytes *b, uint64_t at, uint64_t n)
{
    Bytes part = *b;
    part.at = b->at + at;
    part.size = n;
    return part;
}

static Status read_file(const Bytes *b, Fault *f, uint64_t offset, void *out, size_t n)
{
    struct stat st;
    size_t done;
    char text[128];
    if (fstat(b->fd, &st) == 0 && (uint64_t)st.st_size != b->file_size)
        return fault_set(f, IO, b->name, "has changed: %" PRIu64 " bytes, %" PRIu64 " when it was opened",
                         (uint64_t)st.st_size, b->file_size);
    const int error = file_pread(b->fd, offset, out, n, &done);
    if (error)
        return fault_set(f, IO, b->name, "cannot be read: %s", strerror_r(error, text, sizeof text));
    return done == n ? OK : fault_set(f, IO, b->name, "ends at byte %" PRIu64, offset + done);
}

Status bytes_read(const Bytes *b, Fault *f, uint64_t offset, void *out, size_t n)
{
    if (offset > b->size || n > b->size - offset)
        return fault_set(f, INVALID, b->name, "ends at byte %" PRIu64 ": %zu bytes more are wanted", b->at + b->size,
                         (size_t)(n - (offset > b->size ? 0 : b->size - offset)));
    if (!b->p)
        return n ? read_file(b, f, b->at + offset, out, n) : OK;
    if (n)
        memcpy(out, b->p + b->at + offset, n);
    return OK;
}

Status bytes_get(const Bytes *b, Diag *d, uint64_t offset, void *out, size_t n)
{
    Fault f = { 0 };
    return bytes_read(b, &f, offset, out, n) == OK ? OK : fault_send(&f, d);
}
