/* take-integers: calls between dequantizers and a quantizer compute on codes.
 *
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %s: f32[], %t: f32[], %u: f32[], %z: u8[]) -> (%y) {
 *         %a: f32[2,4] = dequantize_linear(%x, %s, %z)
 *         %b: f32[4,3] = dequantize_linear(%w, %t)
 *         %c: f32[2,3] = matmul(%a, %b)
 *         %y: u8[2,3] = quantize_linear(%c, %u, %z)
 *     }
 *     ==>
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %s: f32[], %t: f32[], %u: f32[], %z: u8[]) -> (%y) {
 *         const %0: i8[] = 0
 *         %y: u8[2,3] = qmatmul(%x, %s, %z, %w, %t, %0, %u, %z)
 *     }
 *
 * Relus in between go with them, and Clips from 0 on whose upper bound is where the codes end; what moves numbers whose
 * scale stays moves their codes.  Who else reads the float result (observers do) reads what
 * the integers say of it. */
#include <math.h>
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/card/words.h"
#include "ops/quant/integer.h"
#include "passes/learned/learned.h"
#include "passes/quant/grain.h"
#include "passes/quant/integers.h"
#include "passes/quant/table.h"

enum { MOST_OPERANDS = 16 };

/* One group: the call, the last float value, and who quantizes that. */
typedef struct Group {
    Node *call, *last, *quantizer; /* quantizer: null: the result stays float */
    const OpDef *word;
    bool lifted; /* nothing below 0 leaves */
    double most; /* nothing above; infinite: anything may */
    CodesFactor factor;
} Group;

static bool dequantizes(const Node *n)
{
    return n && op_of(n)->quant.dequantizes && n->type->dtype == F32;
}

static bool is_small(DType d)
{
    return d == U8 || d == I8;
}

/* Weights may be packed. */
static bool is_packed(DType d)
{
    return d == U4 || d == I4 || d == U2 || d == I2;
}

/* Codes of a byte as they are, packed ones in bytes. */
static Node *in_bytes(Build *b, Node *codes)
{
    const DType d = codes->type->dtype;
    return is_packed(d) ? build_cast(b, codes, d == U4 || d == U2 ? U8 : I8) : codes;
}

/* One scale for all, or one a channel where the word has them. */
static bool has_scales(const Node *call, int i, const Node *number)
{
    const Type *scale = in(number, 1)->type;
    if (scale->dtype != F32 || !type_known(scale) || ((const DequantizeAttr *)number->attr)->block_size)
        return false;
    if (type_elements(scale) == 1)
        return true;
    const int axis = quant_weight_axis(call, i);
    return axis != QUANT_WHOLE && axis_wrap(((const DequantizeAttr *)number->attr)->axis, number->type->rank) == axis;
}

/* ---- rows of data beside ternary weights ---- */

/* What is stored, of integers; null: it is none, or it cannot be read. */
static const Tensor *stored_codes(const Node *n, Arena *scratch)
{
    if ((n->op != OP_const && n->op != OP_param) || dtype_class(n->type->dtype) != CLASS_INT || !type_known(n->type))
        return NULL;
    if (n->op == OP_const)
        return node_constant(n, SIZE_MAX);
    Tensor *t = tensor_new(scratch, n->type);
    return payload_read(node_payload(n), t, n->graph->ir->diag) == OK ? t : NULL;
}

/* Whether no code of a weight is but -1, 0 and 1. */
static bool is_ternary(const Node *number, Arena *scratch)
{
    const Node *codes = in(number, 0);
    if (op_of(codes)->quant.quantizes) {
        const QuantizeAttr *at = codes->attr;
        return at->least == -1 && at->largest == 1 && quant_weight_of(learned_from(in(codes, 0)));
    }
    const Tensor *t = stored_codes(codes, scratch);
    bool few = t != NULL;
    for (int64_t i = 0; few && i < tensor_elements(t); i++)
        few = fabs(tensor_get_f64(t, i)) <= 1;
    return few;
}

/* Whether a scale is one for each row that a call adds up. */
static bool has_rows(const Node *call, int i, const Node *number)
{
    const DequantizeAttr *at = number->attr;
    const Type *t = number->type, *scale = in(number, 1)->type;
    const int axis = quant_sum_axis(call, i);
    return axis != QUANT_WHOLE && type_known(t) && scale->dtype == F32 && type_known(scale) && scale->rank == t->rank &&
           axis_wrap(at->axis, t->rank) == axis && at->block_size >= t->dims[axis] && scale->dims[axis] == 1;
}

/* What is added to rows that are summed as codes: codes of 32 bits, or numbers, one for all or one a column. */
static bool is_addend(const Node *n, const Node *bias)
{
    const Type *y = n->type, *t = bias->type;
    return !dequantizes(bias) && t->dtype == F32 && type_known(t) && type_known(y) && y->rank &&
           (type_elements(t) == 1 || (t->rank == 1 && t->dims[0] == y->dims[y->rank - 1]));
}

/* A product of rows of codes and a ternary weight, of which a channel has one scale. */
static bool rows_fit(const Node *n, Arena *scratch)
{
    const Node *weight = NULL;
    int rows = 0;
    for (int i = 0; i < n->n_in; i++) {
        const Node *number = in(n, i);
        if (!number)
            continue;
        if (quant_role(&op_of(n)->quant, i) == QUANT_BIAS) {
            if (!is_addend(n, number))
                return false;
            continue;
        }
        if (!dequantizes(number))
            return false;
        const DType d = in(number, 0)->type->dtype;
        if (has_scales(n, i, number) && (is_small(d) || is_packed(d)))
            weight = number;
        rows += is_small(d) && has_rows(n, i, number);
    }
    return rows == 1 && weight && is_ternary(weight, scratch);
}

/* A bias that stays float, one number for all or one a channel, where sums of codes become numbers. */
static bool is_float_bias(const Node *bias)
{
    const Type *t = bias->type;
    return !dequantizes(bias) && t->dtype == F32 && type_known(t) && (type_elements(t) == 1 || t->rank == 1);
}

static bool operands_fit(const Node *n, bool numbers, Arena *scratch)
{
    if (rows_fit(n, scratch))
        return true;
    for (int i = 0; i < n->n_in; i++) {
        const QuantRole role = quant_role(&op_of(n)->quant, i);
        const Node *number = in(n, i);
        if (!number || (numbers && role == QUANT_BIAS && is_float_bias(number)))
            continue;
        if (!dequantizes(number) ||
            (role == QUANT_BIAS ? in(number, 0)->type->dtype != I32
                                : !(is_small(in(number, 0)->type->dtype) ||
                                    (is_packed(in(number, 0)->type->dtype) && quant_weight_of(in(number, 0)))) ||
                                      !has_scales(n, i, number)))
            return false;
    }
    return true;
}

/* ---- the way to the quantizer ---- */

/* Takes a relu, or a clip from 0 on, into the group. */
static bool absorb(Group *g, Node *n)
{
    const double most = n->op == OP_relu ? (double)INFINITY : quant_clip_from_0(n);
    if (n->type->dtype != F32 || most != most)
        return false;
    g->lifted = true;
    g->most = fmin(g->most, most);
    g->last = n;
    return true;
}

/* What a scale never exceeds, as its nodes prove; infinite: nothing is proved. */
static double bound_of_scale(const Node *scale)
{
    const Tensor *said = node_constant(scale, 64);
    double first, last;
    if (said)
        return tensor_get_f64(said, 0);
    if (scale->op == OP_min && scale->n_in == 2)
        return fmin(bound_of_scale(in(scale, 0)), bound_of_scale(in(scale, 1)));
    const Node *range = scale->op == OP_part ? in(scale, 0) : NULL;
    if (!range || range->op != OP_range_scale || !((const RangeScaleAttr *)range->attr)->most)
        return (double)INFINITY;
    const RangeScaleAttr *at = range->attr;
    code_limits(at->to ? (DType)(at->to - 1) : U8, at->least, at->largest, &first, &last);
    return (double)at->most / (at->symmetric ? last : last - first);
}

/* Whether whatever is above the bound of a clip has the largest code: then saturation is that bound. */
static bool codes_end_at(const Node *quantizer, double most)
{
    const QuantizeAttr *at = quantizer->attr;
    const Node *zero = in(quantizer, 2);
    const Tensor *said = zero ? node_constant(zero, 64) : NULL;
    double least, largest;
    if (!isfinite(most))
        return true;
    code_limits(quantizer->type->dtype, at->least, at->largest, &least, &largest);
    const double n_codes = largest - (!zero  ? 0
                                      : said ? tensor_get_f64(said, 0)
                                             : least),
                 scale = bound_of_scale(in(quantizer, 1));
    return at->mask != MASK_NONE && scale > 0 && isfinite(scale) && rint((double)((f32)most / (f32)scale)) >= n_codes;
}

static bool is_ours(const Node *reader)
{
    return reader->flags & NODE_OURS && !(reader->flags & NODE_BACKWARD);
}

/* The readers of a value that belong to the model: at most one, and not the end of the graph; null otherwise. */
static Node *only_reader(const Node *n, bool *more)
{
    Node *one = NULL;
    *more = false;
    for (const Use *u = n->uses; u; u = u->next) {
        if (is_ours(u->user) && !op_of(u->user)->quant.quantizes)
            continue;
        *more |= node_is_return(u->user) || (one && one != u->user);
        one = u->user;
    }
    return one;
}

static bool is_stored(const Node *n)
{
    return n->op == OP_const || n->op == OP_param;
}

/* Whether a scale is there before what it quantizes: it is not computed from that. */
static bool stands_before(const Node *scale, const Group *g)
{
    for (const Node *n = g->call; scale && n && n != g->quantizer; n = n->next)
        if (n == scale)
            return is_stored(n);
    return true;
}

/* What is stored may stand anywhere, and stands before the call now: of a file it may be said later. */
static void say_before(const Group *g)
{
    for (Node *n = g->call, *next; n && n != g->quantizer; n = next) {
        next = n->next;
        if (is_stored(n) && (n == in(g->quantizer, 1) || n == in(g->quantizer, 2)))
            node_move(n, g->call);
    }
}

/* Whether a quantizer divides in f32 and rounds to the nearest code, ties to even, as the words do. */
static bool rounds_usually(const Node *quantizer)
{
    const QuantizeAttr *at = quantizer->attr;
    return at->rounding == ROUND_RNE && !at->precision;
}

static bool find_group(Group *g, Node *call, const QuantTarget *t, Arena *scratch)
{
    bool more;
    const OpWord word = op_of(call)->quant.integer;
    const bool numbers = t->float_products && quant_multiplies(op_of(call));
    *g = (Group){ .call = call, .last = call, .most = (double)INFINITY };
    if (!word || !quant_joins_for(op_of(call), t) || (op_of(call)->quant.serves && !op_of(call)->quant.serves(call)) ||
        !operands_fit(call, numbers, scratch))
        return false;
    g->word = call->graph->ir->ops->defs[word];
    if (numbers)
        return !quant_needs_codes_out(call, t);
    Node *reader = only_reader(call, &more);
    while (reader && !more && absorb(g, reader))
        reader = only_reader(reader, &more);
    const bool closed = reader && !more && op_of(reader)->quant.quantizes && in(reader, 0) == g->last &&
                        rounds_usually(reader) && is_small(reader->type->dtype) &&
                        type_elements(in(reader, 1)->type) == 1 && codes_end_at(reader, g->most);
    g->quantizer = closed ? reader : NULL;
    if (!closed || !stands_before(in(reader, 1), g) || !stands_before(in(reader, 2), g))
        *g = (Group){ .call = call, .last = call, .word = g->word, .most = (double)INFINITY };
    return g->quantizer || !quant_needs_codes_out(call, t);
}

/* ---- the word ---- */

/* What attributes of the float call are called by the word. */
static const char *renamed(const char *name)
{
    static const char *const names[][2] = {
        { "transA", "transpose_a" }, { "transB", "transpose_b" }, { "ta", "transpose_a" }, { "tb", "transpose_b" }
    };
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return name;
}

static void copy_attrs(const Node *from, const AttrSpec *to, void *attr)
{
    for (const AttrSpec *a = op_of(from)->attrs; a && a->kind != ATTR_END; a++) {
        const AttrSpec *b = attr_find(to, str(renamed(a->name)));
        if (b && b->kind == a->kind)
            attr_copy_as(b, attr, a, from->attr);
    }
}

/* The zero point of a number: that of its dequantizer, or 0. */
static Node *zero_of(Build *b, const Node *codes, Node *zero)
{
    return zero ? zero : build_scalar(b, codes->type->dtype, 0);
}

static int add_codes(Build *b, Node **ins, int n, const Node *number)
{
    Node *zero = zero_of(b, in(number, 0), in(number, 2));
    ins[n++] = in_bytes(b, in(number, 0));
    ins[n++] = in(number, 1);
    ins[n++] = in_bytes(b, zero);
    return n;
}

/* Operands of the word: codes, scale and zero point of each operand of the call, those of the result, the bias. */
static int operands_of(Build *b, const Group *g, Node **ins)
{
    int n = 0, scaled = 0;
    Node *bias = NULL;
    for (int i = 0; i < g->call->n_in && n + 6 < MOST_OPERANDS; i++) {
        Node *number = in(g->call, i);
        if (number && quant_role(&op_of(g->call)->quant, i) == QUANT_BIAS)
            bias = dequantizes(number) ? in(number, 0) : number;
        else if (number)
            n = add_codes(b, ins, n, number), scaled++;
    }
    if (g->quantizer) {
        ins[n++] = in(g->quantizer, 1);
        ins[n++] = zero_of(b, g->quantizer, in(g->quantizer, 2));
    } else if (bias) {
        ins[n++] = NULL;
        ins[n++] = NULL;
    }
    if (bias)
        ins[n++] = bias;
    return n;
}

static bool set_bool(const AttrSpec *specs, void *attr, const char *name, bool v)
{
    const AttrSpec *a = attr_find(specs, str(name));
    if (a)
        *(bool *)attr_at(a, attr) = v;
    return a != NULL;
}

/* Who reads the float value beside its quantizer: what observes it. */
static Node *other_reader(const Group *g)
{
    for (const Use *u = g->last->uses; u; u = u->next)
        if (u->user != g->quantizer)
            return u->user;
    return NULL;
}

/* What observers read from now on: the quotient times the scale, within the bounds of what was absorbed. */
static void show_observers(Build *b, const Group *g, Node *word)
{
    Node *quotient = build_part(b, word, 1);
    Node *value = CALL(b, mul, g->lifted ? CALL(b, relu, quotient) : quotient, in(g->quantizer, 1));
    if (isfinite(g->most))
        value = CALL(b, min, value, build_scalar(b, F32, g->most));
    for (Node *reader = b->status == OK ? other_reader(g) : NULL; reader; reader = other_reader(g))
        for (int i = 0; i < reader->n_in; i++)
            if (in(reader, i) == g->last)
                node_set_in(reader, i, value);
}

/* How an engine makes codes of sums. */
static void set_factor(const AttrSpec *specs, void *attr, CodesFactor factor)
{
    const AttrSpec *a = attr_find(specs, str("factor"));
    if (a)
        *(int *)attr_at(a, attr) = factor;
}

static Status take(const Group *g, PassRun *run, bool trains)
{
    if (g->quantizer)
        say_before(g);
    Build b = build_before(g->call);
    b.before = g->last->next; /* before who observes it */
    Node *ins[MOST_OPERANDS] = { NULL };
    void *attr = attrs_default(g->call->graph->arena, g->word->attrs);
    const Op op = op_of(g->call)->quant.integer;
    b.src = g->call->src;
    b.label = g->call->label;
    copy_attrs(g->call, g->word->attrs, attr);
    if (g->quantizer) {
        copy_attrs(g->quantizer, g->word->attrs, attr);
        set_bool(g->word->attrs, attr, "relu", g->lifted);
        set_factor(g->word->attrs, attr, g->factor);
    }
    const int n = operands_of(&b, g, ins);
    const bool observed = g->quantizer && other_reader(g), tells = g->quantizer && (observed || trains);
    Node *word = build_node_n(&b, op, attr, n, ins, tells ? 2 : 1);
    TRY(b.status);
    if (observed)
        show_observers(&b, g, word);
    Node *result = tells ? build_part(&b, word, 0) : word;
    TRY(b.status);
    stand_in(g->quantizer ? g->quantizer : g->call, result);
    remove_unread(g->quantizer ? g->quantizer : g->call, run->scratch, NULL, NULL);
    run->changes++;
    return OK;
}

Status quant_take_integers(Graph *graph, PassRun *run, bool trains)
{
    Node **calls = NEWS(run->scratch, Node *, graph_count(graph) + 1);
    const Recipe *recipe = run->options ? run->options->recipe : NULL;
    const QuantTarget *t = recipe ? quantization_target(&recipe->quantization) : NULL;
    size_t n = 0;
    t = t ? t : quant_target("ort"); /* a file that names nobody */
    TRY(quant_move_codes(graph, run));
    for (Node *k = graph->first; k; k = k->next)
        if (!(k->flags & NODE_BACKWARD) && k->type->kind == TYPE_TENSOR && k->type->dtype == F32 &&
            op_of(k)->quant.integer)
            calls[n++] = k;
    for (size_t i = 0; i < n; i++) {
        Group g;
        if (!find_group(&g, calls[i], t, run->scratch))
            continue;
        g.factor = t->requant == REQUANT_Q31 ? FACTOR_Q31 : FACTOR_F32;
        TRY(take(&g, run, trains));
    }
    return OK;
}

static Status take_integers(Graph *graph, PassRun *run)
{
    return quant_take_integers(graph, run, false);
}

const Pass pass_take_integers = { .name = "take-integers", .needs = TYPED, .may = MEANING, .run = take_integers };
