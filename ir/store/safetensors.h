/* Safetensors, the reading side: a header that is checked as a whole, and tensors that are read when they are wanted.
 *
 * Eight bytes of length, a JSON object {"NAME": {"dtype", "shape", "data_offsets"}}, then the tensors, which must tile
 * the rest of the file: no gap, no overlap, nothing behind the last one. */
#ifndef IR_STORE_SAFETENSORS_H
#define IR_STORE_SAFETENSORS_H

#include "base/limits.h"
#include "ir/tensor.h"

/* Where the bytes are: `read` gives exactly n of them or reports why not. */
typedef struct SafeBytes SafeBytes;
struct SafeBytes {
    const char *name; /* for messages; a path where `read` is null */
    uint64_t size;
    Status (*read)(const SafeBytes *b, Diag *d, uint64_t offset, void *out, size_t n); /* null: a file, by pread */
    void *user;
};

typedef struct SafeTensor {
    const char *name;
    const Type *type;
    uint64_t at; /* in the file */
    size_t bytes;
} SafeTensor;

typedef struct SafePair {
    const char *key, *value;
} SafePair;

/* The table of one file. */
typedef struct SafeTensors {
    SafeBytes from;
    SafeTensor *list; /* by offset */
    size_t n;
    SafePair *metadata; /* as they stand in the file */
    size_t n_metadata;
    Map by_name, by_key;
} SafeTensors;

/* Reads and checks the table of a file; everything it says lives in `arena`. */
Status safetensors_open(SafeTensors *s, Types *types, Arena *arena, Diag *d, const Limits *limits, const char *path);

/* The same over any bytes; b->name must stay where it is. */
Status safetensors_open_bytes(SafeTensors *s, Types *types, Arena *arena, Diag *d, const Limits *limits,
                              const SafeBytes *b);

/* The tensor of that name, or null. */
const SafeTensor *safetensors_find(const SafeTensors *s, const char *name);

/* The value of that key of __metadata__, or null. */
const char *safetensors_metadata(const SafeTensors *s, const char *key);

/* Reads the t->bytes bytes of a tensor. */
Status safetensors_read(const SafeTensors *s, Diag *d, const SafeTensor *t, void *out);

/* Reads any bytes of the file. */
Status safetensors_bytes(const SafeTensors *s, Diag *d, uint64_t offset, void *out, size_t n);

/* What safetensors calls an element type; null where it has no name for it. */
const char *safetensors_dtype(DType dtype);

/* Whether the first n bytes of a file could begin one. */
bool safetensors_is(const void *bytes, size_t n);

#endif
