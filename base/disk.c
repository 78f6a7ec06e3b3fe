#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static int real_create(const Disk *d, const char *path)
{
    (void)d;
    int fd;
    do
        fd = file_above_standard(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    while (fd < 0 && errno == EINTR);
    if (fd >= 0)
        (void)flock(fd, LOCK_EX | LOCK_NB); /* somebody writes here: leftovers_abandoned */
    return fd;
}

static int real_open(const Disk *d, const char *path)
{
    (void)d;
    int fd;
    do
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static int real_reserve(const Disk *d, int fd, uint64_t bytes)
{
    (void)d;
    int answer;
    if (!bytes)
        return 0;
    do
        answer = fallocate(fd, 0, 0, (off_t)bytes);
    while (answer != 0 && errno == EINTR);
    return answer != 0 && (errno == EOPNOTSUPP || errno == ENOSYS) ? 0 : answer;
}

static ssize_t real_write(const Disk *d, int fd, const void *bytes, size_t n, uint64_t offset)
{
    (void)d;
    return pwrite(fd, bytes, n, (off_t)offset);
}

static ssize_t real_read(const Disk *d, int fd, void *bytes, size_t n, uint64_t offset)
{
    (void)d;
    return pread(fd, bytes, n, (off_t)offset);
}

static int real_sync(const Disk *d, int fd)
{
    (void)d;
    if (fsync(fd) != 0)
        return -1;
    (void)posix_fadvise(fd, 0, 0,
                        POSIX_FADV_DONTNEED); /* what is read back comes from the disk, where that is possible */
    return 0;
}

static int real_close(const Disk *d, int fd)
{
    (void)d;
    return close(fd);
}

static int real_rename(const Disk *d, const char *from, const char *to, bool replace)
{
    (void)d;
    struct stat st;
    if (replace)
        return rename(from, to);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (lstat(to, &st) == 0) { /* a file system that cannot: callers hold a lock */
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

static int real_remove(const Disk *d, const char *path)
{
    (void)d;
    return unlink(path);
}

static int real_point(const Disk *d, const char *target, const char *path)
{
    (void)d;
    return symlink(target, path);
}

static int real_make_folder(const Disk *d, const char *path)
{
    (void)d;
    return mkdir(path, 0777);
}

static int real_sync_folder(const Disk *d, const char *path)
{
    (void)d;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int answer = fsync(fd), error = errno;
    close(fd);
    errno = error;
    return answer != 0 && error == EINVAL ? 0 : answer; /* file systems whose folders need none */
}

const Disk disk_real = {
    .create = real_create,
    .open = real_open,
    .reserve = real_reserve,
    .write = real_write,
    .read = real_read,
    .sync = real_sync,
    .close = real_close,
    .rename = real_rename,
    .remove = real_remove,
    .point = real_point,
    .make_folder = real_make_folder,
    .sync_folder = real_sync_folder,
};
