/* What a call with an expansion says of its access is what the heart of the expansion says. */
#include "ops/card/access.h"

static bool is_row(const Node *n)
{
    return op_of(n)->access.kind == ACCESS_ROW;
}

/* The only node that is no row; null where there are none or several. */
static Node *heart_of(const Graph *g)
{
    Node *heart = NULL;
    for (Node *n = g->first; n; n = n->next) {
        if (op_of(n)->structural || is_row(n))
            continue;
        if (heart)
            return NULL;
        heart = n;
    }
    return heart;
}

static bool is_constant(const Node *n)
{
    return n->op == OP_const;
}

/* What a value is made of element by element, through rows that read nothing else but constants. */
static Node *behind_rows(Node *n)
{
    while (is_row(n)) {
        Node *only = NULL;
        for (int i = 0; i < n->n_in; i++) {
            Node *x = in(n, i);
            if (!x || is_constant(x))
                continue;
            if (only || !type_same_shape(x->type, n->type))
                return NULL;
            only = x;
        }
        if (!only)
            return NULL;
        n = only;
    }
    return n;
}

/* The operand of the call that an input of its expansion stands for; -1: none. */
static int operand_of(const Node *call, const Graph *g, const Node *input)
{
    size_t k = 0;
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i) && g->inputs[k++] == input)
            return i;
    return -1;
}

typedef struct Heart {
    const Node *call;
    const Graph *g;
    Node *node;
    Iteration walk; /* of the node */
    Iteration *to;
    Arena *arena;
} Heart;

/* An operand is read in one way only. */
static bool give(Heart *h, Node *value, const Access *a)
{
    Node *x = behind_rows(value);
    if (!x)
        return false;
    if (is_constant(x))
        return true;
    const int i = operand_of(h->call, h->g, x);
    if (i < 0 || h->to->in[i].reach != REACH_TYPE)
        return false;
    h->to->in[i] = *a;
    return true;
}

/* The rows between the heart and the result, and what they read beside it. */
static bool rows_above(Heart *h, Node *n)
{
    while (n != h->node) {
        Node *below = NULL;
        if (!is_row(n) || !type_same_shape(n->type, h->node->type))
            return false;
        for (int i = 0; i < n->n_in; i++) {
            Node *x = in(n, i), *source = x ? behind_rows(x) : NULL;
            if (!x || is_constant(x))
                continue;
            if (source && operand_of(h->call, h->g, source) >= 0) {
                Access a;
                if (!give(h, x, reach_beside(h->call, h->arena, &a, x->type, n->type->rank)))
                    return false;
            } else if (below) {
                return false;
            } else {
                below = x;
            }
        }
        if (!below)
            return false;
        n = below;
    }
    return true;
}

bool iterate_expansion(const Node *n, Arena *arena, Iteration *to)
{
    Graph *g = expansion_of(n, arena);
    Heart h = { .call = n, .g = g, .node = g ? heart_of(g) : NULL, .to = to, .arena = arena };
    if (!h.node || h.node->type->kind != TYPE_TENSOR || !access_iterate(h.node, arena, &h.walk) ||
        h.walk.out[0].reach != REACH_AFFINE)
        return false;
    *to = h.walk;
    to->n_in = n->n_in;
    to->in = NEWS(arena, Access, n->n_in + 1);
    for (int i = 0; i < h.node->n_in; i++)
        if (in(h.node, i) && h.walk.in[i].reach != REACH_TYPE && !give(&h, in(h.node, i), &h.walk.in[i]))
            return false;
    return rows_above(&h, graph_result(g, 0));
}
