/* learn-scales: scales that are learned have been given their first values: from now on the optimizer changes them.
 *
 *     graph @f(%x: f32[2], state %s: f32[2] trained role=quant) -> (%y, %s = %n) {
 *         %y: f32[2] = mul(%x, %s)
 *         %n: f32[2] = abs(%x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], state %s: f32[2] role=quant trained) -> (%y) {
 *         %y: f32[2] = mul(%x, %s)
 *         %n: f32[2] = abs(%x)
 *     }
 */
#include "passes/quant/observers.h"

static Status learn_scales(Graph *g, PassRun *run)
{
    return observers_keep(g, run, OBSERVERS_OF_RANGES);
}

const Pass pass_learn_scales = { .name = "learn-scales", .needs = TYPED, .may = MEANING, .run = learn_scales };
