#include "ir/store/blob.h"

#include <string.h>

#include "base/file.h"
#include "ir/store/safetensors_head.h"

void blobs_open(Blobs *b, Arena *arena)
{
    *b = (Blobs){ .arena = arena };
    map_open(&b->by_name, arena);
    map_open(&b->by_payload, arena);
}

static void add(Blobs *b, const char *name, Payload *payload)
{
    GROW(b->arena, b->list, b->n, b->cap);
    map_put(&b->by_name, name, NULL)->value.u = b->n;
    map_put_u64(&b->by_payload, (uintptr_t)payload, NULL)->value.u = b->n;
    b->list[b->n++] = (Blob){ name, payload };
}

const char *blobs_add(Blobs *b, Payload *payload, const char *wish)
{
    const MapEntry *known = map_find_u64(&b->by_payload, (uintptr_t)payload);
    if (known)
        return b->list[known->value.u].name;
    if (!str_is_utf8(str(wish)) || strcmp(wish, "__metadata__") == 0)
        wish = "constant";
    const char *name = arena_string(b->arena, wish);
    for (int i = 2; map_find(&b->by_name, name); i++)
        name = arena_printf(b->arena, "%s#%d", wish, i);
    add(b, name, payload);
    return name;
}

Payload *blobs_find(const Blobs *b, Str name, const Type *type, bool *fits)
{
    const MapEntry *e = map_find_n(&b->by_name, name.p, name.n);
    if (!e)
        return NULL;
    Payload *p = b->list[e->value.u].payload;
    size_t bytes;
    if (p->type != type && !p->tensor && p->type->dtype == U8 && p->type->rank == 1 && type->kind == TYPE_TENSOR &&
        !safetensors_dtype(type->dtype) && type_bytes(type, &bytes) && bytes == p->length)
        p->type = type;
    *fits = p->type == type;
    return p;
}

const void *payload_bytes(Payload *p, Heap *heap, void **block, Diag *diag)
{
    size_t bytes;
    *block = NULL;
    if (p->tensor)
        return p->tensor->data;
    if (!p->read || !tensor_holds(p->type) || !type_bytes(p->type, &bytes))
        return NULL;
    *block = heap_alloc(heap, bytes ? bytes : 1);
    p->failed = p->read(p, *block, bytes, diag);
    return p->failed ? NULL : *block;
}

/* ---- writing ---- */

static bool is_stored(const Payload *p)
{
    size_t bytes;
    return p->type->dtype != STRING && type_bytes(p->type, &bytes);
}

static Status write_payload(FileOut *file, Payload *p, Ir *ir)
{
    Heap heap;
    void *block;
    size_t size;
    heap_open(&heap, ir->memory);
    const void *bytes = payload_bytes(p, &heap, &block, ir->diag);
    Status status = bytes && type_bytes(p->type, &size) ? file_write(file, bytes, size)
                    : p->failed                         ? p->failed
                                                        : INVALID;
    heap_close(&heap);
    return status;
}

static Status write_all(const Blobs *b, Ir *ir, FileOut *file, const Text *head)
{
    TRY(file_write(file, head->p, head->n));
    for (size_t i = 0; i < b->n; i++)
        if (is_stored(b->list[i].payload))
            TRY(write_payload(file, b->list[i].payload, ir));
    return OK;
}

Status blobs_write(const Blobs *b, Ir *ir, const char *path)
{
    Arena scratch;
    Text head;
    FileOut file;
    arena_open(&scratch, ir->memory);
    text_open(&head, &scratch);
    SafeEntry *entries = NEWS(&scratch, SafeEntry, b->n);
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (is_stored(b->list[i].payload))
            entries[n++] = (SafeEntry){ b->list[i].name, b->list[i].payload->type };
    safetensors_head(&head, entries, n, NULL, 0);
    Status status = file_create(&file, &scratch, ir->diag, path);
    if (status == OK) {
        status = write_all(b, ir, &file, &head);
        if (status == OK)
            status = file_keep(&file);
        else
            file_drop(&file);
    }
    arena_close(&scratch);
    return status;
}

/* ---- reading ---- */

static Status read_blob(Payload *p, void *out, size_t bytes, Diag *diag)
{
    const SafeBytes *file = p->owner;
    return file_read_at(diag, file->name, file->size, p->where, out, bytes);
}

Status blobs_read(Blobs *b, Ir *ir, const char *path)
{
    SafeTensors *file = NEW(b->arena, SafeTensors);
    TRY(safetensors_open(file, &ir->types, b->arena, ir->diag, &ir->limits, path));
    for (size_t i = 0; i < file->n; i++) {
        const SafeTensor *t = &file->list[i];
        if (map_find(&b->by_name, t->name))
            return fail(ir->diag, (Place){ .file = file->from.name, .byte = -1 }, "tensor %s is there already",
                        t->name);
        Payload *p = NEW(b->arena, Payload);
        *p = (Payload){ .type = t->type,
                        .arena = b->arena,
                        .name = t->name,
                        .read = read_blob,
                        .owner = &file->from,
                        .where = t->at,
                        .length = t->bytes };
        add(b, p->name, p);
    }
    return OK;
}
