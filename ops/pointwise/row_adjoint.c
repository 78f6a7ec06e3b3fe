/* What goes back through the elementwise ops: the column of ops/rows.def as functions that build graph.
 *
 * All operands of a call are brought to one type first, f64 where one is f64, as an exponent or a bound may be. */
#include "ops/card/attrs.h"
#include "ops/card/cards.h"
#include "ops/card/make.h"
#include "ops/card/row.h"

#undef K /* in a row's value a constant is a number, here it is a node */
#define K(c) build_scalar(build, t, c)

#define ADD(p, q)      CALL(build, add, p, q)
#define SUB(p, q)      CALL(build, sub, p, q)
#define MUL(p, q)      CALL(build, mul, p, q)
#define DIV(p, q)      CALL(build, div, p, q)
#define POW(p, q)      CALL(build, pow, p, q)
#define NEG(p)         CALL(build, neg, p)
#define ABS(p)         CALL(build, abs, p)
#define SIGN(p)        CALL(build, sign, p)
#define SQUARE(p)      square(build, p)
#define SQRT(p)        CALL(build, sqrt, p)
#define EXP(p)         CALL(build, exp, p)
#define LOG(p)         CALL(build, log, p)
#define SIN(p)         CALL(build, sin, p)
#define COS(p)         CALL(build, cos, p)
#define SINH(p)        CALL(build, sinh, p)
#define COSH(p)        CALL(build, cosh, p)
#define TANH(p)        CALL(build, tanh, p)
#define ERF(p)         CALL(build, erf, p)
#define SIGMOID(p)     CALL(build, sigmoid, p)
#define SOFTPLUS(p)    CALL(build, softplus, p)
#define EQ(p, q)       CALL(build, equal, p, q)
#define LT(p, q)       CALL(build, less, p, q)
#define LE(p, q)       CALL(build, less_or_equal, p, q)
#define GT(p, q)       CALL(build, greater, p, q)
#define GE(p, q)       CALL(build, greater_or_equal, p, q)
#define AND(p, q)      CALL(build, and, p, q)
#define WHERE(c, p, q) CALL(build, where, c, p, q)
#define NUMBER(c)      make_cast(build, c, t) /* 1 for true, 0 for false */
#define STEP(p)        NUMBER(GT(p, K(0)))
#define UNLESS_0(p, q) WHERE(EQ(p, K(0)), K(0), q)

static DType type_of(const Node *n)
{
    return n ? n->type->dtype : F32;
}

static Node *square(Build *build, Node *p)
{
    return MUL(p, p);
}

/* x Phi(x), Phi being the normal distribution or its approximation by tanh. */
static Node *gelu_slope(Build *build, Node *x, bool by_tanh)
{
    const DType t = type_of(x);
    if (!by_tanh) {
        Node *below = MUL(K(0.5), ADD(K(1), ERF(MUL(x, K(0.7071067811865476)))));
        return ADD(below, MUL(x, MUL(K(0.3989422804014327), EXP(MUL(K(-0.5), MUL(x, x))))));
    }
    const double c = 0.7978845608028654, k = 0.044715;
    Node *cube = MUL(K(k), MUL(x, x));
    Node *h = TANH(MUL(K(c), MUL(x, ADD(K(1), cube))));
    Node *steep = MUL(MUL(x, SUB(K(1), MUL(h, h))), ADD(K(c), MUL(K(3 * c), cube)));
    return MUL(K(0.5), ADD(ADD(K(1), h), steep));
}

/* r = x s with s = sigmoid(a x): s + a r (1 - s) */
static Node *swish_slope(Build *build, Node *x, Node *r, double a)
{
    const DType t = type_of(x);
    Node *s = SIGMOID(MUL(K(a), x));
    return ADD(s, MUL(MUL(K(a), r), SUB(K(1), s)));
}

static Node *mish_slope(Build *build, Node *x)
{
    const DType t = type_of(x);
    Node *h = TANH(SOFTPLUS(x));
    return ADD(h, MUL(MUL(x, SIGMOID(x)), SUB(K(1), MUL(h, h))));
}

/* The usual exponents without a power; an exponent 0 has slope 0 also where x is 0. */
static Node *power_base(Build *build, const Site *s, Node *x, Node *y, Node *r, Node *dy)
{
    const DType t = type_of(dy);
    const Tensor *v = s->value[1];
    if (!v || tensor_elements(v) != 1)
        return WHERE(EQ(y, K(0)), K(0), UNLESS_0(dy, MUL(dy, MUL(y, POW(x, SUB(y, K(1)))))));
    const double e = tensor_get_f64(v, 0);
    if (e == 0)
        return NULL;
    if (e == 1)
        return dy;
    if (e == 2)
        return MUL(dy, ADD(x, x));
    if (e == 3)
        return MUL(dy, MUL(K(3), MUL(x, x)));
    if (e == -1)
        return NEG(MUL(dy, MUL(r, r)));
    if (e == 0.5)
        return UNLESS_0(dy, DIV(dy, ADD(r, r)));
    return UNLESS_0(dy, MUL(dy, MUL(K(e), POW(x, K(e - 1)))));
}

/* r log(x), which is 0 where 0 stays 0. */
static Node *power_exponent(Build *build, Node *x, Node *y, Node *r, Node *dy)
{
    const DType t = type_of(dy);
    return WHERE(AND(EQ(x, K(0)), GE(y, K(0))), K(0), MUL(dy, MUL(r, LOG(x))));
}

/* Of clip: what passes is x within the bounds, both included; otherwise the bound that was taken.  Either may be
 * absent; where they cross, the upper one is taken. */
static Node *clip_inside(Build *build, Node *x, Node *y, Node *z, Node *dy)
{
    const DType t = type_of(dy);
    Node *above = y ? GE(x, y) : NULL, *below = z ? LE(x, z) : NULL;
    Node *passes = below ? WHERE(below, dy, K(0)) : dy; /* one choice after the other: both in the arithmetic of dy */
    return above ? WHERE(above, passes, K(0)) : passes;
}

static Node *clip_below(Build *build, Node *x, Node *y, Node *z, Node *dy)
{
    const DType t = type_of(dy);
    Node *taken = LT(x, y);
    return WHERE(taken, z ? WHERE(LE(y, z), dy, K(0)) : dy, K(0));
}

static Node *clip_above(Build *build, Node *x, Node *y, Node *z, Node *dy)
{
    const DType t = type_of(dy);
    return WHERE(GT(y ? CALL(build, max, x, y) : x, z), dy, K(0));
}

/* How many operands of an extreme equal its result r. */
static Node *count_ties(Build *build, const Site *s, Node *r)
{
    const DType t = type_of(r);
    if (s->n_in < 2)
        return K(1);
    if (s->n_in == 2)
        return ADD(K(1), NUMBER(EQ(s->in[0], s->in[1])));
    Node **equal = NEWS(build->graph->arena, Node *, s->n_in);
    for (int i = 0; i < s->n_in; i++)
        equal[i] = NUMBER(EQ(s->in[i], r));
    return build_node(build, OP_sum, NULL, s->n_in, equal);
}

/* One call in the type of its adjoint. */
typedef struct RowSite {
    DType t;
    Node *in[ROW_OPERANDS], *r, *dy;
    double k[ROW_SCALARS];
} RowSite;

/* False where the call's result has no gradient. */
static bool row_site(Build *build, const Site *s, Op op, RowSite *c)
{
    const OpDef *def = build->graph->ir->ops->defs[op];
    if (!s->dout[0])
        return false;
    *c = (RowSite){ .t = F32 };
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i] && type_of(s->in[i]) == F64)
            c->t = F64;
    for (int i = 0; i < s->n_in && i < ROW_OPERANDS; i++)
        c->in[i] = s->in[i] && i >= def->row->lead ? make_cast(build, s->in[i], c->t) : s->in[i];
    c->r = make_cast(build, s->y[0], c->t);
    c->dy = make_cast(build, s->dout[0], c->t);
    row_scalars(def->attrs, s->attr, c->k);
    return build->status == OK;
}

static bool wanted(const Site *s, int i)
{
    return i < s->n_in && s->in[i] && s->want[i];
}

#define GIVE(i, v)                                                                                                     \
    if (wanted(s, i))                                                                                                  \
        dx[i] = (v);
#define DX(v) GIVE(at, v)
#define DY(v) GIVE(at + 1, v)
#define DZ(v) GIVE(at + 2, v)
#define NONE
#define TIES (ties = ties ? ties : count_ties(build, s, r))

#define BACK(id, first, last, back)                                                                                    \
    void adjoint_##id(Build *build, const Site *s, Node **dx)                                                          \
    {                                                                                                                  \
        RowSite c;                                                                                                     \
        if (!row_site(build, s, OP_##id, &c))                                                                          \
            return;                                                                                                    \
        const DType t = c.t;                                                                                           \
        const double a = c.k[0], b = c.k[1];                                                                           \
        Node *const y = c.in[1], *const z = c.in[2], *const r = c.r, *const dy = c.dy, *ties = NULL;                   \
        for (int at = first; at < (last); at++) {                                                                      \
            Node *const x = at < ROW_OPERANDS ? c.in[at] : s->in[at];                                                  \
            back(void) x;                                                                                              \
        }                                                                                                              \
        (void)dx, (void)t, (void)a, (void)b, (void)y, (void)z, (void)r, (void)dy, (void)ties;                          \
    }
#define ROW(id, least, n, kinds, value, back, ...)  BACK(id, 0, 1, back)
#define PICK(id, least, n, kinds, value, back, ...) BACK(id, 0, 1, back)
#define FOLD(id, least, n, kinds, value, back, ...) BACK(id, 0, s->n_in, back)
#define TEST(id, least, n, kinds, value, back, ...) BACK(id, 0, 1, back)
#include "ops/rows.def"
