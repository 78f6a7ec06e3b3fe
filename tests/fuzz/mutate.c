/* Changes that keep the form of an input: what a reader refuses at its first byte tests nothing behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "fuzz/fuzz.h"

typedef struct Bytes {
    uint8_t *p;
    size_t n, cap;
} Bytes;

/* ---- pieces ---- */

/* Puts `with` in place of b[at..at+old); false where there is no room. */
static int replace(Bytes *b, size_t at, size_t old, const uint8_t *with, size_t n)
{
    if (b->n - old + n > b->cap)
        return 0;
    uint8_t *copy = malloc(n + 1); /* `with` may lie in b */
    memcpy(copy, with, n);
    memmove(b->p + at + n, b->p + at + old, b->n - at - old);
    memcpy(b->p + at, copy, n);
    b->n += n - old;
    free(copy);
    return 1;
}

static size_t below(Rng *r, size_t n)
{
    return (size_t)rng_below(r, (int64_t)n);
}

/* Numbers at which arithmetic goes wrong. */
static int64_t odd_number(Rng *r)
{
    static const int64_t odd[] = { 0,
                                   1,
                                   -1,
                                   2,
                                   7,
                                   8,
                                   63,
                                   64,
                                   127,
                                   128,
                                   255,
                                   256,
                                   1000,
                                   65535,
                                   65536,
                                   INT32_MAX,
                                   INT32_MIN,
                                   (int64_t)1 << 31,
                                   (int64_t)1 << 32,
                                   (int64_t)1 << 40,
                                   INT64_MAX,
                                   INT64_MIN };
    return rng_below(r, 3) ? odd[below(r, sizeof odd / sizeof *odd)] : rng_range(r, -16, 16);
}

static void change_bytes(Bytes *b, Rng *r)
{
    if (!b->n)
        return;
    const size_t at = below(r, b->n), length = 1 + below(r, b->n - at < 8 ? b->n - at : 8);
    switch (rng_below(r, 4)) {
    case 0:
        b->p[at] = (uint8_t)rng_u64(r);
        break;
    case 1:
        b->p[at] ^= (uint8_t)(1 << rng_below(r, 8));
        break;
    case 2:
        replace(b, at, length, b->p, 0);
        break;
    default:
        replace(b, at, 0, b->p + at, length);
    }
}

/* ---- text ---- */

static int is_word(uint8_t c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

/* A piece of the text that begins somewhere: a word, or one sign. */
static void word_at(const Bytes *b, size_t at, size_t *from, size_t *n)
{
    size_t end = at + 1;
    *from = at;
    if (is_word(b->p[at])) {
        while (*from && is_word(b->p[*from - 1]))
            (*from)--;
        while (end < b->n && is_word(b->p[end]))
            end++;
    }
    *n = end - *from;
}

static void line_at(const Bytes *b, size_t at, size_t *from, size_t *n)
{
    size_t end = at;
    *from = at;
    while (*from && b->p[*from - 1] != '\n')
        (*from)--;
    while (end < b->n && b->p[end] != '\n')
        end++;
    *n = end + (end < b->n) - *from;
}

static void change_text(Bytes *b, Rng *r)
{
    size_t from, n, other, m;
    char number[32];
    if (!b->n)
        return;
    void (*const piece)(const Bytes *, size_t, size_t *, size_t *) = rng_below(r, 3) ? word_at : line_at;
    piece(b, below(r, b->n), &from, &n);
    piece(b, below(r, b->n), &other, &m);
    switch (rng_below(r, 6)) {
    case 0: /* another piece in its place */
        replace(b, from, n, b->p + other, m);
        break;
    case 1: /* another one before it */
        replace(b, from, 0, b->p + other, m);
        break;
    case 2:
        replace(b, from, n, b->p, 0);
        break;
    case 3: /* itself, many times */
        for (int64_t k = rng_below(r, 20); k >= 0; k--)
            replace(b, from, 0, b->p + from, n);
        break;
    case 4:
        replace(b, from, n, (uint8_t *)number,
                (size_t)snprintf(number, sizeof number, "%lld", (long long)odd_number(r)));
        break;
    default:
        change_bytes(b, r);
    }
}

/* ---- protobuf ---- */

enum { DEEPEST = 64, MOST_FIELDS = 512 };

typedef struct Field {
    size_t at, payload, end; /* tag, what follows tag and length, end */
    int wire;                /* 0 varint, 1 eight bytes, 2 length, 5 four bytes */
} Field;

static int read_varint(const uint8_t *p, size_t *at, size_t end, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t c = p[(*at)++];
        *v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return 1;
    }
    return 0;
}

static size_t put_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    return n;
}

/* The fields of a message at p[at..end); 0 when it is none. */
static int read_fields(const uint8_t *p, size_t at, size_t end, Field *list)
{
    int n = 0;
    while (at < end && n < MOST_FIELDS) {
        uint64_t tag, size = 0;
        Field f = { .at = at };
        if (!read_varint(p, &at, end, &tag) || !(tag >> 3) || tag >> 3 > 10000)
            return 0;
        f.wire = (int)(tag & 7);
        f.payload = at;
        if (f.wire == 2) {
            if (!read_varint(p, &at, end, &size))
                return 0;
            f.payload = at;
        } else if (f.wire == 0) {
            if (!read_varint(p, &at, end, &size))
                return 0;
            size = 0;
        } else {
            size = f.wire == 1 ? 8 : 4;
        }
        if ((f.wire != 0 && f.wire != 1 && f.wire != 2 && f.wire != 5) || size > end - at)
            return 0;
        f.end = at += (size_t)size;
        list[n++] = f;
    }
    return n;
}

/* A field and the messages around it. */
typedef struct Path {
    Field around[DEEPEST];
    int depth;
    Field list[MOST_FIELDS]; /* of the innermost message */
    int n, chosen;
} Path;

static void find_field(const Bytes *b, Rng *r, Path *path)
{
    size_t at = 0, end = b->n;
    path->depth = 0;
    path->n = 0;
    for (;;) {
        Field list[MOST_FIELDS];
        const int n = read_fields(b->p, at, end, list);
        if (!n && path->n) /* bytes, not a message: the field that holds them is the one */
            return;
        memcpy(path->list, list, sizeof list);
        path->n = n;
        path->chosen = (int)below(r, (size_t)n);
        const Field *f = &list[path->chosen];
        if (!n || f->wire != 2 || path->depth == DEEPEST || rng_below(r, 4) == 0)
            return;
        Field inner[MOST_FIELDS];
        if (!read_fields(b->p, f->payload, f->end, inner))
            return;
        path->around[path->depth++] = *f;
        at = f->payload;
        end = f->end;
    }
}

/* Lengths of the messages around a change that made them `by` bytes longer, innermost first. */
static void mend_lengths(Bytes *b, const Path *path, int64_t by)
{
    for (int i = path->depth - 1; i >= 0; i--) {
        const Field *f = &path->around[i];
        uint8_t head[20];
        size_t at = f->at;
        uint64_t tag;
        read_varint(b->p, &at, b->n, &tag);
        size_t n = put_varint(head, tag);
        n += put_varint(head + n, (uint64_t)((int64_t)(f->end - f->payload) + by));
        const size_t old = f->payload - f->at;
        if (!replace(b, f->at, old, head, n))
            return;
        by += (int64_t)n - (int64_t)old;
    }
}

static void new_payload(Bytes *b, const Path *path, const Field *f, const uint8_t *with, size_t n)
{
    uint8_t *field = malloc(n + 24);
    size_t at = f->at;
    uint64_t tag;
    read_varint(b->p, &at, b->n, &tag);
    size_t k = put_varint(field, tag);
    if (f->wire == 2)
        k += put_varint(field + k, n);
    memcpy(field + k, with, n);
    const size_t before = b->n;
    if (replace(b, f->at, f->end - f->at, field, k + n))
        mend_lengths(b, path, (int64_t)b->n - (int64_t)before);
    free(field);
}

static void change_value(Bytes *b, const Path *path, const Field *f, Rng *r)
{
    uint8_t value[16];
    if (f->wire == 0) {
        new_payload(b, path, f, value, put_varint(value, (uint64_t)odd_number(r)));
    } else if (f->wire == 2) {
        const size_t cap = f->end - f->payload + 64;
        Bytes inner = { malloc(cap), f->end - f->payload, cap };
        memcpy(inner.p, b->p + f->payload, inner.n);
        change_bytes(&inner, r);
        new_payload(b, path, f, inner.p, inner.n);
        free(inner.p);
    } else {
        const uint64_t v = (uint64_t)odd_number(r);
        memcpy(b->p + f->payload, &v, f->end - f->payload);
    }
}

static void change_wire(Bytes *b, Rng *r)
{
    Path *path = malloc(sizeof *path);
    const size_t before = b->n;
    find_field(b, r, path);
    const Field *f = &path->list[path->chosen], *other = &path->list[path->n ? below(r, (size_t)path->n) : 0];
    if (!path->n) {
        change_bytes(b, r);
    } else {
        int done = 0;
        switch (rng_below(r, 6)) {
        case 0: /* drop it */
            done = replace(b, f->at, f->end - f->at, b->p, 0);
            break;
        case 1: /* once more */
            done = replace(b, f->end, 0, b->p + f->at, f->end - f->at);
            break;
        case 2: /* a brother in its place */
            done = replace(b, f->at, f->end - f->at, b->p + other->at, other->end - other->at);
            break;
        case 3: /* the payload of a brother */
            if (f->wire == other->wire)
                new_payload(b, path, f, b->p + other->payload, other->end - other->payload);
            break;
        default:
            change_value(b, path, f, r);
        }
        if (done)
            mend_lengths(b, path, (int64_t)b->n - (int64_t)before);
    }
    free(path);
}

/* ---- safetensors ---- */

static void change_safe(Bytes *b, Rng *r)
{
    uint64_t n = 0;
    if (b->n >= 8)
        memcpy(&n, b->p, 8);
    if (b->n < 8 || n > b->n - 8 || rng_below(r, 8) == 0) {
        change_bytes(b, r);
        return;
    }
    const size_t rest = b->n - 8 - (size_t)n;
    Bytes head = { malloc((size_t)n + 4096), (size_t)n, (size_t)n + 4096 };
    memcpy(head.p, b->p + 8, (size_t)n);
    change_text(&head, r);
    if (replace(b, 8, (size_t)n, head.p, head.n)) {
        const uint64_t size = head.n;
        memcpy(b->p, &size, 8);
    }
    if (rng_below(r, 3) == 0 && rest) { /* more or fewer bytes of tensors */
        Bytes tail = { b->p + b->n - rest, rest, rest + (b->cap - b->n) };
        change_bytes(&tail, r);
        b->n = b->n - rest + tail.n;
    }
    free(head.p);
}

/* ---- the whole ---- */

size_t fuzz_mutate(uint8_t *data, size_t n, size_t cap, uint64_t seed)
{
    static void (*const changes[])(Bytes *, Rng *) = {
        [FUZZ_BYTES] = change_bytes, [FUZZ_TEXT] = change_text, [FUZZ_WIRE] = change_wire, [FUZZ_SAFE] = change_safe
    };
    Bytes b = { data, n, cap };
    Rng r = { seed };
    for (int64_t k = rng_below(&r, 4); k >= 0; k--)
        changes[fuzz_form](&b, &r);
    return b.n;
}

#ifdef FUZZ_WITH_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* One change in three is libFuzzer's own, which knows what the code compares with. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    if (fuzz_form == FUZZ_BYTES || seed % 3 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return fuzz_mutate(data, size, max_size, seed);
}
#endif
