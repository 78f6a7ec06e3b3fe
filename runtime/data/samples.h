/* One array of samples in a file, whatever the file's form: its type, and its elements by number, in C order and this
 * machine's byte order.  Opening finds all that can be known without reading every sample. */
#ifndef RUNTIME_DATA_SAMPLES_H
#define RUNTIME_DATA_SAMPLES_H

#include "runtime/data/bytes.h"
#include "runtime/data/dataset.h"

typedef struct Samples {
    const char *path;   /* as the user wrote it */
    const char *format; /* "npy" */
    DType dtype;
    int rank;
    int64_t dims[MAX_RANK]; /* the whole array; samples first */
    size_t width;           /* bytes of an element */
    bool swapped;           /* of the other byte order */
    bool tokens;            /* one row of tokens, cut into windows by whoever reads */
    Bytes elements;
    Bytes file; /* open until samples_close */
    Heap heap;  /* what was inflated or parsed */
    Cleanup cleanup;
} Samples;

/* What opening needs. */
typedef struct SamplesQuery {
    Memory *memory;
    Types *types;
    Arena *arena; /* lives as long as the source */
    Diag *d;
    const Limits *limits;
    const DataOptions *options;
    const DataSpec *spec;
    const Type *wanted; /* of the input; may be null */
    const char *input;  /* its name; may be null */
    uint64_t *held;     /* bytes in memory so far, of all sources together */
    bool probing;       /* only the type is wanted: raw bytes of an unknown shape have rank 0 */
} SamplesQuery;

/* Opens a file, of whatever form it is.  Open until samples_close, or until a jump passes. */
Status samples_open(Samples *s, const SamplesQuery *q);

/* Refuses options that a stream of records cannot have. */
Status samples_stream_options(Diag *d, const DataSpec *spec);

/* Closes the file and gives the memory back. */
void samples_close(Samples *s);

/* Elements of the whole array. */
int64_t samples_elements(const Samples *s);

/* The type of the whole array. */
const Type *samples_type(const Samples *s, Types *types);

/* Reads n elements from number `first`; from any thread, without asking for memory. */
Status samples_read(const Samples *s, Fault *f, int64_t first, int64_t n, void *out);

#endif
