/* What feeds one input: a source and a conversion, a constant, a stream, or nothing. */
#ifndef RUNTIME_DATA_LANE_H
#define RUNTIME_DATA_LANE_H

#include "runtime/data/convert.h"

typedef enum LaneKind { LANE_NOTHING, LANE_FILE, LANE_CONSTANT, LANE_STREAM } LaneKind;

typedef struct Lane {
    LaneKind kind;
    const DataInput *input;
    const DataSpec *spec;   /* null: a constant */
    Samples *source;        /* may be another lane's */
    Convert convert;        /* of a source */
    int64_t first, samples; /* rows of the file */
    int64_t step, shift;    /* elements between samples, and before the first: `next` begins one later */
    int64_t tail;           /* elements at the end that begin no sample: the one that only `next` reads */
    Tensor *constant;
    bool whole; /* a constant that a file gave: it has rows, but no samples */
    const char *says;
} Lane;

struct Dataset {
    Memory *memory;
    Types *types;
    Arena arena;
    Heap heap;
    const Limits *limits;
    DataOptions options;
    DataInput *inputs;
    Lane *lanes; /* one for each input */
    size_t n;
    Samples **sources; /* those that are open */
    size_t n_sources;
    size_t room; /* bytes of the largest raw sample */
    int64_t samples, batch;
    uint64_t held;
    bool streams;
    Cleanup cleanup;
};

/* Fits the lane's source to its input: layout, shape, element type. */
Status lane_fit(Dataset *ds, Lane *lane, Diag *d);

/* Fits an array of this type, as a file or a record of a stream has it, to the input.  `file` names it. */
Status lane_fit_array(Dataset *ds, Lane *lane, Diag *d, const Samples *array, Convert *convert);

/* Reads one sample into row `row` of a batch.  `room` holds two raw samples. */
Status lane_read(const Lane *lane, int64_t sample, void *room, Tensor *out, int64_t row, Fault *f);

/* The type of an input in the model's words. */
const char *input_shown(Arena *arena, const DataInput *input);

#endif
