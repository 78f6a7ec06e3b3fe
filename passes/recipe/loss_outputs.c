#include "passes/recipe/loss_outputs.h"

#include <inttypes.h>

#include "ops/card/reduction.h"
#include "ops/card/shapes.h"

bool output_is_float(const Node *y)
{
    return y && y->type->kind == TYPE_TENSOR && dtype_is_float(y->type->dtype);
}

bool output_is_scalar(const Node *y)
{
    return output_is_float(y) && type_known(y->type) && type_elements(y->type) == 1 && y->type->rank <= 1;
}

static bool is_activation(const Node *n)
{
    return op_of(n)->likelihood != LIKELIHOOD_NONE;
}

/* Whether a call only gives its operand another shape, which it is told. */
static bool reshapes(const Node *n)
{
    const Node *x = op_of(n)->access.shape > 1 ? in(n, 0) : NULL;
    return x && x->type->kind == TYPE_TENSOR && type_elements(x->type) == type_elements(n->type);
}

Node *output_activation(const Node *y)
{
    Node *n = (Node *)(uintptr_t)y;
    while (n && op_passes(op_of(n)))
        n = in(n, 0);
    if (n && reshapes(n) && is_activation(in(n, 0))) /* of a matrix, as before opset 13 */
        n = in(n, 0);
    return n && is_activation(n) ? n : NULL;
}

int activation_axis(const Node *activation)
{
    const AttrSpec *spec = attr_find(op_of(activation)->attrs, str("axis"));
    return axis_wrap(*(const int64_t *)attr_at(spec, activation->attr), activation->type->rank);
}

/* What an activation among the results reads: the activation is the output that people mean. */
static Map shadowed(const Graph *g, Arena *arena)
{
    Map nodes;
    map_open(&nodes, arena);
    for (int k = 0; k < graph_n_results(g); k++) {
        const Node *activation = graph_result(g, k) ? output_activation(graph_result(g, k)) : NULL;
        if (activation && in(activation, 0))
            map_put_u64(&nodes, in(activation, 0)->id, NULL);
    }
    return nodes;
}

static Map states_of(const Graph *g, Arena *arena)
{
    Map names;
    map_open(&names, arena);
    for (size_t i = 0; i < g->n_inputs; i++) {
        bool fresh = false;
        MapEntry *e = g->inputs[i]->name ? map_put(&names, g->inputs[i]->name, &fresh) : NULL;
        if (fresh)
            e->value.i = g->inputs[i]->op == OP_state;
    }
    return names;
}

const Judgement *outputs_judged(const Graph *g, Arena *arena)
{
    const int n = graph_n_results(g);
    Judgement *of = NEWS(arena, Judgement, n + 1);
    const Map nodes = shadowed(g, arena), states = states_of(g, arena);
    for (int i = 0; i < n; i++) {
        const Node *y = graph_result(g, i);
        const char *name = graph_result_name(g, i);
        const MapEntry *state = name ? map_find(&states, name) : NULL;
        if (!output_is_float(y) || !name || (state && state->value.i))
            continue;
        of[i] = map_find_u64(&nodes, y->id) ? JUDGED_BEHIND : JUDGED;
    }
    return of;
}

int usual_class_axis(const Graph *g, const Type *scores)
{
    bool tokens = false;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        tokens |= node_is_input(n) && n->type->kind == TYPE_TENSOR && dtype_is_integer(n->type->dtype) &&
                  dtype_bits(n->type->dtype) >= 32; /* bytes are pixels */
    }
    return tokens && scores->rank == 3 ? 2 : scores->rank > 1 ? 1 : 0;
}

/* What --loss would say of an output. */
static const char *proposal(const Graph *g, const Node *y, const char *name, Arena *arena)
{
    const Node *last = output_activation(y);
    if (output_is_scalar(y))
        return arena_printf(arena, "--loss output:%s", name);
    const int usual = usual_class_axis(g, y->type);
    if (!last && y->type->rank > 1 && (y->type->dims[usual] < 0 || y->type->dims[usual] > 1))
        return arena_printf(arena, "--loss cross_entropy:%s,axis=%d | --loss mse:%s", name, usual, name);
    if (!last)
        return arena_printf(arena, "--loss mse:%s", name);
    if (op_of(last)->likelihood == LIKELIHOOD_YES)
        return arena_printf(arena, "--loss bce_logits:%s", name);
    const int axis = activation_axis(last);
    return arena_printf(arena, "--loss cross_entropy:%s,axis=%d", name, axis == last->type->rank - 1 ? -1 : axis);
}

Status loss_not_guessed(const Graph *g, Arena *arena, Diag *diag)
{
    enum { MOST_SHOWN = 8 };
    Text try;
    const Judgement *judged = outputs_judged(g, arena);
    int n = 0, shown = 0;
    text_open(&try, arena);
    for (int i = 0; i < graph_n_results(g); i++) {
        const Node *y = graph_result(g, i);
        const char *name = graph_result_name(g, i);
        if (judged[i] == JUDGED_NOT)
            continue;
        n++;
        if (judged[i] == JUDGED && shown++ < MOST_SHOWN)
            text_printf(&try, "%s | ", proposal(g, y, name, arena));
    }
    text_add(&try, "--loss output:NAME for a model that computes its own");
    Message *m = message_new(diag, SEVERITY_ERROR, USAGE, NOWHERE, "cannot guess a loss: %d float output%s", n,
                             n == 1 ? "" : "s");
    message_try(m, "%s", text_get(&try));
    return message_send(m);
}
