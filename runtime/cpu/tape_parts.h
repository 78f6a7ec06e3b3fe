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
    FEED_ACROSS, /* the same, one row for all, where blocks begin anywhere in rows: gathered where they end in another */
    FEED_GATHER, /* broadcast in some other way */
    FEED_RUNS,   /* the runs of channels, one after the other */
    FEED_ROWS,   /* a number for each row, where it lies */
} TapeFeed;

/* How the rows of a block follow each other in a register. */
typedef enum TapeRows {
    ROWS_WHOLE,  /* all elements of each */
    ROWS_NUMBER, /* the number that is all elements of one */
    ROWS_SAME,   /* one row, which is all of them */
} TapeRows;

/* Rows that run as one loop, and the registers it reads: elements, and numbers that are one for all of them or for a row. */
typedef struct TapeChain {
    ChainLoop *loop;
    int streams[CHAIN_STREAMS], numbers[CHAIN_NUMBERS]; /* TAPE_NONE: it reads none */
    bool by_rows;                                       /* some numbers are those of rows */
} TapeChain;

typedef struct TapeStepRun {
    TapeWord word;
    Op op; /* of a row */
    Arithmetic arithmetic, to;
    DType through;
    int in[TAPE_OPERANDS], out;
    double k[TAPE_SCALARS];
    size_t size; /* of an element of the arithmetic */
    RowLoop *row;
    const f32 *table;       /* of a row that is looked up (tape_tables.h); null: its loop runs */
    const TapeChain *chain; /* of rows that are one loop; null */
    bool by_rows;           /* it runs row by row: not all operands are whole */
    bool is_one;            /* of what is filled once: nobody reads more than its first element */
    const ReduceLoops *loops;
    /* of DRAW */
    PhiloxLaw law;
    uint32_t stream;
    uint64_t own;
    /* of LOAD and FILL */
    int argument;
    const Tensor *from, *value;
    TapeFeed feed;
    Space space;
    bool is_there;   /* of STORE: it lies where it is to leave already */
    bool is_widened; /* the argument is needed whole in the arithmetic: */
    size_t wide_at;  /* all of these lie in the scratch */
    /* of folds over blocks */
    size_t parts_at, whole_at, n_parts, sums_at;
} TapeStepRun;

/* Where a block stands: rows row .. row + rows - 1, and of each of them elements in .. in + n / rows - 1.
 * is_dense: these lie side by side in arguments and results, from element `at` there on.
 * leaves: registers may be made in results, since what lies under these is read no more. */
typedef struct Block {
    int64_t row, rows, in, at, n;
    bool is_dense, leaves;
    const void *product; /* where its elements of the product lie, if apart; null */
} Block;

/* How rows that are channels are walked (tape_channels.c). */
typedef struct Channels {
    int64_t run;    /* elements that lie side by side */
    int n_phases;   /* 0: blocks of whole rows */
    int last_walk;  /* of these; what is stored by elements is stored then */
    int64_t *piece; /* by phase: elements of a piece; it ends with its run where ends[phase] */
    bool *ends;
    int *once;   /* by step: the phase before which it is made for the whole row; below 0: never */
    int *folded; /* by step: the phase behind which a reduction is done; below 0: none */
    bool **walk; /* by phase: which steps are made piece by piece */
    int *n_walk; /* and how many they are */
} Channels;

/* Whether a step makes a register; others make results. */
static inline bool tape_makes(TapeWord word)
{
    return word != TAPE_STORE && word != TAPE_FOLD_COLUMN && word != TAPE_FOLD_ALL;
}

struct TapeRunner {
    const Tape *tape;
    const Kernels *kernels;
    TapeStepRun *steps;
    int n_steps;
    int64_t n_things, block, unit; /* rows or elements, of a block; blocks of a unit that no split tears */
    int64_t block_elements;
    TapeRows *rows;               /* of a register */
    int *home;                    /* of a register: the result that is its place; below 0: it has a room */
    Arithmetic *arithmetic;       /* of a register */
    bool *is_looked_up;           /* of a register: by tables, right behind the value that it is made of */
    bool *is_apart;               /* of a register: it has a room of its own */
    size_t *room_at;              /* of a register */
    size_t scratch;               /* bytes */
    char *memory;                 /* so many; */
    size_t worker_scratch, apart; /* bytes of each worker; how far those of two lie apart: */
    char *workers;                /* there rooms first, then */
    size_t sums_at, narrow_at;
    size_t room_bytes, sums_bytes, narrow_bytes;
    const bool *copied; /* by argument */
    const bool *stays;  /* by result: it is a product, which lies there */
    Channels *channels; /* null: rows lie one after the other */
    const void **at;    /* of each worker: where registers are */
    Tensor *const *out;
    uint64_t seed, step; /* that draws are of */
    uint32_t turn;
};

/* The step before another one that makes a register; -1: none. */
int tape_maker(const TapeRunner *r, int reg, int before);

/* How often a step reads a register. */
int tape_reads(const TapeStepRun *s, int reg);

/* Where a register is written: in the result that it leaves by, or in its room. */
void *tape_register_place(const TapeRunner *r, int worker, int reg, const Block *b);

/* Runs one step over a block. */
void tape_step_run(const TapeRunner *r, const TapeStepRun *s, int worker, const Block *b, const void **at);

/* ---- tape_channels.c ---- */

/* How channels are walked, once all steps are open; the space of an operand that they read by element. */
Channels *channels_open(const TapeRunner *r, Arena *arena);
void channels_space(const Tape *t, const Type *operand, Space *s, Arena *arena);

/* The sums of blocks of 64 that a reduction of one row leaves. */
size_t channels_parts(const Tape *t);

/* Runs so many channels from channel `row` on. */
void channels_run(const TapeRunner *r, int64_t row, int64_t rows, int worker, const void **at);

/* Steps over a block of channels: an argument, a reduction along rows, and a result, element by element. */
const void *channels_load(const TapeRunner *r, const TapeStepRun *s, const Block *b, void *room);
void channels_fold(const TapeRunner *r, const TapeStepRun *s, int worker, const Block *b, const void *x, void *to);
void channels_store(const TapeRunner *r, const TapeStepRun *s, const Block *b, const void *from);

#endif
