#include "runtime/data/samples.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/foreign.h"
#include "ir/store/safetensors.h"
#include "runtime/data/formats.h"

enum { SMALL = 16 << 20 }; /* bytes: what is smaller is read at once */

Status opening_fail(Opening *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(o->d->arena, format, args);
    va_end(args);
    return fail(o->d, o->place, "%s", text);
}

void *opening_hold(Opening *o, uint64_t n)
{
    uint64_t *held = o->q->held;
    const uint64_t most = (uint64_t)o->q->limits->data_bytes;
    if (n > most || *held > most - n) {
        (void)opening_fail(o,
                           "%" PRIu64 " bytes are to be held in memory, more than the limit data_bytes (%" PRIu64 ")",
                           *held + n < n ? UINT64_MAX : *held + n, most);
        return NULL;
    }
    *held += n;
    return heap_alloc(&o->s->heap, n ? (size_t)n : 1);
}

Status opening_array(Opening *o, DType dtype, int rank, const int64_t *dims, const Bytes *elements)
{
    Samples *s = o->s;
    int64_t n;
    size_t bytes;
    s->dtype = dtype;
    s->rank = rank;
    memcpy(s->dims, dims, (size_t)rank * sizeof *dims);
    if (dtype == STRING || dtype_bits(dtype) < 8)
        return fail_as(o->d, UNSUPPORTED, o->place, "holds %s: samples of that type are not read", dtype_name(dtype));
    s->width = (size_t)dtype_bits(dtype) / 8;
    if (!checked_product_i64(dims, rank, o->q->limits->elements, &n))
        return opening_fail(o, "more elements than the limit elements (%" PRId64 ")", o->q->limits->elements);
    if (!checked_mul_size((size_t)n, s->width, &bytes) || bytes > elements->size)
        return opening_fail(o, "ends before its %" PRId64 " elements do", n);
    if (rank == 0)
        return opening_fail(o, "holds one number, no samples");
    s->elements = bytes_part(elements, 0, bytes);
    return OK;
}

/* ---- which array of several ---- */

static bool is_named(const char *name, const char *wanted, const char *end)
{
    const size_t n = strlen(name), w = strlen(wanted), e = strlen(end);
    return strcmp(name, wanted) == 0 || (n == w + e && memcmp(name, wanted, w) == 0 && memcmp(name + w, end, e) == 0);
}

static Status tell_choice(Opening *o, size_t n, const char *const *names, const char *end)
{
    const DataSpec *spec = o->q->spec;
    Message *m = spec->key ? message_new(o->d, SEVERITY_ERROR, USAGE, o->place, "holds no array '%s'", spec->key)
                           : message_new(o->d, SEVERITY_ERROR, USAGE, o->place, "holds %zu arrays: which one?", n);
    for (size_t i = 0; i < n; i++)
        message_at(m, "%s", names[i]);
    if (n && !spec->key) {
        const size_t length = strlen(names[0]), e = strlen(end);
        const int shown = (int)(length > e && strcmp(names[0] + length - e, end) == 0 ? length - e : length);
        message_try(
            m, "%s",
            data_spec_with(o->d->arena, spec, o->q->input, arena_printf(o->d->arena, "key=%.*s", shown, names[0])));
    }
    return message_send(m);
}

Status opening_choose(Opening *o, size_t n, const char *const *names, const char *end, size_t *chosen)
{
    const char *wanted = o->q->spec->key ? o->q->spec->key : n > 1 ? o->q->input : NULL;
    if (n == 1 && !o->q->spec->key) {
        *chosen = 0;
        return OK;
    }
    for (size_t i = 0; wanted && i < n; i++)
        if (is_named(names[i], wanted, end)) {
            *chosen = i;
            return OK;
        }
    return n ? tell_choice(o, n, names, end) : opening_fail(o, "holds no arrays");
}

/* ---- what is no data ---- */

enum { SURE = 4 }; /* bytes of a magic that raw numbers do not begin with by chance */

static Status refuse(Opening *o, const char *what, const char *advice)
{
    Message *m = message_new(o->d, SEVERITY_ERROR, INVALID, o->place, "%s", what);
    if (advice)
        message_try(m, "%s", advice);
    return message_send(m);
}

Status opening_torch(Opening *o)
{
    return refuse(o, arena_printf(o->d->arena, "was %s", foreign_torch()->what), foreign_torch()->for_data);
}

static Status refuse_foreign(Opening *o, bool may_be_raw)
{
    const Foreign *f = foreign_find(o->head, o->n_head, may_be_raw ? SURE : 1);
    if (!f || f->is_data)
        return OK;
    return f == foreign_torch() ? opening_torch(o)
                                : refuse(o, arena_printf(o->d->arena, "is %s", f->what), f->for_data);
}

/* ---- which form ---- */

static bool has_end(const Opening *o, const char *end)
{
    const size_t n = strlen(o->s->path), e = strlen(end);
    return n >= e && strcmp(o->s->path + n - e, end) == 0;
}

static bool is_npy(const Opening *o)
{
    return npy_is(o->head, o->n_head) || has_end(o, ".npy");
}

static bool is_zip(const Opening *o)
{
    return (o->n_head >= 4 && (memcmp(o->head, "PK\x03\x04", 4) == 0 || memcmp(o->head, "PK\x05\x06", 4) == 0)) ||
           has_end(o, ".npz");
}

static bool is_gzip(const Opening *o)
{
    return (o->n_head >= 2 && o->head[0] == 0x1f && o->head[1] == 0x8b) || has_end(o, ".gz");
}

static bool is_idx(const Opening *o)
{
    return has_end(o, ".idx") || idx_is(o->head, o->n_head, o->s->file.size);
}

static bool is_safetensors(const Opening *o)
{
    return has_end(o, ".safetensors") || safetensors_is(o->head, o->n_head);
}

static bool is_csv(const Opening *o)
{
    return has_end(o, ".csv");
}

static bool is_proto(const Opening *o)
{
    return has_end(o, ".pb");
}

/* Numbers without a shape of their own. */
static bool is_bare(const Opening *o)
{
    return has_end(o, ".bin") || has_end(o, ".raw") || data_given(o->q->spec, DATA_dtype);
}

/* Of those, a row of tokens: it says so itself, or integers are to become windows of integers. */
static bool is_tokens(const Opening *o)
{
    const DataSpec *spec = o->q->spec;
    const Type *t = o->q->wanted;
    const DType dtype = data_given(spec, DATA_dtype) ? spec->dtype : U16;
    const bool fits =
        t ? dtype_is_integer(dtype) && dtype_is_integer(t->dtype) && t->rank == 2 : dtype == U16 || dtype == U32;
    return tokens_is(o->head, o->n_head) || (has_end(o, ".bin") && fits && !data_given(spec, DATA_shape));
}

#define BIT(option) (1u << DATA_##option)
/* What makes sense for a stream, and for every file. */
#define STREAM (BIT(shape) | BIT(layout) | BIT(scale) | BIT(mean) | BIT(std))
#define ANY    (STREAM | BIT(rows) | BIT(static))

static const struct {
    const char *name;
    bool (*is)(const Opening *o);
    Status (*open)(Opening *o);
    unsigned options;
    bool bare;
} formats[] = {
    { "tokens", is_tokens, open_tokens, BIT(dtype) | BIT(rows) | BIT(header), true },
    { "raw", is_bare, open_raw, ANY | BIT(dtype) | BIT(header), true },
    { "npy", is_npy, open_npy, ANY | BIT(dtype), false },
    { "npz", is_zip, open_npz, ANY | BIT(dtype) | BIT(key), false },
    { "idx.gz", is_gzip, open_idx_gz, ANY, false },
    { "safetensors", is_safetensors, open_safetensors, ANY | BIT(key), false },
    { "csv", is_csv, open_csv, ANY | BIT(column) | BIT(header), false },
    { "pb", is_proto, open_proto, ANY, false },
    { "idx", is_idx, open_idx, ANY, false },
};

static Status check_options(Diag *d, const DataSpec *spec, const char *form, unsigned allowed)
{
    const Place place = { .file = spec->flag, .where = spec->text, .byte = -1 };
    for (int i = 0; i < DATA_OPTION_COUNT; i++)
        if (data_given(spec, (DataOption)i) && !(allowed >> i & 1))
            return fail_as(d, USAGE, place, "%s is not for files of the form %s", data_option_name((DataOption)i),
                           form);
    return OK;
}

Status samples_stream_options(Diag *d, const DataSpec *spec)
{
    return check_options(d, spec, "-", STREAM);
}

static Status unknown_form(Opening *o)
{
    Message *m = message_new(o->d, SEVERITY_ERROR, INVALID, o->place, "is of no form that we read");
    message_at(m, "known are .npy, .npz, .idx, .idx.gz, .csv, .bin, .pb, .safetensors");
    message_try(m, "%s for raw numbers", data_spec_with(o->d->arena, o->q->spec, o->q->input, "u8,shape=3x32x32"));
    return message_send(m);
}

/* A file that says what it is is that, even where an element type was written. */
static bool says_itself(const Opening *o)
{
    return npy_is(o->head, o->n_head) || (is_zip(o) && !data_given(o->q->spec, DATA_shape)) || is_csv(o) ||
           is_proto(o) || has_end(o, ".safetensors");
}

static Status find_form(Opening *o, size_t *form)
{
    const bool itself = says_itself(o);
    TRY(refuse_foreign(o, is_bare(o) || is_csv(o) || is_proto(o)));
    if (!o->n_head)
        return opening_fail(o, "is empty");
    for (size_t i = 0; i < COUNT(formats); i++)
        if (!(itself && formats[i].bare) && formats[i].is(o)) {
            *form = i;
            return check_options(o->d, o->q->spec, formats[i].name, formats[i].options);
        }
    return unknown_form(o);
}

/* ---- opening ---- */

/* Small arrays are read at once: a batch then asks the system for nothing. */
static Status load_small(Opening *o)
{
    Samples *s = o->s;
    const size_t bytes = (size_t)s->elements.size;
    if (s->elements.p || bytes > SMALL || *o->q->held + bytes > (uint64_t)o->q->limits->data_bytes)
        return OK;
    void *p = opening_hold(o, bytes);
    TRY(bytes_get(&s->elements, o->d, 0, p, bytes));
    s->elements = bytes_of(s->path, p, bytes);
    return OK;
}

static Status open_file(Opening *o)
{
    size_t form = 0;
    Samples *s = o->s;
    TRY(bytes_open(&s->file, o->d, s->path));
    o->n_head = s->file.size < sizeof o->head ? (size_t)s->file.size : sizeof o->head;
    TRY(bytes_get(&s->file, o->d, 0, o->head, o->n_head));
    TRY(find_form(o, &form));
    s->format = formats[form].name;
    TRY(formats[form].open(o));
    return load_small(o);
}

static void close_samples(void *thing)
{
    Samples *s = thing;
    heap_close(&s->heap);
    bytes_close(&s->file);
}

Status samples_open(Samples *s, const SamplesQuery *q)
{
    Opening o = { .q = q, .d = q->d, .s = s };
    *s = (Samples){ .path = arena_string(q->arena, q->spec->path), .file = { .fd = -1 } };
    o.place = (Place){ .file = s->path, .byte = -1 };
    heap_open(&s->heap, q->memory);
    heap_keep(&s->heap); /* its end is ours */
    cleanup_push(q->memory, &s->cleanup, close_samples, s);
    arena_open(&o.scratch, q->memory);
    const MemoryWork before = memory_work(q->memory, memory_tell_text, s->path);
    const Status status = open_file(&o);
    q->memory->work = before;
    arena_close(&o.scratch);
    if (status != OK)
        samples_close(s);
    return status;
}

void samples_close(Samples *s)
{
    cleanup_drop(&s->cleanup);
    close_samples(s);
}

/* ---- reading ---- */

int64_t samples_elements(const Samples *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->dims[i];
    return n;
}

const Type *samples_type(const Samples *s, Types *types)
{
    return type_tensor(types, s->dtype, s->rank, s->dims);
}

Status samples_read(const Samples *s, Fault *f, int64_t first, int64_t n, void *out)
{
    const size_t bytes = (size_t)n * s->width;
    TRY(bytes_read(&s->elements, f, (uint64_t)first * s->width, out, bytes));
    if (s->swapped && s->width > 1)
        npy_swap(out, bytes, s->width);
    return OK;
}
