#include "api/model/evaluate.h"

#include <string.h>

#include "ir/role.h"
#include "ops/update/shadow.h"

/* A result that is one of the inputs, whose memory is the caller's, becomes a copy. */
static Tensor *own_result(qcc_model *m, Tensor *t, const Map *inputs)
{
    if (!t || t->type->kind != TYPE_TENSOR || !map_find_u64(inputs, (uintptr_t)t))
        return t;
    Tensor *copy = tensor_alloc(&m->heap, t->type);
    if (t->bytes)
        memcpy(copy->data, t->data, t->bytes);
    return copy;
}

Status model_evaluate(qcc_model *m, const EvalOptions *how, const Tensor *const *inputs)
{
    memset(m->results, 0, (m->n_outputs + 1) * sizeof *m->results);
    heap_close(&m->heap);
    heap_open(&m->heap, &m->cx->memory); /* a jump takes what was made so far, and so does a failure */
    const Status status = evaluate(m->graph, how, &m->heap, inputs, m->results);
    if (status != OK) {
        heap_close(&m->heap);
        return status;
    }
    Map given;
    map_open(&given, &m->cx->scratch);
    for (size_t i = 0; i < m->n_inputs; i++)
        map_put_u64(&given, (uintptr_t)inputs[i], NULL);
    for (size_t i = 0; i < m->n_outputs; i++)
        m->results[i] = own_result(m, m->results[i], &given);
    heap_keep(&m->heap);
    return OK;
}

Status model_initial(qcc_model *m, size_t i, const Tensor **value)
{
    const Node *n = m->graph->inputs[i];
    Payload *p = state_initial(n);
    const char *master = is_state(n, STATE_shadow) ? node_role(n).of : NULL;
    if (p && tensor_holds(n->type)) {
        *value = payload_cached(p, &m->cx->diag);
        return *value ? OK : INVALID;
    }
    TRY(tensor_wants_numbers(&m->cx->diag, NOWHERE, arena_printf(&m->cx->scratch, "state %s", n->name), n->type));
    Tensor *own = tensor_new(&m->arena, n->type);
    *value = own;
    for (size_t k = 0; master && k < m->n_inputs; k++)
        if (m->graph->inputs[k]->name && strcmp(m->graph->inputs[k]->name, master) == 0) {
            TRY(model_initial(m, k, value));
            shadow_fill(own, *value);
            *value = own;
        }
    return OK;
}
