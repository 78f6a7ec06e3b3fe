/* Where all memory comes from, and where the lack of it goes.
 *
 * A Memory belongs to one context.  Arenas and heaps draw from it; when it is exhausted the compiler does not
 * return errors through a thousand signatures: base/memory.c jumps, on the thread that entered the public verb,
 * to the landing point of the innermost guarded() call, after running the cleanups registered since.
 *
 * A request to stop goes the same way: whoever allocates asks for it (memory_poll), so that all work that makes
 * something ends soon; long loops that make nothing ask by themselves. */
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

/* What is under way, for the message when there is no memory for it. */
typedef struct MemoryWork {
    void (*tell)(char *out, size_t n, const void *thing); /* in n bytes, without allocating; null: nothing is known */
    const void *thing;
} MemoryWork;

enum { MEMORY_TOLD = 200 };

/* The request that could not be served. */
typedef struct MemoryRefusal {
    uint64_t wanted, used;  /* bytes; wanted 0: more than can be counted */
    bool by_budget;         /* the host would perhaps have had it */
    char work[MEMORY_TOLD]; /* what it was for; empty: not known */
} MemoryRefusal;

typedef struct Memory {
    Allocator host;
    uint64_t used, peak, budget; /* bytes; budget 0 = none */
    uint64_t requests;           /* blocks asked of the host so far */
    uint64_t fail_at;            /* tests: this request fails; 0 = none */
    _Atomic int *stop;           /* not 0: the call is to end; null: nobody may ask */
    int held;                    /* while not 0, it does not */
    MemoryWork work;
    MemoryRefusal refusal; /* the last that ended a call */
    Landing *landing;
    const char *mistake; /* of ours, after guarded() answered INTERNAL because of it; null: none so far */
    bool apart;          /* tests: what an arena gives is a block of its own, so that each may fail and none hides */
    bool closing;        /* what runs gives memory back: it may ask for none */
    bool strict;         /* of a context: debug builds abort at requests without a landing point, or while closing */
    Cleanup cleanups;    /* ring */
} Memory;

/* Prepares `m` over `host`; a null host means malloc and free. */
void memory_open(Memory *m, const Allocator *host);

/* Runs fn(arg) with a landing point; NO_MEMORY when memory ran out inside, INTERRUPTED when the call was asked to stop,
 * INTERNAL after a mistake of ours, else what fn returned. */
Status guarded(Memory *m, Status (*fn)(void *arg), void *arg);

/* A block of at least `size` bytes, aligned to 64; jumps when there is none. */
void *memory_block(Memory *m, size_t size);

/* The same, but null instead of a jump: for threads that are not the verb's and for library callbacks. */
void *memory_try_block(Memory *m, size_t size);

/* Runs fn(arg), which gives things back and asks for nothing: closing works where memory has run out.  Should it ask all
 * the same the answer is that of guarded(). */
Status memory_closing(Memory *m, Status (*fn)(void *arg), void *arg);

/* Gives a block back; `size` is what was asked. */
void memory_release(Memory *m, void *block, size_t size);

/* Makes bytes of a block zero; pages that nobody touches then take no memory, where the system has a way to say so. */
void memory_zero(const Memory *m, void *at, size_t bytes);

/* Jumps as if an allocation had failed: for sizes that overflow. */
_Noreturn void memory_exhausted(Memory *m);

/* Jumps with INTERRUPTED. */
_Noreturn void memory_interrupt(Memory *m);

/* Whether the call is asked to stop, and may. */
static inline bool memory_stopped(const Memory *m)
{
    return m->stop && !m->held && m->landing && *m->stop;
}

/* Ends the call with INTERRUPTED when it is asked to stop.  For loops that allocate nothing, once in about a
 * millisecond, on the verb's thread. */
static inline void memory_poll(Memory *m)
{
    if (memory_stopped(m))
        memory_interrupt(m);
}

/* States what is under way; returns what was before, to be put back. */
static inline MemoryWork memory_work(Memory *m, void (*tell)(char *out, size_t n, const void *thing), const void *thing)
{
    const MemoryWork before = m->work;
    m->work = (MemoryWork){ tell, thing };
    return before;
}

/* For memory_work(): the thing is a text, as a file's name. */
void memory_tell_text(char *out, size_t n, const void *text);

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
