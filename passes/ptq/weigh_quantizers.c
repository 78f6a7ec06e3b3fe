/* weigh-quantizers: what each quantizer changes counts with a factor of 1, which is trained and nothing else: its gradient
 * is the sum of what reaches a number times what the quantizer changed of it, the first-order change of the loss.
 *
 *     graph @f(%x: f32[2], state %s: f32[] trained) -> (%y) {
 *         %x.codes: i8[2] = quantize_linear(%x, %s, output_dtype=i8) ours
 *         %d: f32[2] = dequantize_linear(%x.codes, %s) ours
 *         %y: f32[2] = tanh(%d)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], state %s: f32[], state %"qcc.weigh/x": f32[] = 1 role=weight trained) -> (%y) {
 *         %x.codes: i8[2] = quantize_linear(%x, %s, output_dtype=i8) ours
 *         %d: f32[2] = dequantize_linear(%x.codes, %s) ours
 *         %0: f32[2] = sub(%d, %x) ours
 *         %1: f32[2] = mul(%0, %"qcc.weigh/x") ours
 *         %2: f32[2] = add(%x, %1) ours
 *         %y: f32[2] = tanh(%2)
 *     }
 */
#include <string.h>

#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/ptq/weigh.h"

/* "relu1" of "relu1.codes"; null: it has no such name, as a bias, whose bits nobody chooses. */
static const char *value_name(const Node *codes, Arena *arena)
{
    static const char tail[] = ".codes";
    const size_t n = sizeof tail - 1, length = codes->name ? strlen(codes->name) : 0;
    return length > n && strcmp(codes->name + length - n, tail) == 0 ? arena_copy(arena, codes->name, length - n)
                                                                     : NULL;
}

static Node *factor_of(Graph *g, const char *name)
{
    const Type *scalar = type_scalar(&g->ir->types, F32);
    Node *have = input_named(g, name_with(g, WEIGH_PREFIX, name));
    if (have)
        return have;
    const Tensor *one = tensor_scalar(g->arena, &g->ir->types, F32, 1);
    Node *t =
        graph_state(g, name_with(g, WEIGH_PREFIX, name), scalar, &(StateAttr){ .value = payload_of(g->arena, one) });
    t->flags |= NODE_TRAINED;
    return t;
}

static Status weigh(Graph *g, PassRun *run, Node *number)
{
    const Node *codes = in(number, 0);
    const char *name = value_name(codes, run->scratch);
    if (!name || number->type->dtype != F32 || in(codes, 0)->type->dtype != F32)
        return OK;
    Build b = build_before(number->next);
    b.flags = NODE_OURS;
    Node *change = CALL(&b, sub, number, in(codes, 0)), *part = CALL(&b, mul, change, factor_of(g, name));
    Node *counted = CALL(&b, add, in(codes, 0), part);
    TRY(b.status);
    for (Use *u = number->uses, *next; u; u = next) {
        next = u->next;
        if (u->user != change)
            node_set_in(u->user, (int)(u - u->user->in), counted);
    }
    run->changes++;
    return OK;
}

static Status weigh_quantizers(Graph *g, PassRun *run)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        g->inputs[i]->flags &= (uint16_t)~NODE_TRAINED;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        const Node *codes = in(n, 0);
        if (n->flags & NODE_OURS && n->uses && next && op_of(n)->quant.dequantizes && op_of(codes)->quant.quantizes &&
            codes->flags & NODE_OURS)
            TRY(weigh(g, run, n));
    }
    return OK;
}

const Pass pass_weigh_quantizers = {
    .name = "weigh-quantizers", .needs = TYPED, .may = MEANING, .rebinds = true, .run = weigh_quantizers
};
