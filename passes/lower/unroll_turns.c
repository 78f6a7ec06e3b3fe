/* unroll-turns: a loop whose turns can be counted stands as one copy of its body for each, where a graph is lowered.
 *
 *     graph @f(%x: f32[2,3], %w: f32[3]) -> (%y) {
 *         const %two: i64[] = 2
 *         const %zero: f32[] = 0
 *         %y: f32[] = loop(%two, _, %zero, %x, %w, operands=3) { (%i: i64[], %c: bool[], %s: f32[], %t: f32[2,3], %v: f32[3]) -> (%c, %u)
 *             %part: f32[3] = gather(%t, %i)
 *             %p: f32[] = matmul(%part, %v)
 *             %u: f32[] = add(%s, %p)
 *         }
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], %w: f32[3]) -> (%y) {
 *         const %two: i64[] = 2
 *         const %zero: f32[] = 0
 *         const %0: bool[] = true
 *         const %1: i64[] = 0
 *         %2: f32[3] = gather(%x, %1)
 *         %3: f32[] = matmul(%2, %w)
 *         %4: f32[] = add(%zero, %3)
 *         const %5: i64[] = 1
 *         %6: f32[3] = gather(%x, %5)
 *         %7: f32[] = matmul(%6, %w)
 *         %y: f32[] = add(%4, %7)
 *     }
 *
 * A loop is one call, which the evaluator runs node by node, while its turns are planned, fused and made kernels of like everything else.  So are
 * the micro-batches of a step that adds gradients up.  Loops that draw, whose turns draw other numbers each, and those that would be more
 * than some thousand nodes stay. */
#include "passes/clean/unroll_loops.h"

enum { MOST_TURNED = 1 << 14 }; /* nodes */

static Status unroll_turns(Graph *g, PassRun *run)
{
    const int64_t limit = g->ir->limits.unrolled_nodes;
    return unroll_counted(g, run, true, limit < MOST_TURNED ? limit : MOST_TURNED);
}

const Pass pass_unroll_turns = { .name = "unroll-turns", .needs = TYPED, .may = EXACT, .run = unroll_turns };
