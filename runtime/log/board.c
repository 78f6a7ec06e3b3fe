#include "runtime/log/board.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"

/* ---- messages: tensorflow.Event, its Summary and SessionLog ---- */

enum { VARINT = 0, WIDE = 1, BYTES = 2, NARROW = 5 };
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_HISTOGRAM = 5, SESSION_STATUS = 1, SESSION_START = 1 };

static void put_little(Text *t, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        text_char(t, (char)(v >> 8 * i));
}

static void put_varint(Text *t, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        text_char(t, (char)(v | 0x80));
    text_char(t, (char)v);
}

static void put_wide(Text *t, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_little(t, bits, 8);
}

static void put_key(Text *t, int field, int wire)
{
    put_varint(t, (uint64_t)(field << 3 | wire));
}

static void put_bytes(Text *t, int field, const void *bytes, size_t n)
{
    put_key(t, field, BYTES);
    put_varint(t, n);
    text_bytes(t, bytes, n);
}

static void begin_event(Text *t, double wall_time, int64_t step)
{
    put_key(t, EVENT_WALL_TIME, WIDE);
    put_wide(t, wall_time);
    if (step) {
        put_key(t, EVENT_STEP, VARINT);
        put_varint(t, (uint64_t)step);
    }
}

static void put_scalar(Text *summary, Arena *arena, const BoardScalar *s)
{
    Text value;
    uint32_t bits;
    memcpy(&bits, &s->value, sizeof bits);
    text_open(&value, arena);
    put_bytes(&value, VALUE_TAG, s->tag, strlen(s->tag));
    put_key(&value, VALUE_SIMPLE, NARROW);
    put_little(&value, bits, 4);
    put_bytes(summary, SUMMARY_VALUE, value.p, value.n);
}

/* HistogramProto: least, most, how many, their sum and that of their squares, the ends of buckets, what is in each. */
static void put_histogram(Text *summary, Arena *arena, const BoardHistogram *h)
{
    enum { FIRST = 1, LIMITS = 6, COUNTS = 7 };
    const double numbers[] = { h->least, h->most, h->n, h->sum, h->squares };
    const double width = h->most / BOARD_BUCKETS - h->least / BOARD_BUCKETS;
    Text value, histogram, limits, counts;
    text_open(&value, arena);
    text_open(&histogram, arena);
    text_open(&limits, arena);
    text_open(&counts, arena);
    for (int i = 0; i < (int)COUNT(numbers); i++) {
        put_key(&histogram, FIRST + i, WIDE);
        put_wide(&histogram, numbers[i]);
    }
    for (int i = 0; i < BOARD_BUCKETS; i++) {
        put_wide(&limits, i + 1 < BOARD_BUCKETS ? h->least + width * (i + 1) : h->most);
        put_wide(&counts, h->bucket[i]);
    }
    put_bytes(&histogram, LIMITS, limits.p, limits.n);
    put_bytes(&histogram, COUNTS, counts.p, counts.n);
    put_bytes(&value, VALUE_TAG, h->tag, strlen(h->tag));
    put_bytes(&value, VALUE_HISTOGRAM, histogram.p, histogram.n);
    put_bytes(summary, SUMMARY_VALUE, value.p, value.n);
}

/* ---- records ---- */

static uint32_t masked(const void *bytes, size_t n)
{
    const uint32_t c = crc32c(bytes, n);
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

static Status lost(Board *b, int error, off_t before)
{
    char text[128];
    if (before >= 0 && ftruncate(b->fd, before) != 0) { /* then its last record is cut, which readers pass over */
    }
    b->lost = b->goes_on;
    if (!b->goes_on)
        return file_failed(b->diag, b->path, "cannot be written", error);
    return warn(b->diag, (Place){ .file = b->path, .byte = -1 }, "cannot be written: %s: the run goes on without it",
                strerror_r(error, text, sizeof text));
}

void board_go_on(Board *b)
{
    b->goes_on = true;
}

static Status put_record(Board *b, const Text *event)
{
    Text t;
    if (b->lost)
        return OK;
    const off_t before = lseek(b->fd, 0, SEEK_END);
    text_open(&t, &b->record);
    put_little(&t, event->n, 8);
    put_little(&t, masked(t.p, 8), 4);
    text_bytes(&t, event->p, event->n);
    put_little(&t, masked(event->p, event->n), 4);
    for (size_t done = 0; done < t.n;) {
        const ssize_t got = file_write_quietly(b->fd, t.p + done, t.n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return lost(b, got < 0 ? errno : ENOSPC, before);
        done += (size_t)got;
    }
    return OK;
}

static Status begin_file(Board *b, double wall_time, int64_t resumed)
{
    static const char version[] = "brain.Event:2";
    Text event;
    text_open(&event, &b->record);
    begin_event(&event, wall_time, 0);
    put_bytes(&event, EVENT_FILE_VERSION, version, sizeof version - 1);
    TRY(put_record(b, &event));
    if (resumed < 0)
        return OK;
    const char start[] = { SESSION_STATUS << 3 | VARINT, SESSION_START };
    event.n = 0;
    begin_event(&event, wall_time, resumed + 1); /* the first step that is said anew */
    put_bytes(&event, EVENT_SESSION_LOG, start, sizeof start);
    return put_record(b, &event);
}

/* ---- the file ---- */

static const char *host_name(Arena *arena)
{
    char host[65] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !host[0])
        strcpy(host, "host");
    for (char *p = host; *p; p++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_", *p))
            *p = '_';
    return arena_string(arena, host);
}

static Status create(Board *b, const char *folder, double wall_time)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return file_failed(b->diag, folder, "cannot be made", errno);
    for (int i = 0;; i++) {
        b->path = arena_printf(&b->arena, "%s/events.out.tfevents.%010" PRId64 ".%s.%ld.%d", folder, (int64_t)wall_time,
                               host_name(&b->arena), (long)getpid(), i);
        b->fd = file_above_standard(open(b->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (b->fd >= 0)
            return OK;
        if (errno != EEXIST)
            return file_failed(b->diag, b->path, "cannot be written", errno);
    }
}

static void undo(void *thing)
{
    Board *b = thing;
    close(b->fd);
}

Status board_open(Board *b, Memory *memory, Diag *diag, const char *folder, double wall_time, int64_t resumed)
{
    Cleanup cleanup;
    *b = (Board){ .diag = diag, .fd = -1 };
    arena_open(&b->arena, memory);
    arena_open(&b->record, memory);
    Status status = create(b, folder, wall_time);
    if (status == OK) {
        cleanup_push(memory, &cleanup, undo, b);
        status = begin_file(b, wall_time, resumed);
        cleanup_drop(&cleanup);
    }
    arena_keep(&b->arena);
    arena_keep(&b->record);
    if (status != OK)
        board_close(b);
    return status;
}

/* Writes an event with a summary, whose memory goes back to the mark. */
static Status put_summary(Board *b, double wall_time, int64_t step, const Text *summary, ArenaMark mark)
{
    Text event;
    text_open(&event, &b->record);
    begin_event(&event, wall_time, step);
    put_bytes(&event, EVENT_SUMMARY, summary->p, summary->n);
    const Status status = put_record(b, &event);
    arena_reset(&b->record, mark);
    return status;
}

Status board_scalars(Board *b, double wall_time, int64_t step, const BoardScalar *scalars, size_t n)
{
    Text summary;
    const ArenaMark mark = arena_mark(&b->record);
    text_open(&summary, &b->record);
    for (size_t i = 0; i < n; i++)
        put_scalar(&summary, &b->record, &scalars[i]);
    return put_summary(b, wall_time, step, &summary, mark);
}

Status board_histograms(Board *b, double wall_time, int64_t step, const BoardHistogram *histograms, size_t n)
{
    Text summary;
    const ArenaMark mark = arena_mark(&b->record);
    text_open(&summary, &b->record);
    for (size_t i = 0; i < n; i++)
        put_histogram(&summary, &b->record, &histograms[i]);
    return put_summary(b, wall_time, step, &summary, mark);
}

void board_count(BoardHistogram *h, const char *tag, const Tensor *t)
{
    const int64_t n = tensor_elements(t);
    *h = (BoardHistogram){ .tag = tag };
    for (int64_t i = 0; i < n; i++) {
        const double v = tensor_get_f64(t, i);
        if (!isfinite(v))
            continue;
        h->least = h->n == 0 || v < h->least ? v : h->least;
        h->most = h->n == 0 || v > h->most ? v : h->most;
        h->sum += v;
        h->squares += v * v;
        h->n++;
    }
    const double width = h->most / BOARD_BUCKETS - h->least / BOARD_BUCKETS;
    for (int64_t i = 0; i < n; i++) {
        const double v = tensor_get_f64(t, i);
        const double at = width > 0 ? (v - h->least) / width : 0;
        if (isfinite(v))
            h->bucket[at < BOARD_BUCKETS - 1 ? (int)at : BOARD_BUCKETS - 1]++;
    }
}

void board_close(Board *b)
{
    if (!b->diag)
        return;
    if (b->fd >= 0)
        close(b->fd);
    arena_close(&b->record);
    arena_close(&b->arena);
    *b = (Board){ 0 };
}
