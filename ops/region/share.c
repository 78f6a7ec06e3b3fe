#include "ops/region/region.h"

static const Node *product_of(const Node *n)
{
    return n->op == OP_fused ? region_contraction(n) : region_contracts(n) ? n : NULL;
}

/* The left operand of a product as the graph around has it. */
static const Node *left_of(const Node *n, const Node *product)
{
    const Graph *body = n == product ? NULL : n->regions[0];
    for (size_t k = 0; body && k < body->n_inputs; k++)
        if (body->inputs[k] == in(product, 0))
            return in(n, (int)k);
    return body ? NULL : in(n, 0);
}

const Node *region_left(const Node *n)
{
    return left_of(n, product_of(n));
}

bool region_shares(const Node *a, const Node *b)
{
    const Node *x = product_of(a), *y = product_of(b);
    const OpDef *def = x ? op_of(x) : NULL;
    return x && y && x->op == y->op && def->beside && attrs_equal(def->attrs, x->attr, y->attr) &&
           x->type->dtype == y->type->dtype && left_of(a, x) && left_of(a, x) == left_of(b, y) &&
           def->shares(in(x, 0)->type, in(x, 1)->type, in(y, 1)->type);
}
