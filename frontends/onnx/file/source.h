/* Where the bytes of a model come from: a file, memory, or the host's own reader.
 *
 * Files are read with pread and never mapped: a file that shrinks while it is read must end in an error, not in a
 * signal.  A source may be read from several threads. */
#ifndef FRONTENDS_ONNX_FILE_SOURCE_H
#define FRONTENDS_ONNX_FILE_SOURCE_H

#include "base/diag.h"
#include "base/limits.h"

/* What identifies the content of a file without reading it. */
typedef struct FileId {
    uint64_t device, inode, size, links;
    int64_t seconds, nanoseconds; /* of the last modification */
} FileId;

typedef struct Source Source;
struct Source {
    const char *name; /* for messages; the owner keeps it alive */
    uint64_t size;
    int fd;           /* -1: not a file */
    int folder;       /* the folder that external data lies beneath; -1: none */
    int folder_error; /* why there is none beside a file; 0 */
    FileId id;        /* of a file */
    const uint8_t *bytes;
    uint64_t seen; /* what a look at `bytes` gave when they were handed over */
    bool lost;     /* the host took back what it was asked for, and there was no memory for a copy */
    Status (*read)(void *user, uint64_t offset, void *buffer, size_t n); /* the host's reader; must give n bytes */
    void *user;
    bool owns_fd, owns_folder, owns_bytes;
    Memory *memory;
    Cleanup cleanup;
};

/* Opens a regular file and its folder; they stay open until source_close, or until a jump passes. */
Status source_open(Source *s, Memory *m, Diag *d, const char *path);

/* A source over n bytes of the caller's, which stay as they are until source_close or source_own.  It has no folder. */
void source_memory(Source *s, Memory *m, const char *name, const void *bytes, size_t n);

/* A source over the host's reader.  It has no folder. */
void source_callback(Source *s, Memory *m, const char *name, uint64_t size,
                     Status (*read)(void *user, uint64_t offset, void *buffer, size_t n), void *user);

/* Keeps the source open past guarded(): a jump no longer closes it, its owner must. */
void source_keep(Source *s);

/* Takes a copy of what is the caller's memory or comes from the host's reader, so that neither is asked again.  It cannot
 * fail: where there is no memory the next read does. */
void source_own(Source *s);

/* Closes what the source opened; closing twice is allowed. */
void source_close(Source *s);

/* Reads exactly n bytes at `offset`, whatever the system splits them into. */
Status source_read(Source *s, Diag *d, uint64_t offset, void *buffer, size_t n);

/* OK if a file is still the one that was opened, of the same size and time of modification; and bytes in memory those
 * that were handed over, as far as a look here and there can tell. */
Status source_unchanged(Source *s, Diag *d);

/* Whether two identities are of one file in one state. */
bool file_same(const FileId *a, const FileId *b);

/* Reads exactly n bytes of a descriptor at `offset`: 0, an errno, or -1 if the file ends before. */
int read_exactly(int fd, uint64_t offset, void *buffer, size_t n);

/* The identity of an open descriptor; false with errno if it has none or is no regular file (errno 0 then). */
bool file_id(int fd, FileId *id);

/* A view of a source that moves: small reads become large ones. */
typedef struct Window {
    Source *source;
    Diag *diag;
    uint8_t *buffer; /* unused over memory */
    size_t cap;      /* of the buffer: what may be asked for at once */
    uint64_t from;   /* what the buffer holds */
    size_t n;
} Window;

enum { WINDOW_BYTES = 65536 };

/* A window of WINDOW_BYTES over `s`; its buffer lives in `arena`. */
void window_open(Window *w, Source *s, Diag *d, Arena *arena);

/* A window over `s` through a buffer of the caller's. */
void window_over(Window *w, Source *s, Diag *d, uint8_t *buffer, size_t cap);

/* Makes n bytes at `offset`, at most the buffer's, readable at *p until the next call; they must lie within the
 * source. */
Status window_at(Window *w, uint64_t offset, size_t n, const uint8_t **p);

#endif
