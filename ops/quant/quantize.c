/* quantize_linear and dequantize_linear. */
#include "ops/quant/quantize.h"

#include "base/half.h"
#include "ops/card/access.h"
#include "ops/card/shapes.h"

enum { BLOCK = 512 };

static const AttrSpec quantize_attrs[] = {
    ATTR(QuantizeAttr, axis, INT, 1),           ATTR(QuantizeAttr, block_size, INT, 0),
    ATTR(QuantizeAttr, output_dtype, DTYPE, 0), ATTR(QuantizeAttr, precision, DTYPE, 0),
    ATTR(QuantizeAttr, saturate, BOOL, true),   ATTR_LAST,
};

static const AttrSpec dequantize_attrs[] = {
    ATTR(DequantizeAttr, axis, INT, 1),
    ATTR(DequantizeAttr, block_size, INT, 0),
    ATTR(DequantizeAttr, output_dtype, DTYPE, 0),
    ATTR_LAST,
};

/* What Q and DQ take as real numbers; i32 is for accumulators. */
static bool is_real(DType d)
{
    return d == F32 || d == F16 || d == BF16;
}

static bool is_scale(DType d)
{
    return is_real(d) || d == F8E8M0;
}

static const Type *infer_wrong(Infer *q, int i, const Type *t)
{
    return infer_fail(q, "operand %d cannot be %s", i, dtype_name(t->dtype));
}

/* The code type: of the zero point, of the attribute, u8. */
static bool code_type(Infer *q, const Type *zero, DType *code)
{
    DType said;
    *code = zero ? zero->dtype : U8;
    if (attr_dtype(((const QuantizeAttr *)q->attr)->output_dtype, &said)) {
        if (zero && zero->dtype != said) {
            infer_fail(q, "has output_dtype %s but a zero point of %s", dtype_name(said), dtype_name(zero->dtype));
            return false;
        }
        *code = said;
    }
    if (!dtype_is_code(*code)) {
        infer_fail(q, "cannot give %s", dtype_name(*code));
        return false;
    }
    return true;
}

static const Type *infer_quantize_linear(Infer *q)
{
    const QuantizeAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *s = x ? infer_tensor(q, 1) : NULL, *z = NULL;
    DType code, precision;
    if (!s || (infer_has(q, 2) && !(z = infer_tensor(q, 2))))
        return NULL;
    if (!is_real(x->dtype) && x->dtype != I32)
        return infer_wrong(q, 0, x);
    if (!is_scale(s->dtype) && s->dtype != I32)
        return infer_wrong(q, 1, s);
    if (attr_dtype(at->precision, &precision) && !is_real(precision))
        return infer_fail(q, "cannot divide in %s", dtype_name(precision));
    if (!code_type(q, z, &code) || !infer_scale_layout(q, x, s, z, at->axis, at->block_size))
        return NULL;
    return type_with_dtype(q->types, x, code);
}

/* One call: widened scales and zero points, and how to find them. */
typedef struct Quantizer {
    ScaleLayout layout;
    const f32 *scale, *zero; /* zero: null when all are 0 */
    const f64 *scale_f64;    /* of integer scales */
    DType quotient;          /* F32, or the narrow type it is rounded to */
    bool integers;           /* codes are integers */
    f32 lo, hi;
} Quantizer;

static f32 rounded(f32 v, DType to)
{
    return to == F16 ? f16_to_f32(f16_from_f32(v)) : to == BF16 ? bf16_to_f32(bf16_from_f32(v)) : v;
}

/* Integers: RNE(x / s) + z, clamped; NaN becomes the code of 0.  Floats: x / s + z, narrowed by the store. */
static f32 code_of(const Quantizer *c, f32 v, f32 z)
{
    if (!c->integers)
        return z == 0 ? v : v + z;
    return stored_code_f32(v, z, c->lo, c->hi);
}

static void quantize_block(const Quantizer *c, const Tensor *x, Tensor *y, int64_t first, int64_t n, bool saturate)
{
    f32 v[BLOCK];
    f64 wide[BLOCK];
    int64_t at[BLOCK];
    scale_layout_indices(&c->layout, first, n, at);
    if (c->scale_f64) {
        load_f64(wide, x, first, n);
        for (int64_t i = 0; i < n; i++)
            v[i] = code_of(c, (f32)rint_f64(wide[i] / c->scale_f64[at[i]]), c->zero ? c->zero[at[i]] : 0);
    } else {
        load_f32(v, x, first, n);
        for (int64_t i = 0; i < n; i++)
            v[i] = code_of(c, rounded(v[i] / c->scale[at[i]], c->quotient), c->zero ? c->zero[at[i]] : 0);
    }
    store_codes(y, first, v, n, saturate);
}

/* The type of the quotient: `precision`, else that of the scale (the powers of two of e8m0 divide in f32). */
static DType quotient_type(const QuantizeAttr *at, DType scale)
{
    DType d;
    if (attr_dtype(at->precision, &d))
        return d;
    return is_real(scale) ? scale : F32;
}

static Status eval_quantize_linear(Eval *e)
{
    const QuantizeAttr *at = e->attr;
    const Tensor *x = e->in[0], *s = e->in[1];
    Tensor *y = eval_out(e, 0);
    double lo, hi;
    code_range(y->type->dtype, &lo, &hi);
    const bool integer = s->type->dtype == I32 && !at->precision;
    const Quantizer c = { .layout = scale_layout_of(x->type, s->type, at->axis, at->block_size),
                          .scale = integer ? NULL : eval_f32(e, 1),
                          .scale_f64 = integer ? eval_f64(e, 1) : NULL,
                          .zero = eval_has(e, 2) ? eval_f32(e, 2) : NULL,
                          .quotient = quotient_type(at, s->type->dtype),
                          .integers = !dtype_is_float(y->type->dtype),
                          .lo = (f32)lo,
                          .hi = (f32)hi };
    const int64_t n = tensor_elements(x);
    for (int64_t first = 0; first < n; first += BLOCK)
        quantize_block(&c, x, y, first, n - first < BLOCK ? n - first : BLOCK, at->saturate);
    return OK;
}

static const Type *infer_dequantize_linear(Infer *q)
{
    const DequantizeAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *s = x ? infer_tensor(q, 1) : NULL, *z = NULL;
    DType to;
    if (!s || (infer_has(q, 2) && !(z = infer_tensor(q, 2))))
        return NULL;
    if (!dtype_is_code(x->dtype) && x->dtype != I32)
        return infer_wrong(q, 0, x);
    if (!is_scale(s->dtype))
        return infer_wrong(q, 1, s);
    if (z && z->dtype != x->dtype)
        return infer_fail(q, "has codes of %s but zero points of %s", dtype_name(x->dtype), dtype_name(z->dtype));
    if (!attr_dtype(at->output_dtype, &to))
        to = s->dtype;
    if (!is_real(to))
        return infer_fail(q, "cannot give %s", dtype_name(to));
    if (!infer_scale_layout(q, x, s, z, at->axis, at->block_size))
        return NULL;
    return type_with_dtype(q->types, x, to);
}

/* (x - z) * s: the difference of integers is exact, then one product in f32. */
static void dequantize_block(const ScaleLayout *g, Eval *e, const f32 *scale, const i64 *zero_i, const f32 *zero_f,
                             int64_t first, int64_t n)
{
    f32 v[BLOCK];
    i64 code[BLOCK];
    int64_t at[BLOCK];
    scale_layout_indices(g, first, n, at);
    if (dtype_is_float(e->in[0]->type->dtype)) {
        load_f32(v, e->in[0], first, n);
        for (int64_t i = 0; i < n; i++)
            v[i] = dequantize_f32(v[i], scale[at[i]], zero_f ? zero_f[at[i]] : 0);
    } else {
        load_i64(code, e->in[0], first, n);
        for (int64_t i = 0; i < n; i++)
            v[i] = dequantize_i64(code[i], scale[at[i]], zero_i ? zero_i[at[i]] : 0);
    }
    store_f32(e->out[0], first, v, n);
    rounding_count_f32(eval_options(e)->rounding, e->out[0], first, v, n);
}

static Status eval_dequantize_linear(Eval *e)
{
    const DequantizeAttr *at = e->attr;
    const Tensor *x = e->in[0];
    const bool floats = dtype_is_float(x->type->dtype), has_zero = eval_has(e, 2);
    const ScaleLayout g = scale_layout_of(x->type, e->in[1]->type, at->axis, at->block_size);
    const f32 *scale = eval_f32(e, 1), *zero_f = has_zero && floats ? eval_f32(e, 2) : NULL;
    const i64 *zero_i = has_zero && !floats ? eval_i64(e, 2) : NULL;
    const int64_t n = tensor_elements(x);
    eval_out(e, 0);
    for (int64_t first = 0; first < n; first += BLOCK)
        dequantize_block(&g, e, scale, zero_i, zero_f, first, n - first < BLOCK ? n - first : BLOCK);
    return OK;
}

/* A random data shape with the scale's shape for the granularity of the variant (0 tensor, 1 axis, 2 block). */
typedef struct Draw {
    int rank, scale_rank;
    int64_t dims[MAX_RANK], scale_dims[MAX_RANK];
    int64_t axis, block;
} Draw;

static Draw draw_shapes(Rng *rng, int variant)
{
    Draw d = { .rank = 1 + (int)rng_below(rng, 4), .axis = 1 };
    const int kind = variant % 3;
    if (kind == 0 && variant % 2)
        d.rank = 0;
    sample_dims(rng, d.rank, 5, d.dims);
    if (kind == 0)
        return d;
    const int at = (int)rng_below(rng, d.rank);
    d.axis = rng_below(rng, 2) ? at : at - d.rank;
    d.scale_rank = kind == 1 ? 1 : d.rank;
    d.scale_dims[0] = d.dims[at];
    if (kind == 1)
        return d;
    d.block = rng_range(rng, 1, 3);
    for (int i = 0; i < d.rank; i++)
        d.scale_dims[i] = i == at ? (d.dims[i] + d.block - 1) / d.block : d.dims[i];
    return d;
}

/* One-element scales stand for the whole tensor, whose zero point then has one element too. */
static const DType code_types[] = { U8,     I8,         U16,    I16,        U4,     I4,     U2,    I2,
                                    F8E4M3, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1, F6E2M3, F6E3M2 };
static const DType real_types[] = { F32, F16, BF16 };
static const DType scale_types[] = { F32, F16, BF16, F8E8M0 };

static Node *sample_zero(Build *b, Rng *rng, DType code, const Draw *d)
{
    const bool floats = dtype_is_float(code);
    const bool sign = dtype_class(code) == CLASS_INT;
    return sample_tensor(b, rng, code, d->scale_rank, d->scale_dims, floats ? 0 : sign ? -2 : 0, floats ? 0 : 1);
}

static Node *sample_quantize_linear(Build *b, Rng *rng, int variant)
{
    const Draw d = draw_shapes(rng, variant);
    const DType code = code_types[variant % (int)COUNT(code_types)];
    const DType scale = scale_types[rng_below(rng, COUNT(scale_types))];
    const DType data = variant % 7 == 6 ? I32 : real_types[rng_below(rng, COUNT(real_types))];
    const bool zero = rng_below(rng, 2);
    const QuantizeAttr at = { .axis = d.axis,
                              .block_size = d.block,
                              .output_dtype = zero ? 0 : (int)code + 1,
                              .precision = rng_below(rng, 4) ? 0 : (int)F32 + 1,
                              .saturate = rng_below(rng, 2) };
    Node *ins[3] = { sample_tensor(b, rng, data, d.rank, d.dims, -9, 9),
                     sample_tensor(b, rng, scale, d.scale_rank, d.scale_dims, 0.25, 2) };
    if (zero)
        ins[2] = sample_zero(b, rng, code, &d);
    return build_node(b, OP_quantize_linear, &at, zero ? 3 : 2, ins);
}

static Node *sample_dequantize_linear(Build *b, Rng *rng, int variant)
{
    const Draw d = draw_shapes(rng, variant);
    const DType code = variant % 16 == 15 ? I32 : code_types[variant % 16];
    const DType scale = scale_types[rng_below(rng, COUNT(scale_types))];
    const bool zero = rng_below(rng, 2), sign = dtype_class(code) == CLASS_INT;
    const DequantizeAttr at = { .axis = d.axis,
                                .block_size = d.block,
                                .output_dtype =
                                    rng_below(rng, 2) || scale == F8E8M0 ? (int)real_types[rng_below(rng, 3)] + 1 : 0 };
    Node *ins[3] = { sample_tensor(b, rng, code, d.rank, d.dims, sign || dtype_is_float(code) ? -2 : 0, 1),
                     sample_tensor(b, rng, scale, d.scale_rank, d.scale_dims, 0.25, 2) };
    if (zero)
        ins[2] = sample_zero(b, rng, code, &d);
    return build_node(b, OP_dequantize_linear, &at, zero ? 3 : 2, ins);
}

/* One scale for all, or one for each index of the axis; blocks are not affine. */
static bool iterate_scaled(const Node *n, Arena *arena, Iteration *to, int64_t axis, int64_t block)
{
    const Type *y = access_result(n, 0), *scale = in(n, 1)->type;
    if (!type_known(y) || !type_known(scale) || !iteration_open(to, n, arena, y->rank, y->dims))
        return false;
    const ScaleLayout layout = scale_layout_of(y, scale, axis, block);
    if (layout.block && !layout.per_axis)
        return false;
    reach_axes(to, arena, &to->in[0], y->rank, 0);
    reach_axes(to, arena, &to->out[0], y->rank, 0);
    for (int i = 1; i < n->n_in; i++)
        if (in(n, i)) {
            Access *a = reach_affine(to, arena, &to->in[i], in(n, i)->type->rank);
            if (layout.per_axis)
                reach_along(to, a, 0, axis_wrap(axis, y->rank), 1);
        }
    return true;
}

static bool iterate_quantize(const Node *n, Arena *arena, Iteration *to)
{
    const QuantizeAttr *at = n->attr;
    return iterate_scaled(n, arena, to, at->axis, at->block_size);
}

static bool iterate_dequantize(const Node *n, Arena *arena, Iteration *to)
{
    const DequantizeAttr *at = n->attr;
    return iterate_scaled(n, arena, to, at->axis, at->block_size);
}

const OpDef op_quantize_linear = {
    .name = "quantize_linear",
    .min_in = 2,
    .max_in = 3,
    .attrs = quantize_attrs,
    .infer = infer_quantize_linear,
    .eval = eval_quantize_linear,
    .sample = sample_quantize_linear,
    .n_variants = 48,
    .access.kind = ACCESS_ROW,
    .access.iterate = iterate_quantize,
    .amp = { AMP_X, AMP_X, 1u << 1, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "QuantizeLinear", 28, NULL },
};

const OpDef op_dequantize_linear = {
    .name = "dequantize_linear",
    .min_in = 2,
    .max_in = 3,
    .attrs = dequantize_attrs,
    .infer = infer_dequantize_linear,
    .eval = eval_dequantize_linear,
    .sample = sample_dequantize_linear,
    .n_variants = 48,
    .access.kind = ACCESS_ROW,
    .access.iterate = iterate_dequantize,
    .amp = { AMP_X, AMP_X, 1u << 1, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "DequantizeLinear", 28, NULL },
};
