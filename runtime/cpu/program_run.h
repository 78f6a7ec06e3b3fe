/* Runs programs (ir/program.h) on the CPU: tapes for regions, the cards' evals for everything else, values where the
 * program says. */
#ifndef RUNTIME_CPU_PROGRAM_RUN_H
#define RUNTIME_CPU_PROGRAM_RUN_H

#include "ir/program.h"
#include "runtime/host/host.h"

/* What runs a program; null where the roundings of a run are to be counted, which the evaluator alone does. */
GraphRunner *program_runner(const Executable *x, const EngineOptions *options, RunnerRoom *room, Arena *arena,
                            Heap *heap);

#endif
