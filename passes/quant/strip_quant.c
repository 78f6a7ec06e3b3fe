/* strip-quant: takes out again what place-quant placed: who reads a number that a quantizer leaves behind reads the value
 * itself.
 *
 *     graph @f(%x: f32[2], %s: f32[]) -> (%y) {
 *         %q: i8[2] = quantize_linear(%x, %s, output_dtype=i8) ours
 *         %d: f32[2] = dequantize_linear(%q, %s) ours
 *         %y: f32[2] = tanh(%d)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], %s: f32[]) -> (%y) {
 *         %q: i8[2] = quantize_linear(%x, %s, output_dtype=i8) ours
 *         %d: f32[2] = dequantize_linear(%q, %s) ours
 *         %y: f32[2] = tanh(%x)
 *     }
 */
#include "passes/engine/results.h"
#include "passes/learned/learned.h"
#include "passes/quant/placement.h"

static Status strip_quant(Graph *g, PassRun *run)
{
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        Node *codes = in(n, 0);
        if (!(n->flags & NODE_OURS) || !op_of(n)->quant.dequantizes || !op_of(codes)->quant.quantizes ||
            !(codes->flags & NODE_OURS))
            continue;
        graph_replace(n, learned_from(in(codes, 0)));
        run->changes++;
    }
    return OK;
}

const Pass pass_strip_quant = { .name = "strip-quant", .needs = TYPED, .may = MEANING, .run = strip_quant };
