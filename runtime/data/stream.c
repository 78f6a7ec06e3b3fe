/* Standard input: .npy records behind each other, one for each input that reads them and each batch. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/fp_env.h"
#include "runtime/data/npy.h"
#include "runtime/data/slot.h"

enum { FIRST = 12 }; /* bytes that say how long the head is */

/* A record that is being read. */
typedef struct Record {
    Feed *feed;
    Lane *lane;
    Diag *d;
    Place place;
    Samples array;
    NpyHead head;
    Convert convert;
} Record;

static Status read_bytes(Record *r, void *out, size_t n, size_t *got)
{
    const FeedOptions *o = &r->feed->options;
    char text[128];
    for (*got = 0; *got < n;) {
        const ssize_t k = read(r->feed->ds->options.stream, (char *)out + *got, n - *got);
        if (k < 0 && errno == EINTR) {
            if (o->stopped && o->stopped(o->user))
                return INTERRUPTED;
            continue;
        }
        if (k < 0)
            return fail_as(r->d, IO, r->place, "cannot be read: %s", strerror_r(errno, text, sizeof text));
        if (k == 0)
            return OK;
        *got += (size_t)k;
    }
    return OK;
}

static Status read_exactly(Record *r, void *out, size_t n)
{
    size_t got;
    TRY(read_bytes(r, out, n, &got));
    return got == n ? OK : fail(r->d, r->place, "the stream ends inside a record: %zu bytes of %zu", got, n);
}

/* *ended: there is no further record. */
static Status read_head(Record *r, bool *ended)
{
    uint8_t first[FIRST];
    size_t got;
    Feed *feed = r->feed;
    TRY(read_bytes(r, first, sizeof first, &got));
    *ended = got == 0;
    if (*ended)
        return OK;
    if (got < sizeof first || npy_head_bytes(first) < sizeof first)
        return fail(r->d, r->place, "is no .npy record: numpy.save(sys.stdout.buffer, x) writes one");
    const size_t n = npy_head_bytes(first);
    uint8_t *text = arena_alloc(&feed->arena, n);
    memcpy(text, first, sizeof first);
    TRY(read_exactly(r, text + sizeof first, n - sizeof first));
    const Bytes bytes = bytes_of("-", text, n);
    return npy_head(r->d, feed->ds->limits, &bytes, r->lane->input->type, &r->head);
}

static Status fit_record(Record *r)
{
    const NpyHead *h = &r->head;
    const Dataset *ds = r->feed->ds;
    Samples *s = &r->array;
    DType dtype = h->dtype;
    if (h->unpacked && !dtype_is_float(dtype))
        dtype = dtype_class(dtype) == CLASS_INT ? I8 : U8;
    if (dtype == STRING || dtype_bits(dtype) < 8 || h->rank < 1)
        return fail(r->d, r->place, "is no array of samples");
    *s = (Samples){ .path = "-", .dtype = dtype, .rank = h->rank, .swapped = h->swapped };
    s->width = (size_t)dtype_bits(dtype) / 8;
    memcpy(s->dims, h->dims, (size_t)h->rank * sizeof *h->dims);
    if (s->dims[0] < 1 || s->dims[0] > ds->batch)
        return fail(r->d, r->place, "has %" PRId64 " samples: a batch has %" PRId64, s->dims[0], ds->batch);
    return lane_fit_array((Dataset *)(uintptr_t)ds, r->lane, r->d, s, &r->convert);
}

/* The shape fits the model's, so this is at most a few times the bytes of a batch. */
static Status read_elements(Record *r, size_t *bytes)
{
    Feed *feed = r->feed;
    Stream *s = &feed->stream;
    const int64_t n = samples_elements(&r->array);
    if (!checked_mul_size((size_t)n, r->array.width, bytes))
        memory_exhausted(feed->ds->memory);
    if (*bytes > s->cap) {
        heap_free(&feed->heap, s->raw);
        heap_free(&feed->heap, s->turned);
        s->raw = s->turned = NULL;
        s->cap = 0;
        s->raw = heap_alloc(&feed->heap, *bytes);
        s->turned = heap_alloc(&feed->heap, *bytes);
        s->cap = *bytes;
    }
    TRY(read_exactly(r, s->raw, *bytes));
    if (r->array.swapped)
        npy_swap(s->raw, *bytes, r->array.width);
    if (r->head.fortran && r->head.rank > 1) {
        npy_reorder(s->turned, s->raw, &r->head, n, r->array.width);
        memcpy(s->raw, s->turned, *bytes);
    }
    return OK;
}

static Status convert_record(Record *r, Slot *slot, Tensor *out)
{
    Fault f = { 0 };
    int64_t element;
    Status status = OK;
    const Stream *s = &r->feed->stream;
    const size_t sample = (size_t)r->convert.n * r->array.width;
    const FpEnv was = fp_env_enter();
    for (int64_t i = 0; status == OK && i < slot->rows; i++)
        status = convert_sample(&r->convert, (char *)s->raw + (size_t)(i % slot->valid) * sample, s->turned, out,
                                i * r->convert.n, &f, &element);
    fp_env_leave(was);
    if (status == OK)
        return OK;
    (void)fault_where(&f, "record %" PRId64, s->records);
    return fault_send(&f, r->d);
}

static Status read_record(Feed *feed, size_t input, Slot *slot, Diag *d, int64_t *rows)
{
    size_t bytes;
    bool ended;
    Record r = { .feed = feed, .lane = &feed->ds->lanes[input], .d = d };
    Stream *s = &feed->stream;
    r.place = (Place){ .file = "-", .where = arena_printf(d->arena, "record %" PRId64, s->records), .byte = -1 };
    TRY(read_head(&r, &ended));
    if (ended) {
        s->ended = true;
        return *rows < 0 ? OK
                         : fail(d, r.place, "is missing: each batch has one for every input that reads the stream");
    }
    TRY(fit_record(&r));
    if (*rows >= 0 && r.array.dims[0] != *rows)
        return fail(d, r.place, "has %" PRId64 " samples, the one before has %" PRId64, r.array.dims[0], *rows);
    *rows = r.array.dims[0];
    TRY(read_elements(&r, &bytes));
    slot->valid = *rows;
    slot->rows = feed->options.last == FEED_PAD ? feed->ds->batch : *rows;
    TRY(convert_record(&r, slot, slot->full[input]));
    s->records++;
    return OK;
}

Status stream_fill(Feed *feed, Slot *slot, Diag *d)
{
    Stream *s = &feed->stream;
    const Dataset *ds = feed->ds;
    int64_t rows;
    do {
        rows = -1;
        for (size_t i = 0; i < ds->n && !s->ended; i++)
            if (ds->lanes[i].kind == LANE_STREAM) {
                const ArenaMark mark = arena_mark(&feed->arena);
                TRY(read_record(feed, i, slot, d, &rows));
                arena_reset(&feed->arena, mark);
            }
    } while (!s->ended && rows < ds->batch && feed->options.last == FEED_DROP);
    if (s->ended) {
        slot->rows = slot->valid = 0;
        return OK;
    }
    slot->in_tail = slot->rows < ds->batch;
    if (slot->in_tail)
        slot_rows(feed, slot, slot->rows);
    for (int64_t i = 0; i < slot->rows; i++)
        slot->samples[i] = s->samples + i % rows;
    s->samples += rows;
    s->batches++;
    return OK;
}
