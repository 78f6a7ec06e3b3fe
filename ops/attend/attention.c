/* attention: softmax(Q K' scale + bias) V over heads.
 *
 * Of f16 and bf16 both products are of operands of that type, the probabilities rounded to it; all between is f32. */
#include "ops/attend/attend_kernels.h"
#include "ops/attend/heads.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/contract/work.h"
#include "ops/norm/norm.h"

static const AttrSpec attention_attrs[] = {
    ATTENTION_HEAD_ATTRS,
    ATTR(AttentionAttr, qk_matmul_output_mode, INT, 0),
    ATTENTION_SCORE_ATTRS,
    ATTR_LAST,
};

/* One operand [batch, heads, steps, size] or [batch, steps, heads * size]; false after a complaint. */
static bool infer_heads(Infer *q, int i, int rank, int64_t said, int64_t *batch, int64_t *heads, int64_t *steps,
                        int64_t *size)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (!dtype_is_float(t->dtype) || (t->rank != rank && t->rank >= 0) ||
        (t->rank >= 0 && !dims_fit(*batch, t->dims[0]))) {
        infer_fail(q, "operand %d is %s, wanted are floats of rank %d", i, type_text(q->scratch, t), rank);
        return false;
    }
    *heads = said ? said : DIM_UNKNOWN;
    *steps = *size = DIM_UNKNOWN;
    if (t->rank < 0)
        return true;
    *batch = dims_meet(*batch, t->dims[0]);
    if (rank == 4) {
        *heads = t->dims[1], *steps = t->dims[2], *size = t->dims[3];
    } else {
        *steps = t->dims[1];
        *size = t->dims[2] < 0 ? DIM_UNKNOWN : t->dims[2] / said;
        if (t->dims[2] >= 0 && t->dims[2] % said) {
            infer_fail(q, "operand %d has a width of %" PRId64 " for %" PRId64 " heads", i, t->dims[2], said);
            return false;
        }
    }
    return true;
}

/* A past of [batch, heads, past, size]. */
static bool infer_past(Infer *q, int i, Heads *h, int64_t size)
{
    if (!infer_has(q, i))
        return true;
    const int64_t dims[] = { h->batch, h->heads, h->past, size };
    const Type *t = infer_tensor(q, i), *wanted = type_tensor(q->types, q->in[i - 3]->dtype, 4, dims);
    if (t && !type_agrees(t, wanted))
        t = infer_fail(q, "operand %d is %s, wanted is %s", i, type_text(q->scratch, t), type_text(q->scratch, wanted));
    if (t && t->rank == 4)
        h->past = dims_meet(h->past, t->dims[2]);
    return t;
}

static bool infer_mask(Infer *q, const Heads *h)
{
    if (!infer_has(q, IN_MASK))
        return true;
    const Type *t = infer_tensor(q, IN_MASK);
    if (!t || t->rank < 0)
        return t;
    const int64_t wanted[] = { h->batch, h->q_heads, h->queries, h->total };
    bool fits = (t->dtype == BOOL || dtype_is_float(t->dtype)) && t->rank <= 4;
    for (int i = 0; fits && i < t->rank; i++) {
        const int64_t have = t->dims[t->rank - 1 - i], want = wanted[3 - i];
        fits = have == 1 || dims_fit(have, want) || (i == 0 && have < want);
    }
    if (!fits)
        infer_fail(q, "attn_mask is %s for scores [%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]",
                   type_text(q->scratch, t), wanted[0], wanted[1], wanted[2], wanted[3]);
    return fits;
}

static bool infer_lengths(Infer *q, const Heads *h)
{
    if (!infer_has(q, IN_LENGTHS))
        return true;
    const Type *t = infer_integers(q, IN_LENGTHS);
    if (t && !type_agrees(t, type_vector(q->types, t->dtype, h->batch)))
        t = infer_fail(q, "nonpad_kv_seqlen is %s for a batch of %" PRId64, type_text(q->scratch, t), h->batch);
    if (t && infer_has(q, IN_PAST_KEY))
        t = infer_fail(q, "nonpad_kv_seqlen does not go with a past");
    return t;
}

/* Everything about the operands; false after a complaint. */
static bool infer_extents(Infer *q, int rank, Heads *h)
{
    const AttentionAttr *at = q->attr;
    int64_t k_size, v_heads, v_steps;
    *h = (Heads){ .batch = DIM_UNKNOWN, .past = infer_has(q, IN_PAST_KEY) ? DIM_UNKNOWN : 0 };
    if (!infer_heads(q, IN_Q, rank, at->q_num_heads, &h->batch, &h->q_heads, &h->queries, &h->size) ||
        !infer_heads(q, IN_K, rank, at->kv_num_heads, &h->batch, &h->heads, &h->keys, &k_size) ||
        !infer_heads(q, IN_V, rank, at->kv_num_heads, &h->batch, &v_heads, &v_steps, &h->v_size))
        return false;
    if (!dims_fit(h->size, k_size) || !dims_fit(h->heads, v_heads) || !dims_fit(h->keys, v_steps)) {
        infer_fail(q, "queries %s, keys %s and values %s do not fit", type_text(q->scratch, q->in[IN_Q]),
                   type_text(q->scratch, q->in[IN_K]), type_text(q->scratch, q->in[IN_V]));
        return false;
    }
    h->heads = dims_meet(h->heads, v_heads);
    h->keys = dims_meet(h->keys, v_steps);
    h->size = dims_meet(h->size, k_size);
    if (h->q_heads >= 0 && h->heads >= 0 && (h->heads == 0 ? h->q_heads != 0 : h->q_heads % h->heads != 0)) {
        infer_fail(q, "%" PRId64 " query heads do not share %" PRId64 " key heads", h->q_heads, h->heads);
        return false;
    }
    if (infer_has(q, IN_PAST_KEY) != infer_has(q, IN_PAST_VALUE)) {
        infer_fail(q, "past_key and past_value go together");
        return false;
    }
    if (!infer_past(q, IN_PAST_KEY, h, h->size) || !infer_past(q, IN_PAST_VALUE, h, h->v_size))
        return false;
    h->total = h->keys < 0 || h->past < 0 ? DIM_UNKNOWN : h->keys + h->past;
    return infer_mask(q, h) && infer_lengths(q, h);
}

static bool infer_attention_attrs(Infer *q, int rank)
{
    const AttentionAttr *at = q->attr;
    const int64_t most = q->ir->limits.dim;
    if (rank == 3 && (at->q_num_heads < 1 || at->kv_num_heads < 1 || at->q_num_heads > most))
        infer_fail(q, "needs q_num_heads and kv_num_heads for operands of 3 dimensions");
    else if (at->qk_matmul_output_mode < QK_PRODUCT || at->qk_matmul_output_mode > QK_PROBABILITY)
        infer_fail(q, "qk_matmul_output_mode is %" PRId64 ", wanted is 0 to 3", at->qk_matmul_output_mode);
    else if (at->left_window_size < -1 || at->right_window_size < -1)
        infer_fail(q, "has windows of %" PRId64 " and %" PRId64 ", wanted is at least 0, or -1 for all",
                   at->left_window_size, at->right_window_size);
    else if (!(at->softcap >= 0))
        infer_fail(q, "softcap is %g, wanted is at least 0", (double)at->softcap);
    else if (at->softmax_precision && !dtype_is_float((DType)(at->softmax_precision - 1)))
        infer_fail(q, "softmax_precision is no float type");
    else
        return true;
    return false;
}

/* Queries of unknown rank: only the key, the value and the scores are sure to have four dimensions. */
static const Type *infer_unranked(Infer *q)
{
    static const int64_t open[] = { DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN, DIM_UNKNOWN };
    const Type *const results[] = { type_unranked(q->types, q->in[IN_Q]->dtype), infer_shaped(q, IN_K, 4, open),
                                    infer_shaped(q, IN_V, 4, open), infer_shaped(q, IN_Q, 4, open) };
    return infer_results(q, 4, results);
}

const Type *infer_attention(Infer *q)
{
    const Type *x = infer_floats(q, 3);
    Heads h;
    if (!x || !infer_tensor(q, IN_K) || !infer_tensor(q, IN_V))
        return NULL;
    if (x->rank < 0)
        return infer_unranked(q);
    if (x->rank > 4)
        return infer_fail(q, "needs 3 or 4 dimensions, got %d", x->rank);
    if (!infer_attention_attrs(q, x->rank) || !infer_extents(q, x->rank, &h))
        return NULL;
    int64_t y[4] = { h.batch, h.q_heads, h.queries, h.v_size };
    if (x->rank == 3) {
        y[1] = h.queries;
        y[2] = DIM_UNKNOWN;
        if (h.v_size >= 0 && (__builtin_mul_overflow(h.q_heads, h.v_size, &y[2]) || y[2] > q->ir->limits.dim))
            return infer_fail(q, "%" PRId64 " heads of %" PRId64 " are beyond the limit dim", h.q_heads, h.v_size);
    }
    const int64_t key[] = { h.batch, h.heads, h.total, h.size }, value[] = { h.batch, h.heads, h.total, h.v_size };
    const int64_t scores[] = { h.batch, h.q_heads, h.queries, h.total };
    const Type *const results[] = { infer_shaped(q, IN_Q, x->rank, y), infer_shaped(q, IN_K, 4, key),
                                    infer_shaped(q, IN_V, 4, value), infer_shaped(q, IN_Q, 4, scores) };
    return infer_results(q, 4, results);
}

Node *sample_attention(Build *b, Rng *rng, int variant)
{
    const int64_t batch = rng_range(rng, 1, 2), heads = rng_range(rng, 1, 2), queries = rng_below(rng, 4);
    const int64_t past = variant % 3 == 1 ? rng_below(rng, 3) : 0, keys = rng_range(rng, 1, 4), total = past + keys;
    const int64_t size = rng_range(rng, 1, 4), v_size = rng_range(rng, 1, 4), q_heads = heads * rng_range(rng, 1, 2);
    const int rank = 3 + variant % 2, mask_rank = 1 + (int)rng_below(rng, 4);
    const DType dtype = sample_float(rng), mask_types[] = { BOOL, dtype, dtype == F64 ? F64 : F32 };
    const int64_t q[2][4] = { { batch, queries, q_heads * size }, { batch, q_heads, queries, size } };
    const int64_t k[2][4] = { { batch, keys, heads * size }, { batch, heads, keys, size } };
    const int64_t v[2][4] = { { batch, keys, heads * v_size }, { batch, heads, keys, v_size } };
    const int64_t mask[] = { rng_below(rng, 2) ? batch : 1, rng_below(rng, 2) ? q_heads : 1, queries,
                             variant % 3 == 2 ? rng_range(rng, 0, total) : total };
    const AttentionAttr at = { .is_causal = rng_below(rng, 2),
                               .kv_num_heads = rank == 3 ? heads : 0,
                               .left_window_size = rng_range(rng, -1, 2),
                               .right_window_size = rng_range(rng, -1, 1),
                               .q_num_heads = rank == 3 ? q_heads : 0,
                               .qk_matmul_output_mode = rng_below(rng, 4),
                               .scale = rng_below(rng, 2) ? 0 : 0.5f,
                               .scaled = (int)rng_below(rng, 3),
                               .softcap = rng_below(rng, 3) ? 0 : 2 };
    Node *in[7] = { sample_tensor(b, rng, dtype, rank, q[rank - 3], -2, 2),
                    sample_tensor(b, rng, dtype, rank, k[rank - 3], -2, 2),
                    sample_tensor(b, rng, dtype, rank, v[rank - 3], -2, 2) };
    if (rng_below(rng, 2))
        in[IN_MASK] = sample_tensor(b, rng, mask_types[rng_below(rng, 3)], mask_rank, mask + 4 - mask_rank, 0, 1);
    if (variant % 3 == 1) {
        in[IN_PAST_KEY] = sample_tensor(b, rng, dtype, 4, (const int64_t[]){ batch, heads, past, size }, -2, 2);
        in[IN_PAST_VALUE] = sample_tensor(b, rng, dtype, 4, (const int64_t[]){ batch, heads, past, v_size }, -2, 2);
    } else if (variant % 3 == 2) {
        in[IN_LENGTHS] = sample_tensor(b, rng, I64, 1, &batch, 0, (double)keys);
    }
    return build_node_n(b, OP_attention, &at, 7, in, variant % 3 == 1 ? 1 + (int)rng_below(rng, 4) : 1);
}

static bool serves_attention(const Node *n)
{
    const bool has_past = n->n_in > IN_PAST_KEY && in(n, IN_PAST_KEY);
    return attention_in_blocks(n->attr, in(n, IN_Q)->type->dtype, type_results(n->type), has_past);
}

const OpDef op_attention = {
    .name = "attention",
    .min_in = 3,
    .max_in = 7,
    .min_out = 1,
    .max_out = 4,
    .attrs = attention_attrs,
    .infer = infer_attention,
    .expand = expand_attention,
    .fast = fast_attention,
    .adjoint = adjoint_attention,
    .adjoint_when = serves_attention,
    .sample = sample_attention,
    .n_variants = 60,
    .differentiable = 7 | 8 | 16 | 32,
    .trainable = 7,
    .weight = 80,
    .work = work_attention,
    .access.kind = ACCESS_COMPOSITE,
    .access.served_whole = true,
    .access.serves = serves_attention,
    .access.kernels = kernels_attention,
    .amp = { AMP_T, AMP_T, 8, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT, QUANT_INPUT, QUANT_INPUT, QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "Attention", 25, NULL },
};
