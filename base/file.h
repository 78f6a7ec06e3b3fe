/* Files: read whole, read in part, written so that they appear whole or not at all. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/diag.h"
#include "base/str.h"

/* The bytes of a regular file of at most `limit` bytes, with a NUL behind them; `limit_name` is for the message. */
Status file_read(Arena *arena, Diag *diag, const char *path, int64_t limit, const char *limit_name, Str *bytes);

/* `n` bytes from `offset` of a regular file that must still have `size` bytes. */
Status file_read_at(Diag *diag, const char *path, uint64_t size, uint64_t offset, void *out, size_t n);

/* The size of a regular file. */
Status file_size(Diag *diag, const char *path, uint64_t *size);

/* Whether something of that name is there. */
bool file_exists(const char *path);

/* A file being written under a temporary name. */
typedef struct FileOut {
    Diag *diag;
    const char *path, *temporary;
    int fd;
    Cleanup cleanup;
} FileOut;

/* Starts to write; the caller must end it with file_keep or file_drop. */
Status file_create(FileOut *f, Arena *arena, Diag *diag, const char *path);

/* Appends bytes. */
Status file_write(FileOut *f, const void *bytes, size_t n);

/* Gives the file its name, replacing one that is there. */
Status file_keep(FileOut *f);

/* Forgets what was written. */
void file_drop(FileOut *f);

#endif
