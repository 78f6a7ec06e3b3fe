/* Iteration spaces: the dimensions over which an elementwise kernel runs, collapsed as far as its operands allow. */
#ifndef OPS_MACHINE_SPACE_H
#define OPS_MACHINE_SPACE_H

#include "ir/type.h"

/* Row-major over `dims`; `strides` holds, per operand, the step of each dimension in elements, 0 where the operand is
 * broadcast.  Kernels take four dimensions at most (laws of the code generators); the evaluator takes any number. */
typedef struct Space {
    int rank; /* at least 1 */
    int n;    /* operands */
    int64_t total;
    int64_t dims[MAX_RANK];
    int64_t (*strides)[MAX_RANK];
} Space;

enum { SPACE_KERNEL_RANK = 4 };

/* The space of a call that gives `result` from operands that broadcast to it (null: absent, all strides 0).  All types
 * are known; `strides` has room for n. */
void space_open(Space *s, const Type *result, int n, const Type *const *operands, int64_t (*strides)[MAX_RANK]);

/* Whether operand i is read in the order of the space, every element once. */
bool space_is_dense(const Space *s, int i);

/* Whether operand i is one element. */
bool space_is_fixed(const Space *s, int i);

/* Elements at .. at + n - 1 of the space as operand i has them; `from` holds all of the operand, elements of 4 or 8
 * bytes. */
void space_gather(const Space *s, int i, const void *from, size_t size, int64_t at, int64_t n, void *to);

#endif
