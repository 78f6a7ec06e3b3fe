#include "passes/ptq/rounding.h"

#include <math.h>

#include "ops/card/make.h"

/* The sigmoid is stretched beyond 0 and 1, so that both are reached. */
static const double stretch = 1.2, below = 0.1;

double rounding_of(double h)
{
    const double u = (h + below) / stretch;
    return log(u / (1 - u));
}

double rounding_part(double p)
{
    return fmin(fmax(stretch / (1 + exp(-p)) - below, 0), 1);
}

static Node *between(Build *b, Node *x, double least, double largest)
{
    return CALL(b, clip, x, build_scalar(b, F32, least), build_scalar(b, F32, largest));
}

static Node *squared(Build *b, Node *x)
{
    return CALL(b, mul, x, x);
}

/* The layer on its data, with another weight. */
static Node *layer_of(Build *b, const RoundingLayer *l, Node *x, Node *w)
{
    Node **ins = NEWS(b->graph->arena, Node *, l->call->n_in);
    for (int i = 0; i < l->call->n_in; i++)
        ins[i] = i == l->weight ? w : i == l->data ? x : l->others[i] ? build_const(b, l->others[i]) : NULL;
    if (b->status != OK)
        return NULL;
    return build_node(b, l->call->op, l->call->attr, l->call->n_in, ins);
}

Status rounding_graph(Graph *g, const RoundingLayer *l)
{
    Types *types = &g->ir->types;
    Node *x = graph_input(g, ROUNDING_DATA, l->x), *y = graph_input(g, ROUNDING_WANTED, l->y);
    Node *beta = graph_input(g, ROUNDING_BETA, type_scalar(types, F32));
    Node *lambda = graph_input(g, ROUNDING_WEIGHT, type_scalar(types, F32));
    Node *p = graph_state(g, ROUNDING_STATE, l->start->type, &(StateAttr){ .value = payload_of(g->arena, l->start) });
    p->flags |= NODE_TRAINED;
    Build b = build_at_end(g);
    Node *half = CALL(&b, mul, CALL(&b, sigmoid, p), build_scalar(&b, F32, stretch));
    Node *h = between(&b, CALL(&b, sub, half, build_scalar(&b, F32, below)), 0, 1);
    Node *codes = between(&b, CALL(&b, add, build_const(&b, l->floors), h), l->least, l->largest);
    Node *z = layer_of(&b, l, x, CALL(&b, mul, codes, build_const(&b, l->scales)));
    Node *off = make_reduce_all(&b, OP_reduce_mean, squared(&b, CALL(&b, sub, z, y)));
    Node *sure = CALL(&b, sub, CALL(&b, add, h, h), build_scalar(&b, F32, 1));
    sure = make_reduce_all(&b, OP_reduce_mean, CALL(&b, pow, CALL(&b, abs, sure), beta));
    Node *open = CALL(&b, mul, lambda, CALL(&b, sub, build_scalar(&b, F32, 1), sure));
    Node *loss = CALL(&b, add, CALL(&b, mul, off, build_scalar(&b, F32, l->share)), open);
    TRY(b.status);
    const char *name = "loss";
    graph_return(g, 1, &loss, &name);
    return OK;
}
