#include "ops/card/expansion.h"

#include "ir/build.h"

/* Constants that say where elements go are small; a weight is never read for its expansion. */
static const Tensor *known_value(const Node *n, int i)
{
    enum { SMALL = 4096 };
    const Node *x = in(n, i);
    return x && x->type->kind == TYPE_TENSOR ? node_constant(x, SMALL) : NULL;
}

Graph *expansion_of(const Node *n, Arena *arena)
{
    const OpDef *def = op_of(n);
    if (!def->expand)
        return NULL;
    Graph *g = graph_new(n->graph->ir, arena, NULL);
    Build b = build_at_end(g);
    const Tensor **values = NEWS(arena, const Tensor *, n->n_in + 1);
    Node **ins = NEWS(arena, Node *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++) {
        if (!in(n, i))
            continue;
        values[i] = known_value(n, i);
        if (def->expand_needs_values && !values[i] && in(n, i)->type->kind == TYPE_TENSOR &&
            dtype_is_integer(in(n, i)->type->dtype))
            return NULL;
        Node *input = graph_input(g, NULL, in(n, i)->type);
        ins[i] = values[i] && op_steers(def, i) ? build_const(&b, values[i]) : input;
    }
    const Site site = { .attr = n->attr,
                        .n_in = n->n_in,
                        .in = ins,
                        .value = values,
                        .type = n->type,
                        .n_out = type_results(n->type),
                        .regions = n->regions,
                        .n_regions = n->n_regions };
    Node *y = def->expand(&b, &site);
    if (b.status != OK || !y)
        return NULL;
    graph_return(g, 1, &y, NULL);
    return g;
}
