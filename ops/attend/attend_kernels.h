/* Kernels of attention and of the way back through it (ops/card/own_kernel.h): by tensor cores where these may make it
 * (attend_tensor.c); else whole rows of scores in the scratch, in the operations and the orders of the blocks of the host, so that
 * bits are equal. */
#ifndef OPS_ATTEND_ATTEND_KERNELS_H
#define OPS_ATTEND_ATTEND_KERNELS_H

#include "ops/card/own_kernel.h"

bool kernels_attention(const Node *n, OwnKernels *to);
bool kernels_attention_grad(const Node *n, OwnKernels *to);

#endif
