#include "base/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_set.h"

static Status taken(Diag *diag, int fd, const char *path)
{
    char text[32] = "";
    long pid = 0;
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    if (n <= 0 || sscanf(text, "%ld", &pid) != 1)
        return fail_as(diag, IO, (Place){ .file = path, .byte = -1 }, "another process is writing to this folder");
    return fail_as(diag, IO, (Place){ .file = path, .byte = -1 }, "process %ld is writing to this folder", pid);
}

Status file_lock(FileLock *lock, Diag *diag, const char *path)
{
    char text[32];
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    *lock = (FileLock){ .fd = -1 };
    TRY(file_may_write(diag, path));
    const int fd = file_above_standard(open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd < 0)
        return file_failed(diag, path, "cannot be written", errno);
    const bool held =
        fcntl(fd, F_OFD_SETLK, &whole) == 0; /* of the open file: two sessions of one process exclude each other too */
    if (!held && (errno == EAGAIN || errno == EACCES))
        return taken(diag, fd, path);
    const int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) { /* only told to people */
    }
    *lock = (FileLock){ .fd = fd, .held = held };
    return OK;
}

void file_unlock(FileLock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    *lock = (FileLock){ .fd = -1 };
}

int folder_lock(const char *folder)
{
    const struct timespec a_moment = { .tv_nsec = 10000000 };
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    for (int i = 0; i < FOLDER_LOCK_SECONDS * 100; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        nanosleep(&a_moment, NULL);
    }
    close(fd);
    return -1;
}

void folder_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}
