#include "runtime/cpu/cpu.h"

#include "runtime/cpu/program_run.h"
#include "runtime/cpu/program_scratch.h"

static Status open_cpu(Ir *ir, const EngineOptions *options, int n_kept, Arena *arena, Values **values)
{
    return host_open(ir, options, n_kept, arena, program_runner, NULL, values);
}

const Engine engine_cpu =
    HOST_ENGINE("cpu", open_cpu, .wants_programs = true, .narrows = true, .scratch = program_scratch);
