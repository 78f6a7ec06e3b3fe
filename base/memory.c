#include "base/memory.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

struct Landing {
    jmp_buf point;
    Landing *outer;
    Cleanup mark; /* cleanups newer than this one are the guarded call's own; older ones may go meanwhile */
};

static void *host_alloc(void *user, size_t size)
{
    (void)user;
    return aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static void host_release(void *user, void *block, size_t size)
{
    (void)user, (void)size;
    free(block);
}

void memory_open(Memory *m, const Allocator *host)
{
    *m = (Memory){ .host = { host_alloc, host_release, NULL } };
    if (host)
        m->host = *host;
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
        status = NO_MEMORY;
    }
    m->landing = here.outer;
    cleanup_drop(&here.mark);
    return status;
}

void memory_exhausted(Memory *m)
{
    if (!m->landing)
        bug(__FILE__, __LINE__, "memory ran out outside of guarded()");
    undo_down_to(m, &m->landing->mark); /* before the jump: what is to be undone lives in the frames it discards */
    longjmp(m->landing->point, 1);
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
    m->host.release(m->host.user, block, size ? size : 1);
    m->used -= size;
}

void bug(const char *file, int line, const char *what)
{
    /* The text stays in a register or on the stack for whoever opens the core; nothing is printed. */
    volatile const char *where[2] = { file, what };
    volatile int at = line;
    (void)where, (void)at;
    abort();
}
