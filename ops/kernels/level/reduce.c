/* ops/reduce.h over many rows and columns. */
#include "ops/kernels/level/level.h"
#include "ops/reduce.h"

#define LOOPS(kind, T)                                                                                                 \
    static void kind##_rows_##T##_loop(size_t rows, size_t n, const void *x, void *out)                                \
    {                                                                                                                  \
        const T *px = x;                                                                                               \
        T *o = out;                                                                                                    \
        for (size_t r = 0; r < rows; r++)                                                                              \
            o[r] = kind##_row_##T(px + r * n, n);                                                                      \
    }                                                                                                                  \
    static void kind##_cols_##T##_loop(size_t rows, size_t cols, size_t stride, const void *x, void *out)              \
    {                                                                                                                  \
        kind##_cols_##T(x, rows, cols, (ptrdiff_t)stride, out);                                                        \
    }                                                                                                                  \
    static void kind##_runs_##T##_loop(const ReduceRuns *runs, size_t cols, const void *x, void *out)                  \
    {                                                                                                                  \
        kind##_runs_##T(x, runs, cols, out);                                                                           \
    }                                                                                                                  \
    static void kind##_add_##T##_loop(size_t first, size_t rows, size_t cols, const void *x, void *sums)               \
    {                                                                                                                  \
        kind##_sums_add_##T(first, rows, cols, x, sums);                                                               \
    }                                                                                                                  \
    static void kind##_end_##T##_loop(size_t rows, size_t cols, void *sums, void *out)                                 \
    {                                                                                                                  \
        kind##_sums_end_##T(rows, cols, sums, out);                                                                    \
    }                                                                                                                  \
    static void kind##_join_##T##_loop(size_t blocks, size_t cols, const void *parts, void *out)                       \
    {                                                                                                                  \
        kind##_join_##T(blocks, cols, parts, out);                                                                     \
    }                                                                                                                  \
    static void kind##_lines_##T##_loop(size_t n, const void *x, void *out)                                            \
    {                                                                                                                  \
        kind##_lines_##T(x, n, out);                                                                                   \
    }
#define ENTRY(kind, T)                                                                                                 \
    {                                                                                                                  \
        kind##_rows_##T##_loop, kind##_cols_##T##_loop, kind##_runs_##T##_loop, kind##_add_##T##_loop,                 \
            kind##_end_##T##_loop, kind##_join_##T##_loop, kind##_lines_##T##_loop                                     \
    }
#define EACH_LOOPS(kind) LOOPS(kind, f32) LOOPS(kind, f64) LOOPS(kind, i64) LOOPS(kind, u64)

EACH_LOOPS(sum)
EACH_LOOPS(squares)
EACH_LOOPS(product)
EACH_LOOPS(max)
EACH_LOOPS(min)

#define ENTRIES(number, kind)                                                                                          \
    [number] = { [ARITH_F32] = ENTRY(kind, f32),                                                                       \
                 [ARITH_F64] = ENTRY(kind, f64),                                                                       \
                 [ARITH_I64] = ENTRY(kind, i64),                                                                       \
                 [ARITH_U64] = ENTRY(kind, u64) }

const ReduceLoops LEVEL_NAME(reduce)[REDUCE_KINDS][ARITHMETICS] = {
    ENTRIES(REDUCE_SUM, sum), ENTRIES(REDUCE_SQUARES, squares), ENTRIES(REDUCE_PRODUCT, product),
    ENTRIES(REDUCE_MAX, max), ENTRIES(REDUCE_MIN, min),
};
