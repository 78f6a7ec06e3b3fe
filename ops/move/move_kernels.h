/* Bodies of kernels of moves that fill. */
#ifndef OPS_MOVE_MOVE_KERNELS_H
#define OPS_MOVE_MOVE_KERNELS_H

#include "ops/card/own_kernel.h"

typedef struct TriluAttr {
    bool upper;
} TriluAttr;

typedef struct OneHotAttr {
    int64_t axis;
} OneHotAttr;

bool kernels_trilu(const Node *n, OwnKernels *to);
bool kernels_one_hot(const Node *n, OwnKernels *to);
bool kernels_pad(const Node *n, OwnKernels *to);

#endif
