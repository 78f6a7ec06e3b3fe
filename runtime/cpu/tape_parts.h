/* What opening a tape (tape_open.c) finds out for running it (tape_run.c). */
#ifndef RUNTIME_CPU_TAPE_PARTS_H
#define RUNTIME_CPU_TAPE_PARTS_H

#include "ops/machine/space.h"
#include "runtime/cpu/tape_run.h"

enum { REDUCE_ROWS = 64, REDUCE_SUMS = 8 }; /* of a block of columns, and sums that it has (ops/reduce.h) */

/* How an argument reaches a register. */
typedef enum TapeFeed {
    FEED_DIRECT, /* it lies there as the register wants it */
    FEED_COPY,   /* the same, but a result may lie over it */
    FEED_REPEAT, /* the same, one row for all */
    FEED_DENSE,  /* in order, widened block by block */
    FEED_FIXED,  /* one element, filled in once */
    FEED_GATHER, /* broadcast in some other way */
} TapeFeed;

typedef struct TapeStepRun {
    TapeWord word;
    Arithmetic arithmetic, to;
    DType through;
    int in[TAPE_OPERANDS], out;
    double k[TAPE_SCALARS];
    size_t size; /* of an element of the arithmetic */
    RowLoop *row;
    const ReduceLoops *loops;
    /* of LOAD and FILL */
    int argument;
    const Tensor *from, *value;
    TapeFeed feed;
    Space space;
    bool is_widened; /* the argument is needed whole in the arithmetic: */
    size_t wide_at;  /* all of these lie in the scratch */
    /* of folds over blocks */
    size_t parts_at, whole_at, n_parts, sums_at;
} TapeStepRun;

struct TapeRunner {
    const Tape *tape;
    const Kernels *kernels;
    TapeStepRun *steps;
    int n_steps;
    int64_t n_things, block, unit; /* rows or elements, of a block; blocks of a unit that no split tears */
    int64_t block_elements;
    int *home;              /* of a register: the result that is its place; below 0: it has a room */
    Arithmetic *arithmetic; /* of a register */
    size_t *room_at;
    size_t scratch;                      /* bytes */
    char *memory;                        /* so many; */
    size_t rooms_at, sums_at, narrow_at; /* there, of each worker: */
    size_t room_bytes, sums_bytes, narrow_bytes;
    const bool *copied; /* by argument */
    const void **at;    /* of each worker: where registers are */
    Tensor *const *out;
};

#endif
