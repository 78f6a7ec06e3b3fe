#include "runtime/session/session_parts.h"

#include <string.h>

static bool same_rules(const ScalerRules *a, const ScalerRules *b)
{
    return a->growth == b->growth && a->backoff == b->backoff && a->least == b->least && a->most == b->most &&
           a->interval == b->interval && a->hysteresis == b->hysteresis && a->refills == b->refills &&
           a->fast_start == b->fast_start && a->dynamic == b->dynamic;
}

/* Puts what a session gets beside what it has. */
static Status offer(Session *s, const Tensor *scale, const Tensor *counters)
{
    const Scaling *x = &s->scaling;
    Tensor given[2];
    Tensor *list[2];
    ValueAt to[2];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        const Tensor *t = i ? counters : scale;
        if (!t)
            continue;
        given[n] = *t;
        list[n] = &given[n];
        to[n++] = state_part(i ? x->counters : x->scale, PART_FRESH);
    }
    return s->engine->put(s->values, n, to, list, PUT_COPY);
}

static Status take(Session *s, State *state)
{
    int n = 0;
    add_move(s, &n, state_part(state, PART_VALUE), state_part(state, PART_FRESH));
    add_move(s, &n, state_part(state, PART_FRESH), value_none());
    TRY(s->engine->move(s->values, n, s->moves));
    state->version++;
    return OK;
}

static Status set_all(Session *first, const Tensor *scale, const Tensor *counters)
{
    for (Session *s = first; s; s = s->scaling.next)
        TRY(offer(s, scale, counters));
    for (Session *s = first; s; s = s->scaling.next) {
        if (scale)
            TRY(take(s, s->scaling.scale));
        if (counters)
            TRY(take(s, s->scaling.counters));
    }
    return OK;
}

Status scaling_set(Session *first, const Tensor *scale, const Tensor *counters)
{
    Cleanup cleanup;
    cleanup_push(first->ir->memory, &cleanup, session_drop_fresh, first);
    const Status status = set_all(first, scale, counters);
    cleanup_drop(&cleanup);
    if (status != OK)
        session_drop_fresh(first);
    return status;
}

Status scaler_join(Scaler *c, Session *s)
{
    if (!s->scaling.scale)
        return fail_as(c->diag, USAGE, NOWHERE, "a step without a scale cannot share one");
    if (s->scaling.shared || session_stage(s) != SESSION_READY)
        return fail_as(c->diag, USAGE, NOWHERE, "a session shares a scale already, or has gradients");
    if (c->first && !same_rules(c->first->scaling.rules, s->scaling.rules))
        return fail_as(c->diag, USAGE, NOWHERE, "sessions that share a scale were compiled with other --loss-scale");
    if (c->first)
        TRY(scaling_as(s, c->first));
    Session **end = &c->first;
    while (*end)
        end = &(*end)->scaling.next;
    *end = s;
    s->scaling.shared = c;
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
    TRY(scaling_read(s, &state));
    ScalerState next = scaler_next(s->scaling.rules, state, first, flags);
    scaler_pack(&next, counters);
    const Tensor scale = { .type = s->scaling.scale->type, .data = &next.scale, .bytes = sizeof next.scale },
                 packed = { .type = s->scaling.counters->type, .data = counters, .bytes = sizeof counters };
    TRY(scaling_set(s, &scale, &packed));
    for (; s; s = s->scaling.next)
        s->scaling.stepped = false;
    return OK;
}
