#include "api/hall/devices.h"

#include <string.h>

#include "base/number_text.h"
#include "base/text.h"
#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/cuda.h"

enum { MOST_DEVICES = 1024 };

static Status no_such(Diag *d, Place place, const char *device)
{
    Message *m = message_new(d, SEVERITY_ERROR, DEVICE, place, "there is no device %s", device);
    for (const Engine *const *e = engines_all(); *e; e++)
        message_try(m, place.where && place.where[0] == '-' ? "--device %s" : "%s", (*e)->name);
    return message_send(m);
}

Status device_read(Diag *d, Place place, const char *device, Arena *scratch, const Engine **engine, DeviceUse *use)
{
    const char *colon = device ? strchr(device, ':') : NULL;
    const char *name = colon ? arena_printf(scratch, "%.*s", (int)(colon - device), device) : device;
    int64_t number = 0;
    if (name && strcmp(name, "auto") == 0 && cuda_is_there(scratch))
        name = engine_cuda.name;
    const Engine *found = engine_find(name);
    if (!found || (colon && (!found->has_devices || !i64_from_text(colon + 1, strlen(colon + 1), &number) ||
                             number < 0 || number >= MOST_DEVICES)))
        return no_such(d, place, device);
    *engine = found;
    use->number = (int)number;
    use->kernels = cuda_kernels_of;
    return OK;
}

Status products_read(Diag *d, Place place, const char *word, ProductsBy *by)
{
    static const char *const words[] = {
        [PRODUCTS_OURS] = "ours", [PRODUCTS_LIBRARY] = "cublas", [PRODUCTS_AUTO] = "auto"
    };
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) {
            *by = (ProductsBy)i;
            return OK;
        }
    return fail_as(d, USAGE, place, "nobody called %s makes products: it is ours, cublas or auto", word);
}

const char *cache_folder(const char *said)
{
    return *said && strcmp(said, "none") != 0 ? said : NULL;
}

const char *devices_text(Arena *arena)
{
    Text t;
    text_open(&t, arena);
    for (const Engine *const *e = engines_all(); *e; e++)
        text_printf(&t, "  %s\n", (*e)->name);
    return text_get(&t);
}
