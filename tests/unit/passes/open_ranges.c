/* Scales of what is at hand, written as rows: the bits of the word, for ranges of any size, empty ones, and those of
 * no numbers. */
#include "ops/quant/quantize.h"
#include "passes/engine/pass.h"
#include "support/calls.h"

enum { N = 4096 };

static double end_of(Rng *rng, int i)
{
    static const double special[] = { 0, -0.0, 0x1p-24, 0x1p-25, 0x1p-126, 0x1p-149, 3e38, INFINITY, 1, 255 };
    const double v = i % 3 ? ldexp(rng_unit(rng) + 0.5, (int)rng_range(rng, -140, 127)) : special[rng_below(rng, 10)];
    return rng_below(rng, 2) ? v : -v;
}

/* The least and the largest of some numbers: both none where one is none. */
static void fill(Tensor *lo, Tensor *hi, Rng *rng)
{
    for (int i = 0; i < N; i++) {
        const double a = end_of(rng, i), b = end_of(rng, i / 3), none = i % 97 ? 0 : (double)NAN;
        tensor_set_f64(lo, i, fmin(a, b) + none);
        tensor_set_f64(hi, i, fmax(a, b) + none);
    }
}

static void check(Context *c, RangeScaleAttr attr, Rng *rng)
{
    const int64_t n = N;
    const Type *type = type_tensor(&c->ir.types, F32, 1, &n);
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Node *ends[] = { graph_input(g, "lo", type), graph_input(g, "hi", type) };
    Tensor *lo = tensor_new(&c->arena, type), *hi = tensor_new(&c->arena, type), *want[2], *got[2];
    const Tensor *in[] = { lo, hi };
    Build b = build_at_end(g);
    fill(lo, hi, rng);
    Node *both = build_node_n(&b, OP_range_scale, &attr, 2, ends, 2);
    assert_int_equal(b.status, OK);
    const int results = attr.symmetric ? 1 : 2;
    graph_return(g, results, (Node *[]){ build_part(&b, both, 0), attr.symmetric ? NULL : build_part(&b, both, 1) },
                 NULL);
    assert_int_equal(evaluate(g, NULL, &c->heap, in, want), OK);
    assert_int_equal(pass_run(pass_find("open-ranges"), g, NULL), OK);
    assert_int_equal(pass_run(pass_find("drop-dead"), g, NULL), OK);
    for (Node *k = g->first; k; k = k->next)
        assert_true(k->op != OP_range_scale);
    assert_int_equal(evaluate(g, NULL, &c->heap, in, got), OK);
    for (int r = 0; r < results; r++) {
        for (int i = 0; i < N; i++)
            require(at(want[r], i) == at(got[r], i), "result %d of %g to %g is %.9g, not %.9g\n", r, at(lo, i),
                    at(hi, i), at(got[r], i), at(want[r], i));
        tensor_drop(&c->heap, want[r]);
        tensor_drop(&c->heap, got[r]);
    }
}

static Status all_have_the_bits(void *arg)
{
    Rng rng = { 11 };
    static const DType codes[] = { U8, I8, U16, I16 };
    for (int i = 0; i < 64; i++) {
        RangeScaleAttr at = { .symmetric = i & 1, .most = i & 2 ? 6 : 0, .to = (int)codes[i / 4 % 4] + 1 };
        if (i & 16) {
            at.least = codes[i / 4 % 4] == I8 || codes[i / 4 % 4] == I16 ? -7 : 0;
            at.largest = 7;
        }
        check(arg, at, &rng);
    }
    return OK;
}

static void rows_have_the_bits_of_the_word(void **state)
{
    (void)state;
    with_context(all_have_the_bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_have_the_bits_of_the_word) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
