/* einsum: products summed over named indices, as diagonals, sums, transposes and matrix products, operand by operand
 * from the left.  Of f16 and bf16 the matrix products are of operands of that type; sums and what lies between are f32. */
#include <string.h>

#include "base/checked.h"
#include "ops/card/access.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/contract/einsum.h"

static const AttrSpec einsum_attrs[] = {
    ATTR_REQUIRED(EinsumAttr, equation, STR),
    ATTR_OURS(EinsumAttr, out, DTYPE, 0),
    ATTR_LAST,
};

static const Type *infer_einsum(Infer *q)
{
    const EinsumAttr *at = q->attr;
    Equation eq;
    int64_t dims[MAX_RANK];
    DType dtype;
    for (int i = 0; i < q->n_in; i++) {
        const Type *t = infer_tensor(q, i);
        if (!t)
            return NULL;
        if (t->dtype != q->in[0]->dtype || t->dtype == BOOL || t->dtype == STRING)
            return infer_fail(q, "needs numbers of one type, operand %d is %s", i, type_text(q->scratch, t));
    }
    if (!infer_contracted(q, at->out, 0, &dtype))
        return NULL;
    for (int i = 0; i < q->n_in; i++)
        if (q->in[i]->rank < 0)
            return type_unranked(q->types, dtype);
    const char *wrong = equation_read(&eq, at->equation, q->n_in, q->in, q->scratch);
    if (wrong)
        return infer_fail(q, "%s", wrong);
    for (int i = 0; i < eq.out.n; i++)
        dims[i] = eq.extent[eq.out.v[i]];
    return infer_dims(q, dtype, eq.out.n, dims);
}

/* A value whose dimensions have labels, all different and of full extent. */
typedef struct Named {
    Node *x;
    Labels l;
} Named;

static Node *reshape_as(Build *b, const Equation *q, Node *x, const Labels *l)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < l->n; i++)
        dims[i] = q->extent[l->v[i]];
    return make_reshape(b, x, l->n, dims);
}

static Node *transpose_as(Build *b, const Named *v, const Labels *to)
{
    int64_t order[MAX_RANK];
    bool same = true;
    for (int i = 0; i < to->n; i++) {
        order[i] = (const uint8_t *)memchr(v->l.v, to->v[i], (size_t)v->l.n) - v->l.v;
        same = same && order[i] == i;
    }
    return same ? v->x : make_transpose(b, v->x, to->n, order);
}

/* Index label k times over: those dimensions are brought to the end and become one, of which every (1 + n + n^2 ..)th
 * element is on the diagonal. */
static Named diagonal(Build *b, const Named *v, const int64_t *dims, uint8_t label)
{
    int64_t order[MAX_RANK], shape[MAX_RANK], step = 0, n = 0, all = 1;
    int rest = 0, last = v->l.n;
    Named y = { 0 };
    for (int i = 0; i < v->l.n; i++)
        if (v->l.v[i] != label) {
            order[rest] = i;
            shape[rest] = dims[i];
            y.l.v[rest++] = v->l.v[i];
        }
    last = rest;
    for (int i = 0; i < v->l.n; i++)
        if (v->l.v[i] == label) {
            order[last++] = i;
            n = dims[i];
            step += all;
            all *= n;
        }
    shape[rest] = all;
    Node *flat = make_reshape(b, make_transpose(b, v->x, v->l.n, order), rest + 1, shape);
    y.x = n ? make_slice(b, flat, rest, 0, all, step) : flat;
    y.l.v[rest] = label;
    y.l.n = rest + 1;
    return y;
}

static Node *widened(Build *b, Node *x)
{
    return x && dtype_is_float(x->type->dtype) ? make_cast(b, x, make_width(x->type->dtype)) : x;
}

/* Without the labels that nobody needs and `other` does not have. */
static Named summed(Build *b, const Equation *q, const Named *v, const bool *needed, const Labels *other)
{
    int64_t axes[MAX_RANK];
    int n = 0;
    Named y = { .x = v->x };
    for (int i = 0; i < v->l.n; i++) {
        if (needed[v->l.v[i]] || (other && labels_have(other, v->l.v[i])))
            y.l.v[y.l.n++] = v->l.v[i];
        else
            axes[n++] = i;
    }
    if (n)
        y.x = reshape_as(b, q, build_reduce(b, OP_reduce_sum, widened(b, v->x), n, axes), &y.l);
    return y;
}

/* Operand i without repeated labels, without extents of 1 that stand for more, and without what nobody else needs. */
static Named prepared(Build *b, const Equation *q, Node *x, const Type *type, const Labels *l, const bool *needed)
{
    int64_t dims[MAX_RANK];
    Named v = { x, *l };
    if (type->rank)
        memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    for (int i = 0; i < v.l.n; i++)
        if (i + 1 < v.l.n && memchr(v.l.v + i + 1, v.l.v[i], (size_t)(v.l.n - i - 1))) {
            const uint8_t label = v.l.v[i];
            int64_t kept[LABELS];
            for (int k = 0; k < v.l.n; k++)
                kept[v.l.v[k]] = dims[k];
            v = diagonal(b, &v, dims, label);
            for (int k = 0; k < v.l.n; k++)
                dims[k] = kept[v.l.v[k]];
            i = -1;
        }
    Labels full = { 0 };
    for (int i = 0; i < v.l.n; i++)
        if (dims[i] == q->extent[v.l.v[i]])
            full.v[full.n++] = v.l.v[i];
    if (full.n < v.l.n)
        v.x = reshape_as(b, q, v.x, &full);
    v.l = full;
    return summed(b, q, &v, needed, NULL);
}

/* The number of combinations of some labels; fails the build when it is beyond all limits. */
static int64_t volume(Build *b, const Equation *q, const Labels *l)
{
    int64_t dims[MAX_RANK], n = 0;
    for (int i = 0; i < l->n; i++)
        dims[i] = q->extent[l->v[i]];
    const Ir *ir = b->graph->ir;
    if (b->status == OK && !checked_product_i64(dims, l->n, ir->limits.elements, &n))
        b->status = fail(ir->diag, NOWHERE, "einsum goes through more than the limit elements (%" PRId64 ")",
                         ir->limits.elements);
    return n;
}

static void append(Labels *l, const Labels *more)
{
    for (int i = 0; i < more->n; i++)
        l->v[l->n++] = more->v[i];
}

/* The product of two values, summed over what both have and nobody else needs. */
static Named product(Build *b, const Equation *q, DType own, const Named *all, const Named *y, const bool *needed)
{
    Labels shared = { 0 }, inner = { 0 }, left = { 0 }, right = { 0 };
    const Named some = summed(b, q, all, needed, &y->l), *x = &some;
    for (int i = 0; i < x->l.n; i++) {
        const uint8_t label = x->l.v[i];
        Labels *to = !labels_have(&y->l, label) ? &left : needed[label] ? &shared : &inner;
        to->v[to->n++] = label;
    }
    for (int i = 0; i < y->l.n; i++)
        if (!labels_have(&x->l, y->l.v[i]))
            right.v[right.n++] = y->l.v[i];
    Labels lx = shared, ly = shared;
    Named z = { .l = shared };
    append(&lx, &left), append(&lx, &inner);
    append(&ly, &inner), append(&ly, &right);
    append(&z.l, &left), append(&z.l, &right);
    const int64_t s = volume(b, q, &shared), m = volume(b, q, &left), k = volume(b, q, &inner),
                  n = volume(b, q, &right);
    Node *a = make_reshape(b, transpose_as(b, x, &lx), 3, (const int64_t[]){ s, m, k });
    Node *c = make_reshape(b, transpose_as(b, y, &ly), 3, (const int64_t[]){ s, k, n });
    z.x = reshape_as(b, q, inner.n ? make_product(b, own, a, c, false) : CALL(b, mul, widened(b, a), widened(b, c)),
                     &z.l);
    return z;
}

/* Labels that the result, or operands from `from` on, or `more` have. */
static void needed_by(const Equation *q, int from, int n_in, const Labels *more, bool *needed)
{
    memset(needed, 0, LABELS * sizeof *needed);
    for (int i = 0; i < q->out.n; i++)
        needed[q->out.v[i]] = true;
    for (int i = from; i < n_in; i++)
        for (int k = 0; k < q->in[i].n; k++)
            needed[q->in[i].v[k]] = true;
    for (int k = 0; more && k < more->n; k++)
        needed[more->v[k]] = true;
}

static Node *expand_einsum(Build *b, const Site *s)
{
    const EinsumAttr *at = s->attr;
    Equation q;
    bool needed[LABELS];
    if (!make_ready(b, s))
        return NULL;
    const Type **types = NEWS(b->graph->arena, const Type *, s->n_in);
    for (int i = 0; i < s->n_in; i++)
        types[i] = s->in[i]->type;
    BUG_IF(b->graph->ir->memory, equation_read(&q, at->equation, s->n_in, types, b->graph->arena));
    needed_by(&q, 1, s->n_in, NULL, needed);
    Named v = prepared(b, &q, s->in[0], types[0], &q.in[0], needed);
    for (int i = 1; i < s->n_in; i++) {
        needed_by(&q, i + 1, s->n_in, &v.l, needed);
        const Named next = prepared(b, &q, s->in[i], types[i], &q.in[i], needed);
        needed_by(&q, i + 1, s->n_in, NULL, needed);
        v = product(b, &q, types[0]->dtype, &v, &next, needed);
    }
    return make_cast(b, transpose_as(b, &v, &q.out), s->type->dtype);
}

/* ---- how it walks ---- */

/* Whether an operand goes on along a label: one of extent 1 may stand for more. */
static bool goes_along(const Equation *q, const Type *t, const Labels *l, uint8_t label)
{
    for (int d = 0; d < l->n; d++)
        if (l->v[d] == label && t->dims[d] == q->extent[label])
            return true;
    return false;
}

static void reach_labels(const Iteration *to, Arena *arena, const Equation *q, Access *a, const Type *t,
                         const Labels *l, const int *axes)
{
    reach_affine(to, arena, a, l->n);
    for (int d = 0; d < l->n; d++)
        if (t->dims[d] == q->extent[l->v[d]])
            reach_along(to, a, d, axes[l->v[d]], 1);
}

/* One product of two operands that is summed over what both have: the axes of the result, then those, as the left operand has
 * them. */
static bool iterate_einsum(const Node *n, Arena *arena, Iteration *to)
{
    const EinsumAttr *at = n->attr;
    const Type *types[2];
    Equation q;
    int axes[LABELS];
    for (int i = 0; i < n->n_in && i < 2; i++)
        types[i] = in(n, i)->type;
    if (n->n_in != 2 || !type_known(types[0]) || !type_known(types[1]) ||
        equation_read(&q, at->equation, 2, types, arena) || !iteration_open(to, n, arena, 0, NULL))
        return false;
    for (int i = 0; i < LABELS; i++)
        axes[i] = -1;
    for (int i = 0; i < q.out.n; i++)
        axes[q.out.v[i]] = iteration_axis(to, q.extent[q.out.v[i]]);
    for (int i = 0; i < q.in[0].n; i++)
        if (axes[q.in[0].v[i]] < 0)
            axes[q.in[0].v[i]] = iteration_fold(to, q.extent[q.in[0].v[i]]);
    for (int i = 0; i < q.in[1].n; i++)
        if (axes[q.in[1].v[i]] < 0)
            return false; /* it is summed by itself before */
    for (int i = 0; i < to->n_folded; i++)
        for (int l = 0; l < LABELS; l++)
            if (axes[l] == to->folded[i] &&
                (!goes_along(&q, types[0], &q.in[0], (uint8_t)l) || !goes_along(&q, types[1], &q.in[1], (uint8_t)l)))
                return false;
    for (int i = 0; i < 2; i++)
        reach_labels(to, arena, &q, &to->in[i], types[i], &q.in[i], axes);
    reach_axes(to, arena, &to->out[0], q.out.n, 0);
    to->order = to->n_folded && dtype_is_float(types[0]->dtype) ? ORDER_FMA : ORDER_ANY;
    return true;
}

/* Each with the ranks of its operands as digits. */
static const struct {
    const char *equation, *ranks;
} samples[] = {
    { "ij,jk->ik", "22" },
    { "ii->i", "2" },
    { "ii", "2" },
    { "ij->ji", "2" },
    { "i,j", "11" },
    { "bij,bjk->bik", "33" },
    { "...ij,...jk", "33" },
    { "...ij,jk->...ik", "42" },
    { "abc,cd,de->abe", "322" },
    { "iij->j", "3" },
    { "iii", "3" },
    { "ij,ij->", "22" },
    { "...->...", "3" },
    { "ab,a->b", "21" },
    { "bhqd,bhkd->bhqk", "44" },
    { "Ab,bA", "22" },
    { ",ij->ij", "02" },
    { "... i , i ...->...", "32" },
    { "ijk->k", "3" },
    { "i...->...", "4" },
};

static Node *sample_einsum(Build *b, Rng *rng, int variant)
{
    const char *equation = samples[variant % (int)COUNT(samples)].equation;
    const char *ranks = samples[variant % (int)COUNT(samples)].ranks;
    const DType dtype = rng_below(rng, 5) ? sample_float(rng) : I32;
    const EinsumAttr at = { equation, dtype_is_narrow(dtype) && rng_below(rng, 2) ? F32 + 1 : 0 };
    const int n = (int)strlen(ranks);
    int64_t extent[LABELS];
    Node *in[4];
    bool dots;
    for (int l = 0; l < LABELS; l++)
        extent[l] = rng_below(rng, 16) ? rng_range(rng, 1, 4) : 0;
    const char *p = equation;
    for (int i = 0; i < n; i++, p++) {
        Labels l;
        int64_t dims[MAX_RANK];
        BUG_IF(b->graph->ir->memory, equation_term(&p, ranks[i] - '0', 0, &l, &dots, b->graph->arena));
        for (int k = 0; k < l.n; k++)
            dims[k] = l.v[k] >= LETTERS && rng_below(rng, 4) == 0 ? 1 : extent[l.v[k]];
        in[i] = sample_tensor(b, rng, dtype, l.n, dims, -2, 2);
    }
    return build_node(b, OP_einsum, &at, n, in);
}

/* Whether an index of the operands is not one of the result. */
static bool sums_up(const char *equation)
{
    const char *arrow = strstr(equation, "->"), *dots = strstr(equation, "...");
    int named['z' + 1] = { 0 };
    for (const char *p = equation; *p && p != arrow; p++)
        named[*p >= 'A' && *p <= 'z' ? *p : 0]++;
    for (int c = 'A'; c <= 'z'; c++)
        if (arrow ? named[c] && !strchr(arrow, c) : named[c] > 1)
            return true;
    return arrow && dots && dots < arrow && !strstr(arrow, "...");
}

/* What contracts is a product of matrices, unless it is a sum (of one operand, or down to a scalar); what does not
 * moves or multiplies elements. */
static AmpClass einsum_class(const Node *n, DType target)
{
    (void)target;
    if (!sums_up(((const EinsumAttr *)n->attr)->equation))
        return n->n_in == 1 ? AMP_P : AMP_W;
    return n->n_in == 1 || n->type->rank == 0 ? AMP_FO : AMP_T;
}

/* The last index that the result keeps and that belongs to this operand alone. */
static int channels_of_einsum(const Node *n, int operand)
{
    const EinsumAttr *at = n->attr;
    const Type *types[MAX_RANK];
    int axis = QUANT_WHOLE;
    Arena arena;
    Equation q;
    if (n->n_in > MAX_RANK)
        return QUANT_WHOLE;
    for (int i = 0; i < n->n_in; i++)
        types[i] = n->in[i].def->type;
    arena_open(&arena, n->graph->ir->memory);
    if (!equation_read(&q, at->equation, n->n_in, types, &arena))
        for (int k = 0; k < q.in[operand].n; k++) {
            const uint8_t label = q.in[operand].v[k];
            int times = 0;
            for (int i = 0; i < n->n_in; i++)
                for (int j = 0; j < q.in[i].n; j++)
                    times += q.in[i].v[j] == label;
            if (times == 1 && labels_have(&q.out, label))
                axis = k;
        }
    arena_close(&arena);
    return axis;
}

const OpDef op_einsum = {
    .name = "einsum",
    .min_in = 1,
    .max_in = -1,
    .attrs = einsum_attrs,
    .infer = infer_einsum,
    .expand = expand_einsum,
    .sample = sample_einsum,
    .n_variants = 60,
    .adjoint = adjoint_einsum,
    .differentiable = ~0u,
    .trainable = ~0u,
    .weight = 30,
    .access.kind = ACCESS_CONTRACT,
    .access.served_whole = true,
    .access.iterate = iterate_einsum,
    .amp = { AMP_C, AMP_C, 0, REASON_RANGE, einsum_class },
    .quant = { .in = { QUANT_INPUT }, .out = { QUANT_INPUT }, .weight_axis = channels_of_einsum },
    .onnx = { "Einsum", 28, NULL },
};
