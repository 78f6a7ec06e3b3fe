/* Runs of bytes whose number comes from outside: where there are none the pointers may be null, which memcmp and memcpy
 * do not allow. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether n bytes are the same. */
static inline bool bytes_equal(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0;
}

/* Copies n bytes between places that do not overlap. */
static inline void bytes_copy(void *to, const void *from, size_t n)
{
    if (n)
        memcpy(to, from, n);
}

#endif
