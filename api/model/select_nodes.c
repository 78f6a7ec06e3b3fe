#include "api/model/select_nodes.h"

#include "passes/recipe/selector.h"

static void add(qcc_model *m, Selection *s, Node *n)
{
    GROW(&m->cx->scratch, s->nodes, s->n, s->cap);
    s->nodes[s->n++] = n;
}

Status select_nodes(qcc_model *m, const Map *paths, const char *option, const char *selector, Selection *selection)
{
    Selector s;
    *selection = (Selection){ 0 };
    TRY(selector_open(&s, m->graph, &m->cx->scratch, paths, option, selector));
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
        if (selector_takes(&s, n))
            add(m, selection, n);
    selector_close(&s);
    if (!selection->n)
        return selector_missed(&s, m->graph, false);
    remark(&m->cx->diag, "select", NOWHERE, "%s '%s' matches %zu", option, selector, selection->n);
    return OK;
}
