/* raise-seen-attention: what raise-attention does, where no query can be left without a key, or zero was wanted then.
 *
 *     graph @f(%q: f32[2,3,5,4], %k: f32[2,3,5,4], %v: f32[2,3,5,4], %mask: f32[5,5]) -> (%y, %z) {
 *         %t: f32[2,3,4,5] = transpose(%k, perm=[0, 1, 3, 2])
 *         %s: f32[2,3,5,5] = matmul(%q, %t)
 *         %p: f32[2,3,5,5] = softmax(%s)
 *         %y: f32[2,3,5,4] = matmul(%p, %v)
 *         %r: f32[2,3,5,5] = matmul(%v, %t)
 *         %m: f32[2,3,5,5] = add(%r, %mask)
 *         %o: f32[2,3,5,5] = softmax(%m)
 *         %z: f32[2,3,5,4] = matmul(%o, %v)
 *     }
 *     ==>
 *     graph @f(%q: f32[2,3,5,4], %k: f32[2,3,5,4], %v: f32[2,3,5,4], %mask: f32[5,5]) -> (%y, %z) {
 *         %t: f32[2,3,4,5] = transpose(%k, perm=[0, 1, 3, 2])
 *         %y: f32[2,3,5,4] = attention(%q, %k, %v, scale=1)
 *         %r: f32[2,3,5,5] = matmul(%v, %t)
 *         %m: f32[2,3,5,5] = add(%r, %mask)
 *         %o: f32[2,3,5,5] = softmax(%m)
 *         %z: f32[2,3,5,4] = matmul(%o, %v)
 *     }
 *
 * A mask that only a run knows may forbid every key, and then a softmax gives NaN.  Elsewhere all that is finite keeps every
 * bit, so that a graph may be run as this one in place of what it says. */
#include "passes/clean/raise_attention.h"

static Status raise_seen_attention(Graph *g, PassRun *run)
{
    return raise_attentions(g, run, true);
}

const Pass pass_raise_seen_attention = {
    .name = "raise-seen-attention", .needs = TYPED, .may = ROUNDS, .run = raise_seen_attention
};
