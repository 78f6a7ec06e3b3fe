/* Which engine a host or a command means by the name of a device. */
#ifndef API_HALL_DEVICES_H
#define API_HALL_DEVICES_H

#include "base/diag.h"
#include "runtime/engine.h"

/* The engine of a device (null: the best there is); DEVICE, with what there is, where this build has none. */
Status device_read(Diag *d, Place place, const char *device, const Engine **engine);

/* Every device of this build, a line each. */
const char *devices_text(Arena *arena);

#endif
