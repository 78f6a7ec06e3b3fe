#include "passes/lower/turned.h"

#include "ops/card/make.h"
#include "ops/fold/reduce_axes.h"
#include "ops/move/transposed.h"
#include "ops/quant/words.h"
#include "ops/random/draw_call.h"
#include "ops/region/region.h"

enum { MOST_CALLS = 48 }; /* that are made of one transpose */

static bool is_sized(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && type_known(n->type);
}

static bool is_transpose(const Node *n)
{
    return n && n->op == OP_transpose && is_sized(n);
}

static bool turn_alike(const Node *a, const Node *b)
{
    bool same = is_transpose(a) && is_transpose(b) && a->type->rank == b->type->rank;
    for (int i = 0; same && i < a->type->rank; i++)
        same = transpose_source(a, i) == transpose_source(b, i);
    return same;
}

static bool has_dims_of(const Node *n, const Node *other)
{
    bool same = is_sized(n) && n->type->rank == other->type->rank;
    for (int i = 0; same && i < n->type->rank; i++)
        same = n->type->dims[i] == other->type->dims[i];
    return same;
}

bool turned_is_line(const Node *n)
{
    int long_axes = 0;
    for (int i = 0; is_sized(n) && i < n->type->rank; i++)
        long_axes += n->type->dims[i] != 1;
    return is_sized(n) && long_axes <= 1;
}

/* ---- calls ---- */

static bool draws(const Node *n)
{
    DrawCall draw;
    return draw_of(n, &draw);
}

bool turned_maps(const Node *n)
{
    return is_sized(n) && n->type->dtype != BIT && region_maps(n) && !draws(n);
}

/* The largest or the smallest: whatever the order, the same.  A line is left of it. */
static bool is_extreme(const Node *n, Reduction *r)
{
    return is_sized(n) && region_folds(n, r) && (r->kind == REDUCE_MAX || r->kind == REDUCE_MIN) && turned_is_line(n);
}

static bool says_nothing_of_axes(const Node *n)
{
    return !n || (is_sized(n) && (n->type->rank <= 1 || type_elements(n->type) == 1));
}

bool turned_is_read(const Node *product, int i)
{
    enum { A_ZERO = 2, B_ZERO = 3 };
    if (!is_sized(product))
        return false;
    if (product->op == OP_qmatmul)
        return (i == QMATMUL_A || i == QMATMUL_B) && says_nothing_of_axes(in(product, i + 1)) &&
               says_nothing_of_axes(in(product, i + 2));
    return product->op == OP_matmul_integer && i < A_ZERO &&
           (product->n_in <= A_ZERO + i || says_nothing_of_axes(in(product, i ? B_ZERO : A_ZERO)));
}

/* ---- whether a transpose goes in the end ---- */

typedef struct Cone {
    const Node *turn;
    const Node *calls[MOST_CALLS];
    int n;
} Cone;

static bool is_in_cone(const Cone *c, const Node *n)
{
    bool found = n == c->turn;
    for (int i = 0; !found && i < c->n; i++)
        found = c->calls[i] == n;
    return found;
}

/* Whether the only places where a reader has the value are ones where it may be turned. */
static bool ends_at(const Cone *c, const Node *reader, const Node *value)
{
    Reduction r;
    if (reader->op == OP_transpose || (is_extreme(reader, &r) && in(reader, 0) == value))
        return true;
    const bool swaps = transpose_swaps(c->turn, c->turn->type->rank - 2);
    for (int i = 0; i < reader->n_in; i++)
        if (in(reader, i) == value && !turned_is_read(reader, i) && reader->op != OP_matmul)
            return false;
    return swaps;
}

static bool take_readers(Cone *c, const Node *value)
{
    for (const Use *u = value->uses; u; u = u->next) {
        const Node *reader = u->user;
        if (node_is_return(reader))
            return false;
        if (is_in_cone(c, reader))
            continue;
        if (turned_maps(reader) && has_dims_of(reader, c->turn)) {
            if (c->n == MOST_CALLS)
                return false;
            c->calls[c->n++] = reader;
        } else if (!ends_at(c, reader, value))
            return false;
    }
    return true;
}

static bool are_operands_good(const Cone *c, const Node *call)
{
    for (int i = 0; i < call->n_in; i++) {
        const Node *x = in(call, i);
        if (x && !is_in_cone(c, x) && !turn_alike(x, c->turn) && !turned_is_line(x))
            return false;
    }
    return true;
}

bool turned_is_absorbed(const Node *turn)
{
    Cone c = { .turn = turn };
    if (!is_transpose(turn) || turn->type->rank < 2 || !take_readers(&c, turn))
        return false;
    for (int i = 0; i < c.n; i++)
        if (!take_readers(&c, c.calls[i]))
            return false;
    for (int i = 0; i < c.n; i++)
        if (!are_operands_good(&c, c.calls[i]))
            return false;
    return true;
}

/* ---- changing places ---- */

Node *turned_below(const Node *n)
{
    Node *turn = NULL;
    Reduction r;
    if (is_extreme(n, &r))
        return is_transpose(in(n, 0)) ? in(n, 0) : NULL;
    for (int i = 0; i < n->n_in && turned_maps(n) && !turn; i++)
        turn = is_transpose(in(n, i)) && has_dims_of(in(n, i), n) ? in(n, i) : NULL;
    for (int i = 0; i < n->n_in && turn; i++)
        if (in(n, i) && !turn_alike(in(n, i), turn) && !turned_is_line(in(n, i)))
            return NULL;
    return turn;
}

/* A line as it lies beside what has its axis order[i] at i, where the line's own axis is i. */
static Node *turned_line(Build *b, Node *x, int rank, const int64_t *order)
{
    const int own = x->type->rank;
    int64_t dims[MAX_RANK];
    if (type_elements(x->type) == 1 && own <= 1)
        return x;
    for (int i = 0; i < rank; i++)
        dims[order[i]] = i < rank - own ? 1 : x->type->dims[i - (rank - own)];
    return make_shaped(b, x, rank, dims);
}

static Node *sink_extreme(Build *b, const Node *n, const Node *turn, const Reduction *r)
{
    int64_t axes[MAX_RANK];
    int count = 0;
    for (int i = 0; i < turn->type->rank; i++)
        if (r->axes >> i & 1)
            axes[count++] = transpose_source(turn, i);
    Node *least = build_reduce(b, n->op, in(turn, 0), count, axes);
    return least ? make_shaped(b, least, n->type->rank, n->type->dims) : NULL;
}

Node *turned_sink(Build *b, const Node *n, const Node *turn)
{
    int64_t order[MAX_RANK];
    Node **ins = NEWS(b->graph->arena, Node *, n->n_in + 1);
    Reduction r;
    if (is_extreme(n, &r))
        return sink_extreme(b, n, turn, &r);
    for (int i = 0; i < turn->type->rank; i++)
        order[i] = transpose_source(turn, i);
    for (int i = 0; i < n->n_in; i++) {
        Node *x = in(n, i);
        ins[i] = !x ? NULL : turn_alike(x, turn) ? in(x, 0) : turned_line(b, x, turn->type->rank, order);
    }
    Node *call = build_node(b, n->op, n->attr, n->n_in, ins);
    return call ? make_transpose(b, call, turn->type->rank, order) : NULL;
}

/* ---- the other way: what is made of a product and turned then ---- */

static bool is_read_once(const Node *n)
{
    return n->uses && !n->uses->next;
}

bool turned_keeps_matrices(const Node *n)
{
    const Type *from = n->op == OP_reshape ? in(n, 0)->type : NULL, *to = n->type;
    return from && is_sized(n) && is_sized(in(n, 0)) && from->rank >= 2 && to->rank >= 2 &&
           from->dims[from->rank - 1] == to->dims[to->rank - 1] && from->dims[from->rank - 2] == to->dims[to->rank - 2];
}

/* The operand that a call has the elements of, all others being lines; null: it is no such call. */
static Node *made_of(const Node *n)
{
    Node *only = NULL;
    if (turned_keeps_matrices(n))
        return in(n, 0);
    for (int i = 0; i < n->n_in && turned_maps(n); i++) {
        Node *x = in(n, i);
        if (!x || (turned_is_line(x) && !has_dims_of(x, n)))
            continue;
        if (only || !has_dims_of(x, n))
            return NULL;
        only = x;
    }
    return only;
}

static Node *turn_again(Build *b, const Node *call, Node *product)
{
    const int rank = call->type->rank;
    int64_t order[MAX_RANK], dims[MAX_RANK];
    Node **ins = NEWS(b->graph->arena, Node *, call->n_in + 1);
    b->flags = call->flags;
    b->src = call->src;
    for (int i = 0; i < rank; i++)
        order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    for (int i = 0; i < rank; i++)
        dims[i] = call->type->dims[order[i]];
    if (call->op == OP_reshape)
        return make_reshape(b, product, rank, dims);
    const Node *from = made_of(call);
    for (int i = 0; i < call->n_in; i++) {
        Node *x = in(call, i);
        ins[i] = !x ? NULL : x == from ? product : turned_line(b, x, rank, order);
    }
    return build_node(b, call->op, call->attr, call->n_in, ins);
}

static Node *turned_sums(Build *b, const Node *product)
{
    const MatmulIntegerAttr *was = product->attr, at = { .ta = !was->tb, .tb = !was->ta };
    return build_node(b, product->op, &at, 2, (Node *[]){ in(product, 1), in(product, 0) });
}

Node *turned_product(Build *b, const Node *turn)
{
    const Node *calls[MOST_CALLS], *x = in(turn, 0);
    int n = 0;
    if (!is_transpose(turn) || !transpose_swaps(turn, turn->type->rank - 2))
        return NULL;
    for (; x && x->op != OP_matmul_integer; x = made_of(x)) {
        if (n == MOST_CALLS || !is_read_once(x) || !made_of(x) || x->type->rank < 2)
            return NULL;
        calls[n++] = x;
    }
    if (!x || !is_read_once(x) || x->n_in != 2 || in(x, 0)->type->rank < 2 || in(x, 1)->type->rank < 2)
        return NULL;
    b->flags = x->flags;
    b->src = x->src;
    Node *product = turned_sums(b, x);
    while (n-- && product)
        product = turn_again(b, calls[n], product);
    return product;
}
