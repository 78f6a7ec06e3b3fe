/* A host of the library: it counts what it gives, refuses what it is told to, looks whether each block comes back as it
 * was asked for, and remembers what it was told. */
#ifndef TESTS_SUPPORT_HOST_H
#define TESTS_SUPPORT_HOST_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qcc/qcc.h>

typedef struct Host {
    size_t blocks, bytes, requests; /* out now; asked for so far */
    size_t most;                    /* bytes that were out at once */
    size_t fail_at;                 /* this request is refused; 0: none */
    bool from_then_on;              /* and all that follow it */
    size_t refused;
    size_t broken; /* blocks that came back with another size, twice, or overrun */
    int threads;   /* 0: one */
    int messages, errors;
    qcc_status last;
    char text[512];
    qcc_context *context; /* called back into by `reenter` */
    qcc_status reentered;
} Host;

/* What stands before a block, and behind it. */
enum { HOST_HEAD = 64, HOST_TAIL = 16, HOST_MARK = 0xa5 };
#define HOST_ALIVE UINT64_C(0x51cc51cc51cc51cc)

typedef struct HostHead {
    uint64_t alive;
    size_t size;
} HostHead;

/* From now on `n` more requests are served, and then one, or all that follow, are refused. */
static inline void host_refuse(Host *h, size_t n, bool from_then_on)
{
    h->fail_at = h->requests + n + 1;
    h->from_then_on = from_then_on;
}

static inline void host_serve(Host *h)
{
    h->fail_at = 0;
}

static inline void *host_alloc(void *user, size_t size)
{
    Host *h = user;
    h->requests++;
    if (h->fail_at && (h->from_then_on ? h->requests >= h->fail_at : h->requests == h->fail_at)) {
        h->refused++;
        return NULL;
    }
    char *p = aligned_alloc(64, HOST_HEAD + (size + HOST_TAIL + 63) / 64 * 64);
    if (!p)
        return NULL;
    const HostHead head = { HOST_ALIVE, size };
    memcpy(p, &head, sizeof head);
    memset(p + HOST_HEAD + size, HOST_MARK, HOST_TAIL);
    h->blocks++;
    h->bytes += size;
    h->most = h->bytes > h->most ? h->bytes : h->most;
    return p + HOST_HEAD;
}

static inline void host_release(void *user, void *block, size_t size)
{
    Host *h = user;
    char *p = (char *)block - HOST_HEAD;
    HostHead head;
    memcpy(&head, p, sizeof head);
    bool whole = head.alive == HOST_ALIVE && head.size == size;
    for (int i = 0; i < HOST_TAIL && whole; i++)
        whole = (unsigned char)p[HOST_HEAD + size + (size_t)i] == HOST_MARK;
    h->broken += !whole;
    h->blocks--;
    h->bytes -= size;
    memset(p, 0, sizeof head);
    free(p);
}

/* Descriptors that are open. */
static inline size_t host_descriptors(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 64; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static inline void host_report(void *user, const qcc_message *m)
{
    Host *h = user;
    h->messages++;
    h->errors += m->severity == QCC_ERROR;
    h->last = m->status;
    strncpy(h->text, m->text, sizeof h->text - 1);
}

static inline qcc_context_options options_of(Host *h)
{
    return (qcc_context_options){ .size = sizeof(qcc_context_options),
                                  .report = host_report,
                                  .user = h,
                                  .alloc = host_alloc,
                                  .release = host_release,
                                  .threads = h->threads ? h->threads : 1 };
}

/* A sink's `write` that takes everything and keeps nothing. */
static inline qcc_status host_drop(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return QCC_OK;
}

#endif
