/* Rows of f32 that run as one loop (ops/kernels/chains.def): what lies between them is nowhere but in registers. */
#ifndef RUNTIME_CPU_TAPE_CHAINS_H
#define RUNTIME_CPU_TAPE_CHAINS_H

#include "runtime/cpu/tape_parts.h"

/* A chain as words: a row before its operands, leaves below 0. */
enum {
    LEAF_X = -1,
    LEAF_Y = -2,
    LEAF_Z = -3,
    LEAF_A = -4,
    LEAF_B = -5,
    LEAF_C = -6,
    LEAF_D = -7,
    LEAF_E = -8,
    CHAIN_LEAVES = 9,
    CHAIN_WORDS = 24
};

extern const int tape_chain_words[CHAIN_COUNT][CHAIN_WORDS];

/* Joins the rows of a tape that are chains, with the same bits; `over` says which argument each result lies over (null: none
 * does).  Of results between them nobody else reads.  For a tape whose steps and registers are open, behind tape_codes. */
void tape_chains(TapeRunner *r, const int *over, Arena *arena);

#endif
