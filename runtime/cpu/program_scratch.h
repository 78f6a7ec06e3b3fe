/* What a program takes beside its arena while it runs on the CPU. */
#ifndef RUNTIME_CPU_PROGRAM_SCRATCH_H
#define RUNTIME_CPU_PROGRAM_SCRATCH_H

#include "ir/program.h"
#include "runtime/cpu/tape_run.h"

/* What runs the tape of a launch on so many workers, in `arena`; null: it has none. */
TapeRunner *launch_tape(const Launch *l, const OpTable *ops, const Kernels *kernels, int workers, Arena *arena);

/* The bytes of the call, of all that are launched, that takes most, as far as the cards say. */
size_t program_calls_scratch(const Program *p);

/* The bytes, about, of the launch that takes most: of tapes exactly, of calls as far as their cards say; what it needs to
 * find out goes to `arena`. */
size_t program_scratch(const Program *p, int threads, Arena *arena);

#endif
