/* The two kernels with which a device decides by itself whether a step is applied (docs/runtime.md, "A step without the host"). */
#ifndef CODEGEN_CUDA_CUDA_COMMIT_H
#define CODEGEN_CUDA_CUDA_COMMIT_H

#include "ir/kernels.h"

/* Prints them; their names, and how they are launched, are those of ir/kernels.h. */
void cuda_commit_print(Text *out);

#endif
