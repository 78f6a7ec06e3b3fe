#include "frontends/onnx/file/payload.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/pack.h"
#include "frontends/onnx/file/external.h"
#include "ops/card/schema.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are read as they are stored");

typedef enum Store { IN_FLOAT, IN_INT32, IN_STRING, IN_INT64, IN_DOUBLE, IN_UINT64, STORES, IN_RAW = STORES } Store;

/* How elements of a type are kept when they are not raw: in which field, as how many values each, in which range.
 * Types of 2 and 4 bits are kept as the bytes they are packed into, those of 6 bits one to a value. */
typedef struct Form {
    uint8_t bits;
    uint8_t store;
    uint8_t values;
    int64_t low, high;
} Form;

/* clang-format off */
static const Form forms[ONNX_TYPES] = {
    [ONNX_FLOAT]          = { 32,  IN_FLOAT,  1, 0, 0 },
    [ONNX_UINT8]          = { 8,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_INT8]           = { 8,   IN_INT32,  1, INT8_MIN, INT8_MAX },
    [ONNX_UINT16]         = { 16,  IN_INT32,  1, 0, UINT16_MAX },
    [ONNX_INT16]          = { 16,  IN_INT32,  1, INT16_MIN, INT16_MAX },
    [ONNX_INT32]          = { 32,  IN_INT32,  1, INT32_MIN, INT32_MAX },
    [ONNX_INT64]          = { 64,  IN_INT64,  1, INT64_MIN, INT64_MAX },
    [ONNX_STRING]         = { 128, IN_STRING, 1, 0, 0 },
    [ONNX_BOOL]           = { 8,   IN_INT32,  1, 0, 1 },
    [ONNX_FLOAT16]        = { 16,  IN_INT32,  1, 0, UINT16_MAX },
    [ONNX_DOUBLE]         = { 64,  IN_DOUBLE, 1, 0, 0 },
    [ONNX_UINT32]         = { 32,  IN_UINT64, 1, 0, UINT32_MAX },
    [ONNX_UINT64]         = { 64,  IN_UINT64, 1, INT64_MIN, INT64_MAX },
    [ONNX_COMPLEX64]      = { 64,  IN_FLOAT,  2, 0, 0 },
    [ONNX_COMPLEX128]     = { 128, IN_DOUBLE, 2, 0, 0 },
    [ONNX_BFLOAT16]       = { 16,  IN_INT32,  1, 0, UINT16_MAX },
    [ONNX_FLOAT8E4M3FN]   = { 8,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_FLOAT8E4M3FNUZ] = { 8,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_FLOAT8E5M2]     = { 8,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_FLOAT8E5M2FNUZ] = { 8,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_UINT4]          = { 4,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_INT4]           = { 4,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_FLOAT4E2M1]     = { 4,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_FLOAT8E8M0]     = { 8,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_UINT2]          = { 2,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_INT2]           = { 2,   IN_INT32,  1, 0, UINT8_MAX },
    [ONNX_FLOAT6E2M3]     = { 6,   IN_INT32,  1, 0, 63 },
    [ONNX_FLOAT6E3M2]     = { 6,   IN_INT32,  1, 0, 63 },
};
_Static_assert(sizeof(Str) == 16, "a string element is a Str");

static const struct { const char *name; uint8_t wire; } stores[STORES + 1] = {
    [IN_FLOAT]  = { "float_data",  WIRE_FIXED32 },
    [IN_INT32]  = { "int32_data",  WIRE_VARINT },
    [IN_STRING] = { "string_data", WIRE_BYTES },
    [IN_INT64]  = { "int64_data",  WIRE_VARINT },
    [IN_DOUBLE] = { "double_data", WIRE_FIXED64 },
    [IN_UINT64] = { "uint64_data", WIRE_VARINT },
    [IN_RAW]    = { "raw_data",    WIRE_BYTES },
};
/* clang-format on */

typedef struct Stored {
    const ProtobufCBinaryData *spans;
    size_t n;
} Stored;

static Stored stored_in(const Onnx__TensorProto *t, Store store)
{
    switch (store) {
    case IN_FLOAT:
        return (Stored){ t->float_data, t->n_float_data };
    case IN_INT32:
        return (Stored){ t->int32_data, t->n_int32_data };
    case IN_STRING:
        return (Stored){ t->string_data, t->n_string_data };
    case IN_INT64:
        return (Stored){ t->int64_data, t->n_int64_data };
    case IN_DOUBLE:
        return (Stored){ t->double_data, t->n_double_data };
    case IN_UINT64:
        return (Stored){ t->uint64_data, t->n_uint64_data };
    case IN_RAW:
        break;
    }
    return (Stored){ &t->raw_data, t->has_raw_data };
}

static uint64_t stored_bytes(Stored s)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s.n; i++)
        bytes += span_read(s.spans[i].data).length; /* disjoint parts of one file: no overflow */
    return bytes;
}

static Place place_of(const Spine *s, const char *where, const Onnx__TensorProto *t)
{
    return (Place){ .file = s->source.name, .where = where, .byte = t->has_source_at ? (int64_t)t->source_at : -1 };
}

/* ---- what is declared ---- */

Status tensor_info(const Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, TensorInfo *info)
{
    Place place = place_of(s, where, t);
    int64_t elements;

    *info = (TensorInfo){ .dtype = t->data_type, .rank = (int)t->n_dims, .dims = t->dims };
    if (t->data_type <= ONNX_UNDEFINED || t->data_type >= ONNX_TYPES)
        return fail(d, place, "there is no element type %" PRId32, t->data_type);
    for (size_t i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0)
            return fail(d, place, "dimension %zu is negative: %" PRId64, i, t->dims[i]);
        if (t->dims[i] > s->limits.dim)
            return fail(d, place, "dimension %zu, %" PRId64 ", exceeds the limit dim (%" PRId64 ")", i, t->dims[i],
                        s->limits.dim);
    }
    if (!checked_product_i64(t->dims, info->rank, s->limits.elements, &elements) ||
        !checked_bytes_of_bits(elements, forms[t->data_type].bits, &info->bytes))
        return fail(d, place, "the number of elements exceeds the limit elements (%" PRId64 ")", s->limits.elements);
    info->elements = elements;
    return OK;
}

/* ---- what is stored ---- */

/* The values that `info` needs in a typed field. */
static uint64_t values_of(const TensorInfo *info)
{
    const Form *form = &forms[info->dtype];

    return form->bits < 6 ? info->bytes : (uint64_t)info->elements * form->values;
}

/* The values that a span of elements of fixed size holds; for others, how many it may hold at most. */
static uint64_t values_in(Span span, Store store)
{
    uint64_t each = stores[store].wire == WIRE_FIXED32 ? 4 : stores[store].wire == WIRE_FIXED64 ? 8 : 1;

    return span.length / (each + span.keyed); /* the keys of these fields are one byte long */
}

static Status check_typed(const TensorInfo *info, Diag *d, Place place, Store store, Stored stored)
{
    uint64_t want = values_of(info), most = 0;
    bool exact = stores[store].wire == WIRE_FIXED32 || stores[store].wire == WIRE_FIXED64;

    if (store != (Store)forms[info->dtype].store)
        return fail(d, place, "%s cannot hold elements of type %d", stores[store].name, info->dtype);
    for (size_t i = 0; i < stored.n; i++) {
        Span span = span_read(stored.spans[i].data);
        if (exact && !span.keyed && span.length % (stores[store].wire == WIRE_FIXED32 ? 4 : 8))
            return fail(d, place, "%s ends inside a value", stores[store].name);
        most += values_in(span, store);
    }
    if (exact ? most != want : most < want)
        return fail(d, place, "%s holds %s%" PRIu64 " values where the shape needs %" PRIu64, stores[store].name,
                    exact ? "" : "at most ", most, want);
    return OK;
}

/* The one place where elements are; STORES + 1 if there are none. */
static Status find_store(const Onnx__TensorProto *t, Diag *d, Place place, Store *found)
{
    *found = (Store)(STORES + 1);
    for (Store store = 0; store <= IN_RAW; store++) {
        Stored stored = stored_in(t, store);
        if (stored.n == 0 || stored_bytes(stored) == 0)
            continue;
        if (*found <= IN_RAW)
            return fail(d, place, "%s and %s both hold elements", stores[*found].name, stores[store].name);
        *found = store;
    }
    return OK;
}

static bool is_external(const Onnx__TensorProto *t)
{
    return t->has_data_location && t->data_location == 1;
}

static Status check_store(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, const TensorInfo *info,
                          Store *store)
{
    Place place = place_of(s, where, t);

    if (t->segment)
        return fail_as(d, UNSUPPORTED, place, "tensors in segments are not supported");
    if (t->data_location < 0 || t->data_location > 1)
        return fail(d, place, "there is no data_location %" PRId32, t->data_location);
    TRY(find_store(t, d, place, store));
    if (is_external(t)) {
        if (*store <= IN_RAW)
            return fail(d, place, "%s holds elements and the data is external", stores[*store].name);
        if (info->dtype == ONNX_STRING)
            return fail(d, place, "strings cannot be external");
        return OK;
    }
    if (*store > IN_RAW && info->elements > 0)
        return fail(d, place, "%" PRId64 " elements are declared and none are stored", info->elements);
    if (*store < IN_RAW)
        return check_typed(info, d, place, *store, stored_in(t, *store));
    if (*store == IN_RAW && info->dtype == ONNX_STRING)
        return fail(d, place, "raw_data cannot hold strings");
    uint64_t bytes = *store == IN_RAW ? stored_bytes(stored_in(t, IN_RAW)) : 0;
    if (bytes != info->bytes)
        return fail(d, place, "raw_data has %" PRIu64 " bytes where the shape needs %zu", bytes, info->bytes);
    return OK;
}

Status tensor_check(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, const TensorInfo *info)
{
    Store store;

    TRY(check_store(s, d, where, t, info, &store));
    return is_external(t) ? external_check(s, d, where, t, info->bytes) : OK;
}

/* ---- reading ---- */

enum { SMALL_WINDOW = 1024 };

typedef struct Reading {
    Spine *spine;
    Diag *diag;
    Place place;
    const Form *form;
    Store store;
    uint8_t *out;
    uint64_t n, want; /* values read, values wanted */
    Window window;
    uint8_t buffer[SMALL_WINDOW];
} Reading;

static Status too_many(Reading *r)
{
    return fail(r->diag, r->place, "%s holds more than the %" PRIu64 " values that the shape needs",
                stores[r->store].name, r->want);
}

static Status read_varint(Reading *r, uint64_t *at, uint64_t end, uint64_t *value)
{
    const uint8_t *p;
    size_t n = end - *at < 10 ? (size_t)(end - *at) : 10;

    TRY(window_at(&r->window, *at, n, &p));
    int used = varint_read(p, n, value);
    if (used <= 0) {
        r->place.byte = (int64_t)*at;
        return fail(r->diag, r->place, "%s: a number is malformed", stores[r->store].name);
    }
    *at += (unsigned)used;
    return OK;
}

/* A value of 32 bits may be written sign-extended, as the format says, or not, as some writers do. */
static Status store_integer(Reading *r, uint64_t value)
{
    unsigned width = r->form->bits < 8 ? 1 : r->form->bits / 8;
    int64_t v = (int64_t)value;

    if (r->form->low == INT32_MIN && v > INT32_MAX && v <= UINT32_MAX)
        v = (int32_t)v;
    if (v < r->form->low || v > r->form->high)
        return fail(r->diag, r->place, "%s: value %" PRIu64 " is %" PRId64 ", outside %" PRId64 " to %" PRId64,
                    stores[r->store].name, r->n, v, r->form->low, r->form->high);
    if (r->form->bits == 6)
        packed_put6(r->out, r->n, (uint8_t)v);
    else
        memcpy(r->out + r->n * width, &v, width);
    return OK;
}

static Status read_fixed(Reading *r, Span span)
{
    unsigned width = stores[r->store].wire == WIRE_FIXED32 ? 4 : 8;
    const uint8_t *p;

    if (!span.keyed) { /* check_typed has counted: it fits */
        TRY(source_read(&r->spine->source, r->diag, span.offset, r->out + r->n * width, (size_t)span.length));
        r->n += span.length / width;
        return OK;
    }
    for (uint64_t at = span.offset; at < span.offset + span.length; at += width + 1, r->n++) {
        TRY(window_at(&r->window, at + 1, width, &p));
        memcpy(r->out + r->n * width, p, width);
    }
    return OK;
}

static Status read_integers(Reading *r, Span span)
{
    uint64_t end = span.offset + span.length, value;

    for (uint64_t at = span.offset; at < end; r->n++) {
        at += span.keyed;
        if (r->n == r->want)
            return too_many(r);
        TRY(read_varint(r, &at, end, &value));
        TRY(store_integer(r, value));
    }
    return OK;
}

static Status read_strings(Reading *r, Span span)
{
    uint64_t end = span.offset + span.length, n;

    for (uint64_t at = span.offset; at < end; at += n, r->n++) {
        at++;
        if (r->n == r->want)
            return too_many(r);
        TRY(read_varint(r, &at, end, &n));
        if ((int64_t)n > r->spine->limits.string_bytes)
            return fail(r->diag, r->place, "string %" PRIu64 " exceeds the limit string_bytes (%" PRId64 ")", r->n,
                        r->spine->limits.string_bytes);
        char *text = arena_alloc(&r->spine->arena, (size_t)n + 1);
        TRY(source_read(&r->spine->source, r->diag, at, text, (size_t)n));
        ((Str *)(void *)r->out)[r->n] = (Str){ text, (size_t)n };
    }
    return OK;
}

static Status read_typed(Reading *r, Stored stored)
{
    window_over(&r->window, &r->spine->source, r->diag, r->buffer, sizeof r->buffer);
    for (size_t i = 0; i < stored.n; i++) {
        Span span = span_read(stored.spans[i].data);
        if (stores[r->store].wire == WIRE_VARINT)
            TRY(read_integers(r, span));
        else if (r->store == IN_STRING)
            TRY(read_strings(r, span));
        else
            TRY(read_fixed(r, span));
    }
    if (r->n < r->want)
        return fail(r->diag, r->place, "%s holds %" PRIu64 " values where the shape needs %" PRIu64,
                    stores[r->store].name, r->n, r->want);
    return OK;
}

static Status check_bools(Diag *d, Place place, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] > 1)
            return fail(d, place, "element %zu is a bool of value %d", i, p[i]);
    return OK;
}

Status tensor_read(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, void *out, size_t bytes)
{
    TensorInfo info;
    Store store;

    TRY(tensor_info(s, d, where, t, &info));
    TRY(check_store(s, d, where, t, &info, &store));
    if (bytes != info.bytes)
        return fail_as(d, INTERNAL, place_of(s, where, t), "%zu bytes are wanted of a tensor of %zu", bytes,
                       info.bytes);
    if (is_external(t)) {
        TRY(external_read(s, d, where, t, out, bytes));
    } else if (store == IN_RAW) {
        Span span = span_read(t->raw_data.data);
        TRY(source_read(&s->source, d, span.offset, out, bytes));
    } else if (store < IN_RAW) {
        Reading r = { .spine = s, .diag = d, .place = place_of(s, where, t), .form = &forms[info.dtype] };
        r.store = store;
        r.out = out;
        r.want = values_of(&info);
        if (r.form->bits < 8) /* bits behind the last element are 0, whatever the memory held */
            memset(out, 0, bytes);
        return read_typed(&r, stored_in(t, store));
    }
    return info.dtype == ONNX_BOOL ? check_bools(d, place_of(s, where, t), out, bytes) : OK;
}

/* ---- for the graph ---- */

typedef struct ProtoPayload {
    Payload payload;
    const Onnx__TensorProto *proto;
    const char *where;
} ProtoPayload;

static Status read_payload(Payload *self, void *out, size_t bytes, Diag *diag)
{
    const ProtoPayload *p = (const ProtoPayload *)self;
    Spine *s = self->owner;

    TRY(tensor_read(s, diag, p->where, p->proto, out, bytes));
    return source_unchanged(&s->source, diag); /* bytes of another file are not what was checked */
}

/* A part of the bytes as the file has them: of what lies in raw_data or outside. */
static Status read_part_of_payload(Payload *self, uint64_t at, void *out, size_t bytes, Diag *diag)
{
    const ProtoPayload *p = (const ProtoPayload *)self;
    Spine *s = self->owner;
    TensorInfo info;
    Store store;

    TRY(tensor_info(s, diag, p->where, p->proto, &info));
    TRY(check_store(s, diag, p->where, p->proto, &info, &store));
    if (at > info.bytes || bytes > info.bytes - at)
        return fail_as(diag, INTERNAL, place_of(s, p->where, p->proto), "bytes beyond a tensor of %zu", info.bytes);
    if (is_external(p->proto))
        TRY(external_read_part(s, diag, p->where, p->proto, info.bytes, at, out, bytes));
    else
        TRY(source_read(&s->source, diag, span_read(p->proto->raw_data.data).offset + at, out, bytes));
    return source_unchanged(&s->source, diag);
}

/* Whether the elements lie as bytes, and each of them is one whatever its bits. */
static bool lies_as_bytes(const Onnx__TensorProto *t, const Type *type)
{
    if (type->dtype == STRING || type->dtype == BOOL)
        return false;
    return is_external(t) || t->has_raw_data;
}

Payload *payload_of_proto(Spine *s, Arena *arena, const Type *type, const Onnx__TensorProto *t, const char *where)
{
    ProtoPayload *p = NEW(arena, ProtoPayload);

    *p = (ProtoPayload){
        .payload = { .type = type,
                     .arena = arena,
                     .name = where,
                     .read = read_payload,
                     .read_part = lies_as_bytes(t, type) ? read_part_of_payload : NULL,
                     .owner = s,
                     .where = t->source_at },
        .proto = t,
        .where = where,
    };
    return &p->payload;
}
