/* deploy-quant: quantizers say nothing any more that others do not know: gradients go, and codes that are fewer than those of
 * their type are cut to them behind the quantizer.
 *
 *     graph @f(%x: f32[2], %s: f32[]) -> (%q) {
 *         %q: i8[2] = quantize_linear(%x, %s, output_dtype=i8, least=-7, largest=7, mask=pass)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], %s: f32[]) -> (%q = %3) {
 *         const %0: i8[] = 0
 *         %q: i8[2] = quantize_linear(%x, %s, %0)
 *         const %1: i8[] = -7
 *         const %2: i8[] = 7
 *         %3: i8[2] = clip(%q, %1, %2)
 *     }
 */
#include "ops/quant/quantize.h"
#include "passes/engine/pass.h"

static Node *code(Build *b, DType type, int64_t v)
{
    Tensor *t = tensor_new(b->graph->arena, type_scalar(&b->graph->ir->types, type));
    tensor_set_i64(t, 0, v);
    return build_const(b, t);
}

/* The codes between two of them, for whoever read those of the quantizer. */
static Status cut_codes(Node *n, int64_t least, int64_t largest)
{
    Build b = build_before(n->next ? n->next : n);
    const DType type = n->type->dtype;
    b.before = n->next;
    b.src = n->src;
    b.label = n->label;
    b.flags = n->flags;
    Node *cut = CALL(&b, clip, n, code(&b, type, least), code(&b, type, largest));
    TRY(b.status);
    for (Use *u = n->uses, *next; u; u = next) {
        Node *reader = u->user;
        next = u->next;
        if (reader == cut)
            continue;
        for (int i = 0; i < reader->n_in; i++)
            if (in(reader, i) == n)
                node_set_in(reader, i, cut);
        next = n->uses;
        while (next && next->user == cut)
            next = next->next;
    }
    return OK;
}

/* A zero point says which codes are meant, in files of any version: that of 0. */
static Status state_zero(Node *n)
{
    const DType type = op_of(n)->quant.quantizes ? n->type->dtype : in(n, 0)->type->dtype;
    const Type *scale = in(n, 1)->type;
    Build b = build_before(n);
    if (in(n, 2) || type == I32 || !type_known(scale))
        return OK;
    Tensor *zeros = tensor_new(n->graph->arena, type_with_dtype(&n->graph->ir->types, scale, type));
    for (int64_t i = 0; i < tensor_elements(zeros); i++)
        tensor_set_i64(zeros, i, 0);
    Node *ins[] = { in(n, 0), in(n, 1), build_const(&b, zeros) };
    TRY(b.status);
    node_set_ins(n, COUNT(ins), ins);
    return OK;
}

static Status deploy_quant(Graph *g, PassRun *run)
{
    for (Node *n = g->first; n; n = n->next) {
        if (op_of(n)->quant.dequantizes || op_of(n)->quant.quantizes)
            TRY(state_zero(n));
        if (!op_of(n)->quant.quantizes)
            continue;
        QuantizeAttr *at = attrs_copy(g->arena, op_of(n)->attrs, n->attr);
        const QuantizeAttr *usual = attrs_default(g->arena, op_of(n)->attrs), said = *at;
        at->mask = usual->mask;
        at->learned = usual->learned;
        at->gain = usual->gain;
        at->least = usual->least;
        at->largest = usual->largest;
        if (in(n, 2))
            at->output_dtype = usual->output_dtype;
        run->changes += !attrs_equal(op_of(n)->attrs, at, n->attr);
        n->attr = at;
        if (said.least || said.largest)
            TRY(cut_codes(n, said.least, said.largest));
    }
    return OK;
}

const Pass pass_deploy_quant = { .name = "deploy-quant", .needs = TYPED, .may = MEANING, .run = deploy_quant };
