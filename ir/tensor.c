#include "ir/tensor.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/half.h"
#include "base/pack.h"

static Tensor *shaped(Tensor *t, const Type *type, void *data, size_t bytes)
{
    *t = (Tensor){ .type = type, .data = data, .bytes = bytes, .refs = 1 };
    return t;
}

bool tensor_holds(const Type *type)
{
    return type->kind == TYPE_TENSOR && type->dtype != STRING && type_known(type);
}

Status tensor_wants_numbers(Diag *diag, Place place, const char *what, const Type *type)
{
    if (tensor_holds(type))
        return OK;
    const char *text = type_text(diag->arena, type);
    if (type->kind == TYPE_TENSOR && type->dtype != STRING)
        return fail_as(diag, USAGE, place, "%s is %s, which has no size", what, text);
    return fail_as(diag, UNSUPPORTED, place, "%s is %s: only tensors of numbers have values here", what, text);
}

Tensor *tensor_new(Arena *arena, const Type *type)
{
    size_t bytes;
    BUG_IF(arena->memory, type->kind != TYPE_TENSOR || type->dtype == STRING);
    if (!type_bytes(type, &bytes))
        memory_exhausted(arena->memory);
    return shaped(NEW(arena, Tensor), type, arena_alloc(arena, bytes ? bytes : 1), bytes);
}

Tensor *tensor_alloc(Heap *heap, const Type *type)
{
    enum { HEADER = 64 };
    size_t bytes;
    BUG_IF(heap->memory, type->kind != TYPE_TENSOR || type->dtype == STRING || sizeof(Tensor) > HEADER);
    if (!type_bytes(type, &bytes) || bytes > PTRDIFF_MAX - 2 * HEADER)
        memory_exhausted(heap->memory);
    char *block = heap_alloc(heap, bytes + HEADER); /* one block: the head, then the data, both aligned */
    if (bytes && dtype_bits(type->dtype) < 8)
        block[HEADER + bytes - 1] = 0; /* bits behind the last element are 0 in every tensor we make */
    return shaped((Tensor *)(void *)block, type, block + HEADER, bytes);
}

Tensor *tensor_hold(const Tensor *t)
{
    Tensor *held = (Tensor *)(uintptr_t)t;
    held->refs++;
    return held;
}

Tensor *tensor_group(Heap *heap, const Type *type, size_t n, Tensor *const *items)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, sizeof(Tensor *), &bytes) || bytes > PTRDIFF_MAX - 1024)
        memory_exhausted(heap->memory);
    char *block = heap_alloc(heap, sizeof(Tensor) + bytes);
    Tensor *t = shaped((Tensor *)(void *)block, type, NULL, 0);
    t->items = (Tensor **)(void *)(block + sizeof(Tensor));
    t->n_items = n;
    for (size_t i = 0; i < n; i++)
        t->items[i] = tensor_hold(items[i]);
    return t;
}

/* Groups nest; the pending ones are chained through their own items, so a deep nest needs no stack. */
void tensor_drop(Heap *heap, Tensor *t)
{
    Tensor *pending = NULL;
    while (t) {
        Tensor *next = NULL;
        if (--t->refs == 0) {
            if (t->n_items) {
                t->type = NULL;
                t->data = pending;
                pending = t;
            } else {
                heap_free(heap, t);
            }
        }
        while (pending && !next) {
            if (pending->n_items) {
                next = pending->items[--pending->n_items];
            } else {
                Tensor *done = pending;
                pending = done->data;
                heap_free(heap, done);
            }
        }
        t = next;
    }
}

Payload *payload_of(Arena *arena, const Tensor *t)
{
    Payload *p = NEW(arena, Payload);
    p->type = t->type;
    p->arena = arena;
    p->tensor = t;
    return p;
}

Status payload_read(Payload *p, Tensor *into, Diag *diag)
{
    if (p->tensor) {
        if (into->bytes)
            bytes_copy(into->data, p->tensor->data, into->bytes);
        return OK;
    }
    if (!p->read || p->failed || !tensor_holds(p->type))
        return payload_failed(p, diag, (Place){ .where = p->name, .byte = -1 });
    return p->failed = p->read(p, into->data, into->bytes, diag);
}

bool payload_part(Payload *p, uint64_t at, void *out, size_t bytes, Diag *diag)
{
    if (p->tensor && p->tensor->data) {
        memcpy(out, (const char *)p->tensor->data + at, bytes);
        return true;
    }
    if (!p->read_part || p->failed || !tensor_holds(p->type))
        return false;
    p->failed = p->read_part(p, at, out, bytes, diag);
    return p->failed == OK;
}

const Tensor *payload_cached(Payload *p, Diag *diag)
{
    if (p->tensor)
        return p->tensor;
    if (!p->read || p->failed || !tensor_holds(p->type))
        return NULL;
    Tensor *t = tensor_new(p->arena, p->type);
    p->failed = p->read(p, t->data, t->bytes, diag);
    return p->failed ? NULL : (p->tensor = t);
}

Status payload_failed(const Payload *p, Diag *diag, Place place)
{
    return p && p->failed ? p->failed : fail(diag, place, "its value cannot be read");
}

const Str *payload_strings(Payload *p, Arena *arena, Diag *diag)
{
    size_t bytes;
    if (p->type->kind != TYPE_TENSOR || p->type->dtype != STRING || !p->read || p->failed ||
        !type_bytes(p->type, &bytes))
        return NULL;
    Str *texts = arena_alloc(arena, bytes ? bytes : 1);
    p->failed = p->read(p, texts, bytes, diag);
    return p->failed ? NULL : texts;
}

/* A tensor of strings is never made; one that was put together by hand has no words to read or to overwrite. */
static uint64_t load_bits(const Tensor *t, int64_t i)
{
    const int bits = dtype_bits(t->type->dtype);
    const unsigned char *p = t->data;
    uint64_t word = 0;
    DEBUG_IF(bits > 64);
    if (bits > 64)
        return 0;
    if (bits < 8)
        return packed_bits(p, (size_t)i, (unsigned)bits);
    memcpy(&word, p + i * (bits / 8), (size_t)bits / 8);
    return word;
}

static void store_bits(Tensor *t, int64_t i, uint64_t word)
{
    const int bits = dtype_bits(t->type->dtype);
    unsigned char *p = t->data;
    DEBUG_IF(bits > 64);
    if (bits > 64)
        return;
    if (bits < 8)
        packed_put_bits(p, (size_t)i, (unsigned)bits, (uint8_t)word);
    else
        memcpy(p + i * (bits / 8), &word, (size_t)bits / 8);
}

static int64_t sign_extend(uint64_t word, int bits)
{
    const int up = 64 - bits;
    return (int64_t)(word << up) >> up;
}

int64_t tensor_get_i64(const Tensor *t, int64_t i)
{
    const DType d = t->type->dtype;
    if (dtype_is_float(d))
        return (int64_t)tensor_get_f64(t, i);
    const uint64_t word = load_bits(t, i);
    return dtype_class(d) == CLASS_INT ? sign_extend(word, dtype_bits(d)) : (int64_t)word;
}

static float float_of_bits(uint64_t word)
{
    const uint32_t w = (uint32_t)word;
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
}

double tensor_get_f64(const Tensor *t, int64_t i)
{
    const uint64_t word = load_bits(t, i);
    double d;
    switch (t->type->dtype) {
    case F4E2M1:
        return f4e2m1_to_f32((uint8_t)word);
    case F6E2M3:
        return f6e2m3_to_f32((uint8_t)word);
    case F6E3M2:
        return f6e3m2_to_f32((uint8_t)word);
    case F8E4M3:
        return f8e4m3fn_to_f32((uint8_t)word);
    case F8E4M3FNUZ:
        return f8e4m3fnuz_to_f32((uint8_t)word);
    case F8E5M2:
        return f8e5m2_to_f32((uint8_t)word);
    case F8E5M2FNUZ:
        return f8e5m2fnuz_to_f32((uint8_t)word);
    case F8E8M0:
        return e8m0_to_f32((uint8_t)word);
    case F16:
        return f16_to_f32((uint16_t)word);
    case BF16:
        return bf16_to_f32((uint16_t)word);
    case F32:
        return float_of_bits(word);
    case F64:
        memcpy(&d, &word, sizeof d);
        return d;
    case U64:
        return (double)word;
    default:
        return (double)tensor_get_i64(t, i);
    }
}

static int64_t to_i64(double v)
{
    if (!(v == v))
        return 0;
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

void tensor_set_i64(Tensor *t, int64_t i, int64_t value)
{
    const DType d = t->type->dtype;
    if (dtype_is_float(d))
        tensor_set_f64(t, i, (double)value);
    else
        store_bits(t, i, dtype_class(d) == CLASS_BOOL ? value != 0 : (uint64_t)value);
}

void tensor_set_f64(Tensor *t, int64_t i, double value)
{
    float f;
    uint32_t w;
    uint64_t word;
    switch (t->type->dtype) {
    case F4E2M1:
        store_bits(t, i, f4e2m1_from_f64(value));
        break;
    case F6E2M3:
        store_bits(t, i, f6e2m3_from_f64(value));
        break;
    case F6E3M2:
        store_bits(t, i, f6e3m2_from_f64(value));
        break;
    case F8E4M3:
        store_bits(t, i, f8e4m3fn_from_f64(value, true));
        break;
    case F8E4M3FNUZ:
        store_bits(t, i, f8e4m3fnuz_from_f64(value, true));
        break;
    case F8E5M2:
        store_bits(t, i, f8e5m2_from_f64(value, true));
        break;
    case F8E5M2FNUZ:
        store_bits(t, i, f8e5m2fnuz_from_f64(value, true));
        break;
    case F8E8M0:
        store_bits(t, i, e8m0_from_f64(value, E8M0_UP, true));
        break;
    case F16:
        store_bits(t, i, f16_from_f64(value));
        break;
    case BF16:
        store_bits(t, i, bf16_from_f64(value));
        break;
    case F32:
        f = (float)value;
        memcpy(&w, &f, sizeof w);
        store_bits(t, i, w);
        break;
    case F64:
        memcpy(&word, &value, sizeof word);
        store_bits(t, i, word);
        break;
    case BOOL:
    case BIT:
        store_bits(t, i, value != 0);
        break;
    case U64:
        store_bits(t, i, value >= 0x1p64 ? UINT64_MAX : value >= 0x1p63 ? (uint64_t)value : (uint64_t)to_i64(value));
        break;
    default:
        store_bits(t, i, (uint64_t)to_i64(value));
        break;
    }
}

static bool same_elements(const Tensor *a, const Tensor *b)
{
    if (a->bytes != b->bytes)
        return false;
    if (bytes_equal(a->data, b->data, a->bytes))
        return true;
    const bool is_float = dtype_is_float(a->type->dtype);
    if (!is_float && dtype_bits(a->type->dtype) >= 8)
        return false;
    const int64_t n = tensor_elements(a);
    for (int64_t i = 0; i < n; i++)
        if (load_bits(a, i) != load_bits(b, i) &&
            !(is_float && isnan(tensor_get_f64(a, i)) && isnan(tensor_get_f64(b, i))))
            return false;
    return true;
}

bool tensor_same(const Tensor *a, const Tensor *b)
{
    enum { DEEPEST = 64 };
    const Tensor *stack[DEEPEST][2];
    size_t next[DEEPEST];
    int depth = 0;
    for (;;) {
        if (a->type->kind != b->type->kind || a->n_items != b->n_items)
            return false;
        if (a->type->kind == TYPE_TENSOR && (a->type != b->type || !same_elements(a, b)))
            return false;
        if (a->n_items && depth < DEEPEST) {
            stack[depth][0] = a;
            stack[depth][1] = b;
            next[depth++] = 0;
        }
        while (depth && next[depth - 1] == stack[depth - 1][0]->n_items)
            depth--;
        if (!depth)
            return true;
        a = stack[depth - 1][0]->items[next[depth - 1]];
        b = stack[depth - 1][1]->items[next[depth - 1]++];
    }
}

Tensor *tensor_i64s(Arena *arena, Types *types, int64_t n, const int64_t *v)
{
    Tensor *t = tensor_new(arena, type_vector(types, I64, n));
    if (n)
        memcpy(t->data, v, (size_t)n * sizeof *v);
    return t;
}

Tensor *tensor_scalar(Arena *arena, Types *types, DType dtype, double v)
{
    Tensor *t = tensor_new(arena, type_scalar(types, dtype));
    tensor_set_f64(t, 0, v);
    return t;
}
