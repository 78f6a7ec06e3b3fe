#include "runtime/data/npy.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/pack.h"

enum { MAGIC_BYTES = 6, FIRST_BYTES = 12, LONGEST_HEAD = 1 << 20 };
static const char magic[] = "\x93NUMPY";

/* Types as NumPy writes them, without the byte order. */
static const struct {
    const char *name;
    DType dtype;
} types_of_numpy[] = {
    { "b1", BOOL }, { "i1", I8 },  { "u1", U8 },  { "i2", I16 }, { "u2", U16 }, { "i4", I32 },
    { "u4", U32 },  { "i8", I64 }, { "u8", U64 }, { "f2", F16 }, { "f4", F32 }, { "f8", F64 },
};

/* Names of ml_dtypes. */
static const struct {
    const char *name;
    DType dtype;
} names_of_ml_dtypes[] = {
    { "bfloat16", BF16 },
    { "float8_e4m3fn", F8E4M3 },
    { "float8_e4m3fnuz", F8E4M3FNUZ },
    { "float8_e5m2", F8E5M2 },
    { "float8_e5m2fnuz", F8E5M2FNUZ },
    { "float8_e8m0fnu", F8E8M0 },
    { "float4_e2m1fn", F4E2M1 },
    { "float6_e2m3fn", F6E2M3 },
    { "float6_e3m2fn", F6E3M2 },
    { "int4", I4 },
    { "uint4", U4 },
    { "int2", I2 },
    { "uint2", U2 },
};

const char *npy_ml_dtype(DType dtype)
{
    for (size_t i = 0; i < COUNT(names_of_ml_dtypes); i++)
        if (names_of_ml_dtypes[i].dtype == dtype)
            return names_of_ml_dtypes[i].name;
    return NULL;
}

bool npy_is(const void *bytes, size_t n)
{
    return n >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

/* ---- the dictionary: a Python literal, of which three keys are known ---- */

typedef struct Dict {
    Diag *d;
    Place place;
    const char *p;
    NpyHead *head;
    const Type *declared;
} Dict;

static Status bad(Dict *q, const char *what)
{
    return fail(q->d, q->place, "is no array that we read: %s", what);
}

static void skip_blanks(Dict *q)
{
    q->p += strspn(q->p, " \t\n");
}

static bool take(Dict *q, char c)
{
    skip_blanks(q);
    if (*q->p != c)
        return false;
    q->p++;
    return true;
}

/* A quoted string without escapes. */
static bool take_string(Dict *q, Str *s)
{
    skip_blanks(q);
    const char quote = *q->p;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(q->p + 1, quote);
    if (!end)
        return false;
    *s = (Str){ q->p + 1, (size_t)(end - q->p - 1) };
    q->p = end + 1;
    return true;
}

/* Raw bytes are what is declared where the size is right, else the usual suspect. */
static Status raw_type(Dict *q, Str size, DType guess)
{
    const Type *t = q->declared && q->declared->kind == TYPE_TENSOR ? q->declared : NULL;
    const int bytes = size.n == 1 ? size.p[0] - '0' : 0;
    if (bytes != 1 && bytes != 2)
        return bad(q, "raw bytes (V) of a size that no element type has");
    q->head->untyped = true;
    q->head->dtype = bytes == 2 ? BF16 : guess;
    if (t && (dtype_bits(t->dtype) == 8 * bytes || (bytes == 1 && dtype_bits(t->dtype) < 8)))
        q->head->dtype = t->dtype;
    q->head->unpacked = dtype_bits(q->head->dtype) < 8;
    return OK;
}

static Status python_objects(Dict *q)
{
    Message *m = message_new(q->d, SEVERITY_ERROR, INVALID, q->place, "holds Python objects (pickled), not numbers");
    message_try(m, "numpy.save(path, x.astype(numpy.float32), allow_pickle=False)");
    return message_send(m);
}

static Status read_descr(Dict *q)
{
    Str s;
    skip_blanks(q);
    if (*q->p == '[')
        return bad(q, "a structured type (records)");
    if (!take_string(q, &s) || !s.n)
        return bad(q, "descr");
    for (size_t i = 0; i < COUNT(names_of_ml_dtypes); i++)
        if (str_is(s, names_of_ml_dtypes[i].name)) {
            q->head->dtype = names_of_ml_dtypes[i].dtype;
            q->head->unpacked = dtype_bits(q->head->dtype) < 8;
            return OK;
        }
    q->head->swapped = s.p[0] == '>';
    if (strchr("<>|=", s.p[0]))
        s = (Str){ s.p + 1, s.n - 1 };
    if (s.n && s.p[0] == 'O')
        return python_objects(q);
    if (s.n && s.p[0] == 'V')
        return raw_type(q, (Str){ s.p + 1, s.n - 1 }, F8E4M3);
    if (str_is(s, "f1"))
        return raw_type(q, str("1"), F8E5M2);
    for (size_t i = 0; i < COUNT(types_of_numpy); i++)
        if (str_is(s, types_of_numpy[i].name)) {
            q->head->dtype = types_of_numpy[i].dtype;
            return OK;
        }
    return fail_as(q->d, UNSUPPORTED, q->place, "element type '%.*s'", STR_ARG(s));
}

static Status read_shape(Dict *q)
{
    NpyHead *h = q->head;
    if (!take(q, '('))
        return bad(q, "shape");
    for (h->rank = 0; !take(q, ')'); h->rank++) {
        int64_t n = 0;
        skip_blanks(q);
        if (*q->p < '0' || *q->p > '9')
            return bad(q, "shape");
        for (; *q->p >= '0' && *q->p <= '9'; q->p++)
            if (!checked_mul_i64(n, 10, &n) || !checked_add_i64(n, *q->p - '0', &n))
                return bad(q, "a dimension that is too large");
        if (h->rank == MAX_RANK)
            return bad(q, "more than 16 dimensions");
        h->dims[h->rank] = n;
        q->p += *q->p == 'L'; /* as Python 2 wrote it */
        skip_blanks(q);
        if (*q->p != ')' && !take(q, ','))
            return bad(q, "shape");
    }
    return OK;
}

static Status read_entry(Dict *q, unsigned *seen)
{
    Str key;
    if (!take_string(q, &key) || !take(q, ':'))
        return bad(q, "its head is no dictionary");
    if (str_is(key, "descr")) {
        *seen |= 1;
        return read_descr(q);
    }
    if (str_is(key, "shape")) {
        *seen |= 2;
        return read_shape(q);
    }
    skip_blanks(q);
    if (!str_is(key, "fortran_order"))
        return bad(q, "an unknown key in its head");
    *seen |= 4;
    q->head->fortran = strncmp(q->p, "True", 4) == 0;
    if (!q->head->fortran && strncmp(q->p, "False", 5) != 0)
        return bad(q, "fortran_order");
    q->p += q->head->fortran ? 4 : 5;
    return OK;
}

static Status read_dict(Dict *q)
{
    unsigned seen = 0;
    if (!take(q, '{'))
        return bad(q, "its head is no dictionary");
    while (!take(q, '}')) {
        TRY(read_entry(q, &seen));
        if (!take(q, ',') && (skip_blanks(q), *q->p != '}'))
            return bad(q, "its head is no dictionary");
    }
    return seen == 7 ? OK : bad(q, "descr, fortran_order or shape is missing");
}

/* ---- files ---- */

size_t npy_head_bytes(const uint8_t first[12])
{
    const int version = first[6];
    if (!npy_is(first, FIRST_BYTES) || version < 1 || version > 3)
        return 0;
    const uint32_t wide = version > 1 ? (uint32_t)first[10] | (uint32_t)first[11] << 8 : 0;
    const uint32_t n = ((uint32_t)first[8] | (uint32_t)first[9] << 8) | wide << 16;
    return n > LONGEST_HEAD ? 0 : n + (version > 1 ? 12 : 10);
}

/* The text of the head, up to where the elements begin. */
static Status read_head_text(Dict *q, const Bytes *file)
{
    uint8_t first[FIRST_BYTES];
    if (file->size < sizeof first)
        return bad(q, "it is too short");
    TRY(bytes_get(file, q->d, 0, first, sizeof first));
    if (!npy_is(first, sizeof first))
        return bad(q, "it does not begin with \\x93NUMPY");
    if (first[6] < 1 || first[6] > 3)
        return fail(q->d, q->place, "version %d of the format is not known", first[6]);
    q->head->at = npy_head_bytes(first);
    if (!q->head->at || q->head->at > file->size)
        return bad(q, "its head is longer than it");
    const size_t start = first[6] > 1 ? 12 : 10, n = (size_t)q->head->at - start;
    char *text = arena_alloc(q->d->arena, n + 1);
    q->p = text;
    return bytes_get(file, q->d, start, text, n);
}

Status npy_head(Diag *d, const Limits *limits, const Bytes *file, const Type *declared, NpyHead *head)
{
    Dict q = { .d = d, .place = { .file = file->name, .byte = -1 }, .head = head, .declared = declared };
    *head = (NpyHead){ .size = file->size };
    TRY(read_head_text(&q, file));
    TRY(read_dict(&q));
    const DType want = declared && declared->kind == TYPE_TENSOR ? declared->dtype : head->dtype;
    if (dtype_bits(want) < 8 && (head->dtype == I8 || head->dtype == U8)) { /* small integers, a byte each */
        head->dtype = want;
        head->unpacked = true;
    }
    int64_t elements;
    if (!checked_product_i64(head->dims, head->rank, limits->elements, &elements))
        return fail(d, q.place, "more elements than the limit elements (%" PRId64 ")", limits->elements);
    return OK;
}

void npy_swap(void *elements, size_t n, size_t width)
{
    uint8_t *p = elements;
    for (size_t i = 0; i + width <= n; i += width)
        for (size_t k = 0; k < width / 2; k++) {
            const uint8_t t = p[i + k];
            p[i + k] = p[i + width - 1 - k];
            p[i + width - 1 - k] = t;
        }
}

/* Walks the result, keeping the place in the source. */
void npy_reorder(void *to, const void *from, const NpyHead *h, int64_t n, size_t width)
{
    int64_t stride[MAX_RANK], index[MAX_RANK] = { 0 }, step = 1, at = 0;
    for (int i = 0; i < h->rank; i++) {
        stride[i] = step;
        step *= h->dims[i];
    }
    for (int64_t k = 0; k < n; k++) {
        memcpy((char *)to + (size_t)k * width, (const char *)from + (size_t)at * width, width);
        for (int i = h->rank - 1; i >= 0; i--) {
            at += stride[i];
            if (++index[i] < h->dims[i])
                break;
            at -= stride[i] * h->dims[i];
            index[i] = 0;
        }
    }
}

/* The elements as they are stored, in C order and this machine's byte order. */
static Status read_elements(Heap *heap, Diag *d, const Bytes *file, const NpyHead *h, int64_t n, size_t width,
                            uint8_t *out)
{
    const size_t bytes = (size_t)n * width;
    const bool turn = h->fortran && h->rank > 1;
    uint8_t *raw = turn ? heap_alloc(heap, bytes) : out;
    const Status status = bytes_get(file, d, h->at, raw, bytes);
    if (status == OK && h->swapped)
        npy_swap(raw, bytes, width);
    if (turn) {
        if (status == OK)
            npy_reorder(out, raw, h, n, width);
        heap_free(heap, raw);
    }
    return status;
}

/* Bytes into elements of fewer bits; the bits above must be copies of the sign, or 0. */
static Status pack_elements(Diag *d, Place place, Tensor *t, const uint8_t *from, int64_t n)
{
    const int bits = dtype_bits(t->type->dtype);
    const unsigned mask = (1u << bits) - 1;
    const bool is_signed = dtype_class(t->type->dtype) == CLASS_INT;
    memset(t->data, 0, t->bytes);
    for (int64_t i = 0; i < n; i++) {
        const unsigned sign = is_signed && from[i] >> (bits - 1) & 1 ? ~mask & 0xff : 0;
        if ((from[i] & ~mask & 0xff) != sign && (from[i] & ~mask & 0xff) != 0)
            return fail(d, place, "element %" PRId64 " is no %s", i, dtype_name(t->type->dtype));
        packed_put_bits(t->data, (size_t)i, (unsigned)bits, from[i]);
    }
    return OK;
}

Status npy_read_bytes(Types *types, Heap *heap, Diag *d, const Limits *limits, const Bytes *file, const Type *declared,
                      Tensor **value)
{
    NpyHead h;
    size_t bytes;
    const Place place = { .file = file->name, .byte = -1 };
    TRY(npy_head(d, limits, file, declared, &h));
    const int64_t n = type_elements(type_tensor(types, h.dtype, h.rank, h.dims));
    const size_t width = h.unpacked ? 1 : (size_t)dtype_bits(h.dtype) / 8;
    if (!checked_mul_size((size_t)n, width, &bytes) || bytes > h.size - h.at)
        return fail(d, place, "ends before its %" PRId64 " elements do", n);
    Tensor *t = tensor_alloc(heap, type_tensor(types, h.dtype, h.rank, h.dims));
    uint8_t *out = h.unpacked ? heap_alloc(heap, bytes) : t->data;
    Status status = read_elements(heap, d, file, &h, n, width, out);
    if (h.unpacked) {
        if (status == OK)
            status = pack_elements(d, place, t, out, n);
        heap_free(heap, out);
    }
    if (status != OK)
        tensor_drop(heap, t);
    else
        *value = t;
    return status;
}

Status npy_read(Types *types, Heap *heap, Diag *d, const Limits *limits, const char *path, const Type *declared,
                Tensor **value)
{
    Bytes file;
    Cleanup cleanup;
    TRY(bytes_open(&file, d, path));
    cleanup_push(heap->memory, &cleanup, bytes_close, &file);
    const Status status = npy_read_bytes(types, heap, d, limits, &file, declared, value);
    cleanup_drop(&cleanup);
    bytes_close(&file);
    return status;
}

/* ---- writing ---- */

static const char *descr_of(DType dtype)
{
    if (dtype_bits(dtype) < 8 && !dtype_is_float(dtype))
        return dtype_class(dtype) == CLASS_INT ? "i1" : "u1";
    for (size_t i = 0; i < COUNT(types_of_numpy); i++)
        if (types_of_numpy[i].dtype == dtype)
            return types_of_numpy[i].name;
    return dtype_bits(dtype) == 16 ? "V2" : "V1";
}

static Status write_unpacked(const Tensor *t, Status (*put)(void *user, const void *bytes, size_t n), void *user)
{
    uint8_t block[4096];
    const int64_t n = tensor_elements(t);
    const int bits = dtype_bits(t->type->dtype);
    const bool is_signed = dtype_class(t->type->dtype) == CLASS_INT;
    for (int64_t i = 0; i < n;) {
        size_t k = 0;
        for (; k < sizeof block && i < n; k++, i++) {
            unsigned v = packed_bits(t->data, (size_t)i, (unsigned)bits);
            if (is_signed && v >> (bits - 1))
                v |= 0xffu << bits;
            block[k] = (uint8_t)v;
        }
        TRY(put(user, block, k));
    }
    return OK;
}

Status npy_write(Arena *scratch, const Tensor *t, Status (*put)(void *user, const void *bytes, size_t n), void *user)
{
    enum { ALIGN = 64, FIXED = 10 };
    Text head;
    const char *descr = descr_of(t->type->dtype);
    const int bits = dtype_bits(t->type->dtype);
    text_open(&head, scratch);
    text_printf(&head, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                descr[1] == '1' && descr[0] != 'V' ? "|" : "<", descr);
    for (int i = 0; i < t->type->rank; i++)
        text_printf(&head, "%s%" PRId64, i ? ", " : "", t->type->dims[i]);
    text_add(&head, t->type->rank == 1 ? ",), }" : "), }");
    while ((FIXED + head.n + 1) % ALIGN)
        text_char(&head, ' ');
    text_char(&head, '\n');
    const uint8_t fixed[FIXED] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)head.n, (uint8_t)(head.n >> 8) };
    TRY(put(user, fixed, sizeof fixed));
    TRY(put(user, head.p, head.n));
    return bits < 8 ? write_unpacked(t, put, user) : put(user, t->data, t->bytes);
}
