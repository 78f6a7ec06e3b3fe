#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file_set.h"
#include "base/leftovers.h"

static Place of_file(const char *path)
{
    return (Place){ .file = path, .byte = -1 };
}

Status file_failed(Diag *diag, const char *path, const char *what, int error)
{
    char text[128];
    return fail_as(diag, IO, of_file(path), "%s: %s", what, strerror_r(error, text, sizeof text));
}

int file_pread(int fd, uint64_t offset, void *out, size_t n, size_t *done)
{
    for (*done = 0; *done < n;) {
        const size_t step = n - *done < (size_t)1 << 30 ? n - *done : (size_t)1 << 30;
        const ssize_t got = pread(fd, (char *)out + *done, step, (off_t)(offset + *done));
        if (got < 0 && errno != EINTR)
            return errno;
        if (got == 0)
            return 0;
        *done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static Status read_all(Diag *diag, const char *path, int fd, uint64_t offset, char *out, size_t n)
{
    size_t done;
    const int error = file_pread(fd, offset, out, n, &done);
    if (error)
        return file_failed(diag, path, "cannot be read", error);
    if (done < n)
        return fail_as(diag, IO, of_file(path), "ends at byte %" PRIu64 ", %zu bytes more are wanted", offset + done,
                       n - done);
    return OK;
}

static void close_descriptor(void *thing)
{
    close(*(int *)thing);
}

static void note_open(Diag *diag, const char *path, int *fd)
{
    Cleanup cleanup;
    if (!diag->files)
        return;
    cleanup_push(diag->files->arena->memory, &cleanup, close_descriptor, fd);
    file_is_read(diag, path, "a file that is read", *fd);
    cleanup_drop(&cleanup);
}

Status file_open(Diag *diag, const char *path, int *fd, uint64_t *size)
{
    struct stat st;
    do
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0)
        return file_failed(diag, path, "cannot be opened", errno);
    if (fstat(*fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(*fd);
        *fd = -1;
        return fail_as(diag, IO, of_file(path), "is not a regular file");
    }
    note_open(diag, path, fd);
    *size = (uint64_t)st.st_size;
    return OK;
}

Status file_read(Arena *arena, Diag *diag, const char *path, int64_t limit, const char *limit_name, Str *bytes)
{
    Cleanup cleanup;
    uint64_t size;
    int fd;
    TRY(file_open(diag, path, &fd, &size));
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
    TRY(file_open(diag, path, &fd, &now));
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
    TRY(file_open(diag, path, &fd, size));
    close(fd);
    return OK;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_absent(const char *path)
{
    return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static void close_both(FileOut *f)
{
    f->disk->close(f->disk, f->fd);
    if (f->back >= 0)
        f->disk->close(f->disk, f->back);
}

static void undo(void *thing)
{
    FileOut *f = thing;
    close_both(f);
    f->disk->remove(f->disk, f->temporary);
}

static Status cannot_write(const FileOut *f, int error)
{
    return file_failed(f->diag, f->path, "cannot be written", error);
}

const char *file_folder(Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/" : arena_copy(arena, path, (size_t)(slash - path));
}

const char *file_in(Arena *arena, const char *folder, const char *name)
{
    const size_t n = strlen(folder);
    return arena_printf(arena, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", name);
}

Status file_create_on(FileOut *f, const Disk *disk, Arena *arena, Diag *diag, const char *path)
{
    struct rlimit limit;
    TRY(file_may_write(diag, path));
    *f = (FileOut){ .diag = diag, .disk = disk, .path = path, .fd = -1, .back = -1, .most = UINT64_MAX };
    f->folder = file_folder(arena, path);
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        f->most = limit.rlim_cur; /* past it the process would get a signal */
    leftovers_clear_of(disk, arena, path);
    for (int i = 0; f->fd < 0; i++) {
        f->temporary = arena_printf(arena, "%s.tmp-%ld-%d", path, (long)getpid(), i);
        f->fd = disk->create(disk, f->temporary);
        if (f->fd < 0 && errno != EEXIST)
            return cannot_write(f, errno);
    }
    cleanup_push(arena->memory, &f->cleanup, undo, f);
    return OK;
}

Status file_create(FileOut *f, Arena *arena, Diag *diag, const char *path)
{
    return file_create_on(f, &disk_real, arena, diag, path);
}

Status file_reserve(FileOut *f, uint64_t bytes)
{
    char text[128];
    const int error = bytes > f->most ? EFBIG : f->disk->reserve(f->disk, f->fd, bytes) != 0 ? errno : 0;
    if (!error)
        return OK;
    return fail_as(f->diag, IO, of_file(f->path), "cannot be written: %s: %" PRIu64 " bytes wanted",
                   strerror_r(error, text, sizeof text), bytes);
}

Status file_write(FileOut *f, const void *bytes, size_t n)
{
    if (n > f->most || f->at > f->most - n)
        return cannot_write(f, EFBIG);
    for (size_t done = 0; done < n;) {
        const ssize_t got = f->disk->write(f->disk, f->fd, (const char *)bytes + done, n - done, f->at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return cannot_write(f, got < 0 ? errno : ENOSPC);
        done += (size_t)got;
        f->at += (uint64_t)got;
    }
    return OK;
}

Status file_sync(FileOut *f)
{
    const Disk *d = f->disk;
    if (d->sync(d, f->fd) != 0 || (f->back = d->open(d, f->temporary)) < 0)
        return cannot_write(f, errno);
    return OK;
}

Status file_read_back(const FileOut *f, uint64_t offset, void *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = f->disk->read(f->disk, f->back, (char *)out + done, n - done, offset + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return file_failed(f->diag, f->path, "cannot be read back", got < 0 ? errno : EIO);
        done += (size_t)got;
    }
    return OK;
}

ssize_t file_write_quietly(int fd, const void *bytes, size_t n)
{
    const struct timespec now = { 0, 0 };
    sigset_t ours, before, pending;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    const ssize_t got = write(fd, bytes, n);
    const int error = errno;
    const int raised = got >= 0 ? 0 : error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    if (raised && !sigismember(&pending, raised)) {
        sigemptyset(&ours);
        sigaddset(&ours, raised);
        while (sigtimedwait(&ours, NULL, &now) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return got;
}

int file_above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
    close(fd);
    errno = error;
    return above;
}

void file_drop(FileOut *f)
{
    cleanup_drop(&f->cleanup);
    undo(f);
}

Status file_keep_as(FileOut *f, const char *path, bool replace, bool *taken)
{
    const Disk *d = f->disk;
    const Status status = file_may_write(f->diag, path); /* more is known to be read than when it was begun */
    *taken = false;
    if (status != OK) {
        file_drop(f);
        return status;
    }
    if ((f->back < 0 && d->sync(d, f->fd) != 0) || d->rename(d, f->temporary, path, replace) != 0) {
        const int error = errno;
        *taken = error == EEXIST && !replace;
        if (*taken)
            return OK;
        file_drop(f);
        return cannot_write(f, error);
    }
    f->named = true;
    file_is_made(f->diag, f->fd);
    cleanup_drop(&f->cleanup);
    close_both(f);
    return d->sync_folder(d, f->folder) == 0 ? OK : cannot_write(f, errno);
}

Status file_keep(FileOut *f)
{
    bool taken;
    return file_keep_as(f, f->path, true, &taken);
}
