/* Protobuf bytes by hand, and what tests of the reader share: a context with a memory, an arena and a sink that keeps
 * the last message. */
#ifndef TESTS_ONNX_BYTES_H
#define TESTS_ONNX_BYTES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#undef fail /* base/diag.h has a function of that name; where cmocka is meant: FAIL */
#define FAIL(...) (print_error(__VA_ARGS__), _fail(__FILE__, __LINE__))

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/limits.h"

typedef struct Fixture {
    Memory memory;
    Arena arena;
    Diag diag;
    Limits limits;
    char said[2000]; /* the last message, printed */
    Status (*body)(struct Fixture *f, void *arg);
    void *arg;
} Fixture;

static inline void fixture_report(void *user, const Message *message)
{
    Fixture *f = user;
    Text text;

    text_open(&text, &f->arena);
    message_print(&text, message);
    snprintf(f->said, sizeof f->said, "%s", text_get(&text));
}

static inline Status fixture_main(void *arg)
{
    Fixture *f = arg;

    arena_open(&f->arena, &f->memory);
    diag_open(&f->diag, &f->arena, fixture_report, f);
    Status status = f->body(f, f->arg);
    arena_close(&f->arena);
    return status;
}

/* Runs body(f, arg) where allocations may jump; nothing may be left allocated. */
static inline Status fixture_run(Fixture *f, Status (*body)(Fixture *f, void *arg), void *arg)
{
    memory_open(&f->memory, NULL);
    f->limits = LIMITS_DEFAULT;
    f->said[0] = '\0';
    f->body = body;
    f->arg = arg;
    Status status = guarded(&f->memory, fixture_main, f);
    assert_int_equal(f->memory.used, 0);
    return status;
}

typedef struct Bytes {
    uint8_t *p;
    size_t n, cap;
} Bytes;

static inline void put(Bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = (b->n + n) * 2;
        b->p = realloc(b->p, b->cap);
        assert_non_null(b->p);
    }
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
}

static inline void put_varint(Bytes *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        put(b, &(uint8_t){ (uint8_t)(v | 0x80) }, 1);
    put(b, &(uint8_t){ (uint8_t)v }, 1);
}

static inline void put_key(Bytes *b, uint32_t number, int wire)
{
    put_varint(b, (uint64_t)number << 3 | (unsigned)wire);
}

static inline void put_int(Bytes *b, uint32_t number, uint64_t v)
{
    put_key(b, number, 0);
    put_varint(b, v);
}

static inline void put_bytes(Bytes *b, uint32_t number, const void *p, size_t n)
{
    put_key(b, number, 2);
    put_varint(b, n);
    put(b, p, n);
}

static inline void put_text(Bytes *b, uint32_t number, const char *text)
{
    put_bytes(b, number, text, strlen(text));
}

/* Puts `inner` as a message and frees it. */
static inline void put_message(Bytes *b, uint32_t number, Bytes inner)
{
    put_bytes(b, number, inner.p, inner.n);
    free(inner.p);
}

static inline Bytes read_whole_file(const char *path)
{
    Bytes b = { 0 };
    char block[65536];
    size_t n;
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        put(&b, block, n);
    fclose(file);
    return b;
}

/* Calls visit for every model of Debian's test data and, where QCC_ONNX_1_23 names a folder, of the data there;
 * returns how many there were. */
static inline size_t each_model(void (*visit)(const char *path, void *arg), void *arg)
{
    const char *newest = getenv("QCC_ONNX_1_23");
    char pattern[4][1000];
    glob_t found = { 0 };
    int flags = 0;

    snprintf(pattern[0], sizeof pattern[0], "/usr/share/libonnx-testdata/data/*/*/model.onnx");
    snprintf(pattern[1], sizeof pattern[1], "%s/*/model.onnx", newest ? newest : "/nonexistent");
    snprintf(pattern[2], sizeof pattern[2], "%s/*/*/model.onnx", newest ? newest : "/nonexistent");
    snprintf(pattern[3], sizeof pattern[3], "%s/*/*/*/model.onnx", newest ? newest : "/nonexistent");
    for (int i = 0; i < 4; i++, flags = GLOB_APPEND)
        glob(pattern[i], flags, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        visit(found.gl_pathv[i], arg);
    size_t n = found.gl_pathc;
    globfree(&found);
    if (n == 0)
        printf("skipped: no models of ONNX's tests; package libonnx-testdata\n");
    return n;
}

/* The head of a TensorProto: n elements of a type. */
static inline Bytes tensor_of(int dtype, int64_t n)
{
    Bytes t = { 0 };

    put_int(&t, 1, (uint64_t)n);
    put_int(&t, 2, (uint64_t)dtype);
    return t;
}

/* An entry of external_data. */
static inline void put_entry(Bytes *t, const char *key, const char *value)
{
    Bytes e = { 0 };

    put_text(&e, 1, key);
    put_text(&e, 2, value);
    put_message(t, 13, e);
}

#endif
