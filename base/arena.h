/* Memory that is given back all at once.  Zeroed, aligned to 16; a request that cannot be served jumps
 * (base/memory.h), so callers never test for null. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>

#include "base/memory.h"

typedef struct ArenaChunk ArenaChunk;

typedef struct Arena {
    Memory *memory;
    ArenaChunk *chunk;
    char *at, *end;
    Cleanup cleanup;
    bool reuses;
    ArenaChunk *spare; /* the largest that arena_reset() found free */
    size_t most; /* bytes that one arena_reset() freed, or that are expected: the next chunk serves as much alone */
    size_t lost; /* bytes at the ends of chunks, which what came next did not fit into */
} Arena;

typedef struct ArenaMark {
    ArenaChunk *chunk;
    char *at;
} ArenaMark;

/* An empty arena over `m`; it closes itself if a jump passes. */
void arena_open(Arena *a, Memory *m);

/* Gives every chunk back; the arena may be opened again. */
void arena_close(Arena *a);

/* Keeps the arena alive past guarded(): a jump no longer closes it, its owner must. */
void arena_keep(Arena *a);

/* From now on the largest chunk that arena_reset() frees waits for the next that needs one, and what it freed in several
 * comes as one: the pages of a fresh chunk cost more than most work on them, and who does the same again asks for nothing. */
void arena_reuse(Arena *a);

/* Says how many bytes will be taken before the next arena_reset(): the next chunk serves as much alone. */
void arena_expect(Arena *a, size_t bytes);

/* `size` zeroed bytes. */
void *arena_alloc(Arena *a, size_t size);

/* `size` bytes that hold anything, for who writes before reading. */
void *arena_room(Arena *a, size_t size);

/* The same, aligned to 64. */
void *arena_aligned(Arena *a, size_t size);

/* `n` zeroed elements of `size` bytes; the product is checked. */
void *arena_array(Arena *a, size_t n, size_t size);

/* A larger copy of an array that the arena holds; the old one stays until the arena closes. */
void *arena_grow(Arena *a, const void *old, size_t old_n, size_t new_n, size_t size);

/* Where the arena stands, to come back to. */
ArenaMark arena_mark(const Arena *a);

/* Forgets everything allocated since `mark`. */
void arena_reset(Arena *a, ArenaMark mark);

/* A copy of n bytes with a NUL behind them. */
char *arena_copy(Arena *a, const char *text, size_t n);

/* A copy of a string. */
char *arena_string(Arena *a, const char *text);

/* printf into the arena. */
char *arena_printf(Arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* vprintf into the arena. */
char *arena_vprintf(Arena *a, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#define NEW(arena, T)     ((T *)arena_alloc((arena), sizeof(T)))
#define NEWS(arena, T, n) ((T *)arena_array((arena), (size_t)(n), sizeof(T)))

/* Makes room for one more element behind `n` in a growing array whose capacity is `cap`. */
#define GROW(arena, array, n, cap)                                                                                     \
    do {                                                                                                               \
        if ((n) == (cap)) {                                                                                            \
            const size_t cap_ = (cap) ? (size_t)(cap)*2 : 8;                                                           \
            (array) = arena_grow((arena), (array), (size_t)(n), cap_, sizeof *(array));                                \
            (cap) = cap_;                                                                                              \
        }                                                                                                              \
    } while (0)

#endif
