/* How a session begins and ends: what the signatures of its graphs name, and where the engine keeps it. */
#include "runtime/session/session_parts.h"

#include <string.h>

/* ---- names ---- */

static void no_slots(int *slot)
{
    for (int g = 0; g < SESSION_GRAPHS; g++)
        slot[g] = -1;
}

static void add_state(Session *s, const Node *n, int graph, int slot)
{
    bool fresh;
    MapEntry *e = map_put(&s->by_name, n->name, &fresh);
    if (fresh) {
        State *state = &s->states[s->n_states++];
        *state = (State){ .name = n->name,
                          .type = n->type,
                          .initial = state_initial(n),
                          .mark = node_role(n),
                          .next = -1,
                          .gradient = -1 };
        no_slots(state->slot);
        e->value.p = state;
    }
    State *state = e->value.p;
    state->trained |= (n->flags & NODE_TRAINED) != 0;
    state->slot[graph] = slot;
}

static void add_input(Session *s, const Node *n, int graph, int slot)
{
    bool fresh;
    MapEntry *e = map_put(&s->by_name, n->name, &fresh);
    if (fresh) {
        Input *input = &s->inputs[s->n_inputs++];
        *input = (Input){ .name = n->name };
        no_slots(input->slot);
        e->value.p = input;
    }
    Input *input = e->value.p;
    input->given |= is_given_gradient(n);
    input->counts_all |= node_role(n).role == INPUT_valid;
    input->slot[graph] = slot;
}

static Status add_signature(Session *s, int graph)
{
    const Graph *g = s->graphs[graph].graph;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (!n->name)
            return fail(s->ir->diag, NOWHERE, "input %zu of the step has no name", i);
        (n->op == OP_state ? add_state : add_input)(s, n, graph, (int)i);
    }
    return OK;
}

static int result_named(const SessionGraph *g, const char *name)
{
    const MapEntry *e = map_find(&g->result, name);
    return e ? (int)e->value.i : -1;
}

static void name_results(Session *s, SessionGraph *g)
{
    map_open(&g->result, s->arena);
    for (int i = 0; i < graph_n_results(g->graph); i++)
        if (graph_result(g->graph, i) && graph_result_name(g->graph, i))
            map_put(&g->result, graph_result_name(g->graph, i), NULL)->value.i = i;
    g->loss = result_named(g, "loss");
    g->norm = result_named(g, "grad_norm");
    g->rate = result_named(g, "lr");
}

/* Which results are next values of states, and which gradients. */
static void link_results(Session *s)
{
    const Graph *g = session_step_graph(s);
    map_open(&s->gradients, s->arena);
    for (int i = 0; i < graph_n_results(g); i++) {
        const RoleMark mark = graph_result_mark(g, i);
        const char *name = graph_result_name(g, i);
        const bool gradient = mark.role == RESULT_gradient;
        State *state = !graph_result(g, i) ? NULL : session_state(s, gradient ? mark.of : name);
        if (!state)
            continue;
        *(gradient ? &state->gradient : &state->next) = i;
        if (gradient && name)
            map_put(&s->gradients, name, NULL)->value.p = state;
    }
    s->graded = NEWS(s->arena, State *, s->n_states + 1);
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].gradient >= 0)
            s->graded[s->n_graded++] = &s->states[i];
}

/* ---- the parts of a step ---- */

/* The states whose next value is made by forward or backward. */
static void find_early(const Session *s, const Graph *g, const Node *update, bool *moves)
{
    bool *early = NEWS(s->ir->diag->arena, bool, g->root->n_ids + 1);
    for (const Node *n = g->first; n && n != update; n = n->next)
        early[n->id] = true;
    for (size_t i = 0; i < s->n_states; i++) {
        const Node *next = s->states[i].next >= 0 ? graph_result(g, s->states[i].next) : NULL;
        moves[i] = next && (early[next->id] || next->op == OP_state || next->op == OP_input);
    }
}

void session_find_parts(const Session *s, const Graph *g, StepGraph *parts)
{
    const Node *backward = NULL, *update = NULL;
    for (const Node *n = g->first; n; n = n->next) {
        if (n->flags & NODE_BACKWARD && !backward)
            backward = n;
        if (n->flags & NODE_UPDATE && !update)
            update = n;
    }
    const Node *found = s->scaling.scale ? graph_result(g, s->scaling.found) : NULL;
    parts->ends[STEP_FORWARD] = backward ? backward : update;
    parts->ends[STEP_BACKWARD] = update;
    parts->ends[STEP_FIND] = found ? found->next : update;
    parts->ends[STEP_UPDATE] = NULL;
    find_early(s, g, update, parts->early);
}

Status session_load(Session *s, Executable x, int *number)
{
    ProgramMaker *make = s->engine->wants_programs && !x.brief ? s->options.programs : NULL;
    const bool later = make && x.n_parts == 1 && graph_is_open(x.graph);
    Arena *arena = x.arena ? x.arena : s->arena;
    x.program = make && !later ? make(s->options.maker, x.graph, NULL, true, arena) : NULL;
    x.programs = later ? make : NULL;
    x.maker = s->options.maker;
    return s->engine->load(s->values, &x, number);
}

/* ---- opening ---- */

static const char *const usual_graphs[] = { "step", "eval", "observe", NULL };

static Status take_graphs(Session *s, const Module *m)
{
    const char *const *names = s->options.graphs ? s->options.graphs : usual_graphs;
    for (; *names && s->n_graphs < SESSION_GRAPHS; names++) {
        Graph *g = module_graph(m, *names);
        if (!g && !s->n_graphs)
            return fail(m->ir->diag, NOWHERE, "has no graph @%s: it is no training step", *names);
        if (g)
            s->graphs[s->n_graphs++].graph = g;
    }
    return OK;
}

static Status take_signatures(Session *s, const Module *m)
{
    size_t n = 0;
    for (int g = 0; g < s->n_graphs; g++)
        n += s->graphs[g].graph->n_inputs;
    s->states = NEWS(s->arena, State, n + 1);
    s->inputs = NEWS(s->arena, Input, n + 1);
    s->arguments = NEWS(s->arena, ValueAt, 2 * n + 1);
    map_open(&s->by_name, s->arena);
    for (int g = 0; g < s->n_graphs; g++)
        TRY(add_signature(s, g));
    TRY(shadows_open(s));
    for (int g = 0; g < s->n_graphs; g++)
        name_results(s, &s->graphs[g]);
    link_results(s);
    TRY(scaling_open(s));
    s->step.early = NEWS(s->arena, bool, s->n_states + 1);
    session_find_parts(s, session_step_graph(s), &s->step);
    for (size_t i = 0; i < s->n_states; i++)
        s->states[i].moves_early = s->step.early[i];
    return phase_open(s, m);
}

static Status set_initial(Session *s, State *state)
{
    if (!type_known(state->type) || state->type->kind != TYPE_TENSOR)
        return fail(s->ir->diag, NOWHERE, "state %s has no known shape", state->name);
    TRY(tensor_wants_numbers(s->ir->diag, NOWHERE, arena_printf(s->arena, "state %s", state->name), state->type));
    if (state->master) /* shadows_refresh makes it before anything reads it */
        return OK;
    return s->engine->fill(s->values, state->kept, state->type, state->initial);
}

static Status fill_values(Session *s)
{
    for (size_t i = 0; i < s->n_states; i++)
        TRY(set_initial(s, &s->states[i]));
    const Executable step = { .graph = s->graphs[0].graph, .n_parts = STEP_PARTS, .ends = s->step.ends };
    TRY(session_load(s, step, &s->graphs[0].number));
    for (int g = 1; g < s->n_graphs; g++)
        TRY(session_load(s, (Executable){ .graph = s->graphs[g].graph, .n_parts = 1 }, &s->graphs[g].number));
    TRY(phase_load(s));
    decided_tell(s);
    batches_open(s);
    return OK;
}

/* Kept values: those of the inputs, then those of the states. */
static Status open_values(Session *s)
{
    const EngineOptions options = { .kernels = s->options.kernels,
                                    .pool = s->options.pool,
                                    .stop = s->options.stop,
                                    .stop_too = s->options.stop_too,
                                    .rounding = s->options.rounding,
                                    .watch = s->options.watch,
                                    .device = s->options.device,
                                    .narrow = s->engine->narrows && !s->options.exact };
    for (size_t i = 0; i < s->n_states; i++)
        s->states[i].kept = (int)(s->n_inputs + i * STATE_PARTS);
    s->latched = (int)(s->n_inputs + s->n_states * STATE_PARTS);
    s->moves = NEWS(s->arena, ValueMove, (STATE_PARTS + 2) * s->n_states + 3);
    s->chosen = NEWS(s->arena, State *, s->n_states + 1);
    s->given = NEWS(s->arena, Tensor *, s->n_states + 1);
    TRY(s->engine->open(s->ir, &options, s->latched + 1, s->arena, &s->values));
    const Status status = fill_values(s);
    if (status != OK)
        s->engine->close(s->values);
    return status;
}

Status session_open(Module *m, const SessionOptions *options, Arena *arena, Session **session)
{
    Session *s = NEW(arena, Session);
    *s = (Session){ .ir = m->ir,
                    .arena = arena,
                    .engine = options->engine ? options->engine : engine_find(NULL),
                    .options = *options,
                    .arithmetics = { -1, -1, -1, NULL } };
    TRY(take_graphs(s, m));
    TRY(take_signatures(s, m));
    TRY(open_values(s));
    *session = s;
    return OK;
}

void session_keep(Session *s)
{
    s->engine->keep(s->values);
}

void session_close(Session *s)
{
    if (!s)
        return;
    scaler_leave(s);
    s->engine->close(s->values);
    batches_close(s);
}

/* ---- what it is asked ---- */

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
    return of->gradient >= 0 ? graph_result_name(session_step_graph(s), of->gradient) : NULL;
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
}

/* ---- values that become those of states ---- */

void session_drop_fresh(void *session)
{
    for (Session *s = session; s; s = s->scaling.next) {
        int n = 0;
        for (size_t i = 0; i < s->n_states; i++)
            add_move(s, &n, state_part(&s->states[i], PART_FRESH), value_none());
        (void)s->engine->move(s->values, n, s->moves);
    }
}

/* Puts them beside the values, with the shadows that a run under way reads, and makes all of them the values at once. */
static Status set_states(Session *s, int n, State *const *states, Tensor *const *values, PutHow how)
{
    int n_moves = 0;
    for (int i = 0; i < n; i++)
        s->arguments[i] = state_part(states[i], PART_FRESH);
    TRY(s->engine->put(s->values, n, s->arguments, values, how));
    for (int i = 0; i < n; i++) {
        const ValueAt fresh = state_part(states[i], PART_FRESH);
        add_move(s, &n_moves, state_part(states[i], PART_VALUE), fresh);
        add_move(s, &n_moves, fresh, value_none());
        add_move(s, &n_moves, state_part(states[i], PART_PENDING), value_none());
        TRY(shadows_prepare(s, states[i], &n_moves));
    }
    return s->engine->move(s->values, n_moves, s->moves);
}

Status session_set_states(Session *s, int n, State *const *states, Tensor *const *values, PutHow how)
{
    Cleanup cleanup;
    TRY(later_settle(s));
    cleanup_push(s->ir->memory, &cleanup, session_drop_fresh, s);
    const Status status = set_states(s, n, states, values, how);
    cleanup_drop(&cleanup);
    if (status != OK) {
        session_drop_fresh(s);
        return status;
    }
    for (int i = 0; i < n; i++) {
        states[i]->version++;
        states[i]->has_pending = false;
        shadows_set(s, states[i]);
    }
    return OK;
}

Status session_exchange(Session *s, const char *a, const char *b)
{
    State *x = session_state(s, a), *y = session_state(s, b);
    if (!x || !y || x->type != y->type)
        return OK;
    TRY(later_settle(s));
    const ValueAt at[] = { state_part(x, PART_VALUE), state_part(y, PART_VALUE) };
    const ValueMove moves[] = { { at[0], at[1] }, { at[1], at[0] } };
    TRY(s->engine->move(s->values, 2, moves));
    x->version++; /* shadows follow */
    y->version++;
    return OK;
}

Status session_adopt(Session *s, Tensor *const *values)
{
    const size_t n_states = s->n_states - s->n_shadows;
    int n = 0;
    for (size_t i = 0; i < n_states; i++) {
        if (!values[i])
            continue;
        s->chosen[n] = &s->states[i];
        s->given[n++] = values[i];
    }
    return session_set_states(s, n, s->chosen, s->given, PUT_GIVE);
}
