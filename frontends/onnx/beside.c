#include "frontends/onnx/beside.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { ALIGNMENT = 4096 };

int64_t beside_threshold(const Limits *limits)
{
    static const int64_t usual = 2040109465; /* 1.9 GiB */
    return limits->model_bytes < usual ? limits->model_bytes : usual;
}

void beside_open(Beside *b, Arena *arena, Diag *d, const char *path)
{
    *b = (Beside){ .arena = arena, .diag = d };
    if (!path)
        return;
    const char *slash = strrchr(path, '/');
    b->path = arena_printf(arena, "%s.data", path);
    b->name = arena_printf(arena, "%s.data", slash ? slash + 1 : path);
}

bool beside_is_folder(const Beside *b, int folder)
{
    struct stat here, there;
    const char *slash = b->path ? strrchr(b->path, '/') : NULL;
    const char *path = slash ? arena_copy(b->arena, b->path, (size_t)(slash - b->path) + 1) : ".";
    return b->path && folder >= 0 && fstat(folder, &here) == 0 && stat(path, &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static Status put(void *user, const void *bytes, size_t n)
{
    Beside *b = user;
    b->at += n;
    return file_write(&b->file, bytes, n);
}

static void add_entry(Beside *b, Onnx__TensorProto *t, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = NEW(b->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(e);
    e->has_key = e->has_value = 1;
    e->key = (ProtobufCBinaryData){ strlen(key), (uint8_t *)(uintptr_t)key };
    e->value = (ProtobufCBinaryData){ strlen(value), (uint8_t *)(uintptr_t)value };
    t->external_data[t->n_external_data++] = e;
}

static Status begin(Beside *b, uint64_t *offset)
{
    static const char zeros[ALIGNMENT];
    if (!b->open) {
        TRY(file_create(&b->file, b->arena, b->diag, b->path));
        b->open = true;
    }
    const uint64_t gap = (ALIGNMENT - b->at % ALIGNMENT) % ALIGNMENT;
    TRY(put(b, zeros, (size_t)gap));
    *offset = b->at;
    return OK;
}

Status beside_add(Beside *b, Onnx__TensorProto *t, uint64_t bytes, Status (*write)(void *user, const Sink *sink),
                  void *user)
{
    uint64_t offset;
    TRY(begin(b, &offset));
    TRY(write(user, &(Sink){ put, b }));
    BUG_IF(b->arena->memory, b->at != offset + bytes);
    t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data = 0;
    t->has_raw_data = t->has_source_at = t->has_source_size = 0;
    t->has_data_location = 1;
    t->data_location = 1;
    t->external_data = NEWS(b->arena, Onnx__StringStringEntryProto *, 3);
    t->n_external_data = 0;
    add_entry(b, t, "location", b->name);
    add_entry(b, t, "offset", arena_printf(b->arena, "%" PRIu64, offset));
    add_entry(b, t, "length", arena_printf(b->arena, "%" PRIu64, bytes));
    return OK;
}

static Status put_raw(void *user, const Sink *sink)
{
    const ProtobufCBinaryData *raw = user;
    return sink->put(sink->user, raw->data, raw->len);
}

Status beside_move(Beside *b, Onnx__TensorProto *t)
{
    ProtobufCBinaryData raw = t->raw_data;
    return beside_add(b, t, raw.len, put_raw, &raw);
}

Status beside_move_all(Beside *b, Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (g->initializer[i]->has_raw_data && g->initializer[i]->raw_data.len >= BESIDE_LEAST)
            TRY(beside_move(b, g->initializer[i]));
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_attribute; k++) {
            Onnx__TensorProto *t = g->node[i]->attribute[k]->t;
            if (t && t->has_raw_data && t->raw_data.len >= BESIDE_LEAST)
                TRY(beside_move(b, t));
        }
    return OK;
}

Status beside_close(Beside *b, Status status)
{
    if (!b->open)
        return status;
    b->open = false;
    if (status == OK)
        return file_keep(&b->file);
    file_drop(&b->file);
    return status;
}
