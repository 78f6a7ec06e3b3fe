/* What the parts of the simulated cuBLASLt share. */
#ifndef TESTS_SIMCUDA_CUBLAS_H
#define TESTS_SIMCUDA_CUBLAS_H

#include <stdbool.h>

#include "runtime/cuda/cublas.h"
#include "simcuda/codes.h"
#include "simcuda/sim.h"

#define CUBLAS(answer, name, symbol, arguments) __attribute__((visibility("default"))) answer symbol arguments;
#include "runtime/cuda/cublas.def"

enum { SCRATCH_ALIGNMENT = 256 };

struct CublasHandle {
    int number;
};

struct CublasProduct {
    int compute, scale;
    int32_t turned[2]; /* a, b */
    uint32_t end;      /* what becomes of sums */
    const void *bias;  /* a number for each row of d, */
    int32_t bias_type; /* below 0: of the type of d */
};

struct CublasMatrix {
    int type;
    uint64_t rows, columns;
    int64_t line, step;
    int32_t n;
};

struct CublasWishes {
    uint64_t most;
    uint32_t splits, alignment[4];
};

#define WORD_HANDLE  "handle of cuBLASLt"
#define WORD_PRODUCT "description of a product"
#define WORD_MATRIX  "description of a matrix"
#define WORD_WISHES  "preference"

/* A product as it is computed. */
typedef struct Multiply {
    CublasProduct product;
    CublasMatrix a, b, d;
    const char *at_a, *at_b, *at_c; /* what is added lies at c; null: nothing is */
    char *at_d, *scratch;
    uint64_t splits; /* parts of its sums, which lie in the scratch; 1: it needs none */
    int way;         /* which of its ways that is */
} Multiply;

/* Begins a call of the library: CUBLAS_OK, or what it answers at once. */
int blas_enter(const char *call);

/* Whether a product of these makes sense, with a report where it makes none: CUBLAS_OK, INVALID or NOT_SUPPORTED. */
int blas_check(const CublasProduct *p, const CublasMatrix *a, const CublasMatrix *b, const CublasMatrix *c,
               const CublasMatrix *d, const char *call);

/* Whether elements are floats of eight bits. */
bool blas_is_f8(int type);

/* Bytes of an element, and the length of the sums of a product. */
size_t blas_bytes(int type);
uint64_t blas_sums(const CublasProduct *p, const CublasMatrix *a);

/* Computes one (a SimWork). */
int blas_multiply(const void *multiply);

#endif
