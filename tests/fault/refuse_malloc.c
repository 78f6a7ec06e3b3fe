#include "fault/refuse_malloc.h"

#include <errno.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

static size_t served, refused;
static bool armed, lasts;

#ifndef SANITIZED
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t n);

/* Whether this request is one that fails. */
static bool is_refused(void)
{
    if (!armed || (refused && !lasts))
        return false;
    if (served) {
        served--;
        return false;
    }
    refused++;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    return is_refused() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return is_refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *block, size_t n)
{
    return is_refused() ? NULL : __libc_realloc(block, n);
}

bool malloc_may_be_refused(void)
{
    return true;
}
#else
bool malloc_may_be_refused(void)
{
    return false;
}
#endif

void malloc_refuse(size_t n, bool from_then_on)
{
    served = n;
    refused = 0;
    lasts = from_then_on;
    armed = true;
}

size_t malloc_serve(void)
{
    armed = false;
    return refused;
}
