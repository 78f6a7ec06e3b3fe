/* What mixed precision computes is what f32 computes, within the roundings of the narrow type: every model at hand with
 * its loss, and every card on its samples, run by the reference evaluator. */
#include "support/amp_trial.h"

#include <math.h>

#include "passes/trial.h"

/* ---- inputs ---- */

/* Moderate numbers; small whole ones for indices. */
static Tensor *draw(const AmpTrial *t, const Node *n, Rng *rng)
{
    enum { UNKNOWN = 2 };
    int64_t dims[MAX_RANK];
    const Type *type = n->type;
    if (type->kind != TYPE_TENSOR || type->dtype == STRING || type->rank < 0)
        return NULL;
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i] < 0 ? UNKNOWN : type->dims[i];
    Tensor *x = tensor_new(&t->c->arena, type_tensor(&t->c->ir.types, type->dtype, type->rank, dims));
    for (int64_t i = 0; i < tensor_elements(x); i++)
        tensor_set_f64(x, i, dtype_is_float(type->dtype) ? 2 * rng_unit(rng) - 1 : (double)rng_below(rng, 2));
    return x;
}

/* One for each input; null where one has no sample. */
static const Tensor **draw_inputs(const AmpTrial *t)
{
    const Graph *g = t->graph;
    const Tensor **x = NEWS(&t->c->arena, const Tensor *, g->n_inputs + 1);
    Rng rng = { 1 };
    for (size_t i = 0; i < g->n_inputs; i++) {
        x[i] = g->inputs[i]->op == OP_state ? trial_initial(g->inputs[i], &t->c->arena) : draw(t, g->inputs[i], &rng);
        if (!x[i])
            return NULL;
    }
    return x;
}

static Tensor **run(const AmpTrial *t, Graph *g, const Tensor **inputs)
{
    Tensor **y = NEWS(&t->c->arena, Tensor *, graph_n_results(g) + 1);
    Hush hush;
    hush_begin(&hush, &t->c->ir, &t->c->arena);
    const Status status = evaluate(g, NULL, &t->c->heap, inputs, y);
    hush_end(&hush);
    return status == OK ? y : NULL;
}

static void drop(const AmpTrial *t, const Graph *g, Tensor **y)
{
    for (int i = 0; i < graph_n_results(g); i++)
        if (y[i])
            tensor_drop(&t->c->heap, y[i]);
}

/* ---- agreement ---- */

enum { LARGE = 30000 };

/* The largest difference, in parts of the largest number; what f16 may not hold is passed over. */
static double distance(const Tensor *a, const Tensor *b)
{
    double most = 0, size = 0x1p-10;
    for (int64_t i = 0; i < tensor_elements(a); i++) {
        const double x = tensor_get_f64(a, i), y = tensor_get_f64(b, i);
        if (!(fabs(x) < LARGE))
            continue;
        most = fmax(most, isnan(y) ? INFINITY : fabs(x - y));
        size = fmax(size, fabs(x));
    }
    return most / size;
}

static bool comparable(const Tensor *a, const Tensor *b)
{
    return a && b && a->type->kind == TYPE_TENSOR && dtype_is_float(a->type->dtype) && a->type->dtype != F64;
}

static const char *compare(const AmpTrial *t, AmpWay way, const Graph *g, Tensor **a, Tensor **b)
{
    const double slack = way.narrow == BF16 ? 0.05 : 0.005; /* means of few numbers cancel; most are within a tenth */
    for (int i = 0; i < graph_n_results(g); i++) {
        if (!a[i] != !b[i] || (a[i] && a[i]->type != b[i]->type))
            return amp_say(t, way, "result %d has another type", i);
        const double d = comparable(a[i], b[i]) ? distance(a[i], b[i]) : 0;
        if (!(d <= slack))
            return amp_say(t, way, "result %d %s differs by %g of its size", i,
                           graph_result_name(g, i) ? graph_result_name(g, i) : "", d);
    }
    return NULL;
}

static const char *check_values(AmpTrial *t)
{
    const Tensor **x = t->inputs ? t->inputs : draw_inputs(t);
    Graph *plain = graph_copy(t->graph, &t->c->arena);
    Tensor **want = x ? run(t, plain, x) : NULL;
    if (!want)
        return NULL;
    const char *wrong = NULL;
    for (int i = 0; i < AMP_WAYS && !wrong; i++) {
        Graph *g = graph_copy(t->graph, &t->c->arena);
        wrong = amp_run(t, g, "insert-amp", amp_ways[i], NULL);
        Tensor **got = wrong ? NULL : run(t, g, x);
        if (!wrong && !got)
            wrong = amp_say(t, amp_ways[i], "cannot be evaluated: %s", amp_text(t, g));
        else if (got) {
            wrong = compare(t, amp_ways[i], g, want, got);
            drop(t, g, got);
        }
    }
    drop(t, plain, want);
    return wrong;
}

static void models_compute_the_same(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_models(check_values, &seen);
    print_message("%d graphs of models\n", seen);
    assert_int_equal(bad, 0);
}

static void samples_compute_the_same(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_samples(check_values, &seen);
    print_message("%d samples\n", seen);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_compute_the_same),
        cmocka_unit_test(samples_compute_the_same),
    };
    return cmocka_run_group_tests_name("amp_values", tests, NULL, NULL);
}
