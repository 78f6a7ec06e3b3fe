/* Quantizers over every 16-bit input, against a formula in f64; stochastic rounding over every draw; what comes back. */
#include "ops/quant/quantize.h"
#include "ops/scalar.h"
#include "support/calls.h"

enum { ALL = 1 << 16 };

/* ---- the formula ---- */

static double rounded_f64(int rounding, double v)
{
    switch (rounding) {
    case ROUND_RNE:
        return rint(v);
    case ROUND_HALF_UP:
        return floor(v + 0.5);
    case ROUND_HALF_DOWN:
        return ceil(v - 0.5);
    case ROUND_CEIL:
        return ceil(v);
    case ROUND_FLOOR:
        return floor(v);
    case ROUND_ZERO:
        return trunc(v);
    default:
        return v < 0 ? floor(v) : ceil(v);
    }
}

/* The quotient is an f32: rounding it from f64 is rounding it once. */
static double code_f64(double x, double s, double z, double lo, double hi, int rounding)
{
    const double v = (double)(float)(x / s), q = isnan(v) ? z : rounded_f64(rounding, v) + z;
    return q < lo ? lo : q > hi ? hi : q;
}

/* ---- every input ---- */

/* Every value of a 16-bit float type, NaN, infinities, zeros and subnormal ones among them. */
static Node *every_value(Build *b, DType dtype)
{
    Tensor *t = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, dtype, ALL));
    for (int i = 0; i < ALL; i++)
        ((uint16_t *)t->data)[i] = (uint16_t)i;
    return build_const(b, t);
}

typedef struct Format {
    DType code;
    int64_t least, largest;
} Format;

static const Format formats[] = {
    { U8, 0, 0 }, { I8, 0, 0 },  { I8, -127, 127 }, { U16, 0, 0 }, { I16, 0, 0 }, { U4, 0, 0 },
    { I4, 0, 0 }, { I8, -7, 7 }, { U8, 0, 15 },     { U2, 0, 0 },  { I2, -1, 1 }, { I32, 0, 0 },
};
static const double scales[] = { 0.125, 1, 0.1, 3e-5, 0x1p-24, 0x1p-120, 1e30 };

static void check_codes(Context *c, Build *b, Node *x, const Format *f, double s, int rounding)
{
    const double zero = f->code == I32 || f->least < 0 ? 0 : f->code == I4 || f->code == I2 ? -1 : 3;
    const QuantizeAttr attr = {
        .axis = 1, .saturate = true, .least = f->least, .largest = f->largest, .rounding = rounding, .gain = 1
    };
    Node *scale = build_scalar(b, F32, s), *z = build_scalar(b, f->code, zero);
    Tensor *got = value_of(c, CALL_ATTR(b, quantize_linear, attr, x, scale, z), NULL);
    const double wide = at(constant(scale), 0);
    double lo, hi;
    code_limits(f->code, f->least, f->largest, &lo, &hi);
    for (int i = 0; i < ALL; i++) {
        const double from = at(constant(x), i), want = code_f64(from, wide, zero, lo, hi, rounding);
        if (at(got, i) != want)
            require(false, "%s by %g, %s: %.9g has the code %g, not %g\n", dtype_name(f->code), s,
                    quant_roundings[rounding], from, at(got, i), want);
    }
    tensor_drop(&c->heap, got);
}

static Status every_code(void *arg)
{
    Context *c = arg;
    static const DType types[] = { BF16, F16 };
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t f = 0; f < COUNT(formats); f++)
            for (int r = 0; r < ROUNDINGS; r++)
                for (size_t s = r == ROUND_RNE ? 0 : 5 - (size_t)r % 3; s < COUNT(scales) && r != ROUND_SR; s++) {
                    Build b = fresh(c);
                    check_codes(c, &b, every_value(&b, types[t]), &formats[f], scales[s], r);
                }
    for (int r = 0; r < ROUNDINGS; r++) { /* and ties: half-steps of a grid */
        Build b = fresh(c);
        if (r != ROUND_SR)
            check_codes(c, &b, every_value(&b, F16), &formats[1], 2, r);
    }
    return OK;
}

static void every_input_has_its_code(void **state)
{
    (void)state;
    with_context(every_code);
}

/* ---- there and back ---- */

static void check_return(Context *c, const Format *f, double s, double zero)
{
    Build b = fresh(c);
    double lo, hi;
    code_limits(f->code, f->least, f->largest, &lo, &hi);
    const int64_t n = (int64_t)(hi - lo) + 1;
    Tensor *codes = tensor_new(b.graph->arena, type_vector(&c->ir.types, f->code, n));
    for (int64_t i = 0; i < n; i++)
        tensor_set_f64(codes, i, lo + (double)i);
    const QuantizeAttr attr = { .axis = 1, .saturate = true, .least = f->least, .largest = f->largest, .gain = 1 };
    Node *q = build_const(&b, codes), *scale = build_scalar(&b, F32, s), *z = build_scalar(&b, f->code, zero);
    Node *x = CALL(&b, dequantize_linear, q, scale, z);
    Node *again = CALL_ATTR(&b, quantize_linear, attr, x, scale, z), *both[] = { x, again };
    Tensor *got = value_of(c, build_tuple(&b, 2, both), NULL);
    for (int64_t i = 0; i < n; i++) {
        const double v = (double)(float)((at(codes, i) - zero) * at(constant(scale), 0));
        require(at(got->items[0], i) == v, "code %g by %g is %.9g, not %.9g\n", at(codes, i), s, at(got->items[0], i),
                v);
        require(at(got->items[1], i) == at(codes, i), "code %g by %g comes back as %g\n", at(codes, i), s,
                at(got->items[1], i));
    }
    tensor_drop(&c->heap, got);
}

static Status all_return(void *arg)
{
    static const double some[] = { 0.125, 0.1, 3e-5, 1.0 / 3, 0x1p-100, 0x1.fffffep10, 7e-3 };
    for (size_t f = 0; f + 1 < COUNT(formats); f++)
        for (size_t s = 0; s < COUNT(some); s++) {
            check_return(arg, &formats[f], some[s], 0);
            check_return(arg, &formats[f], some[s], formats[f].least < 0 ? 0 : 1);
        }
    return OK;
}

/* Q(DQ(q)) is q. */
static void codes_come_back(void **state)
{
    (void)state;
    with_context(all_return);
}

/* ---- scales of ranges ---- */

/* What stands at the end of a range has the last code before anything is held there; below 2^-24 a scale is 1. */
static void ends_of_ranges_have_the_last_codes(void **state)
{
    (void)state;
    static const f32 last[] = { 127, 7, 1, 32767, 255, 15 };
    for (size_t k = 0; k < COUNT(last); k++)
        for (u32 bits = 0; bits < 0x7f800000u; bits += 0x3331) {
            const f32 most = float_of(bits), s = symmetric_scale_f32(most, last[k], 0);
            if (most < SCALE_LEAST)
                require(s == 1, "the scale of %g is %g\n", (double)most, (double)s);
            else
                require(rint_f32(most / s) == last[k] && rint_f32(-most / s) == -last[k], "%g has the code %g\n",
                        (double)most, (double)(most / s));
        }
}

typedef struct Range {
    const char *what;
    double lo, hi;
    int symmetric, pow2;
    int64_t least, largest;
    DType code;
    double scale, zero;
    double most;
} Range;

static const Range ranges[] = {
    { "symmetric", -3, 2, 1, 0, -127, 127, I8, 3.0 / 127, 0 },
    { "of the type", -3, 2, 1, 0, 0, 0, I8, 3.0 / 127, 0 },
    { "unsigned", 0, 2, 1, 0, 0, 0, U8, 2.0 / 255, 0 },
    { "a power of two", -3, 2, 1, 1, -127, 127, I8, 4.0 / 128, 0 },
    { "one already", -4, 2, 1, 1, 0, 0, I8, 4.0 / 128, 0 },
    { "two sides", -1, 2, 0, 0, 0, 0, U8, 3.0 / 255, 85 },
    { "two sides, signed", -1, 2, 0, 0, 0, 0, I8, 3.0 / 255, -43 },
    { "above 0", 1, 2, 0, 0, 0, 0, U8, 2.0 / 255, 0 },
    { "below 0", -2, -1, 0, 0, 0, 0, U8, 2.0 / 255, 255 },
    { "a power of two of two sides", -1, 2, 0, 1, 0, 0, U8, 1.0 / 64, 64 },
    { "nothing", 0, 0, 0, 0, 0, 0, U8, 1, 0 },
    { "as good as nothing", -0x1p-25, 0x1p-26, 1, 0, -7, 7, I8, 1, 0 },
    { "just something", -0x1p-24, 0, 1, 0, -1, 1, I8, 0x1p-24, 0 },
    { "no number", NAN, 1, 0, 0, 0, 0, I8, 1, -128 },
    { "none on the other side", -1, NAN, 1, 0, 0, 0, I8, 1, 0 },
    { "without end", -1, INFINITY, 0, 0, 0, 0, U8, 1, 1 },
    { "beyond f32", -3e38, 3e38, 0, 0, 0, 0, U8, 6e38 / 255, 128 },
    { "beyond what may be", 0, 20, 0, 0, 0, 0, U8, 6.0 / 255, 0, 6 },
    { "within what may be", 0, 2, 0, 0, 0, 0, U8, 2.0 / 255, 0, 6 },
    { "nothing, bounded", 0, 0, 0, 0, 0, 0, U8, 6.0 / 255, 0, 6 },
    { "signed and bounded", 0, 20, 1, 0, -127, 127, I8, 6.0 / 127, 0, 6 },
    { "bounded, no number", 0, NAN, 0, 0, 0, 0, U8, 6.0 / 255, 0, 6 },
};

static Status all_ranges(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(ranges); i++) {
        const Range *r = &ranges[i];
        Build b = fresh(c);
        const RangeScaleAttr attr = { r->least, r->largest, r->symmetric, r->pow2, (int)r->code + 1, (f32)r->most };
        Node *in[] = { build_scalar(&b, F32, r->lo), build_scalar(&b, F32, r->hi) };
        Tensor *got = value_of(c, build_node_n(&b, OP_range_scale, &attr, 2, in, 2), NULL);
        require((float)at(got->items[0], 0) == (float)r->scale && at(got->items[1], 0) == r->zero,
                "%s: a scale of %.9g and %g, not %.9g and %g\n", r->what, at(got->items[0], 0), at(got->items[1], 0),
                r->scale, r->zero);
        tensor_drop(&c->heap, got);
    }
    return OK;
}

static void ranges_have_scales(void **state)
{
    (void)state;
    with_context(all_ranges);
}

/* ---- stochastic rounding ---- */

/* Of the 2^24 numbers that can be drawn, as many lead up as the fraction says. */
static void draws_are_unbiased(void **state)
{
    (void)state;
    static const f32 numbers[] = { 0.3f, -0.7f, 100.123f, -126.5f, 5, 0x1p-20f, 126.99999f };
    for (size_t k = 0; k < COUNT(numbers); k++) {
        const f32 v = numbers[k], low = floor_f32(v);
        int64_t up = 0;
        for (u32 i = 0; i < 1u << 24; i++) {
            const f32 r = stochastic_f32(v, philox_uniform(i << 8));
            up += r != low;
            if (r != low && r != low + 1)
                require(false, "%g is rounded to %g\n", (double)v, (double)r);
        }
        const double wanted = ((double)v - (double)low) * 0x1p24;
        require(fabs((double)up - wanted) < 1 && (wanted != floor(wanted) || (double)up == wanted),
                "%g goes up %g times of %g\n", (double)v, (double)up, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_has_its_code),
        cmocka_unit_test(codes_come_back),
        cmocka_unit_test(ends_of_ranges_have_the_last_codes),
        cmocka_unit_test(ranges_have_scales),
        cmocka_unit_test(draws_are_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
