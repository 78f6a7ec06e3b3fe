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

Status shadows_open(Session *s)
{
    part_states(s);
    for (size_t i = 0; i < s->n_states; i++) {
        State *state = &s->states[i];
        const bool is_shadow = state->mark.role == STATE_shadow;
        const char *name = is_shadow ? state->mark.of : NULL;
        state->version = is_shadow ? NEVER : NEVER + 1;
        state->master = name ? session_state(s, name) : NULL;
        if (is_shadow &&
            (!state->master || !type_known(state->type) || !type_same_shape(state->type, state->master->type)))
            return fail(s->ir->diag, NOWHERE, "state %s is no shadow: there is no state %s of its shape", state->name,
                        name ? name : "_");
    }
    return OK;
}

static State *first_shadow(const Session *s)
{
    return s->states + s->n_states - s->n_shadows;
}

static bool runs(const Session *s)
{
    return s->phase == PHASE_FORWARD || s->phase == PHASE_BACKWARD;
}

Status shadows_prepare(Session *s, const State *state, int *n_moves)
{
    for (State *shadow = first_shadow(s); shadow < s->states + s->n_states && runs(s); shadow++) {
        if (shadow->master != state)
            continue; /* the next forward makes those of a run that has not begun */
        TRY(sums_round(s, shadow, state_part(state, PART_FRESH), PART_FRESH));
        add_move(s, n_moves, state_part(shadow, PART_VALUE), state_part(shadow, PART_FRESH));
        add_move(s, n_moves, state_part(shadow, PART_FRESH), value_none());
    }
    return OK;
}

void shadows_set(Session *s, const State *state)
{
    for (State *shadow = first_shadow(s); shadow < s->states + s->n_states && runs(s); shadow++)
        if (shadow->master == state)
            shadow->version = state->version;
}

Status shadows_refresh(Session *s)
{
    for (State *state = first_shadow(s); state < s->states + s->n_states; state++) {
        if (state->version == state->master->version)
            continue;
        TRY(sums_round(s, state, state_part(state->master, PART_VALUE), PART_VALUE));
        state->version = state->master->version;
    }
    return OK;
}

void shadows_commit(Session *s)
{
    for (size_t i = s->n_states - s->n_shadows; i < s->n_states; i++)
        if (s->states[i].next >= 0 && s->states[i].master->next >= 0)
            s->states[i].version = s->states[i].master->version;
}
