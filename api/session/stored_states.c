#include "api/session/stored_states.h"

#include <string.h>

#include "ir/role.h"
#include "passes/recipe/stored.h"

const Node *stored_node(const qcc_step *s, const char *name)
{
    const Graph *g = module_graph(s->module, "step");
    for (size_t i = 0; name && i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (node_stored(n) && n->type->dtype != F32 && strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

Status stored_kind(const qcc_step *s, const Node *state, StoredKind *kind)
{
    StoredForm form;
    const Node *scale = stored_scale(state->graph, state->name), *zero = stored_zero(state->graph, state->name);
    TRY(stored_form(&form, node_stored(state), &s->cx->scratch, &s->cx->diag));
    *kind = (StoredKind){ state->type, scale ? scale->type : NULL, zero ? zero->type : NULL, form.least, form.largest };
    return OK;
}

/* Types may be those of two steps. */
static bool same_type(const Type *a, const Type *b)
{
    return (!a && !b) || (a && b && a->dtype == b->dtype && type_same_shape(a, b));
}

bool stored_alike(const StoredKind *a, const StoredKind *b)
{
    return same_type(a->codes, b->codes) && same_type(a->scale, b->scale) && same_type(a->zero, b->zero) &&
           a->least == b->least && a->largest == b->largest;
}

const Type *stored_type(const qcc_step *s, const Node *state)
{
    return type_with_dtype(&s->ir->types, state->type, F32);
}

Status stored_get(const qcc_step *s, Session *run, const Node *state, Tensor *numbers)
{
    const Node *parts[] = { state, stored_scale(state->graph, state->name), stored_zero(state->graph, state->name) };
    const Tensor *value[COUNT(parts)] = { NULL };
    for (size_t i = 0; i < COUNT(parts); i++) {
        if (!parts[i])
            continue;
        value[i] = session_view(run, parts[i]->name);
        if (!value[i])
            return s->cx->diag.n_errors ? s->cx->diag.first
                                        : fail_as(&s->cx->diag, INTERNAL, NOWHERE, "%s is not there", parts[i]->name);
    }
    stored_numbers(value[0], value[1], value[2], numbers);
    return OK;
}

static Tensor *room(Heap *heap, const Node *state)
{
    return state ? tensor_alloc(heap, state->type) : NULL;
}

static Status put_numbers(const qcc_step *s, Session *run, const Node *state, const Tensor *value, bool begins,
                          Heap *heap)
{
    StoredForm form;
    const Node *of_scale = stored_scale(state->graph, state->name), *of_zero = stored_zero(state->graph, state->name);
    Tensor *codes = room(heap, state), *scale = room(heap, of_scale), *zero = room(heap, of_zero);
    TRY(stored_form(&form, node_stored(state), &s->cx->scratch, &s->cx->diag));
    if (begins)
        stored_begin(&form, state->name, value, codes, scale, zero, &s->cx->scratch);
    else
        stored_round(&form, value, codes, scale, zero, &s->cx->scratch);
    TRY(session_put(run, state->name, codes));
    if (scale)
        TRY(session_put(run, of_scale->name, scale));
    return zero ? session_put(run, of_zero->name, zero) : OK;
}

static Status put(const qcc_step *s, Session *run, const char *name, const Tensor *value, bool begins)
{
    Heap heap;
    const Node *state = stored_node(s, name);
    if (!state || value->type != stored_type(s, state))
        return session_put(run, name, value);
    heap_open(&heap, &s->cx->memory);
    const Status status = put_numbers(s, run, state, value, begins, &heap);
    heap_close(&heap);
    return status;
}

Status stored_put(const qcc_step *s, Session *run, const char *name, const Tensor *value)
{
    return put(s, run, name, value, false);
}

Status stored_init(const qcc_step *s, Session *run, const char *name, const Tensor *value)
{
    return put(s, run, name, value, true);
}
