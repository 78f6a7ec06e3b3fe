#include "ir/type.h"

#include <inttypes.h>
#include <string.h>

typedef struct DTypeInfo {
    const char *text;
    int bits;
    DTypeClass class;
    int onnx;
} DTypeInfo;

static const DTypeInfo info[] = {
#define ROW(id, text, bits, class, onnx) [id] = { text, bits, class, onnx },
    DTYPES(ROW)
#undef ROW
};

const char *dtype_name(DType dtype)
{
    return info[dtype].text;
}

int dtype_bits(DType dtype)
{
    return info[dtype].bits;
}

DTypeClass dtype_class(DType dtype)
{
    return info[dtype].class;
}

int dtype_onnx(DType dtype)
{
    return info[dtype].onnx;
}

bool dtype_from_onnx(int64_t number, DType *dtype)
{
    for (int d = 0; d < DTYPE_COUNT; d++) {
        if (info[d].onnx == number) {
            *dtype = (DType)d;
            return true;
        }
    }
    return false;
}

bool dtype_from_name(Str name, DType *dtype)
{
    for (int d = 0; d < DTYPE_COUNT; d++) {
        if (str_is(name, info[d].text)) {
            *dtype = (DType)d;
            return true;
        }
    }
    return false;
}

/* Significand bits (the leading one counted) and exponent range decide inclusion among floats. */
static bool float_shape(DType d, int *digits, int *low, int *high)
{
    static const struct {
        DType dtype;
        int digits, low, high; /* smallest power of two that is a value, largest exponent */
    } shapes[] = {
        { F4E2M1, 2, -1, 2 },      { F6E2M3, 4, -3, 2 },   { F6E3M2, 3, -4, 4 },       { F8E4M3, 4, -9, 8 },
        { F8E4M3FNUZ, 4, -10, 7 }, { F8E5M2, 3, -16, 15 }, { F8E5M2FNUZ, 3, -17, 15 }, { F8E8M0, 1, -127, 127 },
        { F16, 11, -24, 15 },      { BF16, 8, -133, 127 }, { F32, 24, -149, 127 },     { F64, 53, -1074, 1023 },
    };
    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (shapes[i].dtype == d) {
            *digits = shapes[i].digits;
            *low = shapes[i].low;
            *high = shapes[i].high;
            return true;
        }
    }
    return false;
}

/* What a float type has besides numbers. */
static bool has_infinity(DType d)
{
    return d == F8E5M2 || d == F16 || d == BF16 || d == F32 || d == F64;
}

static bool has_nan(DType d)
{
    return d != F4E2M1 && d != F6E2M3 && d != F6E3M2;
}

static bool has_signed_zero(DType d)
{
    return d != F8E4M3FNUZ && d != F8E5M2FNUZ && d != F8E8M0;
}

static bool float_holds(DType wide, DType narrow)
{
    int wd, wl, wh, nd, nl, nh;
    if (!float_shape(wide, &wd, &wl, &wh) || !float_shape(narrow, &nd, &nl, &nh) || wide == F8E8M0)
        return false;
    return wd >= nd && wl <= nl && wh >= nh && has_infinity(wide) >= has_infinity(narrow) &&
           has_nan(wide) >= has_nan(narrow) && has_signed_zero(wide) >= has_signed_zero(narrow);
}

bool dtype_holds(DType wide, DType narrow)
{
    const DTypeClass w = dtype_class(wide), n = dtype_class(narrow);
    if (wide == narrow || (w == CLASS_BOOL && n == CLASS_BOOL))
        return true;
    if (w == CLASS_STRING || n == CLASS_STRING || w == CLASS_BOOL)
        return false;
    const int digits_needed = n == CLASS_BOOL ? 1 : n == CLASS_INT ? dtype_bits(narrow) - 1 : dtype_bits(narrow);
    if (w == CLASS_FLOAT && n == CLASS_FLOAT)
        return float_holds(wide, narrow);
    if (n == CLASS_FLOAT)
        return false;
    if (w == CLASS_FLOAT) {
        int digits, low, high;
        return float_shape(wide, &digits, &low, &high) && wide != F8E8M0 && low <= 0 && digits >= digits_needed &&
               high >= digits_needed;
    }
    if (n == CLASS_INT && w == CLASS_UINT)
        return false;
    return (w == CLASS_INT ? dtype_bits(wide) - 1 : dtype_bits(wide)) >= digits_needed;
}

void types_open(Types *t, Arena *arena)
{
    t->arena = arena;
    map_open(&t->map, arena);
}

/* The bytes that tell two types apart; parts are interned, so their addresses do. */
typedef struct Key {
    TypeKind kind;
    DType dtype;
    int rank, n_parts;
    const char *text;
} Key;

static const Type *intern(Types *t, Type want)
{
    enum { STACK_BYTES = 512 };
    const size_t dims = want.rank > 0 ? (size_t)want.rank * sizeof(int64_t) : 0;
    const size_t parts = (size_t)want.n_parts * sizeof(Type *);
    const size_t bytes = sizeof(Key) + dims + parts;
    _Alignas(16) char small[STACK_BYTES];
    const ArenaMark mark = arena_mark(t->arena);
    char *key = bytes <= sizeof small ? small : arena_alloc(t->arena, bytes);

    Key head;
    memset(&head, 0, sizeof head);
    head.kind = want.kind;
    head.dtype = want.dtype;
    head.rank = want.rank;
    head.n_parts = want.n_parts;
    head.text = want.text;
    memcpy(key, &head, sizeof head);
    if (dims)
        memcpy(key + sizeof head, want.dims, dims);
    if (parts)
        memcpy(key + sizeof head + dims, want.parts, parts);

    const MapEntry *e = map_find_n(&t->map, key, bytes);
    if (e) {
        arena_reset(t->arena, mark);
        return e->value.cp;
    }

    char *kept = key == small ? arena_copy(t->arena, key, bytes) : key;
    Type *type = NEW(t->arena, Type);
    *type = want;
    type->dims = dims ? (const int64_t *)(void *)(kept + sizeof head) : NULL;
    type->parts = parts ? (const Type *const *)(void *)(kept + sizeof head + dims) : NULL;
    map_put_n(&t->map, kept, bytes, NULL)->value.cp = type;
    return type;
}

const Type *type_tensor(Types *t, DType dtype, int rank, const int64_t *dims)
{
    BUG_IF(t->arena->memory, rank > MAX_RANK);
    return intern(t, (Type){ .kind = TYPE_TENSOR, .dtype = dtype, .rank = rank, .dims = dims });
}

const Type *type_unranked(Types *t, DType dtype)
{
    return type_tensor(t, dtype, RANK_UNKNOWN, NULL);
}

const Type *type_scalar(Types *t, DType dtype)
{
    return type_tensor(t, dtype, 0, NULL);
}

const Type *type_vector(Types *t, DType dtype, int64_t n)
{
    return type_tensor(t, dtype, 1, &n);
}

const Type *type_tuple(Types *t, int n, const Type *const *parts)
{
    return intern(t, (Type){ .kind = TYPE_TUPLE, .n_parts = n, .parts = parts });
}

const Type *type_seq(Types *t, const Type *element)
{
    return intern(t, (Type){ .kind = TYPE_SEQ, .n_parts = 1, .parts = &element });
}

const Type *type_optional(Types *t, const Type *element)
{
    return intern(t, (Type){ .kind = TYPE_OPTIONAL, .n_parts = 1, .parts = &element });
}

const Type *type_none(Types *t)
{
    return intern(t, (Type){ .kind = TYPE_NONE });
}

const Type *type_opaque(Types *t, const char *text)
{
    const MapEntry *e = map_find(&t->map, text);
    if (!e)
        e = map_put(&t->map, arena_string(t->arena, text), NULL);
    return intern(t, (Type){ .kind = TYPE_OPAQUE, .text = e->key });
}

const Type *type_with_dtype(Types *t, const Type *type, DType dtype)
{
    BUG_IF(t->arena->memory, type->kind != TYPE_TENSOR);
    return type->dtype == dtype ? type : type_tensor(t, dtype, type->rank, type->dims);
}

/* Types nest as deep as the file says (bounded by its reader); the walk keeps its own stack. */
enum { DEEPEST = 128 };

/* A type whose parts are partly visited: the walk is as deep as types nest, however many parts one has. */
typedef struct Open {
    const Type *type;
    const Type *other; /* of two that are compared */
    int next;
} Open;

static bool tensor_known(const Type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] < 0)
            return false;
    return type->rank >= 0;
}

bool type_same_shape(const Type *a, const Type *b)
{
    bool same = a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

/* Whether all inside a type that has parts is known. */
static bool parts_known(const Type *type)
{
    Open stack[DEEPEST];
    int depth = 0;
    for (;;) {
        if (type->kind == TYPE_TENSOR && !tensor_known(type))
            return false;
        if (type->n_parts && depth == DEEPEST)
            return false;
        if (type->n_parts)
            stack[depth++] = (Open){ .type = type };
        while (depth && stack[depth - 1].next == stack[depth - 1].type->n_parts)
            depth--;
        if (!depth)
            return true;
        type = stack[depth - 1].type->parts[stack[depth - 1].next++];
    }
}

/* Most types have no parts: a stack, which is cleared, would take longer than all else. */
bool type_known(const Type *type)
{
    if (type->n_parts)
        return parts_known(type);
    return type->kind != TYPE_TENSOR || tensor_known(type);
}

int64_t type_elements(const Type *type)
{
    int64_t n = 1;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return -1;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] == 0)
            return 0;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] < 0 || __builtin_mul_overflow(n, type->dims[i], &n))
            return -1;
    return n;
}

bool dtype_bytes(DType dtype, int64_t n, size_t *bytes)
{
    uint64_t bits;
    if (n < 0 || __builtin_mul_overflow((uint64_t)n, (uint64_t)dtype_bits(dtype), &bits) || bits > INT64_MAX - 7)
        return false;
    *bytes = (size_t)((bits + 7) / 8);
    return true;
}

bool type_bytes(const Type *type, size_t *bytes)
{
    return type->kind == TYPE_TENSOR && dtype_bytes(type->dtype, type_elements(type), bytes);
}

static bool dims_agree(const Type *a, const Type *b)
{
    if (a->rank < 0 || b->rank < 0)
        return true;
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] && a->dims[i] >= 0 && b->dims[i] >= 0)
            return false;
    return true;
}

static bool heads_agree(const Type *a, const Type *b)
{
    if (a->kind != b->kind || a->n_parts != b->n_parts || a->kind == TYPE_OPAQUE)
        return false;
    return a->kind != TYPE_TENSOR || (a->dtype == b->dtype && dims_agree(a, b));
}

static bool parts_agree(const Type *a, const Type *b)
{
    Open stack[DEEPEST];
    int depth = 0;
    for (;;) {
        if (a != b && (!heads_agree(a, b) || (a->n_parts && depth == DEEPEST)))
            return false;
        if (a != b && a->n_parts)
            stack[depth++] = (Open){ .type = a, .other = b };
        while (depth && stack[depth - 1].next == stack[depth - 1].type->n_parts)
            depth--;
        if (!depth)
            return true;
        Open *top = &stack[depth - 1];
        a = top->type->parts[top->next];
        b = top->other->parts[top->next++];
    }
}

bool type_agrees(const Type *a, const Type *b)
{
    return a == b || (a->n_parts ? parts_agree(a, b) : heads_agree(a, b));
}

static const Type *meet_tensors(Types *t, const Type *a, const Type *b)
{
    if (a->rank < 0)
        return b;
    if (b->rank < 0)
        return a;
    int64_t dims[MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i] >= 0 ? a->dims[i] : b->dims[i];
    return type_tensor(t, a->dtype, a->rank, dims);
}

/* Tuples are one level deep; of what nests deeper the first type is kept. */
const Type *type_meet(Types *t, const Type *a, const Type *b)
{
    if (a == b || a->kind != b->kind)
        return a;
    if (a->kind == TYPE_TENSOR)
        return meet_tensors(t, a, b);
    if (a->kind != TYPE_TUPLE || a->n_parts != b->n_parts)
        return type_known(b) ? b : a;
    enum { FEW = 32 };
    Arena many;
    arena_open(&many, t->arena->memory);
    const Type *few[FEW], **parts = a->n_parts <= FEW ? few : NEWS(&many, const Type *, a->n_parts);
    for (int i = 0; i < a->n_parts; i++)
        parts[i] = a->parts[i]->kind == TYPE_TENSOR && b->parts[i]->kind == TYPE_TENSOR
                       ? meet_tensors(t, a->parts[i], b->parts[i])
                       : a->parts[i];
    const Type *met = type_tuple(t, a->n_parts, parts);
    arena_close(&many);
    return met;
}

static const Type *join_tensors(Types *t, const Type *a, const Type *b)
{
    if (a == b)
        return a;
    if (a->kind != b->kind || a->kind != TYPE_TENSOR || a->dtype != b->dtype)
        return type_agrees(a, b) ? a : NULL;
    if (a->rank != b->rank || a->rank < 0)
        return type_unranked(t, a->dtype);
    int64_t dims[MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : DIM_UNKNOWN;
    return type_tensor(t, a->dtype, a->rank, dims);
}

/* Sequences and optionals are joined inside. */
const Type *type_join(Types *t, const Type *a, const Type *b)
{
    TypeKind around[DEEPEST];
    int depth = 0;
    while (a != b && a->kind == b->kind && (a->kind == TYPE_SEQ || a->kind == TYPE_OPTIONAL) && depth < DEEPEST) {
        around[depth++] = a->kind;
        a = a->parts[0];
        b = b->parts[0];
    }
    const Type *joined = join_tensors(t, a, b);
    while (joined && depth)
        joined = around[--depth] == TYPE_SEQ ? type_seq(t, joined) : type_optional(t, joined);
    return joined;
}

int type_results(const Type *type)
{
    return type->kind == TYPE_TUPLE ? type->n_parts : 1;
}

const Type *type_result(const Type *type, int i)
{
    return type->kind == TYPE_TUPLE ? type->parts[i] : type;
}

static void print_tensor(Text *out, const Type *type)
{
    text_add(out, dtype_name(type->dtype));
    if (type->rank < 0) {
        text_add(out, "[*]");
        return;
    }
    text_char(out, '[');
    for (int i = 0; i < type->rank; i++) {
        if (i)
            text_char(out, ',');
        if (type->dims[i] < 0)
            text_char(out, '?');
        else
            text_printf(out, "%" PRId64, type->dims[i]);
    }
    text_char(out, ']');
}

static bool print_head(Text *out, const Type *type)
{
    switch (type->kind) {
    case TYPE_NONE:
        text_add(out, "none");
        return false;
    case TYPE_TENSOR:
        print_tensor(out, type);
        return false;
    case TYPE_OPAQUE:
        text_add(out, "opaque(");
        text_quote(out, type->text, strlen(type->text));
        text_char(out, ')');
        return false;
    case TYPE_TUPLE:
        text_char(out, '(');
        return true;
    case TYPE_SEQ:
        text_add(out, "seq(");
        return true;
    case TYPE_OPTIONAL:
        text_add(out, "optional(");
        return true;
    }
    return false;
}

void type_print(Text *out, const Type *type)
{
    Open stack[DEEPEST];
    int depth = 0;
    if (print_head(out, type))
        stack[depth++] = (Open){ .type = type };
    while (depth) {
        Open *top = &stack[depth - 1];
        if (top->next == top->type->n_parts) {
            text_char(out, ')');
            depth--;
            continue;
        }
        if (top->next)
            text_add(out, ", ");
        const Type *part = top->type->parts[top->next++];
        if (print_head(out, part) && depth < DEEPEST)
            stack[depth++] = (Open){ .type = part };
    }
}

const char *type_text(Arena *arena, const Type *type)
{
    Text t;
    text_open(&t, arena);
    type_print(&t, type);
    return text_get(&t);
}
