#include "api/session/state_codes.h"

#include <string.h>

#include "base/bytes.h"
#include "ops/card/eval.h"

/* The quantizer of the model, not one of ours, that reads a state, its scale and zero point being constants. */
static const Node *quantizer_of(const Graph *g, const char *name)
{
    const Node *state = NULL, *found = NULL;
    for (size_t i = 0; i < g->n_inputs && !state; i++)
        if (g->inputs[i]->op == OP_state && strcmp(g->inputs[i]->name, name) == 0)
            state = g->inputs[i];
    for (const Use *u = state ? state->uses : NULL; u; u = u->next) {
        const Node *n = u->user;
        if (!node_is_return(n) && op_of(n)->quant.quantizes && !(n->flags & NODE_OURS) && in(n, 0) == state &&
            node_constant(in(n, 1), 0) && (!in(n, 2) || node_constant(in(n, 2), 0)))
            found = n;
    }
    return found;
}

/* The call alone. */
static Status quantize(const Node *n, const Tensor *value, Arena *arena, Heap *heap, Tensor **codes)
{
    Graph *g = graph_new(n->graph->ir, arena, NULL);
    const Tensor *values[3] = { value };
    Node *ins[3] = { NULL };
    const int n_in = n->n_in < 3 ? n->n_in : 3;
    int k = 0;
    for (int i = 0; i < n_in; i++) {
        if (!in(n, i))
            continue;
        values[k] = i ? node_constant(in(n, i), 0) : value;
        ins[i] = graph_input(g, NULL, values[k++]->type);
    }
    Node *call = graph_insert(g, NULL, n->op, n->type, n_in, ins);
    call->attr = n->attr;
    graph_return(g, 1, &call, NULL);
    return evaluate(g, NULL, heap, values, codes);
}

Status state_codes(const qcc_step *s, const char *name, const Tensor *value, const Tensor **codes)
{
    const Graph *eval = module_graph(s->module, "eval");
    const Node *n = eval ? quantizer_of(eval, name) : NULL;
    Arena *arena = &s->cx->scratch;
    Heap heap;
    Tensor *found = NULL;
    *codes = NULL;
    if (!n || value->type->dtype != F32)
        return OK;
    heap_open(&heap, &s->cx->memory);
    const Status status = quantize(n, value, arena, &heap, &found);
    if (status == OK) {
        Tensor *own = tensor_new(arena, found->type);
        bytes_copy(own->data, found->data, own->bytes);
        *codes = own;
    }
    heap_close(&heap);
    return status;
}
