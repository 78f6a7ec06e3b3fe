#include "ops/move/index_positions.h"

#include <string.h>

#include "ops/card/shapes.h"
#include "ops/move/move.h"

int64_t *positions_indices(Eval *e, int i, int64_t extent)
{
    const int64_t n = eval_elements(e, i);
    int64_t *at = eval_scratch(e, (size_t)n, sizeof *at);
    load_i64(at, e->in[i], 0, n);
    for (int64_t k = 0; k < n; k++) {
        const int64_t given = at[k];
        if (!index_wrap(&at[k], extent)) {
            (void)eval_fail(
                e, "index %" PRId64 " at position %" PRId64 " of operand %d is outside [%" PRId64 ", %" PRId64 ")",
                given, k, i, -extent, extent);
            return NULL;
        }
    }
    return at;
}

Positions positions_elements(Eval *e, const Type *data, int indices, int axis)
{
    const Type *t = e->in[indices]->type;
    Positions p = { eval_elements(e, indices), 1, positions_indices(e, indices, data->dims[axis]) };
    int64_t strides[MAX_RANK], at[MAX_RANK] = { 0 }, base = 0;
    if (!p.at)
        return p;
    move_strides(data->rank, data->dims, strides);
    for (int64_t i = 0; i < p.n; i++) {
        p.at[i] = base + p.at[i] * strides[axis];
        for (int k = t->rank - 1; k >= 0; k--) {
            const int64_t step = k == axis ? 0 : strides[k];
            base += step;
            if (++at[k] < t->dims[k])
                break;
            base -= step * t->dims[k];
            at[k] = 0;
        }
    }
    return p;
}

Positions positions_nd(Eval *e, const Type *data, int indices, int batch)
{
    const Type *t = e->in[indices]->type;
    const int depth = (int)t->dims[t->rank - 1];
    const int64_t n = move_count(t->dims, 0, t->rank - 1), batches = move_count(t->dims, 0, batch);
    const int64_t per_batch = batches ? n / batches : 0, slab = move_count(data->dims, batch, data->rank);
    Positions p = { n, move_count(data->dims, batch + depth, data->rank), eval_scratch(e, (size_t)n, sizeof *p.at) };
    int64_t strides[MAX_RANK], *tuples = eval_scratch(e, (size_t)eval_elements(e, indices), sizeof *tuples);
    load_i64(tuples, e->in[indices], 0, eval_elements(e, indices));
    move_strides(data->rank, data->dims, strides);
    for (int64_t i = 0; i < n; i++) {
        p.at[i] = per_batch ? i / per_batch * slab : 0;
        for (int k = 0; k < depth; k++) {
            int64_t index = tuples[i * depth + k];
            if (!index_wrap(&index, data->dims[batch + k])) {
                (void)eval_fail(
                    e, "index %" PRId64 " at position %" PRId64 " of operand %d is outside the %" PRId64 " of axis %d",
                    tuples[i * depth + k], i * depth + k, indices, data->dims[batch + k], batch + k);
                p.at = NULL;
                return p;
            }
            p.at[i] += index * strides[batch + k];
        }
    }
    return p;
}
