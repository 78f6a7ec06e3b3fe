/* Values of a session: what is bound, viewed and put, by name or by a name that was looked up before. */
#include <string.h>

#include "api/hall/tensors.h"
#include "api/session/moments.h"
#include "api/session/stored_states.h"
#include "base/str.h"
#include "ir/aliases.h"
#include "ops/card/path.h"
#include "passes/engine/results.h"
#include "ir/own_names.h"

struct qcc_value {
    qcc_session *session;
    const char *name; /* as the host says it */
    bool is_seed;
    const Node *stored; /* a state whose codes stand for what is seen of it; null: it is seen as it is */
    Moment moment;      /* the same of what an optimizer remembers */
    SessionValue at;
};

static Status take_tensor(qcc_session *s, const char *name, const qcc_tensor *given, Tensor *t)
{
    return tensor_take(s->cx, &s->step->ir->types, name, NULL, given, t);
}

/* ---- names ---- */

/* What a state is called in other modules; the name of another state wins. */
static void learn_aliases(qcc_session *s, const Node *n)
{
    const char *path = n->op == OP_state ? step_path(s->step, n->name) : NULL;
    if (n->op != OP_state)
        return;
    for (const char *const *alias = aliases_of_label(s->step->model->graph, path ? path : n->name); *alias; alias++) {
        bool fresh;
        MapEntry *e = map_put(&s->by_path, arena_string(&s->arena, *alias), &fresh);
        if (fresh)
            e->value.cp = n->name;
    }
}

/* Names of states by what their modules call them. */
static void learn_paths(qcc_session *s)
{
    Graph *g = module_graph(s->step->module, "step");
    const Map paths = path_names(g, &s->arena);
    map_open(&s->by_path, &s->arena);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state)
            map_put(&s->by_path, path_name(&paths, g->inputs[i]), NULL)->value.cp = g->inputs[i]->name;
    for (size_t i = 0; i < g->n_inputs; i++)
        learn_aliases(s, g->inputs[i]);
    s->knows_paths = true;
}

/* The name of a value that a host calls by the path of its parameter: "grad.h.0.attn.weight". */
static const char *by_path(qcc_session *s, const char *name)
{
    const size_t n = strlen(GRADIENT_PREFIX);
    const bool is_gradient = strncmp(name, GRADIENT_PREFIX, n) == 0;
    const char *path = is_gradient ? name + n : name;
    SessionValue of;
    if (!s->knows_paths)
        learn_paths(s);
    const MapEntry *e = map_find(&s->by_path, path);
    const char *state = e ? e->value.cp : path;
    if (is_gradient)
        return session_find(s->run, state, &of) && of.state ? session_gradient_name(s->run, of.state) : NULL;
    return e ? state : NULL;
}

/* The name of a state of ours that people call otherwise; null: it is none. */
static const char *own_name(const qcc_session *s, const char *name, Arena *arena)
{
    const size_t n = strlen(LR_FACTOR_WORD);
    const State *state = NULL;
    if (strncmp(name, LR_FACTOR_WORD "/", n + 1) == 0)
        return arena_printf(arena, OWN_PREFIX "%s", name);
    if (strcmp(name, LR_FACTOR_WORD) == 0)
        state = session_state_of(s->run, STATE_rate, NULL);
    if (strcmp(name, "loss_scale") == 0)
        state = session_state_of(s->run, STATE_scaler, NULL);
    return state ? state->name : NULL;
}

/* NAME.codes, NAME.scale and NAME.zero are what a weight is stored as, whatever it is called; null: none of them. */
static const char *stored_part(qcc_session *s, const char *name, Arena *arena)
{
    static const char *const endings[] = { ".codes", ".scale", ".zero" };
    const size_t length = strlen(name);
    for (size_t i = 0; i < COUNT(endings); i++) {
        const size_t n = strlen(endings[i]);
        if (length <= n || strcmp(name + length - n, endings[i]) != 0)
            continue;
        const char *weight = arena_copy(arena, name, length - n), *path = by_path(s, weight);
        const Node *state = stored_node(s->step, path ? path : weight);
        const Node *part = !state   ? NULL
                           : i == 0 ? state
                           : i == 1 ? stored_scale(state->graph, state->name)
                                    : stored_zero(state->graph, state->name);
        return part ? part->name : NULL;
    }
    return NULL;
}

/* NAME.m is what an optimizer remembers of a parameter, as numbers, NAME.m.codes and NAME.m.scale what is stored; the state's
 * name, null: it is none of them. */
static const char *moment_name(qcc_session *s, const char *name, Arena *arena, Moment *as)
{
    static const char *const endings[] = { "", ".codes", ".scale" };
    for (size_t i = 0; i < COUNT(endings); i++) {
        const size_t length = strlen(name), n = strlen(endings[i]);
        if (length <= n || strcmp(name + length - n, endings[i]) != 0)
            continue;
        const char *whole = arena_copy(arena, name, length - n), *dot = strrchr(whole, '.');
        if (!dot || dot == whole)
            continue;
        const char *parameter = arena_copy(arena, whole, (size_t)(dot - whole)), *path = by_path(s, parameter);
        const Node *state = moment_of(s->step, path ? path : parameter, dot + 1, as);
        if (!state || (i && !as->codes))
            continue;
        const Node *seen = i == 2 ? as->scale : state;
        if (i)
            *as = (Moment){ 0 };
        return seen->name;
    }
    return NULL;
}

/* What a host means by a name; what is bound under it stays so where it is a word of ours as well.  `arena` lives as long
 * as `v`. */
static bool find(qcc_session *s, const char *name, Arena *arena, qcc_value *v)
{
    const char *own = own_name(s, name, arena), *path;
    SessionValue other;
    *v = (qcc_value){ .session = s, .name = name, .is_seed = strcmp(name, "seed") == 0 };
    bool found = session_find(s->run, name, &v->at);
    if (own && session_find(s->run, own, &other)) {
        other.input = v->at.input;
        v->at = other;
        return true;
    }
    if (!found && (path = by_path(s, name)))
        found = session_find(s->run, path, &v->at);
    if (found && v->at.state)
        v->stored = stored_node(s->step, v->at.state->name);
    if (!found && ((path = stored_part(s, name, arena)) || (path = moment_name(s, name, arena, &v->moment))))
        found = session_find(s->run, path, &v->at);
    return found || v->is_seed;
}

static bool starts_as_ours(const char *name)
{
    return strncmp(name, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
}

/* What may be named: inputs, parameters and their gradients, results, states, words. */
static size_t all_names(const qcc_session *s, const char **names)
{
    const Graph *g = module_graph(s->step->module, "step");
    size_t n = 0, n_states;
    const State *states = session_states(s->run, &n_states);
    for (size_t i = 0; i < s->step->n_inputs; i++)
        names[n++] = s->step->inputs[i].name;
    for (size_t i = 0; i < s->step->n_parameters; i++) {
        names[n++] = s->step->parameters[i].name;
        names[n++] = arena_printf(&s->cx->scratch, GRADIENT_PREFIX "%s", s->step->parameters[i].name);
    }
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i))
            names[n++] = graph_result_name(g, i);
    for (size_t i = 0; i < n_states; i++)
        names[n++] = states[i].name;
    for (size_t i = 0; i < n_states; i++)
        if (states[i].mark.role == STATE_rate && starts_as_ours(states[i].name))
            names[n++] = states[i].name + strlen(OWN_PREFIX);
    names[n++] = "seed";
    names[n++] = "loss_scale";
    return n;
}

static Status no_value(qcc_session *s, const char *name)
{
    size_t n_states;
    (void)session_states(s->run, &n_states);
    const Graph *g = module_graph(s->step->module, "step");
    const char **names =
        NEWS(&s->cx->scratch, const char *,
             s->step->n_inputs + 2 * s->step->n_parameters + (size_t)graph_n_results(g) + 2 * n_states + 2);
    const char *nearest = str_nearest(name, names, all_names(s, names));
    Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE, "there is no value named %s", name);
    if (nearest)
        message_try(m, "%s", nearest);
    return message_send(m);
}

/* ---- calls ---- */

typedef struct ValueCall {
    qcc_session *session;
    Status (*fn)(struct ValueCall *c, qcc_value *v);
    const char *name; /* null: `value` */
    qcc_value *value;
    const qcc_tensor *given;
    qcc_tensor *seen;
} ValueCall;

static Status do_call(void *arg)
{
    ValueCall *c = arg;
    qcc_value named;
    c->session->cx->diag.file = c->session->step->model->file;
    if (c->name && !find(c->session, c->name, &c->session->cx->scratch, &named))
        return no_value(c->session, c->name);
    return c->fn(c, c->name ? &named : c->value);
}

static qcc_status call(ValueCall *c)
{
    return session_call(c->session, do_call, c, false);
}

static Status do_find(ValueCall *c, qcc_value *v)
{
    qcc_session *s = c->session;
    MapEntry *e = s->found.arena ? map_find(&s->found, v->name) : NULL;
    if (!e) {
        qcc_value *kept = NEW(&s->arena, qcc_value);
        const char *name = arena_string(&s->arena, v->name);
        (void)find(s, name, &s->arena, kept);
        if (!s->found.arena)
            map_open(&s->found, &s->arena);
        e = map_put(&s->found, name, NULL);
        e->value.p = kept;
    }
    c->value = e->value.p;
    return OK;
}

qcc_status qcc_find(qcc_session *session, const char *name, qcc_value **value)
{
    ValueCall c = { .session = session, .fn = do_find, .name = name };
    const qcc_status status = name && value ? call(&c) : QCC_USAGE;
    if (status == QCC_OK)
        *value = c.value;
    return status;
}

static Status do_bind(ValueCall *c, qcc_value *v)
{
    Tensor t;
    TRY(take_tensor(c->session, v->name, c->given, &t));
    return session_bind_value(c->session->run, &v->at, &t);
}

qcc_status qcc_bind(qcc_session *session, const char *name, const qcc_tensor *tensor)
{
    ValueCall c = { .session = session, .fn = do_bind, .name = name, .given = tensor };
    return name && tensor ? call(&c) : QCC_USAGE;
}

qcc_status qcc_bind_value(qcc_value *value, const qcc_tensor *tensor)
{
    ValueCall c = { .session = value ? value->session : NULL, .fn = do_bind, .value = value, .given = tensor };
    return value && tensor ? call(&c) : QCC_USAGE;
}

static Status do_bind_next(ValueCall *c, qcc_value *v)
{
    Tensor t;
    if (!c->given)
        return session_bind_next_value(c->session->run, &v->at, NULL);
    TRY(take_tensor(c->session, v->name, c->given, &t));
    return session_bind_next_value(c->session->run, &v->at, &t);
}

qcc_status qcc_bind_next(qcc_session *session, const char *name, const qcc_tensor *tensor)
{
    ValueCall c = { .session = session, .fn = do_bind_next, .name = name, .given = tensor };
    return name ? call(&c) : QCC_USAGE;
}

qcc_status qcc_bind_next_value(qcc_value *value, const qcc_tensor *tensor)
{
    ValueCall c = { .session = value ? value->session : NULL, .fn = do_bind_next, .value = value, .given = tensor };
    return value ? call(&c) : QCC_USAGE;
}

static Status do_put(ValueCall *c, qcc_value *v)
{
    Tensor t;
    TRY(take_tensor(c->session, v->name, c->given, &t));
    if (v->stored && t.type != stored_type(c->session->step, v->stored))
        return fail_as(&c->session->cx->diag, USAGE, NOWHERE, "%s: got %s, wanted %s", v->name,
                       type_text(&c->session->cx->scratch, t.type),
                       type_text(&c->session->cx->scratch, stored_type(c->session->step, v->stored)));
    if (v->moment.codes)
        return fail_as(&c->session->cx->diag, UNSUPPORTED, NOWHERE,
                       "%s is stored in few bits and is not put as numbers; put %s.codes and %s.scale", v->name,
                       v->name, v->name);
    if (v->stored)
        return stored_put(c->session->step, c->session->run, v->stored->name, &t);
    if (!v->is_seed)
        return session_put_value(c->session->run, &v->at, &t);
    if (t.type->dtype != U64 || t.type->rank != 0)
        return fail_as(&c->session->cx->diag, USAGE, NOWHERE, "seed: got %s, wanted u64[]",
                       type_text(&c->session->cx->scratch, t.type));
    memcpy(&c->session->seed, t.data, sizeof c->session->seed);
    session_set_seed(c->session->run, c->session->seed);
    return OK;
}

qcc_status qcc_put(qcc_session *session, const char *name, const qcc_tensor *tensor)
{
    ValueCall c = { .session = session, .fn = do_put, .name = name, .given = tensor };
    return name && tensor ? call(&c) : QCC_USAGE;
}

qcc_status qcc_put_value(qcc_value *value, const qcc_tensor *tensor)
{
    ValueCall c = { .session = value ? value->session : NULL, .fn = do_put, .value = value, .given = tensor };
    return value && tensor ? call(&c) : QCC_USAGE;
}

/* Numbers of codes, until the next of them are seen. */
static Status view_numbers(qcc_session *s, const qcc_value *v, qcc_tensor *seen)
{
    const Node *codes = v->stored ? v->stored : v->moment.codes;
    tensor_drop(&s->texts, s->shown);
    s->shown = tensor_alloc(&s->texts, stored_type(s->step, codes));
    TRY(v->stored ? stored_get(s->step, s->run, codes, s->shown) : moment_get(s->step, s->run, &v->moment, s->shown));
    tensor_show(s->shown, seen);
    return OK;
}

static Status do_view(ValueCall *c, qcc_value *v)
{
    qcc_session *s = c->session;
    TRY(tensor_wants_size(&s->cx->diag, v->name, c->seen));
    if (v->is_seed) {
        s->seed = session_seed(s->run);
        const Tensor seed = { .type = type_scalar(&s->step->ir->types, U64),
                              .data = &s->seed,
                              .bytes = sizeof s->seed };
        tensor_show(&seed, c->seen);
        return OK;
    }
    if (v->stored || v->moment.codes)
        return view_numbers(s, v, c->seen);
    const Tensor *t = session_view_value(s->run, &v->at);
    if (!t && s->cx->diag.n_errors) /* which was told */
        return s->cx->diag.first;
    if (!t)
        return fail_as(&s->cx->diag, USAGE, NOWHERE, "there is no value named %s now", v->name);
    if (t->type->kind != TYPE_TENSOR || t->type->rank > QCC_MAX_RANK)
        return fail_as(&s->cx->diag, UNSUPPORTED, NOWHERE, "%s is no tensor", v->name);
    tensor_show(t, c->seen);
    return OK;
}

qcc_status qcc_view(qcc_session *session, const char *name, qcc_tensor *tensor)
{
    ValueCall c = { .session = session, .fn = do_view, .name = name, .seen = tensor };
    return name && tensor ? call(&c) : QCC_USAGE;
}

qcc_status qcc_view_value(qcc_value *value, qcc_tensor *tensor)
{
    ValueCall c = { .session = value ? value->session : NULL, .fn = do_view, .value = value, .seen = tensor };
    return value && tensor ? call(&c) : QCC_USAGE;
}
