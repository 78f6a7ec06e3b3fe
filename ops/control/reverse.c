#include "ops/card/make.h"
#include "ops/control/reverse_call.h"

/* ---- what depends on what ---- */

/* Of a node of the graph while it is differentiated. */
typedef struct Mark {
    bool moved;  /* its value moves when an x does, and smoothly */
    bool shaken; /* its value depends on an x in any way */
    bool seen;   /* a y depends on it smoothly */
    bool behind; /* a y depends on it in any way */
    bool x;      /* its gradient is wanted */
    struct Share *shares;
    Node *gradient; /* all shares together, wide */
} Mark;

/* What one reader contributes to the gradient of a value; of a tuple's part `result`. */
typedef struct Share {
    struct Share *next;
    int result;
    Node *gradient;
} Share;

struct ReverseRun {
    Build *b;
    const ReverseQuery *q;
    Arena *scratch;
    Facts marks;
    Node **y, **x; /* as they stand after composites were inlined */
    ReverseResult *result;
    size_t cap_stops;
};
typedef struct ReverseRun Run;

static Mark *mark_of(Run *r, const Node *n)
{
    return fact(&r->marks, n);
}

static bool moves_by(Run *r, const Node *n, int i)
{
    const Node *def = in(n, i);
    return def && mark_of(r, def)->moved && (node_is_holder(n) || (op_is_smooth(op_of(n), i) && reverse_carries(def)));
}

static Node *first_node(const Run *r)
{
    return r->b->graph->first;
}

/* Forward from every x, then back from every y. */
static void mark_path(Run *r)
{
    Node *const end = r->b->before;
    r->marks = facts_open(r->scratch, sizeof(Mark));
    for (int i = 0; i < r->q->n_x; i++)
        *mark_of(r, r->x[i]) = (Mark){ .moved = true, .shaken = true, .x = true };
    Node *last = NULL;
    for (Node *n = first_node(r); n != end; n = n->next) {
        Mark *m = mark_of(r, n);
        for (int i = 0; i < n->n_in; i++) {
            m->shaken |= in(n, i) && mark_of(r, in(n, i))->shaken && op_reads_value(op_of(n), i);
            m->moved |= moves_by(r, n, i) && (reverse_carries(n) || n->type->kind == TYPE_TUPLE);
        }
        last = n;
    }
    for (int i = 0; i < r->q->n_y; i++)
        if (r->q->dy[i])
            mark_of(r, r->y[i])->seen = mark_of(r, r->y[i])->behind = true;
    for (Node *n = last; n; n = n->prev) {
        const Mark *m = mark_of(r, n);
        for (int i = 0; i < n->n_in; i++) {
            if (!in(n, i))
                continue;
            Mark *k = mark_of(r, in(n, i));
            k->behind |= m->behind && op_reads_value(op_of(n), i);
            k->seen |= m->seen && (node_is_holder(n) || op_is_smooth(op_of(n), i));
        }
    }
}

static void replace_in(int n, Node **list, const Node *old, Node *by)
{
    for (int i = 0; i < n; i++)
        if (list[i] == old)
            list[i] = by;
}

static bool has_adjoint(const Node *n)
{
    const OpDef *d = op_of(n);
    return d->adjoint && (!d->adjoint_when || d->adjoint_when(n));
}

/* Inlines the composites on the path that have no adjoint; whether there were any. */
static bool inline_composites(Run *r, Status *status)
{
    bool any = false;
    for (Node *n = first_node(r), *next; n != r->b->before && *status == OK; n = next) {
        const Mark *m = mark_of(r, n);
        next = n->next;
        if (!m->moved || !m->seen || has_adjoint(n))
            continue;
        Node *by = reverse_inline(n, status);
        if (!by)
            continue;
        any = true;
        replace_in(r->q->n_y, r->y, n, by);
        replace_in(r->q->n_x, r->x, n, by);
    }
    return any && *status == OK;
}

/* ---- shares ---- */

static bool same_dims(const Type *a, const Type *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static Status no_extent(Ir *ir, const Node *n, const Type *open)
{
    return fail_as(ir->diag, UNSUPPORTED, node_place(n),
                   "the gradient of %s asks for a shape that only the run tells: %s", op_of(n)->name,
                   type_text(ir->diag->arena, open));
}

/* g, of whatever shape broadcasts with `to`, in the shape of `to`: summed where `to` was broadcast, repeated where g
 * still has to be. */
static Node *fit_shape(Build *b, Node *g, const Node *of, const Type *to)
{
    int64_t axes[MAX_RANK], full[MAX_RANK];
    const Type *t = g->type;
    const int rank = t->rank > to->rank ? t->rank : to->rank;
    int n = 0;
    bool grows = t->rank < rank;
    if (same_dims(t, to))
        return g;
    if (!type_known(t) || !type_known(to)) {
        b->status = no_extent(b->graph->ir, of, type_known(t) ? to : t);
        return NULL;
    }
    for (int i = 0; i < rank; i++) {
        const int k = i - (rank - t->rank), j = i - (rank - to->rank);
        const int64_t have = k < 0 ? 1 : t->dims[k], want = j < 0 ? 1 : to->dims[j];
        full[i] = have == 1 ? want : have;
        grows |= have != full[i];
        if (want == 1 && full[i] != 1)
            axes[n++] = i;
    }
    if (grows)
        g = make_expand(b, g, rank, full);
    if (n && g)
        g = build_reduce(b, OP_reduce_sum, g, n, axes);
    if (g && !same_dims(g->type, to))
        g = make_reshape(b, g, to->rank, to->dims);
    return g;
}

static void add_share(Run *r, Node *to, int result, Node *gradient)
{
    Mark *m = mark_of(r, to);
    Share *s = NEW(r->scratch, Share);
    *s = (Share){ m->shares, result, gradient };
    m->shares = s;
}

static Node *sum_of(Build *b, int n, Node *const *terms)
{
    return n == 1 ? terms[0] : build_node(b, OP_sum, NULL, n, terms);
}

/* The shares of one result together: those of one shape are added before broadcasting is undone. */
static Node *gather(Run *r, const Node *of, int result, const Type *type)
{
    const Mark *m = mark_of(r, of);
    int n = 0, n_sums = 0;
    for (const Share *s = m->shares; s; s = s->next)
        n += s->result == result;
    Node **left = NEWS(r->scratch, Node *, n + 1), **group = NEWS(r->scratch, Node *, n + 1),
         **sums = NEWS(r->scratch, Node *, n + 1);
    n = 0;
    for (const Share *s = m->shares; s; s = s->next)
        if (s->result == result)
            left[n++] = s->gradient;
    while (n) {
        const Type *shape = left[0]->type;
        int n_group = 0, rest = 0;
        for (int i = 0; i < n; i++)
            if (left[i]->type == shape)
                group[n_group++] = left[i];
            else
                left[rest++] = left[i];
        n = rest;
        Node *sum = sum_of(r->b, n_group, group);
        sums[n_sums] = sum ? fit_shape(r->b, sum, of, type) : NULL;
        if (!sums[n_sums++])
            return NULL;
    }
    return n_sums ? sum_of(r->b, n_sums, sums) : NULL;
}

/* The gradient of a value, which every reader has contributed to; rounded to the value's type, and wide again. */
static Node *finish(Run *r, Node *n)
{
    Mark *m = mark_of(r, n);
    if (m->gradient || !m->shares)
        return m->gradient;
    m->gradient = gather(r, n, 0, n->type);
    if (m->gradient && !m->x && !reverse_is_codes(n))
        m->gradient = reverse_wide(r->b, make_cast(r->b, m->gradient, n->type->dtype));
    return m->gradient;
}

/* ---- one call ---- */

static void stop_at(Run *r, Node *n, int operand, bool missing)
{
    ReverseResult *x = r->result;
    GROW(r->scratch, x->stops, x->n_stops, r->cap_stops);
    x->stops[x->n_stops++] = (ReverseStop){ n, operand, missing };
}

void reverse_tell(const Site *s, const ReverseResult *inside)
{
    for (size_t i = 0; i < inside->n_stops; i++)
        stop_at(s->run, inside->stops[i].node, inside->stops[i].operand, inside->stops[i].missing);
}

static Status contribute(Run *r, const Node *n, Node *const *dx, const bool *want)
{
    for (int i = 0; i < n->n_in; i++) {
        if (!want[i] || !dx[i])
            continue;
        Node *g = make_cast(r->b, dx[i], reverse_width(in(n, i)));
        if (!g)
            return r->b->status;
        add_share(r, in(n, i), 0, g);
    }
    return OK;
}

/* An adjoint computes with extents.  Where one is only known when it runs, it is refused, unless the card says that its
 * adjoint asks the run too, every element has its own, or bodies of the call have theirs. */
static Status check_extents(const Node *n)
{
    const Type *open = NULL;
    const OpDef *def = op_of(n);
    for (int i = 0; i < n->n_in && !open; i++)
        open = in(n, i) && reverse_carries(in(n, i)) && !type_known(in(n, i)->type) ? in(n, i)->type : NULL;
    for (int k = 0; k < type_results(n->type) && !open; k++) {
        const Type *t = type_result(n->type, k);
        open = t->kind == TYPE_TENSOR && !type_known(t) ? t : NULL;
    }
    if (!open || n->n_regions || def->open_adjoint || (def->row && n->n_in == 1))
        return OK;
    return no_extent(n->graph->ir, n, open);
}

static Status call_adjoint(Run *r, Node *n, Node *const *dout, const bool *want)
{
    TRY(check_extents(n));
    const OpDef *d = op_of(n);
    const int n_out = type_results(n->type);
    Node **ins = NEWS(r->scratch, Node *, n->n_in + 1), **dx = NEWS(r->scratch, Node *, n->n_in + 1),
         **y = NEWS(r->scratch, Node *, n_out);
    const Tensor **values = NEWS(r->scratch, const Tensor *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++) {
        ins[i] = reverse_wide(r->b, in(n, i));
        values[i] = reverse_known(in(n, i));
    }
    for (int k = 0; k < n_out; k++)
        y[k] = reverse_wide(r->b, build_part(r->b, n, k));
    const Site site = { .attr = n->attr,
                        .n_in = n->n_in,
                        .in = ins,
                        .value = values,
                        .type = n->type,
                        .n_out = n_out,
                        .y = y,
                        .dout = dout,
                        .want = want,
                        .regions = n->regions,
                        .n_regions = n->n_regions,
                        .call = n,
                        .run = r };
    d->adjoint(r->b, &site, dx);
    TRY(r->b->status);
    return contribute(r, n, dx, want);
}

/* Which operands want a gradient, and what hinders those that cannot have one. */
static bool find_wanted(Run *r, Node *n, bool *want)
{
    bool any = false;
    for (int i = 0; i < n->n_in; i++) {
        want[i] = moves_by(r, n, i);
        any |= want[i];
        if (want[i] && !has_adjoint(n))
            stop_at(r, n, i, true);
    }
    return any && has_adjoint(n);
}

static Status back_through(Run *r, Node *n)
{
    const int n_out = type_results(n->type);
    Node **dout = NEWS(r->scratch, Node *, n_out);
    bool *want = NEWS(r->scratch, bool, n->n_in + 1), arrives = false;
    for (int k = 0; k < n_out; k++) {
        const Type *t = type_result(n->type, k);
        dout[k] = n_out == 1 ? finish(r, n) : t->kind == TYPE_TENSOR ? gather(r, n, k, t) : NULL;
        TRY(r->b->status);
        arrives |= dout[k] != NULL;
    }
    if (!arrives || !find_wanted(r, n, want))
        return OK;
    const uint32_t src = r->b->src;
    const char *label = r->b->label;
    r->b->src = n->src;
    r->b->label = n->label;
    const Status status = call_adjoint(r, n, dout, want);
    r->b->src = src;
    r->b->label = label;
    return status;
}

static Status back_through_holder(Run *r, Node *n)
{
    if (n->op == OP_part) {
        Node *g = finish(r, n);
        TRY(r->b->status);
        if (g && mark_of(r, in(n, 0))->moved)
            add_share(r, in(n, 0), (int)((const PartAttr *)n->attr)->index, g);
        return OK;
    }
    for (const Share *s = mark_of(r, n)->shares; s; s = s->next)
        if (mark_of(r, in(n, s->result))->moved)
            add_share(r, in(n, s->result), 0, s->gradient);
    return OK;
}

/* A call that depends on an x, on which a y depends, and through which nothing flows smoothly: where it reads what
 * still moves, the gradient ends. */
static void find_stops(Run *r)
{
    for (Node *n = first_node(r); n != r->b->before; n = n->next) {
        const Mark *m = mark_of(r, n);
        if (!m->behind || !m->shaken || node_is_holder(n))
            continue;
        for (int i = 0; i < n->n_in; i++) {
            const Node *def = in(n, i);
            if (def && mark_of(r, def)->moved && reverse_carries(def) && op_reads_value(op_of(n), i) &&
                (!op_is_smooth(op_of(n), i) || !m->moved))
                stop_at(r, n, i, false);
        }
    }
}

static Status run_back(Run *r)
{
    Node *last = r->b->before ? r->b->before->prev : r->b->graph->last, *const first = first_node(r);
    for (int i = 0; i < r->q->n_y; i++)
        if (r->q->dy[i])
            add_share(r, r->y[i], 0, reverse_wide(r->b, r->q->dy[i]));
    TRY(r->b->status);
    for (Node *n = last; n; n = n == first ? NULL : n->prev) {
        const Mark *m = mark_of(r, n);
        if (m->shares && m->moved)
            TRY(node_is_holder(n) ? back_through_holder(r, n) : back_through(r, n));
    }
    for (int i = 0; i < r->q->n_x; i++) {
        Node *g = finish(r, r->x[i]);
        TRY(r->b->status);
        r->result->dx[i] = g && r->q->narrow ? make_cast(r->b, g, r->x[i]->type->dtype) : g;
    }
    return r->b->status;
}

Status reverse(Build *b, const ReverseQuery *q, Arena *scratch, ReverseResult *result)
{
    Run r = { .b = b, .q = q, .scratch = scratch, .result = result };
    Status status = OK;
    *result = (ReverseResult){ .dx = NEWS(scratch, Node *, q->n_x + 1) };
    r.x = NEWS(scratch, Node *, q->n_x + 1);
    r.y = NEWS(scratch, Node *, q->n_y + 1);
    for (int i = 0; i < q->n_x; i++)
        r.x[i] = q->x[i];
    for (int i = 0; i < q->n_y; i++)
        r.y[i] = q->y[i];
    do
        mark_path(&r);
    while (inline_composites(&r, &status));
    TRY(status);
    find_stops(&r);
    return run_back(&r);
}
