#include "ir/heirs.h"

void heirs_keep(Graph *g)
{
    g->heirs = NEW(g->arena, Heirs);
}

void heirs_add(const Node *old, const Node *by)
{
    Graph *root = old->graph->root;
    Heirs *h = root->heirs;
    if (!h)
        return;
    GROW(root->arena, h->list, h->n, h->cap);
    h->list[h->n++] = (Heir){ old->id, old->src, by->id };
}
