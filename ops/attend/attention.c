/* attention: softmax(Q K' scale + bias) V over heads, written in products, selections and one softmax.
 *
 * What the masks forbid is selected to -inf, never added, so that no score, however large, comes through; a query
 * that may see no key at all has probabilities and a result of zero.
 *
 * Of f16 and bf16 both products are of operands of that type, the probabilities rounded to it; all between is f32. */
#include "ops/attend/attention.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/contract/work.h"
#include "ops/norm/norm.h"

static const AttrSpec attention_attrs[] = {
    ATTR(AttentionAttr, is_causal, BOOL, false),
    ATTR(AttentionAttr, kv_num_heads, INT, 0),
    ATTR(AttentionAttr, left_window_size, INT, -1),
    ATTR(AttentionAttr, q_num_heads, INT, 0),
    ATTR(AttentionAttr, qk_matmul_output_mode, INT, 0),
    ATTR(AttentionAttr, right_window_size, INT, -1),
    ATTR(AttentionAttr, scale, FLOAT, 0),
    ATTR(AttentionAttr, softcap, FLOAT, 0),
    ATTR(AttentionAttr, softmax_precision, DTYPE, 0),
    ATTR_LAST,
};

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_KEY, IN_PAST_VALUE, IN_LENGTHS };
enum { QK_PRODUCT, QK_CAPPED, QK_BIASED, QK_PROBABILITY };

/* The extents of a call, -1 unknown. */
typedef struct Heads {
    int64_t batch, q_heads, heads, queries, keys, past, total, size, v_size;
} Heads;

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

static const Type *infer_attention(Infer *q)
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

/* The extents of a call whose operands are known. */
static Heads heads_of(const Site *s)
{
    const AttentionAttr *at = s->attr;
    const int64_t *q = s->in[IN_Q]->type->dims, *k = s->in[IN_K]->type->dims, *v = s->in[IN_V]->type->dims;
    Heads h = { .batch = q[0], .past = site_in(s, IN_PAST_KEY) ? s->in[IN_PAST_KEY]->type->dims[2] : 0 };
    if (s->in[IN_Q]->type->rank == 4) {
        h.q_heads = q[1], h.queries = q[2], h.size = q[3];
        h.heads = k[1], h.keys = k[2], h.v_size = v[3];
    } else {
        h.q_heads = at->q_num_heads, h.queries = q[1], h.size = q[2] / at->q_num_heads;
        h.heads = at->kv_num_heads, h.keys = k[1], h.v_size = v[2] / at->kv_num_heads;
    }
    h.total = h.past + h.keys;
    return h;
}

/* An operand as [batch, heads, steps, size]. */
static Node *split_heads(Build *b, Node *x, int64_t heads, int64_t size)
{
    static const int64_t order[] = { 0, 2, 1, 3 };
    if (x->type->rank == 4)
        return x;
    const int64_t dims[] = { x->type->dims[0], x->type->dims[1], heads, size };
    return make_transpose(b, make_reshape(b, x, 4, dims), 4, order);
}

static Node *joined(Build *b, Node *past, Node *x)
{
    return past ? make_concat(b, 2, 2, (Node *[]){ past, x }) : x;
}

static Node *both(Build *b, Node *x, Node *y)
{
    return x && y ? CALL(b, and, x, y) : x ? x : y;
}

/* A window as a bound of positions: null where it reaches beyond all of them. */
static Node *bound(Build *b, int64_t window)
{
    const int64_t endless = (int64_t)1 << 52;
    return window < 0 || window >= endless ? NULL : build_scalar(b, I64, (double)window);
}

/* Where a key may be seen, as far as position decides: null everywhere.  The queries are the last of the valid keys;
 * position i sees keys i - left .. i + right, and causal means that right is 0. */
static Node *visible(Build *b, const Site *s, const Heads *h)
{
    const AttentionAttr *at = s->attr;
    Node *left = bound(b, at->left_window_size), *right = bound(b, at->is_causal ? 0 : at->right_window_size);
    const int64_t each[] = { h->batch, 1, 1, 1 };
    Node *key = make_count(b, 4, 3, h->total), *seen = NULL, *first = build_scalar(b, I64, (double)h->past);
    if (site_in(s, IN_LENGTHS)) {
        Node *length = make_reshape(b, build_cast(b, s->in[IN_LENGTHS], I64), 4, each);
        seen = CALL(b, less, key, length);
        first = CALL(b, sub, length, build_scalar(b, I64, (double)h->queries));
    }
    if (!left && !right)
        return seen;
    Node *query = CALL(b, add, make_count(b, 4, 2, h->queries), first);
    if (left)
        seen = both(b, seen, CALL(b, greater_or_equal, key, CALL(b, sub, query, left)));
    if (right)
        seen = both(b, seen, CALL(b, less_or_equal, key, at->is_causal ? query : CALL(b, add, query, right)));
    return seen;
}

/* The mask operand in 4 dimensions and over all keys: what it does not speak of is forbidden. */
static Node *whole_mask(Build *b, const Site *s, const Heads *h, DType t)
{
    const Type *type = s->in[IN_MASK]->type;
    const bool choice = type->dtype == BOOL;
    int64_t dims[] = { 1, 1, 1, 1 };
    for (int i = 0; i < type->rank; i++)
        dims[4 - type->rank + i] = type->dims[i];
    Node *mask = make_reshape(b, choice ? s->in[IN_MASK] : make_cast(b, s->in[IN_MASK], t), 4, dims);
    if (type->rank == 0 || dims[3] == h->total)
        return mask;
    dims[3] = h->total - dims[3];
    Node *rest = choice ? make_zeros(b, BOOL, 4, dims) : make_expand(b, build_scalar(b, t, -(double)Q_INF), 4, dims);
    return make_concat(b, 3, 2, (Node *[]){ mask, rest });
}

/* Scores, where they count, and how. */
typedef struct Scores {
    Node *product, *capped, *biased, *probability;
} Scores;

static Node *probabilities(Build *b, const AttentionAttr *at, DType t, Node *scores, Node *seen)
{
    const DType wide = at->softmax_precision == F64 + 1 ? F64 : t;
    if (!seen)
        return make_cast(b, make_softmax(b, make_cast(b, scores, wide), 3), t);
    const int64_t axis = 3;
    Node *any = build_reduce(b, OP_reduce_max, build_cast(b, seen, I32), 1, &axis);
    Node *blind = CALL(b, equal, any, build_scalar(b, I32, 0)), *zero = build_scalar(b, t, 0);
    Node *some = CALL(b, where, blind, zero, scores);
    Node *p = make_cast(b, make_softmax(b, make_cast(b, some, wide), 3), t);
    return CALL(b, where, blind, zero, p);
}

/* Narrow queries meet the keys as they are, and the products are scaled; wide queries are scaled first. */
static Scores score(Build *b, const Site *s, const Heads *h, DType t, Node *q, Node *k)
{
    const AttentionAttr *at = s->attr;
    const DType own = s->in[IN_Q]->type->dtype;
    const double root = sqrt((double)h->size);
    Node *scale = build_scalar(b, t, at->scale != 0 ? (double)at->scale : 1 / root);
    const int64_t grouped[] = { h->batch, h->heads, h->heads ? h->q_heads / h->heads * h->queries : 0, h->size };
    const int64_t whole[] = { h->batch, h->q_heads, h->queries, h->total };
    Scores r;
    if (!dtype_is_narrow(own))
        q = CALL(b, mul, make_cast(b, q, t), scale);
    r.product = make_product(b, own, make_reshape(b, q, 4, grouped), k, true);
    if (dtype_is_narrow(own))
        r.product = CALL(b, mul, r.product, scale);
    r.product = r.capped = make_reshape(b, r.product, 4, whole);
    if (at->softcap > 0) {
        Node *cap = build_scalar(b, t, (double)at->softcap);
        r.capped = CALL(b, mul, CALL(b, tanh, CALL(b, div, r.product, cap)), cap);
    }
    r.biased = r.capped;
    Node *seen = visible(b, s, h), *mask = site_in(s, IN_MASK) ? whole_mask(b, s, h, t) : NULL;
    Node *lowest = build_scalar(b, t, -(double)Q_INF);
    if (mask && s->in[IN_MASK]->type->dtype == BOOL) {
        seen = both(b, seen, mask);
    } else if (mask) {
        r.biased = CALL(b, add, r.biased, mask);
        seen = both(b, seen, CALL(b, not, CALL(b, equal, mask, lowest)));
    }
    if (seen)
        r.biased = CALL(b, where, seen, r.biased, lowest);
    r.probability = probabilities(b, at, t, r.biased, seen);
    return r;
}

static Node *expand_attention(Build *b, const Site *s)
{
    static const int64_t order[] = { 0, 2, 1, 3 };
    const AttentionAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Heads h = heads_of(s);
    const Type *x = s->in[IN_Q]->type;
    const DType t = make_width(x->dtype);
    const int64_t groups = h.heads ? h.q_heads / h.heads * h.queries : 0;
    Node *q = split_heads(b, s->in[IN_Q], h.q_heads, h.size);
    Node *k = joined(b, site_in(s, IN_PAST_KEY), split_heads(b, s->in[IN_K], h.heads, h.size));
    Node *v = joined(b, site_in(s, IN_PAST_VALUE), split_heads(b, s->in[IN_V], h.heads, h.v_size));
    const Scores r = score(b, s, &h, t, q, k);
    const int64_t grouped[] = { h.batch, h.heads, groups, h.total },
                  whole[] = { h.batch, h.q_heads, h.queries, h.v_size };
    const int64_t flat[] = { h.batch, h.queries, h.q_heads * h.v_size };
    Node *y = make_product(b, x->dtype, make_reshape(b, r.probability, 4, grouped), v, false);
    y = make_reshape(b, y, 4, whole);
    if (x->rank == 3)
        y = make_reshape(b, make_transpose(b, y, 4, order), 3, flat);
    Node *const modes[] = { r.product, r.capped, r.biased, r.probability };
    Node *parts[] = { make_cast(b, y, x->dtype), k, v, make_cast(b, modes[at->qk_matmul_output_mode], x->dtype) };
    if (s->n_out == 1 || b->status != OK)
        return parts[0];
    return build_tuple(b, s->n_out, parts);
}

static Node *sample_attention(Build *b, Rng *rng, int variant)
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

const OpDef op_attention = {
    .name = "attention",
    .min_in = 3,
    .max_in = 7,
    .min_out = 1,
    .max_out = 4,
    .attrs = attention_attrs,
    .infer = infer_attention,
    .expand = expand_attention,
    .sample = sample_attention,
    .n_variants = 60,
    .differentiable = 7 | 8 | 16 | 32,
    .trainable = 7,
    .weight = 80,
    .work = work_attention,
    .access.kind = ACCESS_COMPOSITE,
    .access.served_whole = true,
    .amp = { AMP_T, AMP_T, 8, REASON_NONE, NULL },
    .quant = { .in = { QUANT_INPUT, QUANT_INPUT, QUANT_INPUT, QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "Attention", 25, NULL },
};
