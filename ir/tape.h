/* A tape: the body of a `fused` node as steps over blocks of its iteration space, in order.
 *
 * It is data: made from a region (codegen/tape.h), printed, and run by an engine without a compiler.  A block is some
 * whole rows of the space (where nothing cuts it, 1024 elements in their order), and every register holds a block of one
 * value, an element for each element of the block or for each of its rows, in one of the four arithmetics: f32, f64,
 * i64, u64. */
#ifndef IR_TAPE_H
#define IR_TAPE_H

#include "base/philox.h"
#include "base/text.h"
#include "ir/graph.h"

typedef enum TapeWord {
    TAPE_LOAD,        /* out = an argument, as the arithmetic has it */
    TAPE_FILL,        /* out = a number, everywhere */
    TAPE_DRAW,        /* out = random numbers by the logical index of elements, or of rows */
    TAPE_ROW,         /* out = a row of ops/rows.def over in[0..2] */
    TAPE_ROUND,       /* out = in[0] as values of a type, in another arithmetic perhaps */
    TAPE_SPREAD,      /* out = for each element that of its row, in[0] */
    TAPE_HIT,         /* out = 1 for the element of each row that in[0] names, else 0 */
    TAPE_FOLD_ROW,    /* out = the reduction of each row of in[0] */
    TAPE_PICK,        /* out = of each row of in[0] the element in[1], the last or first where there is none */
    TAPE_FOLD_COLUMN, /* a result = the reduction of each column of in[0], over all blocks */
    TAPE_FOLD_ALL,    /* a result = the reduction of all of in[0] */
    TAPE_STORE,       /* a result = in[0] */
} TapeWord;

enum { TAPE_NONE = -1, TAPE_OPERANDS = 3, TAPE_SCALARS = 2 };

/* The numbers are those of arguments, results, and registers. */
typedef struct TapeStep {
    TapeWord word;
    Op op;                  /* of a row or a fold */
    DType arithmetic;       /* of the registers it reads; of LOAD and FILL, of the one it writes */
    DType to;               /* of ROUND: the arithmetic of what it writes */
    DType through;          /* of ROUND: the type that it rounds to */
    int in[TAPE_OPERANDS];  /* registers; of LOAD the argument */
    int out;                /* a register; of STORE and folds over blocks the result */
    double k[TAPE_SCALARS]; /* of a row its scalars, of FILL the number */
    const Tensor *value;    /* of FILL, where it is a constant of the model */
    PhiloxLaw law;          /* of DRAW, whose k[0] is the limit of PHILOX_KEEP; */
    uint32_t stream;        /* of the call that draws, */
    uint64_t own;           /* and what the seed of a run is mixed with by exclusive or */
} TapeStep;

typedef struct TapeRegister {
    DType arithmetic;
    bool per_row;
    bool lasts; /* filled once, not in every block */
    int room;   /* registers of one room are never alive together */
} TapeRegister;

typedef struct Tape {
    const Type *space; /* bool[dims]: the dimensions alone matter */
    int first, cut;    /* dimensions first .. cut - 1 count rows; cut below 0: nothing cuts the space */
    int64_t rows, length;
    int n_in, n_out;
    const Type **in, **out;
    int product;          /* the last argument, where a product makes it block by block; TAPE_NONE */
    const char *schedule; /* how the region runs: a word of ops/region/schedules.def */
    TapeStep *steps;
    int n_steps;
    TapeRegister *registers;
    int n_registers, n_rooms;
} Tape;

/* The elements of a block: so many rows, a power of two that divides 64; of an uncut space, 1024 elements. */
int64_t tape_block_rows(const Tape *t);
int64_t tape_block_elements(const Tape *t);

/* Whether rows are channels: dimensions in the middle of the space. */
bool tape_has_channels(const Tape *t);

/* Whether a block is a piece of a row, not some rows. */
bool tape_has_pieces(const Tape *t);

/* The elements of a row that lie beside each other. */
int64_t tape_run_elements(const Tape *t);

/* By register: how many phases of reductions along rows stand before it. */
void tape_phases(const Tape *t, int *phase);

/* Whether a result may lie where an argument does (beside a product only where that does: what it reads stays), which is then copied block by block as it is read: every element of the
 * result comes after the last read of what it lies over. */
bool tape_may_lie_over(const Tape *t, int result, int argument);

/* Prints a tape, a step a line. */
void tape_print(Text *out, const Tape *t, const OpTable *ops);

#endif
