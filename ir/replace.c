/* Taking nodes out and putting others in their place, names kept. */
#include "ir/heirs.h"

/* Results of a graph keep the names under which they leave. */
static void keep_result_names(const Node *old)
{
    Graph *g = old->graph;
    if (!old->name || g != g->root)
        return;
    for (const Use *u = old->uses; u; u = u->next) {
        if (u->user != g->ret)
            continue;
        if (!g->results)
            g->results = NEWS(g->arena, const char *, g->ret->n_in);
        const ptrdiff_t i = u - g->ret->in;
        if (!g->results[i])
            g->results[i] = old->name;
    }
}

void stand_in(Node *old, Node *by)
{
    if (by->name)
        keep_result_names(old);
    else
        by->name = old->name;
    old->name = NULL;
    heirs_add(old, by);
    graph_replace(old, by);
}

/* Taken out already: two readers of one operand went together. */
static bool is_out(const Node *n)
{
    return !n->prev && n->graph->first != n;
}

void remove_unread(Node *n, Arena *scratch, void (*gone)(void *user, Node *n), void *user)
{
    Node **stack = NULL;
    size_t depth = 0, cap = 0;
    GROW(scratch, stack, depth, cap);
    stack[depth++] = n;
    while (depth) {
        Node *top = stack[--depth];
        if (top->uses || top->op == OP_input || top->op == OP_state || is_out(top))
            continue;
        const int n_in = top->n_in;
        Node **defs = NEWS(scratch, Node *, n_in ? n_in : 1);
        for (int i = 0; i < n_in; i++)
            defs[i] = in(top, i);
        node_remove(top);
        if (gone)
            gone(user, top);
        for (int i = 0; i < n_in; i++) {
            bool again = !defs[i];
            for (int k = 0; k < i && !again; k++)
                again = defs[k] == defs[i];
            if (again)
                continue;
            GROW(scratch, stack, depth, cap);
            stack[depth++] = defs[i];
        }
    }
}
