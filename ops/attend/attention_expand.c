/* What attention means: products, selections and one softmax.
 *
 * What the masks forbid is selected to -inf, never added, so that no score, however large, comes through; a query
 * that may see no key at all has probabilities and a result of zero. */
#include "ops/attend/heads.h"
#include "ops/card/make.h"

Heads heads_of(const AttentionAttr *at, const Type *q, const Type *k, const Type *v, int64_t past)
{
    Heads h = { .batch = q->dims[0], .past = past };
    if (q->rank == 4) {
        h.q_heads = q->dims[1], h.queries = q->dims[2], h.size = q->dims[3];
        h.heads = k->dims[1], h.keys = k->dims[2], h.v_size = v->dims[3];
    } else {
        h.q_heads = at->q_num_heads, h.queries = q->dims[1], h.size = q->dims[2] / at->q_num_heads;
        h.heads = at->kv_num_heads, h.keys = k->dims[1], h.v_size = v->dims[2] / at->kv_num_heads;
    }
    h.total = h.past + h.keys;
    return h;
}

const char *const attention_scaled[] = { "queries", "products", "quotients", NULL };

double attention_scale(const AttentionAttr *at, const Heads *h)
{
    const double root = sqrt((double)h->size);
    return at->scale != 0 ? (double)at->scale : at->scaled == SCALE_QUOTIENTS ? root : 1 / root;
}

bool attention_scales_products(const AttentionAttr *at, DType own)
{
    return at->scaled != SCALE_QUERIES || dtype_is_narrow(own);
}

static int64_t reach(int64_t window)
{
    const int64_t endless = (int64_t)1 << 52;
    return window < 0 || window >= endless ? -1 : window;
}

int64_t attention_left(const AttentionAttr *at)
{
    return reach(at->left_window_size);
}

int64_t attention_right(const AttentionAttr *at)
{
    return at->is_causal ? 0 : reach(at->right_window_size);
}

/* A call: its operands as [batch, heads, steps, size], keys and values behind those of the past. */
typedef struct Attention {
    const AttentionAttr *at;
    Heads h;
    DType own, width; /* of the operands; in which all between them is computed */
    Node *q, *k, *v, *mask, *lengths;
} Attention;

/* An operand as [batch, heads, steps, size]. */
static Node *split_heads(Build *b, Node *x, int64_t heads, int64_t size)
{
    static const int64_t order[] = { 0, 2, 1, 3 };
    if (x->type->rank == 4)
        return x;
    const int64_t dims[] = { x->type->dims[0], x->type->dims[1], heads, size };
    return make_transpose(b, make_reshape(b, x, 4, dims), 4, order);
}

/* Back to what an operand of that rank looks like. */
static Node *join_heads(Build *b, Node *x, int rank)
{
    static const int64_t order[] = { 0, 2, 1, 3 };
    if (rank == 4 || !x)
        return x;
    const int64_t *d = x->type->dims, dims[] = { d[0], d[2], d[1] * d[3] };
    return make_reshape(b, make_transpose(b, x, 4, order), 3, dims);
}

static Node *joined(Build *b, Node *past, Node *x)
{
    return past ? make_concat(b, 2, 2, (Node *[]){ past, x }) : x;
}

static Node *both(Build *b, Node *x, Node *y)
{
    return x && y ? CALL(b, and, x, y) : x ? x : y;
}

/* A window as a bound of positions: null where there is none. */
static Node *bound(Build *b, int64_t window)
{
    return window < 0 ? NULL : build_scalar(b, I64, (double)window);
}

/* Where a key may be seen, as far as position decides: null everywhere.  The queries are the last of the valid keys;
 * position i sees keys i - left .. i + right. */
static Node *visible(Build *b, const Attention *a)
{
    const Heads *h = &a->h;
    Node *left = bound(b, attention_left(a->at)), *right = bound(b, attention_right(a->at));
    const int64_t each[] = { h->batch, 1, 1, 1 };
    Node *key = make_count(b, 4, 3, h->total), *seen = NULL, *first = build_scalar(b, I64, (double)h->past);
    if (a->lengths) {
        Node *length = make_reshape(b, build_cast(b, a->lengths, I64), 4, each);
        seen = CALL(b, less, key, length);
        first = CALL(b, sub, length, build_scalar(b, I64, (double)h->queries));
    }
    if (!left && !right)
        return seen;
    Node *query = CALL(b, add, make_count(b, 4, 2, h->queries), first);
    if (left)
        seen = both(b, seen, CALL(b, greater_or_equal, key, CALL(b, sub, query, left)));
    if (right)
        seen = both(b, seen, CALL(b, less_or_equal, key, a->at->is_causal ? query : CALL(b, add, query, right)));
    return seen;
}

/* The mask operand in 4 dimensions and over all keys: what it does not speak of is forbidden. */
static Node *whole_mask(Build *b, const Attention *a)
{
    const Type *type = a->mask->type;
    const bool choice = type->dtype == BOOL;
    int64_t dims[] = { 1, 1, 1, 1 };
    for (int i = 0; i < type->rank; i++)
        dims[4 - type->rank + i] = type->dims[i];
    Node *mask = make_reshape(b, choice ? a->mask : make_cast(b, a->mask, a->width), 4, dims);
    if (type->rank == 0 || dims[3] == a->h.total)
        return mask;
    dims[3] = a->h.total - dims[3];
    Node *rest =
        choice ? make_zeros(b, BOOL, 4, dims) : make_expand(b, build_scalar(b, a->width, -(double)Q_INF), 4, dims);
    return make_concat(b, 3, 2, (Node *[]){ mask, rest });
}

/* Scores, where they count, and how. */
typedef struct Scores {
    Node *product, *capped, *biased, *probability;
    Node *queries; /* as the product reads them */
    Node *tangent; /* of a call with a softcap: the hyperbolic tangent of scores over it */
    Node *seen;    /* null: everything is */
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

static Node *scaled(Build *b, const Attention *a, Node *x)
{
    Node *scale = build_scalar(b, a->width, attention_scale(a->at, &a->h));
    return a->at->scaled == SCALE_QUOTIENTS ? CALL(b, div, x, scale) : CALL(b, mul, x, scale);
}

/* Narrow queries meet the keys as they are, and the products are scaled; wide queries are scaled first. */
static Scores score(Build *b, const Attention *a)
{
    const Heads *h = &a->h;
    const bool late = attention_scales_products(a->at, a->own);
    Node *q = make_cast(b, a->q, dtype_is_narrow(a->own) ? a->own : a->width);
    const int64_t grouped[] = { h->batch, h->heads, h->heads ? h->q_heads / h->heads * h->queries : 0, h->size };
    const int64_t whole[] = { h->batch, h->q_heads, h->queries, h->total };
    Scores r = { .queries = NULL };
    if (!late)
        q = scaled(b, a, q);
    r.queries = make_reshape(b, q, 4, grouped);
    r.product = make_product(b, a->own, r.queries, a->k, true);
    if (late)
        r.product = scaled(b, a, r.product);
    r.product = r.capped = make_reshape(b, r.product, 4, whole);
    if (a->at->softcap > 0) {
        Node *cap = build_scalar(b, a->width, (double)a->at->softcap);
        r.tangent = CALL(b, tanh, CALL(b, div, r.product, cap));
        r.capped = CALL(b, mul, r.tangent, cap);
    }
    r.biased = r.capped;
    Node *seen = visible(b, a), *mask = a->mask ? whole_mask(b, a) : NULL;
    Node *lowest = build_scalar(b, a->width, -(double)Q_INF);
    if (mask && a->mask->type->dtype == BOOL) {
        seen = both(b, seen, mask);
    } else if (mask) {
        r.biased = CALL(b, add, r.biased, mask);
        seen = both(b, seen, CALL(b, not, CALL(b, equal, mask, lowest)));
    }
    if (seen)
        r.biased = CALL(b, where, seen, r.biased, lowest);
    r.probability = probabilities(b, a->at, a->width, r.biased, seen);
    r.seen = seen;
    return r;
}

Node *expand_attention(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[IN_Q]->type;
    Node *past = site_in(s, IN_PAST_KEY);
    const Heads h = heads_of(s->attr, x, s->in[IN_K]->type, s->in[IN_V]->type, past ? past->type->dims[2] : 0);
    const Attention a = { .at = s->attr,
                          .h = h,
                          .own = x->dtype,
                          .width = make_width(x->dtype),
                          .q = split_heads(b, s->in[IN_Q], h.q_heads, h.size),
                          .k = joined(b, past, split_heads(b, s->in[IN_K], h.heads, h.size)),
                          .v = joined(b, site_in(s, IN_PAST_VALUE), split_heads(b, s->in[IN_V], h.heads, h.v_size)),
                          .mask = site_in(s, IN_MASK),
                          .lengths = site_in(s, IN_LENGTHS) };
    const Scores r = score(b, &a);
    const int64_t grouped[] = { h.batch, h.heads, h.heads ? h.q_heads / h.heads * h.queries : 0, h.total },
                  whole[] = { h.batch, h.q_heads, h.queries, h.v_size };
    Node *y = make_product(b, x->dtype, make_reshape(b, r.probability, 4, grouped), a.v, false);
    y = join_heads(b, make_reshape(b, y, 4, whole), x->rank);
    Node *const modes[] = { r.product, r.capped, r.biased, r.probability };
    Node *parts[] = { make_cast(b, y, x->dtype), a.k, a.v, make_cast(b, modes[a.at->qk_matmul_output_mode], x->dtype) };
    if (s->n_out == 1 || b->status != OK)
        return parts[0];
    return build_tuple(b, s->n_out, parts);
}

/* ---- the way back ---- */

/* x' y inside of a call on `own`, over the rows of both. */
static Node *outer_product(Build *b, DType own, Node *x, Node *y)
{
    const DType wide = make_width(own), as = dtype_is_narrow(own) ? own : wide;
    const MatmulAttr attr = { .ta = true, .out = as == wide ? 0 : (int)wide + 1 };
    return CALL_ATTR(b, matmul, attr, make_cast(b, x, as), make_cast(b, y, as));
}

/* What reaches the mask, in its shape: sums where it was broadcast, nothing of keys that it does not speak of. */
static Node *mask_back(Build *b, const Attention *a, Node *ds)
{
    const Type *mask = a->mask->type;
    int64_t axes[4];
    int n = 0;
    if (mask->rank && mask->dims[mask->rank - 1] != a->h.total)
        ds = make_slice(b, ds, 3, 0, mask->dims[mask->rank - 1], 1);
    for (int i = 0; ds && i < 4; i++) {
        const int64_t extent = i < 4 - mask->rank ? 1 : mask->dims[i - (4 - mask->rank)];
        if (extent == 1 && ds->type->dims[i] != 1)
            axes[n++] = i;
    }
    if (n)
        ds = build_reduce(b, OP_reduce_sum, ds, n, axes);
    return make_cast(b, make_reshape(b, ds, mask->rank, mask->dims), make_width(mask->dtype));
}

/* What reaches the scores before mask and softcap, and the biased ones: p (dp - sum(p dp)), nothing where nothing is
 * seen. */
static Node *scores_back(Build *b, const Attention *a, const Scores *r, Node *dp, Node **biased)
{
    const int64_t axis = 3;
    Node *p = r->probability, *zero = build_scalar(b, a->width, 0);
    if (r->seen)
        dp = CALL(b, where, r->seen, dp, zero);
    Node *mean = build_reduce(b, OP_reduce_sum, CALL(b, mul, p, dp), 1, &axis);
    Node *ds = CALL(b, mul, p, CALL(b, sub, dp, mean));
    if (r->seen)
        ds = CALL(b, where, r->seen, ds, zero);
    *biased = ds;
    if (!r->tangent)
        return ds;
    Node *cap = build_scalar(b, a->width, (double)a->at->softcap), *one = build_scalar(b, a->width, 1);
    ds = CALL(b, mul, CALL(b, mul, ds, cap), CALL(b, sub, one, CALL(b, mul, r->tangent, r->tangent)));
    return CALL(b, div, ds, cap);
}

Node *expand_attention_grad(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[GRAD_Q]->type;
    const Heads h = heads_of(s->attr, x, s->in[GRAD_K]->type, s->in[GRAD_V]->type, 0);
    const int64_t rows = h.heads ? h.q_heads / h.heads * h.queries : 0;
    const Attention a = { .at = s->attr,
                          .h = h,
                          .own = x->dtype,
                          .width = make_width(x->dtype),
                          .q = split_heads(b, s->in[GRAD_Q], h.q_heads, h.size),
                          .k = split_heads(b, s->in[GRAD_K], h.heads, h.size),
                          .v = split_heads(b, s->in[GRAD_V], h.heads, h.v_size),
                          .mask = site_in(s, GRAD_MASK),
                          .lengths = site_in(s, GRAD_LENGTHS) };
    const int64_t whole[] = { h.batch, h.q_heads, h.queries, h.total }, scores[] = { h.batch, h.heads, rows, h.total },
                  values[] = { h.batch, h.heads, rows, h.v_size }, of_q[] = { h.batch, h.q_heads, h.queries, h.size };
    const Scores r = score(b, &a);
    Node *dy = make_reshape(b, split_heads(b, s->in[GRAD_DY], h.q_heads, h.v_size), 4, values), *biased;
    Node *dp = make_reshape(b, make_product(b, a.own, dy, a.v, true), 4, whole);
    Node *ds = make_reshape(b, scores_back(b, &a, &r, dp, &biased), 4, scores);
    Node *dv = outer_product(b, a.own, make_reshape(b, r.probability, 4, scores), dy);
    const bool narrow = dtype_is_narrow(a.own), late = attention_scales_products(a.at, a.own);
    if (late && !narrow)
        ds = scaled(b, &a, ds);
    Node *dq = make_product(b, a.own, ds, a.k, false), *dk = outer_product(b, a.own, ds, r.queries);
    if (!late || narrow)
        dq = scaled(b, &a, dq);
    if (narrow)
        dk = scaled(b, &a, dk);
    Node *parts[] = { make_cast(b, join_heads(b, make_reshape(b, dq, 4, of_q), x->rank), a.own),
                      make_cast(b, join_heads(b, dk, x->rank), a.own), make_cast(b, join_heads(b, dv, x->rank), a.own),
                      s->n_out > 3 ? mask_back(b, &a, biased) : NULL };
    return b->status == OK ? build_tuple(b, s->n_out, parts) : NULL;
}
