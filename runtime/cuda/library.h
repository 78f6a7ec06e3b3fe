/* Libraries of CUDA as tables of functions: looked for when they are needed, never linked. */
#ifndef RUNTIME_CUDA_LIBRARY_H
#define RUNTIME_CUDA_LIBRARY_H

#include <stddef.h>

#include "base/arena.h"

typedef struct LibrarySymbol {
    const char *name;
    size_t at; /* in the table: where its address goes */
} LibrarySymbol;

typedef struct Library {
    const char *const *names; /* that it may have, ended by null, the best first */
    const LibrarySymbol *symbols;
    size_t n;
    const char *(*begin)(void *table, Arena *arena); /* null, or why one that has them all cannot be used */
} Library;

/* Fills a table from the first that can be used, which stays loaded; its name.  Null: there is none, and *why says why. */
const char *library_find(const Library *library, void *table, Arena *arena, const char **why);

#endif
