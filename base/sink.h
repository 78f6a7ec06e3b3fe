/* Where bytes go: a file, a text, a callback of the host. */
#ifndef BASE_SINK_H
#define BASE_SINK_H

#include <stddef.h>

#include "base/status.h"

typedef struct Sink {
    Status (*put)(void *user, const void *bytes, size_t n);
    void *user;
} Sink;

#endif
