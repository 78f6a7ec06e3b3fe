#include "runtime/reference/reference.h"

#include "runtime/host/host.h"

static Status open_reference(Ir *ir, const EngineOptions *options, int n_kept, Arena *arena, Values **values)
{
    return host_open(ir, options, n_kept, arena, NULL, NULL, values);
}

const Engine engine_reference = HOST_ENGINE("reference", open_reference, .wants_programs = false);
