#include "ir/attr.h"

#include <string.h>

#include "base/bytes.h"
#include "ir/tensor.h"

static size_t field_size(AttrKind kind)
{
    switch (kind) {
    case ATTR_END:
        return 0;
    case ATTR_INT:
        return sizeof(int64_t);
    case ATTR_FLOAT:
        return sizeof(float);
    case ATTR_BOOL:
        return sizeof(bool);
    case ATTR_STR:
        return sizeof(const char *);
    case ATTR_ENUM:
    case ATTR_DTYPE:
        return sizeof(int);
    case ATTR_INTS:
        return sizeof(Ints);
    case ATTR_FLOATS:
        return sizeof(Floats);
    case ATTR_STRS:
        return sizeof(Strs);
    case ATTR_PAYLOAD:
        return sizeof(Payload *);
    case ATTR_TYPE:
        return sizeof(const Type *);
    }
    return 0;
}

size_t attrs_size(const AttrSpec *specs)
{
    size_t size = 0;
    for (const AttrSpec *s = specs; s && s->kind != ATTR_END; s++)
        if (s->offset + field_size(s->kind) > size)
            size = s->offset + field_size(s->kind);
    return (size + 15) / 16 * 16;
}

void *attrs_default(Arena *arena, const AttrSpec *specs)
{
    if (!specs)
        return NULL;
    char *attr = arena_alloc(arena, attrs_size(specs));
    for (const AttrSpec *s = specs; s->kind != ATTR_END; s++) {
        void *at = attr + s->offset;
        switch (s->kind) {
        case ATTR_INT:
            *(int64_t *)at = (int64_t)s->value;
            break;
        case ATTR_FLOAT:
            *(float *)at = (float)s->value;
            break;
        case ATTR_BOOL:
            *(bool *)at = s->value != 0;
            break;
        case ATTR_ENUM:
        case ATTR_DTYPE:
            *(int *)at = (int)s->value;
            break;
        case ATTR_STR:
            *(const char **)at = s->text;
            break;
        default: /* zero says "not given" for the rest */
            break;
        }
    }
    return attr;
}

static void *copy_bytes(Arena *arena, const void *p, size_t n, size_t size)
{
    void *copy = arena_array(arena, n ? n : 1, size);
    if (n)
        memcpy(copy, p, n * size);
    return copy;
}

static void own_field(Arena *arena, const AttrSpec *s, void *at)
{
    if (s->kind == ATTR_STR && *(char **)at) {
        *(char **)at = arena_string(arena, *(char **)at);
    } else if (s->kind == ATTR_INTS && ((Ints *)at)->v) {
        Ints *v = at;
        v->v = copy_bytes(arena, v->v, (size_t)v->n, sizeof *v->v);
    } else if (s->kind == ATTR_FLOATS && ((Floats *)at)->v) {
        Floats *v = at;
        v->v = copy_bytes(arena, v->v, (size_t)v->n, sizeof *v->v);
    } else if (s->kind == ATTR_STRS && ((Strs *)at)->v) {
        Strs *v = at;
        const char **list = copy_bytes(arena, v->v, (size_t)v->n, sizeof *v->v);
        for (int i = 0; i < v->n; i++)
            list[i] = arena_string(arena, v->v[i]);
        v->v = list;
    }
}

void *attrs_copy(Arena *arena, const AttrSpec *specs, const void *attr)
{
    if (!specs || !attr)
        return attrs_default(arena, specs);
    char *copy = arena_alloc(arena, attrs_size(specs));
    for (const AttrSpec *s = specs; s->kind != ATTR_END; s++) {
        memcpy(copy + s->offset, (const char *)attr + s->offset, field_size(s->kind));
        own_field(arena, s, copy + s->offset);
    }
    return copy;
}

void attr_copy_as(const AttrSpec *as, void *to, const AttrSpec *spec, const void *from)
{
    memcpy((char *)to + as->offset, (const char *)from + spec->offset, field_size(spec->kind));
}

void attr_copy_field(const AttrSpec *spec, void *to, const void *from)
{
    attr_copy_as(spec, to, spec, from);
}

static bool strings_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool payloads_equal(const Payload *a, const Payload *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->type != b->type)
        return false;
    if (a->tensor && b->tensor)
        return tensor_same(a->tensor, b->tensor);
    return a->owner == b->owner && a->read == b->read && a->where == b->where && a->length == b->length;
}

static bool field_equal(const AttrSpec *s, const void *a, const void *b)
{
    switch (s->kind) {
    case ATTR_STR:
        return strings_equal(*(const char *const *)a, *(const char *const *)b);
    case ATTR_INTS: {
        const Ints *x = a, *y = b;
        return x->n == y->n && !x->v == !y->v && bytes_equal(x->v, y->v, (size_t)x->n * sizeof *x->v);
    }
    case ATTR_FLOATS: {
        const Floats *x = a, *y = b;
        return x->n == y->n && !x->v == !y->v && bytes_equal(x->v, y->v, (size_t)x->n * sizeof *x->v);
    }
    case ATTR_STRS: {
        const Strs *x = a, *y = b;
        bool equal = x->n == y->n && !x->v == !y->v;
        for (int i = 0; equal && i < x->n; i++)
            equal = strings_equal(x->v[i], y->v[i]);
        return equal;
    }
    case ATTR_PAYLOAD:
        return payloads_equal(*(Payload *const *)a, *(Payload *const *)b);
    default: /* floats by bits: -0 is not 0, a NaN is itself */
        return memcmp(a, b, field_size(s->kind)) == 0;
    }
}

bool attrs_equal(const AttrSpec *specs, const void *a, const void *b)
{
    if (a == b || !specs)
        return true;
    if (!a || !b)
        return false;
    for (const AttrSpec *s = specs; s->kind != ATTR_END; s++)
        if (!field_equal(s, attr_at(s, a), attr_at(s, b)))
            return false;
    return true;
}

static uint64_t hash_more(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static uint64_t hash_field(uint64_t h, const AttrSpec *s, const void *at)
{
    switch (s->kind) {
    case ATTR_STR: {
        const char *text = *(const char *const *)at;
        return text ? hash_more(h, text, strlen(text)) : h;
    }
    case ATTR_INTS: {
        const Ints *x = at;
        return x->n ? hash_more(h, x->v, (size_t)x->n * sizeof *x->v) : h;
    }
    case ATTR_FLOATS: {
        const Floats *x = at;
        return x->n ? hash_more(h, x->v, (size_t)x->n * sizeof *x->v) : h;
    }
    case ATTR_STRS: {
        const Strs *x = at;
        for (int i = 0; i < x->n; i++)
            h = hash_more(h, x->v[i], strlen(x->v[i]));
        return h;
    }
    case ATTR_PAYLOAD: { /* unread and read payloads may be equal only when both are read: the size is common */
        const Payload *p = *(Payload *const *)at;
        if (p && p->tensor && p->tensor->bytes <= 256 && p->type->dtype < F4E2M1)
            return hash_more(h, p->tensor->data, p->tensor->bytes);
        return p ? hash_more(h, &p->type, sizeof p->type) : h;
    }
    default:
        return hash_more(h, at, field_size(s->kind));
    }
}

uint64_t attrs_hash(const AttrSpec *specs, const void *attr)
{
    uint64_t h = 0xcbf29ce484222325u;
    if (!attr)
        return h;
    for (const AttrSpec *s = specs; s && s->kind != ATTR_END; s++)
        h = hash_field(h, s, attr_at(s, attr));
    return h;
}

const AttrSpec *attr_find(const AttrSpec *specs, Str name)
{
    for (const AttrSpec *s = specs; s && s->kind != ATTR_END; s++)
        if (str_is(name, s->name))
            return s;
    return NULL;
}

bool attr_is_default(const AttrSpec *spec, const void *attr)
{
    const void *at = attr_at(spec, attr);
    switch (spec->kind) {
    case ATTR_INT:
        return *(const int64_t *)at == (int64_t)spec->value && !spec->required;
    case ATTR_FLOAT: {
        const float v = (float)spec->value;
        return memcmp(at, &v, sizeof v) == 0 && !spec->required;
    }
    case ATTR_BOOL:
        return *(const bool *)at == (spec->value != 0) && !spec->required;
    case ATTR_ENUM:
    case ATTR_DTYPE:
        return *(const int *)at == (int)spec->value && !spec->required;
    case ATTR_STR:
        return strings_equal(*(const char *const *)at, spec->text);
    case ATTR_INTS:
        return !((const Ints *)at)->v;
    case ATTR_FLOATS:
        return !((const Floats *)at)->v;
    case ATTR_STRS:
        return !((const Strs *)at)->v;
    case ATTR_PAYLOAD:
    case ATTR_TYPE:
        return !*(void *const *)at;
    case ATTR_END:
        break;
    }
    return true;
}
