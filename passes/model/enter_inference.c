/* enter-inference: BatchNormalization and Dropout that a file has in training form do what they do when deployed.
 *
 *     graph @f(%x: f32[4,2], %s: f32[2], state %m: f32[2], state %v: f32[2]) -> (%z) {
 *         const %half: f32[] = 0.5
 *         const %yes: bool[] = true
 *         %t: (f32[4,2], f32[2], f32[2]) = batch_normalization(%x, %s, %s, %m, %v, training_mode=true)
 *         %y: f32[4,2] = part(%t, index=0)
 *         %z: f32[4,2] = dropout(%y, %half, %yes)
 *     }
 *     ==>
 *     graph @f(%x: f32[4,2], %s: f32[2], state %m: f32[2], state %v: f32[2]) -> (%z) {
 *         const %half: f32[] = 0.5
 *         const %yes: bool[] = true
 *         %y: f32[4,2] = batch_normalization(%x, %s, %s, %m, %v)
 *         %z: f32[4,2] = dropout(%y, %half)
 *     }
 */
#include "passes/model/modes.h"

static Status enter_inference(Graph *g, PassRun *run)
{
    return modes_infer(g, run, true, true);
}

const Pass pass_enter_inference = {
    .name = "enter-inference", .needs = TYPED | CHOSEN, .may = MEANING, .run = enter_inference
};
