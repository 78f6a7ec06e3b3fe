/* Batches of a dataset.  A batch is addressed by (epoch, index) and is the same whenever it is asked for: resuming needs
 * no more than the two numbers.  A thread prepares the batch after the one in use. */
#ifndef RUNTIME_DATA_FEED_H
#define RUNTIME_DATA_FEED_H

#include "runtime/data/dataset.h"

/* Which samples: all, or one side of a split that seed and fraction fix. */
typedef enum FeedPart { FEED_ALL, FEED_TRAIN, FEED_VALIDATION } FeedPart;

/* A last batch that is not full: left out; filled up by samples from the front, which `valid` does not count; or
 * smaller. */
typedef enum FeedLast { FEED_DROP, FEED_PAD, FEED_KEEP } FeedLast;

typedef struct FeedOptions {
    FeedPart part;
    double fraction; /* held out for validation */
    bool shuffle;
    FeedLast last;
    uint64_t seed;
    bool once;                   /* no epoch follows the first: nothing is prepared behind its last batch */
    int threads;                 /* 1: no thread is started */
    bool (*stopped)(void *user); /* asked when a signal interrupts a wait for a stream; may be null */
    void *user;
} FeedOptions;

typedef struct Batch {
    Tensor *const *values;  /* one for each input of the dataset, null for one that gets nothing; the feed's own, valid
                               until the next feed_batch, those of feed_next until the one behind that */
    const int64_t *samples; /* the numbers of the samples in their file, `rows` of them; of a stream: records so far */
    int64_t rows;           /* dimension 0 of the values; 0: a stream has ended */
    int64_t valid;          /* the first `valid` rows are samples that count */
    uint64_t epoch;
    int64_t index;
} Batch;

typedef struct Feed Feed;

/* A feed over a dataset, which must outlive it. */
Status feed_open(Feed **feed, const Dataset *dataset, Diag *d, const FeedOptions *options);

/* Joins the thread and gives the memory back; null is allowed. */
void feed_close(Feed *feed);

/* Samples of the part. */
int64_t feed_samples(const Feed *feed);

/* Batches of an epoch; -1: a stream, which ends when it ends. */
int64_t feed_batches(const Feed *feed);

/* Samples of an epoch that `last` leaves out. */
int64_t feed_dropped(const Feed *feed);

/* Batch `index` of `epoch`.  What is wrong with a sample is reported here, at the batch that has it. */
Status feed_batch(Feed *feed, Diag *d, uint64_t epoch, int64_t index, Batch *batch);

/* The batch behind the one in use, whose values stay as they are beside it: waits until it is read.  False where none follows,
 * or where feed_batch is to say what is wrong with it. */
bool feed_next(Feed *feed, Batch *batch);

#endif
