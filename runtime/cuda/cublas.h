/* cuBLASLt, which multiplies matrices: a library of the CUDA toolkit that is looked for when it is asked for, never linked. */
#ifndef RUNTIME_CUDA_CUBLAS_H
#define RUNTIME_CUDA_CUBLAS_H

#include "runtime/cuda/driver.h"

typedef struct CublasHandle CublasHandle;
typedef struct CublasProduct CublasProduct; /* what is computed */
typedef struct CublasMatrix CublasMatrix;   /* how a stack of matrices lies */
typedef struct CublasWishes CublasWishes;   /* what a way has to be like */

/* A way to make a product, which the library alone understands. */
typedef struct CublasWay {
    uint64_t data[8];
} CublasWay;

typedef struct CublasChoice {
    CublasWay way;
    size_t scratch; /* bytes that it works in */
    int state;      /* CUBLAS_OK: it can be used */
    float waves;
    int reserved[4];
} CublasChoice;

/* Its functions (cublas.def). */
typedef struct Cublas {
    const char *library; /* that was found */
    int major, minor, patch;
#define CUBLAS(answer, name, symbol, arguments) answer(*name) arguments;
#include "runtime/cuda/cublas.def"
} Cublas;

/* Numbers of cublasLt.h. */
enum {
    CUBLAS_OK = 0,
    CUBLAS_INVALID = 7,
    CUBLAS_NOT_SUPPORTED = 15,
    CUBLAS_F32 = 0, /* types of elements */
    CUBLAS_F16 = 2,
    CUBLAS_I8 = 3,
    CUBLAS_I32 = 10,
    CUBLAS_BF16 = 14,
    CUBLAS_F8E4M3 = 28,
    CUBLAS_F8E5M2 = 29,
    CUBLAS_SUMS_F32 = 68,  /* arithmetic: sums of f32 of narrow operands; */
    CUBLAS_EXACT_F32 = 69, /* f32 as it is, never as something narrower; */
    CUBLAS_SUMS_I32 = 72,
    CUBLAS_TURN_A = 3, /* attributes of a product: whether a factor is read transposed, */
    CUBLAS_TURN_B = 4,
    CUBLAS_AS_IT_LIES = 0,
    CUBLAS_TURNED = 1,
    CUBLAS_END = 7, /* what becomes of its sums, as these say, which are bits: */
    CUBLAS_END_NONE = 1,
    CUBLAS_END_RELU = 2,
    CUBLAS_END_BIAS = 4,
    CUBLAS_BIAS = 8,       /* where the bias lies, */
    CUBLAS_BIAS_TYPE = 26, /* and of what type it is */
    CUBLAS_STACK = 5,      /* of matrices: how many there are, and elements from one to the next */
    CUBLAS_STACK_STEP = 6,
    CUBLAS_MOST_SCRATCH = 1, /* of wishes */
    CUBLAS_SPLITS = 3,       /* how sums may be shared out: */
    CUBLAS_SPLITS_IN_SCRATCH = 2,
    CUBLAS_ALIGNMENT_A = 5, /* and of b, c, d */
    CUBLAS_MAJOR = 0,       /* properties of the library */
    CUBLAS_MINOR = 1,
    CUBLAS_PATCH = 2,
};

/* Loads the library; DEVICE, with what was looked for, where it is not there or too old. */
Status cublas_load(Cublas *c, Diag *d, Place place, Arena *arena);

/* Why it cannot be used, without a message; null: it can. */
const char *cublas_find(Cublas *c, Arena *arena);

#endif
