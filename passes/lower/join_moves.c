/* join-moves: transposes with reshapes between them become one, or none.
 *
 *     graph @f(%x: f32[2,5,12], %w: f32[12,12], %b: f32[12]) -> (%y) {
 *         %0: f32[5,2,12] = transpose(%x, perm=[1, 0, 2])
 *         %1: f32[5,2,12] = matmul(%0, %w)
 *         %2: f32[5,2,12] = add(%1, %b)
 *         %y: f32[2,5,12] = transpose(%2, perm=[1, 0, 2])
 *     }
 *     ==>
 *     graph @f(%x: f32[2,5,12], %w: f32[12,12], %b: f32[12]) -> (%y) {
 *         %0: f32[2,5,12] = matmul(%x, %w)
 *         %y: f32[2,5,12] = add(%0, %b)
 *     }
 *
 * So that they meet, a transpose goes past what computes each row by itself (a product with a matrix, and what is done with its
 * elements and a line), past one piece of what was turned, and past what computes each element by itself: where it
 * meets another one behind that, whoever reads it.  This is how layers of attention arrive whose steps come before their
 * batches.  Every element is computed by the same operations in the same order. */
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/contract/contract.h"
#include "ops/card/shapes.h"
#include "passes/engine/rewrite.h"
#include "passes/lower/moves.h"
#include "passes/lower/turned.h"

enum { MOST_CALLS = 8, MOST_OPERANDS = 8, MOST_STEPS = 16 };

static bool is_read_once(const Node *n)
{
    return n->uses && !n->uses->next;
}

static bool has_dims_of(const Node *n, const Type *t)
{
    bool same = n->type->rank == t->rank;
    for (int i = 0; same && i < t->rank; i++)
        same = n->type->dims[i] == t->dims[i];
    return same;
}

/* The operand of a call that computes element by element, where all others are the same for each row; -1: there is none. */
static int rows_operand(const Node *n)
{
    int at = -1;
    if (!turned_maps(n) || n->n_in > MOST_OPERANDS)
        return -1;
    for (int i = 0; i < n->n_in; i++) {
        if (!in(n, i) || in(n, i)->type->rank <= 1)
            continue;
        if (at >= 0 || !has_dims_of(in(n, i), n->type))
            return -1;
        at = i;
    }
    return at;
}

/* The same where they are single numbers. */
static int only_operand(const Node *n)
{
    const int at = rows_operand(n);
    for (int i = 0; i < n->n_in && at >= 0; i++)
        if (i != at && in(n, i) && type_elements(in(n, i)->type) != 1)
            return -1;
    return at;
}

static bool selects(const Node *n, const Node *from)
{
    return n->op == OP_gather && in(n, 0) == from && in(n, 1)->type->rank == 0 && n->type->kind == TYPE_TENSOR &&
           type_known(n->type);
}

/* Whether all who read a value turn it, behind reshapes, pieces of it and functions of its elements. */
static bool is_turned(const Node *n, int steps)
{
    for (const Use *u = n->uses; u; u = u->next) {
        const Node *r = u->user;
        if (node_is_return(r) || steps == 0)
            return false;
        if (moves_transposes(r))
            continue;
        const bool passes =
            moves_reshapes(r) || selects(r, n) || (r->type->kind == TYPE_TENSOR && only_operand(r) >= 0);
        if (!passes || !is_turned(r, steps - 1))
            return false;
    }
    return n->uses != NULL;
}

/* ---- what a transpose goes past ---- */

/* The call again, with another operand in one place. */
static Node *call_on(Build *b, const Node *n, int at, Node *x)
{
    Node *ins[MOST_OPERANDS];
    for (int i = 0; i < n->n_in; i++)
        ins[i] = i == at ? x : in(n, i);
    return x ? build_node(b, n->op, n->attr, n->n_in, ins) : NULL;
}

/* How many places at the front of a value hold its rows, if its last axis is whole pieces; -1: it is not. */
static int places_of_rows(const Moves *m, int64_t last)
{
    int place = m->n;
    int64_t made = 1;
    while (made < last && place > 0)
        made *= m->size[m->order[--place]];
    return made == last ? place : -1;
}

/* What a chain of calls that are made row by row begins with, and the calls behind it. */
typedef struct Rows {
    Node *end;
    const Node *calls[MOST_CALLS];
    int operand[MOST_CALLS], n;
} Rows;

static Rows rows_of(Node *product)
{
    Rows r = { .end = product };
    while (r.n < MOST_CALLS && is_read_once(r.end) && !node_is_return(r.end->uses->user)) {
        Node *next = r.end->uses->user;
        const int at = next->type->kind == TYPE_TENSOR ? rows_operand(next) : -1;
        if (at < 0 || in(next, at) != r.end)
            break;
        r.calls[r.n] = next;
        r.operand[r.n++] = at;
        r.end = next;
    }
    return r;
}

/* Where the second of two runs of pieces begins that lie the other way round in the base, if these are all up to `end`; 0: they
 * are not. */
static int swapped_at(const Moves *m, int end)
{
    int second = 0;
    for (int i = 1; i < end; i++) {
        if (m->order[i] == m->order[i - 1] + 1)
            continue;
        if (second || m->order[i] > m->order[0])
            return 0;
        second = i;
    }
    return second;
}

static int64_t length(const Moves *m, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= m->size[m->order[i]];
    return n;
}

/* Steps and batches that have changed places go through the product, and what follows, in the order in which they lie, and change
 * places behind it.  Rows in more pieces stay (windows of an image): what is turned behind them costs nothing as it is. */
static bool order_rows(Node *n, Rewriting *r)
{
    const MatmulAttr *at = n->attr;
    Node *left = in(n, 0), *right = in(n, 1);
    if (n->type->kind != TYPE_TENSOR || !type_known(n->type) || at->ta || right->type->rank != 2 ||
        left->type->rank < 2)
        return false;
    const Moves m = moves_of(left);
    const int64_t deep = left->type->dims[left->type->rank - 1], wide = n->type->dims[n->type->rank - 1];
    const Rows rows = rows_of(n);
    const int end = places_of_rows(&m, deep), second = swapped_at(&m, end);
    if (second == 0 || !is_turned(rows.end, MOST_STEPS))
        return false;
    const int64_t dims[] = { length(&m, second, end), length(&m, 0, second), deep };
    Moves from = m, to = { .n = COUNT(dims), .size = { dims[0], dims[1], wide }, .order = { 1, 0, 2 } };
    for (int i = 0; i < end; i++)
        from.order[i] = m.order[(i + second) % end];
    Build b = build_before(rows.end);
    b.flags = n->flags;
    b.src = n->src;
    Node *x = moves_make(&b, &from, COUNT(dims), dims);
    x = x ? CALL_ATTR(&b, matmul, *at, x, right) : NULL;
    for (int i = 0; i < rows.n; i++) {
        b.flags = rows.calls[i]->flags;
        b.src = rows.calls[i]->src;
        x = call_on(&b, rows.calls[i], rows.operand[i], x);
    }
    to.base = x;
    return rewrite_with(r, rows.end, x ? moves_make(&b, &to, rows.end->type->rank, rows.end->type->dims) : NULL, &b);
}

/* A piece of what was turned is turned afterwards. */
static bool select_first(Node *n, Rewriting *r)
{
    if (!selects(n, in(n, 0)) || !is_turned(n, MOST_STEPS))
        return false;
    const Type *was = in(n, 0)->type;
    const int axis = axis_wrap(((const AxisAttr *)n->attr)->axis, was->rank);
    Moves m = moves_of(in(n, 0));
    int64_t before = 1;
    int place = 0;
    for (int i = 0; i < axis; i++)
        before *= was->dims[i];
    for (int64_t made = 1; place < m.n && made < before; place++)
        made *= m.size[m.order[place]];
    if (!m.transposes || place == m.n || was->dims[axis] == 1 || m.size[m.order[place]] != was->dims[axis])
        return false;
    const int piece = m.order[place];
    Build b = build_before(n);
    Node *x = make_shaped(&b, m.base, m.n, m.size);
    Moves left = { .base = x ? make_gather(&b, x, in(n, 1), piece) : NULL };
    for (int i = 0; i < m.n; i++)
        if (i != piece)
            left.size[i - (i > piece)] = m.size[i];
    for (int i = 0; i < m.n; i++)
        if (i != place)
            left.order[left.n++] = m.order[i] - (m.order[i] > piece);
    return rewrite_with(r, n, left.base ? moves_make(&b, &left, n->type->rank, n->type->dims) : NULL, &b);
}

/* A function of each element is computed before it is turned. */
static bool map_first(Node *n, Rewriting *r)
{
    const int at = n->type->kind == TYPE_TENSOR ? only_operand(n) : -1;
    if (at < 0 || !is_read_once(in(n, at)) || !is_turned(n, MOST_STEPS))
        return false;
    Moves m = moves_of(in(n, at));
    if (!m.transposes)
        return false;
    Build b = build_before(n);
    m.base = call_on(&b, n, at, m.base);
    return rewrite_with(r, n, m.base ? moves_make(&b, &m, n->type->rank, n->type->dims) : NULL, &b);
}

/* ---- the pass ---- */

/* Transposes in a row, behind which there is no other one. */
static bool join(Node *n, Rewriting *r)
{
    const Moves m = moves_of(n);
    if (m.transposes < 2)
        return false;
    bool goes_on = true;
    for (const Use *u = n->uses; u && goes_on; u = u->next)
        goes_on = !node_is_return(u->user) && (moves_reshapes(u->user) || moves_transposes(u->user));
    if (goes_on)
        return false;
    Build b = build_before(n);
    return rewrite_with(r, n, moves_make(&b, &m, n->type->rank, n->type->dims), &b);
}

static bool change(Node *n, Rewriting *r)
{
    if (moves_reshapes(n) || moves_transposes(n))
        return join(n, r);
    return n->op == OP_matmul ? order_rows(n, r) : n->op == OP_gather ? select_first(n, r) : map_first(n, r);
}

static Status join_moves(Graph *g, PassRun *run)
{
    return rewrite_all(g, run, change);
}

const Pass pass_join_moves = { .name = "join-moves", .needs = TYPED, .may = EXACT, .run = join_moves };
