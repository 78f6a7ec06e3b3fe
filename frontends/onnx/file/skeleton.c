#include "base/bytes.h"
#include "frontends/onnx/file/skeleton.h"

#include <inttypes.h>
#include <string.h>

enum { SOURCE_AT = 536870910, SOURCE_SIZE = 536870911 };
#define KEYED (UINT64_C(1) << 63)

typedef struct Skeleton {
    Cuts cuts;
    /* The last cut, if it may go on: a run of fields of this number at this depth (0: of unknown fields). */
    bool goes_on;
    uint32_t number;
    int depth;
    uint8_t *to; /* of cuts_write */
} Skeleton;

static void put_u64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

Span span_read(const uint8_t *p)
{
    uint64_t length = get_u64(p + 8);

    return (Span){ .offset = get_u64(p), .length = length & ~KEYED, .keyed = length & KEYED };
}

static Cut *last(Skeleton *s)
{
    return &s->cuts.cut[s->cuts.n - 1];
}

/* Lengthens the last cut if this field goes on where it ends. */
static bool extend_run(Skeleton *s, const WireItem *item, uint32_t number)
{
    if (!s->goes_on || s->number != number || s->depth != item->depth || last(s)->at + last(s)->length != item->key)
        return false;
    cuts_extend(&s->cuts, item->end - item->key);
    return true;
}

static void begin_run(Skeleton *s, const WireItem *item, uint32_t number)
{
    s->goes_on = true;
    s->number = number;
    s->depth = item->depth;
}

static void cut_run(Skeleton *s, const WireItem *item)
{
    uint8_t head[CUT_HEAD];

    if (!extend_run(s, item, item->number)) {
        int n = varint_write(head, (uint64_t)item->number << 3 | WIRE_BYTES);
        n += varint_write(head + n, SPAN_BYTES);
        put_u64(head + n, item->key);
        cuts_add(&s->cuts, item->key, item->end - item->key, head, (size_t)n + SPAN_BYTES, NULL);
        begin_run(s, item, item->number);
    }
    put_u64(last(s)->head + last(s)->n_head - 8, last(s)->length | KEYED);
}

static void cut_value(Skeleton *s, const WireItem *item)
{
    uint64_t prefix = (uint64_t)varint_size(item->end - item->at);
    uint8_t head[CUT_HEAD];
    int n = varint_write(head, SPAN_BYTES);

    put_u64(head + n, item->at);
    put_u64(head + n + 8, item->end - item->at);
    cuts_add(&s->cuts, item->at - prefix, item->end - item->at + prefix, head, (size_t)n + SPAN_BYTES, NULL);
    s->goes_on = false;
}

static Status on_leaf(void *user, const WireItem *item)
{
    Skeleton *s = user;

    if (!item->field) {
        if (!extend_run(s, item, 0)) {
            cuts_add(&s->cuts, item->key, item->end - item->key, NULL, 0, NULL);
            begin_run(s, item, 0);
        }
    } else if (item->rule && item->rule->kind == FIELD_PAYLOAD) {
        bool one = item->field->label != PROTOBUF_C_LABEL_REPEATED; /* raw_data */
        if (one || (item->wire == WIRE_BYTES && item->rule->element != WIRE_BYTES))
            cut_value(s, item);
        else
            cut_run(s, item);
    }
    return OK;
}

static bool has_source(const ProtobufCMessageDescriptor *type)
{
    return protobuf_c_message_descriptor_get_field(type, SOURCE_AT) != NULL;
}

static size_t source_fields(uint8_t *p, uint64_t at, uint64_t end)
{
    int n = varint_write(p, (uint64_t)SOURCE_AT << 3 | WIRE_FIXED64);

    put_u64(p + n, at);
    n += 8;
    n += varint_write(p + n, (uint64_t)SOURCE_SIZE << 3 | WIRE_FIXED64);
    put_u64(p + n, end - at);
    return (size_t)n + 8;
}

static Status on_enter(void *user, const WireItem *item, bool *skip)
{
    Skeleton *s = user;
    uint8_t extra[CUT_HEAD];
    size_t n = has_source(item->field->descriptor) ? source_fields(extra, item->at, item->end) : 0;

    (void)skip;
    cuts_enter(&s->cuts, item, extra, n);
    s->goes_on = false;
    return OK;
}

static Status on_leave(void *user, const WireItem *item)
{
    Skeleton *s = user;

    cuts_leave(&s->cuts, item);
    s->goes_on = false;
    return OK;
}

static Status append(void *user, const void *bytes, size_t n)
{
    Skeleton *s = user;

    bytes_copy(s->to, bytes, n);
    s->to += n;
    return OK;
}

static Status make(const Wire *wire, Arena *keep, const uint8_t **bytes, size_t *n)
{
    Skeleton s = { 0 };
    Wire own = *wire;
    uint8_t extra[CUT_HEAD];

    own.visitor = (WireVisitor){ on_leaf, on_enter, on_leave, &s };
    cuts_open(&s.cuts, wire->arena);
    if (has_source(wire->type))
        cuts_add(&s.cuts, 0, 0, extra, source_fields(extra, 0, wire->source->size), NULL);
    TRY(wire_walk(&own));

    uint64_t size = cuts_size(&s.cuts, wire->source->size);
    if (size > INT32_MAX || size > (uint64_t)wire->limits->parse_bytes)
        return fail(wire->diag, (Place){ .file = wire->source->name, .byte = -1 },
                    "%" PRIu64 " bytes besides weights exceed the limit parse_bytes (%" PRId64 ")", size,
                    wire->limits->parse_bytes);
    *n = (size_t)size;
    *bytes = s.to = arena_alloc(keep, *n);
    TRY(cuts_write(&s.cuts, wire->source, wire->diag, &(Sink){ append, &s }));
    BUG_IF(wire->arena->memory, s.to != *bytes + *n);
    return OK;
}

/* The cuts take more memory than the skeleton; they are gone before anyone unpacks it. */
Status skeleton_make(const Wire *wire, const uint8_t **bytes, size_t *n)
{
    Arena scratch;
    Wire own = *wire;

    arena_open(&scratch, wire->arena->memory);
    own.arena = &scratch;
    Status status = make(&own, wire->arena, bytes, n);
    arena_close(&scratch);
    return status;
}
