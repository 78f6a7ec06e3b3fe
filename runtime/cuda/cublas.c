#include "runtime/cuda/cublas.h"

#include <stddef.h>

#include "runtime/cuda/library.h"

enum { OLDEST = 12 };

static const char *const libraries[] = { "libcublasLt.so.13", "libcublasLt.so.12", NULL };

static const LibrarySymbol symbols[] = {
#define CUBLAS(answer, name, symbol, arguments) { #symbol, offsetof(Cublas, name) },
#include "runtime/cuda/cublas.def"
};

static const char *begin(void *table, Arena *arena)
{
    Cublas *c = table;
    if (c->property(CUBLAS_MAJOR, &c->major) != CUBLAS_OK || c->property(CUBLAS_MINOR, &c->minor) != CUBLAS_OK ||
        c->property(CUBLAS_PATCH, &c->patch) != CUBLAS_OK)
        return "it does not say its version";
    return c->major < OLDEST
               ? arena_printf(arena, "it is of version %d.%d, and %d is wanted at least", c->major, c->minor, OLDEST)
               : NULL;
}

const char *cublas_find(Cublas *c, Arena *arena)
{
    static const Library library = { libraries, symbols, COUNT(symbols), begin };
    const char *why;
    c->library = library_find(&library, c, arena, &why);
    return c->library ? NULL : why;
}

Status cublas_load(Cublas *c, Diag *d, Place place, Arena *arena)
{
    const char *why = cublas_find(c, arena);
    if (!why)
        return OK;
    Message *m =
        message_new(d, SEVERITY_ERROR, DEVICE, place, "cuBLAS, which is to make products, cannot be used: %s", why);
    message_try(m, "--matmul ours, whose kernels make them");
    message_try(m, "a CUDA toolkit of version 12 or 13, its folder in LD_LIBRARY_PATH; package libcublas-12-8");
    return message_send(m);
}
