/* What comes back through quantizers, against formulas in f64: masks, and LSQ's gradient of the scale for one scale, one an
 * index of an axis, and one a block; codes that are integers, and floats of few bits. */
#include "ops/control/reverse.h"
#include "ops/quant/quantize.h"
#include "support/calls.h"

enum { ROWS = 6, COLS = 10, BLOCK = 4, BLOCKS = 3, N = ROWS * COLS };

typedef enum Grain { TENSOR, FIRST_AXIS, LAST_AXIS, BLOCKS_OF_ROWS, GRAINS } Grain;

/* Floats by their definition: digits of the significand, the exponent of the least number above 0, the largest number. */
typedef struct FloatCodes {
    DType code;
    int digits, low;
    double most;
} FloatCodes;

static const FloatCodes floats[] = { { F8E4M3, 4, -9, 448 },
                                     { F8E5M2, 3, -16, 57344 },
                                     { F4E2M1, 2, -1, 6 },
                                     { F6E2M3, 4, -3, 7.5 },
                                     { F6E3M2, 3, -4, 28 } };

typedef struct Trial {
    Context *c;
    Grain grain;
    QuantizeAttr attr;
    DType code;
    const FloatCodes *floats; /* null: codes are integers */
    bool zero, back;          /* back: by way of dequantize_linear */
    Tensor *x, *s, *z, *draw, *dy, *dx, *ds;
} Trial;

static int64_t scales_of(Grain g)
{
    return g == TENSOR ? 1 : g == FIRST_AXIS ? ROWS : g == LAST_AXIS ? COLS : (int64_t)ROWS * BLOCKS;
}

static int64_t scale_at(Grain g, int i)
{
    const int row = i / COLS, col = i % COLS;
    return g == TENSOR ? 0 : g == FIRST_AXIS ? row : g == LAST_AXIS ? col : row * BLOCKS + col / BLOCK;
}

static Tensor *new_scales(Trial *t, DType dtype)
{
    const int64_t n = scales_of(t->grain), blocks[] = { ROWS, BLOCKS };
    Types *types = &t->c->ir.types;
    return tensor_new(&t->c->arena, t->grain == TENSOR           ? type_scalar(types, dtype)
                                    : t->grain == BLOCKS_OF_ROWS ? type_tensor(types, dtype, 2, blocks)
                                                                 : type_vector(types, dtype, n));
}

/* Numbers on a grid of quarter-steps, so that many tie, and beyond both ends of the codes. */
static void fill(Trial *t, Rng *rng)
{
    const int64_t dims[] = { ROWS, COLS };
    const Type *full = type_tensor(&t->c->ir.types, F32, 2, dims);
    t->x = tensor_new(&t->c->arena, full);
    t->dy = tensor_new(&t->c->arena, full);
    t->draw = tensor_new(&t->c->arena, full);
    t->s = new_scales(t, F32);
    t->z = new_scales(t, t->code);
    for (int64_t i = 0; i < scales_of(t->grain); i++) {
        tensor_set_f64(t->s, i, rng_below(rng, 2) ? 0.25 : 0.1 + 0.3 * rng_unit(rng));
        tensor_set_f64(t->z, i, t->zero ? (double)rng_below(rng, 3) : 0);
    }
    for (int i = 0; i < N; i++) {
        const double s = tensor_get_f64(t->s, scale_at(t->grain, i));
        const double v = rng_below(rng, 3) ? (double)rng_range(rng, -48, 48) / 4 : 20 * rng_unit(rng) - 10;
        const double reach = t->floats ? t->floats->most / (i % 2 ? 9 : 900) : 1;
        tensor_set_f64(t->x, i, i == 7 ? NAN : i == 8 ? INFINITY : v * s * reach);
        tensor_set_f64(t->dy, i, 2 * rng_unit(rng) - 1);
        tensor_set_f64(t->draw, i, (double)rng_below(rng, 1 << 24) * 0x1p-24);
    }
}

static Status run(Trial *t)
{
    Build b = fresh(t->c);
    Node *x = build_const(&b, t->x), *s = build_const(&b, t->s), *z = t->zero ? build_const(&b, t->z) : NULL;
    Node *dy = build_const(&b, t->dy), *draws = t->attr.rounding == ROUND_SR ? build_const(&b, t->draw) : NULL;
    Node *y = build_node(&b, OP_quantize_linear, &t->attr, draws ? 4 : 3, (Node *[]){ x, s, z, draws });
    const DequantizeAttr as = { .axis = t->attr.axis, .block_size = t->attr.block_size };
    if (t->back)
        y = build_node(&b, OP_dequantize_linear, &as, 3, (Node *[]){ y, s, z });
    Node *of[] = { x, s };
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 2, .x = of, .narrow = true };
    ReverseResult r;
    Tensor *out[2];
    TRY(b.status);
    TRY(reverse(&b, &q, &t->c->arena, &r));
    assert_int_equal(r.n_stops, !t->attr.learned); /* where numbers become codes */
    assert_true(t->attr.learned == (r.dx[1] != NULL));
    Node *results[] = { r.dx[0], r.dx[1] ? r.dx[1] : s };
    graph_return(b.graph, 2, results, NULL);
    TRY(evaluate(b.graph, NULL, &t->c->heap, NULL, out));
    t->dx = out[0];
    t->ds = out[1];
    assert_true(t->dx->type == t->x->type && t->ds->type == t->s->type);
    return OK;
}

/* The nearest number of so many digits, of two that are as near the one whose last digit is 0. */
static double nearest_float(const FloatCodes *f, double v)
{
    int e;
    (void)frexp(v, &e);
    const double step = ldexp(1, e - f->digits > f->low ? e - f->digits : f->low), r = rint(v / step) * step;
    return isfinite(v) ? fmax(-f->most, fmin(r, f->most)) : v;
}

/* The code before it is held between the ends, without the zero point. */
static double rounded_f64(const Trial *t, int i, double v)
{
    const double low = floor(v);
    if (t->floats)
        return nearest_float(t->floats, v);
    switch (t->attr.rounding) {
    case ROUND_RNE:
        return rint(v);
    case ROUND_SR:
        return low + (at(t->draw, i) < (double)((float)v - (float)low));
    case ROUND_HALF_UP:
        return floor(v + 0.5);
    case ROUND_HALF_DOWN:
        return ceil(v - 0.5);
    case ROUND_CEIL:
        return ceil(v);
    case ROUND_FLOOR:
        return low;
    case ROUND_ZERO:
        return trunc(v);
    default:
        return v < 0 ? low : ceil(v);
    }
}

static int compare(const Trial *t)
{
    double lo, hi, sum[N] = { 0 }, size[N] = { 0 }, stopped = 0;
    int bad = 0;
    for (int i = 0; i < N; i++) /* a NaN anywhere shows wherever nothing passes */
        stopped = isnan(at(t->x, i)) ? NAN : stopped;
    code_limits(t->code, t->attr.least, t->attr.largest, &lo, &hi);
    for (int i = 0; i < N; i++) {
        const int64_t k = scale_at(t->grain, i);
        const double z = t->zero ? at(t->z, k) : 0, dy = at(t->dy, i);
        const double v = (double)(float)(at(t->x, i) / at(t->s, k)), r = rounded_f64(t, i, v);
        const double seen = t->floats || t->attr.mask == MASK_BY_VALUE ? v : r, least = lo - z, most = hi - z;
        const bool outside = seen < least || seen > most;
        const double want = t->attr.mask == MASK_NONE ? dy : isnan(v) || outside ? stopped : dy;
        const double slope = seen < least ? least : seen > most ? most : r - v;
        sum[k] += dy * slope * (double)t->attr.gain;
        size[k] += fabs(dy * slope * (double)t->attr.gain);
        if (!(at(t->dx, i) == want || (isnan(want) && isnan(at(t->dx, i)))))
            print_error("grain %d, %s, mask %s: at %g (v %g) %g comes back, not %g\n", t->grain,
                        quant_roundings[t->attr.rounding], quant_masks[t->attr.mask], at(t->x, i), v, at(t->dx, i),
                        want),
                bad = 1;
    }
    for (int64_t k = 0; k < scales_of(t->grain) && t->attr.learned; k++)
        if (!(fabs(at(t->ds, k) - sum[k]) <= 1e-6 * size[k]) && !(isnan(sum[k]) && isnan(at(t->ds, k))))
            print_error("grain %d, %s, mask %s: scale %d has %.9g, not %.9g\n", t->grain,
                        quant_roundings[t->attr.rounding], quant_masks[t->attr.mask], (int)k, at(t->ds, k), sum[k]),
                bad = 1;
    return bad;
}

static Status check(Trial *t, Rng *rng, int *bad)
{
    fill(t, rng);
    TRY(run(t));
    *bad += compare(t);
    tensor_drop(&t->c->heap, t->dx);
    tensor_drop(&t->c->heap, t->ds);
    return OK;
}

static Status all_come_back(void *arg)
{
    Context *c = arg;
    Rng rng = { 5 };
    int bad = 0;
    for (int i = 0; i < GRAINS * ROUNDINGS * 3 * 4; i++) {
        Trial t = { .c = c, .grain = i % GRAINS, .code = i % 5 == 4 ? U8 : I8, .zero = i % 3 == 2, .back = i % 2 };
        t.attr = (QuantizeAttr){ .axis = t.grain == FIRST_AXIS ? 0 : 1,
                                 .block_size = t.grain == BLOCKS_OF_ROWS ? BLOCK : 0,
                                 .output_dtype = (int)t.code + 1,
                                 .saturate = true,
                                 .least = t.code == I8 ? -7 : 0,
                                 .largest = t.code == I8 ? 7 : 15,
                                 .rounding = i / GRAINS % ROUNDINGS,
                                 .mask = i / (GRAINS * ROUNDINGS) % 3,
                                 .learned = i % 7 != 6,
                                 .gain = i % 3 ? 1 : 0.125f };
        TRY(check(&t, &rng, &bad));
    }
    assert_int_equal(bad, 0);
    return OK;
}

static Status all_floats_come_back(void *arg)
{
    Rng rng = { 9 };
    int bad = 0;
    for (int i = 0; i < (int)COUNT(floats) * GRAINS * 3 * 4; i++) {
        const FloatCodes *f = &floats[i % (int)COUNT(floats)];
        Trial t = { .c = arg, .grain = i % GRAINS, .code = f->code, .floats = f, .back = i % 2 };
        t.attr = (QuantizeAttr){ .axis = t.grain == FIRST_AXIS ? 0 : 1,
                                 .block_size = t.grain == BLOCKS_OF_ROWS ? BLOCK : 0,
                                 .output_dtype = (int)t.code + 1,
                                 .saturate = true,
                                 .mask = i % 3,
                                 .learned = i % 7 != 6,
                                 .gain = i % 3 ? 1 : 0.125f };
        TRY(check(&t, &rng, &bad));
    }
    assert_int_equal(bad, 0);
    return OK;
}

static void gradients_are_as_stated(void **state)
{
    (void)state;
    with_context(all_come_back);
}

static void gradients_of_floats_are_as_stated(void **state)
{
    (void)state;
    with_context(all_floats_come_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gradients_are_as_stated),
                                        cmocka_unit_test(gradients_of_floats_are_as_stated) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
