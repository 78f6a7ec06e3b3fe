/* Rows behind a product that a library makes as it makes the product. */
#ifndef CODEGEN_CUDA_CUDA_PRODUCT_END_H
#define CODEGEN_CUDA_CUDA_PRODUCT_END_H

#include "ir/kernels.h"

/* Whether who makes products for the target makes all of a contract, its product and the rows behind it, instead of kernels: then
 * the launch is that alone, with the arguments of rows. */
bool cuda_product_end(const Launch *l, const KernelTarget *target, Arena *arena, CudaLaunch *launch);

#endif
