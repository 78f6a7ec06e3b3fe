/* ops/reduce.h over many rows and columns. */
#include "ops/kernels/level/level.h"
#include "ops/reduce.h"

#ifdef __AVX512F__
#include <immintrin.h>

/* The largest and the smallest by the instruction that takes no care of NaNs and of the signs of zeros: where it finds a NaN the law
 * decides, and where it finds a zero whether there is one of the sign that wins. */
enum { LANES = 16, FEW = 4 * LANES };

static inline __mmask16 lanes_of(size_t left)
{
    return (__mmask16)(left < LANES ? (1u << left) - 1 : 0xffff);
}

static f32 zero_of(const f32 *x, size_t n, i32 winner, i32 other)
{
    __mmask16 any = 0;
    for (size_t i = 0; i < n; i += LANES) {
        const __mmask16 lanes = lanes_of(n - i);
        any |= _mm512_mask_cmpeq_epi32_mask(lanes, _mm512_maskz_loadu_epi32(lanes, x + i), _mm512_set1_epi32(winner));
    }
    return float_of((u32)(any ? winner : other));
}

#define EXTREME(kind, VECTOR, MASKED, ACROSS, WINNER, OTHER)                                                           \
    static f32 kind##_quick(const f32 *x, size_t n)                                                                    \
    {                                                                                                                  \
        __m512 a[4];                                                                                                   \
        __mmask16 nan = 0;                                                                                             \
        size_t i = 0;                                                                                                  \
        if (n < FEW)                                                                                                   \
            return kind##_row_f32(x, n);                                                                               \
        for (int k = 0; k < 4; k++)                                                                                    \
            a[k] = _mm512_loadu_ps(x + k * LANES);                                                                     \
        for (; i + FEW <= n; i += FEW)                                                                                 \
            for (int k = 0; k < 4; k++) {                                                                              \
                const __m512 v = _mm512_loadu_ps(x + i + k * LANES);                                                   \
                nan |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);                                                         \
                a[k] = VECTOR(v, a[k]);                                                                                \
            }                                                                                                          \
        for (; i < n; i += LANES) {                                                                                    \
            const __mmask16 lanes = lanes_of(n - i);                                                                   \
            const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);                                                      \
            nan |= _mm512_mask_cmp_ps_mask(lanes, v, v, _CMP_UNORD_Q);                                                 \
            a[0] = MASKED(a[0], lanes, v, a[0]);                                                                       \
        }                                                                                                              \
        if (nan)                                                                                                       \
            return kind##_row_f32(x, n);                                                                               \
        const f32 found = ACROSS(VECTOR(VECTOR(a[0], a[1]), VECTOR(a[2], a[3])));                                      \
        return found == 0 ? zero_of(x, n, WINNER, OTHER) : found;                                                      \
    }
EXTREME(max, _mm512_max_ps, _mm512_mask_max_ps, _mm512_reduce_max_ps, 0, INT32_MIN)
EXTREME(min, _mm512_min_ps, _mm512_mask_min_ps, _mm512_reduce_min_ps, INT32_MIN, 0)
#undef EXTREME
#define ROW_OF_max_f32 max_quick
#define ROW_OF_min_f32 min_quick
#else
#define ROW_OF_max_f32 max_row_f32
#define ROW_OF_min_f32 min_row_f32
#endif

#define LOOPS(kind, T) LOOPS_OF(kind, T, kind##_row_##T)
#define LOOPS_OF(kind, T, ROW)                                                                                         \
    static void kind##_rows_##T##_loop(size_t rows, size_t n, const void *x, void *out)                                \
    {                                                                                                                  \
        const T *px = x;                                                                                               \
        T *o = out;                                                                                                    \
        for (size_t r = 0; r < rows; r++)                                                                              \
            o[r] = ROW(px + r * n, n);                                                                                 \
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
#define EACH_LOOPS(kind)  LOOPS(kind, f32) OTHER_LOOPS(kind)
#define OTHER_LOOPS(kind) LOOPS(kind, f64) LOOPS(kind, i64) LOOPS(kind, u64)

EACH_LOOPS(sum)
EACH_LOOPS(squares)
EACH_LOOPS(product)
LOOPS_OF(max, f32, ROW_OF_max_f32)
LOOPS_OF(min, f32, ROW_OF_min_f32)
OTHER_LOOPS(max)
OTHER_LOOPS(min)

#define ENTRIES(number, kind)                                                                                          \
    [number] = { [ARITH_F32] = ENTRY(kind, f32),                                                                       \
                 [ARITH_F64] = ENTRY(kind, f64),                                                                       \
                 [ARITH_I64] = ENTRY(kind, i64),                                                                       \
                 [ARITH_U64] = ENTRY(kind, u64) }

const ReduceLoops LEVEL_NAME(reduce)[REDUCE_KINDS][ARITHMETICS] = {
    ENTRIES(REDUCE_SUM, sum), ENTRIES(REDUCE_SQUARES, squares), ENTRIES(REDUCE_PRODUCT, product),
    ENTRIES(REDUCE_MAX, max), ENTRIES(REDUCE_MIN, min),
};
