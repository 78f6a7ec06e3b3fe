/* Runs programs on a device: kernels for the launches that have some, and the others on the host, with what they read and make
 * copied there and back.  From the second run on the launches of a part between two of those are one graph of the driver. */
#ifndef RUNTIME_CUDA_LAUNCHES_H
#define RUNTIME_CUDA_LAUNCHES_H

#include "runtime/host/host.h"

/* A RunnerMaker (runtime/host/host.h) of values on a device; what fails is the device's to say. */
GraphRunner *device_runner(const Executable *x, const EngineOptions *options, RunnerRoom *room, Arena *arena,
                           Heap *heap);

#endif
