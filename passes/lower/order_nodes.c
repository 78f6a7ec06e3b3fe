/* order-nodes: puts calls into the order that they run in: the parts of a step one after the other (ir/step_part.h).
 *
 *     graph @f(%x: f32[2]) -> (%dx, %loss) {
 *         const %axes: i64[1] = [0]
 *         %dx: f32[2] = exp(%x) side=backward
 *         %loss: f32[] = reduce_sum(%x, %axes, keepdims=false)
 *     }
 *     ==>
 *     graph @f(%x: f32[2]) -> (%dx, %loss) {
 *         const %axes: i64[1] = [0]
 *         %loss: f32[] = reduce_sum(%x, %axes, keepdims=false)
 *         %dx: f32[2] = exp(%x) side=backward
 *     }
 *
 * Within a part the order stays, which is that of who made the graph: what is made is read soon. */
#include "ir/step_part.h"
#include "passes/engine/pass.h"

static Status order_nodes(Graph *g, PassRun *run)
{
    Facts parts = step_parts(g, run->scratch);
    int latest = STEP_FORWARD;
    for (Node *n = g->first; n; n = n->next) {
        const int part = *(int *)fact(&parts, n);
        run->changes += part < latest;
        latest = part > latest ? part : latest;
    }
    for (int part = STEP_BACKWARD; part <= STEP_LATE && run->changes; part++) {
        Node *last = g->last;
        for (Node *n = g->first, *next; n; n = next) {
            next = n == last ? NULL : n->next;
            if (*(int *)fact(&parts, n) == part)
                node_move(n, NULL);
        }
    }
    return OK;
}

const Pass pass_order_nodes = { .name = "order-nodes", .needs = TYPED, .may = EXACT, .run = order_nodes };
