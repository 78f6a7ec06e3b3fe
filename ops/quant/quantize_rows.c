#include "ops/quant/quantize_rows.h"

#include <inttypes.h>

#include "ops/card/make.h"
#include "ops/card/own_kernel.h"
#include "ops/card/shapes.h"
#include "ops/quant/float_grid.h"

static Node *number(Build *b, double v)
{
    return build_scalar(b, F32, v);
}

static Node *as(Build *b, Node *x, DType to)
{
    return !x || x->type->dtype == to ? x : build_cast(b, x, to);
}

QuantRows quant_rows(Build *b, const Type *x, const Type *scale, int64_t axis, int64_t block)
{
    return (QuantRows){
        .b = b, .x = x, .layout = scale_layout_of(x, scale, axis, block), .axis = x->rank ? axis_wrap(axis, x->rank) : 0
    };
}

/* Whether the whole axis shares a scale: one for all that differs in no other axis. */
static bool is_one_block(const QuantRows *k)
{
    return k->layout.block && !k->layout.per_axis && k->layout.blocks == 1;
}

Node *quant_spread(const QuantRows *k, Node *p, DType to)
{
    int64_t dims[MAX_RANK];
    Node *wide = as(k->b, p, to);
    if (!k->layout.block)
        return p->type->rank ? make_reshape(k->b, wide, 0, NULL) : wide;
    if (is_one_block(k))
        return wide;
    for (int i = 0; i < k->x->rank; i++)
        dims[i] = i == k->axis ? k->layout.extent : 1;
    if (k->layout.per_axis)
        return make_reshape(k->b, wide, k->x->rank, dims);
    int64_t *at = NEWS(k->b->graph->arena, int64_t, k->layout.extent + 1);
    for (int64_t i = 0; i < k->layout.extent; i++)
        at[i] = i / k->layout.block;
    return make_gather(k->b, wide, build_i64s(k->b, (int)k->layout.extent, at), k->axis);
}

Node *quant_quotient(const QuantRows *k, const QuantizeAttr *at, Node *x, Node *scale, DType type)
{
    const DType to = quotient_type(at, type);
    Build *b = k->b;
    if (type == I32 && !at->precision) {
        Node *v = CALL(b, div, as(b, x, F64), quant_spread(k, scale, F64));
        return build_cast(b, CALL(b, round, v), F32);
    }
    Node *v = CALL(b, div, as(b, x, F32), quant_spread(k, scale, F32));
    return as(b, as(b, v, to), F32);
}

/* 1 where a condition holds. */
static Node *one_where(Build *b, Node *condition)
{
    return build_cast(b, condition, F32);
}

Node *quant_rounded(Build *b, int rounding, Node *v, Node *draw)
{
    Node *r, *zero = number(b, 0), *half = number(b, 0.5);
    switch (rounding) {
    case ROUND_SR:
        r = CALL(b, floor, v);
        return CALL(b, add, r, one_where(b, CALL(b, less, draw, CALL(b, sub, v, r))));
    case ROUND_HALF_UP:
        r = CALL(b, round, v);
        return CALL(b, add, r, one_where(b, CALL(b, equal, CALL(b, sub, v, r), half)));
    case ROUND_HALF_DOWN:
        r = CALL(b, round, v);
        return CALL(b, sub, r, one_where(b, CALL(b, equal, CALL(b, sub, r, v), half)));
    case ROUND_CEIL:
        return CALL(b, ceil, v);
    case ROUND_FLOOR:
        return CALL(b, floor, v);
    case ROUND_ZERO:
        return CALL(b, where, CALL(b, less, v, zero), CALL(b, ceil, v), CALL(b, floor, v));
    case ROUND_AWAY:
        return CALL(b, where, CALL(b, less, v, zero), CALL(b, floor, v), CALL(b, ceil, v));
    default:
        return CALL(b, round, v);
    }
}

/* What is rounded, + z, between the least and the largest code; a NaN has the code of 0.  Codes of 32 bits are more than f32
 * has. */
static Node *integer_codes(const QuantRows *k, const QuantizeAttr *at, Node *r, Node *zero, DType code)
{
    const DType wide = code == I32 ? F64 : F32;
    Build *b = k->b;
    double lo, hi;
    code_limits(code, at->least, at->largest, &lo, &hi);
    r = as(b, r, wide);
    Node *z = zero ? quant_spread(k, as(b, zero, F32), wide) : build_scalar(b, wide, 0);
    Node *q = CALL(b, where, CALL(b, is_nan, r), z, zero ? CALL(b, add, r, z) : r);
    return build_cast(b, CALL(b, clip, q, build_scalar(b, wide, lo), build_scalar(b, wide, hi)), code);
}

/* Whether tapes have rows for codes of a type and scales laid out so. */
static bool has_rows(DType code, const QuantRows *k)
{
    return !dtype_is_float(code) && dtype_bits(code) >= 8 &&
           (!k->layout.block || k->layout.per_axis || is_one_block(k));
}

Node *open_quantize_linear(Build *b, const Site *s)
{
    const QuantizeAttr *at = s->attr;
    const Type *x = s->in[0]->type, *scale = s->in[1]->type;
    const DType code = s->type->dtype;
    if (!type_known(x) || !type_known(scale) || s->n_out > 1)
        return NULL;
    const QuantRows k = quant_rows(b, x, scale, at->axis, at->block_size);
    if (!has_rows(code, &k))
        return NULL;
    Node *v = quant_quotient(&k, at, s->in[0], s->in[1], scale->dtype);
    return integer_codes(&k, at, quant_rounded(b, at->rounding, v, site_in(s, 3)), site_in(s, 2), code);
}

/* (q - z) s: the difference of integers is exact, then one product in f32. */
Node *open_dequantize_linear(Build *b, const Site *s)
{
    const DequantizeAttr *at = s->attr;
    const Type *code = s->in[0]->type, *scale = s->in[1]->type;
    const DType exact = code->dtype == I32 ? I64 : F32;
    if (!type_known(code) || !type_known(scale))
        return NULL;
    const QuantRows k = quant_rows(b, code, scale, at->axis, at->block_size);
    if (!has_rows(code->dtype, &k))
        return NULL;
    Node *q = as(b, s->in[0], exact), *zero = site_in(s, 2);
    if (zero)
        q = CALL(b, sub, q, quant_spread(&k, zero, exact));
    return as(b, CALL(b, mul, as(b, q, F32), quant_spread(&k, s->in[1], F32)), s->type->dtype);
}

/* ---- kernels of what no region holds: codes of floats, and blocks with a scale each ---- */

/* The scale of element o, as `at`. */
static void print_place(Text *t, const ScaleLayout *g)
{
    if (!g->block) {
        text_add(t, "    const i64 at = 0;\n");
        return;
    }
    text_printf(t, "    const i64 axis = o / %" PRId64 " %% %" PRId64 ";\n", g->inner, g->extent);
    if (g->per_axis)
        text_add(t, "    const i64 at = axis;\n");
    else
        text_printf(t,
                    "    const i64 at = (o / %" PRId64 " * %" PRId64 " + axis / %" PRId64 ") * %" PRId64
                    " + o %% %" PRId64 ";\n",
                    g->inner * g->extent, g->blocks, g->block, g->inner, g->inner);
}

/* The name that a type of codes has among the functions of base/half.h. */
static const char *codes_name(DType d)
{
    return d == F8E4M3 ? "f8e4m3fn" : d == F8E4M3FNUZ ? "f8e4m3fnuz" : d == F8E5M2 ? "f8e5m2" : "f8e5m2fnuz";
}

static void print_floats(const Node *n, const OwnKernels *to, Text *t)
{
    const QuantizeAttr *at = n->attr;
    const DType code = n->type->dtype;
    const FloatGrid grid = float_grid(code);
    (void)to;
    if (in(n, QUANTIZE_ZERO))
        text_add(t, "    const f32 z = (f32)IN2(at);\n    v = z == 0 ? v : v + z;\n");
    if (at->rounding == ROUND_SR)
        text_printf(t, "    v = grid_round_f32(%d, %d, v, IN3(o));\n", grid.digits, grid.low);
    text_printf(t, "    OUTRAW0[o] = %s_from_f32(v, %s);\n", codes_name(code), at->saturate ? "true" : "false");
}

static void print_integers(const Node *n, const OwnKernels *to, Text *t)
{
    const QuantizeAttr *at = n->attr;
    double lo, hi;
    code_limits(n->type->dtype, at->least, at->largest, &lo, &hi);
    text_printf(t, "    const f32 z = %s;\n", in(n, QUANTIZE_ZERO) ? "(f32)IN2(at)" : "0");
    text_printf(t, "    v = round_by_f32(%d, v, %s);\n", at->rounding, at->rounding == ROUND_SR ? "IN3(o)" : "0");
    text_printf(t, "    OUT0(o, (i64)code_of_f32(v, z, %s, %s));\n", own_f32(to, lo), own_f32(to, hi));
}

/* Whether kernels divide as the evaluator does, and know the codes. */
static bool is_known(const Node *n)
{
    const DType code = n->type->dtype, scale = in(n, QUANTIZE_SCALE)->type->dtype;
    return code != I32 && scale != I32 && (!dtype_is_float(code) || dtype_bits(code) == 8);
}

bool kernels_quantize_linear(const Node *n, OwnKernels *to)
{
    const QuantizeAttr *at = n->attr;
    Text t;
    if (!is_known(n))
        return false;
    const Type *scale = in(n, QUANTIZE_SCALE)->type;
    const ScaleLayout layout = scale_layout_of(in(n, 0)->type, scale, at->axis, at->block_size);
    const DType quotient = quotient_type(at, scale->dtype);
    own_kernel_open(to, &t);
    print_place(&t, &layout);
    text_add(&t, "    f32 v = (f32)IN0(o) / IN1(at);\n");
    if (quotient != F32)
        text_printf(&t, "    v = %s_to_f32(%s_from_f32(v));\n", dtype_name(quotient), dtype_name(quotient));
    (dtype_is_float(n->type->dtype) ? print_floats : print_integers)(n, to, &t);
    own_kernel_close(to, "quantize", type_elements(n->type), 0, &t);
    return true;
}

bool kernels_dequantize_linear(const Node *n, OwnKernels *to)
{
    const DequantizeAttr *at = n->attr;
    const Type *x = in(n, 0)->type;
    const bool floats = dtype_is_float(x->dtype);
    Text t;
    const ScaleLayout layout = scale_layout_of(x, in(n, QUANTIZE_SCALE)->type, at->axis, at->block_size);
    own_kernel_open(to, &t);
    print_place(&t, &layout);
    text_printf(&t, "    OUT0(o, dequantize_%s(%sIN0(o), IN1(at), %s));\n", floats ? "f32" : "i64",
                floats ? "" : "(i64)", in(n, QUANTIZE_ZERO) ? "IN2(at)" : "0");
    own_kernel_close(to, "dequantize", type_elements(n->type), 0, &t);
    return true;
}
