/* Which engine a host or a command means by the name of a device. */
#ifndef API_HALL_DEVICES_H
#define API_HALL_DEVICES_H

#include "base/diag.h"
#include "runtime/engine.h"

/* The engine of a device, "cuda:1" (null: the usual one; "auto": a GPU where there is one), and how it is used; DEVICE, with
 * what there is, where this build has none. */
Status device_read(Diag *d, Place place, const char *device, Arena *scratch, const Engine **engine, DeviceUse *use);

/* Who makes products on a device, by a word of --matmul; USAGE where it is none. */
Status products_read(Diag *d, Place place, const char *word, ProductsBy *by);

/* The folder that a word of --cache names; null where it is "none", or nothing. */
const char *cache_folder(const char *said);

/* Every device of this build, a line each. */
const char *devices_text(Arena *arena);

#endif
