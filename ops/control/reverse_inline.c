/* Reverse mode, of one call: what an adjoint sees of an operand, and the expansion of a call that has no adjoint. */
#include "ops/card/make.h"
#include "ops/control/reverse_call.h"

Node *reverse_wide(Build *b, Node *x)
{
    if (!x || x->type->kind != TYPE_TENSOR || !dtype_is_float(x->type->dtype))
        return x;
    return make_cast(b, x, make_width(x->type->dtype));
}

/* Puts what a function of the card builds in the place of a call. */
static Node *put_in_place(Node *n, Node *(*build)(Build *b, const Site *s), Status *status)
{
    const OpDef *d = op_of(n);
    Build b = build_before(n);
    if (!build)
        return NULL;
    const Tensor **values = NEWS(n->graph->arena, const Tensor *, n->n_in + 1);
    Node **ins = NEWS(n->graph->arena, Node *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++) {
        ins[i] = in(n, i);
        values[i] = reverse_known(ins[i]);
        if (ins[i] && !values[i] && d->expand_needs_values && !reverse_carries(ins[i]))
            return NULL;
    }
    const Site site = { .attr = n->attr,
                        .n_in = n->n_in,
                        .in = ins,
                        .value = values,
                        .type = n->type,
                        .n_out = type_results(n->type),
                        .regions = n->regions,
                        .n_regions = n->n_regions };
    Node *y = build(&b, &site);
    *status = b.status;
    if (b.status != OK || !y)
        return NULL;
    stand_in(n, y);
    node_remove(n);
    return y;
}

Node *reverse_inline(Node *n, Status *status)
{
    return put_in_place(n, op_of(n)->expand, status);
}

Node *reverse_open(Node *n, Status *status)
{
    return put_in_place(n, op_of(n)->open, status);
}
