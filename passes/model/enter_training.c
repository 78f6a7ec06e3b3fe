/* enter-training: BatchNormalization and Dropout do what they do in training.
 *
 *     graph @f(%x: f32[4,2], %s: f32[2], state %m: f32[2], state %v: f32[2]) -> (%z) {
 *         const %half: f32[] = 0.5
 *         %y: f32[4,2] = batch_normalization(%x, %s, %s, %m, %v)
 *         %z: f32[4,2] = dropout(%y, %half)
 *     }
 *     ==>
 *     graph @f(%x: f32[4,2], %s: f32[2], state %m: f32[2], state %v: f32[2]) -> (%z, %m = %1, %v = %2) {
 *         const %half: f32[] = 0.5
 *         %0: (f32[4,2], f32[2], f32[2], f32[2], f32[2]) = batch_normalization(%x, %s, %s, %m, %v, training_mode=true)
 *         %y: f32[4,2] = part(%0, index=0)
 *         %1: f32[2] = part(%0, index=1)
 *         %2: f32[2] = part(%0, index=2)
 *         const %3: bool[] = true
 *         %z: f32[4,2] = dropout(%y, %half, %3)
 *     }
 *
 * The next running statistics leave the graph as results with the names of their states; the batch's own mean and
 * 1 / deviation, the last two results, are for the way back.  A norm whose statistics are no state of its own stays as it
 * is; what an input of the graph decides (training_mode) is left to it.  With frozen norms and without dropout the pass
 * brings calls that a file has in training form to inference. */
#include "passes/model/modes.h"

static Status enter_training(Graph *g, PassRun *run)
{
    const Recipe *r = run->options->recipe;
    const bool norms = !(r && r->frozen_norms), dropouts = !(r && r->no_dropout);
    TRY(modes_infer(g, run, !norms, !dropouts));
    return modes_train(g, run, norms, dropouts);
}

const Pass pass_enter_training = {
    .name = "enter-training", .needs = TYPED | CHOSEN, .may = MEANING, .run = enter_training
};
