/* What the ops that draw give: the same numbers for the same address, NumPy's where asked, the right distributions. */
#include "ops/random/random_draws.h"

#include <math.h>

#include "ir/text/parse.h"
#include "testing.h"

/* The first result of one call without constants folded away; held once. */
static Tensor *draw(Context *c, Op op, const void *attr, Node *const *ins, int n_in, Graph *g, const EvalOptions *o)
{
    Build b = build_at_end(g);
    Node *y = build_part(&b, build_node_n(&b, op, attr, n_in, ins, op == OP_dropout ? 2 : 1), op == OP_dropout ? 1 : 0);
    assert_int_equal(b.status, OK);
    graph_return(g, 1, &y, NULL);
    Tensor *out[1];
    assert_int_equal(evaluate(g, o, &c->heap, NULL, out), OK);
    return out[0];
}

static Tensor *draw_shape(Context *c, Op op, int64_t n, float first, float second, DType dtype, int64_t stream,
                          const EvalOptions *o)
{
    const RandomAttr at = {
        .shape = { 1, &n }, .dtype = (int)dtype + 1, .first = first, .second = second, .seed = NAN, .stream = stream
    };
    return draw(c, op, &at, NULL, 0, graph_new(&c->ir, &c->arena, "f"), o);
}

static Status address(void *arg)
{
    Context *c = arg;
    const EvalOptions a = { .seed = 7 }, later = { .seed = 7, .step = 1 }, other = { .seed = 8 };
    Tensor *few = draw_shape(c, OP_random_normal, 13, 0, 1, F32, 3, &a),
           *many = draw_shape(c, OP_random_normal, 64, 0, 1, F32, 3, &a),
           *step = draw_shape(c, OP_random_normal, 64, 0, 1, F32, 3, &later),
           *seed = draw_shape(c, OP_random_normal, 64, 0, 1, F32, 3, &other),
           *stream = draw_shape(c, OP_random_normal, 64, 0, 1, F32, 4, &a);
    assert_memory_equal(few->data, many->data, few->bytes); /* an element's number does not depend on how many follow */
    assert_memory_not_equal(many->data, step->data, many->bytes);
    assert_memory_not_equal(many->data, seed->data, many->bytes);
    assert_memory_not_equal(many->data, stream->data, many->bytes);
    Tensor *all[] = { few, many, step, seed, stream };
    for (size_t i = 0; i < COUNT(all); i++)
        tensor_drop(&c->heap, all[i]);
    return OK;
}

static void numbers_have_an_address(void **state)
{
    (void)state;
    with_context(address);
}

/* Mean and variance of n draws, which must be within five standard errors. */
static void check_moments(const Tensor *t, double mean, double variance, double fourth)
{
    const int64_t n = tensor_elements(t);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = tensor_get_f64(t, i) - mean;
        sum += d;
        squares += d * d;
    }
    assert_true(fabs(sum / (double)n) < 5 * sqrt(variance / (double)n));
    assert_true(fabs(squares / (double)n - variance) < 5 * sqrt((fourth - variance * variance) / (double)n));
}

static Status distributions(void *arg)
{
    Context *c = arg;
    const DType types[] = { F32, F64 };
    for (int i = 0; i < 2; i++) {
        Tensor *t = draw_shape(c, OP_random_normal, 40000, 3, 2, types[i], 0, NULL);
        check_moments(t, 3, 4, 48);
        tensor_drop(&c->heap, t);
        t = draw_shape(c, OP_random_uniform, 40000, -1, 3, types[i], 0, NULL);
        check_moments(t, 1, 16.0 / 12, 256.0 / 80);
        for (int64_t k = 0; k < 40000; k++)
            assert_true(tensor_get_f64(t, k) >= -1 && tensor_get_f64(t, k) <= 3);
        tensor_drop(&c->heap, t);
    }
    return OK;
}

static void numbers_are_distributed(void **state)
{
    (void)state;
    with_context(distributions);
}

/* RandomState(0).uniform() begins 0.549, 0.715, 0.603, 0.545, 0.424, 0.646, 0.438, 0.892. */
static Status numpy_mask(void *arg)
{
    Context *c = arg;
    const uint8_t kept[] = { 1, 1, 1, 1, 0, 1, 0, 1 };
    const int64_t n = 8;
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    Rng rng = { 1 };
    const DropoutAttr at = { .seed = 0 };
    Node *ins[] = { sample_tensor(&b, &rng, F32, 1, &n, 1, 1), build_scalar(&b, F32, 0.5), build_scalar(&b, BOOL, 1) };
    const EvalOptions o = { .random = RANDOM_NUMPY, .seed = 99 };
    Tensor *mask = draw(c, OP_dropout, &at, ins, 3, g, &o);
    assert_memory_equal(mask->data, kept, sizeof kept);
    tensor_drop(&c->heap, mask);
    return OK;
}

static void dropout_follows_numpy(void **state)
{
    (void)state;
    with_context(numpy_mask);
}

static Status outcomes(void *arg)
{
    Context *c = arg;
    enum { TRIALS = 20000 };
    const int64_t dims[] = { 1, 4 };
    const double chance[] = { 0.5, 0, 0.125, 0.375 };
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, dims));
    for (int i = 0; i < 4; i++)
        tensor_set_f64(x, i, log(chance[i]) + 2);
    const MultinomialAttr at = { .dtype = (int)I64 + 1, .sample_size = TRIALS, .seed = NAN };
    Node *in = build_const(&b, x);
    Tensor *y = draw(c, OP_multinomial, &at, &in, 1, g, NULL);
    double hits[4] = { 0 };
    for (int64_t i = 0; i < TRIALS; i++)
        hits[tensor_get_i64(y, i)]++;
    for (int i = 0; i < 4; i++)
        assert_true(fabs(hits[i] / TRIALS - chance[i]) <= 5 * sqrt(chance[i] * (1 - chance[i]) / TRIALS));
    tensor_drop(&c->heap, y);
    return OK;
}

static const char loops[] = "graph @f(%x: f32[3]) -> (%t, %s, %o) {\n"
                            "  const %m: i64[] = 4\n"
                            "  %t: f32[4,5,3] = loop(%m, _)\n"
                            "      { (%i: i64[], %c: bool[]) -> (%c, %n)\n"
                            "    const %m: i64[] = 5\n"
                            "    %n: f32[5,3] = loop(%m, _) { (%i: i64[], %c: bool[]) -> (%c, %n)\n"
                            "      %n: f32[3] = random_uniform(shape=[3], stream=2)\n"
                            "    }\n"
                            "  }\n"
                            "  %s: f32[3,3] = scan(%x, num_scan_inputs=1, from_last=true) { (%u: f32[]) -> (%n)\n"
                            "    %n: f32[3] = random_uniform(shape=[3], stream=2)\n"
                            "  }\n"
                            "  %o: f32[3] = random_uniform(shape=[3], stream=2)\n"
                            "}\n";

/* Every turn has numbers of its own, the first one those of outside, whichever loop it is; a loop that counts from the
 * last turn gives the same ones the other way round. */
static Status turns(void *arg)
{
    enum { ROWS = 20, ROW = 3 * sizeof(float) };
    Context *c = arg;
    const EvalOptions options = { .seed = 11 };
    Module *m;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(loops), "loops", NULL, NULL, &m), OK);
    const Tensor *x = tensor_new(&c->arena, m->graphs[0]->inputs[0]->type);
    Tensor *out[3];
    assert_int_equal(evaluate(m->graphs[0], &options, &c->heap, &x, out), OK);
    const char *nested = out[0]->data, *back = out[1]->data;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(nested + i * ROW, nested + k * ROW, ROW);
    assert_memory_equal(nested, out[2]->data, ROW);
    for (int i = 0; i < 3; i++)
        assert_memory_equal(back + i * ROW, nested + (2 - i) * ROW, ROW);
    for (int i = 0; i < 3; i++)
        tensor_drop(&c->heap, out[i]);
    return OK;
}

static void turns_draw_anew(void **state)
{
    (void)state;
    with_context(turns);
}

static void outcomes_have_their_chances(void **state)
{
    (void)state;
    with_context(outcomes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers_have_an_address),
                                        cmocka_unit_test(numbers_are_distributed),
                                        cmocka_unit_test(dropout_follows_numpy),
                                        cmocka_unit_test(outcomes_have_their_chances),
                                        cmocka_unit_test(turns_draw_anew) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
