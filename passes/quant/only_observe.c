/* only-observe: nothing leaves but what quantizers remember.
 *
 *     graph @f(%x: f32[2], state %r: f32[2] role=quant) -> (%y, %r = %n) {
 *         %y: f32[2] = tanh(%x)
 *         %n: f32[2] = add(%r, %x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], state %r: f32[2] role=quant) -> (%r = %n) {
 *         %y: f32[2] = tanh(%x)
 *         %n: f32[2] = add(%r, %x)
 *     }
 */
#include "passes/quant/observers.h"

static Status only_observe(Graph *g, PassRun *run)
{
    return observers_keep(g, run, OBSERVERS_ALONE);
}

const Pass pass_only_observe = {
    .name = "only-observe", .needs = TYPED, .may = MEANING, .rebinds = true, .run = only_observe
};
