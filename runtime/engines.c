/* The engines of this build, the best first. */
#include "runtime/engine.h"

#include <string.h>

#include "runtime/cpu/cpu.h"
#include "runtime/cuda/cuda.h"
#include "runtime/reference/reference.h"

static const Engine *const engines[] = { &engine_cpu, &engine_reference, &engine_cuda, NULL };

const Engine *const *engines_all(void)
{
    return engines;
}

const Engine *engine_find(const char *name)
{
    if (!name || strcmp(name, "auto") == 0)
        return engines[0];
    for (const Engine *const *e = engines; *e; e++)
        if (strcmp((*e)->name, name) == 0)
            return *e;
    return NULL;
}
