/* Runs tapes (ir/tape.h): blocks of registers in cache, shared out over threads, in the bits of the reference whatever the
 * threads and the level. */
#ifndef RUNTIME_CPU_TAPE_RUN_H
#define RUNTIME_CPU_TAPE_RUN_H

#include "base/parallel.h"
#include "ir/tape.h"
#include "ops/kernels/kernels.h"

typedef struct TapeRunner TapeRunner;

/* What runs a tape on so many workers, in `arena`.  `over`: by result the argument that it lies over, below 0 where it lies
 * apart; null: all do. */
TapeRunner *tape_runner(const Tape *tape, const OpTable *ops, const Kernels *kernels, int workers, const int *over,
                        Arena *arena);

/* The bytes that a run needs beside arguments and results, and those that each worker needs: runs that follow each other
 * may share both, runs side by side the workers' only, which lie `apart` apart. */
size_t tape_scratch(const TapeRunner *r);
size_t tape_worker_scratch(const TapeRunner *r);
void tape_place(TapeRunner *r, void *scratch, void *workers, size_t apart);

/* The seed, the step and the turn of a loop that draws of the runs to come are of; nothing said, all are 0. */
void tape_seed(TapeRunner *r, uint64_t seed, uint64_t step, uint32_t turn);

/* Runs it: tensors of the types of the tape.  The pool has no more workers than were said; null: the calling thread
 * alone. */
void tape_run(TapeRunner *r, Parallel *pool, const Tensor *const *in, Tensor *const *out);

/* Some of an uncut space: `rows` runs of `cols` elements that are `pitch` apart, from element `at` on.  The product that they begin
 * with is its argument's, or lies at `product`, runs `apart` apart. */
typedef struct TapeBlock {
    int64_t at, rows, cols, pitch;
    const void *product;
    int64_t apart;
} TapeBlock;

/* The same in blocks, in any order, by whoever has made what they read: first of all `begin`, then each element once. */
void tape_begin(TapeRunner *r, const Tensor *const *in, Tensor *const *out);
void tape_run_block(const TapeRunner *r, const TapeBlock *b, int worker);

/* Whether nobody but the tape reads its product, which then may lie apart. */
bool tape_takes_product(const TapeRunner *r);

/* Runs several side by side, none of which touches what another makes: their work is shared out as if it were one's. */
void tape_run_beside(TapeRunner *const *r, int n, Parallel *pool, const Tensor *const *const *in,
                     Tensor *const *const *out);

#endif
