#include "ops/kernels/level/level.h"

#ifndef LEVEL_FROM
#define LEVEL_FROM LEVEL
#endif
#define FROM(name) LEVEL_PASTE(name, LEVEL_FROM)

#define LEVEL_TEXT(x)   #x
#define LEVEL_STRING(x) LEVEL_TEXT(x)

const Kernels LEVEL_NAME(kernels) = {
    .name = LEVEL_STRING(LEVEL),
    .load_f32 = FROM(load_f32),
    .load_f64 = FROM(load_f64),
    .load_i64 = FROM(load_i64),
    .load_u64 = FROM(load_u64),
    .store_f32 = FROM(store_f32),
    .store_f64 = FROM(store_f64),
    .store_i64 = FROM(store_i64),
    .store_u64 = FROM(store_u64),
    .round_bf16 = FROM(round_bf16),
    .rows = FROM(rows),
    .rows_fixed = FROM(rows_fixed),
    .chains = FROM(chains),
    .reduce = FROM(reduce),
    .packed = FROM(packed),
    .packed_bf16 = &LEVEL_NAME(packed_bf16),
    .quads = &LEVEL_NAME(quads),
    .pairs_bf16 = &LEVEL_NAME(pairs_bf16),
    .code_products = LEVEL_NAME(code_products),
    .code_tiles = LEVEL_NAME(code_tiles),
    .draw = FROM(draw),
    .largest = &FROM(largest),
    .taps = &FROM(taps),
    .codes = &FROM(codes),
    .code_windows = FROM(code_windows),
    .largest_codes = FROM(largest_codes),
    .gemm_f32 = FROM(gemm_f32),
    .gemm_f64 = FROM(gemm_f64),
};
