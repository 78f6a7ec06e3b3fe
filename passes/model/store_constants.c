/* store-constants: constants that are no single number are kept beside the nodes of a file, as the weights they were.
 *
 *     graph @f(%x: f32[2]) -> (%y) {
 *         const %w: f32[2] = [1, 2]
 *         const %c: f32[] = 3
 *         %p: f32[2] = mul(%x, %w)
 *         %y: f32[2] = add(%p, %c)
 *     }
 *     ==>
 *     graph @f(%x: f32[2]) -> (%y) {
 *         param %w: f32[2] = [1, 2]
 *         const %c: f32[] = 3
 *         %p: f32[2] = mul(%x, %w)
 *         %y: f32[2] = add(%p, %c)
 *     }
 */
#include "passes/engine/pass.h"

static Status store_constants(Graph *g, PassRun *run)
{
    for (Node *n = g->first; n; n = n->next) {
        if (n->op != OP_const || n->type->kind != TYPE_TENSOR || type_elements(n->type) < 2 ||
            n->type->dtype == STRING || n->type->dtype == I64)
            continue;
        n->op = OP_param;
        n->flags = 0;
        n->src = 0; /* no node of the model states it */
        n->label = NULL;
        run->changes++;
    }
    return OK;
}

const Pass pass_store_constants = { .name = "store-constants", .needs = TYPED, .may = EXACT, .run = store_constants };
