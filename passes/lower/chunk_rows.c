#include "passes/lower/chunk_rows.h"

#include <string.h>

#include "ir/heirs.h"
#include "ops/card/make.h"
#include "ops/contract/contract.h"
#include "ops/control/control.h"

enum { HEAD = 2 }; /* iteration and condition of the body, number of turns and condition of the loop */

/* The loop that is built. */
typedef struct ChunkLoop {
    Chunks *c;
    Graph *body;
    Facts rows, whole; /* Node *: what stands in the body for a value: the rows of a turn, or all of it */
    Node **operands;
    int n_operands;
    int64_t turns;
    Build out, in; /* before and in the body */
    Node *iteration, *goes_on;
    Node **leaving; /* values of the piece, in the order of the results */
    int n_sums, n_leaving;
} ChunkLoop;

/* ---- what the piece reads and makes ---- */

ChunkPlace chunk_place(Chunks *c, const Node *n)
{
    return (ChunkPlace)(*(int *)fact(&c->places, n));
}

static bool is_inside(Chunks *c, const Node *n)
{
    return chunk_place(c, n) >= CHUNK_ROW;
}

bool chunk_is_rows(const Chunks *c, const Node *n)
{
    const Type *t = n->type;
    return t->kind == TYPE_TENSOR && type_known(t) && type_elements(t) > 0 && t->rank >= 1 &&
           type_elements(t) % c->rows == 0 && type_elements(t) / c->rows == t->dims[t->rank - 1];
}

bool chunk_is_shared(const Chunks *c, const Node *n)
{
    const Type *t = n->type;
    bool shared = t->kind == TYPE_TENSOR && type_known(t) && t->rank <= c->rank;
    for (int d = 0; d + 1 < t->rank && shared; d++)
        shared = t->dims[d] == 1;
    return shared;
}

Node *chunk_summed(Chunks *c, const Node *product, int i)
{
    Node *x = in(product, i);
    if (chunk_place(c, x) == CHUNK_FLAT || (!is_inside(c, x) && x->op == OP_reshape && chunk_is_rows(c, in(x, 0))))
        return in(x, 0);
    return x;
}

bool chunk_leaves(Chunks *c, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (!is_inside(c, u->user))
            return true;
    return false;
}

/* ---- into the body ---- */

static Node *parameter(ChunkLoop *l, const Type *type, Node *operand)
{
    l->operands[l->n_operands++] = operand;
    return graph_input(l->body, NULL, type);
}

/* Dimensions of so many rows of that length, behind `before` dimensions. */
static const int64_t *dims_of(const Chunks *c, int before, int64_t rows, int64_t length, int64_t *dims)
{
    for (int d = before; d < before + c->rank - 2; d++)
        dims[d] = 1;
    dims[before + c->rank - 2] = rows;
    dims[before + c->rank - 1] = length;
    return dims;
}

/* The rows of this turn. */
static Node *sliced(ChunkLoop *l, Node *x)
{
    const Chunks *c = l->c;
    int64_t dims[MAX_RANK + 1] = { l->turns };
    dims_of(c, 1, c->chunk, x->type->dims[x->type->rank - 1], dims);
    Node *parts = make_reshape(&l->out, x, c->rank + 1, dims);
    return parts ? make_gather(&l->in, parameter(l, parts->type, parts), l->iteration, 0) : NULL;
}

/* What stands for an operand: constants and what is the same for all rows as they are, rows in parts. */
static Node *inside(ChunkLoop *l, Node *x, bool whole)
{
    Node **known = fact(whole ? &l->whole : &l->rows, x);
    if (!*known)
        *known = x->op == OP_const ? build_const(&l->in, node_constant(x, 0))
                 : whole           ? parameter(l, x->type, x)
                                   : sliced(l, x);
    return *known;
}

/* A value of the body as a matrix: rows and what stands in them. */
static Node *flat(ChunkLoop *l, Node *x)
{
    const int64_t dims[] = { l->c->chunk, x ? x->type->dims[x->type->rank - 1] : 0 };
    return x ? make_shaped(&l->in, x, 2, dims) : NULL;
}

static Node *again(ChunkLoop *l, const Node *n)
{
    const bool product = op_of(n)->access.kind == ACCESS_CONTRACT;
    Node **ins = NEWS(l->c->scratch, Node *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && !(ins[i] = inside(l, in(n, i), product ? i == 1 : chunk_is_shared(l->c, in(n, i)))))
            return NULL;
    l->in.src = n->src;
    return build_node(&l->in, n->op, n->attr, n->n_in, ins);
}

/* A sum over the rows of all turns: a chain that each turn goes on with. */
static Node *summed(ChunkLoop *l, const Node *product, Node *sum)
{
    const AccumulateAttr at = { .ta = true };
    Node *x[] = { flat(l, inside(l, chunk_summed(l->c, product, 0), false)),
                  flat(l, inside(l, chunk_summed(l->c, product, 1), false)), sum };
    l->in.src = product->src;
    return x[0] && x[1] ? build_node(&l->in, OP_matmul_accumulate, &at, 3, x) : NULL;
}

/* ---- the loop ---- */

static void open_body(ChunkLoop *l)
{
    Types *types = &l->c->g->ir->types;
    const size_t n = l->c->n_calls;
    size_t operands = HEAD;
    for (size_t i = 0; i < n; i++)
        operands += (size_t)l->c->calls[i]->n_in + 1;
    l->body = region_new(l->c->g);
    l->rows = facts_open(l->c->scratch, sizeof(Node *));
    l->whole = facts_open(l->c->scratch, sizeof(Node *));
    l->operands = NEWS(l->c->scratch, Node *, operands + 1);
    l->leaving = NEWS(l->c->scratch, Node *, n + 1);
    l->turns = l->c->rows / l->c->chunk;
    l->out = (Build){ .graph = l->c->g, .before = l->c->last->next, .flags = NODE_OURS, .src = l->c->scores->src };
    l->in = build_at_end(l->body);
    l->in.flags = NODE_OURS;
    l->iteration = parameter(l, type_scalar(types, I64), build_scalar(&l->out, I64, (double)l->turns));
    l->goes_on = parameter(l, type_scalar(types, BOOL), NULL);
}

/* What sums over rows begins with zeros, in the width of sums. */
static void open_sums(ChunkLoop *l)
{
    for (size_t i = 0; i < l->c->n_calls; i++) {
        Node *n = l->c->calls[i];
        if (chunk_place(l->c, n) != CHUNK_SUM)
            continue;
        const Type *t = n->type;
        Node *zeros = make_expand(&l->out, make_zeros(&l->out, make_width(in(n, 0)->type->dtype), 0, NULL), 2,
                                  t->dims + t->rank - 2);
        l->leaving[l->n_leaving++] = n;
        l->n_sums++;
        *(Node **)fact(&l->rows, n) = zeros ? parameter(l, zeros->type, zeros) : NULL;
    }
}

static void fill_body(ChunkLoop *l)
{
    for (size_t i = 0; i < l->c->n_calls && l->in.status == OK && l->out.status == OK; i++) {
        Node *n = l->c->calls[i], **made = fact(&l->rows, n);
        const ChunkPlace place = chunk_place(l->c, n);
        if (place == CHUNK_FLAT)
            continue;
        *made = place == CHUNK_SUM ? summed(l, n, *made) : again(l, n);
        if (*made)
            heirs_add(n, *made);
        if (place == CHUNK_ROW && chunk_leaves(l->c, n))
            l->leaving[l->n_leaving++] = n;
    }
}

static Node *close_body(ChunkLoop *l)
{
    const LoopAttr at = { HEAD + l->n_sums };
    Node **results = NEWS(l->c->scratch, Node *, l->n_leaving + 1);
    if (l->in.status != OK || l->out.status != OK)
        return NULL;
    results[0] = l->goes_on;
    for (int i = 0; i < l->n_leaving; i++)
        results[1 + i] = *(Node **)fact(&l->rows, l->leaving[i]);
    graph_return(l->body, 1 + l->n_leaving, results, NULL);
    return build_with_regions(&l->out, OP_loop, &at, l->n_operands, l->operands, l->n_leaving, 1, &l->body);
}

/* What was made of the piece runs behind the loop. */
static void move_behind(Chunks *c, Node *spot)
{
    for (Node *n = c->scores, *next; n != spot; n = next) {
        next = n->next;
        if (chunk_place(c, n) == CHUNK_BEHIND)
            node_move(n, spot);
        if (n == c->last)
            break;
    }
}

static void leave(ChunkLoop *l, Node *loop)
{
    for (int i = 0; i < l->n_leaving; i++) {
        Node *n = l->leaving[i], *y = build_part(&l->out, loop, i);
        y = y ? make_shaped(&l->out, build_cast(&l->out, y, n->type->dtype), n->type->rank, n->type->dims) : NULL;
        if (y)
            stand_in(n, y);
    }
}

Status chunk_loop(Chunks *c)
{
    ChunkLoop l = { .c = c };
    open_body(&l);
    open_sums(&l);
    fill_body(&l);
    Node *loop = close_body(&l);
    TRY(l.in.status);
    TRY(l.out.status);
    Node *spot = l.out.before;
    leave(&l, loop);
    TRY(l.out.status);
    move_behind(c, spot);
    for (size_t i = c->n_calls; i-- > 0;)
        if (chunk_place(c, c->calls[i]) != CHUNK_COPIED)
            node_remove(c->calls[i]);
    return OK;
}
