/* The CUDA driver, libcuda: a library that comes with the driver of a GPU, looked for when it is needed, never linked. */
#ifndef RUNTIME_CUDA_DRIVER_H
#define RUNTIME_CUDA_DRIVER_H

#include "base/diag.h"

typedef unsigned long long CudaAddress; /* of memory of a device */
typedef struct CudaContext CudaContext;
typedef struct CudaLoaded CudaLoaded; /* a module of kernels */
typedef struct CudaFunction CudaFunction;
typedef struct CudaStream CudaStream;
typedef struct CudaEvent CudaEvent;
typedef struct CudaGraph CudaGraph;
typedef struct CudaGraphExec CudaGraphExec;

/* Its functions (driver.def), which answer CUDA_OK or the number of an error. */
typedef struct Driver {
    const char *library; /* that was found */
    int made_for;        /* the CUDA that it is of: 13000 is 13.0 */
#define DRIVER(name, symbol, arguments) int(*name) arguments;
#include "runtime/cuda/driver.def"
} Driver;

/* Numbers of cuda.h. */
enum {
    CUDA_OK = 0,
    CUDA_INVALID = 1,
    CUDA_NO_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_UNKNOWN = 999,
    CUDA_CAPABILITY_MAJOR = 75, /* attributes of a device */
    CUDA_CAPABILITY_MINOR = 76,
    CUDA_STREAM_APART = 1,   /* flag: it does not wait for the default stream */
    CUDA_CAPTURE_THREAD = 1, /* mode: what other threads do is nobody's business */
    CUDA_EVENT_TIMES = 0,    /* flags: when it was, or only what is before it */
    CUDA_EVENT_ORDER = 2,
};

/* Loads the library; DEVICE, with what was looked for, where it is not there, too old, or without a device. */
Status driver_load(Driver *driver, Diag *d, Place place, Arena *arena);

enum { DEVICE_NAME = 256 };

/* What a device is. */
typedef struct DeviceFacts {
    int ordinal, major, minor; /* as the driver calls it; what it can compute */
    size_t bytes;
    char name[DEVICE_NAME];
} DeviceFacts;

/* Asks what the device of a number is; CUDA_OK, or the number of an error. */
int driver_facts(const Driver *driver, int number, DeviceFacts *facts);

/* What the driver says of an error. */
const char *driver_error(const Driver *driver, int code);

#endif
