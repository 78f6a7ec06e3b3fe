/* Compressed bytes, read in order. */
#ifndef RUNTIME_DATA_INFLATE_H
#define RUNTIME_DATA_INFLATE_H

#include <zlib.h>

#include "base/arena.h"
#include "runtime/data/bytes.h"

enum { INFLATE_BLOCK = 65536, DEFLATE_BEST = 1032 }; /* no deflate stream grows by more than 1032 */

typedef enum InflateForm { INFLATE_RAW, INFLATE_GZIP } InflateForm;

typedef struct Inflate {
    z_stream z; /* memory by malloc: the cleanup ends it */
    Bytes from;
    uint64_t at;
    uint8_t *block;
    Diag *d;
    bool ended; /* nothing follows */
    InflateForm form;
    Cleanup cleanup;
} Inflate;

/* Begins to read `from`; its block lives in `scratch`. */
Status inflate_open(Inflate *i, Arena *scratch, Diag *d, const Bytes *from, InflateForm form);

/* Up to n bytes; fewer only at the end, which gzip's checksums have confirmed. */
Status inflate_some(Inflate *i, void *out, size_t n, size_t *got);

/* Exactly n bytes. */
Status inflate_all(Inflate *i, void *out, size_t n);

/* Reports bytes that follow what was wanted. */
Status inflate_end(Inflate *i);

/* Gives zlib's memory back. */
void inflate_close(Inflate *i);

/* Whether n bytes can come out of `packed` compressed ones. */
bool inflate_can(uint64_t packed, uint64_t n);

#endif
