/* require-integers: changes nothing; complains where something is computed of floats, but for quantizers of inputs and
 * dequantizers of results.
 *
 *     graph @f(%x: f32[2]) -> (%y) {
 *         const %s: f32[] = 0.125
 *         const %z: u8[] = 7
 *         %a: u8[2] = quantize_linear(%x, %s, %z)
 *         %y: f32[2] = dequantize_linear(%a, %s, %z)
 *     }
 *     ==>
 *     graph @f(%x: f32[2]) -> (%y) {
 *         const %s: f32[] = 0.125
 *         const %z: u8[] = 7
 *         %a: u8[2] = quantize_linear(%x, %s, %z)
 *         %y: f32[2] = dequantize_linear(%a, %s, %z)
 *     }
 */
#include "ops/card/words.h"
#include "passes/engine/pass.h"

static bool is_float(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && dtype_is_float(n->type->dtype);
}

/* What stands at an end: the quantizer of an input, the dequantizer of results. */
static bool is_end(const Node *n)
{
    if (op_of(n)->quant.quantizes)
        return node_is_input(in(n, 0));
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user))
            return false;
    return op_of(n)->quant.dequantizes;
}

static bool computes_floats(const Node *n)
{
    bool floats = is_float(n);
    for (int i = 0; i < n->n_in; i++)
        floats |= is_float(in(n, i));
    return floats && !node_is_input(n) && !node_is_return(n) && n->op != OP_const && n->op != OP_param && !is_end(n);
}

static bool is_pair(const Node *n)
{
    return op_of(n)->quant.quantizes || op_of(n)->quant.dequantizes;
}

/* Names what computes floats; the pairs around it alone where nothing stands between them. */
static Message *name(Graph *g, const char *who, bool pairs)
{
    Message *m = NULL;
    for (const Node *n = g->first; n; n = n->next) {
        if (!computes_floats(n) || is_pair(n) != pairs)
            continue;
        if (!m)
            m = message_new(g->ir->diag, SEVERITY_ERROR, UNSUPPORTED, NOWHERE,
                            "something is computed of floats, which %s do not have", who);
        message_at(m, "%s, %s of type %s", node_place(n).where, op_of(n)->name, type_text(g->ir->diag->arena, n->type));
    }
    return m;
}

static Status require_integers(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options ? run->options->recipe : NULL;
    const QuantTarget *t = recipe ? quantization_target(&recipe->quantization) : NULL;
    const char *who = t ? t->title : "integers";
    Message *m = name(g, who, false);
    m = m ? m : name(g, who, true);
    if (!m)
        return OK;
    message_try(m,
                "qcc --print-table quant --for integer-only, which says what has codes; end the model before the rest");
    message_try(m, "--for generic, which leaves it float");
    return message_send(m);
}

const Pass pass_require_integers = {
    .name = "require-integers", .needs = TYPED, .may = EXACT, .run = require_integers
};
