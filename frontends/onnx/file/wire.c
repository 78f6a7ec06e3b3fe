#include "frontends/onnx/file/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum {
    MOST_FIELDS = 32, /* of a message type of onnx.proto; a larger one must raise it */
    VARINT_MOST = 10,
    DEEPEST = 1000, /* what a host may raise wire_nesting to */
};

struct WireFrame {
    const ProtobufCMessageDescriptor *type;
    const FieldRule *rules;
    size_t n_rules;
    WireItem item; /* how it was entered; the outermost has none */
    uint64_t at, end;
    uint32_t count[MOST_FIELDS]; /* occurrences by position in the descriptor */
};

typedef struct Walk {
    const Wire *wire;
    Window window;
    WireFrame *frames;
    int depth, deepest;
    int64_t total[sizeof(Limits) / sizeof(int64_t)]; /* occurrences that count against a limit of the whole file */
} Walk;

/* ---- varints ---- */

int varint_read(const uint8_t *p, size_t n, uint64_t *value)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n && i < VARINT_MOST; i++) {
        if (i == VARINT_MOST - 1 && p[i] > 1)
            return VARINT_LONG;
        v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            if (p[i] == 0 && i > 0)
                return VARINT_PADDED;
            *value = v;
            return (int)i + 1;
        }
    }
    return VARINT_CUT;
}

int varint_write(uint8_t *p, uint64_t value)
{
    int n = 0;

    for (; value >= 0x80; value >>= 7)
        p[n++] = (uint8_t)(value | 0x80);
    p[n++] = (uint8_t)value;
    return n;
}

int varint_size(uint64_t value)
{
    int n = 1;

    while (value >>= 7)
        n++;
    return n;
}

/* ---- complaints ---- */

static void add_step(Text *path, const WireItem *item)
{
    if (path->n)
        text_char(path, '.');
    if (!item->field) {
        text_printf(path, "field %" PRIu32, item->number);
        return;
    }
    text_add(path, item->field->name);
    if (item->field->label == PROTOBUF_C_LABEL_REPEATED)
        text_printf(path, "[%" PRIu32 "]", item->index);
}

/* The place of `item`, or of the message itself if it is null. */
static Place place_at(const Walk *w, const WireItem *item, uint64_t byte)
{
    Text path;

    text_open(&path, w->wire->diag->arena);
    for (int i = 1; i < w->depth; i++)
        add_step(&path, &w->frames[i].item);
    if (item)
        add_step(&path, item);
    return (Place){ .file = w->wire->source->name, .where = path.n ? text_get(&path) : NULL, .byte = (int64_t)byte };
}

static Status exceeded(const Walk *w, const WireItem *item, size_t limit)
{
    return fail(w->wire->diag, place_at(w, item, item->key), "exceeds the limit %s (%" PRId64 ")", limit_name(limit),
                limit_value(w->wire->limits, limit));
}

static Status bad_varint(const Walk *w, const WireItem *item, uint64_t byte, int complaint)
{
    static const char *const what[] = { "a number is cut off at the end of its message",
                                        "a number of more than 64 bits", "a number is padded with zero bits" };

    return fail(w->wire->diag, place_at(w, item, byte), "%s", what[-complaint]);
}

static Status bad_wire(const Walk *w, const WireItem *item, int expected)
{
    static const char *const what[] = { [WIRE_VARINT] = "a varint is",
                                        [WIRE_FIXED64] = "64 bits are",
                                        [WIRE_BYTES] = "bytes are",
                                        [WIRE_FIXED32] = "32 bits are" };

    return fail(w->wire->diag, place_at(w, item, item->key), "wire type %d where %s expected", item->wire,
                what[expected]);
}

/* ---- one field ---- */

static Status read_varint(Walk *w, const WireItem *item, uint64_t *at, uint64_t end, uint64_t *value)
{
    const uint8_t *p;
    size_t n = end - *at < VARINT_MOST ? (size_t)(end - *at) : VARINT_MOST;

    TRY(window_at(&w->window, *at, n, &p));
    int used = varint_read(p, n, value);
    if (used <= 0)
        return bad_varint(w, item, *at, used);
    *at += (unsigned)used;
    return OK;
}

static int wire_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_ENUM:
        break;
    }
    return WIRE_VARINT;
}

static bool is_payload(const WireItem *item)
{
    return item->rule && item->rule->kind == FIELD_PAYLOAD;
}

static bool is_packed(const WireItem *item)
{
    return item->field && item->wire == WIRE_BYTES && item->field->label == PROTOBUF_C_LABEL_REPEATED &&
           wire_of(item->field) != WIRE_BYTES;
}

/* Key, length and extent; what the schema says of the number. */
static Status read_header(Walk *w, WireFrame *f, WireItem *item)
{
    uint64_t key, value;

    *item = (WireItem){ .key = f->at, .at = f->at, .end = f->at, .depth = w->depth };
    TRY(read_varint(w, NULL, &item->at, f->end, &key));
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return fail(w->wire->diag, place_at(w, NULL, item->key), "field number %" PRIu64 " does not exist", key >> 3);
    item->number = (uint32_t)(key >> 3);
    item->wire = key & 7;
    item->field = protobuf_c_message_descriptor_get_field(f->type, item->number);
    for (size_t i = 0; i < f->n_rules; i++)
        if (f->rules[i].number == item->number)
            item->rule = &f->rules[i];
    if (item->rule && item->rule->kind == FIELD_SOURCE)
        item->field = NULL, item->rule = NULL;

    switch (item->wire) {
    case WIRE_VARINT:
        item->end = item->at;
        TRY(read_varint(w, item, &item->end, f->end, &value));
        if (item->field && item->field->type == PROTOBUF_C_TYPE_INT32 && (int64_t)value != (int32_t)value)
            return fail(w->wire->diag, place_at(w, item, item->at), "%" PRId64 " does not fit in 32 bits",
                        (int64_t)value);
        return OK;
    case WIRE_FIXED32:
    case WIRE_FIXED64:
        value = item->wire == WIRE_FIXED32 ? 4 : 8;
        break;
    case WIRE_BYTES:
        TRY(read_varint(w, item, &item->at, f->end, &value));
        break;
    default:
        return fail(w->wire->diag, place_at(w, item, item->key), "wire type %d does not exist in this format",
                    item->wire);
    }
    if (value > f->end - item->at && f->end == w->wire->source->size)
        return fail(w->wire->diag, place_at(w, item, item->key),
                    "the file is cut short: %" PRIu64 " bytes are announced and %" PRIu64 " are left", value,
                    f->end - item->at);
    if (value > f->end - item->at)
        return fail(w->wire->diag, place_at(w, item, item->key),
                    "%" PRIu64 " bytes are announced and %" PRIu64 " are left in the message", value,
                    f->end - item->at);
    item->end = item->at + value;
    return OK;
}

static Status check_wire(const Walk *w, const WireItem *item)
{
    int expected = wire_of(item->field);

    if (is_payload(item)) {
        if (item->wire != WIRE_BYTES && item->wire != item->rule->element)
            return bad_wire(w, item, item->rule->element);
        return OK;
    }
    if (item->wire != expected && !is_packed(item))
        return bad_wire(w, item, expected);
    return OK;
}

/* The number of elements of a packed run of scalars, each of them sound. */
static Status count_packed(Walk *w, const WireItem *item, uint64_t *n)
{
    int wire = wire_of(item->field);
    uint64_t size = item->end - item->at, value;

    if (wire != WIRE_VARINT) {
        unsigned width = wire == WIRE_FIXED32 ? 4 : 8;
        if (size % width)
            return fail(w->wire->diag, place_at(w, item, item->at),
                        "%" PRIu64 " bytes are no whole number of elements of %u bytes", size, width);
        *n = size / width;
        return OK;
    }
    *n = 0;
    for (uint64_t at = item->at; at < item->end; ++*n)
        TRY(read_varint(w, item, &at, item->end, &value));
    return OK;
}

/* Whether another field of the same oneof was there: protobuf would merge or replace, silently. */
static bool oneof_taken(const WireFrame *f, const ProtobufCFieldDescriptor *field)
{
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return false;
    for (unsigned i = 0; i < f->type->n_fields; i++) {
        const ProtobufCFieldDescriptor *other = &f->type->fields[i];
        if (f->count[i] && other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
            other->quantifier_offset == field->quantifier_offset)
            return true;
    }
    return false;
}

static Status count_against_limit(Walk *w, const WireItem *item, uint64_t in_message)
{
    const FieldRule *rule = item->rule;
    int64_t n = (int64_t)in_message;

    if (!rule || rule->scope == LIMIT_NONE)
        return OK;
    if (rule->scope == LIMIT_TOTAL) {
        n = ++w->total[rule->limit / sizeof(int64_t)];
    } else if (rule->scope == LIMIT_NESTING) {
        n = 1;
        for (int i = 1; i < w->depth; i++)
            n += w->frames[i].item.rule && w->frames[i].item.rule->scope == LIMIT_NESTING;
    }
    return n > limit_value(w->wire->limits, rule->limit) ? exceeded(w, item, rule->limit) : OK;
}

static Status check_count(Walk *w, WireFrame *f, WireItem *item)
{
    uint32_t *count = &f->count[item->field - f->type->fields];
    uint64_t n = 1;

    item->index = *count;
    if (item->field->label != PROTOBUF_C_LABEL_REPEATED) {
        if (*count)
            return fail(w->wire->diag, place_at(w, item, item->key), "occurs a second time");
        if (oneof_taken(f, item->field))
            return fail(w->wire->diag, place_at(w, item, item->key), "another alternative of the same choice is there");
    } else if (is_packed(item) && !is_payload(item)) {
        TRY(count_packed(w, item, &n));
    }
    if (n > UINT32_MAX - *count)
        return fail(w->wire->diag, place_at(w, item, item->key), "too many elements");
    *count += (uint32_t)n;
    return count_against_limit(w, item, *count);
}

static Status check_text(Walk *w, const WireItem *item)
{
    FieldKind kind = item->rule ? item->rule->kind : FIELD_PLAIN;
    size_t limit = kind == FIELD_NAME ? offsetof(Limits, name_bytes)
                   : kind == FIELD_OP ? offsetof(Limits, op_bytes)
                                      : offsetof(Limits, string_bytes);
    uint64_t n = item->end - item->at;
    const uint8_t *p;

    if ((int64_t)n > limit_value(w->wire->limits, limit))
        return exceeded(w, item, limit);
    if (kind == FIELD_PLAIN)
        return OK;
    if (n > WINDOW_BYTES)
        return fail(w->wire->diag, place_at(w, item, item->key), "a name of %" PRIu64 " bytes", n);
    TRY(window_at(&w->window, item->at, (size_t)n, &p));
    if (!str_is_utf8((Str){ (const char *)p, (size_t)n }))
        return fail(w->wire->diag, place_at(w, item, item->at), "the name is not UTF-8, or holds a NUL");
    for (size_t i = 0; kind == FIELD_OP && i < n; i++)
        if (p[i] < 0x20 || p[i] == 0x7f)
            return fail(w->wire->diag, place_at(w, item, item->at + i), "control character %d in a name", p[i]);
    return OK;
}

/* ---- messages ---- */

static void push(Walk *w, const ProtobufCMessageDescriptor *type, uint64_t at, uint64_t end, const WireItem *item)
{
    WireFrame *f = &w->frames[w->depth++];

    BUG_IF(w->wire->arena->memory, type->n_fields > MOST_FIELDS);
    *f = (WireFrame){ .type = type, .at = at, .end = end };
    if (item)
        f->item = *item;
    f->rules = field_rules(type, &f->n_rules);
}

static Status enter(Walk *w, const WireItem *item)
{
    const WireVisitor *v = &w->wire->visitor;
    bool skip = false;

    if (w->depth > w->deepest)
        return exceeded(w, item, offsetof(Limits, wire_nesting));
    if (v->enter)
        TRY(v->enter(v->user, item, &skip));
    if (!skip)
        push(w, item->field->descriptor, item->at, item->end, item);
    return OK;
}

static Status step(Walk *w)
{
    const WireVisitor *v = &w->wire->visitor;
    WireFrame *f = &w->frames[w->depth - 1];
    WireItem item;

    if (f->at == f->end) {
        w->depth--;
        return w->depth > 0 && v->leave ? v->leave(v->user, &f->item) : OK;
    }
    TRY(read_header(w, f, &item));
    f->at = item.end;
    if (item.field) {
        TRY(check_wire(w, &item));
        TRY(check_count(w, f, &item));
        if (item.field->type == PROTOBUF_C_TYPE_MESSAGE)
            return enter(w, &item);
        if (item.wire == WIRE_BYTES && !is_packed(&item) && !is_payload(&item))
            TRY(check_text(w, &item));
    }
    return v->leaf ? v->leaf(v->user, &item) : OK;
}

Status wire_walk(const Wire *wire)
{
    Walk w = { .wire = wire };
    int64_t nesting = wire->limits->wire_nesting;

    if (wire->source->size > (uint64_t)wire->limits->model_bytes)
        return fail(wire->diag, (Place){ .file = wire->source->name, .byte = -1 },
                    "%" PRIu64 " bytes exceed the limit model_bytes (%" PRId64 ")", wire->source->size,
                    wire->limits->model_bytes);
    w.deepest = nesting < 0 ? 0 : nesting > DEEPEST ? DEEPEST : (int)nesting;
    w.frames = NEWS(wire->arena, WireFrame, w.deepest + 1);
    window_open(&w.window, wire->source, wire->diag, wire->arena);
    push(&w, wire->type, 0, wire->source->size, NULL);
    while (w.depth > 0) {
        memory_poll(wire->arena->memory);
        TRY(step(&w));
    }
    return OK;
}
