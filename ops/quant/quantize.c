/* quantize_linear and dequantize_linear. */
#include "ops/quant/quantize.h"

#include "base/half.h"
#include "ops/card/access.h"
#include "ops/card/shapes.h"
#include "ops/quant/float_grid.h"
#include "ops/quant/quantize_rows.h"

enum { BLOCK = 512 };

const char *const quant_roundings[] = { "rne", "sr", "half_up", "half_down", "ceil", "floor", "zero", "away", NULL };
const char *const quant_masks[] = { "q", "v", "pass", NULL };

static const AttrSpec quantize_attrs[] = {
    ATTR(QuantizeAttr, axis, INT, 1),
    ATTR(QuantizeAttr, block_size, INT, 0),
    ATTR(QuantizeAttr, output_dtype, DTYPE, 0),
    ATTR(QuantizeAttr, precision, DTYPE, 0),
    ATTR(QuantizeAttr, saturate, BOOL, true),
    ATTR_OURS(QuantizeAttr, least, INT, 0),
    ATTR_OURS(QuantizeAttr, largest, INT, 0),
    ATTR_CHOICE_OURS(QuantizeAttr, rounding, quant_roundings, ROUND_RNE),
    ATTR_CHOICE_OURS(QuantizeAttr, mask, quant_masks, MASK_BY_CODE),
    ATTR_OURS(QuantizeAttr, learned, BOOL, false),
    ATTR_OURS(QuantizeAttr, gain, FLOAT, 1),
    ATTR_OURS(QuantizeAttr, ends, BOOL, false),
    ATTR_OURS(QuantizeAttr, learned_zero, BOOL, false),
    ATTR_LAST,
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
    if (!dtype_is_code(*code) && *code != I32) {
        infer_fail(q, "cannot give %s", dtype_name(*code));
        return false;
    }
    return true;
}

/* What stochastic rounding draws is an operand: a number of [0, 1) for each element. */
static bool check_rounding(Infer *q, const Type *x, DType code, int rounding)
{
    const Type *draw = infer_has(q, QUANTIZE_DRAW) ? infer_tensor(q, QUANTIZE_DRAW) : NULL;
    if (infer_has(q, QUANTIZE_DRAW) && !draw)
        return false;
    if (rounding != ROUND_RNE && rounding != ROUND_SR && dtype_is_float(code))
        infer_fail(q, "rounds to %s by rne or sr", dtype_name(code));
    else if ((rounding == ROUND_SR) != (draw != NULL))
        infer_fail(q, "%s", draw ? "draws for rounding=sr alone" : "rounding=sr wants a draw for each element");
    else if (draw && (draw->dtype != F32 || !type_agrees(type_with_dtype(q->types, draw, x->dtype), x)))
        infer_fail(q, "wants draws of f32 like %s, got %s", type_text(q->scratch, x), type_text(q->scratch, draw));
    else
        return true;
    return false;
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
    if (!infer_code_limits(q, code, at->least, at->largest) || !check_rounding(q, x, code, at->rounding))
        return NULL;
    return type_with_dtype(q->types, x, code);
}

/* One call: widened scales and zero points, and how to find them. */
typedef struct Quantizer {
    const CodeLoops *loops;
    ScaleLayout layout;
    bool shares;            /* pieces have one scale */
    const Tensor *x, *draw; /* draw: of stochastic rounding */
    Tensor *y;
    const f32 *scale, *zero; /* zero: null when all are 0 */
    const f64 *scale_f64;    /* of integer scales */
    DType quotient;          /* F32, or the narrow type it is rounded to */
    int rounding;
    bool saturate;
    f64 lo, hi;
} Quantizer;

/* Elements first .. first + n - 1 of a call. */
typedef struct Piece {
    int64_t first, n, at[BLOCK];
    f32 v[BLOCK], r[BLOCK], draw[BLOCK];
} Piece;

static void narrow(DType to, f32 *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = to == F16 ? f16_to_f32(f16_from_f32(v[i])) : bf16_to_f32(bf16_from_f32(v[i]));
}

/* x / s, in the type of the quotient. */
static void divide(const Quantizer *c, Piece *p)
{
    if (c->scale_f64) {
        f64 wide[BLOCK];
        load_f64(wide, c->x, p->first, p->n);
        for (int64_t i = 0; i < p->n; i++)
            p->v[i] = (f32)rint_f64(wide[i] / c->scale_f64[p->at[c->shares ? 0 : i]]);
        return;
    }
    load_f32(p->v, c->x, p->first, p->n);
    if (c->shares)
        c->loops->divide((size_t)p->n, p->v, c->scale[p->at[0]]);
    for (int64_t i = 0; i < p->n && !c->shares; i++)
        p->v[i] = p->v[i] / c->scale[p->at[i]];
    if (c->quotient != F32)
        narrow(c->quotient, p->v, p->n);
}

#define ROUND_ALL(call)                                                                                                \
    for (int64_t i = 0; i < p->n; i++)                                                                                 \
        p->r[i] = call;                                                                                                \
    break;
static void round_all(const CodeLoops *loops, int rounding, Piece *p)
{
    switch (rounding) {
    case ROUND_RNE:
        loops->nearest((size_t)p->n, p->v, p->r);
        break;
    case ROUND_SR:
        ROUND_ALL(stochastic_f32(p->v[i], p->draw[i]))
    default:
        ROUND_ALL(round_by_f32(rounding, p->v[i], 0))
    }
}
#undef ROUND_ALL

/* Of 32 bits, more than f32 has: the sum and its bounds are f64. */
static void store_wide(const Quantizer *c, const Piece *p)
{
    i64 code[BLOCK];
    for (int64_t i = 0; i < p->n; i++) {
        const f64 z = c->zero ? (f64)c->zero[p->at[c->shares ? 0 : i]] : 0, r = (f64)p->r[i], q = r == r ? r + z : z;
        code[i] = (i64)(q < c->lo ? c->lo : q > c->hi ? c->hi : q);
    }
    store_i64(c->y, p->first, code, p->n);
}

/* To the grid of the codes by chance; beyond its largest number the store saturates. */
static void round_floats(const Quantizer *c, Piece *p)
{
    const FloatGrid grid = float_grid(c->y->type->dtype);
    load_f32(p->draw, c->draw, p->first, p->n);
    for (int64_t i = 0; i < p->n; i++)
        p->v[i] = float_grid_round(grid, p->v[i], p->draw[i]);
}

/* Integers: x / s rounded, + z, clamped; NaN becomes the code of 0.  Floats: x / s + z, narrowed by the store. */
static void quantize_piece(const Quantizer *c, Piece *p)
{
    const DType code = c->y->type->dtype;
    divide(c, p);
    if (dtype_is_float(code)) {
        for (int64_t i = 0; i < p->n && c->zero; i++) {
            const f32 z = c->zero[p->at[c->shares ? 0 : i]];
            p->v[i] = z == 0 ? p->v[i] : p->v[i] + z;
        }
        if (c->draw)
            round_floats(c, p);
        store_codes(c->y, p->first, p->v, p->n, c->saturate);
        return;
    }
    if (c->draw)
        load_f32(p->draw, c->draw, p->first, p->n);
    round_all(c->loops, c->rounding, p);
    if (code == I32) {
        store_wide(c, p);
        return;
    }
    const f32 lo = (f32)c->lo, hi = (f32)c->hi;
    if (c->shares)
        c->loops->settle((size_t)p->n, p->r, c->zero ? c->zero[p->at[0]] : 0, lo, hi);
    for (int64_t i = 0; i < p->n && !c->shares; i++)
        p->r[i] = code_of_f32(p->r[i], c->zero ? c->zero[p->at[i]] : 0, lo, hi);
    store_f32(c->y, p->first, p->r, p->n);
}

/* Codes of 8 bits of numbers in f32, rounded to the nearest or by chance: one loop, of the level. */
static bool makes_bytes(const Quantizer *c)
{
    const DType code = c->y->type->dtype;
    return (code == I8 || code == U8) && c->x->type->dtype == F32 && c->quotient == F32 && !c->scale_f64 &&
           (c->rounding == ROUND_RNE || c->rounding == ROUND_SR) && (c->shares || !c->zero);
}

static void quantize_bytes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Quantizer *c = arg;
    const int64_t all = tensor_elements(c->x), last = end * BLOCK < all ? end * BLOCK : all;
    (void)worker;
    for (int64_t i = begin * BLOCK, n, at; i < last; i += n) {
        bool each;
        n = scale_layout_line(&c->layout, i, last - i, &at, &each);
        const CodeRange range = { c->zero ? c->zero[at] : 0, (f32)c->lo, (f32)c->hi };
        c->loops->quantize((size_t)n, (const f32 *)(const void *)c->x->data + i, c->scale + at, each,
                           c->draw ? (const f32 *)(const void *)c->draw->data + i : NULL, &range, (u8 *)c->y->data + i);
    }
}

static void quantize_pieces(void *arg, int64_t begin, int64_t end, int worker)
{
    const Quantizer *c = arg;
    const int64_t n = tensor_elements(c->x);
    Piece p;
    (void)worker;
    for (p.first = begin * BLOCK; p.first < n && p.first < end * BLOCK; p.first += p.n) {
        const int64_t rest = (end * BLOCK < n ? end * BLOCK : n) - p.first;
        p.n = rest < BLOCK ? rest : BLOCK;
        if (c->shares)
            p.n = scale_layout_run(&c->layout, p.first, p.n, p.at);
        else
            scale_layout_indices(&c->layout, p.first, p.n, p.at);
        quantize_piece(c, &p);
    }
}

DType quotient_type(const QuantizeAttr *at, DType scale)
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
    const bool integer = s->type->dtype == I32 && !at->precision;
    Quantizer c = { .loops = kernels_codes(e->kernels),
                    .layout = scale_layout_of(x->type, s->type, at->axis, at->block_size),
                    .x = x,
                    .draw = eval_has(e, QUANTIZE_DRAW) ? e->in[QUANTIZE_DRAW] : NULL,
                    .y = eval_out(e, 0),
                    .scale = integer ? NULL : eval_f32(e, 1),
                    .scale_f64 = integer ? eval_f64(e, 1) : NULL,
                    .zero = eval_has(e, 2) ? eval_f32(e, 2) : NULL,
                    .quotient = quotient_type(at, s->type->dtype),
                    .rounding = at->rounding,
                    .saturate = at->saturate };
    c.shares = scale_layout_shares(&c.layout);
    code_limits(c.y->type->dtype, at->least, at->largest, &c.lo, &c.hi);
    eval_parallel(e, (tensor_elements(x) + BLOCK - 1) / BLOCK, makes_bytes(&c) ? quantize_bytes : quantize_pieces, &c);
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

/* One call of dequantize_linear. */
typedef struct Dequantizer {
    ScaleLayout layout;
    const Tensor *x;
    Tensor *y;
    RoundingCounts *counts;
    const f32 *scale, *zero_f;
    const i64 *zero_i;
    bool floats;
} Dequantizer;

/* (x - z) * s: the difference of integers is exact, then one product in f32. */
static void dequantize_block(const Dequantizer *c, int64_t first, int64_t n)
{
    f32 v[BLOCK];
    i64 code[BLOCK];
    int64_t at[BLOCK];
    scale_layout_indices(&c->layout, first, n, at);
    if (c->floats) {
        load_f32(v, c->x, first, n);
        for (int64_t i = 0; i < n; i++)
            v[i] = dequantize_f32(v[i], c->scale[at[i]], c->zero_f ? c->zero_f[at[i]] : 0);
    } else {
        load_i64(code, c->x, first, n);
        for (int64_t i = 0; i < n; i++)
            v[i] = dequantize_i64(code[i], c->scale[at[i]], c->zero_i ? c->zero_i[at[i]] : 0);
    }
    store_f32(c->y, first, v, n);
    rounding_count_f32(c->counts, c->y, first, v, n);
}

static void dequantize_blocks(void *arg, int64_t begin, int64_t end, int worker)
{
    const Dequantizer *c = arg;
    const int64_t n = tensor_elements(c->x);
    (void)worker;
    for (int64_t first = begin * BLOCK; first < n && first < end * BLOCK; first += BLOCK)
        dequantize_block(c, first, n - first < BLOCK ? n - first : BLOCK);
}

static Status eval_dequantize_linear(Eval *e)
{
    const DequantizeAttr *at = e->attr;
    const Tensor *x = e->in[0];
    const bool floats = dtype_is_float(x->type->dtype), has_zero = eval_has(e, 2);
    Dequantizer c = { .layout = scale_layout_of(x->type, e->in[1]->type, at->axis, at->block_size),
                      .x = x,
                      .y = eval_out(e, 0),
                      .counts = eval_options(e)->rounding,
                      .scale = eval_f32(e, 1),
                      .zero_f = has_zero && floats ? eval_f32(e, 2) : NULL,
                      .zero_i = has_zero && !floats ? eval_i64(e, 2) : NULL,
                      .floats = floats };
    eval_parallel(e, (tensor_elements(x) + BLOCK - 1) / BLOCK, dequantize_blocks, &c);
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
static const DType code_types[] = { U8,     I8,         U16,    I16,        U4,     I4,     U2,     I2,
                                    F8E4M3, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F4E2M1, F6E2M3, F6E3M2, I32 };
static const DType real_types[] = { F32, F16, BF16 };
static const DType scale_types[] = { F32, F16, BF16, F8E8M0 };

static Node *sample_zero(Build *b, Rng *rng, DType code, const Draw *d)
{
    const bool floats = dtype_is_float(code);
    const bool sign = dtype_class(code) == CLASS_INT;
    return sample_tensor(b, rng, code, d->scale_rank, d->scale_dims, floats ? 0 : sign ? -2 : 0, floats ? 0 : 1);
}

/* Attributes of ours: of integer codes each rounding, narrow codes, masks; of floats rounding by chance. */
static void sample_ours(QuantizeAttr *at, DType code, Rng *rng, int variant)
{
    double lo, hi;
    if (dtype_is_float(code) && variant % 2)
        at->rounding = ROUND_SR;
    if (dtype_is_float(code) || variant % 3 == 0)
        return;
    code_range(code, &lo, &hi);
    at->rounding = variant / 3 % ROUNDINGS;
    at->mask = (int)rng_below(rng, 3);
    at->learned = rng_below(rng, 2);
    at->gain = at->learned ? 0.25f : 1;
    at->ends = at->learned && rng_below(rng, 2);
    at->learned_zero = at->learned && rng_below(rng, 2);
    if (rng_below(rng, 2)) {
        at->least = (int64_t)lo + (lo < 0);
        at->largest = (int64_t)hi;
    }
}

static Node *sample_quantize_linear(Build *b, Rng *rng, int variant)
{
    const Draw d = draw_shapes(rng, variant);
    const DType code = code_types[variant % (int)COUNT(code_types)];
    const DType scale = scale_types[rng_below(rng, COUNT(scale_types))];
    const DType data = variant % 7 == 6 ? I32 : real_types[rng_below(rng, COUNT(real_types))];
    const bool zero = rng_below(rng, 2);
    QuantizeAttr at = { .axis = d.axis,
                        .block_size = d.block,
                        .output_dtype = zero ? 0 : (int)code + 1,
                        .precision = rng_below(rng, 4) ? 0 : (int)F32 + 1,
                        .saturate = rng_below(rng, 2),
                        .gain = 1 };
    Node *ins[4] = { sample_tensor(b, rng, data, d.rank, d.dims, -9, 9),
                     sample_tensor(b, rng, scale, d.scale_rank, d.scale_dims, 0.25, 2) };
    if (zero)
        ins[2] = sample_zero(b, rng, code, &d);
    sample_ours(&at, code, rng, variant);
    if (at.rounding == ROUND_SR)
        ins[QUANTIZE_DRAW] = sample_tensor(b, rng, F32, d.rank, d.dims, 0, 0.999);
    return build_node(b, OP_quantize_linear, &at, at.rounding == ROUND_SR ? 4 : zero ? 3 : 2, ins);
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
    if (n->n_in > QUANTIZE_DRAW && in(n, QUANTIZE_DRAW))
        reach_axes(to, arena, &to->in[QUANTIZE_DRAW], y->rank, 0);
    for (int i = 1; i < n->n_in && i < QUANTIZE_DRAW; i++)
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
    .max_in = 4,
    .attrs = quantize_attrs,
    .infer = infer_quantize_linear,
    .eval = eval_quantize_linear,
    .open = open_quantize_linear,
    .sample = sample_quantize_linear,
    .n_variants = 96,
    .adjoint = adjoint_quantize_linear,
    .differentiable = 7,
    .gives_codes = 1,
    .access.kind = ACCESS_ROW,
    .access.iterate = iterate_quantize,
    .access.kernels = kernels_quantize_linear,
    .amp = { AMP_X, AMP_X, 1u << 1 | 1u << QUANTIZE_DRAW, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER }, .quantizes = true },
    .onnx = { "QuantizeLinear", 28, NULL },
};

const OpDef op_dequantize_linear = {
    .name = "dequantize_linear",
    .min_in = 2,
    .max_in = 3,
    .attrs = dequantize_attrs,
    .infer = infer_dequantize_linear,
    .eval = eval_dequantize_linear,
    .open = open_dequantize_linear,
    .sample = sample_dequantize_linear,
    .n_variants = 48,
    .adjoint = adjoint_dequantize_linear,
    .open_adjoint = true,
    .differentiable = 3,
    .access.kind = ACCESS_ROW,
    .access.iterate = iterate_dequantize,
    .access.kernels = kernels_dequantize_linear,
    .amp = { AMP_X, AMP_X, 1u << 1, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER }, .dequantizes = true },
    .onnx = { "DequantizeLinear", 28, NULL },
};
