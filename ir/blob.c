#include "ir/blob.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"

enum { PREFIX = 8, DEEPEST_HEADER = 4 };
static const int64_t longest_header = 100000000;

/* Names of element types in safetensors; those without one are stored as U8. */
static const struct {
    const char *name;
    DType dtype;
} dtypes[] = {
    { "BOOL", BOOL }, { "U8", U8 },          { "I8", I8 },          { "I16", I16 },
    { "U16", U16 },   { "I32", I32 },        { "U32", U32 },        { "I64", I64 },
    { "U64", U64 },   { "F16", F16 },        { "BF16", BF16 },      { "F32", F32 },
    { "F64", F64 },   { "F8_E4M3", F8E4M3 }, { "F8_E5M2", F8E5M2 }, { "F8_E8M0", F8E8M0 },
};

static const char *stored_name(DType dtype)
{
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

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
        !stored_name(type->dtype) && type_bytes(type, &bytes) && bytes == p->length)
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
    if (!p->read || !type_bytes(p->type, &bytes))
        return NULL;
    *block = heap_alloc(heap, bytes ? bytes : 1);
    return p->read(p, *block, bytes, diag) == OK ? *block : NULL;
}

/* ---- writing ---- */

static void add_json_string(Text *out, const char *text)
{
    text_char(out, '"');
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            text_char(out, '\\');
        if ((unsigned char)*p < 0x20)
            text_printf(out, "\\u%04x", (unsigned)*p);
        else
            text_char(out, *p);
    }
    text_char(out, '"');
}

static bool add_entry(Text *out, const Blob *blob, uint64_t *offset)
{
    const Type *type = blob->payload->type;
    const char *name = stored_name(type->dtype);
    size_t bytes;
    if (type->dtype == STRING || !type_bytes(type, &bytes))
        return false;
    add_json_string(out, blob->name);
    text_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", name ? name : "U8");
    for (int i = 0; name && i < type->rank; i++)
        text_printf(out, "%s%" PRId64, i ? "," : "", type->dims[i]);
    if (!name)
        text_printf(out, "%zu", bytes);
    text_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *offset, *offset + bytes);
    *offset += bytes;
    return true;
}

static Status write_payload(FileOut *file, Payload *p, Ir *ir)
{
    Heap heap;
    void *block;
    size_t size;
    heap_open(&heap, ir->memory);
    const void *bytes = payload_bytes(p, &heap, &block, ir->diag);
    Status status = bytes && type_bytes(p->type, &size) ? file_write(file, bytes, size) : INVALID;
    heap_close(&heap);
    return status;
}

static Status write_all(const Blobs *b, Ir *ir, FileOut *file, const Text *header)
{
    unsigned char prefix[PREFIX];
    for (int i = 0; i < PREFIX; i++)
        prefix[i] = (unsigned char)((uint64_t)header->n >> 8 * i);
    TRY(file_write(file, prefix, sizeof prefix));
    TRY(file_write(file, header->p, header->n));
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].payload->type->dtype != STRING)
            TRY(write_payload(file, b->list[i].payload, ir));
    return OK;
}

Status blobs_write(const Blobs *b, Ir *ir, const char *path)
{
    Arena scratch;
    Text header;
    FileOut file;
    uint64_t offset = 0;
    arena_open(&scratch, ir->memory);
    text_open(&header, &scratch);
    text_char(&header, '{');
    for (size_t i = 0; i < b->n; i++) {
        const size_t before = header.n;
        if (before > 1)
            text_char(&header, ',');
        if (!add_entry(&header, &b->list[i], &offset))
            header.n = before;
    }
    text_char(&header, '}');
    while (header.n % PREFIX)
        text_char(&header, ' ');
    Status status = file_create(&file, &scratch, ir->diag, path);
    if (status == OK) {
        status = write_all(b, ir, &file, &header);
        if (status == OK)
            status = file_keep(&file);
        else
            file_drop(&file);
    }
    arena_close(&scratch);
    return status;
}

/* ---- reading ---- */

typedef struct BlobFile {
    const char *path;
    uint64_t size;
} BlobFile;

static Status read_blob(Payload *p, void *out, size_t bytes, Diag *diag)
{
    const BlobFile *file = p->owner;
    return file_read_at(diag, file->path, file->size, p->where, out, bytes);
}

static Status bad(Ir *ir, const BlobFile *file, const char *name, const char *what)
{
    const char *where = name ? arena_printf(ir->arena, "tensor %s", name) : NULL;
    return fail(ir->diag, (Place){ .file = file->path, .byte = -1, .where = where }, "%s", what);
}

/* jansson recurses: what nests deeper than a header may is refused before it sees it. */
static bool nests_too_deep(Str json)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < json.n; i++) {
        const char c = json.p[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[') && ++depth > DEEPEST_HEADER)
            return true;
        else if (!quoted && (c == '}' || c == ']'))
            depth--;
    }
    return false;
}

static bool read_dtype(const json_t *o, DType *dtype)
{
    const char *name = json_string_value(json_object_get(o, "dtype"));
    for (size_t i = 0; name && i < COUNT(dtypes); i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            *dtype = dtypes[i].dtype;
            return true;
        }
    }
    return false;
}

static const Type *read_type(Ir *ir, const json_t *o)
{
    const json_t *shape = json_object_get(o, "shape");
    int64_t dims[MAX_RANK], elements;
    DType dtype;
    const size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > MAX_RANK || !read_dtype(o, &dtype))
        return NULL;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim))
            return NULL;
        dims[i] = json_integer_value(dim);
    }
    if (!checked_product_i64(dims, (int)rank, ir->limits.elements, &elements))
        return NULL;
    return type_tensor(&ir->types, dtype, (int)rank, dims);
}

static Status read_entry(Blobs *b, Ir *ir, BlobFile *file, uint64_t data, const char *name, const json_t *o)
{
    const json_t *offsets = json_object_get(o, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    const Type *type = read_type(ir, o);
    size_t bytes;
    if (!type)
        return bad(ir, file, name, "dtype or shape is not one we read");
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return bad(ir, file, name, "data_offsets are not two integers");
    const int64_t begin = json_integer_value(first), end = json_integer_value(second);
    if (begin < 0 || end < begin || (uint64_t)end > file->size - data)
        return bad(ir, file, name, "data_offsets lie outside the file");
    if (!type_bytes(type, &bytes) || bytes != (uint64_t)(end - begin))
        return bad(ir, file, name, "data_offsets do not fit dtype and shape");
    Payload *p = NEW(b->arena, Payload);
    *p = (Payload){ .type = type,
                    .name = arena_string(b->arena, name),
                    .read = read_blob,
                    .owner = file,
                    .where = data + (uint64_t)begin,
                    .length = bytes };
    add(b, p->name, p);
    return OK;
}

static Status read_entries(Blobs *b, Ir *ir, BlobFile *file, uint64_t data, json_t *header)
{
    const char *name;
    json_t *o;
    json_object_foreach(header, name, o)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (map_find(&b->by_name, name))
            return bad(ir, file, name, "is there already");
        TRY(read_entry(b, ir, file, data, name, o));
    }
    return OK;
}

static Status read_header(Ir *ir, Arena *scratch, BlobFile *file, Str *json)
{
    unsigned char prefix[PREFIX];
    uint64_t n = 0;
    TRY(file_size(ir->diag, file->path, &file->size));
    if (file->size < PREFIX)
        return bad(ir, file, NULL, "too short for a safetensors file");
    TRY(file_read_at(ir->diag, file->path, file->size, 0, prefix, sizeof prefix));
    for (int i = 0; i < PREFIX; i++)
        n |= (uint64_t)prefix[i] << 8 * i;
    if (n > (uint64_t)longest_header || n > file->size - PREFIX)
        return bad(ir, file, NULL, "the length of the header is larger than the file, or than 100000000 bytes");
    char *text = arena_alloc(scratch, (size_t)n + 1);
    TRY(file_read_at(ir->diag, file->path, file->size, PREFIX, text, (size_t)n));
    *json = (Str){ text, (size_t)n };
    return nests_too_deep(*json) ? bad(ir, file, NULL, "the header nests too deep") : OK;
}

static void drop_json(void *thing)
{
    json_decref(thing);
}

static Status read_file(Blobs *b, Ir *ir, Arena *scratch, BlobFile *file)
{
    Str json = { "", 0 };
    json_error_t error;
    Cleanup cleanup;
    TRY(read_header(ir, scratch, file, &json));
    json_t *header = json_loadb(json.p, json.n, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return bad(ir, file, NULL, arena_printf(scratch, "the header is no JSON: %s", error.text));
    cleanup_push(ir->memory, &cleanup, drop_json, header);
    const Status status = json_is_object(header) ? read_entries(b, ir, file, PREFIX + json.n, header)
                                                 : bad(ir, file, NULL, "the header is no object");
    cleanup_drop(&cleanup);
    json_decref(header);
    return status;
}

Status blobs_read(Blobs *b, Ir *ir, const char *path)
{
    Arena scratch;
    BlobFile *file = NEW(b->arena, BlobFile);
    file->path = arena_string(b->arena, path);
    arena_open(&scratch, ir->memory);
    const Status status = read_file(b, ir, &scratch, file);
    arena_close(&scratch);
    return status;
}
