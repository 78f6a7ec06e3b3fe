/* Loss scaling from outside: what a host asks of a session's gradients, and one scale for several sessions. */
#include "runtime/session/scaler.h"

#include "api/make/step.h"

/* ---- gradients of one session ---- */

typedef struct ScaleCall {
    qcc_session *session;
    qcc_scaler *scaler;
    bool already, pending, stays;
} ScaleCall;

static Status do_unscale(void *arg)
{
    ScaleCall *c = arg;
    return session_unscale(c->session->run, &c->already);
}

qcc_status qcc_unscale(qcc_session *session)
{
    ScaleCall c = { .session = session };
    const qcc_status status = session_call(session, do_unscale, &c, true);
    return status == QCC_OK && c.already ? QCC_ALREADY : status;
}

static Status do_abandon(void *arg)
{
    const ScaleCall *c = arg;
    return session_abandon(c->session->run);
}

qcc_status qcc_abandon(qcc_session *session)
{
    ScaleCall c = { .session = session };
    return session_call(session, do_abandon, &c, false);
}

static Status do_freeze(void *arg)
{
    const ScaleCall *c = arg;
    return session_freeze_scale(c->session->run, c->stays);
}

qcc_status qcc_freeze_loss_scale(qcc_session *session, int stays)
{
    ScaleCall c = { .session = session, .stays = stays != 0 };
    return session_call(session, do_freeze, &c, false);
}

/* ---- a scale that sessions share ---- */

struct qcc_scaler {
    qcc_context *cx;
    Scaler shared;
    Held held;
};

typedef struct ScalerOpen {
    qcc_context *cx;
    int together;
    qcc_scaler *scaler;
} ScalerOpen;

static void scaler_end(void *scaler)
{
    qcc_scaler *s = scaler;
    qcc_context *cx = s->cx;
    while (s->shared.first)
        scaler_leave(s->shared.first);
    context_let_loose(cx, &s->held);
    memory_release(&cx->memory, s, sizeof *s);
}

static Status do_open(void *arg)
{
    ScalerOpen *c = arg;
    qcc_scaler *s = memory_block(&c->cx->memory, sizeof *s);
    *s = (qcc_scaler){ .cx = c->cx, .shared = { .diag = &c->cx->diag, .together = c->together != 0 } };
    context_hold(c->cx, &s->held, s, scaler_end);
    c->scaler = s;
    return OK;
}

qcc_status qcc_scaler_open(qcc_context *context, int together, qcc_scaler **scaler)
{
    ScalerOpen c = { .cx = context, .together = together };
    if (!context || !scaler)
        return QCC_USAGE;
    const qcc_status status = context_call(context, do_open, &c);
    if (status == QCC_OK)
        *scaler = c.scaler;
    return status;
}

void qcc_scaler_close(qcc_scaler *scaler)
{
    if (scaler)
        context_release(scaler->cx, scaler_end, scaler);
}

static Status do_join(void *arg)
{
    const ScaleCall *c = arg;
    if (c->scaler->cx != c->session->cx)
        return fail_as(&c->session->cx->diag, USAGE, NOWHERE, "sessions that share a scale are of one context");
    return scaler_join(&c->scaler->shared, c->session->run);
}

qcc_status qcc_scaler_join(qcc_scaler *scaler, qcc_session *session)
{
    ScaleCall c = { .session = session, .scaler = scaler };
    return scaler && session ? session_call(session, do_join, &c, false) : QCC_USAGE;
}

static Status do_update(void *arg)
{
    ScaleCall *c = arg;
    c->pending = scaler_is_pending(&c->scaler->shared);
    return scaler_update(&c->scaler->shared);
}

qcc_status qcc_scaler_update(qcc_scaler *scaler)
{
    ScaleCall c = { .scaler = scaler };
    if (!scaler)
        return QCC_USAGE;
    const qcc_status status = context_call(scaler->cx, do_update, &c);
    return status == QCC_USAGE && c.pending ? QCC_PENDING : status;
}
