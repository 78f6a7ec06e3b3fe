#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"

enum { OLDEST = 12000 }; /* CUDA 12.0: the first whose functions have these arguments */

static const char *const libraries[] = { "libcuda.so.1", "libcuda.so" };

typedef struct Symbol {
    const char *name;
    size_t at; /* in Driver */
} Symbol;

static const Symbol symbols[] = {
#define DRIVER(name, symbol, arguments) { #symbol, offsetof(Driver, name) },
#include "runtime/cuda/driver.def"
};

/* The first function that a library lacks; null: it has all. */
static const char *find_symbols(Driver *driver, void *library)
{
    for (size_t i = 0; i < COUNT(symbols); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            return symbols[i].name;
        memcpy((char *)driver + symbols[i].at, &symbol, sizeof symbol);
    }
    return NULL;
}

static Status absent(Diag *d, Place place, const char *why)
{
    Message *m = message_new(d, SEVERITY_ERROR, DEVICE, place, "no GPU can be used: %s", why);
    message_try(m, "--device cpu; a driver of NVIDIA's for CUDA 12 or 13 brings libcuda.so.1");
    return message_send(m);
}

/* Null, or why a library that was found cannot be used. */
static const char *begin(Driver *driver, Arena *arena)
{
    int n = 0, code = driver->init(0);
    if (code == CUDA_OK)
        code = driver->version(&driver->made_for);
    if (code == CUDA_OK && driver->made_for < OLDEST)
        return arena_printf(arena, "the driver is of CUDA %d.%d, and 12.0 is wanted at least", driver->made_for / 1000,
                            driver->made_for % 1000 / 10);
    if (code == CUDA_OK)
        code = driver->count(&n);
    if (code != CUDA_OK)
        return arena_printf(arena, "the driver says: %s", driver_error(driver, code));
    return n ? NULL : "the driver knows no device";
}

Status driver_load(Driver *driver, Diag *d, Place place, Arena *arena)
{
    const char *why = NULL;
    for (size_t i = 0; i < COUNT(libraries); i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library) {
            const char *error = dlerror();
            if (!why)
                why = arena_string(arena, error ? error : "not found");
            continue;
        }
        *driver = (Driver){ .library = libraries[i] };
        const char *lacks = find_symbols(driver, library);
        dlclose(library);
        why = lacks ? arena_printf(arena, "%s has no %s", libraries[i], lacks) : begin(driver, arena);
        if (!why)
            return OK;
    }
    return absent(d, place, why);
}

const char *driver_error(const Driver *driver, int code)
{
    const char *text = NULL;
    if (driver->error_text(code, &text) != CUDA_OK || !text)
        return "an error without a name";
    return text;
}
