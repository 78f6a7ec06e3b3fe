/* What a reduction over axes says of itself, for who fuses it with other calls. */
#ifndef OPS_FOLD_REDUCE_AXES_H
#define OPS_FOLD_REDUCE_AXES_H

#include "ir/graph.h"
#include "ops/kernels/kernels.h"

/* A reduction that runs in the order of ops/reduce.h and does nothing else. */
typedef struct Reduction {
    ReduceKind kind;
    uint32_t axes; /* a bit for each dimension of the operand that is reduced */
} Reduction;

/* Reads a call as a reduction; false when it is none, or its axes are only known when it runs. */
bool reduction_of(const Node *n, Reduction *r);

/* The kind of a word that is such a reduction. */
ReduceKind reduction_kind(Op op);

#endif
