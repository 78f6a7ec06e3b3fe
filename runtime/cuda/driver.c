#include "runtime/cuda/driver.h"

#include <stddef.h>

#include "runtime/cuda/library.h"

enum { OLDEST = 12000 }; /* CUDA 12.0: the first whose functions have these arguments */

static const char *const libraries[] = { "libcuda.so.1", "libcuda.so", NULL };

static const LibrarySymbol symbols[] = {
#define DRIVER(name, symbol, arguments) { #symbol, offsetof(Driver, name) },
#include "runtime/cuda/driver.def"
};

static Status absent(Diag *d, Place place, const char *why)
{
    Message *m = message_new(d, SEVERITY_ERROR, DEVICE, place, "no GPU can be used: %s", why);
    message_try(m, "--device cpu; a driver of NVIDIA's for CUDA 12 or 13 brings libcuda.so.1");
    return message_send(m);
}

static const char *begin(void *table, Arena *arena)
{
    Driver *driver = table;
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
    static const Library library = { libraries, symbols, COUNT(symbols), begin };
    const char *why;
    driver->library = library_find(&library, driver, arena, &why);
    return driver->library ? OK : absent(d, place, why);
}

int driver_facts(const Driver *driver, int number, DeviceFacts *facts)
{
    *facts = (DeviceFacts){ .ordinal = 0 };
    int code = driver->device(&facts->ordinal, number);
    if (code == CUDA_OK)
        code = driver->device_name(facts->name, DEVICE_NAME, facts->ordinal);
    if (code == CUDA_OK)
        code = driver->attribute(&facts->major, CUDA_CAPABILITY_MAJOR, facts->ordinal);
    if (code == CUDA_OK)
        code = driver->attribute(&facts->minor, CUDA_CAPABILITY_MINOR, facts->ordinal);
    if (code == CUDA_OK)
        code = driver->device_bytes(&facts->bytes, facts->ordinal);
    return code;
}

const char *driver_error(const Driver *driver, int code)
{
    const char *text = NULL;
    if (driver->error_text(code, &text) != CUDA_OK || !text)
        return "an error without a name";
    return text;
}
