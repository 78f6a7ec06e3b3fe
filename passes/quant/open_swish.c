/* open-swish: a Swish behind a convolution is its product with a Sigmoid, which ONNX Runtime has for codes.
 *
 *     # recipe: --quant w8a8
 *     graph @f(%x: f32[1,2,4,4], state %w: f32[2,2,1,1] trained) -> (%y) {
 *         %c: f32[1,2,4,4] = conv(%x, %w)
 *         %y: f32[1,2,4,4] = swish(%c)
 *     }
 *     ==>
 *     graph @f(%x: f32[1,2,4,4], state %w: f32[2,2,1,1] trained) -> (%y) {
 *         %c: f32[1,2,4,4] = conv(%x, %w)
 *         %y.gate: f32[1,2,4,4] = sigmoid(%c)
 *         %y: f32[1,2,4,4] = mul(%c, %y.gate)
 *     }
 *
 * A convolution on codes gives codes, so nothing is lost that was not lost before.  Behind a product that may give floats a
 * Swish stays one. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/words.h"
#include "passes/quant/placement.h"

static bool opens(const Node *n, const QuantTarget *t)
{
    return n->op == OP_swish && ((const AlphaAttr *)n->attr)->alpha == 1 && in(n, 0) && n->type->dtype == F32 &&
           op_of(in(n, 0))->quant.integer && quant_needs_codes_out(in(n, 0), t);
}

static Status open_swish(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    const QuantTarget *t = recipe && recipe->quantization.spec ? quantization_target(&recipe->quantization) : NULL;
    if (!t || !t->opens_swish)
        return OK;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!opens(n, t))
            continue;
        Build b = build_before(n);
        b.src = n->src;
        b.label = n->label;
        Node *gate = CALL(&b, sigmoid, in(n, 0)), *y = CALL(&b, mul, in(n, 0), gate);
        TRY(b.status);
        if (n->name) {
            const char *name = arena_printf(g->arena, "%s.gate", n->name);
            gate->name = name_of(&g->ir->names, name, strlen(name));
        }
        stand_in(n, y);
        node_remove(n);
        run->changes++;
    }
    return OK;
}

const Pass pass_open_swish = { .name = "open-swish", .needs = TYPED, .may = ROUNDS, .run = open_swish };
