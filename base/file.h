/* Files: read whole, read in part, written so that they appear whole or not at all. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/diag.h"
#include "base/disk.h"
#include "base/str.h"

/* The bytes of a regular file of at most `limit` bytes, with a NUL behind them; `limit_name` is for the message. */
Status file_read(Arena *arena, Diag *diag, const char *path, int64_t limit, const char *limit_name, Str *bytes);

/* `n` bytes from `offset` of a regular file that must still have `size` bytes. */
Status file_read_at(Diag *diag, const char *path, uint64_t size, uint64_t offset, void *out, size_t n);

/* Opens a regular file to be read in parts; the caller closes it. */
Status file_open(Diag *diag, const char *path, int *fd, uint64_t *size);

/* Reads from `offset`, from any thread: 0 or an errno.  *done is less than n where the file ends before. */
int file_pread(int fd, uint64_t offset, void *out, size_t n, size_t *done);

/* The size of a regular file. */
Status file_size(Diag *diag, const char *path, uint64_t *size);

/* Whether something of that name is there. */
bool file_exists(const char *path);

/* Whether it is known that nothing has that name: not what could not be found out. */
bool file_is_absent(const char *path);

/* A file being written under a temporary name in the same folder. */
typedef struct FileOut {
    Diag *diag;
    const Disk *disk;
    const char *path, *temporary, *folder;
    int fd, back;      /* to write, and locked while it is open; to read back */
    bool named;        /* it has its name, also where that may not be on the disk */
    uint64_t at, most; /* written; what the process may write (RLIMIT_FSIZE) */
    Cleanup cleanup;
} FileOut;

/* Starts to write; the caller must end it with file_keep or file_drop.  What processes that were killed left of the same
 * file is cleared. */
Status file_create(FileOut *f, Arena *arena, Diag *diag, const char *path);

/* The same through a table of calls. */
Status file_create_on(FileOut *f, const Disk *disk, Arena *arena, Diag *diag, const char *path);

/* Asks for the room of `bytes` bytes before they are written. */
Status file_reserve(FileOut *f, uint64_t bytes);

/* Appends bytes. */
Status file_write(FileOut *f, const void *bytes, size_t n);

/* Brings what was written to the disk and opens it again to be read; after a failure it must be dropped, never tried
 * again: the pages that failed count as clean then. */
Status file_sync(FileOut *f);

/* Reads what file_sync brought to the disk. */
Status file_read_back(const FileOut *f, uint64_t offset, void *out, size_t n);

/* Gives the file its name, replacing one that is there. */
Status file_keep(FileOut *f);

/* Gives the file a name in its folder.  Where that is `taken` and not to be replaced, nothing happened and the file is
 * still to be ended. */
Status file_keep_as(FileOut *f, const char *path, bool replace, bool *taken);

/* Forgets what was written. */
void file_drop(FileOut *f);

/* The same descriptor, numbered above the standard streams: where the host has closed those, its own words would go
 * into a file that is written to.  -1 stays -1. */
int file_above_standard(int fd);

/* write() that answers EPIPE and EFBIG where the process would get a signal. */
ssize_t file_write_quietly(int fd, const void *bytes, size_t n);

/* The folder that holds a path. */
const char *file_folder(Arena *arena, const char *path);

/* A path in a folder. */
const char *file_in(Arena *arena, const char *folder, const char *name);

/* Reports that something could not be done to a path. */
Status file_failed(Diag *diag, const char *path, const char *what, int error);

#endif
