#include "runtime/checkpoint/match.h"

static Status read_as(const CheckpointReader *r, const SafeTensors *s, const SafeTensor *t, const Type *type,
                      Tensor **value)
{
    Tensor *stored = tensor_alloc(r->heap, t->type);
    Status status = safetensors_read(s, r->diag, t, stored->data);
    if (status != OK || t->type->dtype == type->dtype || !dtype_is_float(t->type->dtype)) {
        stored->type = type; /* the same bytes, where the format had no name for the type */
        *value = stored;
        return status;
    }
    *value = tensor_alloc(r->heap, type);
    for (int64_t i = 0; i < tensor_elements(stored); i++)
        tensor_set_f64(*value, i, tensor_get_f64(stored, i));
    tensor_drop(r->heap, stored);
    return OK;
}

Status checkpoint_init(const CheckpointReader *r, const char *path, const StateSlot *slots, size_t n, Tensor **states,
                       StateReport *report)
{
    SafeTensors s;
    for (size_t i = 0; i < n; i++)
        states[i] = NULL;
    TRY(safetensors_open(&s, r->types, r->arena, r->diag, r->limits, path));
    const int64_t *to = match_slots(r->arena, &s, slots, n, true, report);
    if (!report->n_matched)
        return fail(r->diag, (Place){ .file = path, .byte = -1 },
                    "none of its %zu tensors has the name and shape of a parameter", s.n);
    for (size_t i = 0; i < s.n; i++)
        if (to[i] >= 0)
            TRY(read_as(r, &s, &s.list[i], slots[to[i]].type, &states[to[i]]));
    return OK;
}
