/* Bodies of kernels of what is chosen or added up along an axis. */
#ifndef OPS_FOLD_FOLD_KERNELS_H
#define OPS_FOLD_FOLD_KERNELS_H

#include "ops/card/own_kernel.h"

bool kernels_of_arg(const Node *n, OwnKernels *to, bool min);
bool kernels_of_cumulate(const Node *n, OwnKernels *to, bool product);
bool kernels_top_k(const Node *n, OwnKernels *to);
bool kernels_hardmax(const Node *n, OwnKernels *to);

#endif
