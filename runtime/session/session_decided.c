/* Steps that an engine commits by itself: asked for here, and told of later. */
#include <math.h>

#include "runtime/session/session_parts.h"

enum { LOSS, NORM, RATE, TOLD };

bool decided_may(const Session *s)
{
    bool pending = s->has_sums;
    for (size_t i = 0; i < s->n_states; i++)
        pending = pending || s->states[i].has_pending;
    return s->engine->step && scaling_decides(s) && !s->early.counter && !pending;
}

void decided_tell(const Session *s)
{
    if (s->engine->step && s->early.counter)
        remark(s->ir->diag, "engine", NOWHERE, "the host decides whether a step is applied: it has other first steps");
}

Status decided_step(Session *s, bool *taken)
{
    const SessionGraph *g = &s->graphs[0];
    const Scaling *x = &s->scaling;
    EngineStep step = { .n_numbers = TOLD,
                        .numbers = { [LOSS] = { .result = g->loss, .finite = !x->scale },
                                     [NORM] = { .result = g->norm, .finite = !x->scale },
                                     [RATE] = { .result = g->rate } },
                        .moves = s->moves };
    scaling_ask(s, &step);
    for (size_t i = 0; i < s->n_states; i++) {
        const State *state = &s->states[i];
        if (state->next >= 0 && state != x->scale && state != x->counters)
            add_move(s, &step.n_moves, state_part(state, PART_VALUE), session_step_result(s, state->next));
    }
    TRY(s->engine->step(s->values, g->number, &step, taken));
    if (*taken)
        TRY(next_bring(s));
    return OK;
}

/* What the host counts of a step that was applied. */
static void count_applied(Session *s)
{
    for (size_t i = 0; i < s->n_states; i++)
        s->states[i].version += s->states[i].next >= 0;
    shadows_commit(s);
}

Status decided_told(Session *s, uint64_t step, RunResult *r)
{
    EngineTold told;
    TRY(s->engine->told(s->values, s->graphs[0].number, &told));
    *r = (RunResult){ .step = step,
                      .applied = told.applied,
                      .has_loss = told.there[LOSS],
                      .has_norm = told.there[NORM],
                      .has_rate = told.there[RATE],
                      .loss = told.numbers[LOSS],
                      .norm = told.numbers[NORM],
                      .rate = told.numbers[RATE] };
    r->finite = (!r->has_loss || isfinite(r->loss)) && (!r->has_norm || isfinite(r->norm));
    scaling_told(s, &told, TOLD, r);
    if (told.applied)
        count_applied(s);
    s->phase = PHASE_DONE;
    return OK;
}
