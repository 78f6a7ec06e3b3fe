/* Shadows of a session: versions say when one is behind its master. */
#include "ops/update/shadow.h"

#include <string.h>

#include "base/bytes.h"
#include "runtime/session/session_parts.h"

enum { NEVER = 0 }; /* version of a shadow that was not made yet; values begin with version 1 */

/* Moves the shadows behind all others, both in their order. */
static void part_states(Session *s)
{
    State *shadows = NEWS(s->arena, State, s->n_states + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].mark.role == STATE_shadow)
            shadows[s->n_shadows++] = s->states[i];
        else
            s->states[n++] = s->states[i];
    if (s->n_shadows)
        memcpy(s->states + n, shadows, s->n_shadows * sizeof *shadows);
    for (size_t i = 0; i < s->n_states; i++)
        map_put(&s->by_name, s->states[i].name, NULL)->value.p = &s->states[i];
}

static bool same_shape(const Type *a, const Type *b)
{
    return a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank == b->rank && type_known(a) &&
           bytes_equal(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

Status shadows_open(Session *s)
{
    part_states(s);
    for (size_t i = 0; i < s->n_states; i++) {
        State *state = &s->states[i];
        const bool is_shadow = state->mark.role == STATE_shadow;
        const char *name = is_shadow ? state->mark.of : NULL;
        state->version = is_shadow ? NEVER : NEVER + 1;
        state->master = name ? session_state(s, name) : NULL;
        if (is_shadow && (!state->master || !same_shape(state->type, state->master->type)))
            return fail(s->ir->diag, NOWHERE, "state %s is no shadow: there is no state %s of its shape", state->name,
                        name ? name : "_");
    }
    return OK;
}

static State *first_shadow(const Session *s)
{
    return s->states + s->n_states - s->n_shadows;
}

void shadows_prepare(Session *s, const State *state, const Tensor *value)
{
    if (s->phase != PHASE_FORWARD && s->phase != PHASE_BACKWARD)
        return; /* the next forward makes them */
    for (State *shadow = first_shadow(s); shadow < s->states + s->n_states; shadow++) {
        if (shadow->master != state)
            continue;
        Tensor *rounded = tensor_alloc(&s->heap, shadow->type);
        shadow_fill(rounded, value);
        session_keep_value(s, &shadow->pending, rounded);
    }
}

void shadows_set(Session *s)
{
    for (State *shadow = first_shadow(s); shadow < s->states + s->n_states; shadow++) {
        if (!shadow->pending)
            continue;
        session_keep_value(s, &shadow->value, shadow->pending);
        shadow->pending = NULL;
        shadow->version = shadow->master->version;
        session_put_on(s, shadow);
    }
}

void shadows_refresh(Session *s)
{
    for (size_t i = s->n_states - s->n_shadows; i < s->n_states; i++) {
        State *state = &s->states[i];
        session_keep_value(s, &state->pending, NULL); /* of a write that found no memory */
        if (state->version == state->master->version)
            continue;
        Tensor *value = tensor_alloc(&s->heap, state->type); /* the one before may be held by a run */
        shadow_fill(value, state->master->value);
        session_keep_value(s, &state->value, value);
        state->version = state->master->version;
    }
}

void shadows_commit(Session *s)
{
    for (size_t i = s->n_states - s->n_shadows; i < s->n_states; i++)
        if (s->states[i].next >= 0 && s->states[i].master->next >= 0)
            s->states[i].version = s->states[i].master->version;
}
