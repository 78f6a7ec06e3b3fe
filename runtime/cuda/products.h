/* Products of matrices that cuBLASLt makes on a device: each is described, and the way it is made chosen, before anything runs, so that
 * runs can be recorded and have the same bits each time. */
#ifndef RUNTIME_CUDA_PRODUCTS_H
#define RUNTIME_CUDA_PRODUCTS_H

#include "ir/kernels.h"
#include "runtime/cuda/choices.h"
#include "runtime/cuda/cublas.h"

struct Device;

/* Memory of the device that products are tried on, and events around them. */
typedef struct TrialRoom {
    CudaAddress at;
    size_t bytes;
    CudaEvent *from, *to;
} TrialRoom;

typedef struct Products {
    ProductMaker maker;
    struct Device *device;
    Cublas library;
    CublasHandle *handle;
    Arena *arena;
    KernelProduct *list; /* those that it took, the newest first; equal ones once */
    int n, refused;      /* those that it makes no way for, which kernels make */
    Choices *choices;    /* among the ways of each; null: the library's first */
    TrialRoom room;
} Products;

/* Opens the library for a device whose context is entered; what is noted lies in `arena`, which outlives it.  The library was
 * loaded; an error of it is the device's.  Of the ways to make a product the fastest is taken, by what is kept in `choices`; null:
 * the library's first. */
void products_open(Products *p, struct Device *device, const Cublas *library, Choices *choices, Arena *arena);

/* All products of a program were described: gives back what they were tried on. */
void products_settle(Products *p);

/* Gives everything back, in the context of the device. */
void products_close(Products *p);

/* Puts a product into the stream of the device: of what the arguments of a launch point to, in this scratch. */
void product_run(Products *p, const KernelProduct *product, const CudaAddress *arguments, CudaAddress scratch,
                 CudaStream *stream);

#endif
