#include "base/memory.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/poison.h"

enum { ALIGNMENT = 64 };

struct Landing {
    jmp_buf point;
    Status status; /* what the jump brings */
    Landing *outer;
    Cleanup mark; /* cleanups newer than this one are the guarded call's own; older ones may go meanwhile */
};

/* Of exactly this size: what lies behind the last byte is nobody's, and a sanitizer knows it. */
static void *host_alloc(void *user, size_t size)
{
    void *block;
    (void)user;
    return posix_memalign(&block, ALIGNMENT, size) == 0 ? block : NULL;
}

static void host_release(void *user, void *block, size_t size)
{
    (void)user, (void)size;
    free(block);
}

const Allocator memory_host = { host_alloc, host_release, NULL };

void memory_open(Memory *m, const Allocator *host)
{
    *m = (Memory){ .host = host ? *host : memory_host };
    m->cleanups.next = m->cleanups.prev = &m->cleanups;
}

void cleanup_push(Memory *m, Cleanup *c, void (*undo)(void *thing), void *thing)
{
    c->undo = undo;
    c->thing = thing;
    c->next = &m->cleanups;
    c->prev = m->cleanups.prev;
    c->prev->next = c->next->prev = c;
}

void cleanup_drop(Cleanup *c)
{
    c->prev->next = c->next;
    c->next->prev = c->prev;
    c->next = c->prev = c;
}

static void undo_down_to(Memory *m, Cleanup *mark)
{
    while (m->cleanups.prev != mark) {
        Cleanup *c = m->cleanups.prev;
        cleanup_drop(c);
        c->undo(c->thing);
    }
}

Status guarded(Memory *m, Status (*fn)(void *arg), void *arg)
{
    Landing here = { .outer = m->landing };
    volatile Status status;

    cleanup_push(m, &here.mark, NULL, NULL);
    m->landing = &here;
    if (setjmp(here.point) == 0) {
        status = fn(arg);
    } else {
        status = here.status;
    }
    m->landing = here.outer;
    cleanup_drop(&here.mark);
    return status;
}

/* Cleanups run before the jump: what they undo lives in the frames that it discards. */
static _Noreturn void jump(Memory *m, Status status)
{
    if (!m->landing)
        __builtin_trap(); /* nobody entered through guarded(): there is no frame to go to */
    m->landing->status = status;
    undo_down_to(m, &m->landing->mark);
    longjmp(m->landing->point, 1);
}

void memory_exhausted(Memory *m)
{
    jump(m, NO_MEMORY);
}

void memory_bug(Memory *m, const char *mistake)
{
#ifdef QCC_DEBUG
    fprintf(stderr, "%s\n", mistake);
    abort();
#endif
    m->mistake = mistake;
    jump(m, INTERNAL);
}

void *memory_try_block(Memory *m, size_t size)
{
    m->requests++;
    if (m->requests == m->fail_at)
        return NULL;
    if (size > PTRDIFF_MAX - ALIGNMENT || (m->budget && (size > m->budget || m->used > m->budget - size)))
        return NULL;

    void *block = m->host.alloc(m->host.user, size ? size : 1);
    if (!block)
        return NULL;
    m->used += size;
    if (m->used > m->peak)
        m->peak = m->used;
    return block;
}

void *memory_block(Memory *m, size_t size)
{
    void *block = memory_try_block(m, size);
    if (!block)
        memory_exhausted(m);
    return block;
}

void memory_release(Memory *m, void *block, size_t size)
{
    if (!block)
        return;
    unpoison(block, size);
    m->host.release(m->host.user, block, size ? size : 1);
    m->used -= size;
}
