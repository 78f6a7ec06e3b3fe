/* Products of matrices that cuBLASLt makes on a device: each is described, and the way it is made chosen, before anything runs, so that
 * runs can be recorded and have the same bits each time. */
#ifndef RUNTIME_CUDA_PRODUCTS_H
#define RUNTIME_CUDA_PRODUCTS_H

#include "ir/kernels.h"
#include "runtime/cuda/cublas.h"

struct Device;

typedef struct Products {
    ProductMaker maker;
    struct Device *device;
    Cublas library;
    CublasHandle *handle;
    Arena *arena;
    KernelProduct *list; /* those that it took, the newest first; equal ones once */
    int n, refused;      /* those that it makes no way for, which kernels make */
} Products;

/* Opens the library for a device whose context is entered; what is noted lies in `arena`, which outlives it.  The library was
 * loaded; an error of it is the device's. */
void products_open(Products *p, struct Device *device, const Cublas *library, Arena *arena);

/* Gives everything back, in the context of the device. */
void products_close(Products *p);

/* Puts a product into the stream of the device: of what the arguments of a launch point to, in this scratch. */
void product_run(Products *p, const KernelProduct *product, const CudaAddress *arguments, CudaAddress scratch,
                 CudaStream *stream);

#endif
