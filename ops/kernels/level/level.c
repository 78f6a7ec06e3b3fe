#include "ops/kernels/level/level.h"

#define LEVEL_TEXT(x)   #x
#define LEVEL_STRING(x) LEVEL_TEXT(x)

const Kernels LEVEL_NAME(kernels) = {
    .name = LEVEL_STRING(LEVEL),
    .load_f32 = LEVEL_NAME(load_f32),
    .load_f64 = LEVEL_NAME(load_f64),
    .load_i64 = LEVEL_NAME(load_i64),
    .load_u64 = LEVEL_NAME(load_u64),
    .store_f32 = LEVEL_NAME(store_f32),
    .store_f64 = LEVEL_NAME(store_f64),
    .store_i64 = LEVEL_NAME(store_i64),
    .store_u64 = LEVEL_NAME(store_u64),
    .rows = LEVEL_NAME(rows),
    .rows_fixed = LEVEL_NAME(rows_fixed),
    .reduce = LEVEL_NAME(reduce),
    .packed = LEVEL_NAME(packed),
    .draw = LEVEL_NAME(draw),
    .largest = LEVEL_NAME(largest),
    .codes = &LEVEL_NAME(codes),
    .code_windows = LEVEL_NAME(code_windows),
    .gemm_f32 = LEVEL_NAME(gemm_f32),
    .gemm_f64 = LEVEL_NAME(gemm_f64),
    .gemm_i32 = LEVEL_NAME(gemm_i32),
};
