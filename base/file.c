#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Place of_file(const char *path)
{
    return (Place){ .file = path, .byte = -1 };
}

static Status io_error(Diag *diag, const char *path, const char *what, int error)
{
    char text[128];
    return fail_as(diag, IO, of_file(path), "%s: %s", what, strerror_r(error, text, sizeof text));
}

static Status read_all(Diag *diag, const char *path, int fd, uint64_t offset, char *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        const size_t step = n - done < (size_t)1 << 30 ? n - done : (size_t)1 << 30;
        const ssize_t got = pread(fd, out + done, step, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return io_error(diag, path, "cannot be read", errno);
        if (got == 0)
            return fail_as(diag, IO, of_file(path), "ends at byte %" PRIu64 ", %zu bytes more are wanted",
                           offset + done, n - done);
        done += (size_t)got;
    }
    return OK;
}

static Status open_regular(Diag *diag, const char *path, int *fd, uint64_t *size)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return io_error(diag, path, "cannot be opened", errno);
    if (fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(*fd);
        return fail_as(diag, IO, of_file(path), "is not a regular file");
    }
    *size = (uint64_t)st.st_size;
    return OK;
}

static void close_descriptor(void *thing)
{
    close(*(int *)thing);
}

Status file_read(Arena *arena, Diag *diag, const char *path, int64_t limit, const char *limit_name, Str *bytes)
{
    Cleanup cleanup;
    uint64_t size;
    int fd;
    TRY(open_regular(diag, path, &fd, &size));
    cleanup_push(arena->memory, &cleanup, close_descriptor, &fd);
    Status status = OK;
    if (size > (uint64_t)limit) {
        status =
            fail(diag, of_file(path), "%" PRIu64 " bytes, more than %" PRId64 " (limit %s)", size, limit, limit_name);
    } else {
        char *text = arena_alloc(arena, (size_t)size + 1);
        status = read_all(diag, path, fd, 0, text, (size_t)size);
        *bytes = (Str){ text, (size_t)size };
    }
    cleanup_drop(&cleanup);
    close(fd);
    return status;
}

Status file_read_at(Diag *diag, const char *path, uint64_t size, uint64_t offset, void *out, size_t n)
{
    uint64_t now;
    int fd;
    TRY(open_regular(diag, path, &fd, &now));
    const Status status = now == size
                              ? read_all(diag, path, fd, offset, out, n)
                              : fail_as(diag, IO, of_file(path),
                                        "has changed: %" PRIu64 " bytes, %" PRIu64 " when it was opened", now, size);
    close(fd);
    return status;
}

Status file_size(Diag *diag, const char *path, uint64_t *size)
{
    int fd;
    TRY(open_regular(diag, path, &fd, size));
    close(fd);
    return OK;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void undo(void *thing)
{
    FileOut *f = thing;
    close(f->fd);
    unlink(f->temporary);
}

Status file_create(FileOut *f, Arena *arena, Diag *diag, const char *path)
{
    *f = (FileOut){ .diag = diag, .path = path, .fd = -1 };
    for (int i = 0; f->fd < 0; i++) {
        f->temporary = arena_printf(arena, "%s.%ld.%d", path, (long)getpid(), i);
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd < 0 && errno != EEXIST)
            return io_error(diag, path, "cannot be written", errno);
    }
    cleanup_push(arena->memory, &f->cleanup, undo, f);
    return OK;
}

Status file_write(FileOut *f, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = write(f->fd, (const char *)bytes + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return io_error(f->diag, f->path, "cannot be written", errno);
        done += (size_t)got;
    }
    return OK;
}

Status file_keep(FileOut *f)
{
    if (fsync(f->fd) != 0 || rename(f->temporary, f->path) != 0) {
        const Status status = io_error(f->diag, f->path, "cannot be written", errno);
        file_drop(f);
        return status;
    }
    cleanup_drop(&f->cleanup);
    close(f->fd);
    return OK;
}

void file_drop(FileOut *f)
{
    cleanup_drop(&f->cleanup);
    undo(f);
}
