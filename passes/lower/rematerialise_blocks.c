/* rematerialise-blocks: of the forward side little is kept but what is alive at borders of blocks; the backward side makes
 * each block again when it comes to it.
 *
 *     graph @f(%x: f32[8,8], %w: f32[8,8], %dy: f32[8,8]) -> (%y, %dw) {
 *         %h1: f32[8,8] = matmul(%x, %w)
 *         %h2: f32[8,8] = matmul(%h1, %w)
 *         %h3: f32[8,8] = matmul(%h2, %w)
 *         %h4: f32[8,8] = matmul(%h3, %w)
 *         %h5: f32[8,8] = matmul(%h4, %w)
 *         %y: f32[8,8] = matmul(%h5, %w)
 *         %0: f32[8,8] = matmul(%h5, %dy, ta=true) side=backward
 *         %1: f32[8,8] = matmul(%h4, %0, ta=true) side=backward
 *         %2: f32[8,8] = matmul(%h3, %1, ta=true) side=backward
 *         %3: f32[8,8] = matmul(%h2, %2, ta=true) side=backward
 *         %dw: f32[8,8] = matmul(%h1, %3, ta=true) side=backward
 *     }
 *     ==>
 *     graph @f(%x: f32[8,8], %w: f32[8,8], %dy: f32[8,8]) -> (%y, %dw) {
 *         %h1: f32[8,8] = matmul(%x, %w)
 *         %h2: f32[8,8] = matmul(%h1, %w)
 *         %h3: f32[8,8] = matmul(%h2, %w)
 *         %h4: f32[8,8] = matmul(%h3, %w)
 *         %h5: f32[8,8] = matmul(%h4, %w)
 *         %y: f32[8,8] = matmul(%h5, %w)
 *         %0: f32[8,8] = matmul(%h5, %dy, ta=true) side=backward
 *         %1: f32[8,8] = matmul(%h4, %0, ta=true) side=backward
 *         %2: f32[8,8] = matmul(%h3, %1, ta=true) side=backward
 *         %3: (f32[8,8], f32[8,8], f32[8,8]) = tuple(%x, %w, %2) ours side=backward
 *         %4: f32[8,8] = part(%3, index=0) ours side=backward
 *         %5: f32[8,8] = part(%3, index=1) ours side=backward
 *         %6: f32[8,8] = matmul(%4, %5) ours side=backward
 *         %7: f32[8,8] = matmul(%6, %5) ours side=backward
 *         %8: f32[8,8] = matmul(%7, %2, ta=true) side=backward
 *         %dw: f32[8,8] = matmul(%6, %8, ta=true) side=backward
 *     }
 *
 * A border is a cut through the forward side across which few bytes live: the stream between the layers of a transformer,
 * the sum behind a residual block.  Names say nothing: borders are chosen by what is alive when (passes/lower/borders.h),
 * and of several choices the one that takes the smallest arena.  Behind the last border nothing is made again, for the
 * backward side begins there.
 *
 * Inside of a block everything is made again that can be: not what may refuse or moves states, and not what is small
 * beside what it is made of.  A call that draws has its stream, and draws the same.  The tuple says when: what is made
 * again reads the values of the border out of it, and so runs behind what the backward side made last. */
#include "passes/lower/make_again.h"

static Status rematerialise_blocks(Graph *g, PassRun *run)
{
    return make_again_at_best(g, run, false);
}

const Pass pass_rematerialise_blocks = {
    .name = "rematerialise-blocks", .needs = TYPED, .may = EXACT, .run = rematerialise_blocks
};
