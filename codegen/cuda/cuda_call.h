/* Kernels of calls that are no regions: sums of products in the one order of contractions, and moves.
 *
 *     chain    a thread for each element of a result: its sum over k, by fused multiply-adds, by segments of 2048
 *     copy     a thread for each point: an element goes from where the call reads it to where it writes it
 *
 * They follow what cards say of how their calls walk (ops/card/access.h), so one text serves products, convolutions and the
 * gradients of both.  Results have the bits of the evaluator. */
#ifndef CODEGEN_CUDA_CUDA_CALL_H
#define CODEGEN_CUDA_CUDA_CALL_H

#include "codegen/cuda/cuda_text.h"

/* Prints the kernels of a call, whose names begin with `name`; their arguments are pointers to the operands that it has, to
 * its results and to scratch.  Null, or why this call has none: then nothing is printed.  `late` as for cuda_print. */
const char *cuda_print_call(Text *out, const KernelTarget *target, const Node *call, const char *name, bool late,
                            CudaLaunch *launch);

#endif
