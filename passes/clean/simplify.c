/* simplify: removes calls that change nothing, and replaces others by cheaper ones with the same bits.
 *
 *     graph @f(%x: f32[2,3]) -> (%y) {
 *         const %one: f32[] = 1
 *         %a: f32[3,2] = transpose(%x, perm=[1, 0])
 *         %b: f32[3,2] = mul(%a, %one)
 *         %y: f32[2,3] = transpose(%b, perm=[1, 0])
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3]) -> (%y = %x) {
 *     }
 *
 * Every rule is exact for every value: x + 0 stays, because -0 + 0 is 0; x + -0 goes. */
#include <math.h>

#include "ops/card/attrs.h"
#include "ops/move/transposed.h"
#include "passes/engine/pattern.h"

static bool known(const Match *m)
{
    return type_known(m->root->type);
}

/* Whether two equal types mean equal shapes: at most one dimension is unknown, and the others are not 0. */
static bool one_shape(const Type *t)
{
    int unknown = 0;
    bool empty = false;
    if (t->kind != TYPE_TENSOR || t->rank < 0)
        return false;
    for (int i = 0; i < t->rank; i++) {
        unknown += t->dims[i] < 0;
        empty |= t->dims[i] == 0;
    }
    return unknown == 0 || (unknown == 1 && !empty);
}

/* For calls that keep the elements in their order: the same shape is the same value. */
static bool shape_is_back(const Match *m)
{
    return m->root->type == m->x[0]->type && one_shape(m->root->type);
}

/* An absent operand, or a constant of integers with one property. */
static bool all_ints(const Node *n, bool (*good)(int64_t v))
{
    const Tensor *t = n && n->op == OP_const ? node_constant(n, 4096) : NULL;
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        if (!good(tensor_get_i64(t, i)))
            return false;
    return !n || t;
}

static bool is_positive(int64_t v)
{
    return v > 0;
}

static bool is_zero(int64_t v)
{
    return v == 0;
}

static bool slices_everything(const Match *m)
{
    return known(m) && all_ints(in(m->root, 4), is_positive);
}

static bool pads_nothing(const Match *m)
{
    return in(m->root, 1) && all_ints(in(m->root, 1), is_zero);
}

static bool is_inference(const Match *m)
{
    const Node *drop = m->node[m->n_nodes - 1], *training = in(drop, 2);
    return !training || constant_is(training, 0);
}

static bool is_mask_unread(const Match *m)
{
    for (const Use *u = m->node[m->n_nodes - 1]->uses; u; u = u->next)
        if (u->user->op != OP_part || ((const PartAttr *)u->user->attr)->index != 0)
            return false;
    return true;
}

/* The same numbers with one result: the stream goes with the attributes. */
static Node *drop_alone(Build *b, const Match *m)
{
    const Node *drop = m->node[m->n_nodes - 1];
    Node *ins[] = { m->x[0], in(drop, 1), drop->n_in > 2 ? in(drop, 2) : NULL };
    return build_node(b, OP_dropout, drop->attr, drop->n_in, ins);
}

static bool keeps_axes(const Match *m)
{
    const int rank = m->root->type->rank;
    for (int i = 0; i < rank; i++)
        if (transpose_source(m->root, i) != i)
            return false;
    return rank >= 0;
}

static bool is_ranked(const Match *m)
{
    return m->root->type->rank >= 0;
}

static Node *join_transposes(Build *b, const Match *m)
{
    return transpose_joined(b, m->root);
}

/* What cannot be evaluated is left to the evaluator to complain about. */
static bool same_elements(const Type *from, const Type *to)
{
    const int64_t n = type_elements(from);
    int64_t known = 1;
    for (int i = 0; i < to->rank; i++)
        known *= to->dims[i] < 0 ? 1 : to->dims[i];
    return n < 0 || (type_known(to) ? n == known : n % known == 0);
}

/* A shape with one unknown dimension is said with -1. */
static Node *reshape_at_once(Build *b, const Match *m)
{
    int64_t dims[MAX_RANK];
    bool empty = false;
    const Type *t = m->root->type;
    if (!one_shape(t) || m->x[0]->type->kind != TYPE_TENSOR || !same_elements(m->x[0]->type, t))
        return NULL;
    for (int i = 0; i < t->rank; i++) {
        dims[i] = t->dims[i];
        empty |= dims[i] == 0;
    }
    const ReshapeAttr attr = { .allowzero = empty };
    return CALL_ATTR(b, reshape, attr, m->x[0], build_i64s(b, t->rank, dims));
}

/* Single dimensions of a shape that is known in part. */
static Node *known_dims(Build *b, const Match *m)
{
    const Type *x = m->x[0]->type;
    const Tensor *index = node_constant(m->constant[0], 4096);
    const ShapeAttr *at = m->attr[1];
    if (!index || x->kind != TYPE_TENSOR || x->rank < 0 || !type_known(m->root->type) || at->start != 0)
        return NULL;
    const int64_t n = type_elements(m->node[1]->type);
    Tensor *t = tensor_new(b->graph->arena, m->root->type);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const int64_t k = tensor_get_i64(index, i), axis = k < 0 ? k + n : k;
        if (axis < 0 || axis >= n || x->dims[axis] < 0)
            return NULL;
        tensor_set_i64(t, i, x->dims[axis]);
    }
    return build_const(b, t);
}

static bool is_float(const Match *m)
{
    return m->root->type->kind == TYPE_TENSOR && dtype_is_float(m->root->type->dtype);
}

/* x / 2^k is x * 2^-k, both rounded once, as long as 2^-k is a number of the type. */
static Node *times_reciprocal(Build *b, const Match *m)
{
    const Node *c = m->constant[0];
    const Tensor *t = node_constant(c, 4096);
    if (!t || !is_float(m) || tensor_elements(t) == 0)
        return NULL;
    Tensor *r = tensor_new(b->graph->arena, t->type);
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        int exponent;
        const double v = tensor_get_f64(t, i);
        if (fabs(frexp(v, &exponent)) != 0.5 || fabs(v) > 128 || fabs(v) < 1.0 / 128)
            return NULL;
        tensor_set_f64(r, i, 1 / v);
        if (tensor_get_f64(r, i) != 1 / v)
            return NULL;
    }
    return CALL(b, mul, m->x[0], build_const(b, r));
}

static bool is_element(const Match *m)
{
    return m->root->type == m->x[0]->type;
}

/* clang-format off */
#define VIEWS_OF(view)                                                                                       \
    { #view "-of-reshape",   EXACT, P(view, P(reshape, X, V), REST(0)),     X, NULL, shape_is_back },        \
    { #view "-of-flatten",   EXACT, P(view, P(flatten, X), REST(0)),        X, NULL, shape_is_back },        \
    { #view "-of-squeeze",   EXACT, P(view, P(squeeze, X, REST(0)), REST(0)), X, NULL, shape_is_back },        \
    { #view "-of-unsqueeze", EXACT, P(view, P(unsqueeze, X, V), REST(0)),   X, NULL, shape_is_back }

static const Rule rules[] = {
    /* name                exactness  match                                        become              build            when          */
    { "identity",             EXACT,  P(identity, X),                              X,                  NULL,             NULL              },
    { "add-minus-zero",       EXACT,  P(add, X, EQ(-0.0)),                         X,                  NULL,             NULL              },
    { "sub-zero",             EXACT,  P(sub, X, EQ(0.0)),                          X,                  NULL,             NULL              },
    { "mul-one",              EXACT,  P(mul, X, EQ(1)),                            X,                  NULL,             NULL              },
    { "div-one",              EXACT,  P(div, X, EQ(1)),                            X,                  NULL,             NULL              },
    { "div-power-of-two",     EXACT,  P(div, X, CONST),                            NULL,               times_reciprocal, is_float          },
    { "add-neg",              EXACT,  P(add, X, P(neg, Y)),                        P(sub, X, Y),       NULL,             NULL              },
    { "sub-neg",              EXACT,  P(sub, X, P(neg, Y)),                        P(add, X, Y),       NULL,             NULL              },
    { "mul-neg-neg",          EXACT,  P(mul, P(neg, X), P(neg, Y)),                P(mul, X, Y),       NULL,             NULL              },
    { "div-neg-neg",          EXACT,  P(div, P(neg, X), P(neg, Y)),                P(div, X, Y),       NULL,             is_float          },
    { "neg-neg",              EXACT,  P(neg, P(neg, X)),                           X,                  NULL,             NULL              },
    { "not-not",              EXACT,  P(not, P(not, X)),                           X,                  NULL,             NULL              },
    { "bitwise-not-not",      EXACT,  P(bitwise_not, P(bitwise_not, X)),           X,                  NULL,             NULL              },
    { "abs-abs",              EXACT,  P(abs, P(abs, X)),                           NODE(1),            NULL,             NULL              },
    { "abs-neg",              EXACT,  P(abs, P(neg, X)),                           P(abs, X),          NULL,             is_float          },
    { "relu-relu",            EXACT,  P(relu, P(relu, X)),                         NODE(1),            NULL,             NULL              },
    { "relu-exp",             EXACT,  P(relu, P(exp, X)),                          NODE(1),            NULL,             NULL              },
    { "relu-sigmoid",         EXACT,  P(relu, P(sigmoid, X)),                      NODE(1),            NULL,             NULL              },
    { "floor-floor",          EXACT,  P(floor, P(floor, X)),                       NODE(1),            NULL,             NULL              },
    { "ceil-ceil",            EXACT,  P(ceil, P(ceil, X)),                         NODE(1),            NULL,             NULL              },
    { "round-round",          EXACT,  P(round, P(round, X)),                       NODE(1),            NULL,             NULL              },
    { "and-true",             EXACT,  P(and, X, EQ(1)),                            X,                  NULL,             NULL              },
    { "and-false",            EXACT,  P(and, X, EQ(0.0)),                          CONST,              NULL,             NULL              },
    { "and-same",             EXACT,  P(and, X, X),                                X,                  NULL,             NULL              },
    { "or-false",             EXACT,  P(or, X, EQ(0.0)),                           X,                  NULL,             NULL              },
    { "or-true",              EXACT,  P(or, X, EQ(1)),                             CONST,              NULL,             NULL              },
    { "or-same",              EXACT,  P(or, X, X),                                 X,                  NULL,             NULL              },
    { "xor-false",            EXACT,  P(xor, X, EQ(0.0)),                          X,                  NULL,             NULL              },
    { "max-same",             EXACT,  P(max, X, X),                                X,                  NULL,             NULL              },
    { "max-one",              EXACT,  P(max, X),                                   X,                  NULL,             NULL              },
    { "max-nothing",          EXACT,  P(max, X, EQ(-INFINITY)),                    X,                  NULL,             is_float          },
    { "min-same",             EXACT,  P(min, X, X),                                X,                  NULL,             NULL              },
    { "min-one",              EXACT,  P(min, X),                                   X,                  NULL,             NULL              },
    { "min-nothing",          EXACT,  P(min, X, EQ(INFINITY)),                     X,                  NULL,             is_float          },
    { "sum-one",              EXACT,  P(sum, X),                                   X,                  NULL,             NULL              },
    { "clip-nothing",         EXACT,  P(clip, X),                                  X,                  NULL,             NULL              },
    { "where-true",           EXACT,  P(where, EQ(1), X, Y),                       X,                  NULL,             NULL              },
    { "where-false",          EXACT,  P(where, EQ(0.0), X, Y),                     Y,                  NULL,             NULL              },
    { "where-same",           EXACT,  P(where, X, Y, Y),                           Y,                  NULL,             NULL              },
    { "where-not",            EXACT,  P(where, P(not, X), Y, Z),                   P(where, X, Z, Y),  NULL,             NULL              },
    { "concat-one",           EXACT,  P(concat, X),                                X,                  NULL,             NULL              },
    { "transpose-nothing",    EXACT,  P(transpose, X),                             X,                  NULL,             keeps_axes        },
    { "transpose-transpose",  EXACT,  P(transpose, P(transpose, X)),               NULL,               join_transposes,  is_ranked         },
    { "reshape-nothing",      EXACT,  P(reshape, X, Y),                            X,                  NULL,             shape_is_back     },
    { "flatten-nothing",      EXACT,  P(flatten, X),                               X,                  NULL,             shape_is_back     },
    { "squeeze-nothing",      EXACT,  P(squeeze, X, REST(0)),                      X,                  NULL,             shape_is_back     },
    { "unsqueeze-nothing",    EXACT,  P(unsqueeze, X, Y),                          X,                  NULL,             shape_is_back     },
    { "expand-nothing",       EXACT,  P(expand, X, Y),                             X,                  NULL,             known             },
    { "tile-nothing",         EXACT,  P(tile, X, Y),                               X,                  NULL,             known             },
    { "gather-of-shape",      EXACT,  P(gather, P(shape, X), CONST),                NULL,               known_dims,       NULL              },
    { "slice-everything",     EXACT,  P(slice, X, REST(0)),                        X,                  NULL,             slices_everything },
    { "pad-nothing",          EXACT,  P(pad, X, REST(0)),                          X,                  NULL,             pads_nothing      },
    { "dropout-inference",    EXACT,  P(dropout, X, REST(0)),                      X,                  NULL,             is_inference      },
    { "dropout-value",        EXACT,  WITH(P(part, P(dropout, X, REST(0))), PartAttr, .index = 0), X,  NULL,             is_inference      },
    { "dropout-alone",        EXACT,  WITH(P(part, P(dropout, X, REST(0))), PartAttr, .index = 0), NULL, drop_alone,      is_mask_unread    },
    { "element-of-optional",  EXACT,  P(optional_get_element, P(optional, X)),     X,                  NULL,             is_element        },
    VIEWS_OF(reshape),
    VIEWS_OF(flatten),
    VIEWS_OF(squeeze),
    VIEWS_OF(unsqueeze),
    { "reshape-reshape",      EXACT,  P(reshape, P(reshape, X, Y), Z),             NULL,               reshape_at_once,  NULL              },
    { "reshape-flatten",      EXACT,  P(reshape, P(flatten, X), Z),                NULL,               reshape_at_once,  NULL              },
    { "reshape-squeeze",      EXACT,  P(reshape, P(squeeze, X, REST(0)), Z),       NULL,               reshape_at_once,  NULL              },
    { "reshape-unsqueeze",    EXACT,  P(reshape, P(unsqueeze, X, Y), Z),           NULL,               reshape_at_once,  NULL              },
};
/* clang-format on */

const Pass pass_simplify = {
    .name = "simplify", .needs = TYPED, .may = EXACT, .rules = rules, .n_rules = COUNT(rules)
};
