/* What goes back through reductions over axes, softmax and running sums: a few nodes each, none larger than x. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"

static DType type_of(const Node *n)
{
    return n ? n->type->dtype : F32;
}

static Node *zero(Build *b, const Node *like)
{
    return build_scalar(b, type_of(like), 0);
}

/* ---- over axes ---- */

/* In x's type, which `out` may differ from. */
static Node *own(Build *b, const Site *s, Node *v)
{
    return make_cast(b, v, type_of(s->in[0]));
}

/* A value of the result's shape with the reduced axes kept as 1, in x's type. */
static Node *kept(Build *b, const Site *s, Node *v)
{
    const ReduceAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    if (x->rank < 0 && !make_extents(b, s, 0))
        return NULL;
    const Tensor *axes = s->n_in > 1 ? s->value[1] : NULL;
    const int64_t n = axes ? tensor_elements(axes) : 0;
    int64_t dims[MAX_RANK];
    v = own(b, s, v);
    if (at->keepdims)
        return v;
    if (!type_known(x) && n == 0 && at->noop_with_empty_axes)
        return v;
    if (!type_known(x) && n)
        return CALL(b, unsqueeze, v, s->in[1]);
    for (int i = 0; i < x->rank; i++)
        dims[i] = n == 0 && !at->noop_with_empty_axes ? 1 : x->dims[i];
    for (int64_t i = 0; i < n; i++)
        dims[axis_wrap(tensor_get_i64(axes, i), x->rank)] = 1;
    return make_reshape(b, v, x->rank, dims);
}

/* The same reduction of something else, its axes kept as 1. */
static Node *again(Build *b, const Site *s, Op op, Node *v)
{
    ReduceAttr at = *(const ReduceAttr *)s->attr;
    at.out = 0;
    at.keepdims = true;
    return build_node(b, op, &at, 2, (Node *[]){ v, site_in(s, 1) });
}

static Node *spread(Build *b, const Site *s, Node *v)
{
    const Type *x = s->in[0]->type;
    if (type_known(x))
        return make_expand(b, v, x->rank, x->dims);
    Node *y = CALL(b, expand, v, CALL(b, shape, s->in[0]));
    if (y)
        y->type = x;
    return y;
}

/* How many elements of x each of the result has taken, where only the run tells. */
static Node *count_taken(Build *b, const Site *s)
{
    Node *of_x = CALL(b, size, s->in[0]), *of_y = CALL(b, size, s->dout[0]);
    const DType t = type_of(s->dout[0]);
    return CALL(b, div, build_cast(b, of_x, t), build_cast(b, of_y, t));
}

void adjoint_reduce_sum(Build *b, const Site *s, Node **dx)
{
    dx[0] = spread(b, s, kept(b, s, s->dout[0]));
}

void adjoint_reduce_mean(Build *b, const Site *s, Node **dx)
{
    const int64_t in = type_elements(s->in[0]->type), out = type_elements(s->dout[0]->type);
    if (in == 0 || out == 0)
        return;
    const bool known = in > 0 && out > 0;
    Node *n = known ? build_scalar(b, type_of(s->dout[0]), (double)(in / out)) : count_taken(b, s);
    dx[0] = spread(b, s, kept(b, s, CALL(b, div, s->dout[0], n)));
}

void adjoint_reduce_sum_square(Build *b, const Site *s, Node **dx)
{
    Node *dy = kept(b, s, s->dout[0]);
    dx[0] = CALL(b, mul, s->in[0], CALL(b, add, dy, dy));
}

void adjoint_reduce_l1(Build *b, const Site *s, Node **dx)
{
    dx[0] = CALL(b, mul, CALL(b, sign, s->in[0]), kept(b, s, s->dout[0]));
}

/* x / y, and 0 where the norm is. */
void adjoint_reduce_l2(Build *b, const Site *s, Node **dx)
{
    Node *y = kept(b, s, s->y[0]), *dy = kept(b, s, s->dout[0]), *none = zero(b, dy);
    Node *scale = CALL(b, where, CALL(b, equal, y, none), none, CALL(b, div, dy, y));
    dx[0] = CALL(b, mul, s->in[0], scale);
}

void adjoint_reduce_log_sum(Build *b, const Site *s, Node **dx)
{
    Node *share = CALL(b, mul, s->dout[0], CALL(b, exp, CALL(b, neg, s->y[0])));
    dx[0] = spread(b, s, kept(b, s, share));
}

/* dy exp(x - y): what each term has of the sum; nothing where all terms are 0. */
void adjoint_reduce_log_sum_exp(Build *b, const Site *s, Node **dx)
{
    Node *y = kept(b, s, s->y[0]), *dy = kept(b, s, s->dout[0]);
    y = CALL(b, where, CALL(b, is_inf, y), zero(b, y), y);
    dx[0] = CALL(b, mul, dy, CALL(b, exp, CALL(b, sub, s->in[0], y)));
}

/* All elements that equal the extreme share evenly. */
void adjoint_reduce_extreme(Build *b, const Site *s, Node **dx)
{
    Node *y = kept(b, s, s->y[0]), *dy = kept(b, s, s->dout[0]);
    Node *top = CALL(b, equal, s->in[0], y);
    Node *n = again(b, s, OP_reduce_sum, make_cast(b, top, type_of(dy)));
    dx[0] = CALL(b, where, top, CALL(b, div, dy, n), zero(b, dy));
}

/* The product of the others is that of all nonzero elements over x, and 0 where another one is 0. */
void adjoint_reduce_prod(Build *b, const Site *s, Node **dx)
{
    Node *x = s->in[0], *dy = kept(b, s, s->dout[0]), *none = zero(b, dy);
    Node *gone = CALL(b, equal, x, none), *counted = make_cast(b, gone, type_of(dy));
    Node *safe = CALL(b, where, gone, build_scalar(b, type_of(dy), 1), x);
    Node *product = CALL(b, mul, dy, again(b, s, OP_reduce_prod, safe));
    Node *alone = CALL(b, equal, again(b, s, OP_reduce_sum, counted), counted);
    dx[0] = CALL(b, where, alone, CALL(b, div, product, safe), none);
}

/* ---- along an axis ---- */

/* y (dy - sum(y dy)) */
void adjoint_softmax(Build *b, const Site *s, Node **dx)
{
    const int64_t axis = ((const AxisAttr *)s->attr)->axis;
    Node *y = s->y[0], *dy = s->dout[0];
    Node *mean = build_reduce(b, OP_reduce_sum, CALL(b, mul, y, dy), 1, &axis);
    dx[0] = CALL(b, mul, y, CALL(b, sub, dy, mean));
}

/* dy - exp(y) sum(dy) */
void adjoint_log_softmax(Build *b, const Site *s, Node **dx)
{
    const int64_t axis = ((const LogSoftmaxAttr *)s->attr)->axis;
    Node *y = own(b, s, s->y[0]), *dy = own(b, s, s->dout[0]);
    dx[0] = CALL(b, sub, dy, CALL(b, mul, CALL(b, exp, y), build_reduce(b, OP_reduce_sum, dy, 1, &axis)));
}

/* A step function: nothing goes back. */
void adjoint_hardmax(Build *b, const Site *s, Node **dx)
{
    (void)b, (void)s, (void)dx;
}

static Node *run(Build *b, const Site *s, Op op, Node *v, bool exclusive, bool reverse)
{
    const CumAttr at = { .exclusive = exclusive, .reverse = reverse };
    return build_node(b, op, &at, 2, (Node *[]){ v, s->in[1] });
}

void adjoint_cum_sum(Build *b, const Site *s, Node **dx)
{
    const CumAttr *at = s->attr;
    dx[0] = run(b, s, OP_cum_sum, own(b, s, s->dout[0]), at->exclusive, !at->reverse);
}

/* Before the first 0, the sum of y dy from each element on, over the element.  At the first 0 the same sum of products
 * that leave it out; behind it nothing. */
void adjoint_cum_prod(Build *b, const Site *s, Node **dx)
{
    const CumAttr *at = s->attr;
    Node *x = s->in[0], *dy = own(b, s, s->dout[0]), *none = zero(b, dy), *one = build_scalar(b, type_of(dy), 1);
    Node *gone = CALL(b, equal, x, none), *safe = CALL(b, where, gone, one, x);
    Node *zeros = run(b, s, OP_cum_sum, make_cast(b, gone, type_of(dy)), false, at->reverse);
    Node *first = CALL(b, and, gone, CALL(b, equal, zeros, one));
    Node *others = run(b, s, OP_cum_prod, CALL(b, where, first, one, x), at->exclusive, at->reverse);
    Node *at_first = run(b, s, OP_cum_sum, CALL(b, mul, others, dy), at->exclusive, !at->reverse);
    Node *before = run(b, s, OP_cum_sum, CALL(b, mul, own(b, s, s->y[0]), dy), at->exclusive, !at->reverse);
    Node *behind = CALL(b, where, first, at_first, none);
    dx[0] = CALL(b, where, CALL(b, equal, zeros, none), CALL(b, div, before, safe), behind);
}
