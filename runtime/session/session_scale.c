/* The scale of a session's loss: which gradients have it, and what becomes of it. */
#include <math.h>
#include <string.h>

#include "ir/own_names.h"
#include "runtime/session/session_parts.h"

/* ---- opening ---- */

/* The update_scale that makes the next scale. */
static const Node *mover(const Node *next)
{
    return next && next->op == OP_part ? in(next, 0) : NULL;
}

/* Whether what was found, of which that makes the next scale, has a loss in it. */
static bool finds_loss(const Session *s, const Node *move)
{
    enum { FOUND = 2, LOSS = 1 }; /* operands of update_scale, and of check_finite */
    const Node *found = in(move, FOUND);
    return s->graphs[0].loss < 0 ||
           (strcmp(op_of(found)->name, "check_finite") == 0 && found->n_in > LOSS && in(found, LOSS));
}

Status scaling_open(Session *s)
{
    Scaling *x = &s->scaling;
    Types *types = &s->ir->types;
    State *scale = session_state_of(s, STATE_scaler, NULL);
    State *counters = scale ? session_state_of(s, STATE_scaler, scale->name) : NULL;
    const Graph *g = session_step_graph(s);
    const Node *move = scale && scale->next >= 0 ? mover(graph_result(g, scale->next)) : NULL;
    *x = (Scaling){ .latch = graph_result_of(g, RESULT_latched, NULL),
                    .found = graph_result_of(g, RESULT_found, NULL),
                    .applied = graph_result_of(g, RESULT_applied, NULL),
                    .own = { -1, 0 } };
    if (!scale && !counters && x->latch < 0)
        return OK;
    if (!scale || !counters || x->latch < 0 || x->found < 0 || x->applied < 0 || !move || !finds_loss(s, move) ||
        strcmp(op_of(move)->name, "update_scale") != 0 || scale->next < 0 || counters->next < 0 ||
        scale->type != type_scalar(types, F32) || counters->type != type_vector(types, I64, SCALER_COUNTERS))
        return fail(s->ir->diag, NOWHERE,
                    "a scaled loss has states " SCALE_NAME ": f32[] and " SCALER_NAME ": i64[8], results " LATCHED_SCALE
                    ", " FOUND_NAME " and " APPLIED_NAME ", and an update_scale by what was found, of the loss too");
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

/* Lets what has not run yet read the scale as it is now. */
static Status read_scale(Session *s)
{
    const State *scale = s->scaling.scale;
    return s->engine->bind(s->values, s->graphs[0].number, scale->slot[0], state_part(scale, PART_VALUE));
}

Status scaling_begin(Session *s, bool goes_on)
{
    Scaling *x = &s->scaling;
    if (!x->scale)
        return OK;
    if (!goes_on)
        x->flags = 0;
    if (!goes_on || !x->has_latched)
        return read_scale(s);
    return s->engine->bind(s->values, s->graphs[0].number, x->scale->slot[0], value_kept(s->latched));
}

/* Divides what the run left, and lets the update divide by 1; the sums too, where there are any. */
static Status unscale(Session *s, bool of_sums)
{
    int n = 0;
    TRY(sums_unscale(s, of_sums, &n));
    TRY(s->engine->move(s->values, n, s->moves));
    sums_end(s);
    return OK;
}

Status scaling_latch(Session *s, bool goes_on)
{
    Scaling *x = &s->scaling;
    bool there;
    double loss, scale;
    if (!x->scale)
        return OK;
    const ValueAt latch = session_step_result(s, x->latch);
    const ValueMove keep = { value_kept(s->latched), latch };
    TRY(session_number(s, session_step_result(s, s->graphs[0].loss), &there, &loss));
    if (there && !isfinite(loss))
        x->flags |= SCALER_FORWARD;
    TRY(session_number(s, latch, &there, &scale));
    TRY(s->engine->move(s->values, 1, &keep));
    x->latched = (float)scale;
    x->has_latched = true;
    x->is_told = false;
    x->has_found = false;
    x->unscaled &= goes_on;
    return x->unscaled ? unscale(s, false) : OK;
}

Status session_unscale(Session *s, bool *already)
{
    Scaling *x = &s->scaling;
    TRY(later_settle(s));
    if (!has_gradients(s))
        return fail_as(s->ir->diag, USAGE, NOWHERE, "there are no gradients: they follow backward");
    if (already)
        *already = x->unscaled;
    if (!x->scale || x->unscaled)
        return OK;
    TRY(scaling_keep(s));
    TRY(unscale(s, s->has_sums));
    x->unscaled = true;
    return OK;
}

SessionStage session_stage(const Session *s)
{
    if (s->phase == PHASE_BACKWARD)
        return s->scaling.unscaled ? SESSION_UNSCALED : SESSION_HAS_GRADIENTS;
    return s->scaling.stepped ? SESSION_STEPPED : SESSION_READY;
}

/* ---- what was found ---- */

/* The trained state of that place among the results that are gradients. */
static const char *gradient_at(const Session *s, int64_t place)
{
    for (int i = 0; i < graph_n_results(session_step_graph(s)) && place >= 0; i++)
        for (size_t k = 0; k < s->n_graded; k++)
            if (s->graded[k]->gradient == i && s->graded[k]->trained && place-- == 0)
                return s->graded[k]->name;
    return NULL;
}

/* What a result says of it: `state` is that of the scale behind the step. */
static void tell_found(const Session *s, const ScalerState *state, RunResult *r)
{
    const Scaling *x = &s->scaling;
    r->found = x->shared ? x->own[1] : state->flags;
    r->finite = scaler_applies(x->own[1]);
    r->first_bad = gradient_at(s, x->own[0]);
}

/* ---- the update ---- */

/* What a session with gradients would find. */
static Status flags_ahead(Session *s, int64_t *flags)
{
    bool finite = true;
    TRY(sums_finite(s, &finite));
    *flags |= s->scaling.flags | (finite ? 0 : SCALER_GRADIENT);
    return OK;
}

/* What the other sessions found, where one that is not finite keeps all from stepping. */
static Status flags_of_others(Session *s, int64_t *flags)
{
    const Scaler *c = s->scaling.shared;
    *flags = 0;
    for (Session *o = c && c->together ? c->first : NULL; o; o = o->scaling.next) {
        if (o != s && o->phase == PHASE_BACKWARD)
            TRY(flags_ahead(o, flags));
        else if (o != s && o->scaling.stepped)
            *flags |= o->scaling.own[1];
    }
    return OK;
}

/* What the step itself found; once, for what it is told replaces it. */
static Status find_own(Session *s)
{
    Scaling *x = &s->scaling;
    const Tensor *found = NULL;
    if (x->has_found)
        return OK;
    TRY(s->engine->get(s->values, session_step_result(s, x->found), &found));
    x->own[0] = tensor_get_i64(found, 0);
    x->own[1] = tensor_get_i64(found, 1) | x->flags;
    x->has_found = true;
    return OK;
}

Status scaling_find(Session *s)
{
    Scaling *x = &s->scaling;
    int64_t all[2];
    if (!x->scale)
        return OK;
    if (x->stepped)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "a step was made since the shared scale moved: update that first");
    TRY(read_scale(s));
    TRY(session_side(s, STEP_FIND));
    TRY(find_own(s));
    TRY(flags_of_others(s, &all[1]));
    all[0] = x->own[0];
    all[1] |= x->own[1];
    x->applies = scaler_applies(all[1]);
    const ValueAt at = session_step_result(s, x->found);
    Tensor told = { .type = type_vector(&s->ir->types, I64, 2), .data = all, .bytes = sizeof all }, *list[] = { &told };
    return s->engine->put(s->values, 1, &at, list, PUT_COPY);
}

bool scaling_prepare(Session *s, int *n_moves)
{
    const Scaling *x = &s->scaling;
    State *const moved[] = { x->scale, x->counters };
    for (size_t i = 0; i < 2 && !x->shared; i++)
        add_move(s, n_moves, state_part(moved[i], PART_VALUE), session_step_result(s, moved[i]->next));
    return x->applies;
}

void scaling_committed(Session *s)
{
    Scaling *x = &s->scaling;
    if (!x->scale)
        return;
    x->stepped = x->shared != NULL;
    x->flags = 0;
    if (x->shared)
        return;
    x->scale->version++;
    x->counters->version++;
}

/* ---- steps that a device commits ---- */

bool scaling_decides(const Session *s)
{
    const Scaling *x = &s->scaling;
    return !x->scale || !x->shared;
}

enum { TOLD_LATCHED, TOLD_FIRST, TOLD_FLAGS, TOLD_SCALE, TOLD_COUNTERS };

void scaling_ask(Session *s, EngineStep *step)
{
    Scaling *x = &s->scaling;
    StepNumber *to = step->numbers + step->n_numbers;
    if (!x->scale)
        return;
    to[TOLD_LATCHED] = (StepNumber){ .result = x->latch, .needed = true };
    to[TOLD_FIRST] = (StepNumber){ .result = x->found, .element = 0, .needed = true };
    to[TOLD_FLAGS] = (StepNumber){ .result = x->found, .element = 1, .needed = true };
    to[TOLD_SCALE] = (StepNumber){ .result = x->scale->next, .needed = true };
    for (int i = 0; i < SCALER_COUNTERS; i++)
        to[TOLD_COUNTERS + i] = (StepNumber){ .result = x->counters->next, .element = i, .needed = true };
    step->n_numbers += TOLD_COUNTERS + SCALER_COUNTERS;
    step->says = true;
    step->applied = x->applied;
    add_move(s, &step->n_moves, state_part(x->scale, PART_VALUE), session_step_result(s, x->scale->next));
    add_move(s, &step->n_moves, state_part(x->counters, PART_VALUE), session_step_result(s, x->counters->next));
    step->n_always = step->n_moves;
    x->unscaled = false; /* gradients of the step before it are gone */
    x->flags = 0;
}

void scaling_told(Session *s, const EngineTold *told, int n, RunResult *r)
{
    Scaling *x = &s->scaling;
    const double *numbers = told->numbers + n;
    const int64_t *integers = told->integers + n;
    if (!x->scale)
        return;
    r->scaler = scaler_unpack((float)numbers[TOLD_SCALE], integers + TOLD_COUNTERS);
    x->latched = (float)numbers[TOLD_LATCHED];
    x->has_latched = x->is_told = x->has_found = true;
    x->own[0] = integers[TOLD_FIRST];
    x->own[1] = integers[TOLD_FLAGS];
    x->applies = told->applied;
    r->has_scale = true;
    r->scale = (double)x->latched;
    r->next_scale = (double)r->scaler.scale;
    tell_found(s, &r->scaler, r);
    if (told->applied) /* or else here: they were committed, too */
        return;
    x->scale->version++;
    x->counters->version++;
}

Status scaling_keep(Session *s)
{
    Scaling *x = &s->scaling;
    if (!x->is_told)
        return OK;
    const ValueAt at = value_kept(s->latched);
    Tensor latched = { .type = x->scale->type, .data = &x->latched, .bytes = sizeof x->latched },
           *list[] = { &latched };
    TRY(s->engine->put(s->values, 1, &at, list, PUT_COPY));
    x->is_told = false;
    return OK;
}

/* ---- what is seen of it ---- */

/* The state of the scale as it is (`next`: as the update makes it). */
static Status read_state(Session *s, bool next, ScalerState *state)
{
    const Scaling *x = &s->scaling;
    const Tensor *scale = NULL, *counters = NULL;
    const ValueAt from[] = { next ? session_step_result(s, x->scale->next) : state_part(x->scale, PART_VALUE),
                             next ? session_step_result(s, x->counters->next) : state_part(x->counters, PART_VALUE) };
    TRY(s->engine->get(s->values, from[0], &scale));
    TRY(s->engine->get(s->values, from[1], &counters));
    *state = scaler_unpack(*(const float *)scale->data, counters->data);
    return OK;
}

Status scaling_read(Session *s, ScalerState *state)
{
    return read_state(s, false, state);
}

Status scaling_as(Session *s, Session *other)
{
    const Tensor *scale = NULL, *counters = NULL;
    TRY(other->engine->get(other->values, state_part(other->scaling.scale, PART_VALUE), &scale));
    TRY(other->engine->get(other->values, state_part(other->scaling.counters, PART_VALUE), &counters));
    return scaling_set(s, scale, counters);
}

bool session_scaler(Session *s, ScalerState *state)
{
    return s->scaling.scale && later_settle(s) == OK && read_state(s, false, state) == OK;
}

Status scaling_tell(Session *s, bool done, RunResult *r)
{
    const Scaling *x = &s->scaling;
    ScalerState state;
    if (!x->scale)
        return OK;
    TRY(read_state(s, done && !x->shared, &state));
    r->has_scale = true;
    r->scaler = state;
    if (s->shown)
        return OK;
    r->next_scale = (double)state.scale;
    r->scale = x->has_latched ? (double)x->latched : r->next_scale;
    if (!done)
        return OK;
    tell_found(s, &state, r);
    return OK;
}

Status scaling_put(Session *s, const Tensor *value)
{
    const float scale = *(const float *)value->data;
    if (!scaler_is_scale(scale))
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s: %g is no power of two", s->scaling.scale->name, (double)scale);
    const Scaler *c = s->scaling.shared;
    return scaling_set(c ? c->first : s, value, NULL);
}

Status session_freeze_scale(Session *s, bool stays)
{
    ScalerState state;
    int64_t values[SCALER_COUNTERS];
    TRY(later_settle(s));
    if (!s->scaling.scale)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "the loss is not scaled");
    TRY(read_state(s, false, &state));
    const Scaler *c = s->scaling.shared; /* whose sessions have equal counters */
    const Tensor counters = { .type = s->scaling.counters->type, .data = values, .bytes = sizeof values };
    state.flags = (state.flags & ~(int64_t)SCALER_FROZEN) | (stays ? SCALER_FROZEN : 0);
    scaler_pack(&state, values);
    return scaling_set(c ? c->first : s, NULL, &counters);
}
