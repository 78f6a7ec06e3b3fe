/* Whole steps in mixed precision, of every model at hand: every pass of the pipeline leaves a graph, no step casts a
 * weight, a value is cast once a type and side, and the step runs. */
#include "support/amp_trial.h"

#include <math.h>

#include "ir/role.h"
#include "ops/update/shadow.h"
#include "passes/engine/trial.h"
#include "passes/pipelines.h"
#include "support/seed.h"

/* From insert-amp on: what comes before it trial graphs have behind them already, or need not, for nothing of them is
 * quantized. */
static const char *make_step(const AmpTrial *t, Graph *g, AmpWay way)
{
    const Pipeline *p = pipeline_find("train-step");
    const char *wrong = NULL;
    size_t first = 0;
    while (first < p->n && strcmp(p->passes[first]->name, "insert-amp") != 0)
        first++;
    assert_true(first < p->n);
    for (size_t i = first; i < p->n && !wrong; i++)
        wrong = amp_run(t, g, p->passes[i]->name, way, NULL);
    return wrong;
}

/* Whether a cast that is not of the update, which writes shadows, narrows a weight. */
static bool casts_weight(const Node *n)
{
    const Node *of = n->op == OP_amp_cast ? in(n, 0) : NULL;
    return of && of->op == OP_state && of->type->dtype == F32 && of->flags & NODE_TRAINED && !(n->flags & NODE_UPDATE);
}

static const char *look_at_casts(const AmpTrial *t, Graph *g)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (casts_weight(n))
            return arena_printf(&t->c->arena, "weight %s is cast in each step", in(n, 0)->name);
        for (const Use *u = n->uses; u; u = u->next)
            for (const Use *v = u->next; v; v = v->next)
                if (u->user != v->user && u->user->op == OP_amp_cast && v->user->op == OP_amp_cast &&
                    u->user->type == v->user->type && u->user->flags == v->user->flags)
                    return arena_printf(&t->c->arena, "%s is cast to %s twice", n->name ? n->name : op_of(n)->name,
                                        dtype_name(u->user->type->dtype));
    }
    return NULL;
}

/* ---- it runs ---- */

static const Tensor *shadow_of(const AmpTrial *t, const Node *shadow)
{
    const Graph *g = shadow->graph;
    Tensor *x = tensor_new(&t->c->arena, shadow->type);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, node_role(shadow).of) == 0)
            shadow_fill(x, trial_initial(g->inputs[i], &t->c->arena));
    return x;
}

/* States begin as they do, shadows as their masters; inputs are small numbers. */
static const Tensor *initial(const AmpTrial *t, const Node *n, Rng *rng)
{
    if (n->op == OP_state)
        return is_state(n, STATE_shadow) ? shadow_of(t, n) : trial_initial(n, &t->c->arena);
    if (n->type->kind != TYPE_TENSOR || !type_known(n->type) || n->type->dtype == STRING)
        return NULL;
    Tensor *x = tensor_new(&t->c->arena, n->type);
    for (int64_t i = 0; i < tensor_elements(x); i++)
        tensor_set_f64(x, i, dtype_is_float(n->type->dtype) ? 2 * rng_unit(rng) - 1 : (double)rng_below(rng, 2));
    return x;
}

/* The loss of a step; NAN where it cannot run. */
static double loss_of_step(const AmpTrial *t, Graph *g)
{
    const Tensor **x = NEWS(&t->c->arena, const Tensor *, g->n_inputs + 1);
    Tensor **y = NEWS(&t->c->arena, Tensor *, graph_n_results(g) + 1);
    double loss = NAN;
    Rng rng = { seed_of(t->name, 0) };
    Hush hush;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (!(x[i] = initial(t, g->inputs[i], &rng)))
            return NAN;
    hush_begin(&hush, &t->c->ir, &t->c->arena);
    const Status status = evaluate(g, NULL, &t->c->heap, x, y);
    hush_end(&hush);
    for (int i = 0; status == OK && i < graph_n_results(g); i++) {
        const char *name = graph_result_name(g, i);
        if (name && strcmp(name, "loss") == 0)
            loss = tensor_get_f64(y[i], 0);
        if (y[i])
            tensor_drop(&t->c->heap, y[i]);
    }
    return loss;
}

/* Whether a graph is a step already. */
static bool has_step_states(const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name && strncmp(g->inputs[i]->name, "qcc.", 4) == 0)
            return true;
    return false;
}

static const char *check_step(AmpTrial *t)
{
    const char *wrong = NULL;
    if (!amp_is_step(t->graph) || has_step_states(t->graph))
        return NULL;
    const double want = loss_of_step(t, graph_copy(t->graph, &t->c->arena));
    for (int i = 0; i < AMP_WAYS && !wrong; i++) {
        Graph *g = graph_copy(t->graph, &t->c->arena);
        wrong = make_step(t, g, amp_ways[i]);
        if (wrong)
            return wrong;
        const char *cast = look_at_casts(t, g);
        const double loss = isnan(want) ? NAN : loss_of_step(t, g);
        if (cast)
            wrong = amp_say(t, amp_ways[i], "%s\n%s", cast, amp_text(t, g));
        else if (!isnan(want) && !(fabs(loss - want) <= 0.05 * fabs(want) + 1e-6))
            wrong = amp_say(t, amp_ways[i], "the loss is %g, not %g", loss, want);
    }
    return wrong;
}

static void steps_hold(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_models(check_step, &seen);
    print_message("%d graphs\n", seen);
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return amp_check_folder(argv[1], 1, (AmpCheck *const[]){ check_step });
    const struct CMUnitTest tests[] = { cmocka_unit_test(steps_hold) };
    return cmocka_run_group_tests_name("amp_steps", tests, NULL, NULL);
}
