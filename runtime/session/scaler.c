#include "runtime/session/session_parts.h"

#include <string.h>

static bool same_rules(const ScalerRules *a, const ScalerRules *b)
{
    return a->growth == b->growth && a->backoff == b->backoff && a->least == b->least && a->most == b->most &&
           a->interval == b->interval && a->hysteresis == b->hysteresis && a->refills == b->refills &&
           a->fast_start == b->fast_start && a->dynamic == b->dynamic;
}

static Tensor *copy_in(Heap *heap, const Tensor *value)
{
    Tensor *t = value ? tensor_alloc(heap, value->type) : NULL;
    if (t)
        memcpy(t->data, value->data, value->bytes);
    return t;
}

static void adopt(Session *s, State *state, Tensor *value)
{
    if (!value)
        return;
    heap_take(&s->heap, value);
    session_commit(s, state, value);
    session_put_on(s, state);
}

void scaling_set(Session *first, const Tensor *scale, const Tensor *counters)
{
    Heap heap;
    size_t n = 0, k = 0;
    for (const Session *s = first; s; s = s->scaling.next)
        n++;
    Tensor **copies = NEWS(first->ir->diag->arena, Tensor *, 2 * n);
    heap_open(&heap, first->ir->memory); /* a jump leaves nothing of them */
    for (size_t i = 0; i < n; i++) {
        copies[k++] = copy_in(&heap, scale);
        copies[k++] = copy_in(&heap, counters);
    }
    k = 0;
    for (Session *s = first; s; s = s->scaling.next) {
        adopt(s, s->scaling.scale, copies[k++]);
        adopt(s, s->scaling.counters, copies[k++]);
    }
    heap_close(&heap);
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
        scaling_set(s, c->first->scaling.scale->value, c->first->scaling.counters->value);
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
    session_scaler(s, &state);
    ScalerState next = scaler_next(s->scaling.rules, state, first, flags);
    scaler_pack(&next, counters);
    const Tensor scale = { .type = s->scaling.scale->type, .data = &next.scale, .bytes = sizeof next.scale },
                 packed = { .type = s->scaling.counters->type, .data = counters, .bytes = sizeof counters };
    scaling_set(s, &scale, &packed);
    for (; s; s = s->scaling.next)
        s->scaling.stepped = false;
    return OK;
}
