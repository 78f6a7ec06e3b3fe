/* A range of a file, or bytes in memory, read from any thread; and what such a thread has to say, kept until somebody
 * may say it. */
#ifndef RUNTIME_DATA_BYTES_H
#define RUNTIME_DATA_BYTES_H

#include "base/diag.h"

enum { FAULT_TEXT = 320, FAULT_WHERE = 64 };

/* One failure, without memory of its own. */
typedef struct Fault {
    Status status; /* OK: none */
    const char *file;
    char where[FAULT_WHERE]; /* "sample 17" */
    char text[FAULT_TEXT];
    const char *instead; /* what to write; null: nothing */
} Fault;

/* Notes a failure of `file`; returns the status. */
Status fault_set(Fault *f, Status status, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Says where in the file it was; returns its status. */
Status fault_where(Fault *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reports what was noted; returns its status. */
Status fault_send(const Fault *f, Diag *d);

typedef struct Bytes {
    const char *name; /* for messages */
    const uint8_t *p; /* in memory; null: of a file */
    int fd;
    uint64_t file_size; /* a file of another size is no longer the one that was opened */
    uint64_t at, size;  /* of the range */
} Bytes;

/* A whole file. */
Status bytes_open(Bytes *b, Diag *d, const char *path);

/* Closes the file of a range; for whoever opened it.  (As a cleanup takes it: the argument is a Bytes.) */
void bytes_close(void *bytes);

/* n bytes in memory. */
Bytes bytes_of(const char *name, const void *p, uint64_t n);

/* A part of a range, which must lie in it. */
Bytes bytes_part(const Bytes *b, uint64_t at, uint64_t n);

/* Reads n bytes from `offset` of the range. */
Status bytes_read(const Bytes *b, Fault *f, uint64_t offset, void *out, size_t n);

/* The same, reporting at once. */
Status bytes_get(const Bytes *b, Diag *d, uint64_t offset, void *out, size_t n);

#endif
