/* Kernels of products and convolutions of codes (ops/card/own_kernel.h): by tensor cores, or a thread for each element, sums of 32
 * bits that are exact, and what the card makes of them. */
#ifndef OPS_QUANT_CODES_KERNELS_H
#define OPS_QUANT_CODES_KERNELS_H

#include "ops/card/own_kernel.h"
#include "ops/quant/matmul_codes.h"

/* The operands of a product or a convolution of codes; NO_CODES: it has none. */
typedef struct CodesOperands {
    int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
    const CodesAttr *codes; /* null: sums are the result */
} CodesOperands;

enum { NO_CODES = -1 };

bool kernels_codes_product(const Node *n, OwnKernels *to, const CodesOperands *p, bool ta, bool tb);
bool kernels_codes_conv(const Node *n, OwnKernels *to, const CodesOperands *p);

/* Of sums or products element by element, and of averages. */
bool kernels_codes_binary(const Node *n, OwnKernels *to, const CodesAttr *at, bool adds);
bool kernels_qaverage_pool(const Node *n, OwnKernels *to);
bool kernels_qglobal_average_pool(const Node *n, OwnKernels *to);

#endif
