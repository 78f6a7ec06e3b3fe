/* A step that a device commits by itself: where everything goes is said beforehand, for whether it goes there nobody knows yet.
 *
 * So each state has to have a place of its own that may be written over, and no move reads what another one writes.  A step of
 * which that is not so is not taken. */
#include <string.h>

#include "runtime/host/host_parts.h"

/* What a move copies where a step is applied; false: it would read what a kept value was. */
static bool add_copy(Values *v, Tensor *to, const Tensor *from, bool always, int *n)
{
    if (to == from)
        return true;
    if (from->refs < LENT) /* not the runner's own */
        return false;
    if (to->bytes)
        v->copies[(*n)++] = (StepCopy){ to, from, always };
    return true;
}

static bool add_late(Values *v, Loaded *l, const ValueMove *move, int late, Tensor *to, int *n)
{
    if (v->late[late]) /* for two states: the second is a copy of what the first is then */
        return false;
    if (host_may_be_made_in(l, late, move->to)) {
        v->late[late] = to;
        return true;
    }
    v->late[late] = l->runner->does->apart(l->runner, late);
    if (to->bytes)
        v->copies[(*n)++] = (StepCopy){ .to = to, .from = v->late[late] };
    return true;
}

/* Where a move of a result goes; false: it cannot be said beforehand.  What is late is made of a step that is applied alone. */
static bool add_move(Values *v, int graph, const ValueMove *move, bool always, int *n)
{
    Loaded *l = v->graphs[graph];
    const Node *made = move->from.graph == graph ? graph_result(l->x.graph, move->from.at) : NULL;
    Tensor *to = made ? host_own_target(v, move->to, made->type) : NULL;
    const int late = to ? host_late_number(v, move->from) : -1;
    if (!to || !space_holds(v->space, to->type))
        return false;
    if (late >= 0)
        return !always && add_late(v, l, move, late, to, n);
    const Tensor *from = l->runner->does->settled(l->runner, move->from.at);
    return from && from->type == to->type && add_copy(v, to, from, always, n);
}

static bool plan(Values *v, int graph, const EngineStep *step, int *n)
{
    const GraphRunner *r = v->graphs[graph]->runner;
    if (!v->space || !r->does->decides || !r->does->decides(r, step))
        return false;
    memset(v->late, 0, (size_t)v->cap_late * sizeof *v->late);
    host_expect_moves(v, step->n_moves);
    for (int i = 0; i < step->n_moves; i++)
        if (!add_move(v, graph, &step->moves[i], i < step->n_always, n))
            return false;
    return true;
}

Status host_step(Values *v, int graph, const EngineStep *step, bool *taken)
{
    Loaded *l = v->graphs[graph];
    RunnerStep s = { .asked = step };
    *taken = plan(v, graph, step, &s.n_copies);
    TRY(space_status(v->space));
    if (!*taken)
        return OK;
    s.into = v->late;
    s.copies = v->copies;
    v->runs++;
    TRY(l->runner->does->step(l->runner, &s));
    l->done = l->x.n_parts;
    return space_status(v->space);
}

Status host_told(Values *v, int graph, EngineTold *told)
{
    GraphRunner *r = v->graphs[graph]->runner;
    return r->does->told(r, told);
}
