#include "base/bytes.h"
#include "runtime/session/session_parts.h"

#include <string.h>

/* ---- opening ---- */

static void add_state(Session *s, const Node *n, int slot, int eval_slot)
{
    bool fresh;
    MapEntry *e = map_put(&s->by_name, n->name, &fresh);
    if (fresh) {
        State *state = &s->states[s->n_states++];
        *state = (State){ .name = n->name,
                          .type = n->type,
                          .initial = state_initial(n),
                          .mark = node_role(n),
                          .slot = -1,
                          .eval_slot = -1,
                          .next = -1,
                          .gradient = -1 };
        e->value.p = state;
    }
    State *state = e->value.p;
    state->trained |= (n->flags & NODE_TRAINED) != 0;
    state->slot = slot >= 0 ? slot : state->slot;
    state->eval_slot = eval_slot >= 0 ? eval_slot : state->eval_slot;
}

static void add_input(Session *s, const Node *n, int slot, int eval_slot)
{
    bool fresh;
    MapEntry *e = map_put(&s->by_name, n->name, &fresh);
    if (fresh) {
        Input *input = &s->inputs[s->n_inputs++];
        *input = (Input){ .name = n->name, .slot = -1, .eval_slot = -1 };
        e->value.p = input;
    }
    Input *input = e->value.p;
    input->given |= is_given_gradient(n);
    input->slot = slot >= 0 ? slot : input->slot;
    input->eval_slot = eval_slot >= 0 ? eval_slot : input->eval_slot;
}

static Status add_signature(Session *s, const Graph *g, bool eval)
{
    for (size_t i = 0; g && i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (!n->name)
            return fail(s->ir->diag, NOWHERE, "input %zu of the step has no name", i);
        (n->op == OP_state ? add_state : add_input)(s, n, eval ? -1 : (int)i, eval ? (int)i : -1);
    }
    return OK;
}

static void name_results(Session *s, const Graph *g, Map *names)
{
    bool fresh;
    map_open(names, s->arena);
    for (int i = 0; g && i < graph_n_results(g); i++)
        if (graph_result(g, i) && graph_result_name(g, i))
            map_put(names, graph_result_name(g, i), &fresh)->value.p = graph_result(g, i);
}

/* Which results are next values of states, and which gradients. */
static void link_results(Session *s)
{
    map_open(&s->gradients, s->arena);
    for (int i = 0; i < graph_n_results(s->graph); i++) {
        const RoleMark mark = graph_result_mark(s->graph, i);
        const char *name = graph_result_name(s->graph, i);
        const bool gradient = mark.role == RESULT_gradient;
        State *state = !graph_result(s->graph, i) ? NULL : session_state(s, gradient ? mark.of : name);
        if (!state)
            continue;
        *(gradient ? &state->gradient : &state->next) = i;
        if (gradient && name)
            map_put(&s->gradients, name, NULL)->value.p = state;
    }
}

static void find_sides(Session *s)
{
    for (const Node *n = s->graph->first; n; n = n->next) {
        if (n->flags & NODE_BACKWARD && !s->backward)
            s->backward = n;
        if (n->flags & NODE_UPDATE && !s->update)
            s->update = n;
    }
}

Tensor *session_copy(Session *s, const Tensor *t)
{
    Tensor *copy = tensor_alloc(&s->heap, t->type);
    if (t->bytes)
        bytes_copy(copy->data, t->data, t->bytes);
    return copy;
}

static Status set_initial(Session *s, State *state)
{
    if (!type_known(state->type) || state->type->kind != TYPE_TENSOR)
        return fail(s->ir->diag, NOWHERE, "state %s has no known shape", state->name);
    TRY(tensor_wants_numbers(s->ir->diag, NOWHERE, arena_printf(s->arena, "state %s", state->name), state->type));
    if (!state->initial) {
        state->value = tensor_alloc(&s->heap, state->type);
        if (state->value->bytes)
            memset(state->value->data, 0, state->value->bytes);
        return OK;
    }
    /* Straight into the session's own memory: a weight is held once. */
    state->value = tensor_alloc(&s->heap, state->type);
    return payload_read(state->initial, state->value, s->ir->diag);
}

Status session_open(Module *m, const SessionOptions *options, Arena *arena, Session **session)
{
    Session *s = NEW(arena, Session);
    *s = (Session){ .ir = m->ir,
                    .arena = arena,
                    .graph = module_graph(m, "step"),
                    .eval_graph = module_graph(m, "eval"),
                    .options = { .kernels = options->kernels,
                                 .pool = options->pool,
                                 .seed = options->seed,
                                 .stop = options->stop,
                                 .stop_too = options->stop_too,
                                 .rounding = options->rounding } };
    if (!s->graph)
        return fail(m->ir->diag, NOWHERE, "has no graph @step: it is no training step");
    const size_t n = s->graph->n_inputs + (s->eval_graph ? s->eval_graph->n_inputs : 0);
    s->states = NEWS(arena, State, n + 1);
    s->inputs = NEWS(arena, Input, n + 1);
    s->arguments = NEWS(arena, const Tensor *, n + 1);
    map_open(&s->by_name, arena);
    heap_open(&s->heap, m->ir->memory);
    heap_reuse(&s->heap);
    Status status = add_signature(s, s->graph, false);
    status = status == OK ? add_signature(s, s->eval_graph, true) : status;
    status = status == OK ? shadows_open(s) : status;
    name_results(s, s->graph, &s->result);
    name_results(s, s->eval_graph, &s->eval_result);
    link_results(s);
    find_sides(s);
    status = status == OK ? scaling_open(s) : status;
    for (size_t i = 0; i < s->n_states && status == OK; i++)
        status = set_initial(s, &s->states[i]);
    if (status != OK) {
        heap_close(&s->heap);
        return status;
    }
    s->step = evaluation_open(s->graph, &s->options, arena, &s->heap);
    if (s->eval_graph)
        s->eval = evaluation_open(s->eval_graph, &s->options, arena, &s->heap);
    *session = s;
    return OK;
}

void session_keep(Session *s)
{
    heap_keep(&s->heap);
    evaluation_keep(s->step);
    if (s->eval)
        evaluation_keep(s->eval);
}

void session_close(Session *s)
{
    if (!s)
        return;
    scaler_leave(s);
    evaluation_close(s->step);
    evaluation_close(s->eval);
    heap_close(&s->heap);
}

/* ---- names ---- */

State *session_state(const Session *s, const char *name)
{
    const MapEntry *e = name ? map_find(&s->by_name, name) : NULL;
    State *state = e ? e->value.p : NULL;
    return state && state >= s->states && state < s->states + s->n_states ? state : NULL;
}

State *session_state_of(const Session *s, StateRole role, const char *of)
{
    for (size_t i = 0; i < s->n_states; i++) {
        const RoleMark mark = s->states[i].mark;
        if (mark.role == (int)role && (mark.of == of || (mark.of && of && strcmp(mark.of, of) == 0)))
            return &s->states[i];
    }
    return NULL;
}

const char *session_gradient_name(const Session *s, const State *of)
{
    return of->gradient >= 0 ? graph_result_name(s->graph, of->gradient) : NULL;
}

State *session_states(Session *s, size_t *n)
{
    *n = s->n_states - s->n_shadows;
    return s->states;
}

uint64_t session_step(const Session *s)
{
    return s->steps;
}

void session_set_step(Session *s, uint64_t step)
{
    s->steps = step;
}

uint64_t session_seed(const Session *s)
{
    return s->options.seed;
}

void session_set_seed(Session *s, uint64_t seed)
{
    s->options.seed = seed;
    evaluation_set_seed(s->step, seed);
    if (s->eval)
        evaluation_set_seed(s->eval, seed);
}

/* ---- values that become those of states ---- */

void session_keep_value(Session *s, Tensor **where, Tensor *value)
{
    if (*where)
        tensor_drop(&s->heap, *where);
    *where = value;
}

void session_commit(Session *s, State *state, Tensor *value)
{
    session_keep_value(s, &state->value, value);
    state->version++;
}

void session_put_on(Session *s, const State *state)
{
    const Node *input = state->slot >= 0 ? s->graph->inputs[state->slot] : NULL;
    const bool runs = s->phase == PHASE_FORWARD || s->phase == PHASE_BACKWARD;
    if (input && runs && evaluation_value(s->step, input))
        evaluation_put(s->step, input, state->value);
}

void session_set_state(Session *s, State *state, Tensor *value)
{
    session_commit(s, state, value);
    session_keep_value(s, &state->pending, NULL);
    session_put_on(s, state);
}

void session_forget_sums(Session *s)
{
    for (size_t i = 0; i < s->n_states; i++) {
        session_keep_value(s, &s->states[i].sum, NULL);
        session_keep_value(s, &s->states[i].pending, NULL);
    }
}

void session_forget(Session *s)
{
    session_forget_sums(s);
    s->phase = PHASE_IDLE;
    s->evaluated = false;
}

void session_exchange(Session *s, const char *a, const char *b)
{
    State *x = session_state(s, a), *y = session_state(s, b);
    if (!x || !y || x->type != y->type)
        return;
    Tensor *value = x->value;
    x->value = y->value;
    y->value = value;
    x->version++; /* shadows follow */
    y->version++;
}

void session_adopt(Session *s, Tensor *const *values)
{
    for (size_t i = 0; i < s->n_states - s->n_shadows; i++)
        if (values[i])
            shadows_prepare(s, &s->states[i], values[i]); /* all memory first */
    for (size_t i = 0; i < s->n_states - s->n_shadows; i++) {
        if (!values[i])
            continue;
        heap_take(&s->heap, values[i]);
        session_set_state(s, &s->states[i], values[i]);
    }
    shadows_set(s);
}
