#include "passes/deploy/spell.h"

Status spell_calls(Graph *g, PassRun *run, Node *(*spelled)(Build *b, Node *n))
{
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->type->kind != TYPE_TENSOR)
            continue;
        Build b = build_before(n);
        b.src = n->src;
        b.label = n->label;
        b.flags = n->flags;
        Node *as = spelled(&b, n);
        TRY(b.status);
        if (!as)
            continue;
        stand_in(n, as);
        remove_unread(n, run->scratch, NULL, NULL);
        run->changes++;
    }
    return OK;
}
