/* How a session runs: its sides, what they leave, and when the states change. */
#include "runtime/session/session_parts.h"

#include <math.h>
#include <string.h>

/* ---- what a run reads ---- */

/* A graph beside the step may take a part of the step's batch. */
static bool is_readable(const Session *s, int graph, const Graph *g, const Input *input)
{
    const Graph *step = session_step_graph(s);
    return type_agrees(input->bound, g->inputs[input->slot[graph]]->type) ||
           (graph && input->slot[0] >= 0 && type_agrees(input->bound, step->inputs[input->slot[0]]->type));
}

static Status missing_inputs(Session *s, int graph, const Graph *g, bool gradients)
{
    Message *m = NULL;
    TRY(batches_mask(s, graph, g));
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        const int slot = input->slot[graph];
        if (slot >= 0 && input->bound && !is_readable(s, graph, g, input))
            return batches_refuse(s, input, g->inputs[slot]->type);
        if (slot < 0 || input->bound || input->given != gradients || !g->inputs[slot]->uses)
            continue;
        if (!m)
            m = message_new(s->ir->diag, SEVERITY_ERROR, USAGE, NOWHERE, "inputs without a value");
        message_at(m, "%s %s", input->name, type_text(s->ir->diag->arena, g->inputs[slot]->type));
    }
    return m ? message_send(m) : OK;
}

Status session_complete(Session *s)
{
    return missing_inputs(s, 0, session_step_graph(s), false);
}

static Status begin(Session *s, int graph, uint64_t step)
{
    const SessionGraph *g = &s->graphs[graph];
    for (size_t i = 0; i < s->n_states; i++) {
        const State *state = &s->states[i];
        if (state->slot[graph] >= 0)
            s->arguments[state->slot[graph]] =
                state_part(state, state->has_pending && !graph ? PART_PENDING : PART_VALUE);
    }
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        if (input->slot[graph] >= 0)
            s->arguments[input->slot[graph]] = input->bound ? value_kept((int)i) : value_none();
    }
    const EngineRun options = { .seed = s->options.seed, .step = step, .inputs = s->arguments };
    return s->engine->begin(s->values, g->number, &options);
}

/* ---- what a run tells ---- */

enum { NUMBERS = 8 };

Status session_numbers(Session *s, int n, SessionNumber *numbers)
{
    ValueAt at[NUMBERS] = { { 0 } };
    const Tensor *got[NUMBERS] = { NULL };
    for (int i = 0; i < n; i++)
        at[i] = numbers[i].at;
    TRY(s->engine->get_all(s->values, n, at, got));
    for (int i = 0; i < n; i++) {
        const Tensor *t = got[i];
        numbers[i].there = t && t->type->kind == TYPE_TENSOR && tensor_elements(t) == 1;
        if (numbers[i].there)
            numbers[i].value = tensor_get_f64(t, 0);
    }
    return OK;
}

Status session_number(Session *s, ValueAt at, bool *there, double *value)
{
    SessionNumber number = { .at = at };
    TRY(session_numbers(s, 1, &number));
    *there = number.there;
    if (number.there)
        *value = number.value;
    return OK;
}

/* Before anything is committed: nothing can fail behind that. */
static Status tell(Session *s, bool done, RunResult *r)
{
    const SessionGraph *g = &s->graphs[s->shown];
    const bool there = s->shown || s->phase != PHASE_IDLE;
    r->step = s->steps;
    enum { LOSS, NORM, RATE, TOLD };
    const int results[TOLD] = { g->loss, g->norm, g->rate };
    SessionNumber told[TOLD];
    for (int i = 0; i < TOLD; i++)
        told[i] = (SessionNumber){ .at = value_result(g->number, there ? results[i] : -1) };
    TRY(session_numbers(s, TOLD, told));
    r->has_loss = told[LOSS].there;
    r->loss = told[LOSS].value;
    r->has_norm = told[NORM].there;
    r->norm = told[NORM].value;
    r->has_rate = told[RATE].there;
    r->rate = told[RATE].value;
    r->finite = (!r->has_loss || isfinite(r->loss)) && (!r->has_norm || isfinite(r->norm));
    return scaling_tell(s, done, r);
}

/* ---- sides ---- */

Status session_lost(Session *s, Status status)
{
    if (status != OK && status != INTERRUPTED && status != USAGE)
        s->phase = PHASE_IDLE;
    return status;
}

/* What there is to do while a device is at it comes between asking for it and waiting. */
static Status run_side(Session *s, StepPart part, bool first)
{
    TRY(s->engine->run(s->values, s->graphs[0].number, (int)part));
    if (first)
        TRY(next_bring(s));
    return s->engine->answer(s->values, s->graphs[0].number);
}

Status session_side(Session *s, StepPart part)
{
    return session_lost(s, run_side(s, part, false));
}

/* Forward, and what follows it with nothing to do in between; where `decided` is given, the whole step if the engine commits it by
 * itself. */
static Status forward(Session *s, StepPart last, bool *decided)
{
    TRY(next_take(s));
    TRY(missing_inputs(s, 0, session_step_graph(s), false));
    if (last > STEP_FORWARD)
        TRY(missing_inputs(s, 0, session_step_graph(s), true));
    TRY(shadows_refresh(s));
    TRY(phase_choose(s));
    s->phase = PHASE_IDLE;
    s->shown = 0;
    TRY(begin(s, 0, s->steps));
    s->steps++;
    if (decided)
        TRY(session_lost(s, decided_step(s, decided)));
    if (decided && *decided)
        return OK;
    TRY(later_settle(s)); /* what it asked for before, where it takes this one not */
    TRY(session_lost(s, run_side(s, last, true)));
    s->phase = PHASE_FORWARD;
    return OK;
}

/* Losses of the host: what it made of the outputs is there by now. */
static Status bind_given(Session *s)
{
    TRY(missing_inputs(s, 0, session_step_graph(s), true));
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        if (input->slot[0] >= 0 && input->bound && input->given)
            TRY(s->engine->bind(s->values, s->graphs[0].number, input->slot[0], value_kept((int)i)));
    }
    return OK;
}

/* Gradients join those of the runs before; states that forward moved go on from where they are. */
static Status accumulate(Session *s)
{
    int n = 0;
    TRY(sums_add(s, &n));
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].moves_early)
            add_move(s, &n, state_part(&s->states[i], PART_PENDING), session_step_result(s, s->states[i].next));
    TRY(s->engine->move(s->values, n, s->moves));
    sums_end(s);
    for (size_t i = 0; i < s->n_states; i++)
        s->states[i].has_pending |= s->states[i].moves_early;
    s->has_sums = s->n_graded > 0;
    return OK;
}

/* What lets go of sums, and of the states that went with them. */
static void forget_moves(Session *s, int *n)
{
    for (size_t i = 0; i < s->n_states; i++) {
        if (s->has_sums && s->states[i].gradient >= 0)
            add_move(s, n, state_part(&s->states[i], PART_SUM), value_none());
        if (s->states[i].has_pending)
            add_move(s, n, state_part(&s->states[i], PART_PENDING), value_none());
    }
}

static void forgotten(Session *s)
{
    s->has_sums = false;
    for (size_t i = 0; i < s->n_states; i++)
        s->states[i].has_pending = false;
}

static Status forget_sums(Session *s)
{
    int n = 0;
    forget_moves(s, &n);
    TRY(s->engine->move(s->values, n, s->moves));
    forgotten(s);
    return OK;
}

static Status run_backward(Session *s, bool accumulates, RunResult *r)
{
    const bool goes_on = accumulates && s->has_sums;
    TRY(scaling_begin(s, goes_on));
    TRY(session_side(s, STEP_BACKWARD));
    TRY(scaling_latch(s, goes_on));
    TRY(tell(s, false, r));
    return accumulates ? accumulate(s) : forget_sums(s);
}

static Status backward(Session *s, bool accumulates, RunResult *r)
{
    if (s->phase != PHASE_FORWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "backward follows forward");
    TRY(bind_given(s));
    const Scaling before = s->scaling; /* of the sums, which stay where this fails */
    s->shown = 0;
    const Status status = run_backward(s, accumulates, r);
    if (status == OK)
        s->phase = PHASE_BACKWARD;
    else
        s->scaling = before;
    return session_lost(s, status);
}

/* ---- the update ---- */

/* The update reads what was added up. */
static Status let_update_read_sums(Session *s)
{
    int n = 0;
    for (size_t i = 0; i < s->n_graded && s->has_sums; i++)
        add_move(s, &n, session_step_result(s, s->graded[i]->gradient), state_part(s->graded[i], PART_SUM));
    return s->engine->move(s->values, n, s->moves);
}

/* All that a step changes, at once. */
static Status commit(Session *s, RunResult *r)
{
    const Scaling *x = &s->scaling;
    int n = 0;
    TRY(tell(s, true, r));
    r->applied = x->scale ? scaling_prepare(s, &n) : r->finite;
    for (size_t i = 0; i < s->n_states && r->applied; i++) {
        const State *state = &s->states[i];
        if (state->next >= 0 && state != x->scale && state != x->counters)
            add_move(s, &n, state_part(state, PART_VALUE), session_step_result(s, state->next));
    }
    forget_moves(s, &n);
    TRY(s->engine->move(s->values, n, s->moves));
    scaling_committed(s);
    for (size_t i = 0; i < s->n_states && r->applied; i++)
        s->states[i].version += s->states[i].next >= 0;
    if (r->applied)
        shadows_commit(s);
    forgotten(s);
    return OK;
}

static Status update(Session *s, RunResult *r)
{
    if (s->phase != PHASE_BACKWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "update follows backward");
    TRY(session_lost(s, let_update_read_sums(s)));
    s->shown = 0;
    TRY(session_lost(s, scaling_find(s)));
    TRY(session_side(s, STEP_UPDATE));
    TRY(session_lost(s, commit(s, r)));
    s->phase = PHASE_DONE;
    return OK;
}

/* ---- runs ---- */

static Status run_alone(Session *s, int graph)
{
    const Graph *g;
    TRY(batches_choose(s, graph, &g));
    TRY(missing_inputs(s, graph, g, false));
    TRY(shadows_refresh(s));
    next_evaluated(s);
    s->shown = graph;
    TRY(begin(s, graph, 0));
    return s->engine->run(s->values, s->graphs[graph].number, 0);
}

/* How far the step runs before the session has to look at it. */
static StepPart first_part(const Session *s, unsigned what)
{
    if (!(what & RUN_BACKWARD) || what & RUN_ACCUMULATE)
        return STEP_FORWARD;
    return what & RUN_UPDATE && !s->scaling.scale ? STEP_UPDATE : STEP_BACKWARD;
}

/* *decided: the engine commits the step, and tells of it when it is asked. */
static Status sides(Session *s, unsigned what, bool *decided, RunResult *r)
{
    if (!(what & RUN_STEP) || what & ~(unsigned)(RUN_STEP | RUN_ACCUMULATE))
        return fail_as(s->ir->diag, USAGE, NOWHERE, "runs forward, backward and update, or eval alone");
    if (what & RUN_FORWARD)
        TRY(session_check_observed(s));
    if (what & RUN_FORWARD)
        TRY(forward(s, first_part(s, what), what == RUN_STEP && decided_may(s) ? decided : NULL));
    if (*decided)
        return OK;
    if (what & RUN_BACKWARD)
        TRY(backward(s, what & RUN_ACCUMULATE, r));
    else if (what & RUN_FORWARD)
        TRY(tell(s, false, r));
    return what & RUN_UPDATE ? update(s, r) : OK;
}

/* A step that was begun here and failed never was. */
static Status begun(Session *s, uint64_t before, Status status)
{
    if (status != OK && s->steps > before) {
        s->steps = before;
        s->phase = PHASE_IDLE;
        next_undo(s);
    }
    return status;
}

static Status run_now(Session *s, unsigned what, RunResult *r)
{
    const uint64_t before = s->steps;
    bool decided = false;
    TRY(begun(s, before, sides(s, what, &decided, r)));
    return decided ? begun(s, before, decided_told(s, s->steps, r)) : OK;
}

/* Asks for a step; of one that is held it is asked once more, unless the caller wants to do so. */
static Status run_later(Session *s, bool held, RunResult *r)
{
    const uint64_t before = s->steps;
    bool decided = false, again = false;
    if (!decided_may(s))
        TRY(later_settle(s));
    if (held && later_held(s, r))
        return OK;
    TRY(begun(s, before, sides(s, RUN_STEP, &decided, r)));
    if (!decided) {
        later_waits(s, r);
        return OK;
    }
    TRY(later_asked(s, r, &again));
    if (!again || held)
        return OK;
    RunResult none;
    const Status status = run_later(s, held, &none);
    if (status != OK)
        later_waits(s, r);
    return status;
}

Status session_run_graph(Session *s, const char *name, RunResult *result)
{
    RunResult r = { .finite = true };
    int graph = 1;
    while (graph < s->n_graphs && strcmp(s->graphs[graph].graph->name, name) != 0)
        graph++;
    if (graph >= s->n_graphs)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "has no graph @%s", name);
    TRY(later_settle(s));
    TRY(run_alone(s, graph));
    TRY(tell(s, false, &r));
    if (result)
        *result = r;
    return OK;
}

static Status run(Session *s, unsigned what, RunResult *r)
{
    const unsigned later = what & (RUN_LATER | RUN_HELD);
    if (later && (what & ~later) != RUN_STEP)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "whole steps alone are told of later");
    if (later)
        return run_later(s, later & RUN_HELD, r);
    TRY(later_settle(s));
    s->later.there = s->later.there && !(what & RUN_FORWARD);
    return run_now(s, what, r);
}

Status session_run(Session *s, unsigned what, RunResult *result)
{
    RunResult r = { .finite = true };
    if (what == RUN_OBSERVE)
        return session_observe(s);
    if (what == RUN_EVAL) {
        TRY(session_check_observed(s));
        return session_run_graph(s, "eval", result);
    }
    TRY(run(s, what, &r));
    if (result)
        *result = r;
    return OK;
}

Status session_abandon(Session *s)
{
    if (s->phase != PHASE_BACKWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "there are no gradients to abandon");
    return session_forget(s);
}

Status session_forget(Session *s)
{
    TRY(later_settle(s));
    TRY(forget_sums(s));
    s->phase = PHASE_IDLE;
    s->shown = 0;
    return OK;
}
