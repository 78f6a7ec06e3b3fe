/* The scale of a session's loss: which gradients have it, and what becomes of it. */
#include <math.h>
#include <string.h>

#include "ir/own_names.h"
#include "runtime/session/session_parts.h"

/* ---- opening ---- */

static const Node *result_as(const Session *s, ResultRole role)
{
    const int i = graph_result_of(s->graph, role, NULL);
    return i < 0 ? NULL : graph_result(s->graph, i);
}

/* The update_scale that makes the next scale. */
static const Node *mover(const Node *next)
{
    return next && next->op == OP_part ? in(next, 0) : NULL;
}

Status scaling_open(Session *s)
{
    Scaling *x = &s->scaling;
    Types *types = &s->ir->types;
    State *scale = session_state_of(s, STATE_scaler, NULL);
    State *counters = scale ? session_state_of(s, STATE_scaler, scale->name) : NULL;
    const Node *move = scale && scale->next >= 0 ? mover(graph_result(s->graph, scale->next)) : NULL;
    *x = (Scaling){ .latch = result_as(s, RESULT_latched), .found = result_as(s, RESULT_found), .own = { -1, 0 } };
    if (!scale && !counters && !x->latch)
        return OK;
    if (!scale || !counters || !x->latch || !x->found || !move || strcmp(op_of(move)->name, "update_scale") != 0 ||
        scale->next < 0 || counters->next < 0 || scale->type != type_scalar(types, F32) ||
        counters->type != type_vector(types, I64, SCALER_COUNTERS))
        return fail(s->ir->diag, NOWHERE,
                    "a scaled loss has states " SCALE_NAME ": f32[] and " SCALER_NAME ": i64[8], results " LATCHED_SCALE
                    " and " FOUND_NAME ", and an update_scale");
    x->scale = scale;
    x->counters = counters;
    x->rules = move->attr;
    return OK;
}

/* ---- gradients ---- */

static bool has_gradients(const Session *s)
{
    return s->phase == PHASE_BACKWARD || s->phase == PHASE_DONE;
}

static float value_of(const Tensor *scale)
{
    return *(const float *)scale->data;
}

void scaling_begin(Session *s, bool goes_on)
{
    Scaling *x = &s->scaling;
    if (!x->scale)
        return;
    const Tensor *now = goes_on && x->latched ? x->latched : x->scale->value;
    evaluation_put(s->step, s->graph->inputs[x->scale->slot], now);
    if (!goes_on)
        x->flags = 0;
}

/* g * factor, exact for a power of two. */
static Tensor *scaled(Session *s, const Tensor *g, float factor)
{
    Tensor *t = tensor_alloc(&s->heap, g->type);
    const int64_t n = tensor_elements(g);
    for (int64_t i = 0; i < n; i++)
        if (g->type->dtype == F32)
            ((f32 *)t->data)[i] = ((const f32 *)g->data)[i] * factor;
        else
            tensor_set_f64(t, i, tensor_get_f64(g, i) * (double)factor);
    return t;
}

/* Whether a state before this one has the same gradient. */
static bool was_seen(const Session *s, size_t i, const Node *gradient)
{
    for (size_t k = 0; k < i; k++)
        if (s->states[k].gradient >= 0 && graph_result(s->graph, s->states[k].gradient) == gradient)
            return true;
    return false;
}

/* Divides what the run left, and lets the update divide by 1. */
static void unscale_values(Session *s)
{
    const float factor = 1 / value_of(s->scaling.latched);
    for (size_t i = 0; i < s->n_states; i++) {
        const Node *node = s->states[i].gradient >= 0 ? graph_result(s->graph, s->states[i].gradient) : NULL;
        const Tensor *g = node ? evaluation_value(s->step, node) : NULL;
        if (!g || was_seen(s, i, node))
            continue;
        Tensor *t = scaled(s, g, factor);
        evaluation_put(s->step, node, t);
        tensor_drop(&s->heap, t);
    }
    Tensor *one = tensor_alloc(&s->heap, s->scaling.scale->type);
    tensor_set_f64(one, 0, 1);
    evaluation_put(s->step, s->scaling.latch, one);
    tensor_drop(&s->heap, one);
}

void scaling_latch(Session *s, bool goes_on)
{
    Scaling *x = &s->scaling;
    if (!x->scale)
        return;
    const Tensor *loss = session_result(s, "loss"), *latched = evaluation_value(s->step, x->latch);
    if (loss && tensor_elements(loss) == 1 && !isfinite(tensor_get_f64(loss, 0)))
        x->flags |= SCALER_FORWARD;
    session_keep_value(s, &x->latched, tensor_hold(latched));
    x->unscaled &= goes_on;
    if (x->unscaled)
        unscale_values(s);
}

Status session_unscale(Session *s, bool *already)
{
    Scaling *x = &s->scaling;
    if (!has_gradients(s))
        return fail_as(s->ir->diag, USAGE, NOWHERE, "there are no gradients: they follow backward");
    if (already)
        *already = x->unscaled;
    if (!x->scale || x->unscaled)
        return OK;
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].sum)
            session_keep_value(s, &s->states[i].sum, scaled(s, s->states[i].sum, 1 / value_of(x->latched)));
    unscale_values(s);
    x->unscaled = true;
    return OK;
}

Status session_abandon(Session *s)
{
    if (s->phase != PHASE_BACKWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "there are no gradients to abandon");
    session_forget(s);
    return OK;
}

SessionStage session_stage(const Session *s)
{
    if (s->phase == PHASE_BACKWARD)
        return s->scaling.unscaled ? SESSION_UNSCALED : SESSION_HAS_GRADIENTS;
    return s->scaling.stepped ? SESSION_STEPPED : SESSION_READY;
}

/* ---- the update ---- */

static bool all_finite(const Tensor *t)
{
    const int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(tensor_get_f64(t, i)))
            return false;
    return true;
}

/* What a session with gradients would find. */
static int64_t flags_ahead(const Session *s)
{
    for (size_t i = 0; i < s->n_states; i++) {
        const State *state = &s->states[i];
        const Node *node = state->gradient >= 0 ? graph_result(s->graph, state->gradient) : NULL;
        const Tensor *g = state->sum ? state->sum : node ? evaluation_value(s->step, node) : NULL;
        if (g && !all_finite(g))
            return SCALER_GRADIENT | s->scaling.flags;
    }
    return s->scaling.flags;
}

/* What the other sessions found, where one that is not finite keeps all from stepping. */
static int64_t flags_of_others(const Session *s)
{
    int64_t flags = 0;
    const Scaler *c = s->scaling.shared;
    for (const Session *o = c && c->together ? c->first : NULL; o; o = o->scaling.next)
        if (o != s)
            flags |= o->phase == PHASE_BACKWARD ? flags_ahead(o) : o->scaling.stepped ? o->scaling.own[1] : 0;
    return flags;
}

Status scaling_find(Session *s)
{
    Scaling *x = &s->scaling;
    if (!x->scale)
        return OK;
    if (x->stepped)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "a step was made since the shared scale moved: update that first");
    evaluation_put(s->step, s->graph->inputs[x->scale->slot], x->scale->value);
    TRY(session_side(s, x->found->next));
    const Tensor *found = evaluation_value(s->step, x->found);
    x->own[0] = tensor_get_i64(found, 0);
    x->own[1] = tensor_get_i64(found, 1) | x->flags;
    Tensor *all = session_copy(s, found);
    tensor_set_i64(all, 1, x->own[1] | flags_of_others(s));
    evaluation_put(s->step, x->found, all);
    tensor_drop(&s->heap, all);
    return OK;
}

static void commit_one(Session *s, State *state)
{
    const Tensor *next = evaluation_value(s->step, graph_result(s->graph, state->next));
    session_commit(s, state, session_copy(s, next));
}

bool scaling_commit(Session *s)
{
    Scaling *x = &s->scaling;
    const bool applied = scaler_applies(tensor_get_i64(evaluation_value(s->step, x->found), 1));
    x->stepped = x->shared != NULL;
    x->flags = 0;
    if (x->shared)
        return applied;
    commit_one(s, x->scale);
    commit_one(s, x->counters);
    return applied;
}

/* ---- what is seen of it ---- */

bool session_scaler(const Session *s, ScalerState *state)
{
    int64_t counters[SCALER_COUNTERS];
    if (!s->scaling.scale)
        return false;
    memcpy(counters, s->scaling.counters->value->data, sizeof counters);
    *state = scaler_unpack(value_of(s->scaling.scale->value), counters);
    return true;
}

/* The trained state of that place among the results that are gradients. */
static const char *gradient_at(const Session *s, int64_t place)
{
    for (int i = 0; i < graph_n_results(s->graph) && place >= 0; i++)
        for (size_t k = 0; k < s->n_states; k++)
            if (s->states[k].gradient == i && s->states[k].trained && place-- == 0)
                return s->states[k].name;
    return NULL;
}

void scaling_tell(const Session *s, RunResult *r)
{
    const Scaling *x = &s->scaling;
    ScalerState state;
    r->has_scale = session_scaler(s, &state);
    if (!r->has_scale || s->evaluated)
        return;
    r->next_scale = (double)state.scale;
    r->scale = x->latched ? (double)value_of(x->latched) : r->next_scale;
    if (s->phase != PHASE_DONE)
        return;
    r->found = x->shared ? x->own[1] : state.flags;
    r->finite = scaler_applies(x->own[1]);
    r->first_bad = gradient_at(s, x->own[0]);
}

Status scaling_put(Session *s, const Tensor *value)
{
    if (!scaler_is_scale(value_of(value)))
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s: %g is no power of two", s->scaling.scale->name,
                       (double)value_of(value));
    const Scaler *c = s->scaling.shared;
    scaling_set(c ? c->first : s, value, NULL);
    return OK;
}

Status session_freeze_scale(Session *s, bool stays)
{
    if (!s->scaling.scale)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "the loss is not scaled");
    const Scaler *c = s->scaling.shared; /* whose sessions have equal counters */
    int64_t values[SCALER_COUNTERS];
    const Tensor counters = { .type = s->scaling.counters->type, .data = values, .bytes = sizeof values };
    memcpy(values, s->scaling.counters->value->data, sizeof values);
    values[6] = (values[6] & ~(int64_t)SCALER_FROZEN) | (stays ? SCALER_FROZEN : 0);
    scaling_set(c ? c->first : s, NULL, &counters);
    return OK;
}
