/* Where all memory comes from, and where the lack of it goes.
 *
 * A Memory belongs to one context.  Arenas and heaps draw from it; when it is exhausted the compiler does not
 * return errors through a thousand signatures: base/memory.c jumps, on the thread that entered the public verb,
 * to the landing point of the innermost guarded() call, after running the cleanups registered since. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct Allocator {
    void *(*alloc)(void *user, size_t size);
    void (*release)(void *user, void *block, size_t size);
    void *user;
} Allocator;

/* malloc and free, aligned to 64. */
extern const Allocator memory_host;

/* What must be undone when a jump passes by: registered before the thing it undoes exists. */
typedef struct Cleanup {
    struct Cleanup *next, *prev;
    void (*undo)(void *thing);
    void *thing;
} Cleanup;

typedef struct Landing Landing;

typedef struct Memory {
    Allocator host;
    uint64_t used, peak, budget; /* bytes; budget 0 = none */
    uint64_t requests;           /* blocks asked of the host so far */
    uint64_t fail_at;            /* tests: this request fails; 0 = none */
    Landing *landing;
    const char *mistake; /* of ours, after guarded() answered INTERNAL because of it; null: none so far */
    Cleanup cleanups;    /* ring */
} Memory;

/* Prepares `m` over `host`; a null host means malloc and free. */
void memory_open(Memory *m, const Allocator *host);

/* Runs fn(arg) with a landing point; NO_MEMORY when memory ran out inside, INTERNAL after a mistake of ours, else what
 * fn returned. */
Status guarded(Memory *m, Status (*fn)(void *arg), void *arg);

/* A block of at least `size` bytes, aligned to 64; jumps when there is none. */
void *memory_block(Memory *m, size_t size);

/* The same, but null instead of a jump: for threads that are not the verb's and for library callbacks. */
void *memory_try_block(Memory *m, size_t size);

/* Gives a block back; `size` is what was asked. */
void memory_release(Memory *m, void *block, size_t size);

/* Jumps as if an allocation had failed: for sizes that overflow. */
_Noreturn void memory_exhausted(Memory *m);

/* Registers `c` to be undone if a jump passes; the caller withdraws it when the thing is gone. */
void cleanup_push(Memory *m, Cleanup *c, void (*undo)(void *thing), void *thing);

/* Withdraws a registered cleanup without running it. */
void cleanup_drop(Cleanup *c);

/* Jumps after one of our own mistakes: guarded() answers INTERNAL, and `mistake` says which.  Debug builds abort, where
 * a debugger and the sanitizers see the stack. */
_Noreturn void memory_bug(Memory *m, const char *mistake);

/* Our own mistakes, where they are found; input never reaches one. */
#define BUG_TEXT_(line)  #line
#define BUG_PLACE_(line) BUG_TEXT_(line)
#define BUG_IF(memory, condition)                                                                                      \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            memory_bug((memory), __FILE__ ":" BUG_PLACE_(__LINE__) ": " #condition);                                   \
    } while (0)

/* Mistakes in constant tables, which the tests walk: looked for in debug builds only. */
#ifdef QCC_DEBUG
#define DEBUG_IF(condition)                                                                                            \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            memory_bug(NULL, __FILE__ ":" BUG_PLACE_(__LINE__) ": " #condition);                                       \
    } while (0)
#else
#define DEBUG_IF(condition) ((void)(condition))
#endif

#endif
