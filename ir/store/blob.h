/* Large constants beside the text: safetensors files, read lazily and checked. */
#ifndef IR_STORE_BLOB_H
#define IR_STORE_BLOB_H

#include "ir/graph.h"

typedef struct Blob {
    const char *name;
    Payload *payload;
} Blob;

/* A set of named payloads: to be written, or found in a file. */
typedef struct Blobs {
    Arena *arena;
    Blob *list;
    size_t n, cap;
    Map by_name, by_payload;
} Blobs;

/* An empty set. */
void blobs_open(Blobs *b, Arena *arena);

/* The name of a payload in the set, added when it is new: `wish`, made unique. */
const char *blobs_add(Blobs *b, Payload *payload, const char *wish);

/* The payload of that name as a value of `type`; null when there is none of this name.  `*fits` says whether its
 * type is that one.  Types that safetensors cannot name were stored as bytes and become what is asked. */
Payload *blobs_find(const Blobs *b, Str name, const Type *type, bool *fits);

/* Writes all of them as one safetensors file; the file appears whole or not at all. */
Status blobs_write(const Blobs *b, Ir *ir, const char *path);

/* Adds what a safetensors file holds; its bytes are read when a payload is. */
Status blobs_read(Blobs *b, Ir *ir, const char *path);

/* The bytes of a payload: those in memory, or read into a block that `heap` frees (*block).  Null after a failure. */
const void *payload_bytes(Payload *p, Heap *heap, void **block, Diag *diag);

#endif
