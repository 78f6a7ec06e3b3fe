/* params-to-const: nothing will be trained: every param is a constant.
 *
 *     graph @f() -> (%y) {
 *         param %w: f32[2] = [1, 2]
 *         %y: f32[2] = exp(%w)
 *     }
 *     ==>
 *     graph @f() -> (%y) {
 *         const %w: f32[2] = [1, 2]
 *         %y: f32[2] = exp(%w)
 *     }
 *
 * A param without a value stays one: somebody has still to give it. */
#include "passes/engine/pass.h"

static Status params_to_const(Graph *g, PassRun *run)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (n->op != OP_param || !node_payload(n))
            continue;
        n->op = OP_const;
        n->flags &= (uint16_t)~NODE_SAID;
        if (!n->src)
            n->label = NULL;
        run->changes++;
    }
    return OK;
}

const Pass pass_params_to_const = { .name = "params-to-const", .may = EXACT, .run = params_to_const };
