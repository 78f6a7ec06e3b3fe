#include "ir/store/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "ir/store/json_text.h"

enum { PREFIX = 8, DEEPEST_HEADER = 4 };
static const uint64_t longest_header = 100000000; /* of the format */
static const char metadata_key[] = "__metadata__";

static const struct {
    const char *name;
    DType dtype;
} dtypes[] = {
    { "BOOL", BOOL }, { "U8", U8 },          { "I8", I8 },          { "I16", I16 },
    { "U16", U16 },   { "I32", I32 },        { "U32", U32 },        { "I64", I64 },
    { "U64", U64 },   { "F16", F16 },        { "BF16", BF16 },      { "F32", F32 },
    { "F64", F64 },   { "F8_E4M3", F8E4M3 }, { "F8_E5M2", F8E5M2 }, { "F8_E8M0", F8E8M0 },
};

const char *safetensors_dtype(DType dtype)
{
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

/* A file being read: the table, and what reading needs. */
typedef struct Reading {
    SafeTensors *s;
    Types *types;
    Arena *arena; /* of the table */
    Arena scratch;
    Diag *d;
    const Limits *limits;
    uint64_t data; /* where the tensors begin */
} Reading;

static Status bad(Reading *r, const char *tensor, const char *what)
{
    const char *where = tensor ? arena_printf(r->d->arena, "tensor %s", tensor) : NULL;
    return fail(r->d, (Place){ .file = r->s->from.name, .byte = -1, .where = where }, "%s", what);
}

Status safetensors_bytes(const SafeTensors *s, Diag *d, uint64_t offset, void *out, size_t n)
{
    const SafeBytes *b = &s->from;
    return b->read ? b->read(b, d, offset, out, n) : file_read_at(d, b->name, b->size, offset, out, n);
}

/* ---- the header ---- */

static Status read_header(Reading *r, Str *json)
{
    unsigned char prefix[PREFIX];
    uint64_t n = 0;
    const uint64_t size = r->s->from.size;
    if (size < PREFIX)
        return bad(r, NULL, "too short for a safetensors file");
    TRY(safetensors_bytes(r->s, r->d, 0, prefix, sizeof prefix));
    for (int i = 0; i < PREFIX; i++)
        n |= (uint64_t)prefix[i] << 8 * i;
    if (n > longest_header || n > size - PREFIX)
        return bad(r, NULL, "the length of the header is larger than the file, or than 100000000 bytes");
    char *text = arena_alloc(&r->scratch, (size_t)n + 1);
    TRY(safetensors_bytes(r->s, r->d, PREFIX, text, (size_t)n));
    *json = (Str){ text, (size_t)n };
    r->data = PREFIX + n;
    return json_nests(*json, DEEPEST_HEADER) ? bad(r, NULL, "the header nests too deep") : OK;
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

static const Type *read_type(Reading *r, const json_t *o)
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
    if (!checked_product_i64(dims, (int)rank, r->limits->elements, &elements))
        return NULL;
    return type_tensor(r->types, dtype, (int)rank, dims);
}

static Status read_tensor(Reading *r, const char *name, const json_t *o, SafeTensor *t)
{
    const json_t *offsets = json_object_get(o, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    t->name = arena_string(r->arena, name);
    t->type = read_type(r, o);
    if (!t->type)
        return bad(r, name, "dtype or shape is not one we read");
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return bad(r, name, "data_offsets are not two integers");
    const int64_t begin = json_integer_value(first), end = json_integer_value(second);
    if (begin < 0 || end < begin || (uint64_t)end > r->s->from.size - r->data)
        return bad(r, name, "data_offsets lie outside the file");
    if (!type_bytes(t->type, &t->bytes) || t->bytes != (uint64_t)(end - begin))
        return bad(r, name, "data_offsets do not fit dtype and shape");
    t->at = r->data + (uint64_t)begin;
    return OK;
}

static Status read_metadata(Reading *r, const json_t *o)
{
    SafeTensors *s = r->s;
    const char *key;
    json_t *value;
    if (!json_is_object(o))
        return bad(r, NULL, "__metadata__ is no object");
    s->metadata = NEWS(r->arena, SafePair, json_object_size(o));
    json_object_foreach((json_t *)(uintptr_t)o, key, value)
    {
        SafePair *p = &s->metadata[s->n_metadata];
        if (!json_is_string(value))
            return bad(r, NULL, "__metadata__ holds more than strings");
        *p = (SafePair){ arena_string(r->arena, key), arena_string(r->arena, json_string_value(value)) };
        map_put(&s->by_key, p->key, NULL)->value.u = s->n_metadata++;
    }
    return OK;
}

static int by_offset(const void *a, const void *b)
{
    const SafeTensor *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1) : strcmp(x->name, y->name);
}

/* Overlapping tensors make a small file large, gaps hide a second file in it. */
static Status check_tiling(Reading *r)
{
    SafeTensors *s = r->s;
    uint64_t at = r->data;
    if (s->n)
        qsort(s->list, s->n, sizeof *s->list, by_offset);
    for (size_t i = 0; i < s->n; i++) {
        const SafeTensor *t = &s->list[i];
        if (t->at != at)
            return bad(r, t->name, t->at < at ? "overlaps the tensor before it" : "lies behind a gap");
        at += t->bytes;
        map_put(&s->by_name, t->name, NULL)->value.u = i;
    }
    return at == s->from.size ? OK : bad(r, NULL, "bytes follow the last tensor");
}

static Status read_table(Reading *r, const json_t *header)
{
    SafeTensors *s = r->s;
    const char *name;
    json_t *o;
    if (!json_is_object(header))
        return bad(r, NULL, "the header is no object");
    s->list = NEWS(r->arena, SafeTensor, json_object_size(header));
    json_object_foreach((json_t *)(uintptr_t)header, name, o)
    {
        if (strcmp(name, metadata_key) == 0)
            TRY(read_metadata(r, o));
        else
            TRY(read_tensor(r, name, o, &s->list[s->n++]));
    }
    return check_tiling(r);
}

static void drop_json(void *thing)
{
    json_decref(thing);
}

static Status read_file(Reading *r)
{
    Str json = { "", 0 };
    json_error_t error;
    Cleanup cleanup;
    TRY(read_header(r, &json));
    json_t *header = json_text(r->arena->memory, json.p, json.n, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return bad(r, NULL, arena_printf(&r->scratch, "the header is no JSON: %s", error.text));
    cleanup_push(r->arena->memory, &cleanup, drop_json, header);
    const Status status = read_table(r, header);
    cleanup_drop(&cleanup);
    json_decref(header);
    return status;
}

Status safetensors_open_bytes(SafeTensors *s, Types *types, Arena *arena, Diag *d, const Limits *limits,
                              const SafeBytes *b)
{
    Reading r = { .s = s, .types = types, .arena = arena, .d = d, .limits = limits };
    *s = (SafeTensors){ .from = *b };
    map_open(&s->by_name, arena);
    map_open(&s->by_key, arena);
    arena_open(&r.scratch, arena->memory);
    const Status status = read_file(&r);
    arena_close(&r.scratch);
    return status;
}

Status safetensors_open(SafeTensors *s, Types *types, Arena *arena, Diag *d, const Limits *limits, const char *path)
{
    SafeBytes b = { .name = arena_string(arena, path) };
    TRY(file_size(d, path, &b.size));
    return safetensors_open_bytes(s, types, arena, d, limits, &b);
}

/* ---- what it holds ---- */

const SafeTensor *safetensors_find(const SafeTensors *s, const char *name)
{
    const MapEntry *e = map_find(&s->by_name, name);
    return e ? &s->list[e->value.u] : NULL;
}

const char *safetensors_metadata(const SafeTensors *s, const char *key)
{
    const MapEntry *e = map_find(&s->by_key, key);
    return e ? s->metadata[e->value.u].value : NULL;
}

Status safetensors_read(const SafeTensors *s, Diag *d, const SafeTensor *t, void *out)
{
    return safetensors_bytes(s, d, t->at, out, t->bytes);
}

bool safetensors_is(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    return n > PREFIX && p[PREFIX] == '{' && memcmp(p + 3, "\0\0\0\0\0", PREFIX - 3) == 0;
}
