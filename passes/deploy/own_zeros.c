/* own-zeros: stored weights do not share their zero points.  Where session.x64quantprecision is asked for, ONNX Runtime turns
 * signed weights into unsigned ones, and does not load a file in which two of them name the same.
 *
 *     graph @f(%x: f32[2,2]) -> (%z) {
 *         const %v: i8[2,2] = [1, 2, 3, 4]
 *         const %w: i8[2,2] = [5, 6, 7, 8]
 *         const %s: f32[2] = [0.5, 0.25]
 *         const %zero: i8[2] = [0, 0]
 *         %a: f32[2,2] = dequantize_linear(%v, %s, %zero)
 *         %b: f32[2,2] = dequantize_linear(%w, %s, %zero)
 *         %y: f32[2,2] = matmul(%x, %a)
 *         %z: f32[2,2] = matmul(%y, %b)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,2]) -> (%z) {
 *         const %v: i8[2,2] = [1, 2, 3, 4]
 *         const %w: i8[2,2] = [5, 6, 7, 8]
 *         const %s: f32[2] = [0.5, 0.25]
 *         const %zero: i8[2] = [0, 0]
 *         const %0: i8[2] = [0, 0]
 *         %a: f32[2,2] = dequantize_linear(%v, %s, %0)
 *         %b: f32[2,2] = dequantize_linear(%w, %s, %zero)
 *         %y: f32[2,2] = matmul(%x, %a)
 *         %z: f32[2,2] = matmul(%y, %b)
 *     }
 */
#include "ops/card/cards.h"
#include "passes/engine/pass.h"

static Status own_zeros(Graph *g, PassRun *run)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        Node *zero = op_of(n)->quant.dequantizes ? in(n, 2) : NULL, *codes = in(n, 0);
        const Tensor *value = zero ? node_constant(zero, INT64_MAX) : NULL;
        if (!value || zero->op != OP_const || (codes->op != OP_const && codes->op != OP_param) ||
            codes->type->dtype != I8 || !zero->uses->next)
            continue;
        Build b = build_before(n);
        Node *own = build_const(&b, value); /* a payload of its own, or it would be written as the same again */
        TRY(b.status);
        node_set_in(n, 2, own);
        run->changes++;
    }
    return OK;
}

const Pass pass_own_zeros = { .name = "own-zeros", .needs = TYPED, .may = EXACT, .run = own_zeros };
