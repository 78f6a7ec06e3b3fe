/* What the files share that have a library make products: descriptions and runs (products.c), and trials (product_trials.c). */
#ifndef RUNTIME_CUDA_PRODUCTS_PARTS_H
#define RUNTIME_CUDA_PRODUCTS_PARTS_H

#include "base/arena.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/products.h"

struct KernelProduct {
    KernelProduct *next;
    StackProduct is;
    CublasProduct *product;
    CublasMatrix *a, *b, *d;
    CublasChoice choice;
    bool taken;     /* the library makes it, */
    bool contested; /* and whether kernels do so faster was asked */
};

/* Where the first matrix of each stack lies, what is added, and the bias; 0: there is none. */
typedef struct ProductPlaces {
    CudaAddress a, b, c, d, bias;
} ProductPlaces;

/* Bytes of so many elements of a matrix. */
size_t product_bytes(const MatrixStack *s, int64_t elements);

/* Puts a product, made in a way, into a stream; what the library answers. */
int product_multiply(Products *p, const KernelProduct *k, const CublasChoice *way, const ProductPlaces *at,
                     CudaAddress scratch, CudaStream *stream);

/* The words by which a choice of the library is known: `own` and what is multiplied, on this device, by this library. */
const char *const *product_words(const Products *p, const KernelProduct *k, const char *own, Arena *arena);

/* Kernels make it from now on. */
void product_decline(Products *p, const KernelProduct *product);

/* ---- product_trials.c ---- */

enum { TRIAL_NUMBERS = 0x3c }; /* bytes that are numbers around 1/100, or 1, of every type */

/* Memory that is as large as that, all of such bytes; false where there is none, which is no failure. */
bool trial_room(Products *p, size_t bytes, unsigned char byte);

/* Runs what is measured once; false where it does not run, which is no failure. */
typedef bool TrialRun(void *user);

/* Seconds that it takes, by the clock of the device: a Choice's. */
double trial_seconds(Products *p, TrialRun *run, void *user);

/* Ways of a product, for product_seconds. */
typedef struct ProductTimes {
    Products *p;
    const KernelProduct *k;
    const CublasChoice *ways;
} ProductTimes;

/* Seconds that a product takes in a way (of ProductTimes), by the clock of the device, on memory of its own: unknown where it does not
 * run so, or there is no memory for it. */
double product_seconds(void *times, int way);

/* Whether what is no number stays none on its way through the end of a product. */
bool product_keeps_nan(Products *p, const KernelProduct *k, const CublasChoice *way);

/* Gives back what products were tried on. */
void product_end_trials(Products *p);

#endif
