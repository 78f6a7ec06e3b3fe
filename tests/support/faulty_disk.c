#include "support/faulty_disk.h"

#include <dirent.h>

static bool fails(const Disk *d)
{
    Faulty *f = d->user;
    const int call = f->calls++;
    if (call != f->at && !(f->for_good && call > f->at))
        return false;
    errno = f->error;
    return true;
}

static int faulty_create(const Disk *d, const char *path)
{
    Faulty *f = d->user;
    f->failed_sync = -1;
    return fails(d) ? -1 : disk_real.create(d, path);
}

static int faulty_open(const Disk *d, const char *path)
{
    return fails(d) ? -1 : disk_real.open(d, path);
}

static int faulty_reserve(const Disk *d, int fd, uint64_t bytes)
{
    return fails(d) ? -1 : disk_real.reserve(d, fd, bytes);
}

static ssize_t faulty_write(const Disk *d, int fd, const void *bytes, size_t n, uint64_t offset)
{
    return fails(d) ? -1 : disk_real.write(d, fd, bytes, n, offset);
}

static ssize_t faulty_read(const Disk *d, int fd, void *bytes, size_t n, uint64_t offset)
{
    Faulty *f = d->user;
    if (fails(d))
        return -1;
    const ssize_t got = disk_real.read(d, fd, bytes, n, offset);
    if (f->flips > 0 && got > 0) {
        f->flips--;
        ((char *)bytes)[got / 2] ^= 4;
    }
    return got;
}

/* What failed once counts as clean afterwards: asking again would be answered with a lie. */
static int faulty_sync(const Disk *d, int fd)
{
    Faulty *f = d->user;
    assert_int_not_equal(fd, f->failed_sync);
    if (!fails(d))
        return 0;
    f->failed_sync = fd;
    return -1;
}

static int faulty_rename(const Disk *d, const char *from, const char *to, bool replace)
{
    return fails(d) ? -1 : disk_real.rename(d, from, to, replace);
}

static int faulty_point(const Disk *d, const char *target, const char *path)
{
    return fails(d) ? -1 : disk_real.point(d, target, path);
}

static int faulty_remove(const Disk *d, const char *path)
{
    Faulty *f = d->user;
    if (!fails(d))
        return disk_real.remove(d, path);
    f->removes = true;
    return -1;
}

static int faulty_make_folder(const Disk *d, const char *path)
{
    return fails(d) ? -1 : disk_real.make_folder(d, path);
}

static int faulty_sync_folder(const Disk *d, const char *path)
{
    (void)path;
    return fails(d) ? -1 : 0;
}

void faulty_open_disk(Faulty *f, int at, int error, bool for_good)
{
    *f = (Faulty){ .disk = disk_real, .at = at, .error = error, .for_good = for_good, .failed_sync = -1 };
    f->disk.user = f;
    f->disk.create = faulty_create;
    f->disk.open = faulty_open;
    f->disk.reserve = faulty_reserve;
    f->disk.write = faulty_write;
    f->disk.read = faulty_read;
    f->disk.sync = faulty_sync;
    f->disk.rename = faulty_rename;
    f->disk.point = faulty_point;
    f->disk.sync_folder = faulty_sync_folder;
}

void faulty_folders(Faulty *f)
{
    f->disk.remove = faulty_remove;
    f->disk.make_folder = faulty_make_folder;
}

int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}
