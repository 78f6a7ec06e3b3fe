#include "base/entries.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

static void close_folder(void *thing)
{
    closedir(thing);
}

int entries_each(Memory *memory, const char *folder, size_t most, void (*see)(void *user, const char *name), void *user)
{
    Cleanup cleanup;
    const struct dirent *e;
    size_t n = 0;
    DIR *d = opendir(folder);
    if (!d && errno == ENOMEM)
        memory_exhausted(memory);
    if (!d)
        return errno;
    cleanup_push(memory, &cleanup, close_folder, d);
    for (errno = 0; n <= most && (e = readdir(d)); errno = 0) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (n++ < most)
            see(user, e->d_name);
    }
    const int error = n > most ? EOVERFLOW : errno;
    cleanup_drop(&cleanup);
    closedir(d);
    return error;
}
