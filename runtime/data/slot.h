/* What a feed is made of: two batches, one in use and one being prepared. */
#ifndef RUNTIME_DATA_SLOT_H
#define RUNTIME_DATA_SLOT_H

#include "runtime/data/ahead.h"
#include "runtime/data/feed.h"
#include "runtime/data/lane.h"
#include "runtime/data/order.h"

typedef struct Slot {
    Tensor **full, **tail; /* for each input: a whole batch, and the last one where it is smaller */
    int64_t *samples;
    void *room; /* two raw samples */
    Fault fault;
    bool filled, in_tail;
    int64_t rows, valid;
    uint64_t epoch;
    int64_t index;
} Slot;

/* The records of standard input, as far as they were read. */
typedef struct Stream {
    int64_t batches; /* given out */
    int64_t records, samples;
    void *raw, *turned;
    size_t cap;
    bool ended;
} Stream;

struct Feed {
    const Dataset *ds;
    FeedOptions options;
    Arena arena;
    Heap heap;
    Split split;
    int64_t samples, batches;
    Slot slots[2];
    int current; /* the slot that the caller has */
    Slot *asked; /* the one that the thread fills */
    Ahead ahead;
    Stream stream;
    Cleanup cleanup;
};

/* The next batch of a stream into the slot; rows 0 at its end. */
Status stream_fill(Feed *feed, Slot *slot, Diag *d);

/* Gives the slot's tensors another number of rows, at most those of a batch. */
void slot_rows(Feed *feed, Slot *slot, int64_t rows);

#endif
