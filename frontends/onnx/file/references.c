#include "frontends/onnx/file/references.h"

#include <string.h>

#include "frontends/onnx/file/onnx.pb-c.h"
#include "frontends/onnx/file/wire.h"

enum { EXTERNAL_DATA = 13, ENTRY_KEY = 1, ENTRY_VALUE = 2, LONGEST = 4096 };

typedef struct Referring {
    Source *source;
    Diag *diag;
    const ProtobufCFieldDescriptor *entries; /* TensorProto.external_data */
    bool inside;                             /* of an entry */
    WireItem key, value;                     /* of it; at == end: absent */
    void (*see)(void *user, const char *location);
    void *user;
} Referring;

static Status enter(void *user, const WireItem *item, bool *skip)
{
    Referring *r = user;
    *skip = false;
    r->inside = item->field == r->entries;
    r->key = r->value = (WireItem){ 0 };
    return OK;
}

static Status leaf(void *user, const WireItem *item)
{
    Referring *r = user;
    if (r->inside && item->number == ENTRY_KEY)
        r->key = *item;
    if (r->inside && item->number == ENTRY_VALUE)
        r->value = *item;
    return OK;
}

static void tidy(char *path)
{
    char *to = path;
    for (const char *p = path; *p;) {
        const size_t n = strcspn(p, "/");
        const bool nothing = n == 0 || (n == 1 && *p == '.');
        if (!nothing) {
            if (to != path)
                *to++ = '/';
            memmove(to, p, n);
            to += n;
        }
        p += n + (p[n] == '/');
    }
    *to = 0;
}

static Status leave(void *user, const WireItem *item)
{
    static const char location[] = "location";
    Referring *r = user;
    char text[LONGEST];
    const size_t k = sizeof location - 1, n = (size_t)(r->value.end - r->value.at);
    (void)item;
    if (!r->inside)
        return OK;
    r->inside = false;
    if (r->key.end - r->key.at != k || n == 0 || n >= sizeof text)
        return OK; /* what the reader refuses is no reference */
    TRY(source_read(r->source, r->diag, r->key.at, text, k));
    if (memcmp(text, location, k) != 0)
        return OK;
    TRY(source_read(r->source, r->diag, r->value.at, text, n));
    text[n] = 0;
    tidy(text);
    r->see(r->user, text);
    return OK;
}

static Status walk(Source *source, const Limits *limits, Diag *quiet, Arena *scratch, Referring *r)
{
    r->source = source;
    r->diag = quiet;
    r->entries = protobuf_c_message_descriptor_get_field(&onnx__tensor_proto__descriptor, EXTERNAL_DATA);
    return wire_walk(&(Wire){ .source = source,
                              .type = &onnx__model_proto__descriptor,
                              .limits = limits,
                              .diag = quiet,
                              .arena = scratch,
                              .visitor = { leaf, enter, leave, r } });
}

Status refers_each(Memory *memory, const Limits *limits, const char *path,
                   void (*see)(void *user, const char *location), void *user)
{
    Referring r = { .see = see, .user = user };
    Source source;
    Arena scratch;
    Diag quiet;
    arena_open(&scratch, memory);
    diag_open(&quiet, &scratch, NULL, NULL);
    Status status = source_open(&source, memory, &quiet, path);
    if (status == OK) {
        status = walk(&source, limits, &quiet, &scratch, &r);
        if (status == OK)
            status = source_unchanged(&source, &quiet);
        source_close(&source);
    }
    arena_close(&scratch);
    return status;
}
