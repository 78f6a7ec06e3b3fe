/* Loaded before the C library into the command: counts its calls and lets the one that the driver names fail, or end the
 * process.  Clocks tick by the call and syncs do nothing, so that results are the same each time and soon there. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fault/attack.h"

enum { MOST_FILES = 1024 };

static Attack *attack;
static unsigned char ours[MOST_FILES]; /* descriptors that came of relative paths */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

/* A function pointer out of dlsym, which has none to give in C. */
#define REAL(name)                                                                                                     \
    static __typeof__(name) *real;                                                                                     \
    if (!real)                                                                                                         \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void)
{
    void *block = mmap(NULL, sizeof *attack, PROT_READ | PROT_WRITE, MAP_SHARED, ATTACK_FD, 0);
    if (block == MAP_FAILED)
        _exit(99);
    syscall(SYS_close, ATTACK_FD);
    attack = block;
}

static bool is_now(Target target, long n)
{
    return attack->target == target && (n == attack->at || (n > attack->at && attack->from_then_on));
}

static void end_process(void)
{
    syscall(SYS_kill, (long)getpid(), (long)SIGKILL);
}

/* What is to come of this call; errno is set where it is to fail. */
static Deed meet(Target target)
{
    if (!attack)
        return DEED_NONE;
    bool now = is_now(target, __atomic_add_fetch(&attack->seen[target], 1, __ATOMIC_RELAXED));
    if (target != TARGET_memory && target != TARGET_thread)
        now |= is_now(TARGET_any, __atomic_add_fetch(&attack->seen[TARGET_any], 1, __ATOMIC_RELAXED));
    if (!now)
        return DEED_NONE;
    __atomic_add_fetch(&attack->struck, 1, __ATOMIC_RELAXED);
    if (attack->deed == DEED_KILL)
        end_process();
    if (attack->deed == DEED_SIGNAL)
        kill(getpid(), attack->value);
    if (attack->deed == DEED_FAIL && target == TARGET_say && attack->value == EPIPE)
        raise(SIGPIPE);
    if (attack->deed == DEED_FAIL)
        errno = attack->value;
    return attack->deed == DEED_SIGNAL ? DEED_NONE : attack->deed;
}

static bool fails(Target target)
{
    return meet(target) == DEED_FAIL;
}

static bool is_ours(int fd)
{
    return fd >= 0 && fd < MOST_FILES && ours[fd];
}

static bool relative(int folder, const char *path)
{
    return path[0] != '/' && (folder == AT_FDCWD || is_ours(folder));
}

static int taken(int fd)
{
    if (fd >= 0 && fd < MOST_FILES)
        ours[fd] = 1;
    return fd;
}

/* ---- open and close ---- */

static int open_any(int folder, const char *path, int flags, mode_t mode)
{
    if (!relative(folder, path))
        return (int)syscall(SYS_openat, folder, path, flags, mode);
    if (fails(flags & O_CREAT ? TARGET_create : TARGET_open))
        return -1;
    return taken((int)syscall(SYS_openat, folder, path, flags, mode));
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & O_CREAT ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_any(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return open_any(folder, path, flags, mode);
}

int __open_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);

int __open_2(const char *path, int flags)
{
    return open_any(AT_FDCWD, path, flags, 0);
}

int __openat_2(int folder, const char *path, int flags)
{
    return open_any(folder, path, flags, 0);
}

/* openat2 has no function of its own. */
long syscall(long number, ...)
{
    va_list list;
    long a[6];
    REAL(syscall);
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_openat2 || !relative((int)a[0], (const char *)a[1]))
        return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return fails(TARGET_open) ? -1 : taken((int)real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

int close(int fd)
{
    REAL(close);
    const bool mine = is_ours(fd);
    if (mine)
        ours[fd] = 0;
    const bool failed = mine && fails(TARGET_close);
    const int error = errno, answer = real(fd);
    errno = failed ? error : errno;
    return failed ? -1 : answer;
}

/* ---- bytes ---- */

static size_t part(Deed deed, size_t n)
{
    return deed == DEED_HALF || deed == DEED_TEAR ? (n + 1) / 2 : n;
}

ssize_t read(int fd, void *out, size_t n)
{
    REAL(read);
    const Deed deed = is_ours(fd) ? meet(TARGET_read) : DEED_NONE;
    return deed == DEED_FAIL ? -1 : deed == DEED_END ? 0 : real(fd, out, part(deed, n));
}

ssize_t pread(int fd, void *out, size_t n, off_t offset)
{
    REAL(pread);
    const Deed deed = is_ours(fd) ? meet(TARGET_read) : DEED_NONE;
    return deed == DEED_FAIL ? -1 : deed == DEED_END ? 0 : real(fd, out, part(deed, n), offset);
}

static Deed meet_write(int fd)
{
    return fd == STDOUT_FILENO ? meet(TARGET_say) : is_ours(fd) ? meet(TARGET_write) : DEED_NONE;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    REAL(write);
    const Deed deed = meet_write(fd);
    const ssize_t answer = deed == DEED_FAIL ? -1 : real(fd, bytes, part(deed, n));
    if (deed == DEED_TEAR)
        end_process();
    return answer;
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
    REAL(pwrite);
    const Deed deed = meet_write(fd);
    const ssize_t answer = deed == DEED_FAIL ? -1 : real(fd, bytes, part(deed, n), offset);
    if (deed == DEED_TEAR)
        end_process();
    return answer;
}

/* ---- what changes files and folders ---- */

int fsync(int fd)
{
    return is_ours(fd) && fails(TARGET_sync) ? -1 : 0;
}

int fdatasync(int fd)
{
    return fsync(fd);
}

int fallocate(int fd, int mode, off_t offset, off_t n)
{
    REAL(fallocate);
    return is_ours(fd) && fails(TARGET_reserve) ? -1 : real(fd, mode, offset, n);
}

int ftruncate(int fd, off_t n)
{
    REAL(ftruncate);
    return is_ours(fd) && fails(TARGET_truncate) ? -1 : real(fd, n);
}

int flock(int fd, int how)
{
    REAL(flock);
    return is_ours(fd) && fails(TARGET_lock) ? -1 : real(fd, how);
}

int fcntl(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    void *argument = va_arg(list, void *);
    va_end(list);
    REAL(fcntl);
    const bool locks = what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK || what == F_OFD_SETLKW;
    return is_ours(fd) && locks && fails(TARGET_lock) ? -1 : real(fd, what, argument);
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    return relative(AT_FDCWD, from) && fails(TARGET_rename) ? -1 : real(from, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    REAL(renameat2);
    return relative(a, from) && fails(TARGET_rename) ? -1 : real(a, from, b, to, flags);
}

int unlink(const char *path)
{
    REAL(unlink);
    return relative(AT_FDCWD, path) && fails(TARGET_remove) ? -1 : real(path);
}

int unlinkat(int folder, const char *path, int flags)
{
    REAL(unlinkat);
    return relative(folder, path) && fails(TARGET_remove) ? -1 : real(folder, path, flags);
}

int rmdir(const char *path)
{
    REAL(rmdir);
    return relative(AT_FDCWD, path) && fails(TARGET_remove) ? -1 : real(path);
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir);
    return relative(AT_FDCWD, path) && fails(TARGET_folder) ? -1 : real(path, mode);
}

int symlink(const char *target, const char *path)
{
    REAL(symlink);
    return relative(AT_FDCWD, path) && fails(TARGET_link) ? -1 : real(target, path);
}

int link(const char *from, const char *to)
{
    REAL(link);
    return relative(AT_FDCWD, to) && fails(TARGET_link) ? -1 : real(from, to);
}

/* ---- looking ---- */

int stat(const char *path, struct stat *out)
{
    REAL(stat);
    return relative(AT_FDCWD, path) && fails(TARGET_look) ? -1 : real(path, out);
}

int lstat(const char *path, struct stat *out)
{
    REAL(lstat);
    return relative(AT_FDCWD, path) && fails(TARGET_look) ? -1 : real(path, out);
}

int fstat(int fd, struct stat *out)
{
    REAL(fstat);
    return is_ours(fd) && fails(TARGET_look) ? -1 : real(fd, out);
}

int fstatat(int folder, const char *path, struct stat *out, int flags)
{
    REAL(fstatat);
    return relative(folder, path) && fails(TARGET_look) ? -1 : real(folder, path, out, flags);
}

int access(const char *path, int how)
{
    REAL(access);
    return relative(AT_FDCWD, path) && fails(TARGET_look) ? -1 : real(path, how);
}

ssize_t readlink(const char *path, char *out, size_t n)
{
    REAL(readlink);
    return relative(AT_FDCWD, path) && fails(TARGET_look) ? -1 : real(path, out, n);
}

DIR *opendir(const char *path)
{
    REAL(opendir);
    return relative(AT_FDCWD, path) && fails(TARGET_list) ? NULL : real(path);
}

/* The end and a failure look alike but for errno. */
struct dirent *readdir(DIR *d)
{
    REAL(readdir);
    return fails(TARGET_list) ? NULL : real(d);
}

/* ---- memory and threads ---- */

static bool no_memory(void)
{
    const int error = errno;
    const bool failed = fails(TARGET_memory);
    errno = failed ? ENOMEM : error;
    return failed;
}

void *malloc(size_t n)
{
    return no_memory() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return no_memory() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *block, size_t n)
{
    return no_memory() ? NULL : __libc_realloc(block, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return no_memory() ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **block, size_t alignment, size_t n)
{
    void *made = no_memory() ? NULL : __libc_memalign(alignment, n);
    if (made)
        *block = made;
    return made ? 0 : ENOMEM;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *arg)
{
    REAL(pthread_create);
    return fails(TARGET_thread) ? attack->value : real(thread, attributes, start, arg);
}

/* ---- what differs each time ---- */

int clock_gettime(clockid_t clock, struct timespec *out)
{
    enum { START = 1700000000, PER_SECOND = 1000 };
    static long ticks;
    const long now = __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
    (void)clock;
    *out = (struct timespec){ START + now / PER_SECOND, now % PER_SECOND * (1000000000 / PER_SECOND) };
    return 0;
}

int gethostname(char *out, size_t n)
{
    snprintf(out, n, "host");
    return 0;
}
