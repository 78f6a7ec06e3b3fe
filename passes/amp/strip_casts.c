/* strip-casts: takes out again what mixed precision placed: every amp_cast goes, and what it narrowed is f32.
 *
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         %0: bf16[8,2] = amp_cast(%w, to=bf16) ours
 *         %1: bf16[4,8] = amp_cast(%x, to=bf16) ours
 *         %h: bf16[4,2] = matmul(%1, %0)
 *         %2: f32[4,2] = amp_cast(%h, to=f32) ours
 *         %y: f32[4,2] = tanh(%2)
 *     }
 *     ==>
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         %h: f32[4,2] = matmul(%x, %w)
 *         %y: f32[4,2] = tanh(%h)
 *     }
 */
#include "passes/amp/narrow_graph.h"

static Status strip_casts(Graph *g, PassRun *run)
{
    AmpGraph a;
    amp_graph_open(&a, g, run);
    a.backward = false; /* everything may change */
    amp_strip(&a);
    run->changes += a.removed;
    return OK;
}

const Pass pass_strip_casts = { .name = "strip-casts", .needs = TYPED, .may = PRECISION, .run = strip_casts };
