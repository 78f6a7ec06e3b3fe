/* What a session shows and takes, by name or by what a name was found to mean. */
#include <string.h>

#include "base/str.h"
#include "runtime/session/session_parts.h"

/* ---- names ---- */

static Input *input_named(const Session *s, const char *name)
{
    const MapEntry *e = map_find(&s->by_name, name);
    return e && !session_state(s, name) ? e->value.p : NULL;
}

static State *state_of_gradient(const Session *s, const char *name)
{
    const MapEntry *e = map_find(&s->gradients, name);
    return e ? e->value.p : NULL;
}

static const Node *input_node(const Session *s, const Input *input)
{
    return input->slot >= 0 ? s->graph->inputs[input->slot] : s->eval_graph->inputs[input->eval_slot];
}

const Node *session_input(const Session *s, const char *name)
{
    const Input *input = input_named(s, name);
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
    const MapEntry *result = map_find(&s->result, name), *eval = map_find(&s->eval_result, name);
    *v = (SessionValue){ .name = result ? result->key : name,
                         .input = input_named(s, name),
                         .state = session_state(s, name),
                         .of = state_of_gradient(s, name),
                         .result = result ? result->value.p : NULL,
                         .eval_result = eval ? eval->value.p : NULL };
    return v->input || v->state || v->of || v->result || v->eval_result;
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

static const Tensor *result_of(const Session *s, const SessionValue *v)
{
    const Node *n = s->evaluated ? v->eval_result : v->result;
    if (!n || (!s->evaluated && s->phase == PHASE_IDLE))
        return NULL;
    return evaluation_value(s->evaluated ? s->eval : s->step, n);
}

const Tensor *session_result(const Session *s, const char *name)
{
    SessionValue v;
    return session_find(s, name, &v) ? result_of(s, &v) : NULL;
}

const Tensor *session_view_value(Session *s, const SessionValue *v)
{
    if (v->state && v->state->master)
        shadows_refresh(s);
    if (v->state)
        return v->state->value;
    if (v->of && (s->phase == PHASE_BACKWARD || s->phase == PHASE_DONE))
        (void)session_unscale(s, NULL);
    if (v->of && v->of->sum)
        return v->of->sum;
    if (v->of && s->phase != PHASE_IDLE) /* an evaluation since leaves gradients alone */
        return evaluation_value(s->step, graph_result(s->graph, v->of->gradient));
    return result_of(s, v);
}

const Tensor *session_gradient(Session *s, State *of)
{
    const SessionValue v = { .of = of };
    return of->gradient >= 0 ? session_view_value(s, &v) : NULL;
}

const Tensor *session_view(Session *s, const char *name)
{
    SessionValue v;
    return session_find(s, name, &v) ? session_view_value(s, &v) : NULL;
}

/* ---- what it takes ---- */

Status session_bind_value(Session *s, const SessionValue *v, const Tensor *value)
{
    Input *input = v->input;
    if (!input)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s is no input: it %s", v->name,
                       v->state || v->of ? "is put, not bound" : "is viewed, not bound");
    const Type *want = input_node(s, input)->type;
    const bool evaluates =
        input->eval_slot >= 0 && type_agrees(value->type, s->eval_graph->inputs[input->eval_slot]->type);
    if (!type_agrees(value->type, want) && !evaluates) /* @eval may take other batches than a step of several */
        return session_wrong_type(s, input->name, value->type, want);
    if (!input->bound)
        input->tensor.refs = 1; /* ours; an evaluation may hold it still */
    input->tensor.type = value->type;
    input->tensor.data = value->data;
    input->tensor.bytes = value->bytes;
    input->bound = true;
    return OK;
}

Status session_bind(Session *s, const char *name, const Tensor *value)
{
    SessionValue v;
    return session_find(s, name, &v) ? session_bind_value(s, &v, value) : no_such(s, name);
}

static Status put_state(Session *s, State *state, const Tensor *value)
{
    if (state == s->scaling.scale)
        return scaling_put(s, value);
    Tensor *copy = session_copy(s, value);
    shadows_prepare(s, state, copy);
    session_set_state(s, state, copy);
    shadows_set(s);
    return OK;
}

static Status put_gradient(Session *s, State *of, const char *name, const Tensor *value)
{
    Tensor *copy = session_copy(s, value);
    if (s->phase != PHASE_BACKWARD) {
        tensor_drop(&s->heap, copy);
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s: gradients are there between backward and update", name);
    }
    (void)session_unscale(s, NULL);
    if (of->sum) {
        tensor_drop(&s->heap, of->sum);
        of->sum = copy;
        return OK;
    }
    evaluation_put(s->step, graph_result(s->graph, of->gradient), copy);
    tensor_drop(&s->heap, copy);
    return OK;
}

Status session_put_value(Session *s, const SessionValue *v, const Tensor *value)
{
    State *state = v->state, *of = v->of;
    if (!state && !of)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s is no state: it %s", v->name,
                       v->input ? "is bound, not put" : "is viewed, not put");
    if (state && state->master)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s is made from %s: put that", v->name, state->master->name);
    const Type *want = state ? state->type : graph_result(s->graph, of->gradient)->type;
    if (value->type != want)
        return session_wrong_type(s, v->name, value->type, want);
    return state ? put_state(s, state, value) : put_gradient(s, of, v->name, value);
}

Status session_put(Session *s, const char *name, const Tensor *value)
{
    SessionValue v;
    return session_find(s, name, &v) ? session_put_value(s, &v, value) : no_such(s, name);
}
