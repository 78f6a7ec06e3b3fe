/* chunk-loss: a loss over many classes is computed some rows at a time, there and back, where memory counts more than time.
 *
 *     graph @f(%x: f32[128,1], %w: f32[1,2048]) -> (%loss, %dw) {
 *         const %axis: i64[1] = [1]
 *         %h: f32[128,2048] = matmul(%x, %w)
 *         %e: f32[128,2048] = exp(%h)
 *         %s: f32[128,1] = reduce_sum(%e, %axis)
 *         %loss: f32[] = reduce_sum(%s, keepdims=false)
 *         %dw: f32[1,2048] = matmul(%x, %e, ta=true) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[128,1], %w: f32[1,2048]) -> (%loss, %dw) {
 *         const %axis: i64[1] = [1]
 *         const %0: i64[] = 4 ours
 *         const %1: f32[] = 0 ours
 *         const %2: i64[2] = [1, 2048] ours
 *         %3: f32[1,2048] = expand(%1, %2) ours
 *         const %4: i64[3] = [4, 32, 1] ours
 *         %5: f32[4,32,1] = reshape(%x, %4, allowzero=true) ours
 *         %6: (f32[1,2048], f32[4,32,1]) = loop(%0, _, %3, %5, %w, operands=3) { (%7: i64[], %8: bool[], %9: f32[1,2048], %10: f32[4,32,1], %11: f32[1,2048]) -> (%8, %17, %16)
 *             %12: f32[32,1] = gather(%10, %7) ours
 *             %13: f32[32,2048] = matmul(%12, %11) ours
 *             %14: f32[32,2048] = exp(%13) ours
 *             const %15: i64[1] = [1] ours
 *             %16: f32[32,1] = reduce_sum(%14, %15) ours
 *             %17: f32[1,2048] = matmul_accumulate(%12, %14, %9, ta=true) ours
 *         } ours
 *         %dw: f32[1,2048] = part(%6, index=0) ours
 *         %18: f32[4,32,1] = part(%6, index=1) ours
 *         const %19: i64[2] = [128, 1] ours
 *         %s: f32[128,1] = reshape(%18, %19, allowzero=true) ours
 *         %loss: f32[] = reduce_sum(%s, keepdims=false)
 *     }
 *
 * The scores of a language model and their gradient are by far the largest values of its step; a chunk of them is all that has to
 * be there at once.  What each row is made of stays as it is, and what is summed over rows goes on with one chain of fused
 * multiply-adds from chunk to chunk, so that no bit differs; rows of more than one segment of such a sum stay whole.  Scores that
 * somebody wants as a result leave, row by row.
 *
 * Left whole are losses whose way back waits for something (a scale, a gradient from outside), those of whose scores more is
 * wanted than that (the gradient of a bias), and those in a body. */
#include "passes/lower/chunk_rows.h"

const Pass pass_chunk_loss = { .name = "chunk-loss", .needs = TYPED, .may = EXACT, .run = chunk_losses };
