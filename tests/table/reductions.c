/* Reductions over any axes against plain sums in f64: random shapes, axes, element types; arg and running reductions
 * too.  The order of summation itself is tested with ops/reduce.h. */
#include <math.h>

#include "ops/card/reduction.h"
#include "support/seed.h"
#include "testing.h"

enum { REDUCTIONS = 10 };

static double plus(double a, double v)
{
    return a + v;
}

static double times(double a, double v)
{
    return a * v;
}

static double square(double a, double v)
{
    return a + v * v;
}

static double size(double a, double v)
{
    return a + fabs(v);
}

static double grow(double a, double v)
{
    return a + exp(v);
}

static double as_is(double v, double n)
{
    (void)n;
    return v;
}

static double average(double v, double n)
{
    return v / n;
}

static double root(double v, double n)
{
    (void)n;
    return sqrt(v);
}

static double logarithm(double v, double n)
{
    (void)n;
    return log(v);
}

static const struct {
    Op op;
    double start;
    double (*join)(double so_far, double v);
    double (*end)(double v, double n);
} plain[REDUCTIONS] = {
    { OP_reduce_sum, 0, plus, as_is },         { OP_reduce_mean, 0, plus, average },
    { OP_reduce_max, -INFINITY, fmax, as_is }, { OP_reduce_min, INFINITY, fmin, as_is },
    { OP_reduce_prod, 1, times, as_is },       { OP_reduce_sum_square, 0, square, as_is },
    { OP_reduce_l1, 0, size, as_is },          { OP_reduce_l2, 0, square, root },
    { OP_reduce_log_sum, 0, plus, logarithm }, { OP_reduce_log_sum_exp, 0, grow, logarithm },
};

typedef struct Trial {
    Context *c;
    int which;
    int64_t checked;
    int bad;
} Trial;

/* The result element that element `at` of x falls into, dimensions kept. */
static int64_t target(const Type *x, uint32_t mask, int64_t at)
{
    int64_t offset = 0, step = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        const int64_t c = at % x->dims[d];
        at /= x->dims[d];
        if (!(mask >> d & 1)) {
            offset += c * step;
            step *= x->dims[d];
        }
    }
    return offset;
}

static void compare(Trial *t, const Tensor *x, uint32_t mask, const Tensor *y)
{
    const int64_t n = tensor_elements(x), m = tensor_elements(y);
    double *v = NEWS(&t->c->arena, double, m + 1), *count = NEWS(&t->c->arena, double, m + 1);
    for (int64_t i = 0; i < m; i++)
        v[i] = plain[t->which].start;
    for (int64_t i = 0; i < n; i++) {
        const int64_t to = target(x->type, mask, i);
        v[to] = plain[t->which].join(v[to], tensor_get_f64(x, i));
        count[to]++;
    }
    const bool whole = !dtype_is_float(y->type->dtype);
    const double relative = y->type->dtype == BF16 ? 0.006 : y->type->dtype == F16 ? 0.0008 : 3e-6;
    for (int64_t i = 0; i < m; i++) {
        double want = plain[t->which].end(v[i], count[i]), got = tensor_get_f64(y, i);
        if (whole && !isfinite(want))
            continue; /* integers have no name for it */
        want = whole ? trunc(want) : want;
        t->checked++;
        const double near = relative * fmax(fabs(want), count[i]) + 1e-6;
        if (got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= (whole ? 0 : near) || t->bad++ > 10)
            continue;
        print_error("%s of %s over %x, element %lld: %g, not %g\n", ops_table.defs[plain[t->which].op]->name,
                    type_text(&t->c->arena, x->type), mask, (long long)i, got, want);
    }
}

static Status reduce(void *arg)
{
    static const DType types[] = { F32, F64, I32, BF16, I64, F16, U32, U64 };
    Trial *t = arg;
    Context *c = t->c;
    Rng rng = { seed_of(ops_table.defs[plain[t->which].op]->name, 0) };
    for (int trial = 0; trial < 160; trial++) {
        const int rank = trial % 7;
        int64_t dims[MAX_RANK], axes[MAX_RANK];
        uint32_t mask = 0;
        int n = 0;
        for (int d = 0; d < rank; d++)
            dims[d] = rng_below(&rng, 40) == 0 ? 0 : rng_range(&rng, 1, 4);
        if (rank > 0 && rank < 4 && plain[t->which].op != OP_reduce_prod)
            dims[rng_below(&rng, rank)] = rng_range(&rng, 1, trial % 5 ? 90 : 2500);
        for (int d = 0; d < rank; d++)
            if (rng_below(&rng, 2)) {
                axes[n++] = d;
                mask |= 1u << d;
            }
        const DType dtype = types[trial % (int)COUNT(types)];
        const ReduceAttr attr = { .keepdims = trial % 2, .noop_with_empty_axes = true };
        Graph *g = graph_new(&c->ir, &c->arena, "f");
        Build b = build_at_end(g);
        const bool real = dtype_is_float(dtype);
        Node *x = sample_tensor(&b, &rng, dtype, rank, dims, real ? 0.1 : 0, real ? 1.4 : 3);
        Node *y = build_node(&b, plain[t->which].op, &attr, 2, (Node *[]){ x, build_i64s(&b, n, axes) });
        TRY(b.status);
        graph_return(g, 1, &y, NULL);
        Tensor *got;
        TRY(evaluate(g, NULL, &c->heap, NULL, &got));
        assert_int_equal(got->type->rank, attr.keepdims ? rank : rank - n);
        compare(t, node_constant(x, 0), mask, got);
        tensor_drop(&c->heap, got);
    }
    return OK;
}

static void reductions_follow_plain_sums(void **state)
{
    (void)state;
    int64_t checked = 0;
    int bad = 0;
    for (int i = 0; i < REDUCTIONS; i++) {
        Context c;
        context_open(&c);
        Trial t = { .c = &c, .which = i };
        if (guarded(&c.memory, reduce, &t) != OK)
            print_error("%s: %s\n", ops_table.defs[plain[i].op]->name, c.last ? c.last : "fails"), bad++;
        checked += t.checked;
        bad += t.bad;
        context_close(&c);
    }
    print_message("%lld elements\n", (long long)checked);
    assert_true(checked > 0);
    assert_int_equal(bad, 0);
}

/* ---- softmax, arg and running reductions, once each by hand ---- */

static Tensor *value_of(Context *c, Graph *g, Node *y)
{
    Tensor *got = NULL;
    graph_return(g, 1, &y, NULL);
    assert_int_equal(evaluate(g, NULL, &c->heap, NULL, &got), OK);
    return got;
}

static Node *matrix(Build *b, const float *v)
{
    static const int64_t dims[] = { 2, 3 };
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, F32, 2, dims));
    memcpy(t->data, v, 6 * sizeof *v);
    return build_const(b, t);
}

static void expect(Context *c, Graph *g, Node *y, int n, const double *want)
{
    Tensor *got = value_of(c, g, y);
    assert_int_equal(tensor_elements(got), n);
    for (int i = 0; i < n; i++) {
        const double v = tensor_get_f64(got, i);
        assert_true(v == want[i] || (isnan(v) && isnan(want[i])) || fabs(v - want[i]) < 1e-6);
    }
    tensor_drop(&c->heap, got);
}

static Status by_hand(void *arg)
{
    Context *c = arg;
    static const float v[] = { 1, 3, 3, NAN, -2, 5 };
    static const float w[] = { 0, 0, -INFINITY, 1, 2, 3 };
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const ArgAttr first = { .axis = 1 }, last = { .axis = -1, .select_last_index = true };
    expect(c, g, CALL_ATTR(&b, arg_max, first, matrix(&b, v)), 2, (const double[]){ 1, 0 });
    expect(c, g, CALL_ATTR(&b, arg_max, last, matrix(&b, v)), 2, (const double[]){ 2, 0 });
    expect(c, g, CALL_ATTR(&b, arg_min, first, matrix(&b, v)), 2, (const double[]){ 0, 0 });
    const AxisAttr along = { 1 };
    expect(c, g, CALL_ATTR(&b, softmax, along, matrix(&b, w)), 6,
           (const double[]){ 0.5, 0.5, 0, 0.09003057, 0.24472847, 0.66524096 });
    expect(c, g, CALL_ATTR(&b, hardmax, along, matrix(&b, v)), 6, (const double[]){ 0, 1, 0, 1, 0, 0 });
    const LogSoftmaxAttr log = { .axis = 1 };
    expect(c, g, CALL_ATTR(&b, log_softmax, log, matrix(&b, w)), 6,
           (const double[]){ -0.69314718, -0.69314718, -INFINITY, -2.40760596, -1.40760596, -0.40760596 });
    const CumAttr backwards = { .reverse = true, .exclusive = true };
    expect(c, g, CALL_ATTR(&b, cum_sum, backwards, matrix(&b, w + 0), build_scalar(&b, I64, 0)), 6,
           (const double[]){ 1, 2, 3, 0, 0, 0 });
    const CumAttr onwards = { 0 };
    expect(c, g, CALL_ATTR(&b, cum_prod, onwards, matrix(&b, v), build_scalar(&b, I32, -1)), 6,
           (const double[]){ 1, 3, 9, NAN, NAN, NAN });
    return b.status;
}

static void values_by_hand(void **state)
{
    (void)state;
    with_context(by_hand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_follow_plain_sums),
        cmocka_unit_test(values_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
