#include "ir/step_part.h"

#include "ir/role.h"

Map step_states(const Graph *g, Arena *arena)
{
    Map states;
    map_open(&states, arena);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state && g->inputs[i]->name)
            map_put(&states, g->inputs[i]->name, NULL)->value.p = g->inputs[i];
    return states;
}

const Node *step_next_of(const Graph *g, int result, const Map *states)
{
    const char *name = graph_result_name(g, result);
    const MapEntry *e = name && graph_result_mark(g, result).role == RESULT_value ? map_find(states, name) : NULL;
    return e ? e->value.p : NULL;
}

typedef struct Parts {
    const Graph *graph;
    Map states;
    Facts of; /* int */
} Parts;

static bool is_late(Parts *p, const Node *n)
{
    if (!(n->flags & NODE_UPDATE) || !n->uses)
        return false;
    for (const Use *u = n->uses; u; u = u->next) {
        const bool late = node_is_return(u->user) ? step_next_of(p->graph, (int)(u - u->user->in), &p->states) != NULL
                                                  : *(int *)fact(&p->of, u->user) == STEP_LATE;
        if (!late)
            return false;
    }
    return true;
}

/* What the result that was found is made of, on the side of the update. */
static void mark_find(Parts *p)
{
    const int found = graph_result_of(p->graph, RESULT_found, NULL);
    const Node *from = found >= 0 ? graph_result(p->graph, found) : NULL;
    if (from && *(int *)fact(&p->of, from) == STEP_UPDATE)
        *(int *)fact(&p->of, from) = STEP_FIND;
    for (const Node *n = p->graph->last; n; n = n->prev)
        for (int i = 0; i < n->n_in && *(int *)fact(&p->of, n) == STEP_FIND; i++)
            if (in(n, i) && *(int *)fact(&p->of, in(n, i)) == STEP_UPDATE)
                *(int *)fact(&p->of, in(n, i)) = STEP_FIND;
}

static bool is_constant(const Node *n)
{
    return n->op == OP_const || n->op == OP_param;
}

/* Nothing runs before what it reads. */
static void wait_for_operands(Parts *p)
{
    for (const Node *n = p->graph->first; n; n = n->next) {
        int *part = fact(&p->of, n);
        for (int i = 0; i < n->n_in; i++) {
            const Node *def = in(n, i);
            if (def && def->graph == n->graph && *(int *)fact(&p->of, def) > *part)
                *part = *(int *)fact(&p->of, def);
        }
    }
}

Facts step_parts(const Graph *g, Arena *arena)
{
    Parts p = { .graph = g, .states = step_states(g, arena), .of = facts_open(arena, sizeof(int)) };
    for (const Node *n = g->last; n; n = n->prev)
        if (!is_constant(n)) /* these are there from the beginning */
            *(int *)fact(&p.of, n) = n->flags & NODE_UPDATE     ? (is_late(&p, n) ? STEP_LATE : STEP_UPDATE)
                                     : n->flags & NODE_BACKWARD ? STEP_BACKWARD
                                                                : STEP_FORWARD;
    mark_find(&p);
    wait_for_operands(&p);
    return p.of;
}

const char *step_part_name(StepPart part)
{
    static const char *const names[] = { "forward", "backward", "find", "update", "late" };
    return names[part];
}
