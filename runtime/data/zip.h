/* The directory of a zip archive, checked before anything is read by it: members lie in the file, apart from each
 * other, and are what their own heads say. */
#ifndef RUNTIME_DATA_ZIP_H
#define RUNTIME_DATA_ZIP_H

#include "runtime/data/bytes.h"

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8, ZIP_MOST_MEMBERS = 65536 };

typedef struct ZipMember {
    const char *name;
    uint64_t head, data;   /* where its head and its bytes begin */
    uint64_t packed, size; /* bytes in the file, and inflated */
    uint32_t crc;
    int method; /* ZIP_STORED or ZIP_DEFLATED */
} ZipMember;

typedef struct Zip {
    Bytes from;
    ZipMember *list; /* in the order of the file */
    size_t n;
} Zip;

/* Reads the directory; names live in `arena`. */
Status zip_open(Zip *z, Arena *arena, Diag *d, const Bytes *from);

/* The bytes of a member as they lie in the file. */
Bytes zip_range(const Zip *z, const ZipMember *m);

/* Inflates a member into m->size bytes and checks their sum. */
Status zip_inflate(const Zip *z, const ZipMember *m, Arena *scratch, Diag *d, void *out);

/* Reads a stored member through and checks its sum. */
Status zip_check(const Zip *z, const ZipMember *m, Arena *scratch, Diag *d);

#endif
