/* The kernels of quantize_linear and dequantize_linear that no region holds: codes of floats, and blocks with a scale each. */
#include <inttypes.h>

#include "ops/card/own_kernel.h"
#include "ops/quant/float_grid.h"
#include "ops/quant/quantize.h"

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
