#include "ops/card/cards.h"

#include <string.h>

const Type *infer_tensor(Infer *q, int i)
{
    if (!infer_has(q, i))
        return infer_fail(q, "operand %d is missing", i);
    if (q->in[i]->kind != TYPE_TENSOR)
        return infer_fail(q, "operand %d must be a tensor, not %s", i, type_text(q->scratch, q->in[i]));
    return q->in[i];
}

const Type *infer_shaped(Infer *q, int i, int rank, const int64_t *dims)
{
    const Type *t = infer_tensor(q, i);
    return t ? type_tensor(q->types, t->dtype, rank, dims) : NULL;
}

/* Two dimensions that are broadcast: 1 and n give n; an unknown one and n > 1 give n, since it must be 1 or n; an
 * unknown one and 1 give an unknown one. */
static bool broadcast_dim(int64_t *have, int64_t with)
{
    if (*have == with || with == 1)
        return true;
    if (*have == 1) {
        *have = with;
        return true;
    }
    if (*have < 0 || with < 0) {
        *have = *have < 0 ? with : *have;
        return true;
    }
    return false;
}

bool broadcast_dims(int *rank, int64_t *dims, const Type *with)
{
    if (*rank < 0 || with->rank < 0) {
        *rank = RANK_UNKNOWN;
        return true;
    }
    if (with->rank > *rank) {
        const int more = with->rank - *rank;
        memmove(dims + more, dims, (size_t)*rank * sizeof *dims);
        for (int i = 0; i < more; i++)
            dims[i] = 1;
        *rank = with->rank;
    }
    for (int i = 0; i < with->rank; i++)
        if (!broadcast_dim(&dims[*rank - with->rank + i], with->dims[i]))
            return false;
    return true;
}

const Type *infer_broadcast(Infer *q, int first, DType dtype)
{
    int rank = 0;
    int64_t dims[MAX_RANK];
    const Type *before = NULL;
    for (int i = first; i < q->n_in; i++) {
        if (!q->in[i])
            continue;
        const Type *t = infer_tensor(q, i);
        if (!t)
            return NULL;
        if (!broadcast_dims(&rank, dims, t))
            return infer_fail(q, "shapes %s and %s do not broadcast", type_text(q->scratch, before),
                              type_text(q->scratch, t));
        before = t;
    }
    return type_tensor(q->types, dtype, rank, dims);
}

bool infer_axis(Infer *q, int64_t axis, int rank, int *out)
{
    if (axis < -rank || axis >= rank) {
        infer_fail(q, "axis %" PRId64 " is outside [%d, %d)", axis, -rank, rank);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

const int64_t *infer_ints(Infer *q, int i, int64_t *n)
{
    const Tensor *t = infer_has(q, i) ? infer_known(q, i) : NULL;
    if (!t || t->type->kind != TYPE_TENSOR || !dtype_is_integer(t->type->dtype))
        return NULL;
    *n = tensor_elements(t);
    int64_t *v = NEWS(q->scratch, int64_t, *n + 1);
    for (int64_t k = 0; k < *n; k++)
        v[k] = tensor_get_i64(t, k);
    return v;
}

Node *sample_tensor(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims, double lo, double hi)
{
    Ir *ir = b->graph->ir;
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&ir->types, dtype, rank, dims));
    const int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(dtype))
            tensor_set_f64(t, i, lo + (hi - lo) * rng_unit(rng));
        else
            tensor_set_i64(t, i, rng_range(rng, (int64_t)lo, (int64_t)hi));
    }
    return build_const(b, t);
}

void sample_dims(Rng *rng, int rank, int64_t most, int64_t *dims)
{
    for (int i = 0; i < rank; i++) {
        const int64_t draw = rng_below(rng, 16);
        dims[i] = draw == 0 ? 0 : draw < 4 ? 1 : rng_range(rng, 1, most);
    }
}
