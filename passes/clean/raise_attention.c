/* raise-attention: recognises what exporters write for attention, and what people write by hand.
 *
 *     graph @f(%q: f32[2,3,5,4], %k: f32[2,3,5,4], %v: f32[2,3,5,4], %mask: f32[5,5]) -> (%y) {
 *         const %root: f32[] = 2
 *         %t: f32[2,3,4,5] = transpose(%k, perm=[0, 1, 3, 2])
 *         %s: f32[2,3,5,5] = matmul(%q, %t)
 *         %d: f32[2,3,5,5] = div(%s, %root)
 *         %m: f32[2,3,5,5] = add(%d, %mask)
 *         %p: f32[2,3,5,5] = softmax(%m)
 *         %y: f32[2,3,5,4] = matmul(%p, %v)
 *     }
 *     ==>
 *     graph @f(%q: f32[2,3,5,4], %k: f32[2,3,5,4], %v: f32[2,3,5,4], %mask: f32[5,5]) -> (%y) {
 *         %y: f32[2,3,5,4] = attention(%q, %k, %v, %mask)
 *     }
 *
 * Scales may stand at the product, at queries, at keys or at all of these; masks are added or chosen by; keys and values
 * may be repeated for several heads of queries; scores may be capped.  What lies between is read by nobody else.
 *
 * Every rounding stays where it was.  Only a query that may see no key gives zero where a softmax of nothing but -inf gave
 * NaN; other masks are chosen by only where that is sure not to happen.  Gradients of keys that several heads of queries
 * share are one sum, not a sum for each head. */
#include "passes/clean/raise_attention.h"

#include <math.h>

#include "ops/attend/attention.h"
#include "ops/card/make.h"
#include "ops/move/transposed.h"

/* What forbids a key: no score comes near it. */
#define FORBIDS (-1e9)

/* One attention, as it was found.  The mask is of floats, which are added, or of bool, which tell what is seen. */
typedef struct Found {
    Node *root, *q, *k, *v, *mask;
    Node *factor;  /* a number that keys are multiplied with, or null */
    bool turned;   /* k is [.., size, keys] */
    bool inverted; /* the mask tells what is not seen */
    bool causal;
    bool seen; /* every query sees a key, or gives 0 where it sees none */
    double scale, softcap;
    ScaleAt scaled;
} Found;

static bool is_read_once(const Node *n)
{
    return n->uses && !n->uses->next;
}

/* The value of a constant of floats that is one number. */
static bool number_of(const Node *n, double *v)
{
    const bool is_constant = n->op == OP_const && n->type->kind == TYPE_TENSOR && dtype_is_float(n->type->dtype);
    const Tensor *t = is_constant ? node_constant(n, 64) : NULL;
    if (!t || tensor_elements(t) != 1)
        return false;
    *v = tensor_get_f64(t, 0);
    return true;
}

/* What a call multiplies with one number, or divides by it; null where it does neither. */
static Node *scaled_by(Node *x, double *v, bool *divides)
{
    *divides = x->op == OP_div;
    if (x->op != OP_mul && x->op != OP_div)
        return NULL;
    const bool second = number_of(in(x, 1), v);
    if (!second && (*divides || !number_of(in(x, 0), v)))
        return NULL;
    Node *y = in(x, second ? 0 : 1);
    return y->type == x->type && *v != 0 && isfinite(*v) ? y : NULL;
}

/* Whether products with a number only move the exponent, so that they may stand anywhere. */
static bool is_power_of_two(double v)
{
    int exponent;
    return fabs(frexp(v, &exponent)) == 0.5 && exponent > -32 && exponent < 32;
}

static bool turns_last(const Node *n)
{
    return transpose_swaps(n, n->type->rank - 2);
}

/* The product below a cap: c tanh(s / c); s itself where there is none. */
static Node *below_cap(Found *f, Node *s)
{
    double cap, inner;
    bool divides;
    Node *t = scaled_by(s, &cap, &divides);
    if (!t || divides || t->op != OP_tanh || !is_read_once(t) || !is_read_once(in(t, 0)))
        return s;
    Node *x = scaled_by(in(t, 0), &inner, &divides);
    if (!x || !divides || inner != cap || !(cap > 0) || !is_read_once(x))
        return s;
    f->softcap = cap;
    return x;
}

/* The scale of products, of which `s` is what is scaled; that of queries where there is no other and it means the same. */
static Node *below_scale(Found *f, Node *s)
{
    bool divides;
    Node *x = scaled_by(s, &f->scale, &divides);
    f->scaled = SCALE_QUERIES;
    if (!x || !is_read_once(x)) {
        f->scale = 1;
        return s;
    }
    if (!is_power_of_two(f->scale))
        f->scaled = divides ? SCALE_QUOTIENTS : SCALE_PRODUCTS;
    else if (divides)
        f->scale = 1 / f->scale;
    return x;
}

static void find_keys(Found *f, Node *k)
{
    double v;
    bool divides;
    Node *x = scaled_by(k, &v, &divides);
    f->factor = NULL;
    f->k = k;
    if (!f->turned)
        return;
    if (k->op == OP_transpose && turns_last(k)) {
        f->k = in(k, 0);
        f->turned = false;
    } else if (x && !divides && x->op == OP_transpose && turns_last(x)) { /* in either order the same */
        f->factor = in(k, in(k, 0) == x ? 1 : 0);
        f->k = in(x, 0);
        f->turned = false;
    }
}

/* The scores before any mask: a product of queries and keys, scaled and capped. */
static bool find_product(Found *f, Node *s)
{
    double v;
    bool divides;
    f->softcap = 0;
    if (!is_read_once(s))
        return false;
    s = below_scale(f, below_cap(f, s));
    if (s->op != OP_matmul || ((const MatmulAttr *)s->attr)->ta || ((const MatmulAttr *)s->attr)->out)
        return false;
    f->q = in(s, 0);
    Node *q = scaled_by(f->q, &v, &divides);
    if (q && !divides && f->scaled == SCALE_QUERIES && f->scale == 1) {
        f->q = q;
        f->scale = v;
    }
    f->turned = !((const MatmulAttr *)s->attr)->tb;
    find_keys(f, in(s, 1));
    return true;
}

/* ---- masks ---- */

/* Whether element i of a constant mask lets a key be seen, and whether it says so clearly. */
static bool sees(const Found *f, const Tensor *t, int64_t i, bool *clear)
{
    const double v = tensor_get_f64(t, i);
    if (t->type->dtype == BOOL)
        return (v != 0) != f->inverted;
    *clear &= v == 0 || v <= FORBIDS;
    return v == 0;
}

/* Whether a constant mask lets every query see some key; *causal: just those up to its own place. */
static bool always_sees(const Found *f, const Tensor *t, bool *causal)
{
    const Type *m = t->type, *s = in(f->root, 0)->type;
    const int64_t keys = m->rank ? m->dims[m->rank - 1] : 0, rows = m->rank > 1 ? m->dims[m->rank - 2] : 1;
    bool all = true;
    *causal = keys > 1 && rows == s->dims[s->rank - 2] && keys == s->dims[s->rank - 1];
    for (int64_t i = 0; keys && i < tensor_elements(t) / keys; i++) {
        bool any = false;
        for (int64_t j = 0; j < keys; j++) {
            const bool seen = sees(f, t, i * keys + j, causal);
            any |= seen;
            *causal &= rows && seen == (j <= i % rows);
        }
        all &= any;
    }
    return all && keys;
}

/* Fits a mask to the scores: each extent theirs or 1, the last one theirs. */
static bool mask_fits(const Found *f)
{
    const Type *m = f->mask->type, *s = in(f->root, 0)->type;
    if (m->kind != TYPE_TENSOR || !type_known(m) || m->rank < 1 || m->rank > s->rank)
        return false;
    for (int i = 1; i <= m->rank; i++)
        if (m->dims[m->rank - i] != s->dims[s->rank - i] && (i == 1 || m->dims[m->rank - i] != 1))
            return false;
    return true;
}

/* What is known of a mask: a constant that forbids what is to come is no operand. */
static bool take_mask(Found *f, Node *mask, bool surely_seen)
{
    enum { MOST = 1 << 26 };
    f->mask = mask;
    if (!mask_fits(f))
        return false;
    const Tensor *t = mask->op == OP_const ? node_constant(mask, MOST) : NULL;
    const bool sees_some = t && always_sees(f, t, &f->causal);
    if (f->causal)
        f->mask = NULL;
    f->seen = sees_some;
    return sees_some || !surely_seen;
}

static bool find_scores(Found *f, Node *s)
{
    double low;
    f->mask = NULL;
    f->causal = f->inverted = false;
    f->seen = true;
    if (s->op == OP_add && is_read_once(s))
        for (int i = 0; i < 2; i++)
            if (in(s, i)->type == s->type && in(s, 1 - i)->type->dtype == s->type->dtype && find_product(f, in(s, i)))
                return take_mask(f, in(s, 1 - i), false);
    if (s->op == OP_where && is_read_once(s))
        for (int i = 1; i <= 2; i++)
            if (in(s, i)->type == s->type && number_of(in(s, 3 - i), &low) && low <= FORBIDS &&
                find_product(f, in(s, i))) {
                f->inverted = i == 2;
                return take_mask(f, in(s, 0), !isinf(low));
            }
    return find_product(f, s);
}

/* ---- operands ---- */

/* Keys or values before they were repeated for several heads of queries: [batch, heads, 1, ..], or null. */
static Node *before_repeat(Node *x, int64_t *shared)
{
    Node *wide = x->op == OP_reshape && x->type->rank == 4 ? in(x, 0) : NULL;
    Node *one = wide && wide->op == OP_expand ? in(wide, 0) : NULL;
    if (!one || one->type->rank != 5 || !type_known(wide->type) || !type_known(one->type))
        return NULL;
    const int64_t *o = one->type->dims, *w = wide->type->dims, *d = x->type->dims;
    if (o[2] != 1 || o[0] != w[0] || o[1] != w[1] || o[3] != w[3] || o[4] != w[4] || w[0] != d[0] ||
        w[1] * w[2] != d[1] || w[3] != d[2] || w[4] != d[3])
        return NULL;
    *shared = w[2];
    return one;
}

/* Operands are of one wide type and of 3 or 4 dimensions, the leading ones equal: nothing is broadcast. */
static bool operands_fit(const Found *f)
{
    const Type *q = f->q->type, *k = f->k->type, *v = f->v->type, *y = f->root->type;
    if ((q->dtype != F32 && q->dtype != F64) || (q->rank != 3 && q->rank != 4) || k->rank != q->rank ||
        v->rank != q->rank || y->rank != q->rank || k->dtype != q->dtype || v->dtype != q->dtype)
        return false;
    for (int i = 0; i < q->rank - 2; i++)
        if (k->dims[i] != q->dims[i] || v->dims[i] != q->dims[i])
            return false;
    return type_known(q) && type_known(k) && type_known(v) && type_elements(q) > 0 && type_elements(k) > 0;
}

static bool softens_last(const Node *p)
{
    const int64_t axis = p->op == OP_softmax ? ((const AxisAttr *)p->attr)->axis : 0;
    return p->op == OP_softmax && (axis == -1 || axis == p->type->rank - 1);
}

/* The softmax behind the probabilities that a product reads; exporters put 0 where masks left a NaN. */
static Node *softmax_of(Node *p, bool *guarded)
{
    double zero;
    *guarded = false;
    if (softens_last(p))
        return is_read_once(p) ? p : NULL;
    if (p->op != OP_where || !is_read_once(p) || !number_of(in(p, 1), &zero) || zero != 0)
        return NULL;
    Node *s = in(p, 2), *test = in(p, 0);
    const bool two = s->uses && s->uses->next && !s->uses->next->next;
    *guarded = true;
    return softens_last(s) && two && test->op == OP_is_nan && in(test, 0) == s && is_read_once(test) ? s : NULL;
}

static bool find_attention(Found *f, Node *root)
{
    *f = (Found){ .root = root };
    if (root->op != OP_matmul || root->type->kind != TYPE_TENSOR)
        return false;
    const MatmulAttr *at = root->attr;
    bool guarded;
    Node *p = at->ta || at->tb || at->out || in(root, 1)->type->kind != TYPE_TENSOR ? NULL
                                                                                    : softmax_of(in(root, 0), &guarded);
    if (!p || !type_known(p->type) || !find_scores(f, in(p, 0)) || (guarded && !f->mask && !f->causal))
        return false;
    f->v = in(root, 1);
    f->seen |= guarded;
    return operands_fit(f);
}

/* ---- what is built ---- */

static bool is_same(DType type, double x, double y)
{
    return type == F64 ? x == y : (float)x == (float)y;
}

/* The attributes that say scale and cap; false where they do not: of f64 they have to be exact. */
static bool say_scale(const Found *f, int64_t size, AttentionAttr *at)
{
    const DType type = f->q->type->dtype;
    const double root = sqrt((double)size), usual = f->scaled == SCALE_QUOTIENTS ? root : 1 / root;
    at->scaled = f->scaled;
    at->softcap = (float)f->softcap;
    if (!is_same(type, f->scale, usual))
        at->scale = (float)f->scale;
    return is_same(type, f->softcap, (double)at->softcap) &&
           (is_same(type, f->scale, usual) || (at->scale != 0 && is_same(type, f->scale, (double)at->scale)));
}

/* x as [batch, heads, ..]: of three dimensions the first is the batch. */
static Node *in_heads(Build *b, Node *x)
{
    const int64_t *d = x->type->dims;
    return x->type->rank == 4 ? x : make_reshape(b, x, 4, (int64_t[]){ d[0], 1, d[1], d[2] });
}

static Node *unrepeated(Build *b, Node *one)
{
    const int64_t *d = one->type->dims;
    return make_reshape(b, one, 4, (int64_t[]){ d[0], d[1], d[3], d[4] });
}

static Node *built(Build *b, const Found *f, const AttentionAttr *at)
{
    int64_t of_keys = 1, of_values = 1;
    Node *k = f->turned ? make_swap_last(b, f->k) : f->k, *v = f->v, *mask = f->mask;
    if (f->factor)
        k = CALL(b, mul, k, f->factor);
    Node *one_k = before_repeat(k, &of_keys), *one_v = before_repeat(v, &of_values);
    if (one_k && one_v && of_keys == of_values) {
        k = unrepeated(b, one_k);
        v = unrepeated(b, one_v);
    }
    if (mask && mask->type->rank == 3 && f->q->type->rank == 3)
        mask = in_heads(b, mask);
    if (mask && f->inverted)
        mask = CALL(b, not, mask);
    Node *ins[] = { in_heads(b, f->q), in_heads(b, k), in_heads(b, v), mask };
    Node *y = build_node(b, OP_attention, at, mask ? 4 : 3, ins);
    return y && f->root->type->rank == 3 ? make_reshape(b, y, 3, f->root->type->dims) : y;
}

static Status raise(const Found *f, PassRun *run)
{
    Build b = build_before(f->root);
    const int rank = f->q->type->rank;
    AttentionAttr at = {
        .is_causal = f->causal, .left_window_size = -1, .right_window_size = -1, .softcap = (float)f->softcap
    };
    if (!say_scale(f, f->q->type->dims[rank - 1], &at))
        return OK;
    Node *y = built(&b, f, &at);
    TRY(b.status);
    stand_in(f->root, y);
    remove_unread(f->root, run->scratch, NULL, NULL);
    run->changes++;
    return OK;
}

Status raise_attentions(Graph *g, PassRun *run, bool seen)
{
    Found f;
    for (Node *n = walk_first(g), *next; n; n = next) {
        next = walk_next(g, n);
        if (find_attention(&f, n) && (f.seen || !seen))
            TRY(raise(&f, run));
    }
    return OK;
}

static Status raise_attention(Graph *g, PassRun *run)
{
    return raise_attentions(g, run, false);
}

const Pass pass_raise_attention = { .name = "raise-attention", .needs = TYPED, .may = ROUNDS, .run = raise_attention };
