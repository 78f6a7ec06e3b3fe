/* What the files that print kernels of calls share: cuda_call.c (which kernels there are, products, moves), cuda_scatter.c,
 * cuda_own.c, cuda_packed.c, cuda_product.c, cuda_reduce.c, cuda_tile.c. */
#ifndef CODEGEN_CUDA_CUDA_CALLS_H
#define CODEGEN_CUDA_CUDA_CALLS_H

#include "codegen/cuda/cuda_parts.h"
#include "codegen/cuda/cuda_walk.h"

/* How a thread refuses the run: several may at once, and plain writes of one place by threads that do not wait for each other
 * have no meaning, equal or not. */
#define CUDA_REFUSE "atomicOr(refused, 1u)"

typedef struct CallMaker {
    CudaWalk w;
    CudaMaker words; /* for how values are spelled */
    const Node *call;
    const char *name;
    CudaLaunch *launch;
    DType arithmetic; /* of sums */
    KernelTarget target;
    bool tensor; /* what comes next multiplies by tensor cores */
    int64_t *in_apart,
        *out_apart; /* by operand and result whose elements share bytes: where they lie in the scratch, one by one */
    size_t apart;   /* bytes of these */
    /* of a product that is a part of another call: this one, whose arguments its kernels have; null: it is none */
    const Node *whole;
    const struct OwnProduct *product; /* where its factors lie */
    size_t room;                      /* where its own scratch begins */
} CallMaker;

/* The type of a result of the call, and the number of an operand among those that there are. */
const Type *cuda_call_result(const CallMaker *m, int i);
int cuda_call_argument(const CallMaker *m, int operand);

/* Begins a kernel of so many threads, each of which has its number `o`. */
void cuda_call_open(CallMaker *m, const char *part, int64_t threads);
void cuda_call_close(const CallMaker *m);

/* Prints, before a place of an access by indices is named, what its indices are, and what becomes of those that lead out of what is
 * reached: the run is refused, and `otherwise` is done. */
void cuda_call_indices(const CallMaker *m, const Access *a, const Type *t, const char *otherwise, int indent);

/* The head of a kernel and its arguments, up to the brace. */
void cuda_call_head(CallMaker *m, const char *part, int64_t blocks, int threads);

/* Prints an operand at the point as a number of the arithmetic, `name`: outside of it, 0. */
void cuda_call_factor(const CallMaker *m, int operand, const char *name, int at);

/* Prints what becomes of `sum` as element `o`, at r0, .. of the result; of segments where there are several. */
void cuda_call_total(const CallMaker *m, bool segments, int indent);

/* What the sum of element `o` begins with: 0, or an operand that lies as the result does. */
const char *cuda_call_begin(const CallMaker *m);

/* Whether something stands beside the sum. */
bool cuda_call_adds(const CallMaker *m);

/* Prints the kernels of a sum of products by tiles; false, and nothing, where these are not worth it. */
bool cuda_tile(CallMaker *m);

/* Whether a call is a product of stacks of matrices that a library may be asked for, and which one. */
bool cuda_product_of(const CallMaker *m, StackProduct *p);

/* Whether who makes products for the target makes this call, a product of stacks of matrices, instead of kernels. */
bool cuda_product(CallMaker *m);

/* Prints the kernels that the card of the call writes itself; false: it writes none. */
bool cuda_own(CallMaker *m);

/* Prints the kernels of a sum of products that the call is, by its walk; null, or why there are none. */
const char *cuda_chain(CallMaker *m);

/* Prints the kernel of a reduction; null, or why there is none. */
const char *cuda_reduce(CallMaker *m);

/* Prints the kernels before and behind those of a call some of whose elements share bytes, and names for those kernels. */
void cuda_call_unpack(CallMaker *m);
void cuda_call_pack(CallMaker *m);
void cuda_call_apart(const CallMaker *m);

/* Names for what the kernels of a product read and make that is a part of another call. */
void cuda_own_factors(const CallMaker *m);

/* Prints the kernels of updates that go where indices say, one after the other; null, or why there are none. */
const char *cuda_scatter(CallMaker *m);

#endif
