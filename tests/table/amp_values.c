/* What mixed precision computes is what f32 computes, within the roundings of the narrow type: every model at hand with
 * its loss, and every card on its samples, run by the reference evaluator. */
#include "support/amp_trial.h"

#include <math.h>

#include "passes/engine/trial.h"

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
    Rng rng = { 2 };
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

/* All gradients as one vector: how far it is from the other one, in parts of its length.  Element by element a sign of
 * relu or a place of a maximum that turns makes a difference that says nothing, and so do gradients that are 0 but for
 * rounding. */
static const char *compare_gradients(const AmpTrial *t, AmpWay way, const Graph *g, Tensor **a, Tensor **b)
{
    const double slack = way.narrow == BF16 ? 0.1 : 0.04;
    double apart = 0, length = 0;
    for (int r = 0; r < graph_n_results(g); r++) {
        const char *name = graph_result_name(g, r);
        for (int64_t i = 0; name && strncmp(name, "grad.", 5) == 0 && i < tensor_elements(a[r]); i++) {
            const double x = tensor_get_f64(a[r], i), y = tensor_get_f64(b[r], i);
            apart += (x - y) * (x - y);
            length += x * x;
        }
    }
    if (apart <= slack * slack * length)
        return NULL;
    return amp_say(t, way, "the gradient differs by %g of its length %g", sqrt(apart / length), sqrt(length));
}

static const char *insert(const AmpTrial *t, Graph *g, AmpWay way)
{
    return amp_run(t, g, "insert-amp", way, NULL);
}

/* With the way back. */
static const char *insert_into_step(const AmpTrial *t, Graph *g, AmpWay way)
{
    const char *wrong = amp_run(t, g, "insert-amp", way, NULL);
    if (!wrong)
        wrong = amp_run(t, g, "differentiate", way, NULL);
    return wrong ? wrong : amp_run(t, g, "insert-amp", way, NULL);
}

typedef const char *Compare(const AmpTrial *t, AmpWay way, const Graph *g, Tensor **a, Tensor **b);

/* `plain` is the graph in f32. */
static const char *check_way_of(AmpTrial *t, Graph *plain, const char *(*make)(const AmpTrial *t, Graph *g, AmpWay way),
                                Compare *compare_all)
{
    const Tensor **x = t->inputs ? t->inputs : draw_inputs(t);
    Tensor **want = x ? run(t, plain, x) : NULL;
    if (!want)
        return NULL;
    const char *wrong = NULL;
    for (int i = 0; i < AMP_WAYS && !wrong; i++) {
        Graph *g = graph_copy(t->graph, &t->c->arena);
        wrong = make(t, g, amp_ways[i]);
        Tensor **got = wrong ? NULL : run(t, g, x);
        if (!wrong && !got)
            wrong = amp_say(t, amp_ways[i], "cannot be evaluated: %s", amp_text(t, g));
        else if (got) {
            wrong = compare_all(t, amp_ways[i], g, want, got);
            drop(t, g, got);
        }
    }
    drop(t, plain, want);
    return wrong;
}

static const char *check_values(AmpTrial *t)
{
    return check_way_of(t, graph_copy(t->graph, &t->c->arena), insert, compare);
}

static const char *check_gradients(AmpTrial *t)
{
    Graph *plain = graph_copy(t->graph, &t->c->arena);
    if (!amp_is_step(t->graph))
        return NULL;
    const char *wrong = amp_run(t, plain, "differentiate", amp_ways[0], NULL);
    return wrong ? wrong : check_way_of(t, plain, insert_into_step, compare_gradients);
}

static void gradients_are_the_same(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_models(check_gradients, &seen);
    assert_int_equal(bad, 0);
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

int main(int argc, char **argv)
{
    if (argc == 2)
        return amp_check_folder(argv[1], 2, (AmpCheck *const[]){ check_values, check_gradients });
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_compute_the_same),
        cmocka_unit_test(samples_compute_the_same),
        cmocka_unit_test(gradients_are_the_same),
    };
    return cmocka_run_group_tests_name("amp_values", tests, NULL, NULL);
}
