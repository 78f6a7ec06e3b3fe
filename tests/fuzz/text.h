/* Any bytes as a text that somebody wrote, read within 64 MB; every block goes back. */
#ifndef TESTS_FUZZ_TEXT_H
#define TESTS_FUZZ_TEXT_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "fuzz/fuzz.h"

typedef struct TextFuzz {
    Memory memory;
    Arena arena;
    Diag diag;
    const char *text; /* up to its first NUL */
    const char *path; /* a file with all of it */
} TextFuzz;

static void text_fuzz(const uint8_t *data, size_t n, Status (*read)(void *fuzz))
{
    TextFuzz z = { 0 };
    char path[] = "fuzz-XXXXXX", *copy = malloc(n + 1);
    const int fd = mkstemp(path);
    if (!copy || fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    if (n)
        memcpy(copy, data, n);
    copy[n] = 0;
    z.text = copy;
    z.path = path;
    memory_open(&z.memory, NULL);
    z.memory.budget = 64 << 20;
    arena_open(&z.arena, &z.memory);
    arena_keep(&z.arena);
    diag_open(&z.diag, &z.arena, NULL, NULL);
    if (guarded(&z.memory, read, &z) == INTERNAL)
        abort();
    arena_close(&z.arena);
    if (z.memory.used)
        abort();
    close(fd);
    unlink(path);
    free(copy);
}

#endif
