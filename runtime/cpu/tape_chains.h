/* Rows of f32 that run as one loop (ops/kernels/chains.def): what lies between them is nowhere but in registers. */
#ifndef RUNTIME_CPU_TAPE_CHAINS_H
#define RUNTIME_CPU_TAPE_CHAINS_H

#include "runtime/cpu/tape_parts.h"

/* Joins the rows of a tape that are chains, with the same bits; `over` says which argument each result lies over (null: none
 * does).  Of results between them nobody else reads.  For a tape whose steps and registers are open, behind tape_codes. */
void tape_chains(TapeRunner *r, const int *over, Arena *arena);

#endif
