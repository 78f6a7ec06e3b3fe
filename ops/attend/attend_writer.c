#include "ops/attend/attend_writer.h"

static int there(const Node *n, int operand)
{
    return operand < n->n_in && in(n, operand) ? operand : NO_MASK;
}

bool attend_writer_open(AttendWriter *w, const Node *n, OwnKernels *to, const int *operands)
{
    const Type *q = in(n, operands[0])->type;
    *w = (AttendWriter){ .n = n, .to = to, .at = n->attr, .own = q->dtype, .q = operands[0], .k = operands[1] };
    w->v = operands[2];
    w->mask = there(n, operands[3]);
    w->lengths = there(n, operands[4]);
    w->h = heads_of(n->attr, q, in(n, w->k)->type, in(n, w->v)->type, 0);
    const Heads *h = &w->h;
    if (!h->heads || !h->total || !h->queries || !h->size || !h->v_size)
        return false;
    w->type = q->dtype == F64 ? "f64" : "f32";
    w->of_q = attend_strides(q->rank, h->q_heads, h->queries, h->size);
    w->of_k = attend_strides(q->rank, h->heads, h->total, h->size);
    w->of_v = attend_strides(q->rank, h->heads, h->total, h->v_size);
    w->of_y = attend_strides(q->rank, h->q_heads, h->queries, h->v_size);
    w->rows = h->batch * h->q_heads * h->queries;
    w->group = h->q_heads / h->heads;
    w->late = attention_scales_products(w->at, w->own);
    return true;
}

const char *attend_number(const AttendWriter *w, double v)
{
    return w->own == F64 ? own_f64(w->to, v) : own_f32(w->to, v);
}

/* A value scaled. */
const char *attend_scaled(const AttendWriter *w, const char *value)
{
    const char *by = attend_number(w, attention_scale(w->at, &w->h));
    return arena_printf(w->to->arena, w->at->scaled == SCALE_QUOTIENTS ? "q_div(%s, (T)%s)" : "q_times(%s, (T)%s)",
                        value, by);
}

/* Where the mask of key j lies; null: there is no mask. */
const char *attend_mask_element(const AttendWriter *w)
{
    int64_t step = 1, strides[4];
    if (w->mask == NO_MASK)
        return NULL;
    const Type *t = in(w->n, w->mask)->type;
    for (int i = 0; i < 4; i++) {
        const int64_t extent = i < t->rank ? t->dims[t->rank - 1 - i] : 1;
        strides[3 - i] = i == 0 ? t->rank > 0 : extent == 1 ? 0 : step;
        step *= extent;
    }
    return arena_printf(w->to->arena, "IN%d(b * %" LD " + head * %" LD " + query * %" LD " + j * %" LD ")", w->mask,
                        strides[0], strides[1], strides[2], strides[3]);
}

int64_t attend_mask_keys(const AttendWriter *w)
{
    const Type *t = w->mask == NO_MASK ? NULL : in(w->n, w->mask)->type;
    return t && t->rank && t->dims[t->rank - 1] < w->h.total ? t->dims[t->rank - 1] : w->h.total;
}

bool attend_mask_chooses(const AttendWriter *w)
{
    return w->mask != NO_MASK && in(w->n, w->mask)->type->dtype == BOOL;
}
