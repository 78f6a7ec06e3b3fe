#include "runtime/session_parts.h"

#include <string.h>

static bool same_rules(const ScalerRules *a, const ScalerRules *b)
{
    return a->growth == b->growth && a->backoff == b->backoff && a->least == b->least && a->most == b->most &&
           a->interval == b->interval && a->hysteresis == b->hysteresis && a->refills == b->refills &&
           a->fast_start == b->fast_start && a->dynamic == b->dynamic;
}

/* The values of the first session in all others. */
static void spread(Scaler *c)
{
    for (Session *s = c->first->scaling.next; s; s = s->scaling.next) {
        session_commit(s, s->scaling.scale, session_copy(s, c->first->scaling.scale->value));
        session_commit(s, s->scaling.counters, session_copy(s, c->first->scaling.counters->value));
    }
}

Status scaler_join(Scaler *c, Session *s)
{
    if (!s->scaling.scale)
        return fail_as(c->diag, USAGE, NOWHERE, "a step without a scale cannot share one");
    if (s->scaling.shared || session_stage(s) != SESSION_READY)
        return fail_as(c->diag, USAGE, NOWHERE, "a session shares a scale already, or has gradients");
    if (c->first && !same_rules(c->first->scaling.rules, s->scaling.rules))
        return fail_as(c->diag, USAGE, NOWHERE, "sessions that share a scale were compiled with other --loss-scale");
    Session **end = &c->first;
    while (*end)
        end = &(*end)->scaling.next;
    *end = s;
    s->scaling.shared = c;
    spread(c);
    return OK;
}

void scaler_leave(Session *s)
{
    Scaler *c = s->scaling.shared;
    if (!c)
        return;
    Session **at = &c->first;
    while (*at != s)
        at = &(*at)->scaling.next;
    *at = s->scaling.next;
    s->scaling.shared = NULL;
    s->scaling.next = NULL;
    s->scaling.stepped = false;
}

bool scaler_is_pending(const Scaler *c)
{
    for (const Session *s = c->first; s; s = s->scaling.next) {
        const SessionStage stage = session_stage(s);
        if (stage == SESSION_HAS_GRADIENTS || stage == SESSION_UNSCALED)
            return true;
    }
    return false;
}

/* What all found; false after a complaint. */
static bool join_found(const Scaler *c, int64_t *first, int64_t *flags)
{
    bool any = false;
    *first = -1;
    *flags = 0;
    if (scaler_is_pending(c)) {
        (void)fail_as(
            c->diag, USAGE, NOWHERE,
            "a session that shares the scale has gradients that were neither used by an update nor abandoned");
        return false;
    }
    for (const Session *s = c->first; s; s = s->scaling.next) {
        if (!s->scaling.stepped)
            continue;
        any = true;
        if (*first < 0)
            *first = s->scaling.own[0];
        *flags |= s->scaling.own[1];
    }
    if (!any)
        (void)fail_as(c->diag, USAGE, NOWHERE, "no session that shares the scale has made a step since it moved");
    return any;
}

Status scaler_update(Scaler *c)
{
    int64_t first, flags, counters[SCALER_COUNTERS];
    ScalerState state;
    if (!join_found(c, &first, &flags))
        return USAGE;
    Session *s = c->first;
    session_scaler(s, &state);
    const ScalerState next = scaler_next(s->scaling.rules, state, first, flags);
    Tensor *scale = tensor_alloc(&s->heap, s->scaling.scale->type),
           *packed = tensor_alloc(&s->heap, s->scaling.counters->type);
    scaler_pack(&next, counters);
    memcpy(scale->data, &next.scale, sizeof next.scale);
    memcpy(packed->data, counters, sizeof counters);
    session_commit(s, s->scaling.scale, scale);
    session_commit(s, s->scaling.counters, packed);
    spread(c);
    for (; s; s = s->scaling.next)
        s->scaling.stepped = false;
    return OK;
}
