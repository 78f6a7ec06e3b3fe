/* A host of the library: it counts what it gives, refuses what it is told to, and remembers what it was told. */
#ifndef TESTS_EMBED_HOST_H
#define TESTS_EMBED_HOST_H

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <qcc/qcc.h>

/* An allocator that counts, and refuses the n-th request. */
typedef struct Host {
    size_t blocks, bytes, requests, fail_at;
    int threads; /* 0: one */
    int messages;
    qcc_status last;
    char text[512];
    qcc_context *context; /* called back into by `reenter` */
    qcc_status reentered;
} Host;

static inline void *host_alloc(void *user, size_t size)
{
    Host *h = user;
    h->requests++;
    if (h->requests == h->fail_at)
        return NULL;
    void *p;
    if (posix_memalign(&p, 64, size) != 0)
        return NULL;
    h->blocks++;
    h->bytes += size;
    return p;
}

static inline void host_release(void *user, void *block, size_t size)
{
    Host *h = user;
    h->blocks--;
    h->bytes -= size;
    free(block);
}

static inline void host_report(void *user, const qcc_message *m)
{
    Host *h = user;
    h->messages++;
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

static inline qcc_context *open_with(Host *h)
{
    const qcc_context_options o = options_of(h);
    qcc_context *cx = NULL;
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

/* A locale with a comma, made in a folder where the system has the parts for it. */
static inline bool comma_locale(const char *folder)
{
    char line[256];
    if (setlocale(LC_ALL, "de_DE.UTF-8"))
        return true;
    snprintf(line, sizeof line, "mkdir -p %s && localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", folder,
             folder, folder);
    if (system(line) > 255)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

#endif
