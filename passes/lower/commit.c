#include "passes/lower/commit.h"

#include "ir/role.h"

typedef struct Commit {
    Graph *graph;
    Map states; /* by name */
    Facts late; /* bool */
} Commit;

static bool is_next_value(Commit *c, int result)
{
    const char *name = graph_result_name(c->graph, result);
    return name && graph_result_mark(c->graph, result).role == RESULT_value && map_find(&c->states, name);
}

static bool is_late(Commit *c, const Node *n)
{
    if (!(n->flags & NODE_UPDATE) || !n->uses)
        return false;
    for (const Use *u = n->uses; u; u = u->next) {
        const bool late =
            node_is_return(u->user) ? is_next_value(c, (int)(u - u->user->in)) : *(bool *)fact(&c->late, u->user);
        if (!late)
            return false;
    }
    return true;
}

Facts commit_find(Graph *g, Arena *arena)
{
    Commit c = { .graph = g, .late = facts_open(arena, sizeof(bool)) };
    map_open(&c.states, arena);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state && g->inputs[i]->name)
            map_put(&c.states, g->inputs[i]->name, NULL);
    for (const Node *n = g->last; n; n = n->prev)
        *(bool *)fact(&c.late, n) = is_late(&c, n);
    return c.late;
}
