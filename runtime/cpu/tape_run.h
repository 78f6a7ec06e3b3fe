/* Runs tapes (ir/tape.h): blocks of registers in cache, shared out over threads, in the bits of the reference whatever the
 * threads and the level. */
#ifndef RUNTIME_CPU_TAPE_RUN_H
#define RUNTIME_CPU_TAPE_RUN_H

#include "base/parallel.h"
#include "ir/tape.h"
#include "ops/kernels/kernels.h"

typedef struct TapeRunner TapeRunner;

/* What runs a tape on so many workers, with all memory that it will ever need, in `arena`. */
TapeRunner *tape_runner(const Tape *tape, const OpTable *ops, const Kernels *kernels, int workers, Arena *arena);

/* Runs it: tensors of the types of the tape, results apart from all operands.  The pool has no more workers than were
 * said; null: the calling thread alone. */
void tape_run(TapeRunner *r, Parallel *pool, const Tensor *const *in, Tensor *const *out);

#endif
