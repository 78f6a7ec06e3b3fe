/* Quantizers and their gradients against stored answers of PyTorch and Brevitas (tests/data/quantizers.py). */
#include "ops/control/reverse.h"
#include "ops/quant/quantize.h"
#include "support/calls.h"

enum { ROWS = 3, COLS = 8, N = ROWS * COLS };

/* One call: its result is of numbers again. */
typedef struct Stored {
    const char *what;
    int axis, n_scales; /* axis -1: one scale */
    double s[ROWS], z[ROWS];
    int least, largest;
    float gain;
    bool learned;
    double x[N], dy[N], y[N], dx[N], ds[ROWS];
} Stored;

#include "data/quantizers.h"

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

static int compare(Context *c, const Stored *k)
{
    const int64_t full[] = { ROWS, COLS }, many[] = { k->n_scales };
    const DType code = k->least < 0 ? I8 : U8;
    const QuantizeAttr attr = { .axis = k->axis < 0 ? 1 : k->axis,
                                .saturate = true,
                                .least = k->least,
                                .largest = k->largest,
                                .learned = k->learned,
                                .gain = k->gain };
    const DequantizeAttr back = { .axis = attr.axis };
    Build b = fresh(c);
    Node *x = constant_of(&b, F32, 2, full, k->x), *dy = constant_of(&b, F32, 2, full, k->dy);
    Node *s = constant_of(&b, F32, 1, many, k->s), *z = constant_of(&b, code, 1, many, k->z), *of[] = { x, s };
    Node *y = CALL_ATTR(&b, dequantize_linear, back, CALL_ATTR(&b, quantize_linear, attr, x, s, z), s, z);
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 1 + k->learned, .x = of, .narrow = true };
    ReverseResult r;
    Tensor *out[3];
    assert_int_equal(b.status, OK);
    assert_int_equal(reverse(&b, &q, &c->arena, &r), OK);
    graph_return(b.graph, 3, (Node *[]){ y, r.dx[0], k->learned ? r.dx[1] : s }, NULL);
    assert_int_equal(evaluate(b.graph, NULL, &c->heap, NULL, out), OK);
    const int bad = differs(k, "number", out[0], k->y, 1.2e-7, 0) + differs(k, "gradient", out[1], k->dx, 0, 0) +
                    differs(k, "scale", out[2], k->ds, k->learned ? 5e-7 : 0, 4);
    for (int i = 0; i < 3; i++)
        tensor_drop(&c->heap, out[i]);
    return bad;
}

static Status all_stored(void *arg)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(stored); i++)
        bad += compare(arg, &stored[i]);
    print_message("%zu calls\n", COUNT(stored));
    assert_int_equal(bad, 0);
    return OK;
}

static void others_give_the_same(void **state)
{
    (void)state;
    with_context(all_stored);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(others_give_the_same) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
