#include "runtime/session.h"

#include <math.h>
#include <string.h>

static const char prefix[] = "grad.";

/* An input that the caller binds. */
typedef struct Input {
    const char *name;
    Tensor tensor; /* over the caller's memory */
    bool bound;
    int slot, eval_slot; /* input of the step, of @eval; -1: it has none */
} Input;

typedef enum Phase { PHASE_IDLE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_DONE } Phase;

struct Session {
    Ir *ir;
    Arena *arena;
    Heap heap;
    Graph *graph, *eval_graph;
    Evaluation *step, *eval;
    const Node *backward, *update; /* first nodes of these sides; null: there are none */
    State *states;
    Input *inputs;
    size_t n_states, n_inputs;
    const Tensor **arguments; /* of a run */
    Map by_name;              /* State or Input, by name */
    Map result, eval_result;  /* Node, by name */
    uint64_t steps;           /* begun */
    EvalOptions options;
    Phase phase;
    bool evaluated; /* results are those of @eval */
};

/* ---- opening ---- */

static bool is_gradient(const char *name)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void add_state(Session *s, const Node *n, int slot, int eval_slot)
{
    bool fresh;
    MapEntry *e = map_put(&s->by_name, n->name, &fresh);
    if (fresh) {
        State *state = &s->states[s->n_states++];
        *state = (State){ .name = n->name,
                          .type = n->type,
                          .initial = n->attr ? ((const ValueAttr *)n->attr)->value : NULL,
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
    for (int i = 0; i < graph_n_results(s->graph); i++) {
        const char *name = graph_result_name(s->graph, i);
        const bool gradient = name && is_gradient(name);
        const MapEntry *e = name ? map_find(&s->by_name, gradient ? name + strlen(prefix) : name) : NULL;
        State *state = e ? e->value.p : NULL;
        if (!state || state < s->states || state >= s->states + s->n_states || !graph_result(s->graph, i))
            continue;
        *(gradient ? &state->gradient : &state->next) = i;
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

static Tensor *copy_of(Session *s, const Tensor *t)
{
    Tensor *copy = tensor_alloc(&s->heap, t->type);
    if (t->bytes)
        memcpy(copy->data, t->data, t->bytes);
    return copy;
}

static Status set_initial(Session *s, State *state)
{
    if (!type_known(state->type) || state->type->kind != TYPE_TENSOR)
        return fail(s->ir->diag, NOWHERE, "state %s has no known shape", state->name);
    if (!state->initial) {
        state->value = tensor_alloc(&s->heap, state->type);
        if (state->value->bytes)
            memset(state->value->data, 0, state->value->bytes);
        return OK;
    }
    const Tensor *t = payload_tensor(state->initial, s->ir->arena, s->ir->diag);
    if (!t)
        return INVALID;
    state->value = copy_of(s, t);
    return OK;
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
                                 .stop_too = options->stop_too } };
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
    name_results(s, s->graph, &s->result);
    name_results(s, s->eval_graph, &s->eval_result);
    link_results(s);
    find_sides(s);
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
    evaluation_close(s->step);
    evaluation_close(s->eval);
    heap_close(&s->heap);
}

/* ---- names ---- */

static State *state_named(const Session *s, const char *name)
{
    const MapEntry *e = map_find(&s->by_name, name);
    State *state = e ? e->value.p : NULL;
    return state && state >= s->states && state < s->states + s->n_states ? state : NULL;
}

static Input *input_named(const Session *s, const char *name)
{
    const MapEntry *e = map_find(&s->by_name, name);
    return e && !state_named(s, name) ? e->value.p : NULL;
}

static State *state_of_gradient(const Session *s, const char *name)
{
    State *state = is_gradient(name) ? state_named(s, name + strlen(prefix)) : NULL;
    return state && state->gradient >= 0 ? state : NULL;
}

State *session_states(Session *s, size_t *n)
{
    *n = s->n_states;
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

Graph *session_graph(const Session *s, bool eval)
{
    return eval ? s->eval_graph : s->graph;
}

const Node *session_input(const Session *s, const char *name)
{
    const Input *input = input_named(s, name);
    if (!input)
        return NULL;
    return input->slot >= 0 ? s->graph->inputs[input->slot] : s->eval_graph->inputs[input->eval_slot];
}

static const Tensor *result_named(const Session *s, const char *name)
{
    const MapEntry *e = map_find(s->evaluated ? &s->eval_result : &s->result, name);
    if (!e || (!s->evaluated && s->phase == PHASE_IDLE))
        return NULL;
    return evaluation_value(s->evaluated ? s->eval : s->step, e->value.p);
}

const Tensor *session_view(const Session *s, const char *name)
{
    const State *state = state_named(s, name), *of = state_of_gradient(s, name);
    if (state)
        return state->value;
    if (of && of->sum)
        return of->sum;
    if (of && s->phase != PHASE_IDLE) /* an evaluation since leaves gradients alone */
        return evaluation_value(s->step, graph_result(s->graph, of->gradient));
    return result_named(s, name);
}

/* ---- what the caller gives ---- */

static Status no_such(Session *s, const char *name)
{
    const char **names = NEWS(s->ir->diag->arena, const char *, s->n_inputs + s->n_states + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n_inputs; i++)
        names[n++] = s->inputs[i].name;
    for (size_t i = 0; i < s->n_states; i++)
        names[n++] = s->states[i].name;
    const char *near = str_nearest(name, names, n);
    Message *m = message_new(s->ir->diag, SEVERITY_ERROR, USAGE, NOWHERE, "the step has no value named %s", name);
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

static Status wrong_type(Session *s, const char *name, const Type *have, const Type *want)
{
    Arena *arena = s->ir->diag->arena;
    return fail_as(s->ir->diag, USAGE, NOWHERE, "%s: got %s, wanted %s", name, type_text(arena, have),
                   type_text(arena, want));
}

Status session_bind(Session *s, const char *name, const Tensor *value)
{
    Input *input = input_named(s, name);
    if (!input)
        return no_such(s, name);
    const Type *want = session_input(s, name)->type;
    const bool evaluates =
        input->eval_slot >= 0 && type_agrees(value->type, s->eval_graph->inputs[input->eval_slot]->type);
    if (!type_agrees(value->type, want) && !evaluates) /* @eval may take other batches than a step of several */
        return wrong_type(s, name, value->type, want);
    if (!input->bound)
        input->tensor.refs = 1; /* ours; an evaluation may hold it still */
    input->tensor.type = value->type;
    input->tensor.data = value->data;
    input->tensor.bytes = value->bytes;
    input->bound = true;
    return OK;
}

static void set_kept(Session *s, Tensor **where, Tensor *value)
{
    if (*where)
        tensor_drop(&s->heap, *where);
    *where = value;
}

/* A state's new value, also for the nodes of the run under way that have not read it yet. */
static void set_state(Session *s, State *state, Tensor *value)
{
    const Node *input = state->slot >= 0 ? s->graph->inputs[state->slot] : NULL;
    const bool runs = s->phase == PHASE_FORWARD || s->phase == PHASE_BACKWARD;
    set_kept(s, &state->value, value);
    set_kept(s, &state->pending, NULL);
    if (input && runs && evaluation_value(s->step, input))
        evaluation_put(s->step, input, value);
}

static void forget_sums(Session *s)
{
    for (size_t i = 0; i < s->n_states; i++) {
        set_kept(s, &s->states[i].sum, NULL);
        set_kept(s, &s->states[i].pending, NULL);
    }
}

void session_forget(Session *s)
{
    forget_sums(s);
    s->phase = PHASE_IDLE;
    s->evaluated = false;
}

void session_adopt(Session *s, Tensor *const *values)
{
    for (size_t i = 0; i < s->n_states; i++) {
        if (!values[i])
            continue;
        heap_take(&s->heap, values[i]);
        set_state(s, &s->states[i], values[i]);
    }
}

Status session_put(Session *s, const char *name, const Tensor *value)
{
    State *state = state_named(s, name), *of = state_of_gradient(s, name);
    if (!state && !of)
        return no_such(s, name);
    const Type *want = state ? state->type : graph_result(s->graph, of->gradient)->type;
    if (value->type != want)
        return wrong_type(s, name, value->type, want);
    Tensor *copy = copy_of(s, value);
    if (state) {
        set_state(s, state, copy);
        return OK;
    }
    if (s->phase != PHASE_BACKWARD) {
        tensor_drop(&s->heap, copy);
        return fail_as(s->ir->diag, USAGE, NOWHERE, "%s: gradients are there between backward and update", name);
    }
    if (of->sum) {
        tensor_drop(&s->heap, of->sum);
        of->sum = copy;
        return OK;
    }
    evaluation_put(s->step, graph_result(s->graph, of->gradient), copy);
    tensor_drop(&s->heap, copy);
    return OK;
}

/* ---- running ---- */

static Status missing_inputs(Session *s, const Graph *g, bool eval, bool gradients)
{
    Message *m = NULL;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const Input *input = &s->inputs[i];
        const int slot = eval ? input->eval_slot : input->slot;
        if (slot >= 0 && input->bound && !eval && !type_agrees(input->tensor.type, g->inputs[slot]->type))
            return wrong_type(s, input->name, input->tensor.type, g->inputs[slot]->type);
        if (slot < 0 || input->bound || is_gradient(input->name) != gradients || !g->inputs[slot]->uses)
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
    return is_bound(s, t) ? copy_of(s, t) : tensor_hold(t);
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
            set_kept(s, &state->sum, state->sum ? added(s, state->sum, g) : keep(s, g));
        const Tensor *next = state->next >= 0 ? evaluation_value(s->step, graph_result(s->graph, state->next)) : NULL;
        if (next)
            set_kept(s, &state->pending, keep(s, next));
    }
}

/* Runs a side; one that was interrupted may be run on. */
static Status side(Session *s, const Node *end)
{
    const Status status = evaluation_until(s->step, end);
    if (status != OK && status != INTERRUPTED)
        s->phase = PHASE_IDLE;
    return status;
}

static Status backward(Session *s, bool accumulates)
{
    if (s->phase != PHASE_FORWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "backward follows forward");
    TRY(missing_inputs(s, s->graph, false, true));
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].slot >= 0 && is_gradient(s->inputs[i].name))
            evaluation_put(s->step, s->graph->inputs[s->inputs[i].slot], &s->inputs[i].tensor);
    s->evaluated = false;
    TRY(side(s, s->update));
    s->phase = PHASE_BACKWARD;
    if (accumulates)
        accumulate(s);
    else
        forget_sums(s);
    return OK;
}

static bool scalar(const Session *s, const char *name, double *value)
{
    const Tensor *t = result_named(s, name);
    if (!t || t->type->kind != TYPE_TENSOR || tensor_elements(t) != 1)
        return false;
    *value = tensor_get_f64(t, 0);
    return true;
}

static void tell(const Session *s, RunResult *r)
{
    r->step = s->steps;
    r->has_loss = scalar(s, "loss", &r->loss);
    r->has_norm = scalar(s, "grad_norm", &r->norm);
    r->has_rate = scalar(s, "lr", &r->rate);
    r->finite = (!r->has_loss || isfinite(r->loss)) && (!r->has_norm || isfinite(r->norm));
}

static void commit(Session *s)
{
    for (size_t i = 0; i < s->n_states; i++) {
        State *state = &s->states[i];
        const Tensor *next = state->next >= 0 ? evaluation_value(s->step, graph_result(s->graph, state->next)) : NULL;
        if (next)
            set_kept(s, &state->value, keep(s, next));
    }
}

static Status update(Session *s, RunResult *r)
{
    if (s->phase != PHASE_BACKWARD)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "update follows backward");
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].sum)
            evaluation_put(s->step, graph_result(s->graph, s->states[i].gradient), s->states[i].sum);
    s->evaluated = false;
    TRY(side(s, NULL));
    s->phase = PHASE_DONE;
    tell(s, r);
    r->applied = r->finite;
    if (r->finite)
        commit(s);
    forget_sums(s);
    return OK;
}

static Status evaluate_alone(Session *s)
{
    if (!s->eval)
        return fail_as(s->ir->diag, USAGE, NOWHERE, "has no graph @eval");
    TRY(missing_inputs(s, s->eval_graph, true, false));
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
    set_arguments(s, s->graph, false);
    TRY(evaluate(s->graph, &options, &s->heap, s->arguments, results));
    for (int i = 0; i < graph_n_results(s->graph); i++)
        if (results[i])
            tensor_drop(&s->heap, results[i]);
    return OK;
}
