#include "passes/engine/results.h"

#include <string.h>

/* Names to places, as far as they were read: both lists grow while a pass runs. */
typedef struct ResultsIndex {
    Map results, inputs;
    size_t n_results, n_inputs;
} ResultsIndex;

Results results_of(Graph *g, Arena *arena)
{
    Results r = { .g = g, .arena = arena, .index = NEW(arena, ResultsIndex) };
    map_open(&r.index->results, arena);
    map_open(&r.index->inputs, arena);
    for (int i = 0; i < graph_n_results(g); i++)
        results_add_as(&r, g->results ? g->results[i] : NULL, graph_result(g, i),
                       (ResultRole)graph_result_mark(g, i).role, graph_result_mark(g, i).of);
    return r;
}

const char *results_name(const Results *r, size_t i)
{
    return r->name[i] || !r->node[i] ? r->name[i] : r->node[i]->name;
}

static void put_first(Map *map, const char *name, size_t i)
{
    bool fresh = false;
    MapEntry *e = name ? map_put(map, name, &fresh) : NULL;
    if (fresh)
        e->value.u = i;
}

int results_find(const Results *r, const char *name)
{
    ResultsIndex *x = r->index;
    for (; x->n_results < r->n; x->n_results++)
        put_first(&x->results, results_name(r, x->n_results), x->n_results);
    const MapEntry *e = map_find(&x->results, name);
    return e ? (int)e->value.u : -1;
}

int results_of_role(const Results *r, ResultRole role)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->mark[i].role == (int)role)
            return (int)i;
    return -1;
}

void results_add_as(Results *r, const char *name, Node *value, ResultRole role, const char *of)
{
    GROW(r->arena, r->node, r->n, r->cap);
    GROW(r->arena, r->name, r->n, r->cap_names);
    GROW(r->arena, r->mark, r->n, r->cap_marks);
    r->node[r->n] = value;
    r->mark[r->n] = (RoleMark){ (int)role, of };
    r->name[r->n++] = name;
}

void results_add(Results *r, const char *name, Node *value)
{
    results_add_as(r, name, value, RESULT_value, NULL);
}

void results_drop(Results *r, const bool *gone, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (i < n && gone[i])
            continue;
        r->node[kept] = r->node[i];
        r->mark[kept] = r->mark[i];
        r->name[kept++] = r->name[i];
    }
    r->n = kept;
    map_open(&r->index->results, r->arena); /* places changed */
    r->index->n_results = 0;
}

Node *results_take(Results *r, ResultRole role)
{
    const int at = results_of_role(r, role);
    if (at < 0)
        return NULL;
    Node *value = r->node[at];
    bool *gone = NEWS(r->arena, bool, r->n);
    gone[at] = true;
    results_drop(r, gone, r->n);
    return value;
}

void results_set(const Results *r)
{
    graph_return_marked(r->g, (int)r->n, r->node, r->name, r->mark);
}

Node *input_named(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    return NULL;
}

Node *results_input(const Results *r, const char *name)
{
    ResultsIndex *x = r->index;
    for (; x->n_inputs < r->g->n_inputs; x->n_inputs++)
        put_first(&x->inputs, r->g->inputs[x->n_inputs]->name, x->n_inputs);
    const MapEntry *e = map_find(&x->inputs, name);
    return e ? r->g->inputs[e->value.u] : NULL;
}

static Node *trained_of(const Results *r, size_t i, ResultRole role)
{
    if (!r->node[i] || r->mark[i].role != (int)role)
        return NULL;
    Node *x = results_input(r, r->mark[i].of);
    return x && x->op == OP_state && x->flags & NODE_TRAINED ? x : NULL;
}

Node *results_trained(const Results *r, size_t i)
{
    return trained_of(r, i, RESULT_gradient);
}

Node *results_clipped(const Results *r, size_t i)
{
    return trained_of(r, i, RESULT_clipped);
}

int results_next(const Results *r, const Node *state)
{
    return state && state->name ? results_find(r, state->name) : -1;
}

const char *name_with(Graph *g, const char *prefix, const char *name)
{
    const char *text = arena_printf(g->arena, "%s%s", prefix, name);
    return name_of(&g->ir->names, text, strlen(text));
}
