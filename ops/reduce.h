/* The one order of summation, and of every other reduction, for evaluator, tape and kernels.
 *
 * A row is cut into segments of 1024.  A segment has 256 accumulators: a[p] = x[p], to which x[p+256], x[p+512] and
 * x[p+768] are added in turn; every eight neighbours fold to ((a0+a4)+(a2+a6)) + ((a1+a5)+(a3+a7)); the 32 sums fold by
 * halves.  Segment sums join like the digits of a binary counter, the older one on the left.
 * A column over rows is cut into blocks of 64 rows; a block has eight accumulators a[r mod 8], which fold by halves;
 * block sums join by the same counter.
 * Where an element is absent nothing is added, which is what adding the identity (-0 for a sum) would give.
 *
 * For every kind (sum, squares, product, max, min) and arithmetic (f32, f64, i64, u64; integers wrap) there are, shown
 * for sum and f32:
 *
 *     f32  sum_segment_f32(x, n)                         one segment, 1 <= n <= 1024
 *     void sum_push_f32(&counter, v)                     joins the next segment; a counter begins as { 0 }
 *     f32  sum_total_f32(&counter)                       0 where nothing was pushed
 *     f32  sum_row_f32(x, n)                             a row of any length
 *     f32  sum_strided_f32(x, n, stride)                 a row whose elements lie apart
 *     void sum_block_f32(x, rows, cols, stride, out)     a block of each of cols columns, 1 <= rows <= 64
 *     void sum_cols_f32(x, rows, cols, stride, out)      whole columns; any split of the columns gives the same bits
 *     void sum_runs_f32(x, &runs, cols, out)             the same where the rows of a column lie in runs
 *
 * Kernels have eight, push, total, and of their own warp, four, none, clear, add and parts (ops/reduce/part.h).
 * A reduction of something computed packs it in pieces of 1024 and pushes their segments. */
#ifndef QCC_OPS_REDUCE_H
#define QCC_OPS_REDUCE_H

#ifndef __CUDACC__ /* host */
#include <stdbool.h>
#include <stddef.h>
#include "ops/reduce/runs.h"
#include "ops/scalar.h"
#endif /* host */

enum {
    REDUCE_SEGMENT = 1024, /* elements of a row that fold as one tree */
    REDUCE_ACROSS = 256,   /* accumulators of a segment */
    REDUCE_BLOCK = 64,     /* rows of a column that fold as one tree */
    REDUCE_TILE = 64,      /* columns walked at a time: a matter of speed only */
    REDUCE_LEVELS = 64,    /* digits of a counter */
};

#define REDUCE_PLUS_f32(x, y)  ((x) + (y))
#define REDUCE_PLUS_f64(x, y)  ((x) + (y))
#define REDUCE_PLUS_i64(x, y)  ((i64)((u64)(x) + (u64)(y)))
#define REDUCE_PLUS_u64(x, y)  ((x) + (y))
#define REDUCE_TIMES_f32(x, y) ((x) * (y))
#define REDUCE_TIMES_f64(x, y) ((x) * (y))
#define REDUCE_TIMES_i64(x, y) ((i64)((u64)(x) * (u64)(y)))
#define REDUCE_TIMES_u64(x, y) ((x) * (y))

#define REDUCE_LOWEST_f32  (-Q_INF)
#define REDUCE_LOWEST_f64  (-(f64)Q_INF)
#define REDUCE_LOWEST_i64  Q_I64_MIN
#define REDUCE_LOWEST_u64  0
#define REDUCE_HIGHEST_f32 Q_INF
#define REDUCE_HIGHEST_f64 ((f64)Q_INF)
#define REDUCE_HIGHEST_i64 Q_I64_MAX
#define REDUCE_HIGHEST_u64 (~(u64)0)

/* Each kind: what an element contributes, how two parts join, the identity, and the value of an empty reduction. */
#define REDUCE_KIND          sum
#define REDUCE_LOAD(T, v)    (v)
#define REDUCE_JOIN(T, x, y) REDUCE_PLUS_##T(x, y)
#define REDUCE_IDENTITY(T)   ((T)-0.0)
#define REDUCE_EMPTY(T)      ((T)0)
#include "ops/reduce/arithmetics.h"

#define REDUCE_KIND          squares
#define REDUCE_LOAD(T, v)    REDUCE_TIMES_##T(v, v)
#define REDUCE_JOIN(T, x, y) REDUCE_PLUS_##T(x, y)
#define REDUCE_IDENTITY(T)   ((T)-0.0)
#define REDUCE_EMPTY(T)      ((T)0)
#include "ops/reduce/arithmetics.h"

#define REDUCE_KIND          product
#define REDUCE_LOAD(T, v)    (v)
#define REDUCE_JOIN(T, x, y) REDUCE_TIMES_##T(x, y)
#define REDUCE_IDENTITY(T)   ((T)1)
#define REDUCE_EMPTY(T)      ((T)1)
#include "ops/reduce/arithmetics.h"

#define REDUCE_KIND          max
#define REDUCE_LOAD(T, v)    (v)
#define REDUCE_JOIN(T, x, y) max_##T(x, y)
#define REDUCE_IDENTITY(T)   REDUCE_LOWEST_##T
#define REDUCE_EMPTY(T)      REDUCE_LOWEST_##T
#include "ops/reduce/arithmetics.h"

#define REDUCE_KIND          min
#define REDUCE_LOAD(T, v)    (v)
#define REDUCE_JOIN(T, x, y) min_##T(x, y)
#define REDUCE_IDENTITY(T)   REDUCE_HIGHEST_##T
#define REDUCE_EMPTY(T)      REDUCE_HIGHEST_##T
#include "ops/reduce/arithmetics.h"

#endif
