/* --shadow N: every N-th step on the reference evaluator, too, from the same states, data and draws; what differs first. */
#include <inttypes.h>

#include "api/model/compare.h"
#include "api/train/train_shadow.h"
#include "ir/role.h"

/* The states of one session as those of another that runs the same step. */
static Status copy_states(Session *from, Session *to)
{
    size_t n;
    const State *states = session_states(from, &n);
    for (size_t i = 0; i < n; i++) {
        const Tensor *value;
        TRY(session_value(from, &states[i], &value));
        if (value)
            TRY(session_put(to, states[i].name, value));
    }
    session_set_step(to, session_step(from));
    session_set_seed(to, session_seed(from));
    return OK;
}

static const char *values_differ(Arena *arena, const char *what, const char *name, const Tensor *a, const Tensor *b)
{
    if (!a && !b)
        return NULL;
    if (!a || !b)
        return arena_printf(arena, "%s %s is there on one alone", what, name);
    if (tensor_same(a, b))
        return NULL;
    const char *why = compare_values(arena, a, b, 0, 0);
    return arena_printf(arena, "%s %s: %s", what, name, why ? why : "its bits differ, not its numbers");
}

/* The results of the step in the order in which its nodes make them: the first that differs is nearest to the reason. */
static const char *results_differ(Session *a, Session *b, const Graph *step, Arena *arena)
{
    const char *differs = NULL;
    for (const Node *n = step->first; n && !differs; n = n->next)
        for (int i = 0; i < graph_n_results(step) && !differs; i++) {
            const char *name = graph_result_name(step, i);
            SessionValue v;
            if (graph_result(step, i) != n || !name || !session_find(a, name, &v) || v.state)
                continue;
            const Tensor *x = session_view(a, name), *y = session_view(b, name);
            differs = values_differ(arena, v.of ? "gradient" : "result", name, x, y);
        }
    return differs;
}

Status sessions_differ(Session *a, Session *b, const Graph *step, Arena *arena, const char **differs)
{
    size_t n, m;
    *differs = results_differ(a, b, step, arena);
    State *x = session_states(a, &n), *y = session_states(b, &m);
    for (size_t i = 0; i < n && i < m && !*differs; i++) {
        const Tensor *p, *q;
        TRY(session_value(a, &x[i], &p));
        TRY(session_value(b, &y[i], &q));
        *differs = values_differ(arena, "state", x[i].name, p, q);
    }
    return OK;
}

static bool is_due(const Trainer *t)
{
    return t->o.shadow && (t->done + 1) % t->o.shadow == 0;
}

Status train_shadow_begin(Trainer *t)
{
    t->shadowed = is_due(t);
    if (!t->shadowed)
        return OK;
    if (!t->shadow)
        TRY(session_start_on(t->step, engine_find("reference"), t->cx->device, t->o.seed, &t->cx->hurry, &t->shadow));
    TRY(copy_states(t->run, t->shadow->run));
    return train_bind(t->step, t->shadow->run, &t->cx->scratch, &t->data, &t->batch);
}

Status train_shadow_end(Trainer *t)
{
    RunResult result;
    const char *differs = NULL;
    if (!t->shadowed)
        return OK;
    TRY(session_run(t->shadow->run, RUN_STEP, &result));
    if (result.applied != t->last.applied)
        differs = result.applied ? "it was not applied, on the reference it is"
                                 : "it was applied, on the reference it is not";
    else
        TRY(sessions_differ(t->run, t->shadow->run, module_graph(t->step->module, "step"), &t->cx->scratch, &differs));
    t->shadow_steps++;
    if (!differs)
        return OK;
    Message *m = message_new(t->d, SEVERITY_ERROR, MISMATCH, NOWHERE,
                             "step %" PRId64 " on %s is not what it is on reference: %s", t->done + 1,
                             t->cx->engine->name, differs);
    const Engine *engine = t->cx->engine;
    if (engine->narrows && (engine->has_devices || kernels_packed_bf16(t->cx->kernels)) && !t->cx->options.exact)
        message_try(m, "--exact");
    return message_send(m);
}
