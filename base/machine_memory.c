#include "base/machine_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/number_text.h"

enum { PATH = 1024, LINES = 8192 };

/* The beginning of a small file as text; false when there is none. */
static bool read_text(const char *path, char *text, size_t n)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, n - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

static void at_most(uint64_t *least, uint64_t bytes)
{
    if (bytes && (!*least || bytes < *least))
        *least = bytes;
}

/* The bound in a file; "max" is none. */
static void bound_of(const char *path, uint64_t *least)
{
    char text[64];
    uint64_t bytes;
    if (read_text(path, text, sizeof text) && u64_from_text(text, strcspn(text, "\n"), &bytes))
        at_most(least, bytes);
}

/* The bounds of a group and of those that it is in. */
static void group_bounds(const char *tree, const char *group, const char *file, uint64_t *least)
{
    char path[PATH], name[PATH];
    if (strlen(group) >= sizeof name)
        return;
    strcpy(name, group);
    for (;;) {
        if (snprintf(path, sizeof path, "%s%s/%s", tree, name, file) < (int)sizeof path)
            bound_of(path, least);
        char *slash = strrchr(name, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

static bool names(const char *list, const char *end, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; p < end; p++)
        if ((p == list || p[-1] == ',') && strncmp(p, word, n) == 0 && (p[n] == ',' || p + n == end))
            return true;
    return false;
}

/* Lines "0::/group" (version 2) and "4:memory:/group". */
static void all_groups(const char *root, uint64_t *least)
{
    char path[PATH], tree[PATH], lines[LINES];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_text(path, lines, sizeof lines))
        return;
    for (char *line = lines, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        const char *list = strchr(line, ':'), *end = list ? strchr(list + 1, ':') : NULL;
        if (!end)
            continue;
        const bool unified = end == list + 1;
        snprintf(tree, sizeof tree, "%s/sys/fs/cgroup%s", root, unified ? "" : "/memory");
        if (unified || names(list + 1, end, "memory"))
            group_bounds(tree, strcmp(end + 1, "/") == 0 ? "" : end + 1,
                         unified ? "memory.max" : "memory.limit_in_bytes", least);
    }
}

uint64_t machine_memory(const char *root)
{
    uint64_t least = 0;
    if (!*root) {
        struct rlimit space;
        const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        if (pages > 0 && page > 0)
            least = (uint64_t)pages * (uint64_t)page;
        if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
            at_most(&least, space.rlim_cur);
    }
    all_groups(root, &least);
    return least;
}
