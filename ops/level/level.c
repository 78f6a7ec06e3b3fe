#include "ops/level/level.h"

#define LEVEL_TEXT(x)   #x
#define LEVEL_STRING(x) LEVEL_TEXT(x)

const Kernels LEVEL_NAME(kernels) = {
    .name = LEVEL_STRING(LEVEL),
    .rows = LEVEL_NAME(rows),
    .reduce = LEVEL_NAME(reduce),
    .gemm_f32 = LEVEL_NAME(gemm_f32),
    .gemm_f64 = LEVEL_NAME(gemm_f64),
    .gemm_i32 = LEVEL_NAME(gemm_i32),
};
