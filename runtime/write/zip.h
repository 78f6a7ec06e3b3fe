/* A zip file written front to back: entries stored as they are, in the 64-bit form where sizes or places need it. */
#ifndef RUNTIME_WRITE_ZIP_H
#define RUNTIME_WRITE_ZIP_H

#include "base/sink.h"
#include "base/text.h"

typedef struct ZipWriter {
    Sink to;
    uint64_t at;    /* bytes put so far */
    uint64_t n;     /* entries */
    Text directory; /* what stands at the end */
} ZipWriter;

/* What puts the bytes of an entry; called twice and must put the same: once for size and checksum, once for good. */
typedef Status (*ZipContent)(void *user, Sink to);

/* Begins a file; `at` is where it begins in what the sink writes to. */
void zip_begin(ZipWriter *z, Arena *arena, Sink to, uint64_t at);

/* Adds an entry. */
Status zip_add(ZipWriter *z, const char *name, ZipContent content, void *user);

/* Ends the file. */
Status zip_end(ZipWriter *z);

#endif
