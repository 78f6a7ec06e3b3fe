/* From tapes to the text of kernels for CUDA.
 *
 * Kernels are made from the tape alone, the same data that runs on a CPU (ir/tape.h): a register is a variable of a
 * thread, with the number that it has on the tape.  What several threads add up is added in the order of ops/reduce.h,
 * by the functions that stand at the head of every program, so that results have the bits of the evaluator.
 *
 * A tape becomes one to three kernels that run one after the other:
 *
 *     map      a thread for each element of a space in which nothing is reduced
 *     segments a warp for each 1,024 elements: the parts of reductions of all
 *     rows     a block of threads for each row: its reductions, in phases where one needs another, then what leaves
 *     columns  a thread for each column and every eighth row of 64: the parts of reductions of columns
 *     join     parts joined in their order
 *
 * Whatever is reduced is computed anew by whoever needs it later, from the arguments: no element is kept between
 * phases.  What a result may lie over (tape_may_lie_over) is read before it is written. */
#ifndef CODEGEN_CUDA_TEXT_H
#define CODEGEN_CUDA_TEXT_H

#include "ir/kernels.h"

/* What every program begins with: the arithmetic of one element, and the order of reductions. */
void cuda_prelude(Text *out);

/* Prints the kernels of a tape, whose names begin with `name`, an identifier.  Null, or the reason why this tape has
 * none: then nothing is printed.  `late`: they run where a step is applied (CudaLaunch.late). */
const char *cuda_print(Text *out, const Tape *t, const OpTable *ops, const char *name, bool late, CudaLaunch *launch);

#endif
