/* Steps that are told of later: asked for, while a device is still at the one before.  At most one is not told of when the next
 * is asked for, so that two are under way at most. */
#include "runtime/session/session_parts.h"

bool session_runs_on(const Session *s)
{
    return decided_may(s);
}

/* The step, and those behind it, never were.  What they were to read came and went: the next step is given its own. */
static void forget_steps(Session *s)
{
    s->steps = s->later.step - 1;
    s->later.asked = false;
    s->phase = PHASE_IDLE;
    session_forget_next(s);
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].slot[0] >= 0) {
            s->inputs[i].bound = NULL;
            s->inputs[i].rebound = false;
        }
}

/* The engine tells of the step that was asked for. */
static Status take_answer(Session *s, RunResult *r)
{
    const Status status = decided_told(s, s->later.step, r);
    if (status != OK)
        forget_steps(s);
    s->later.asked = false;
    return status;
}

Status later_settle(Session *s)
{
    Later *l = &s->later;
    if (!l->asked)
        return OK;
    TRY(take_answer(s, &l->result));
    l->there = true;
    return OK;
}

bool later_held(Session *s, RunResult *r)
{
    Later *l = &s->later;
    if (!l->there || l->result.applied)
        return false;
    *r = l->result;
    l->there = false;
    return true;
}

void later_waits(Session *s, RunResult *r)
{
    Later *l = &s->later;
    const RunResult before = l->there ? l->result : (RunResult){ .finite = true };
    l->result = *r;
    l->there = true;
    *r = before;
}

Status later_asked(Session *s, RunResult *r, bool *held)
{
    Later *l = &s->later;
    const uint64_t step = s->steps;
    const bool was_asked = l->asked;
    *r = l->there ? l->result : (RunResult){ .finite = true };
    if (was_asked)
        TRY(take_answer(s, r));
    l->there = false;
    *held = was_asked && !r->applied;
    if (*held) {
        s->steps = step - 1;
        next_undo(s);
        return OK;
    }
    l->asked = true;
    l->step = step;
    return OK;
}

Status session_wait(Session *s, RunResult *result)
{
    Later *l = &s->later;
    TRY(later_settle(s));
    if (result)
        *result = l->there ? l->result : (RunResult){ .finite = true };
    l->there = false;
    return OK;
}
