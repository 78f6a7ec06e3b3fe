/* Where what a test draws at random begins. */
#ifndef TESTS_SUPPORT_SEED_H
#define TESTS_SUPPORT_SEED_H

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* The seed of one try of what has a name: an op, a rule, a file.  What else there is, and in which order, has no part in
 * it; nor has the place of the tree: of a path, the last two parts count.  QCC_SEED=N in the environment draws others. */
static inline uint64_t seed_of(const char *name, uint64_t number)
{
    const char *from = name + strlen(name), *others = getenv("QCC_SEED");
    for (int slashes = 0; from > name; from--)
        if (from[-1] == '/' && ++slashes == 2)
            break;
    return hash64(from, strlen(from), others ? hash_word(strtoull(others, NULL, 10), number) : number);
}

#endif
