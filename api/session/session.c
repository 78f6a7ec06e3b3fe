/* Sessions: the public calls around runtime/session/session.h. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/hall/devices.h"
#include "api/hall/lower.h"
#include "api/hall/out.h"
#include "api/make/step.h"
#include "api/session/stored_states.h"

/* ---- beginning and end ---- */

static void undo_session(void *thing)
{
    qcc_session *s = thing;
    memory_release(&s->cx->memory, s, sizeof *s);
}

static void end_held(void *session)
{
    session_end(session);
}

Status session_start_on(qcc_step *step, const Engine *engine, DeviceUse device, uint64_t seed, const _Atomic int *stop,
                        qcc_session **session)
{
    qcc_context *cx = step->cx;
    qcc_session *s = memory_block(&cx->memory, sizeof *s);
    *s = (qcc_session){ .cx = cx, .step = step };
    cleanup_push(&cx->memory, &s->cleanup, undo_session, s);
    arena_open(&s->arena, &cx->memory);
    heap_open(&s->texts, &cx->memory);
    const SessionOptions options = {
        .engine = engine,
        .kernels = cx->kernels,
        .pool = context_pool(cx),
        .seed = seed,
        .stop = stop ? stop : &s->stop,
        .stop_too = stop ? NULL : &cx->stop,
        .watch = cx->watch,
        .device = device,
        .exact = cx->options.exact,
        .programs = lower_for_engine,
        .maker = &cx->lowering,
        .again = step_again_maker(step),
    };
    const Status status = session_open(step->module, &options, &s->arena, &s->run);
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
    context_hold(cx, &s->held, s, end_held);
    *session = s;
    return OK;
}

Status session_start(qcc_step *step, uint64_t seed, const _Atomic int *stop, qcc_session **session)
{
    return session_start_on(step, step->cx->engine, step->cx->device, seed, stop, session);
}

void session_end(qcc_session *s)
{
    qcc_context *cx = s->cx;
    qcc_step *step = s->step;
    context_let_loose(cx, &s->held);
    session_close(s->run);
    heap_close(&s->texts);
    arena_close(&s->arena);
    memory_release(&cx->memory, s, sizeof *s);
    if (--step->users == 0 && step->freed)
        step_close(step);
}

typedef struct Start {
    qcc_step *step;
    qcc_session_options options;
    qcc_session *session;
} Start;

static Status do_start(void *arg)
{
    Start *c = arg;
    qcc_context *cx = c->step->cx;
    const Engine *engine = cx->engine;
    DeviceUse device = cx->device;
    const Place place = { .file = "qcc_start", .where = "device", .byte = -1 };
    if (c->options.device)
        TRY(device_read(&cx->diag, place, c->options.device, &cx->scratch, &engine, &device));
    cx->diag.file = c->step->model->file;
    return session_start_on(c->step, engine, device, 0, NULL, &c->session);
}

qcc_status qcc_start(qcc_step *step, const qcc_session_options *options, qcc_session **session)
{
    Start c = { .step = step };
    if (!step || !session || step->freed || (options && options->size < sizeof options->size))
        return QCC_USAGE;
    if (options)
        memcpy(&c.options, options, options->size < sizeof c.options ? options->size : sizeof c.options);
    const qcc_status status = context_call(step->cx, do_start, &c);
    if (status == QCC_OK)
        *session = c.session;
    return status;
}

void qcc_end(qcc_session *session)
{
    if (session)
        context_release(session->cx, end_held, session);
}

/* ---- calls of a session ---- */

typedef struct Call {
    qcc_session *session;
    Status (*fn)(struct Call *c);
    const char *name, *value;
    unsigned what;
    bool waits;
    RunResult result;
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

static Status do_run(Call *c)
{
    if (c->what & RUN_HELD)
        return fail_as(&c->session->cx->diag, USAGE, NOWHERE, "qcc_run: %u says nothing", RUN_HELD);
    const Status status =
        c->waits ? session_wait(c->session->run, &c->result) : session_run(c->session->run, c->what, &c->result);
    if (status == INTERRUPTED)
        c->session->stop = 0;
    if (status == OK && c->what == RUN_OBSERVE)
        (void)session_scaler(c->session->run, &c->result.scaler);
    return status;
}

static qcc_status run(Call *c, qcc_result *result)
{
    if (result && result->size < sizeof(size_t))
        return QCC_USAGE;
    const qcc_status status = session_call(c->session, do_call, c, true);
    if (status != QCC_OK || !result)
        return status;
    const RunResult *r = &c->result;
    const qcc_result all = { .size = result->size < sizeof all ? result->size : sizeof all,
                             .step = r->step,
                             .applied = r->applied,
                             .finite = r->finite,
                             .loss = r->has_loss ? r->loss : NAN,
                             .grad_norm = r->has_norm ? r->norm : NAN,
                             .lr = r->has_rate ? r->rate : NAN,
                             .loss_scale = r->has_scale ? r->scale : NAN,
                             .next_loss_scale = r->has_scale ? r->next_scale : NAN,
                             .applied_steps = (uint64_t)r->scaler.applied,
                             .skipped_steps = (uint64_t)r->scaler.skipped,
                             .first_bad = r->first_bad,
                             .finite_loss = !r->has_loss || isfinite(r->loss) };
    memcpy(result, &all, all.size);
    return QCC_OK;
}

qcc_status qcc_run(qcc_session *session, unsigned what, qcc_result *result)
{
    return run(&(Call){ .session = session, .fn = do_run, .what = what }, result);
}

qcc_status qcc_wait_step(qcc_session *session, qcc_result *result)
{
    return run(&(Call){ .session = session, .fn = do_run, .waits = true }, result);
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

/* Numbers of the host as those of a stored weight, of which they are the first; false: the state is none. */
static bool flat_numbers(const Call *c, const State *state, const float *first, Tensor *numbers)
{
    const Node *stored = stored_node(c->session->step, state->name);
    if (stored)
        *numbers = (Tensor){ .type = stored_type(c->session->step, stored), .data = (void *)(uintptr_t)first };
    if (stored)
        numbers->bytes = (size_t)tensor_elements(numbers) * sizeof(float);
    return stored != NULL;
}

static Status do_get_flat(Call *c)
{
    size_t n, at = 0;
    const State *states = session_states(c->session->run, &n);
    TRY(check_flat(c));
    for (size_t i = 0; i < n; i++) {
        const int64_t size = states[i].trained ? type_elements(states[i].type) : 0;
        const Tensor *value;
        Tensor numbers;
        if (!size)
            continue;
        if (flat_numbers(c, &states[i], c->flat + at, &numbers)) {
            TRY(stored_get(c->session->step, c->session->run, stored_node(c->session->step, states[i].name), &numbers));
        } else {
            TRY(session_value(c->session->run, &states[i], &value));
            load_f32(c->flat + at, value, 0, size);
        }
        at += (size_t)size;
    }
    return OK;
}

qcc_status qcc_get_flat(qcc_session *session, float *values, size_t n)
{
    Call c = { .session = session, .fn = do_get_flat, .flat = values, .n = n };
    return values || !n ? call(&c) : QCC_USAGE;
}

/* Those that are stored as codes are rounded, behind the others. */
static Status set_stored(const Call *c, const State *states, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        Tensor numbers;
        if (!states[i].trained)
            continue;
        if (flat_numbers(c, &states[i], c->flat_in + at, &numbers))
            TRY(stored_put(c->session->step, c->session->run, states[i].name, &numbers));
        at += (size_t)type_elements(states[i].type);
    }
    return OK;
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
        if (!stored_node(c->session->step, states[i].name)) {
            values[i] = tensor_alloc(&heap, states[i].type);
            store_f32(values[i], 0, c->flat_in + at, size);
        }
        at += (size_t)size;
    }
    const Status status = session_adopt(c->session->run, values);
    heap_close(&heap);
    return status == OK ? set_stored(c, states, n) : status;
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
