/* The engine `cuda`: programs as kernels on a GPU, what has none on the host; values on the device. */
#ifndef RUNTIME_CUDA_CUDA_H
#define RUNTIME_CUDA_CUDA_H

#include "runtime/engine.h"

extern const Engine engine_cuda;

/* Whether there is a driver with a device. */
bool cuda_is_there(Arena *scratch);

#endif
