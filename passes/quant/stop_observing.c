/* stop-observing: scales stay as they are: nothing of what quantizers remember gets a next value.
 *
 *     graph @f(%x: f32[2], state %r: f32[2] role=quant) -> (%y, %r = %n) {
 *         %y: f32[2] = tanh(%x)
 *         %n: f32[2] = add(%r, %x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], state %r: f32[2] role=quant) -> (%y) {
 *         %y: f32[2] = tanh(%x)
 *         %n: f32[2] = add(%r, %x)
 *     }
 */
#include "passes/quant/observers.h"

static Status stop_observing(Graph *g, PassRun *run)
{
    return observers_keep(g, run, OBSERVERS_NONE);
}

const Pass pass_stop_observing = {
    .name = "stop-observing", .needs = TYPED, .may = MEANING, .rebinds = true, .run = stop_observing
};
