#include "runtime/data/feed.h"

#include <inttypes.h>
#include <string.h>

#include "base/fp_env.h"
#include "runtime/data/slot.h"

/* ---- which samples ---- */

static int64_t part_samples(const Feed *feed)
{
    const Split *s = &feed->split;
    switch (feed->options.part) {
    case FEED_TRAIN:
        return (int64_t)(s->n - s->n_held);
    case FEED_VALIDATION:
        return (int64_t)s->n_held;
    case FEED_ALL:
        break;
    }
    return feed->ds->samples;
}

/* The sample at a position of an epoch. */
static int64_t sample_at(const Feed *feed, uint64_t epoch, int64_t position)
{
    const FeedOptions *o = &feed->options;
    uint64_t at = (uint64_t)(position % feed->samples); /* a padded batch begins again */
    if (o->shuffle)
        at = order_at(o->seed, ORDER_EPOCH, epoch, (uint64_t)feed->samples, at);
    return (int64_t)(o->part == FEED_ALL ? at : split_at(&feed->split, o->part == FEED_VALIDATION, at));
}

/* ---- filling a batch: from any thread, without asking for memory ---- */

static Status read_lanes(const Feed *feed, Slot *slot)
{
    for (int64_t r = 0; r < slot->rows; r++)
        for (size_t i = 0; i < feed->ds->n; i++)
            if (feed->ds->lanes[i].kind == LANE_FILE)
                TRY(lane_read(&feed->ds->lanes[i], slot->samples[r], slot->room, slot->full[i], r, &slot->fault));
    return OK;
}

static void fill(const Feed *feed, Slot *slot)
{
    const int64_t batch = feed->ds->batch, from = slot->index * batch, left = feed->samples - from;
    slot->valid = left < batch ? left : batch;
    slot->in_tail = slot->valid < batch && feed->options.last == FEED_KEEP;
    slot->rows = slot->in_tail ? slot->valid : batch;
    slot->fault.status = OK;
    for (int64_t r = 0; r < slot->rows; r++)
        slot->samples[r] = sample_at(feed, slot->epoch, from + r);
    const FpEnv was = fp_env_enter();
    slot->fault.status = read_lanes(feed, slot);
    fp_env_leave(was);
    slot->filled = true;
}

static void fill_asked(void *arg)
{
    Feed *feed = arg;
    fill(feed, feed->asked);
}

/* ---- opening ---- */

static const Type *with_rows(Feed *feed, const Type *type, int64_t rows)
{
    int64_t dims[MAX_RANK];
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    dims[0] = rows;
    return type_tensor(feed->ds->types, type->dtype, type->rank, dims);
}

/* Another head over the same elements. */
static void shorten(Feed *feed, Tensor *tail, const Tensor *full, int64_t rows)
{
    *tail = *full;
    if (full->type->rank && full->type->dims[0] == feed->ds->batch) {
        tail->type = with_rows(feed, full->type, rows);
        if (!type_bytes(tail->type, &tail->bytes))
            memory_exhausted(feed->ds->memory); /* smaller than what fitted */
    }
}

void slot_rows(Feed *feed, Slot *slot, int64_t rows)
{
    for (size_t i = 0; i < feed->ds->n; i++)
        if (slot->full[i] && !feed->ds->lanes[i].whole)
            shorten(feed, slot->tail[i], slot->full[i], rows);
}

static void open_slot(Feed *feed, Slot *slot)
{
    const Dataset *ds = feed->ds;
    slot->full = NEWS(&feed->arena, Tensor *, ds->n + 1);
    slot->tail = NEWS(&feed->arena, Tensor *, ds->n + 1);
    slot->samples = NEWS(&feed->arena, int64_t, ds->batch + 1);
    slot->room = heap_alloc(&feed->heap, 2 * ds->room + 1);
    for (size_t i = 0; i < ds->n; i++) {
        const Lane *l = &ds->lanes[i];
        if (l->kind == LANE_NOTHING)
            continue;
        slot->full[i] = l->kind == LANE_CONSTANT ? l->constant : tensor_alloc(&feed->heap, l->input->type);
        slot->tail[i] = NEW(&feed->arena, Tensor);
        *slot->tail[i] = *slot->full[i];
    }
    const int64_t rest = feed->samples > 0 ? feed->samples % ds->batch : 0;
    if (feed->options.last == FEED_KEEP && rest)
        slot_rows(feed, slot, rest);
}

static Status count_batches(Feed *feed, Diag *d)
{
    const Dataset *ds = feed->ds;
    const FeedOptions *o = &feed->options;
    if (ds->streams) {
        feed->samples = feed->batches = -1;
        return o->part == FEED_ALL ? OK : fail_as(d, USAGE, NOWHERE, "a stream cannot be split");
    }
    if (o->part != FEED_ALL) {
        if (!(o->fraction > 0 && o->fraction < 1) || ds->samples < 2)
            return fail_as(d, USAGE, NOWHERE, "%g of %" PRId64 " samples cannot be held out", o->fraction, ds->samples);
        split_open(&feed->split, &feed->arena, o->seed, (uint64_t)ds->samples, o->fraction);
    }
    feed->samples = part_samples(feed);
    feed->batches = feed->samples / ds->batch + (o->last != FEED_DROP && feed->samples % ds->batch != 0);
    if (feed->batches)
        return OK;
    Message *m = message_new(d, SEVERITY_ERROR, INVALID, NOWHERE,
                             "%" PRId64 " samples are fewer than one batch of %" PRId64, feed->samples, ds->batch);
    message_try(m, "--batch %" PRId64, feed->samples);
    return message_send(m);
}

static void release(void *thing)
{
    Feed *feed = thing;
    memory_release(feed->ds->memory, feed, sizeof *feed);
}

static void stop(void *thing)
{
    Feed *feed = thing;
    ahead_close(&feed->ahead);
    heap_close(&feed->heap);
    arena_close(&feed->arena);
    release(feed);
}

static Status open_feed(Feed *feed, Diag *d)
{
    if (feed->ds->batch < 1)
        return fail_as(d, USAGE, NOWHERE, "a batch of %" PRId64 " samples", feed->ds->batch);
    TRY(count_batches(feed, d));
    open_slot(feed, &feed->slots[0]);
    open_slot(feed, &feed->slots[1]);
    if (feed->options.threads > 1 && !feed->ds->streams)
        ahead_open(&feed->ahead, fill_asked, feed); /* without a thread batches are read when they are asked for */
    return OK;
}

Status feed_open(Feed **out, const Dataset *ds, Diag *d, const FeedOptions *options)
{
    Feed *feed = memory_block(ds->memory, sizeof *feed);
    *feed = (Feed){ .ds = ds, .options = *options };
    arena_open(&feed->arena, ds->memory);
    heap_open(&feed->heap, ds->memory);
    arena_keep(&feed->arena); /* their end is ours: the thread must go first */
    heap_keep(&feed->heap);
    cleanup_push(ds->memory, &feed->cleanup, stop, feed);
    const Status status = open_feed(feed, d);
    if (status != OK)
        feed_close(feed);
    else
        *out = feed;
    return status;
}

void feed_close(Feed *feed)
{
    if (!feed)
        return;
    cleanup_drop(&feed->cleanup);
    stop(feed);
}

int64_t feed_samples(const Feed *feed)
{
    return feed->samples;
}

int64_t feed_batches(const Feed *feed)
{
    return feed->batches;
}

int64_t feed_dropped(const Feed *feed)
{
    return feed->options.last == FEED_DROP && feed->samples > 0 ? feed->samples % feed->ds->batch : 0;
}

/* ---- giving batches out ---- */

/* What the slot that is not in use is to hold; false where nothing follows. */
static bool aim_next(Feed *feed)
{
    const Slot *now = &feed->slots[feed->current];
    Slot *next = &feed->slots[!feed->current];
    const bool last = now->index + 1 == feed->batches;
    if (last && feed->options.once)
        return false;
    const uint64_t epoch = now->epoch + last;
    const int64_t index = last ? 0 : now->index + 1;
    next->filled = next->filled && next->epoch == epoch && next->index == index;
    next->epoch = epoch;
    next->index = index;
    return true;
}

static void ask_next(Feed *feed)
{
    if (!feed->ahead.started || !aim_next(feed))
        return;
    feed->asked = &feed->slots[!feed->current];
    feed->asked->filled = false;
    ahead_start(&feed->ahead);
}

static void give(const Slot *slot, Batch *batch)
{
    *batch = (Batch){ .values = slot->in_tail ? slot->tail : slot->full,
                      .samples = slot->samples,
                      .rows = slot->rows,
                      .valid = slot->valid,
                      .epoch = slot->epoch,
                      .index = slot->index };
}

static Status stream_batch(Feed *feed, Diag *d, uint64_t epoch, int64_t index, Batch *batch)
{
    Slot *slot = &feed->slots[0];
    if (epoch || feed->stream.ended) { /* a stream is one epoch */
        *batch = (Batch){ .values = slot->full, .samples = slot->samples, .epoch = epoch, .index = index };
        return OK;
    }
    if (index < feed->stream.batches)
        return fail_as(d, USAGE, (Place){ .file = "-", .byte = -1 },
                       "a stream cannot go back to batch %" PRId64 ": %" PRId64 " were read", index,
                       feed->stream.batches);
    do /* those before are read and forgotten */
        TRY(stream_fill(feed, slot, d));
    while (slot->rows && feed->stream.batches <= index);
    slot->index = index;
    give(slot, batch);
    return OK;
}

Status feed_batch(Feed *feed, Diag *d, uint64_t epoch, int64_t index, Batch *batch)
{
    if (feed->ds->streams)
        return stream_batch(feed, d, epoch, index, batch);
    if (index < 0 || index >= feed->batches)
        return fail_as(d, USAGE, NOWHERE, "batch %" PRId64 " of %" PRId64 " is wanted", index, feed->batches);
    if (feed->ahead.started)
        ahead_wait(&feed->ahead);
    feed->current = !feed->current;
    Slot *slot = &feed->slots[feed->current];
    if (!slot->filled || slot->epoch != epoch || slot->index != index) {
        slot->epoch = epoch;
        slot->index = index;
        fill(feed, slot);
    }
    if (slot->fault.status != OK)
        return fault_send(&slot->fault, d);
    give(slot, batch);
    ask_next(feed);
    return OK;
}

bool feed_next(Feed *feed, Batch *batch)
{
    Slot *next = &feed->slots[!feed->current];
    if (feed->ds->streams || !feed->slots[feed->current].filled)
        return false;
    if (feed->ahead.started)
        ahead_wait(&feed->ahead);
    if (!aim_next(feed))
        return false;
    if (!next->filled)
        fill(feed, next);
    if (next->fault.status != OK)
        return false;
    give(next, batch);
    return true;
}
