#include "ops/contract/contract.h"
#include "ops/region/region.h"
#include "passes/lower/chunk_rows.h"

/* ---- what is in a piece ---- */

static void place(Chunks *c, const Node *n, ChunkPlace p)
{
    *(int *)fact(&c->places, n) = (int)p;
}

static bool is_forward(const Node *n)
{
    return !(n->flags & (NODE_BACKWARD | NODE_UPDATE));
}

/* Whether a value has the rows of the piece, in the dimensions that these have there. */
static bool has_shape(const Chunks *c, const Node *n)
{
    const Type *t = n->type, *s = c->scores->type;
    bool same = t->kind == TYPE_TENSOR && type_known(t) && t->rank == c->rank;
    for (int d = 0; d + 1 < c->rank && same; d++)
        same = t->dims[d] == s->dims[d];
    return same;
}

/* An operand that the body can have: of the piece, a constant, or of the outside. */
static bool can_read(Chunks *c, const Node *x)
{
    const ChunkPlace p = chunk_place(c, x);
    if (x->op == OP_const)
        return node_constant(x, 0) && chunk_is_shared(c, x);
    if (p != CHUNK_OUTSIDE)
        return p != CHUNK_BEHIND && p < CHUNK_FLAT;
    return chunk_is_shared(c, x) ||
           (has_shape(c, x) && x->type->dims[c->rank - 1] < c->scores->type->dims[c->rank - 1]);
}

static bool can_read_all(Chunks *c, const Node *n)
{
    bool all = true;
    for (int i = 0; i < n->n_in && all; i++)
        all = !in(n, i) || can_read(c, in(n, i));
    return all;
}

/* Calls that make a row of a row. */
static bool is_row_call(Chunks *c, const Node *n)
{
    Reduction r;
    if (!is_forward(n) || !has_shape(c, n) || op_of(n)->mode != MODE_PURE)
        return false;
    if (region_maps(n) && (op_of(n)->row || n->op == OP_cast || n->op == OP_amp_cast))
        return can_read_all(c, n);
    if (region_folds(n, &r))
        return r.axes == 1u << (c->rank - 1) && can_read_all(c, n);
    return region_picks(n, &r) && r.axes == 1u << (c->rank - 1) && chunk_place(c, in(n, 1)) == CHUNK_APART &&
           can_read(c, in(n, 0));
}

/* Whether a value is there before the forward side has the last call of the piece. */
static bool is_before(Chunks *c, const Node *x)
{
    return x->op == OP_const || *(int *)fact(&c->order, x) < *(int *)fact(&c->order, c->last);
}

/* A product of rows with one matrix. */
static bool is_row_product(Chunks *c, const Node *n, bool begins)
{
    const MatmulAttr *at = n->attr;
    const Node *x = in(n, 0), *w = in(n, 1);
    if (n->op != OP_matmul || at->ta || !has_shape(c, n) || !has_shape(c, x) || w->type->rank < 2 ||
        !dtype_is_float(n->type->dtype) || w->type->rank > c->rank)
        return false;
    for (int d = 0; d + 2 < w->type->rank; d++)
        if (w->type->dims[d] != 1)
            return false;
    return begins || (chunk_place(c, x) == CHUNK_ROW && chunk_place(c, w) <= CHUNK_APART && is_before(c, w));
}

static bool is_summed(Chunks *c, const Node *product, int i)
{
    const Node *x = chunk_summed(c, product, i);
    const ChunkPlace p = chunk_place(c, x);
    return chunk_is_rows(c, x) && (p == CHUNK_ROW || (p <= CHUNK_APART && is_before(c, x)));
}

/* A product that sums over all rows, and over nothing else. */
static bool is_row_sum(Chunks *c, const Node *n)
{
    const MatmulAttr *at = n->attr;
    if (n->op != OP_matmul || !at->ta || at->tb || !type_known(n->type) || !dtype_is_float(n->type->dtype) ||
        in(n, 0)->type->rank < 2 || in(n, 1)->type->rank < 2)
        return false;
    for (int i = 0; i < 2; i++) {
        const Type *t = in(n, i)->type;
        if (t->dims[t->rank - 2] != c->rows || type_elements(t) != c->rows * t->dims[t->rank - 1])
            return false;
    }
    return is_summed(c, n, 0) && is_summed(c, n, 1);
}

/* A reshape of rows of which nothing but sums over rows is made. */
static bool is_flat(Chunks *c, const Node *n)
{
    bool all = n->op == OP_reshape && chunk_place(c, in(n, 0)) == CHUNK_ROW && chunk_is_rows(c, n) && n->uses;
    for (const Use *u = n->uses; u && all; u = u->next) {
        const MatmulAttr *at = u->user->attr;
        all = u->user->op == OP_matmul && at->ta && !at->tb;
    }
    return all;
}

/* Whether a call reads the piece, or what is made of it. */
static bool reads(Chunks *c, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && chunk_place(c, in(n, i)) >= CHUNK_BEHIND)
            return true;
    return false;
}

static ChunkPlace place_of(Chunks *c, const Node *n)
{
    if (n == c->scores)
        return CHUNK_ROW;
    if (!reads(c, n))
        return n->op != OP_const && is_row_call(c, n) ? CHUNK_APART : CHUNK_OUTSIDE;
    if (is_row_call(c, n) || (!is_forward(n) && is_row_product(c, n, false)))
        return CHUNK_ROW;
    if (is_flat(c, n))
        return CHUNK_FLAT;
    return !is_forward(n) && is_row_sum(c, n) ? CHUNK_SUM : CHUNK_BEHIND;
}

/* What the piece reads of what it could make itself: what is as long as scores, and the `clip` that bounds a pick, which may stand in a
 * region beside that alone. */
static bool is_copied(Chunks *c, const Node *n)
{
    Reduction r;
    bool any = false;
    for (const Use *u = n->uses; u && !any; u = u->next) {
        const ChunkPlace p = chunk_place(c, u->user);
        any = (p == CHUNK_ROW || p == CHUNK_COPIED) && (type_elements(n->type) >= type_elements(c->scores->type) ||
                                                        (region_picks(u->user, &r) && u == &u->user->in[1]));
    }
    return any;
}

/* Everything from the scores on, and what it takes beside them, in the order of the graph. */
static void find_piece(Chunks *c)
{
    size_t n_calls = 0;
    int at = 0;
    c->last = c->scores;
    for (Node *n = c->g->first; n; n = n->next) {
        *(int *)fact(&c->order, n) = ++at;
        const ChunkPlace p = place_of(c, n);
        place(c, n, p);
        if ((p == CHUNK_ROW || p == CHUNK_FLAT) && is_forward(n))
            c->last = n;
        n_calls += p != CHUNK_OUTSIDE;
    }
    for (Node *n = c->g->last; n; n = n->prev)
        if (chunk_place(c, n) == CHUNK_APART && is_copied(c, n))
            place(c, n, CHUNK_COPIED);
    c->calls = NEWS(c->scratch, Node *, n_calls + 1);
    for (Node *n = c->g->first; n; n = n->next)
        if (chunk_place(c, n) >= CHUNK_ROW)
            c->calls[c->n_calls++] = n;
}

/* ---- whether it is worth it ---- */

enum {
    LEAST = 1 << 20, /* bytes of scores, as f32: fewer stay whole */
    MOST = 16 << 20, /* of a chunk */
    LEAST_TURNS = 4, /* a chunk is no larger share of all rows */
    BLOCK = 32,      /* rows of a chunk come in so many: whole blocks of the k of products */
};

/* Rows at a time: a divisor. */
static int64_t chunk_of(const Chunks *c)
{
    const int64_t bytes = c->scores->type->dims[c->rank - 1] * (int64_t)sizeof(float);
    for (int64_t n = c->rows / LEAST_TURNS / BLOCK * BLOCK; n > 0; n -= BLOCK)
        if (c->rows % n == 0 && n <= MOST / bytes)
            return n;
    return 0;
}

static bool is_result_alone(Chunks *c, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (chunk_place(c, u->user) < CHUNK_ROW && !node_is_return(u->user))
            return false;
    return true;
}

/* Whether the way back reads the piece: then it is a loss, there and back. */
static bool goes_back(Chunks *c)
{
    for (size_t i = 0; i < c->n_calls; i++)
        if (c->calls[i]->flags & NODE_BACKWARD)
            return true;
    return false;
}

/* Why a piece stays whole; null: it does not. */
static const char *refuse(Chunks *c)
{
    const int64_t most = type_elements(c->scores->type);
    bool sums = false;
    for (size_t i = 0; i < c->n_calls; i++) {
        const Node *n = c->calls[i];
        const ChunkPlace p = chunk_place(c, n);
        sums = sums || p == CHUNK_SUM;
        if (p == CHUNK_ROW && type_elements(n->type) >= most && !is_result_alone(c, n))
            return "more is made of them than a chunk tells";
    }
    if (sums && c->rows > PANEL_SEGMENT)
        return "sums over its rows are of several segments";
    return c->chunk ? NULL : "there is no chunk of rows that divides them";
}

/* ---- all of them ---- */

static bool is_large(const Node *n)
{
    return n->op == OP_matmul && is_forward(n) && n->type->kind == TYPE_TENSOR && type_known(n->type) &&
           n->type->rank >= 2 && type_elements(n->type) >= LEAST / (int64_t)sizeof(float);
}

Status chunk_losses(Graph *g, PassRun *run)
{
    for (Node *n = g->owner ? NULL : g->first, *next; n; n = next) { /* a loop in a loop would be one call */
        next = n->next;
        if (!is_large(n))
            continue;
        Chunks c = { .g = g, .scratch = run->scratch, .scores = n, .rank = n->type->rank };
        c.places = facts_open(run->scratch, sizeof(int));
        c.order = facts_open(run->scratch, sizeof(int));
        c.rows = type_elements(n->type) / n->type->dims[c.rank - 1];
        c.chunk = chunk_of(&c);
        if (c.rows < 2 || !is_row_product(&c, n, true))
            continue;
        find_piece(&c);
        if (!goes_back(&c))
            continue;
        const char *why = refuse(&c);
        if (why) {
            remark(run->diag, "memory", node_place(n), "all rows of its scores are there at once: %s", why);
            continue;
        }
        next = c.last->next;
        TRY(chunk_loop(&c));
        run->changes++;
    }
    return OK;
}
