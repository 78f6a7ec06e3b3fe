/* Kernels of pools (ops/card/own_kernel.h). */
#ifndef OPS_WINDOW_WINDOW_KERNELS_H
#define OPS_WINDOW_WINDOW_KERNELS_H

#include "ops/card/own_kernel.h"
#include "ops/window/window.h"

bool kernels_max_pool(const Node *n, OwnKernels *to);
bool kernels_average_pool(const Node *n, OwnKernels *to);

/* Prints the mean of the window of element `o`, `mean` of type T; `element` is one of the data, number `at_of_data`. */
void window_print_mean(Text *t, const Window *w, bool padding, const char *element);

/* Of the gradients, whose data has these extents: of the largest, which operand 0 holds, and of means. */
bool kernels_of_max_grad(const Node *n, OwnKernels *to);
bool kernels_of_mean_grad(const Node *n, OwnKernels *to, const int64_t *extents);

#endif
