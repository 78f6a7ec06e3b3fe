#include "support/renamed.h"

#include <string.h>

void renamer_open(Renamer *r, Arena *arena, const char *word)
{
    *r = (Renamer){ .arena = arena, .word = word };
    map_open(&r->names, arena);
    map_open(&r->made, arena);
}

static const char *fresh_name(Renamer *r, Names *names)
{
    const char *text = arena_printf(r->arena, "%s%d", r->word, r->n++);
    const char *name = name_of(names, text, strlen(text));
    map_put(&r->made, name, NULL);
    return name;
}

/* The new name of a state; of what is no state its own. */
static const char *renamed(const Renamer *r, const char *name)
{
    const MapEntry *e = name ? map_find(&r->names, name) : NULL;
    return e ? e->value.cp : name;
}

static void rename_states(Renamer *r, Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *n = g->inputs[i];
        bool fresh = false;
        MapEntry *e = n->op == OP_state && !map_find(&r->made, n->name) ? map_put(&r->names, n->name, &fresh) : NULL;
        if (fresh)
            e->value.cp = fresh_name(r, &g->ir->names);
    }
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *n = g->inputs[i];
        if (n->op != OP_state)
            continue;
        n->name = renamed(r, n->name);
        const RoleMark mark = node_role(n);
        node_set_role(n, mark.role, renamed(r, mark.of));
    }
}

void rename_graph(Renamer *r, Graph *g)
{
    const int n = graph_n_results(g);
    Node **values = NEWS(r->arena, Node *, n + 1);
    const char **names = NEWS(r->arena, const char *, n + 1);
    RoleMark *marks = NEWS(r->arena, RoleMark, n + 1);
    for (int i = 0; i < n; i++)
        names[i] = graph_result_name(g, i);
    rename_states(r, g);
    for (int i = 0; i < n; i++) {
        const bool ours = names[i] && map_find(&r->made, names[i]);
        values[i] = graph_result(g, i);
        marks[i] = graph_result_mark(g, i);
        if (marks[i].role && !ours)
            names[i] = fresh_name(r, &g->ir->names);
        names[i] = renamed(r, names[i]);
        marks[i].of = renamed(r, marks[i].of);
    }
    graph_return_marked(g, n, values, names, marks);
}
