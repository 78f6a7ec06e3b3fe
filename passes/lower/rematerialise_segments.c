/* rematerialise-segments: as rematerialise-blocks, but of the borders only some are kept; those between two of them are made
 * again before the first block between them is, and that from them.
 *
 *     graph @f(%x: f32[8,8], %w: f32[8,8], %dy: f32[8,8]) -> (%y, %dw) {
 *         %h1: f32[8,8] = matmul(%x, %w)
 *         %h2: f32[8,8] = matmul(%h1, %w)
 *         %h3: f32[8,8] = matmul(%h2, %w)
 *         %h4: f32[8,8] = matmul(%h3, %w)
 *         %h5: f32[8,8] = matmul(%h4, %w)
 *         %h6: f32[8,8] = matmul(%h5, %w)
 *         %h7: f32[8,8] = matmul(%h6, %w)
 *         %h8: f32[8,8] = matmul(%h7, %w)
 *         %h9: f32[8,8] = matmul(%h8, %w)
 *         %h10: f32[8,8] = matmul(%h9, %w)
 *         %h11: f32[8,8] = matmul(%h10, %w)
 *         %y: f32[8,8] = matmul(%h11, %w)
 *         %0: f32[8,8] = matmul(%h11, %dy, ta=true) side=backward
 *         %1: f32[8,8] = matmul(%h10, %0, ta=true) side=backward
 *         %2: f32[8,8] = matmul(%h9, %1, ta=true) side=backward
 *         %3: f32[8,8] = matmul(%h8, %2, ta=true) side=backward
 *         %4: f32[8,8] = matmul(%h7, %3, ta=true) side=backward
 *         %5: f32[8,8] = matmul(%h6, %4, ta=true) side=backward
 *         %6: f32[8,8] = matmul(%h5, %5, ta=true) side=backward
 *         %7: f32[8,8] = matmul(%h4, %6, ta=true) side=backward
 *         %8: f32[8,8] = matmul(%h3, %7, ta=true) side=backward
 *         %9: f32[8,8] = matmul(%h2, %8, ta=true) side=backward
 *         %dw: f32[8,8] = matmul(%h1, %9, ta=true) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[8,8], %w: f32[8,8], %dy: f32[8,8]) -> (%y, %dw) {
 *         %h1: f32[8,8] = matmul(%x, %w)
 *         %h2: f32[8,8] = matmul(%h1, %w)
 *         %h3: f32[8,8] = matmul(%h2, %w)
 *         %h4: f32[8,8] = matmul(%h3, %w)
 *         %h5: f32[8,8] = matmul(%h4, %w)
 *         %h6: f32[8,8] = matmul(%h5, %w)
 *         %h7: f32[8,8] = matmul(%h6, %w)
 *         %h8: f32[8,8] = matmul(%h7, %w)
 *         %h9: f32[8,8] = matmul(%h8, %w)
 *         %h10: f32[8,8] = matmul(%h9, %w)
 *         %h11: f32[8,8] = matmul(%h10, %w)
 *         %y: f32[8,8] = matmul(%h11, %w)
 *         %0: f32[8,8] = matmul(%h11, %dy, ta=true) side=backward
 *         %1: f32[8,8] = matmul(%h10, %0, ta=true) side=backward
 *         %2: f32[8,8] = matmul(%h9, %1, ta=true) side=backward
 *         %3: (f32[8,8], f32[8,8], f32[8,8]) = tuple(%h6, %w, %2) ours side=backward
 *         %4: f32[8,8] = part(%3, index=0) ours side=backward
 *         %5: f32[8,8] = part(%3, index=1) ours side=backward
 *         %6: f32[8,8] = matmul(%4, %5) ours side=backward
 *         %7: f32[8,8] = matmul(%6, %5) ours side=backward
 *         %8: (f32[8,8], f32[8,8], f32[8,8]) = tuple(%h6, %w, %2) ours side=backward
 *         %9: f32[8,8] = part(%8, index=0) ours side=backward
 *         %10: f32[8,8] = part(%8, index=1) ours side=backward
 *         %11: f32[8,8] = matmul(%9, %10) ours side=backward
 *         %12: f32[8,8] = matmul(%7, %2, ta=true) side=backward
 *         %13: f32[8,8] = matmul(%11, %12, ta=true) side=backward
 *         %14: f32[8,8] = matmul(%h6, %13, ta=true) side=backward
 *         %15: (f32[8,8], f32[8,8], f32[8,8]) = tuple(%x, %w, %14) ours side=backward
 *         %16: f32[8,8] = part(%15, index=0) ours side=backward
 *         %17: f32[8,8] = part(%15, index=1) ours side=backward
 *         %18: f32[8,8] = matmul(%16, %17) ours side=backward
 *         %19: f32[8,8] = matmul(%18, %17) ours side=backward
 *         %20: f32[8,8] = matmul(%19, %17) ours side=backward
 *         %21: f32[8,8] = matmul(%20, %17) ours side=backward
 *         %22: f32[8,8] = matmul(%21, %17) ours side=backward
 *         %23: (f32[8,8], f32[8,8], f32[8,8]) = tuple(%20, %w, %14) ours side=backward
 *         %24: f32[8,8] = part(%23, index=0) ours side=backward
 *         %25: f32[8,8] = part(%23, index=1) ours side=backward
 *         %26: f32[8,8] = matmul(%24, %25) ours side=backward
 *         %27: f32[8,8] = matmul(%22, %14, ta=true) side=backward
 *         %28: f32[8,8] = matmul(%26, %27, ta=true) side=backward
 *         %29: (f32[8,8], f32[8,8], f32[8,8]) = tuple(%x, %w, %28) ours side=backward
 *         %30: f32[8,8] = part(%29, index=0) ours side=backward
 *         %31: f32[8,8] = part(%29, index=1) ours side=backward
 *         %32: f32[8,8] = matmul(%30, %31) ours side=backward
 *         %33: f32[8,8] = matmul(%32, %31) ours side=backward
 *         %34: f32[8,8] = matmul(%20, %28, ta=true) side=backward
 *         %35: f32[8,8] = matmul(%33, %34, ta=true) side=backward
 *         %dw: f32[8,8] = matmul(%32, %35, ta=true) side=backward
 *     }
 *
 * Here %h6 is kept, and what lies before it is made again for the border inside of it (%20), and once more for itself (%32).
 * Of n equal blocks about the cube root of n is kept at any time, where borders that are all kept take about the square
 * root; the price is the forward side once more. */
#include "passes/lower/make_again.h"

static Status rematerialise_segments(Graph *g, PassRun *run)
{
    return make_again_at_best(g, run, true);
}

const Pass pass_rematerialise_segments = {
    .name = "rematerialise-segments", .needs = TYPED, .may = EXACT, .run = rematerialise_segments
};
