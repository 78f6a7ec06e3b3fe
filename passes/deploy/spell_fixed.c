/* spell-fixed: words on codes in fixed point become operators of integers that ONNX has: sums of products in 32 bits,
 * multipliers of 31 bits and shifts in 64, functions of a code as tables.  Sums that are numbers are those of codes of 32
 * bits, which a dequantizer reads at the end.
 *
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %r: i32[3]) -> (%y) {
 *         const %s: f32[] = 0.25
 *         const %z: u8[] = 3
 *         const %i: i8[] = 0
 *         %y: f32[2,3] = qmatmul(%x, %s, %z, %w, %s, %i, _, _, %r)
 *     }
 *     ==>
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %r: i32[3]) -> (%y) {
 *         const %z: u8[] = 3
 *         %0: i32[2,3] = matmul_integer(%x, %w, %z)
 *         %1: i32[2,3] = add(%0, %r)
 *         const %2: f32[] = 0.0625
 *         %y: f32[2,3] = dequantize_linear(%1, %2)
 *     }
 */
#include "ops/card/make.h"
#include "ops/quant/words.h"
#include "passes/deploy/fixed.h"
#include "passes/deploy/spell.h"

/* What is known of scales and zero points where it is deployed; null: not that. */
static const Tensor *known(const Node *n)
{
    return n ? node_constant(n, SIZE_MAX) : NULL;
}

static bool is_one(const Node *n)
{
    return known(n) && tensor_elements(known(n)) == 1;
}

static f32 number(const Node *n)
{
    return (f32)tensor_get_f64(known(n), 0);
}

/* Codes of 64 bits, without their zero point. */
static Node *centred(Build *b, Node *codes, const Node *zero)
{
    Node *wide = build_cast(b, codes, I64);
    const int64_t z = tensor_get_i64(known(zero), 0);
    return z ? CALL(b, add, wide, fixed_constant(b, -z)) : wide;
}

/* Codes of what was multiplied: with their zero point, within their range. */
static Node *codes_of(Build *b, Node *v, const Node *zero, const CodesAttr *at)
{
    const DType to = zero->type->dtype;
    const CodeRange r = code_range_of(at, to, number(zero));
    Node *with = r.z != 0 ? CALL(b, add, v, fixed_constant(b, (int64_t)r.z)) : v;
    return build_cast(b, CALL(b, clip, with, fixed_constant(b, (int64_t)r.lo), fixed_constant(b, (int64_t)r.hi)), to);
}

/* The numbers that sums of channels are multiplied by, sy of 1 where they become numbers. */
static f32 *factors_of(Build *b, const Node *data, const Node *weights, f32 sy, int64_t *n)
{
    *n = tensor_elements(known(weights));
    f32 *v = NEWS(b->graph->arena, f32, (size_t)*n + 1);
    for (int64_t i = 0; i < *n; i++)
        v[i] = requantize_scale(number(data), (f32)tensor_get_f64(known(weights), i), sy);
    return v;
}

/* Operands of both products lie in the same places. */
enum {
    X_SCALE = QCONV_X_SCALE,
    X_ZERO = QCONV_X_ZERO,
    W_SCALE = QCONV_W_SCALE,
    W_ZERO = QCONV_W_ZERO,
    Y_SCALE = QCONV_Y_SCALE,
    Y_ZERO = QCONV_Y_ZERO,
    BIAS = QCONV_BIAS,
};

/* A zero point of weights that says something: engines take one for all channels. */
static Node *unless_0(Node *zero)
{
    for (int64_t i = 0; i < tensor_elements(known(zero)); i++)
        if (tensor_get_i64(known(zero), i) != 0)
            return zero;
    return NULL;
}

/* Whether scales and zero points are stored, and biases are codes. */
static bool is_fixed_product(const Node *n)
{
    const Node *bias = in(n, BIAS), *y = in(n, Y_SCALE);
    return is_one(in(n, X_SCALE)) && is_one(in(n, X_ZERO)) && known(in(n, W_SCALE)) && known(in(n, W_ZERO)) &&
           known(in(n, W_SCALE))->type->rank <= 1 && (!y || (is_one(y) && is_one(in(n, Y_ZERO)))) &&
           (!bias || bias->type->dtype == I32);
}

/* Sums as codes, or as numbers; channels lie along an axis, `behind` of them after it. */
static Node *finish_product(Build *b, const Node *n, Node *sums, int axis, const CodesAttr *at)
{
    int64_t channels;
    const bool codes = in(n, Y_SCALE) != NULL;
    const f32 *factor = factors_of(b, in(n, X_SCALE), in(n, W_SCALE), codes ? number(in(n, Y_SCALE)) : 1, &channels);
    if (!sums)
        return NULL;
    const int rank = sums->type->rank;
    if (codes)
        return codes_of(b, fixed_product(b, sums, channels, factor, rank - 1 - axis), in(n, Y_ZERO), at);
    const DequantizeAttr back = { .axis = axis };
    return CALL_ATTR(b, dequantize_linear, back, sums, fixed_scales(b, channels, factor));
}

static Node *spell_conv(Build *b, Node *n)
{
    const QconvAttr *at = n->attr;
    Node *bias = in(n, BIAS), *ins[] = { in(n, QCONV_X), in(n, QCONV_W), in(n, X_ZERO), NULL };
    if (!is_fixed_product(n))
        return NULL;
    ins[3] = unless_0(in(n, W_ZERO));
    Node *sums = build_node(b, OP_conv_integer, &at->conv, ins[3] ? 4 : 3, ins);
    if (sums && bias)
        sums = CALL(b, add, sums, make_channels(b, bias, bias->type->dims[0], sums->type->rank));
    return finish_product(b, n, sums, 1, &at->codes);
}

static Node *spell_matmul(Build *b, Node *n)
{
    const QmatmulAttr *at = n->attr;
    Node *x = in(n, QMATMUL_A), *w = in(n, QMATMUL_B), *bias = in(n, BIAS);
    if (!is_fixed_product(n))
        return NULL;
    x = at->transpose_a ? make_swap_last(b, x) : x;
    w = at->transpose_b ? make_swap_last(b, w) : w;
    Node *ins[] = { x, w, in(n, X_ZERO), unless_0(in(n, W_ZERO)) };
    Node *sums = build_node(b, OP_matmul_integer, NULL, ins[3] ? 4 : 3, ins);
    if (bias)
        sums = CALL(b, add, sums, bias);
    return finish_product(b, n, sums, sums ? sums->type->rank - 1 : 0, &at->codes);
}

static bool are_fixed_pairs(const Node *n)
{
    for (int i = QBINARY_A_SCALE; i <= QBINARY_Y_ZERO; i++)
        if (i != QBINARY_B && !is_one(in(n, i)))
            return false;
    return true;
}

static Node *spell_add(Build *b, Node *n)
{
    const FixedSum by = fixed_sum_factors(number(in(n, QBINARY_A_SCALE)), number(in(n, QBINARY_B_SCALE)),
                                          number(in(n, QBINARY_Y_SCALE)));
    Node *more = fixed_constant(b, (int64_t)1 << FIXED_SUM_BITS);
    Node *x = CALL(b, mul, centred(b, in(n, QBINARY_A), in(n, QBINARY_A_ZERO)), more);
    Node *y = CALL(b, mul, centred(b, in(n, QBINARY_B), in(n, QBINARY_B_ZERO)), more);
    Node *sum = CALL(b, add, fixed_scaled(b, x, by.a), fixed_scaled(b, y, by.b));
    return codes_of(b, fixed_scaled(b, sum, by.y), in(n, QBINARY_Y_ZERO), &((const QbinaryAttr *)n->attr)->codes);
}

static Node *spell_mul(Build *b, Node *n)
{
    const f32 by = requantize_scale(number(in(n, QBINARY_A_SCALE)), number(in(n, QBINARY_B_SCALE)),
                                    number(in(n, QBINARY_Y_SCALE)));
    Node *product = CALL(b, mul, centred(b, in(n, QBINARY_A), in(n, QBINARY_A_ZERO)),
                         centred(b, in(n, QBINARY_B), in(n, QBINARY_B_ZERO)));
    return codes_of(b, fixed_scaled(b, product, fixed_factor(by)), in(n, QBINARY_Y_ZERO),
                    &((const QbinaryAttr *)n->attr)->codes);
}

static Node *spell_average(Build *b, Node *n)
{
    const Type *x = in(n, QPOOL_X)->type;
    int64_t count = 1;
    for (int i = QPOOL_X_SCALE; i <= QPOOL_Y_ZERO; i++)
        if (!is_one(in(n, i)))
            return NULL;
    for (int i = 2; i < x->rank; i++) {
        if (x->dims[i] < 0)
            return NULL;
        count *= x->dims[i];
    }
    const f32 all = number(in(n, QPOOL_Y_SCALE)) * (f32)count;
    Node *sum = make_reduce_from(b, OP_reduce_sum, centred(b, in(n, QPOOL_X), in(n, QPOOL_X_ZERO)), 2, x->rank);
    return codes_of(b, fixed_scaled(b, sum, fixed_factor(number(in(n, QPOOL_X_SCALE)) / all)), in(n, QPOOL_Y_ZERO),
                    &((const QglobalAttr *)n->attr)->codes);
}

static Node *spelled(Build *b, Node *n)
{
    if (n->type->rank < 0)
        return NULL;
    if (n->op == OP_qconv)
        return spell_conv(b, n);
    if (n->op == OP_qmatmul)
        return spell_matmul(b, n);
    if (n->op == OP_qadd || n->op == OP_qmul)
        return !are_fixed_pairs(n) ? NULL : n->op == OP_qadd ? spell_add(b, n) : spell_mul(b, n);
    if (n->op == OP_qglobal_average_pool)
        return spell_average(b, n);
    return op_of(n)->quant.quantizes ? fixed_tables(b, n) : NULL;
}

static Status spell_fixed(Graph *g, PassRun *run)
{
    return spell_calls(g, run, spelled);
}

const Pass pass_spell_fixed = { .name = "spell-fixed", .needs = TYPED, .may = EXACT, .run = spell_fixed };
