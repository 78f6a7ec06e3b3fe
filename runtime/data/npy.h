/* NumPy arrays in files: versions 1 to 3, either byte order, C and Fortran order. */
#ifndef RUNTIME_DATA_NPY_H
#define RUNTIME_DATA_NPY_H

#include "base/limits.h"
#include "ir/tensor.h"
#include "runtime/data/bytes.h"

/* What the head of a file says. */
typedef struct NpyHead {
    DType dtype;
    bool untyped; /* stored as raw bytes (V2, V1): what ml_dtypes saves; dtype is then a guess by size */
    bool swapped; /* big-endian */
    bool fortran;
    bool unpacked; /* one byte an element of a smaller type */
    int rank;
    int64_t dims[MAX_RANK];
    uint64_t at, size; /* where the elements begin; of the file */
} NpyHead;

/* Whether the bytes begin a .npy file. */
bool npy_is(const void *bytes, size_t n);

/* The name that the package ml_dtypes gives a type; null: it is NumPy's own, or nobody's. */
const char *npy_ml_dtype(DType dtype);

/* Reads the head.  `declared` (may be null) says what raw bytes are. */
Status npy_head(Diag *d, const Limits *limits, const Bytes *file, const Type *declared, NpyHead *head);

/* How many bytes the head of a file takes, given its first 12; 0 where they begin no file that we read. */
size_t npy_head_bytes(const uint8_t first[12]);

/* Turns the bytes of each element of n bytes around. */
void npy_swap(void *elements, size_t n, size_t width);

/* Elements in Fortran order into C order. */
void npy_reorder(void *to, const void *from, const NpyHead *head, int64_t n, size_t width);

/* Reads a file into a tensor in `heap`. */
Status npy_read(Types *types, Heap *heap, Diag *d, const Limits *limits, const char *path, const Type *declared,
                Tensor **value);

/* The same from bytes that are a .npy file. */
Status npy_read_bytes(Types *types, Heap *heap, Diag *d, const Limits *limits, const Bytes *file, const Type *declared,
                      Tensor **value);

/* Puts a tensor as a .npy file of version 1; element types that NumPy lacks go as ml_dtypes stores them, those of less
 * than 8 bits as one byte each. */
Status npy_write(Arena *scratch, const Tensor *t, Status (*put)(void *user, const void *bytes, size_t n), void *user);

#endif
