#include "api/hall/devices.h"

#include "base/text.h"

Status device_read(Diag *d, Place place, const char *device, const Engine **engine)
{
    *engine = engine_find(device);
    if (*engine)
        return OK;
    Message *m = message_new(d, SEVERITY_ERROR, DEVICE, place, "this build has no %s engine yet", device);
    for (const Engine *const *e = engines_all(); *e; e++)
        message_try(m, place.where && place.where[0] == '-' ? "--device %s" : "%s", (*e)->name);
    return message_send(m);
}

const char *devices_text(Arena *arena)
{
    Text t;
    text_open(&t, arena);
    for (const Engine *const *e = engines_all(); *e; e++)
        text_printf(&t, "  %s\n", (*e)->name);
    return text_get(&t);
}
