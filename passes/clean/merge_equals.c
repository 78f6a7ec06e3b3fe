/* merge-equals: computes once what is computed twice.
 *
 *     graph @f(%x: f32[2], %y: f32[2]) -> (%z) {
 *         %a: f32[2] = add(%x, %y)
 *         %b: f32[2] = add(%y, %x)
 *         %z: f32[2] = mul(%a, %b)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], %y: f32[2]) -> (%z) {
 *         %a: f32[2] = add(%x, %y)
 *         %z: f32[2] = mul(%a, %a)
 *     }
 *
 * Calls that draw never merge, nor do params: each may be trained.  Marks are part of equality, but for who placed a
 * call: what stands for a call of the model is no longer ours. */
#include "passes/engine/equals.h"
#include "passes/engine/pass.h"

static Status merge_equals(Graph *g, PassRun *run)
{
    Equals equals;
    equals_open(&equals, run->scratch, false);
    for (Node *n = walk_first(g), *next; n; n = next) {
        Node *first = equals_find(&equals, n);
        next = walk_next(g, n);
        if (!first)
            continue;
        if (!(n->flags & NODE_OURS))
            first->flags &= ~NODE_OURS; /* it stands for what the model has, too */
        stand_in(n, first);
        node_remove(n);
        run->changes++;
    }
    return OK;
}

const Pass pass_merge_equals = { .name = "merge-equals", .may = EXACT, .run = merge_equals };
