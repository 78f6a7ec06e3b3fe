#include "base/memory.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

#ifdef __linux__
/* Gives the whole pages of a large range back: they come as zeros.  Of memory of our own host alone: what a host's
 * allocator gives may be anything. */
static bool forget_pages(char *at, size_t bytes, size_t *head, size_t *tail)
{
    enum { LEAST = 1 << 20 };
    const long said = sysconf(_SC_PAGESIZE);
    const size_t page = said > 0 ? (size_t)said : LEAST;
    if (RED_ZONE > 0 || bytes < LEAST || 2 * page > LEAST)
        return false;
    *head = (page - (uintptr_t)at % page) % page;
    *tail = (bytes - *head) % page;
    return madvise(at + *head, bytes - *head - *tail, MADV_DONTNEED) == 0;
}
#endif

void memory_zero(const Memory *m, void *at, size_t bytes)
{
#ifdef __linux__
    size_t head, tail;
    if (m->host.alloc == host_alloc && forget_pages(at, bytes, &head, &tail)) {
        memset(at, 0, head);
        memset((char *)at + bytes - tail, 0, tail);
        return;
    }
#else
    (void)m;
#endif
    memset(at, 0, bytes);
}

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
    const bool was = m->closing;
    m->closing = true;
    while (m->cleanups.prev != mark) {
        Cleanup *c = m->cleanups.prev;
        cleanup_drop(c);
        c->undo(c->thing);
    }
    m->closing = was;
}

Status guarded(Memory *m, Status (*fn)(void *arg), void *arg)
{
    Landing here = { .outer = m->landing };
    const MemoryWork work = m->work;
    volatile Status status;

    cleanup_push(m, &here.mark, NULL, NULL);
    m->landing = &here;
    if (setjmp(here.point) == 0) {
        status = fn(arg);
    } else {
        status = here.status;
    }
    m->landing = here.outer;
    m->work = work;
    cleanup_drop(&here.mark);
    return status;
}

Status memory_closing(Memory *m, Status (*fn)(void *arg), void *arg)
{
    const bool was = m->closing;
    m->closing = true;
    const Status status = guarded(m, fn, arg);
    m->closing = was;
    return status;
}

/* Cleanups run before the jump: what they undo lives in the frames that it discards. */
static _Noreturn void jump(Memory *m, Status status)
{
    if (!m->landing)
        __builtin_trap(); /* no frame to go to: never below a public call, each has its landing point (api/hall/context.c) */
    m->landing->status = status;
    m->held++; /* what is being undone is not interrupted */
    undo_down_to(m, &m->landing->mark);
    m->held--;
    longjmp(m->landing->point, 1);
}

/* Whoever was at work says so before it goes. */
static _Noreturn void refuse(Memory *m, uint64_t wanted)
{
    m->refusal = (MemoryRefusal){ .wanted = wanted, .used = m->used };
    m->refusal.by_budget = m->budget && (wanted > m->budget || m->used > m->budget - wanted);
    if (m->work.tell)
        m->work.tell(m->refusal.work, sizeof m->refusal.work, m->work.thing);
    jump(m, NO_MEMORY);
}

void memory_tell_text(char *out, size_t n, const void *text)
{
    snprintf(out, n, "%s", (const char *)text);
}

void memory_exhausted(Memory *m)
{
    refuse(m, 0);
}

void memory_interrupt(Memory *m)
{
    jump(m, INTERRUPTED);
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

/* What gives back must not ask, and nobody asks outside of a call: there would be no way out. */
static void check_request(const Memory *m)
{
#ifdef QCC_DEBUG
    if (m->strict && (m->closing || !m->landing)) { /* a context's */
        fprintf(stderr, "memory is asked for %s\n", m->closing ? "while something is given back" : "outside of a call");
        abort();
    }
#else
    (void)m;
#endif
}

void *memory_try_block(Memory *m, size_t size)
{
    check_request(m);
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
    memory_poll(m);
    void *block = memory_try_block(m, size);
    if (!block)
        refuse(m, size);
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
