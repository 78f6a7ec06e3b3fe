/* Quantizers and their gradients, scales of ranges, and orders of operations against stored answers of PyTorch, torchao and
 * Brevitas (tests/data/quantizers.py). */
#include <string.h>

#include "ops/control/reverse.h"
#include "ops/quant/quantize.h"
#include "ops/scalar.h"
#include "support/calls.h"

enum { ROWS = 3, COLS = 8, N = ROWS * COLS, SCALES = 6, GRID = 1024 };

/* One call: its result is of numbers again. */
typedef struct Stored {
    const char *what;
    int rounding, mask;
    int axis, block, n_scales; /* axis -1: one scale; block 0: one an index of the axis */
    double s[SCALES], z[SCALES];
    int least, largest;
    float gain;
    bool learned;
    bool strict; /* no gradient passes the first and the last code */
    double x[N], dy[N], y[N], dx[N], ds[SCALES];
} Stored;

/* The scale and the code of 0 of numbers from lo to hi. */
typedef struct Range {
    const char *what;
    float lo, hi;
    int least, largest, symmetric, pow2;
    double scale, zero;
} Range;

/* Of GRID half-steps of GRID scales, how many codes are not ours. */
typedef struct Order {
    const char *what;
    int z, least, largest, differ;
} Order;

#include "data/quantizers.h"

/* ---- calls ---- */

static Node *constant_of(Build *b, DType dtype, int rank, const int64_t *dims, const double *v)
{
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dtype, rank, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, v[i]);
    return build_const(b, t);
}

/* Whether elements are further off than so much of themselves, or of `most`: sums have another order. */
static int differs(const Stored *k, const char *what, const Tensor *got, const double *want, double tolerance,
                   double most)
{
    int bad = 0;
    for (int64_t i = 0; i < tensor_elements(got); i++)
        if (!(fabs(at(got, i) - (double)(float)want[i]) <= tolerance * fmax(most, fabs(want[i])))) {
            print_error("%s, codes %d to %d: %s %d is %.9g, not %.9g\n", k->what, k->least, k->largest, what, (int)i,
                        at(got, i), want[i]);
            bad = 1;
        }
    return bad;
}

/* Those that no gradient passes there, and ours does: at the first and the last code. */
static int pass_ends(const Stored *k, const Tensor *codes, Tensor *dx)
{
    int n = 0;
    for (int i = 0; i < N && k->strict; i++)
        if (k->dx[i] == 0 && (at(codes, i) == k->least || at(codes, i) == k->largest) &&
            at(dx, i) == (double)(float)k->dy[i]) {
            tensor_set_f64(dx, i, 0);
            n++;
        }
    return n;
}

static int compare(Context *c, const Stored *k, int *n_ends)
{
    const int64_t full[] = { ROWS, COLS }, many[] = { k->n_scales },
                  blocks[] = { ROWS, k->block ? COLS / k->block : 0 };
    const DType code = k->least < 0 ? I8 : U8;
    const int rank = k->block ? 2 : 1;
    const int64_t *dims = k->block ? blocks : many;
    const QuantizeAttr attr = { .axis = k->axis < 0 ? 1 : k->axis,
                                .block_size = k->block,
                                .saturate = true,
                                .least = k->least,
                                .largest = k->largest,
                                .rounding = k->rounding,
                                .mask = k->mask,
                                .learned = k->learned,
                                .gain = k->gain };
    const DequantizeAttr back = { .axis = attr.axis, .block_size = k->block };
    Build b = fresh(c);
    Node *x = constant_of(&b, F32, 2, full, k->x), *dy = constant_of(&b, F32, 2, full, k->dy);
    Node *s = constant_of(&b, F32, rank, dims, k->s), *z = constant_of(&b, code, rank, dims, k->z), *of[] = { x, s };
    Node *codes = CALL_ATTR(&b, quantize_linear, attr, x, s, z);
    Node *y = CALL_ATTR(&b, dequantize_linear, back, codes, s, z);
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 1 + k->learned, .x = of, .narrow = true };
    ReverseResult r;
    Tensor *out[4];
    assert_int_equal(b.status, OK);
    assert_int_equal(reverse(&b, &q, &c->arena, &r), OK);
    graph_return(b.graph, 4, (Node *[]){ y, r.dx[0], k->learned ? r.dx[1] : s, codes }, NULL);
    assert_int_equal(evaluate(b.graph, NULL, &c->heap, NULL, out), OK);
    *n_ends += pass_ends(k, out[3], out[1]);
    const int bad = differs(k, "number", out[0], k->y, 1.2e-7, 0) + differs(k, "gradient", out[1], k->dx, 1.2e-7, 0) +
                    differs(k, "scale", out[2], k->ds, k->learned ? 5e-7 : 0, fmax(4, k->largest));
    for (int i = 0; i < 4; i++)
        tensor_drop(&c->heap, out[i]);
    return bad;
}

static Status all_stored(void *arg)
{
    int bad = 0, n_ends = 0;
    for (size_t i = 0; i < COUNT(stored); i++)
        bad += compare(arg, &stored[i], &n_ends);
    print_message("%zu calls; %d gradients at the ends of codes pass here alone\n", COUNT(stored), n_ends);
    assert_int_equal(bad, 0);
    return OK;
}

static void others_give_the_same(void **state)
{
    (void)state;
    with_context(all_stored);
}

/* ---- ranges ---- */

static void ranges_have_the_scales_of_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ranges); i++) {
        const Range *r = &ranges[i];
        const f32 least = fminf(r->lo, 0), most = fmaxf(r->hi, 0), lo = (f32)r->least, hi = (f32)r->largest;
        const f32 s = r->symmetric ? symmetric_scale_f32(fmaxf(-least, most), hi, r->pow2)
                                   : affine_scale_f32(least, most, lo, hi, r->pow2);
        const f32 z = r->symmetric ? 0 : affine_zero_f32(least, s, lo, hi);
        require(fabs((double)s - r->scale) <= 1.2e-7 * r->scale && (double)z == r->zero,
                "%s, %g to %g: a scale of %.9g and %g, not %.9g and %g\n", r->what, (double)r->lo, (double)r->hi,
                (double)s, (double)z, r->scale, r->zero);
    }
}

/* ---- orders of operations ---- */

/* torch and torchao multiply by the reciprocal; Brevitas adds the zero point before it rounds. */
static f32 code_of_others(const Order *o, f32 x, f32 s)
{
    const f32 z = (f32)o->z, q = strncmp(o->what, "Brevitas", 8) ? rint_f32(x * (1 / s)) + z : rint_f32(x / s + z);
    return clamp_f32(q, (f32)o->least, (f32)o->largest);
}

/* What differs is known, and it is as much as they were seen to differ. */
static void orders_differ_as_much_as_is_stored(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(orders); k++) {
        const Order *o = &orders[k];
        int differ = 0;
        for (int j = 1; j <= GRID; j++)
            for (int i = -GRID / 2; i < GRID / 2; i++) {
                const f32 s = 0.01f * (f32)j, x = (f32)i * 0.5f * s;
                const f32 ours = quantize_f32(x, s, (f32)o->z, (f32)o->least, (f32)o->largest);
                differ += code_of_others(o, x, s) != ours;
            }
        print_message("%-18s %4d to %3d, 0 at %d: %6d of %d codes differ\n", o->what, o->least, o->largest, o->z,
                      differ, GRID * GRID);
        require(differ == o->differ, "%s: %d codes differ, not %d\n", o->what, differ, o->differ);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_give_the_same),
        cmocka_unit_test(ranges_have_the_scales_of_others),
        cmocka_unit_test(orders_differ_as_much_as_is_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
