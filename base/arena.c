#include "base/arena.h"

#include <stdio.h>
#include <string.h>

#include "base/nan_text.h"
#include "base/poison.h"

enum { FIRST_CHUNK = 4096 - 64, LARGEST_CHUNK = 1 << 20, ALIGNMENT = 16 };

struct ArenaChunk {
    ArenaChunk *older;
    size_t size; /* of the whole block */
    _Alignas(ALIGNMENT) char bytes[];
};

static void release_spare(Arena *a)
{
    if (a->spare)
        memory_release(a->memory, a->spare, a->spare->size);
    a->spare = NULL;
}

static void close_arena(void *thing)
{
    Arena *a = thing;
    while (a->chunk) {
        ArenaChunk *older = a->chunk->older;
        memory_release(a->memory, a->chunk, a->chunk->size);
        a->chunk = older;
    }
    release_spare(a);
    a->at = a->end = NULL;
}

void arena_open(Arena *a, Memory *m)
{
    *a = (Arena){ .memory = m };
    cleanup_push(m, &a->cleanup, close_arena, a);
}

void arena_keep(Arena *a)
{
    cleanup_drop(&a->cleanup);
}

void arena_close(Arena *a)
{
    cleanup_drop(&a->cleanup);
    close_arena(a);
}

void arena_reuse(Arena *a)
{
    a->reuses = true;
}

void arena_expect(Arena *a, size_t bytes)
{
    const size_t whole = bytes < PTRDIFF_MAX / 2 ? bytes + sizeof(ArenaChunk) : 0;
    a->most = whole > a->most ? whole : a->most;
}

/* A chunk of that size or larger; a spare one that is too small makes room. */
static ArenaChunk *take_chunk(Arena *a, size_t *size)
{
    ArenaChunk *c = a->spare;
    if (c && c->size >= *size) {
        a->spare = NULL;
        *size = c->size;
        return c;
    }
    release_spare(a);
    return memory_block(a->memory, *size);
}

static void add_chunk(Arena *a, size_t size)
{
    size_t want = a->memory->apart ? 0 : a->chunk ? a->chunk->size * 2 : FIRST_CHUNK;
    if (want > LARGEST_CHUNK)
        want = LARGEST_CHUNK;
    if (size > PTRDIFF_MAX / 2)
        memory_exhausted(a->memory);
    if (want < size + sizeof(ArenaChunk))
        want = size + sizeof(ArenaChunk);
    if (want < a->most && !a->memory->apart && (!a->chunk || a->chunk->size < a->most))
        want = a->most;

    a->lost += (size_t)(a->end - a->at);
    ArenaChunk *c = take_chunk(a, &want);
    c->older = a->chunk;
    c->size = want;
    a->chunk = c;
    a->at = c->bytes;
    a->end = (char *)c + want;
    poison(a->at, (size_t)(a->end - a->at));
}

void *arena_room(Arena *a, size_t size)
{
    memory_poll(a->memory);
    if (size > PTRDIFF_MAX / 2)
        memory_exhausted(a->memory);
    const size_t place = size ? size : 1; /* nothing has a place, too */
    const size_t need = (place + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + RED_ZONE;
    if (need > (size_t)(a->end - a->at))
        add_chunk(a, need);

    void *p = a->at;
    a->at += need;
    unpoison(p, size);
    return p;
}

void *arena_alloc(Arena *a, size_t size)
{
    return memset(arena_room(a, size), 0, size);
}

void *arena_aligned(Arena *a, size_t size)
{
    enum { LINE = 64 };
    if (size > PTRDIFF_MAX - LINE)
        memory_exhausted(a->memory);
    char *p = arena_room(a, size + LINE);
    return p + (LINE - (uintptr_t)p % LINE) % LINE;
}

void *arena_array(Arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        memory_exhausted(a->memory);
    return arena_alloc(a, bytes);
}

static bool holds(const Arena *a, const void *p)
{
    for (const ArenaChunk *c = a->chunk; c; c = c->older)
        if ((const char *)p >= c->bytes && (const char *)p < (const char *)c + c->size)
            return true;
    return false;
}

void *arena_grow(Arena *a, const void *old, size_t old_n, size_t new_n, size_t size)
{
    void *p = arena_array(a, new_n, size);
    if (old_n)
        memcpy(p, old, old_n * size);
    if (RED_ZONE > 0 && holds(a, old))
        poison(old, old_n * size); /* who kept a pointer into it is found */
    return p;
}

ArenaMark arena_mark(const Arena *a)
{
    return (ArenaMark){ a->chunk, a->at };
}

static void drop_chunk(Arena *a, ArenaChunk *c)
{
    if (a->reuses && (!a->spare || a->spare->size < c->size)) {
        release_spare(a);
        a->spare = c;
        poison(c->bytes, c->size - sizeof *c);
    } else {
        memory_release(a->memory, c, c->size);
    }
}

void arena_reset(Arena *a, ArenaMark mark)
{
    size_t freed = 0, lost = a->lost + (size_t)(a->end - a->at);
    while (a->chunk != mark.chunk) {
        ArenaChunk *older = a->chunk->older;
        freed += a->chunk->size;
        drop_chunk(a, a->chunk);
        a->chunk = older;
        a->at = a->end = older ? (char *)older + older->size : NULL;
    }
    if (freed) {
        a->lost = 0;
        freed -= lost < freed ? lost : freed;
    }
    if (a->reuses && freed > a->most)
        a->most = freed;
    if (a->chunk)
        poison(mark.at, (size_t)(a->at - mark.at)); /* the rest was never given */
    a->at = mark.at;
}

char *arena_copy(Arena *a, const char *text, size_t n)
{
    if (n >= PTRDIFF_MAX)
        memory_exhausted(a->memory);
    char *copy = arena_alloc(a, n + 1);
    if (n)
        memcpy(copy, text, n);
    return copy;
}

char *arena_string(Arena *a, const char *text)
{
    return arena_copy(a, text, strlen(text));
}

char *arena_vprintf(Arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    char *text = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
    if (n >= 0)
        nan_unsign(format, text, (size_t)vsnprintf(text, (size_t)n + 1, format, again));
    va_end(again);
    return text;
}

char *arena_printf(Arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(a, format, args);
    va_end(args);
    return text;
}
