/* train-integers: the same as take-integers in a graph that is about to be differentiated: what codes were rounded from is a
 * second result, which says where gradients pass.
 *
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %s: f32[], %t: f32[], %u: f32[], %z: u8[]) -> (%y) {
 *         %a: f32[2,4] = dequantize_linear(%x, %s, %z)
 *         %b: f32[4,3] = dequantize_linear(%w, %t)
 *         %c: f32[2,3] = matmul(%a, %b)
 *         %y: u8[2,3] = quantize_linear(%c, %u, %z)
 *     }
 *     ==>
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %s: f32[], %t: f32[], %u: f32[], %z: u8[]) -> (%y) {
 *         const %0: i8[] = 0
 *         %1: (u8[2,3], f32[2,3]) = qmatmul(%x, %s, %z, %w, %t, %0, %u, %z)
 *         %y: u8[2,3] = part(%1, index=0)
 *     }
 */
#include "passes/quant/integers.h"

static Status train_integers(Graph *graph, PassRun *run)
{
    return quant_take_integers(graph, run, true);
}

const Pass pass_train_integers = { .name = "train-integers", .needs = TYPED, .may = MEANING, .run = train_integers };
