#include "api/session/moments.h"

#include <string.h>

#include "base/bytes.h"
#include "ops/card/eval.h"
#include "ops/update/blocks.h"

/* The update of a parameter. */
static const Node *update_of(const qcc_step *s, const char *parameter)
{
    const Graph *g = module_graph(s->module, "step");
    const Node *x = NULL;
    for (size_t i = 0; i < g->n_inputs && !x; i++)
        if (g->inputs[i]->op == OP_state && strcmp(g->inputs[i]->name, parameter) == 0)
            x = g->inputs[i];
    for (const Use *u = x ? x->uses : NULL; u; u = u->next)
        if (!node_is_return(u->user) && op_of(u->user)->states && in(u->user, UPDATE_PARAMETER) == x)
            return u->user;
    return NULL;
}

const Node *moment_of(const qcc_step *s, const char *parameter, const char *kind, Moment *as)
{
    const Node *call = update_of(s, parameter);
    const char *names[UPDATE_STATES];
    const int n = call ? update_states(op_of(call), call->attr, names) : 0;
    *as = (Moment){ 0 };
    for (int i = 0; i < n; i++) {
        const bool coded = UPDATE_STATE_SCALE + i < call->n_in && in(call, UPDATE_STATE_SCALE + i);
        if (strcmp(names[i], kind) != 0)
            continue;
        if (coded)
            *as = (Moment){ names[i], in(call, UPDATE_STATE + i), in(call, UPDATE_STATE_SCALE + i),
                            ((const UpdateForm *)call->attr)->block };
        return in(call, UPDATE_STATE + i);
    }
    return NULL;
}

int moments_of(const qcc_step *s, const char *parameter, const char *kinds[UPDATE_STATES])
{
    const Node *call = update_of(s, parameter);
    return call ? update_states(op_of(call), call->attr, kinds) : 0;
}

Status moment_get(const qcc_step *s, Session *run, const Moment *m, Tensor *numbers)
{
    const Tensor *codes = session_view(run, m->codes->name), *scale = codes ? session_view(run, m->scale->name) : NULL;
    if (!scale)
        return s->cx->diag.n_errors ? s->cx->diag.first
                                    : fail_as(&s->cx->diag, INTERNAL, NOWHERE, "%s is not there", m->codes->name);
    state_numbers(m->name, m->block, codes, scale, numbers->data);
    return OK;
}

Status moment_round(const qcc_step *s, const Moment *m, const Tensor *numbers, Tensor *codes, Tensor *scale)
{
    Heap heap;
    Tensor *made[2] = { NULL };
    Node *results[2];
    Graph *g = graph_new(s->ir, &s->cx->scratch, NULL);
    Node *x = graph_input(g, NULL, numbers->type);
    Build b = build_at_end(g);
    results[0] = state_rounded(&b, m->name, m->block, m->codes->type, m->scale->type, x, &results[1]);
    if (b.status != OK)
        return b.status;
    graph_return(g, 2, results, NULL);
    heap_open(&heap, &s->cx->memory);
    const Status status = evaluate(g, NULL, &heap, &numbers, made);
    if (status == OK) {
        bytes_copy(codes->data, made[0]->data, codes->bytes);
        bytes_copy(scale->data, made[1]->data, scale->bytes);
    }
    heap_close(&heap);
    return status;
}
