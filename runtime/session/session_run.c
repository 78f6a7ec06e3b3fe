/* How a session runs: its sides, what they leave, and when the states change. */
#include "runtime/session/session_parts.h"

#include <math.h>
#include <string.h>

static Status missing_inputs(Session *s, const Graph *g, bool eval, bool gradients)
{
    Message *m = NULL;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        const int slot = eval ? input->eval_slot : input->slot;
        if (slot >= 0 && input->bound && !eval && !type_agrees(input->tensor.type, g->inputs[slot]->type))
            return session_wrong_type(s, input->name, input->tensor.type, g->inputs[slot]->type);
        if (slot < 0 || input->bound || input->given != gradients || !g->inputs[slot]->uses)
            continue;
        if (!m)
            m = message_new(s->ir->diag, SEVERITY_ERROR, USAGE, NOWHERE, "inputs without a value");
        message_at(m, "%s %s", input->name, type_text(s->ir->diag->arena, g->inputs[slot]->type));
    }
    return m ? message_send(m) : OK;
}

static void set_arguments(Session *s, const Graph *g, bool eval)
{
    memset(s->arguments, 0, g->n_inputs * sizeof *s->arguments);
    for (size_t i = 0; i < s->n_states; i++) {
        const State *state = &s->states[i];
        const int slot = eval ? state->eval_slot : state->slot;
        if (slot >= 0)
            s->arguments[slot] = state->pending && !eval ? state->pending : state->value;
    }
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        const int slot = eval ? input->eval_slot : input->slot;
        if (slot >= 0 && input->bound)
            s->arguments[slot] = &input->tensor;
    }
}

static Status forward(Session *s)
{
    TRY(missing_inputs(s, s->graph, false, false));
    shadows_refresh(s);
    set_arguments(s, s->graph, false);
    s->phase = PHASE_IDLE;
    s->evaluated = false;
    evaluation_begin(s->step, s->steps++, s->arguments);
    TRY(evaluation_until(s->step, s->backward ? s->backward : s->update));
    s->phase = PHASE_FORWARD;
    return OK;
}

static bool is_bound(const Session *s, const Tensor *t)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (t == &s->inputs[i].tensor)
            return true;
    return false;
}

/* A value of the run that outlives it: held, or copied where the memory is the caller's. */
static Tensor *keep(Session *s, const Tensor *t)
{
    return is_bound(s, t) ? session_copy(s, t) : tensor_hold(t);
}

/* sum + g, in the arithmetic of the gradients. */
static Tensor *added(Session *s, const Tensor *sum, const Tensor *g)
{
    Tensor *t = tensor_alloc(&s->heap, g->type);
    const int64_t n = tensor_elements(g);
    for (int64_t i = 0; i < n; i++)
        if (g->type->dtype == F32)
            ((f32 *)t->data)[i] = ((const f32 *)sum->data)[i] + ((const f32 *)g->data)[i];
        else
            tensor_set_f64(t, i, tensor_get_f64(sum, i) + tensor_get_f64(g, i));
    return t;
}

/* Gradients join those of the runs before; states that forward moved go on from where they are. */
static void accumulate(Session *s)
{
    for (size_t i = 0; i < s->n_states; i++) {
        State *state = &s->states[i];
        const Node *node = state->gradient >= 0 ? graph_result(s->graph, state->gradient) : NULL;
        const Tensor *g = node ? evaluation_value(s->step, node) : NULL;
        if (g)
            session_keep_value(s, &state->sum, state->sum ? added(s, state->sum, g) : keep(s, g));
        const Tensor *next = state->next >= 0 ? evaluation_value(s->step, graph_result(s->graph, state->next)) : NULL;
        if (next)
            session_keep_value(s, &state->pending, keep(s, next));
    }
}

Status session_side(Session *s, const Node *end)
{
    const Status status = evaluation_until(s->step, end);
    if (status != OK && status != INTERRUPTED)
        s->phase = PHASE_IDLE;
    return status;
}

static bool has_sums(const Session *s)
{
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].sum)
            return true;
    return false;
}

static Status backward(Session *s, bool accumulates)
{
    if (s->phase != PHASE_FORWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "backward follows forward");
    TRY(missing_inputs(s, s->graph, false, true));
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].slot >= 0 && s->inputs[i].bound && s->inputs[i].given)
            evaluation_put(s->step, s->graph->inputs[s->inputs[i].slot], &s->inputs[i].tensor);
    const bool goes_on = accumulates && has_sums(s);
    s->evaluated = false;
    scaling_begin(s, goes_on);
    TRY(session_side(s, s->update));
    s->phase = PHASE_BACKWARD;
    scaling_latch(s, goes_on);
    if (accumulates)
        accumulate(s);
    else
        session_forget_sums(s);
    return OK;
}

static bool scalar(const Session *s, const char *name, double *value)
{
    const Tensor *t = session_result(s, name);
    if (!t || t->type->kind != TYPE_TENSOR || tensor_elements(t) != 1)
        return false;
    *value = tensor_get_f64(t, 0);
    return true;
}

/* Loss and norm, of a step without a scale. */
static bool is_finite(const Session *s)
{
    double loss, norm;
    return (!scalar(s, "loss", &loss) || isfinite(loss)) && (!scalar(s, "grad_norm", &norm) || isfinite(norm));
}

static void tell(const Session *s, RunResult *r)
{
    r->step = s->steps;
    r->has_loss = scalar(s, "loss", &r->loss);
    r->has_norm = scalar(s, "grad_norm", &r->norm);
    r->has_rate = scalar(s, "lr", &r->rate);
    r->finite = is_finite(s);
    scaling_tell(s, r);
}

static void commit(Session *s)
{
    for (size_t i = 0; i < s->n_states; i++) {
        State *state = &s->states[i];
        const Tensor *next = state->next >= 0 ? evaluation_value(s->step, graph_result(s->graph, state->next)) : NULL;
        if (next && state != s->scaling.scale && state != s->scaling.counters)
            session_commit(s, state, keep(s, next));
    }
    shadows_commit(s);
}

static Status update(Session *s, RunResult *r)
{
    if (s->phase != PHASE_BACKWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "update follows backward");
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].sum)
            evaluation_put(s->step, graph_result(s->graph, s->states[i].gradient), s->states[i].sum);
    s->evaluated = false;
    TRY(scaling_find(s));
    TRY(session_side(s, NULL));
    s->phase = PHASE_DONE;
    r->applied = s->scaling.scale ? scaling_commit(s) : is_finite(s);
    if (r->applied)
        commit(s);
    session_forget_sums(s);
    return OK;
}

static Status evaluate_alone(Session *s)
{
    if (!s->eval)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "has no graph @eval");
    TRY(missing_inputs(s, s->eval_graph, true, false));
    shadows_refresh(s);
    set_arguments(s, s->eval_graph, true);
    s->evaluated = true;
    evaluation_begin(s->eval, 0, s->arguments);
    return evaluation_until(s->eval, NULL);
}

static Status sides(Session *s, unsigned what, RunResult *r)
{
    if (!(what & RUN_STEP) || what & ~(unsigned)(RUN_STEP | RUN_ACCUMULATE))
        return fail_as(s->ir->diag, USAGE, NOWHERE, "runs forward, backward and update, or eval alone");
    if (what & RUN_FORWARD)
        TRY(forward(s));
    if (what & RUN_BACKWARD)
        TRY(backward(s, what & RUN_ACCUMULATE));
    return what & RUN_UPDATE ? update(s, r) : OK;
}

Status session_run(Session *s, unsigned what, RunResult *result)
{
    RunResult r = { .finite = true };
    const uint64_t before = s->steps;
    const Status status = what == RUN_EVAL ? evaluate_alone(s) : sides(s, what, &r);
    if (status != OK && s->steps != before) { /* a step that was begun here never was */
        s->steps = before;
        s->phase = PHASE_IDLE;
    }
    TRY(status);
    tell(s, &r);
    if (result)
        *result = r;
    return OK;
}

Status session_replay(Session *s, void (*observe)(void *user, const Node *n, const Tensor *value), void *user)
{
    EvalOptions options = s->options;
    Tensor **results = NEWS(s->ir->diag->arena, Tensor *, graph_n_results(s->graph) + 1);
    options.step = s->steps ? s->steps - 1 : 0;
    options.observe = observe;
    options.user = user;
    TRY(missing_inputs(s, s->graph, false, false));
    shadows_refresh(s);
    set_arguments(s, s->graph, false);
    if (s->scaling.latched) /* since then the scale may have moved */
        s->arguments[s->scaling.scale->slot] = s->scaling.latched;
    TRY(evaluate(s->graph, &options, &s->heap, s->arguments, results));
    for (int i = 0; i < graph_n_results(s->graph); i++)
        if (results[i])
            tensor_drop(&s->heap, results[i]);
    return OK;
}
