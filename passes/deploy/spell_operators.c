/* spell-operators: words on codes become the operators that ONNX has for them, bit for bit: QLinearConv and QLinearMatMul, and
 * where these have no form (a bias, or numbers as result) MatMulInteger with what belongs to it.
 *
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %s: f32[], %o: u8[], %i: i8[], %r: i32[3]) -> (%y) {
 *         %y: u8[2,3] = qmatmul(%x, %s, %o, %w, %s, %i, %s, %o, %r)
 *     }
 *     ==>
 *     graph @f(%x: u8[2,4], %w: i8[4,3], %s: f32[], %o: u8[], %i: i8[], %r: i32[3]) -> (%y) {
 *         %0: i32[2,3] = matmul_integer(%x, %w, %o, %i)
 *         %1: i32[2,3] = add(%0, %r)
 *         %2: f32[] = mul(%s, %s)
 *         %3: f32[] = div(%2, %s)
 *         %4: f32[2,3] = cast(%1, to=f32)
 *         %5: f32[2,3] = mul(%4, %3)
 *         const %6: f32[] = 1
 *         %y: u8[2,3] = quantize_linear(%5, %6, %o)
 *     }
 */
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "ops/quant/words.h"
#include "passes/deploy/spell.h"

/* Codes between the least and the largest, and from that of 0 on behind a Relu: where the type does not say so already. */
static Node *cut(Build *b, Node *codes, const CodesAttr *at, Node *zero)
{
    double least, largest, lo, hi;
    const DType type = codes->type->dtype;
    code_limits(type, 0, 0, &least, &largest);
    code_limits(type, at->least, at->largest, &lo, &hi);
    const Tensor *said = at->relu ? node_constant(zero, 64) : NULL;
    if (said && tensor_get_f64(said, 0) > lo)
        lo = tensor_get_f64(said, 0);
    if (at->relu && !said)
        return CALL(b, clip, codes, zero, build_scalar(b, type, hi));
    return lo > least || hi < largest ? CALL(b, clip, codes, build_scalar(b, type, lo), build_scalar(b, type, hi))
                                      : codes;
}

static Node *spell_conv(Build *b, Node *n)
{
    const QconvAttr *at = n->attr;
    Node *ins[QCONV_BIAS + 1];
    if (n->n_in <= QCONV_Y_SCALE || !in(n, QCONV_Y_SCALE))
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        ins[i] = in(n, i);
    Node *codes = build_node(b, OP_qlinear_conv, &at->conv, n->n_in, ins);
    return codes ? cut(b, codes, &at->codes, in(n, QCONV_Y_ZERO)) : NULL;
}

/* A factor that is read transposed. */
static Node *turned(Build *b, Node *x, bool turns)
{
    return turns ? make_swap_last(b, x) : x;
}

/* Sums in 32 bits, what is added to them, the factor of each column, and codes of that, or a float bias. */
static Node *spell_sums(Build *b, Node *n, Node *x, Node *w)
{
    Node *bias = n->n_in > QMATMUL_BIAS ? in(n, QMATMUL_BIAS) : NULL;
    Node *codes_scale = n->n_in > QMATMUL_Y_SCALE ? in(n, QMATMUL_Y_SCALE) : NULL;
    const bool floats = bias && bias->type->dtype == F32;
    Node *sums = CALL(b, matmul_integer, x, w, in(n, QMATMUL_A_ZERO), in(n, QMATMUL_B_ZERO));
    if (bias && !floats)
        sums = CALL(b, add, sums, bias);
    Node *factor = CALL(b, mul, in(n, QMATMUL_A_SCALE), in(n, QMATMUL_B_SCALE));
    if (codes_scale)
        factor = CALL(b, div, factor, codes_scale);
    Node *y = CALL(b, mul, build_cast(b, sums, F32), factor);
    if (floats)
        return CALL(b, add, y, bias);
    return codes_scale ? CALL(b, quantize_linear, y, build_scalar(b, F32, 1), in(n, QMATMUL_Y_ZERO)) : y;
}

/* Scales of rows, or of each matrix, are those of no operator. */
static bool has_columns(const Node *n)
{
    return type_elements(in(n, QMATMUL_A_SCALE)->type) == 1 && in(n, QMATMUL_B_SCALE)->type->rank <= 1;
}

static Node *spell_matmul(Build *b, Node *n)
{
    const QmatmulAttr *at = n->attr;
    if (!has_columns(n))
        return NULL;
    Node *x = turned(b, in(n, QMATMUL_A), at->transpose_a), *w = turned(b, in(n, QMATMUL_B), at->transpose_b);
    const bool codes = n->n_in > QMATMUL_Y_SCALE && in(n, QMATMUL_Y_SCALE);
    Node *y = NULL;
    if (codes && (n->n_in <= QMATMUL_BIAS || !in(n, QMATMUL_BIAS))) {
        Node *ins[QMATMUL_BIAS];
        for (int i = 0; i < QMATMUL_BIAS; i++)
            ins[i] = i == QMATMUL_A ? x : i == QMATMUL_B ? w : in(n, i);
        y = build_node(b, OP_qlinear_matmul, NULL, QMATMUL_BIAS, ins);
    } else {
        y = spell_sums(b, n, x, w);
    }
    return y && codes ? cut(b, y, &at->codes, in(n, QMATMUL_Y_ZERO)) : y;
}

static Node *spelled(Build *b, Node *n)
{
    return n->op == OP_qconv ? spell_conv(b, n) : n->op == OP_qmatmul ? spell_matmul(b, n) : NULL;
}

static Status spell_operators(Graph *g, PassRun *run)
{
    return spell_calls(g, run, spelled);
}

const Pass pass_spell_operators = { .name = "spell-operators", .needs = TYPED, .may = EXACT, .run = spell_operators };
