/* deploy-quant: quantizers say nothing any more that others do not know: gradients go, codes that are fewer than
 * those of their type are cut to them behind the quantizer, and those of weights that four bits hold are packed.
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
 *
 * Floats of 6 bits, of weights alone, become the same numbers in e4m3: files have no others.  Packed is what a target
 * reads packed.  ONNX Runtime has products of codes of 8 bits alone: a weight that meets codes in one of those stays as
 * it is; where scales change along the sum, or the data are floats, its products are of floats anyway. */
#include <string.h>

#include "ir/role.h"
#include "ops/quant/quantize.h"
#include "passes/deploy/gather_codes.h"
#include "passes/learned/learned.h"
#include "passes/quant/placement.h"

enum { BYTE = 8 };

static Node *code(Build *b, DType type, int64_t v)
{
    Tensor *t = tensor_new(b->graph->arena, type_scalar(&b->graph->ir->types, type));
    tensor_set_i64(t, 0, v);
    return build_const(b, t);
}

/* ---- four bits ---- */

/* Whether a number meets other codes in a product of codes, as engines make them: of one scale each. */
static bool meets_codes(const Node *number)
{
    if (((const DequantizeAttr *)number->attr)->block_size)
        return false;
    for (const Use *u = number->uses; u; u = u->next)
        for (int i = 0; op_of(u->user)->quant.integer && i < 2 && i < u->user->n_in; i++) {
            const Node *other = in(u->user, i);
            if (other && other != number && op_of(other)->quant.dequantizes &&
                !((const DequantizeAttr *)other->attr)->block_size)
                return true;
        }
    return false;
}

static bool packs(const Node *n, const Quantization *q, int64_t least, int64_t largest)
{
    const bool few = n->type->dtype == I8 ? least >= -8 && largest <= 7 && least < largest
                                          : n->type->dtype == U8 && least >= 0 && largest <= 15 && least < largest;
    if (!few || !q || !q->spec || !quant_weight_of(learned_from(in(n, 0))))
        return false;
    for (const Use *u = n->uses; u; u = u->next)
        if (node_is_return(u->user) || !op_of(u->user)->quant.dequantizes ||
            (quantization_target(q)->keeps_bytes && meets_codes(u->user)))
            return false;
    return true;
}

/* Whoever reads these codes reads them as another type that has them, under the name that they had. */
static Status retype_codes(Node *codes, Node *named, DType to)
{
    Build b = build_before(codes->next ? codes->next : codes);
    b.before = codes->next;
    b.src = codes->src;
    b.label = codes->label;
    b.flags = codes->flags;
    Node *packed = build_cast(&b, codes, to);
    TRY(b.status);
    packed->name = named->name;
    named->name = NULL;
    for (Use *u = codes->uses, *next; u; u = next) {
        Node *number = u->user;
        next = u->next;
        if (number == packed)
            continue;
        Build at = build_before(number);
        Node *zero = in(number, 2) ? build_cast(&at, in(number, 2), to) : NULL;
        TRY(at.status);
        node_set_in(number, 0, packed);
        if (zero)
            node_set_in(number, 2, zero);
        next = codes->uses;
        while (next && next->user == packed)
            next = next->next;
    }
    return OK;
}

/* Floats of 6 bits, which files have but as QONNX's operators say them: all of them are numbers of e4m3. */
static bool is_six_bits(DType codes, const QuantTarget *t)
{
    return (codes == F6E2M3 || codes == F6E3M2) && !(t && t->quants);
}

/* ---- codes ---- */

/* The codes between two of them, for whoever read those of the quantizer. */
static Status cut_codes(Node *n, int64_t least, int64_t largest, Node **to)
{
    Build b = build_before(n->next ? n->next : n);
    const DType type = n->type->dtype;
    b.before = n->next;
    b.src = n->src;
    b.label = n->label;
    b.flags = n->flags;
    Node *cut = CALL(&b, clip, n, code(&b, type, least), code(&b, type, largest));
    TRY(b.status);
    *to = cut;
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

/* Codes of as many bits as were learned are fewer than those that there might have been. */
static void take_learned_bits(QuantizeAttr *said, const Node *n, Arena *scratch)
{
    const Node *bits = said->learned && said->largest > 0 ? learned_bits_of(in(n, 1)) : NULL;
    if (!bits)
        return;
    const int64_t largest = ((int64_t)1 << (learned_bits_known(bits, BYTE, scratch) - 1)) - 1;
    said->largest = largest < said->largest ? largest : said->largest;
    said->least = -said->largest;
}

static Status deploy_codes(Node *n, PassRun *run)
{
    QuantizeAttr *at = attrs_copy(n->graph->arena, op_of(n)->attrs, n->attr);
    const QuantizeAttr *usual = attrs_default(n->graph->arena, op_of(n)->attrs);
    QuantizeAttr said = *at;
    const Recipe *recipe = run->options->recipe;
    Node *codes = n;
    at->mask = usual->mask;
    at->learned = usual->learned;
    at->gain = usual->gain;
    at->ends = usual->ends;
    at->learned_zero = usual->learned_zero;
    at->least = usual->least;
    at->largest = usual->largest;
    if (in(n, 2))
        at->output_dtype = usual->output_dtype;
    run->changes += !attrs_equal(op_of(n)->attrs, at, n->attr);
    n->attr = at;
    take_learned_bits(&said, n, run->scratch);
    const bool packed = packs(n, recipe ? &recipe->quantization : NULL, said.least, said.largest);
    if (said.least || said.largest)
        TRY(cut_codes(n, said.least, said.largest, &codes));
    if (is_six_bits(n->type->dtype, recipe ? quantization_target(&recipe->quantization) : NULL))
        return retype_codes(n, n, F8E4M3);
    return packed ? retype_codes(codes, n, n->type->dtype == I8 ? I4 : U4) : OK;
}

/* Whether a value is the codes of a weight that is stored, moved at most. */
static bool is_of_stored(const Node *n)
{
    while (op_moves(op_of(n)) && in(n, 0) && !n->n_regions)
        n = in(n, 0);
    return node_stored(n) != NULL && dtype_is_integer(n->type->dtype);
}

/* Rows of a table of codes, in a type that files look up. */
static Node *codes_of(Build *b, Node *codes)
{
    if (op_of(codes)->quant.in[0] != QUANT_GATHER || (codes->type->dtype != I4 && codes->type->dtype != U4))
        return codes;
    Node *table = codes_in_bytes(b, in(codes, 0));
    return table ? build_node(b, codes->op, codes->attr, 2, (Node *[]){ table, in(codes, 1) }) : NULL;
}

/* Codes as floats are codes with scale 1, which a file holds as codes. */
static Status deploy_stored(Node *n, PassRun *run)
{
    Build b = build_before(n);
    Node *codes = codes_of(&b, in(n, 0)), *one = build_scalar(&b, F32, 1);
    Node *number = codes && one ? CALL(&b, dequantize_linear, codes, one) : NULL;
    TRY(b.status);
    number->name = n->name;
    stand_in(n, number);
    run->changes++;
    return state_zero(number);
}

static Status deploy_quant(Graph *g, PassRun *run)
{
    for (Node *n = g->first; n; n = n->next) {
        if (n->op == OP_straight)
            stand_in(n, in(n, 0)), run->changes++;
        if (n->op == OP_cast && n->type->dtype == F32 && is_of_stored(in(n, 0)))
            TRY(deploy_stored(n, run));
        if (op_of(n)->quant.dequantizes || op_of(n)->quant.quantizes)
            TRY(state_zero(n));
        if (op_of(n)->quant.quantizes)
            TRY(deploy_codes(n, run));
    }
    return OK;
}

const Pass pass_deploy_quant = { .name = "deploy-quant", .needs = TYPED, .may = MEANING, .run = deploy_quant };
