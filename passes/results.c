#include "passes/results.h"

#include <string.h>

Results results_of(Graph *g, Arena *arena)
{
    Results r = { .g = g, .arena = arena };
    for (int i = 0; i < graph_n_results(g); i++)
        results_add(&r, g->results ? g->results[i] : NULL, graph_result(g, i));
    return r;
}

const char *results_name(const Results *r, size_t i)
{
    return r->name[i] || !r->node[i] ? r->name[i] : r->node[i]->name;
}

int results_find(const Results *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++) {
        const char *have = results_name(r, i);
        if (have && strcmp(have, name) == 0)
            return (int)i;
    }
    return -1;
}

void results_add(Results *r, const char *name, Node *value)
{
    size_t n = r->n;
    GROW(r->arena, r->node, r->n, r->cap);
    GROW(r->arena, r->name, n, r->cap_names);
    r->node[r->n] = value;
    r->name[r->n++] = name;
}

Node *results_take(Results *r, const char *name)
{
    const int at = results_find(r, name);
    if (at < 0)
        return NULL;
    Node *value = r->node[at];
    r->n--;
    for (size_t i = (size_t)at; i < r->n; i++) {
        r->node[i] = r->node[i + 1];
        r->name[i] = r->name[i + 1];
    }
    return value;
}

void results_set(const Results *r)
{
    graph_return(r->g, (int)r->n, r->node, r->name);
}

Node *input_named(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    return NULL;
}

Node *results_trained(const Results *r, size_t i)
{
    const char *name = results_name(r, i);
    if (!r->node[i] || !name || strncmp(name, GRADIENT_PREFIX, sizeof GRADIENT_PREFIX - 1) != 0)
        return NULL;
    Node *x = input_named(r->g, name + sizeof GRADIENT_PREFIX - 1);
    return x && x->op == OP_state && x->flags & NODE_TRAINED ? x : NULL;
}

const char *name_with(Graph *g, const char *prefix, const char *name)
{
    const char *text = arena_printf(g->arena, "%s%s", prefix, name);
    return name_of(&g->ir->names, text, strlen(text));
}
