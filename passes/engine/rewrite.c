#include "passes/engine/rewrite.h"

bool rewrite_with(Rewriting *r, Node *n, Node *by, const Build *b)
{
    r->status = r->status == OK ? b->status : r->status;
    if (b->status != OK)
        return false;
    stand_in(n, by);
    remove_unread(n, r->run->scratch, NULL, NULL);
    r->run->changes++;
    return true;
}

/* The nodes of the list: what is built while they are visited is not among them, what is taken out has no readers. */
static Node **nodes_of(const Graph *g, Arena *arena, size_t *n)
{
    *n = 0;
    for (const Node *k = g->first; k; k = k->next)
        ++*n;
    Node **nodes = NEWS(arena, Node *, *n + 1);
    *n = 0;
    for (Node *k = g->first; k; k = k->next)
        nodes[(*n)++] = k;
    return nodes;
}

Status rewrite_all(Graph *g, PassRun *run, bool (*change)(Node *n, Rewriting *r))
{
    Rewriting r = { run, OK };
    for (bool changed = true; changed && r.status == OK;) {
        size_t n;
        Node **nodes = nodes_of(g, run->scratch, &n);
        changed = false;
        for (size_t i = 0; i < n && r.status == OK; i++)
            if (nodes[i]->uses && !node_is_input(nodes[i]))
                changed |= change(nodes[i], &r);
    }
    return r.status;
}
