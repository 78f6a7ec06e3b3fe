#include "base/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/entries.h"
#include "base/file.h"
#include "base/number_text.h"

static const char mark[] = ".tmp-";

/* "PID-N" and nothing more. */
static bool is_tail(const char *p, long *pid)
{
    uint64_t number;
    const size_t digits = strspn(p, "0123456789");
    if (!u64_from_text(p, digits, &number) || number == 0 || number > INT32_MAX || p[digits] != '-')
        return false;
    *pid = (long)number;
    p += digits + 1;
    const size_t more = strspn(p, "0123456789");
    return more && p[more] == 0;
}

bool leftovers_name(const char *name, const char *stem, long *pid)
{
    const size_t n = strlen(stem), k = sizeof mark - 1;
    return strncmp(name, stem, n) == 0 && strncmp(name + n, mark, k) == 0 && is_tail(name + n + k, pid);
}

static bool is_alive(long pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

static bool is_old(const struct stat *st)
{
    struct timespec now;
    return clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec - st->st_mtim.tv_sec >= LEFTOVERS_SECONDS;
}

bool leftovers_abandoned(const char *path, long pid)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool ended = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    ended = ended && (pid == (long)getpid() || !is_alive(pid) || is_old(&st));
    ended = ended && flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return ended;
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid == geteuid();
}

typedef struct Clearing {
    const Leftovers *l;
    Arena *arena;
} Clearing;

static bool is_ours(const Clearing *c, const char *name, long *pid)
{
    const char *end = NULL;
    if (c->l->stem)
        return leftovers_name(name, c->l->stem, pid);
    for (const char *p = name; (p = strstr(p, mark)); p++)
        end = p;
    if (!end)
        return false;
    const char *stem = arena_copy(c->arena, name, (size_t)(end - name));
    return c->l->is_stem(stem) && leftovers_name(name, stem, pid);
}

static void clear_one(void *user, const char *name)
{
    const Clearing *c = user;
    const Leftovers *l = c->l;
    long pid;
    if (!strstr(name, mark))
        return;
    const ArenaMark before = arena_mark(c->arena);
    if (is_ours(c, name, &pid)) {
        const char *path = file_in(c->arena, l->folder, name);
        if (l->alone || leftovers_abandoned(path, pid) || (l->links && is_link(path) && !is_alive(pid)))
            l->disk->remove(l->disk, path);
    }
    arena_reset(c->arena, before);
}

void leftovers_clear(const Leftovers *l, Arena *arena)
{
    Clearing c = { l, arena };
    (void)entries_each(arena->memory, l->folder, LEFTOVERS_NAMES, clear_one, &c);
}

void leftovers_clear_of(const Disk *disk, Arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const Leftovers l = { .disk = disk, .folder = file_folder(arena, path), .stem = slash ? slash + 1 : path };
    leftovers_clear(&l, arena);
}
