/* The steps of a phase: a graph that is run in place of @step as long as few steps were applied.  Its inputs and results
 * are those of @step, one for one, and behind them there is the number of its steps. */
#include "ir/own_names.h"
#include "ir/role.h"
#include "runtime/session/session_parts.h"

static Status not_like_step(const Session *s)
{
    return fail(s->ir->diag, NOWHERE, "@" PHASE_GRAPH " has other inputs and results than @step");
}

static bool is_like_step(const Graph *g, const Graph *step)
{
    const int n = graph_n_results(step);
    bool like = g->n_inputs == step->n_inputs && graph_n_results(g) == n + 1;
    for (size_t i = 0; like && i < g->n_inputs; i++)
        like = g->inputs[i]->name == step->inputs[i]->name && g->inputs[i]->type == step->inputs[i]->type;
    for (int i = 0; like && i < n; i++)
        like = !graph_result(g, i) == !graph_result(step, i) &&
               (!graph_result(g, i) || graph_result(g, i)->type == graph_result(step, i)->type);
    return like;
}

Status phase_open(Session *s, const Module *m)
{
    SessionPhase *p = &s->early;
    Graph *g = module_graph(m, PHASE_GRAPH);
    if (!g)
        return OK;
    if (!is_like_step(g, session_step_graph(s)))
        return not_like_step(s);
    const Tensor *steps = node_constant(graph_result(g, graph_n_results(session_step_graph(s))), 64);
    p->counter = session_state_of(s, STATE_counter, NULL);
    if (!steps || !p->counter)
        return not_like_step(s);
    p->steps = tensor_get_i64(steps, 0);
    p->other = (StepGraph){ .graph = g };
    p->other.early = NEWS(s->arena, bool, s->n_states + 1);
    session_find_parts(s, g, &p->other);
    return OK;
}

Status phase_load(Session *s)
{
    StepGraph *other = &s->early.other;
    if (!other->graph)
        return OK;
    const Executable x = { .graph = other->graph, .n_parts = STEP_PARTS, .ends = other->ends };
    return session_load(s, x, &other->number);
}

/* @step and the other one change places. */
static void exchange(Session *s)
{
    StepGraph *other = &s->early.other;
    SessionGraph *step = &s->graphs[0];
    const StepGraph was = { .graph = step->graph, .number = step->number };
    step->graph = other->graph;
    step->number = other->number;
    other->graph = was.graph;
    other->number = was.number;
    for (size_t i = 0; i < s->n_states; i++) {
        const bool early = s->states[i].moves_early;
        s->states[i].moves_early = other->early[i];
        other->early[i] = early;
    }
    s->early.runs = !s->early.runs;
}

Status phase_choose(Session *s)
{
    SessionPhase *p = &s->early;
    bool there;
    double done;
    if (!p->counter)
        return OK;
    TRY(session_number(s, state_part(p->counter, PART_VALUE), &there, &done));
    if (there && (done < (double)p->steps) != p->runs)
        exchange(s);
    return OK;
}
