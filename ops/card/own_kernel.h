/* Kernels that cards write themselves, for calls that are neither rows nor sums nor moves: bodies in the C that the host's
 * compiler and CUDA's have in common, over the functions of ops/scalar.h and ops/reduce.h.
 *
 *     IN2(i)       element i of operand 2 in its arithmetic (f32, f64, i64, u64)
 *     RAW2         operand 2 as it lies
 *     ROUND2(v)    a number of that arithmetic as operand 2 would hold it
 *     OUT0(i, v)   stores v, a number of the arithmetic of result 0, as its element i
 *     OUTRAW0      result 0 as it lies
 *     scratch      bytes, which the kernels of a call share
 *     REFUSE       the run is refused (where the card says that it may be)
 *
 * Threads have a number: `o`, an i64, of all of them (blocks of any size), or of each block, `block`, an i64 and
 * `thread`, a u32 below OwnKernel.block. */
#ifndef OPS_CARD_OWN_KERNEL_H
#define OPS_CARD_OWN_KERNEL_H

#include "base/text.h"
#include "ir/graph.h"

enum { OWN_KERNELS = 32 };

/* Where a factor or a product lies: an operand, a result, or the scratch, from some byte on. */
typedef enum OwnWhere { OWN_OPERAND, OWN_RESULT, OWN_SCRATCH } OwnWhere;

typedef struct OwnMatrices {
    OwnWhere where;
    int number; /* of the operand or result */
    size_t at;  /* of the scratch */
    DType type;
    int64_t n, rows, columns; /* a stack of so many; one matrix serves all of the others */
} OwnMatrices;

/* d = a b, in the order of contractions, by whatever kernels products have; a and b as they lie, or turned. */
typedef struct OwnProduct {
    OwnMatrices a, b, d;
    bool ta, tb;
} OwnProduct;

typedef struct OwnKernel {
    const char *part;          /* of its name */
    int64_t n;                 /* threads, or blocks where these have a size of their own */
    int block;                 /* threads of a block; 0: whatever there are */
    const char *body;          /* statements, indented by four */
    bool tensor;               /* it multiplies by the functions of ops/warp.h */
    const OwnProduct *product; /* it is this, and has no body */
} OwnKernel;

struct OwnKernels {
    Arena *arena;
    OwnKernel list[OWN_KERNELS];
    int n;
    size_t scratch;
    bool
        narrow; /* of narrow types tensor cores may make products, near the bits of the evaluator (KernelTarget.narrow) */
    bool draws; /* reads draws[0], the seed, draws[1], the step of the run, and draws[2], the turn of a loop */
};

/* A body to write to; it becomes a kernel of n threads (or of n blocks of so many). */
void own_kernel_open(const OwnKernels *k, Text *body);
void own_kernel_close(OwnKernels *k, const char *part, int64_t n, int block, Text *body);

/* A product in the place of a kernel. */
void own_product(OwnKernels *k, const char *part, const OwnProduct *product);

/* A number as C writes it, to the bit. */
const char *own_f32(const OwnKernels *k, double v);
const char *own_f64(const OwnKernels *k, double v);

/* So many bytes of scratch; where they begin. */
size_t own_scratch(OwnKernels *k, int64_t bytes);

#endif
