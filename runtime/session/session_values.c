/* What a session shows and takes, by name or by what a name was found to mean. */
#include <string.h>

#include "base/str.h"
#include "runtime/session/session_parts.h"

/* ---- names ---- */

Input *session_input_named(const Session *s, const char *name)
{
    const MapEntry *e = map_find(&s->by_name, name);
    return e && !session_state(s, name) ? e->value.p : NULL;
}

static State *state_of_gradient(const Session *s, const char *name)
{
    const MapEntry *e = map_find(&s->gradients, name);
    return e ? e->value.p : NULL;
}

/* Of the first graph that has it. */
static const Node *input_node(const Session *s, const Input *input)
{
    int graph = 0;
    while (input->slot[graph] < 0)
        graph++;
    return s->graphs[graph].graph->inputs[input->slot[graph]];
}

const Node *session_input(const Session *s, const char *name)
{
    const Input *input = session_input_named(s, name);
    return input ? input_node(s, input) : NULL;
}

const Node *session_input_of(const Session *s, InputRole role)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (node_role(input_node(s, &s->inputs[i])).role == (int)role)
            return input_node(s, &s->inputs[i]);
    return NULL;
}

bool session_find(const Session *s, const char *name, SessionValue *v)
{
    *v = (SessionValue){ .name = name,
                         .input = session_input_named(s, name),
                         .state = session_state(s, name),
                         .of = state_of_gradient(s, name) };
    bool found = v->input || v->state || v->of;
    for (int g = s->n_graphs; g-- > 0;) {
        const MapEntry *e = map_find(&s->graphs[g].result, name);
        v->result[g] = e ? (int)e->value.i : -1;
        v->name = e ? e->key : v->name;
        found |= e != NULL;
    }
    return found;
}

static Status no_such(Session *s, const char *name)
{
    const char **names = NEWS(s->ir->diag->arena, const char *, s->n_inputs + s->n_states + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n_inputs; i++)
        names[n++] = s->inputs[i].name;
    for (size_t i = 0; i < s->n_states - s->n_shadows; i++)
        names[n++] = s->states[i].name;
    const char *near = str_nearest(name, names, n);
    Message *m = message_new(s->ir->diag, SEVERITY_ERROR, USAGE, NOWHERE, "the step has no value named %s", name);
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

Status session_wrong_type(Session *s, const char *name, const Type *have, const Type *want)
{
    Arena *arena = s->ir->diag->arena;
    return fail_as(s->ir->diag, USAGE, NOWHERE, "%s: got %s, wanted %s", name, type_text(arena, have),
                   type_text(arena, want));
}

/* ---- what it shows ---- */

static const Tensor *host(Session *s, ValueAt at)
{
    const Tensor *t = NULL;
    return s->engine->get(s->values, at, &t) == OK ? t : NULL;
}

static const Tensor *result_of(Session *s, const SessionValue *v)
{
    const int result = v->result[s->shown];
    if (result < 0 || (!s->shown && s->phase == PHASE_IDLE))
        return NULL;
    return host(s, value_result(s->graphs[s->shown].number, result));
}

Status session_value(Session *s, const State *state, const Tensor **value)
{
    TRY(later_settle(s));
    if (state->master)
        TRY(shadows_refresh(s));
    return s->engine->get(s->values, state_part(state, PART_VALUE), value);
}

const Tensor *session_gradient(Session *s, State *of)
{
    if (later_settle(s) != OK)
        return NULL;
    if (of->gradient < 0 || (s->phase == PHASE_IDLE && !s->has_sums))
        return NULL; /* an evaluation since leaves gradients alone */
    const bool there = s->phase == PHASE_BACKWARD || s->phase == PHASE_DONE;
    if (there && session_unscale(s, NULL) != OK)
        return NULL;
    return host(s, s->has_sums ? state_part(of, PART_SUM) : session_step_result(s, of->gradient));
}

const Tensor *session_view_value(Session *s, const SessionValue *v)
{
    const Tensor *value = NULL;
    if (later_settle(s) != OK)
        return NULL;
    if (v->state)
        return session_value(s, v->state, &value) == OK ? value : NULL;
    if (v->of && (s->has_sums || s->phase != PHASE_IDLE))
        return session_gradient(s, v->of);
    return result_of(s, v);
}

const Tensor *session_view(Session *s, const char *name)
{
    SessionValue v;
    return session_find(s, name, &v) ? session_view_value(s, &v) : NULL;
}

/* ---- what it takes ---- */

/* Whether some graph takes a value of the type as it is: @eval may take other batches than a step of several. */
static bool is_taken(const Session *s, const Input *input, const Type *type)
{
    for (int g = 0; g < s->n_graphs; g++)
        if (input->slot[g] >= 0 && type_agrees(type, s->graphs[g].graph->inputs[input->slot[g]]->type))
            return true;
    return false;
}

Status session_lend(Session *s, Input *input, const Tensor *value)
{
    const ValueAt at = value_kept((int)(input - s->inputs));
    Tensor lent = *value, *list[] = { &lent };
    TRY(s->engine->put(s->values, 1, &at, list, PUT_LEND));
    input->bound = value->type;
    return OK;
}

Status session_bind_value(Session *s, const SessionValue *v, const Tensor *value)
{
    Input *input = v->input;
    if (!input)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s is no input: it %s", v->name,
                       v->state || v->of ? "is put, not bound" : "is viewed, not bound");
    bool taken = is_taken(s, input, value->type);
    if (!taken)
        TRY(batches_take(s, input, value->type, &taken));
    if (!taken)
        return session_wrong_type(s, input->name, value->type, input_node(s, input)->type);
    TRY(session_lend(s, input, value));
    input->counts_all = false;
    input->rebound = input->coming.type != NULL;
    return OK;
}

Status session_bind(Session *s, const char *name, const Tensor *value)
{
    SessionValue v;
    return session_find(s, name, &v) ? session_bind_value(s, &v, value) : no_such(s, name);
}

Status session_bind_next(Session *s, const char *name, const Tensor *value)
{
    SessionValue v;
    return session_find(s, name, &v) ? session_bind_next_value(s, &v, value) : no_such(s, name);
}

static Status put_gradient(Session *s, State *of, const char *name, const Tensor *value)
{
    Tensor given = *value, *list[] = { &given };
    if (s->phase != PHASE_BACKWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s: gradients are there between backward and update", name);
    TRY(session_unscale(s, NULL));
    const ValueAt at = s->has_sums ? state_part(of, PART_SUM) : session_step_result(s, of->gradient);
    return s->engine->put(s->values, 1, &at, list, PUT_COPY);
}

static Status put_state(Session *s, State *state, const Tensor *value)
{
    Tensor given = *value, *list[] = { &given };
    return state == s->scaling.scale ? scaling_put(s, value) : session_set_states(s, 1, &state, list, PUT_COPY);
}

Status session_put_value(Session *s, const SessionValue *v, const Tensor *value)
{
    State *state = v->state, *of = v->of;
    TRY(later_settle(s));
    if (!state && !of)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s is no state: it %s", v->name,
                       v->input ? "is bound, not put" : "is viewed, not put");
    if (state && state->master)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s is made from %s: put that", v->name, state->master->name);
    const Type *want = state ? state->type : graph_result(session_step_graph(s), of->gradient)->type;
    if (value->type != want)
        return session_wrong_type(s, v->name, value->type, want);
    return state ? put_state(s, state, value) : put_gradient(s, of, v->name, value);
}

Status session_put(Session *s, const char *name, const Tensor *value)
{
    SessionValue v;
    return session_find(s, name, &v) ? session_put_value(s, &v, value) : no_such(s, name);
}
