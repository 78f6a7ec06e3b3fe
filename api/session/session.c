/* Sessions: the public calls around runtime/session/session.h. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/hall/out.h"
#include "api/make/step.h"
#include "ops/card/path.h"

/* ---- beginning and end ---- */

static void undo_session(void *thing)
{
    qcc_session *s = thing;
    memory_release(&s->cx->memory, s, sizeof *s);
}

/* Every sample of a batch counts, until somebody binds another mask. */
static Status bind_valid(qcc_session *s)
{
    const Node *n = session_input(s->run, VALID_INPUT);
    if (!n)
        return OK;
    Tensor *ones = tensor_new(&s->arena, n->type);
    for (int64_t i = 0; i < tensor_elements(ones); i++)
        tensor_set_f64(ones, i, 1);
    return session_bind(s->run, VALID_INPUT, ones);
}

static Status open_run(qcc_session *s, const SessionOptions *options)
{
    TRY(session_open(s->step->module, options, &s->arena, &s->run));
    const Status status = bind_valid(s);
    if (status != OK)
        session_close(s->run);
    return status;
}

Status session_start(qcc_step *step, uint64_t seed, const _Atomic int *stop, qcc_session **session)
{
    qcc_context *cx = step->cx;
    qcc_session *s = memory_block(&cx->memory, sizeof *s);
    *s = (qcc_session){ .cx = cx, .step = step };
    cleanup_push(&cx->memory, &s->cleanup, undo_session, s);
    arena_open(&s->arena, &cx->memory);
    heap_open(&s->texts, &cx->memory);
    const SessionOptions options = {
        .kernels = cx->kernels,
        .pool = context_pool(cx),
        .seed = seed,
        .stop = stop ? stop : &s->stop,
        .stop_too = stop ? NULL : &cx->stop,
    };
    const Status status = open_run(s, &options);
    if (status != OK) {
        heap_close(&s->texts);
        arena_close(&s->arena);
        cleanup_drop(&s->cleanup);
        memory_release(&cx->memory, s, sizeof *s);
        return status;
    }
    cleanup_drop(&s->cleanup);
    arena_keep(&s->arena);
    heap_keep(&s->texts);
    session_keep(s->run);
    step->users++;
    s->next = cx->sessions;
    if (s->next)
        s->next->prev = s;
    cx->sessions = s;
    *session = s;
    return OK;
}

void session_end(qcc_session *s)
{
    qcc_context *cx = s->cx;
    qcc_step *step = s->step;
    if (s->prev)
        s->prev->next = s->next;
    else if (cx->sessions == s)
        cx->sessions = s->next;
    if (s->next)
        s->next->prev = s->prev;
    session_close(s->run);
    heap_close(&s->texts);
    arena_close(&s->arena);
    memory_release(&cx->memory, s, sizeof *s);
    if (--step->users == 0 && step->freed)
        step_close(step);
}

typedef struct Start {
    qcc_step *step;
    qcc_session *session;
} Start;

static Status do_start(void *arg)
{
    Start *c = arg;
    c->step->cx->diag.file = c->step->model->file;
    return session_start(c->step, 0, NULL, &c->session);
}

qcc_status qcc_start(qcc_step *step, qcc_session **session)
{
    Start c = { step, NULL };
    if (!step || !session || step->freed)
        return QCC_USAGE;
    const qcc_status status = context_call(step->cx, do_start, &c);
    if (status == QCC_OK)
        *session = c.session;
    return status;
}

static void release_session(void *session)
{
    session_end(session);
}

void qcc_end(qcc_session *session)
{
    if (session)
        context_release(session->cx, release_session, session);
}

/* ---- calls of a session ---- */

typedef struct Call {
    qcc_session *session;
    Status (*fn)(struct Call *c);
    const char *name, *value;
    const qcc_tensor *given;
    qcc_tensor *seen;
    unsigned what;
    RunResult result;
    ScalerState scaler;
    bool scales;
    float *flat;
    const float *flat_in;
    size_t n;
} Call;

static Status do_call(void *arg)
{
    Call *c = arg;
    c->session->cx->diag.file = c->session->step->model->file;
    return c->fn(c);
}

/* A run that memory ended half way leaves values behind that are not to be trusted; other calls change nothing before
 * they have all that they need. */
qcc_status session_call(qcc_session *s, Status (*fn)(void *arg), void *arg, bool runs)
{
    if (!s)
        return QCC_USAGE;
    qcc_status status = context_enter(s->cx);
    if (status != QCC_OK)
        return status;
    status = s->poisoned ? QCC_NO_MEMORY : context_run(s->cx, fn, arg);
    s->poisoned |= runs && status == QCC_NO_MEMORY;
    context_let_go(s->cx);
    return status;
}

static qcc_status call(Call *c)
{
    return session_call(c->session, do_call, c, c->what != 0);
}

/* A tensor of the host as one of ours, over the same memory. */
static Status take_tensor(qcc_session *s, const char *name, const qcc_tensor *given, Tensor *t)
{
    Diag *d = &s->cx->diag;
    const Place place = { .where = name, .byte = -1 };
    size_t bytes;
    if (given->dtype == QCC_STRING)
        return fail_as(d, USAGE, place, "given is string: only tensors of numbers go in");
    if (!qcc_dtype_name(given->dtype) || given->rank < 0 || given->rank > MAX_RANK)
        return fail_as(d, USAGE, place, "dtype %d, rank %d", (int)given->dtype, given->rank);
    for (int k = 0; k < given->rank; k++)
        if (given->dims[k] < 0 || given->dims[k] > s->cx->limits.dim)
            return fail_as(d, USAGE, place, "dimension %d is %lld", k, (long long)given->dims[k]);
    *t = (Tensor){ .type = type_tensor(&s->step->ir->types, (DType)given->dtype, given->rank, given->dims),
                   .data = given->data,
                   .refs = 1 };
    if (!type_bytes(t->type, &bytes) || bytes != given->bytes || (bytes && !given->data))
        return fail_as(d, USAGE, place, "%s has %zu bytes", type_text(&s->cx->scratch, t->type), given->bytes);
    t->bytes = bytes;
    return OK;
}

static Status do_bind(Call *c)
{
    Tensor t;
    TRY(take_tensor(c->session, c->name, c->given, &t));
    return session_bind(c->session->run, c->name, &t);
}

qcc_status qcc_bind(qcc_session *session, const char *name, const qcc_tensor *tensor)
{
    Call c = { .session = session, .fn = do_bind, .name = name, .given = tensor };
    return name && tensor ? call(&c) : QCC_USAGE;
}

/* Names of states by what their modules call them. */
static void learn_paths(qcc_session *s)
{
    Graph *g = module_graph(s->step->module, "step");
    const Map paths = path_names(g, &s->arena);
    map_open(&s->by_path, &s->arena);
    s->knows_paths = true;
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state)
            map_put(&s->by_path, path_name(&paths, g->inputs[i]), NULL)->value.cp = g->inputs[i]->name;
}

/* The name of a value that a host calls by the path of its parameter: "grad.h.0.attn.weight". */
static const char *by_path(qcc_session *s, const char *name)
{
    static const char gradient[] = "grad.";
    const bool is_gradient = strncmp(name, gradient, sizeof gradient - 1) == 0;
    if (!s->knows_paths)
        learn_paths(s);
    const MapEntry *e = map_find(&s->by_path, name + (is_gradient ? sizeof gradient - 1 : 0));
    return e ? arena_printf(&s->cx->scratch, "%s%s", is_gradient ? gradient : "", (const char *)e->value.cp) : name;
}

/* The name that a value has here: of a state of ours that people call otherwise, or of a parameter called by its path. */
static const char *own_name(qcc_session *s, const char *name)
{
    if (strcmp(name, "lr_factor") == 0 || strncmp(name, "lr_factor/", strlen("lr_factor/")) == 0)
        return arena_printf(&s->cx->scratch, "qcc.%s", name);
    if (strcmp(name, "loss_scale") == 0)
        return "qcc.scale";
    return session_view(s->run, name) ? name : by_path(s, name);
}

static Status do_put(Call *c)
{
    Tensor t;
    TRY(take_tensor(c->session, c->name, c->given, &t));
    if (strcmp(c->name, "seed") != 0)
        return session_put(c->session->run, own_name(c->session, c->name), &t);
    if (t.type->dtype != U64 || t.type->rank != 0)
        return fail_as(&c->session->cx->diag, USAGE, NOWHERE, "seed: got %s, wanted u64[]",
                       type_text(&c->session->cx->scratch, t.type));
    memcpy(&c->session->seed, t.data, sizeof c->session->seed);
    session_set_seed(c->session->run, c->session->seed);
    return OK;
}

qcc_status qcc_put(qcc_session *session, const char *name, const qcc_tensor *tensor)
{
    Call c = { .session = session, .fn = do_put, .name = name, .given = tensor };
    return name && tensor ? call(&c) : QCC_USAGE;
}

/* A name that is close to one of a value: an output, a parameter, a gradient. */
static Status no_value(const Call *c)
{
    qcc_session *s = c->session;
    Arena *arena = &s->cx->scratch;
    const Graph *g = module_graph(s->step->module, "step");
    const char **names = NEWS(arena, const char *, 2 * s->step->n_parameters + (size_t)graph_n_results(g) + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->step->n_parameters; i++) {
        names[n++] = s->step->parameters[i].name;
        names[n++] = arena_printf(arena, "grad.%s", s->step->parameters[i].name);
    }
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i))
            names[n++] = graph_result_name(g, i);
    Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE, "there is no value named %s now", c->name);
    const char *nearest = str_nearest(c->name, names, n);
    if (nearest)
        message_try(m, "%s", nearest);
    return message_send(m);
}

static Status do_view(Call *c)
{
    if (strcmp(c->name, "seed") == 0) {
        c->session->seed = session_seed(c->session->run);
        *c->seen = (qcc_tensor){ QCC_U64, 0, { 0 }, &c->session->seed, sizeof c->session->seed };
        return OK;
    }
    const Tensor *t = session_view(c->session->run, own_name(c->session, c->name));
    if (!t)
        return no_value(c);
    if (t->type->kind != TYPE_TENSOR || t->type->rank > QCC_MAX_RANK)
        return fail_as(&c->session->cx->diag, UNSUPPORTED, NOWHERE, "%s is no tensor", c->name);
    *c->seen = (qcc_tensor){ (qcc_dtype)t->type->dtype, t->type->rank, { 0 }, t->data, t->bytes };
    for (int k = 0; k < t->type->rank; k++)
        c->seen->dims[k] = t->type->dims[k];
    return OK;
}

qcc_status qcc_view(qcc_session *session, const char *name, qcc_tensor *tensor)
{
    qcc_tensor seen;
    Call c = { .session = session, .fn = do_view, .name = name, .seen = &seen };
    const qcc_status status = name && tensor ? call(&c) : QCC_USAGE;
    if (status == QCC_OK)
        *tensor = seen;
    return status;
}

static Status do_run(Call *c)
{
    const Status status = session_run(c->session->run, c->what, &c->result);
    if (status == INTERRUPTED)
        c->session->stop = 0;
    c->scales = status == OK && session_scaler(c->session->run, &c->scaler);
    return status;
}

qcc_status qcc_run(qcc_session *session, unsigned what, qcc_result *result)
{
    Call c = { .session = session, .fn = do_run, .what = what };
    if (result && result->size < sizeof(size_t))
        return QCC_USAGE;
    const qcc_status status = call(&c);
    if (status != QCC_OK || !result)
        return status;
    const RunResult *r = &c.result;
    const qcc_result all = { .size = result->size < sizeof all ? result->size : sizeof all,
                             .step = r->step,
                             .applied = r->applied,
                             .finite = r->finite,
                             .loss = r->has_loss ? r->loss : NAN,
                             .grad_norm = r->has_norm ? r->norm : NAN,
                             .lr = r->has_rate ? r->rate : NAN,
                             .loss_scale = r->has_scale ? r->scale : NAN,
                             .next_loss_scale = r->has_scale ? r->next_scale : NAN,
                             .applied_steps = c.scales ? (uint64_t)c.scaler.applied : 0,
                             .skipped_steps = c.scales ? (uint64_t)c.scaler.skipped : 0,
                             .first_bad = r->first_bad,
                             .finite_loss = !r->has_loss || isfinite(r->loss) };
    memcpy(result, &all, all.size);
    return QCC_OK;
}

void qcc_request_stop(qcc_session *session)
{
    if (session)
        session->stop = 1;
}

/* ---- all parameters as one vector ---- */

size_t qcc_flat_size(const qcc_session *session)
{
    size_t n = 0, n_states;
    if (!session)
        return 0;
    const State *states = session_states(session->run, &n_states);
    for (size_t i = 0; i < n_states; i++)
        n += states[i].trained ? (size_t)type_elements(states[i].type) : 0;
    return n;
}

static Status check_flat(Call *c)
{
    const size_t n = qcc_flat_size(c->session);
    return c->n == n ? OK
                     : fail_as(&c->session->cx->diag, USAGE, NOWHERE,
                               "the trained parameters have %zu elements: got %zu", n, c->n);
}

static Status do_get_flat(Call *c)
{
    size_t n, at = 0;
    const State *states = session_states(c->session->run, &n);
    TRY(check_flat(c));
    for (size_t i = 0; i < n; i++) {
        const int64_t size = states[i].trained ? type_elements(states[i].type) : 0;
        if (size)
            load_f32(c->flat + at, states[i].value, 0, size);
        at += (size_t)size;
    }
    return OK;
}

qcc_status qcc_get_flat(qcc_session *session, float *values, size_t n)
{
    Call c = { .session = session, .fn = do_get_flat, .flat = values, .n = n };
    return values || !n ? call(&c) : QCC_USAGE;
}

static Status do_set_flat(Call *c)
{
    size_t n, at = 0;
    Heap heap;
    const State *states = session_states(c->session->run, &n);
    TRY(check_flat(c));
    Tensor **values = NEWS(&c->session->cx->scratch, Tensor *, n + 1);
    heap_open(&heap, &c->session->cx->memory);
    for (size_t i = 0; i < n; i++) {
        const int64_t size = states[i].trained ? type_elements(states[i].type) : 0;
        if (!size)
            continue;
        values[i] = tensor_alloc(&heap, states[i].type);
        store_f32(values[i], 0, c->flat_in + at, size);
        at += (size_t)size;
    }
    session_adopt(c->session->run, values);
    heap_close(&heap);
    return OK;
}

qcc_status qcc_set_flat(qcc_session *session, const float *values, size_t n)
{
    Call c = { .session = session, .fn = do_set_flat, .flat_in = values, .n = n };
    return values || !n ? call(&c) : QCC_USAGE;
}

/* ---- properties ---- */

static Status do_set_property(Call *c)
{
    property_set(c->session, c->name, c->value);
    return OK;
}

qcc_status qcc_set_property(qcc_session *session, const char *key, const char *value)
{
    Call c = { .session = session, .fn = do_set_property, .name = key, .value = value };
    return key && *key ? call(&c) : QCC_USAGE;
}

static Status do_get_property(Call *c)
{
    c->value = property_get(c->session, c->name);
    return OK;
}

qcc_status qcc_get_property(qcc_session *session, const char *key, const char **value)
{
    Call c = { .session = session, .fn = do_get_property, .name = key };
    const qcc_status status = key && value ? call(&c) : QCC_USAGE;
    if (status == QCC_OK)
        *value = c.value;
    return status;
}
