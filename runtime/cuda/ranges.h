/* Ranges that profilers show beside what a device does, NVTX: libnvToolsExt, a library that is looked for when it is asked for, never
 * linked, and does nothing where no profiler looks. */
#ifndef RUNTIME_CUDA_RANGES_H
#define RUNTIME_CUDA_RANGES_H

#include <stdint.h>

#include "base/arena.h"

typedef uint64_t RangeId;

typedef struct Ranges {
    const char *library; /* that was found */
    int (*push)(const char *name);
    int (*pop)(void);
    RangeId (*start)(const char *name);
    void (*end)(RangeId id);
} Ranges;

/* Loads the library; null, or why it cannot be used. */
const char *ranges_find(Ranges *r, Arena *arena);

/* The range of a step, which may begin in one call and end in another; `r` is null where nobody asked, and *open 0 where there is
 * none. */
void ranges_begin(const Ranges *r, RangeId *open, const char *what, uint64_t step);
void ranges_end(const Ranges *r, RangeId *open);

#endif
