/* A folder for the files of one test program. */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64]; /* of this run of the program */

/* The path of a name in it; eight of them stand at a time. */
static inline char *in_folder(const char *name)
{
    static char path[8][300];
    static int next;

    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

/* Makes the folder; what a group's setup returns. */
static inline int folder_open(void)
{
    snprintf(folder, sizeof folder, "/tmp/qcc-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* Removes it with all that is in it; what a group's teardown returns. */
static inline int folder_close(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static inline void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

#endif
