/* What mixed precision computes is what f32 computes, within the roundings of the narrow type: every model at hand with
 * its loss, and every card on its samples, run by the reference evaluator. */
#include "support/amp_trial.h"

#include <math.h>

#include "passes/engine/trial.h"
#include "support/seed.h"

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
    Rng rng = { seed_of(t->name, 0) };
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
static const double SMALL = 0x1p-8; /* what is less than this of inputs near 1 has cancelled */

/* The largest difference, in parts of the largest number; what f16 may not hold is passed over. */
static double distance(const Tensor *a, const Tensor *b)
{
    double most = 0, size = SMALL;
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

/* How far two runs of a graph are apart, one number for each of its parts; what a part is called. */
typedef struct Measure {
    double slack[2]; /* of bf16, of f16 */
    int (*parts)(const Graph *g);
    double (*apart)(const Graph *g, int part, Tensor **a, Tensor **b);
    const char *(*name)(const Graph *g, int part);
} Measure;

static double result_apart(const Graph *g, int i, Tensor **a, Tensor **b)
{
    (void)g;
    if (!a[i] != !b[i] || (a[i] && a[i]->type != b[i]->type))
        return INFINITY;
    return comparable(a[i], b[i]) ? distance(a[i], b[i]) : 0;
}

static const char *result_name(const Graph *g, int i)
{
    const char *name = graph_result_name(g, i);
    return name ? name : "a result";
}

/* Means of few numbers cancel; most are within a tenth. */
static const Measure values = { { 0.05, 0.005 }, graph_n_results, result_apart, result_name };

/* All gradients as one vector: how far it is from the other one, in parts of its length.  Element by element a sign of
 * relu or a place of a maximum that turns makes a difference that says nothing, and so do gradients that are 0 but for
 * rounding. */
static double gradient_apart(const Graph *g, int part, Tensor **a, Tensor **b)
{
    double apart = 0, length = 0;
    (void)part;
    for (int r = 0; r < graph_n_results(g); r++) {
        const char *name = graph_result_name(g, r);
        for (int64_t i = 0; name && strncmp(name, "grad.", 5) == 0 && i < tensor_elements(a[r]); i++) {
            const double x = tensor_get_f64(a[r], i), y = tensor_get_f64(b[r], i);
            apart += (x - y) * (x - y);
            length += x * x;
        }
    }
    return apart > 0 ? sqrt(apart / length) : apart;
}

static int one_part(const Graph *g)
{
    (void)g;
    return 1;
}

static const char *gradient_name(const Graph *g, int part)
{
    (void)g, (void)part;
    return "the gradient";
}

static const Measure gradients = { { 0.1, 0.04 }, one_part, gradient_apart, gradient_name };

/* The inputs with every float changed by no more than a chain of roundings. */
static const Tensor **shaken(const AmpTrial *t, const Tensor *const *x, DType narrow, Rng *rng)
{
    enum { CHAIN = 4 };
    const double rounding = CHAIN * (narrow == BF16 ? 0x1p-8 : 0x1p-11);
    const Tensor **y = NEWS(&t->c->arena, const Tensor *, t->graph->n_inputs + 1);
    for (size_t i = 0; i < t->graph->n_inputs; i++) {
        Tensor *to = tensor_new(&t->c->arena, x[i]->type);
        for (int64_t e = 0; e < tensor_elements(to); e++) {
            const double v = tensor_get_f64(x[i], e);
            tensor_set_f64(to, e, dtype_is_float(to->type->dtype) ? v * (1 + (2 * rng_unit(rng) - 1) * rounding) : v);
        }
        y[i] = to;
    }
    return y;
}

/* How far a part moves in f32 when its inputs are rounded: where that is far, roundings inside move it as far. */
static double unrest(const AmpTrial *t, Graph *plain, const Tensor *const *x, Tensor **want, const Measure *m, int part,
                     DType narrow)
{
    enum { SHAKES = 16 };
    double most = 0;
    Rng rng = { seed_of(t->name, 1) };
    for (int i = 0; i < SHAKES; i++) {
        Tensor **y = run(t, plain, shaken(t, x, narrow, &rng));
        most = y ? fmax(most, m->apart(plain, part, want, y)) : most;
        if (y)
            drop(t, plain, y);
    }
    return most;
}

static const char *compare(const AmpTrial *t, AmpWay way, Graph *plain, const Tensor *const *x, Tensor **want,
                           Tensor **got, const Measure *m)
{
    for (int i = 0; i < m->parts(plain); i++) {
        const double d = m->apart(plain, i, want, got);
        if (d <= m->slack[way.narrow == F16])
            continue;
        const double moves = unrest(t, plain, x, want, m, i, way.narrow);
        if (!(d <= m->slack[way.narrow == F16] + moves))
            return amp_say(t, way, "%s differs by %g of its size, by %g where inputs are rounded", m->name(plain, i), d,
                           moves);
    }
    return NULL;
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

/* `plain` is the graph in f32. */
static const char *check_way_of(AmpTrial *t, Graph *plain, const char *(*make)(const AmpTrial *t, Graph *g, AmpWay way),
                                const Measure *m)
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
            wrong = compare(t, amp_ways[i], plain, x, want, got, m);
            drop(t, g, got);
        }
    }
    drop(t, plain, want);
    return wrong;
}

static const char *check_values(AmpTrial *t)
{
    return check_way_of(t, graph_copy(t->graph, &t->c->arena), insert, &values);
}

static const char *check_gradients(AmpTrial *t)
{
    Graph *plain = graph_copy(t->graph, &t->c->arena);
    if (!amp_is_step(t->graph))
        return NULL;
    const char *wrong = amp_run(t, plain, "differentiate", amp_ways[0], NULL);
    return wrong ? wrong : check_way_of(t, plain, insert_into_step, &gradients);
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
