/* raise-patterns: recognises what exporters take apart: normalizations, activations, softmax.
 *
 *     graph @f(%x: f32[2,4], %gamma: f32[4], %beta: f32[4]) -> (%y) {
 *         const %last: i64[1] = [-1]
 *         const %two: f32[] = 2
 *         const %eps: f32[] = 1e-05
 *         %mean: f32[2,1] = reduce_mean(%x, %last)
 *         %d: f32[2,4] = sub(%x, %mean)
 *         %p: f32[2,4] = pow(%d, %two)
 *         %var: f32[2,1] = reduce_mean(%p, %last)
 *         %a: f32[2,1] = add(%var, %eps)
 *         %s: f32[2,1] = sqrt(%a)
 *         %n: f32[2,4] = div(%d, %s)
 *         %m: f32[2,4] = mul(%n, %gamma)
 *         %y: f32[2,4] = add(%m, %beta)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,4], %gamma: f32[4], %beta: f32[4]) -> (%y) {
 *         %y: f32[2,4] = layer_normalization(%x, %gamma, %beta)
 *     }
 *
 * Our order of operations replaces the exporter's, so this is for training and lowering, never for running, comparing
 * or exporting a model as it is. */
#include "ops/card/attrs.h"
#include "ops/card/reduction.h"
#include "ops/norm/norm.h"
#include "passes/engine/pattern.h"

/* ---- which axes ---- */

/* The axes a reduction takes, a bit each; 0 when they are not known. */
static uint32_t axes_of(const Node *reduce)
{
    const Node *x = in(reduce, 0), *c = in(reduce, 1);
    const Tensor *t = c && c->op == OP_const ? node_constant(c, 4096) : NULL;
    const int rank = x->type->rank;
    uint32_t axes = 0;
    for (int64_t i = 0; t && i < tensor_elements(t); i++) {
        const int64_t axis = tensor_get_i64(t, i), at = axis < 0 ? axis + rank : axis;
        if (at < 0 || at >= rank)
            return 0;
        axes |= 1u << at;
    }
    return axes;
}

static bool is_reduction(const Node *n)
{
    return n->op == OP_reduce_mean || n->op == OP_reduce_max || n->op == OP_reduce_sum;
}

/* The axes that every reduction of the match takes; 0 when they differ. */
static uint32_t common_axes(const Match *m)
{
    uint32_t common = 0;
    for (int i = 0; i < m->n_nodes; i++) {
        const uint32_t axes = is_reduction(m->node[i]) ? axes_of(m->node[i]) : common;
        if (is_reduction(m->node[i]) && (!axes || (common && axes != common)))
            return 0;
        common = axes;
    }
    return common;
}

/* The first of the axes, when they are the last ones of X; -1 otherwise. */
static int first_axis(const Match *m)
{
    const uint32_t axes = common_axes(m);
    const int rank = m->x[0]->type->rank;
    for (int first = 0; axes && first < rank; first++)
        if (axes == ((1u << rank) - 1) >> first << first)
            return first;
    return -1;
}

/* The only axis; -1 when there are several. */
static int only_axis(const Match *m)
{
    const uint32_t axes = common_axes(m);
    return axes && !(axes & (axes - 1)) ? __builtin_ctz(axes) : -1;
}

static bool is_wide(const Match *m)
{
    return m->root->type->dtype == F32 || m->root->type->dtype == F64;
}

/* Attributes are f32: a number of f64 may not be one. */
static bool is_no_f64(const Match *m)
{
    return m->root->type->dtype != F64;
}

static bool is_float(const Match *m)
{
    return dtype_is_float(m->root->type->dtype);
}

static bool is_float_no_f64(const Match *m)
{
    return is_float(m) && is_no_f64(m);
}

/* In narrow types the rounding of the mean shows where the variance is small: our order is better, but not the same. */
static bool normalizes(const Match *m)
{
    return is_wide(m) && first_axis(m) >= 0;
}

static bool softens(const Match *m)
{
    return only_axis(m) >= 0;
}

/* ---- what is built ---- */

static Node *ones(Build *b, const Type *like, int first)
{
    Types *types = &b->graph->ir->types;
    const Type *type = type_tensor(types, like->dtype, like->rank - first, like->dims + first);
    if (!type_known(type))
        return NULL;
    Tensor *t = tensor_new(b->graph->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, 1);
    return build_const(b, t);
}

/* The guard against division by zero is the last constant of these patterns. */
static bool guard_of(const Match *m, float *epsilon)
{
    const Node *c = m->constant[m->n_constants - 1];
    const Tensor *t = node_constant(c, 64);
    if (!t || tensor_elements(t) != 1 || !dtype_is_float(c->type->dtype))
        return false;
    const double v = tensor_get_f64(t, 0);
    *epsilon = (float)v;
    return v >= 0 && v < 1 && (is_no_f64(m) || (double)*epsilon == v);
}

static Node *normalization(Build *b, const Match *m, Op op)
{
    const int axis = first_axis(m), rank = m->x[0]->type->rank;
    NormAttr attr = { .axis = axis - rank, .stash_type = F32 + 1 };
    Node *ins[] = { m->x[0], ones(b, m->x[0]->type, axis) };
    if (!ins[1] || !guard_of(m, &attr.epsilon))
        return NULL;
    return build_node(b, op, &attr, 2, ins);
}

static Node *layer_norm(Build *b, const Match *m)
{
    return normalization(b, m, OP_layer_normalization);
}

static Node *rms_norm(Build *b, const Match *m)
{
    return normalization(b, m, OP_rms_normalization);
}

/* The last axis is said as -1, as by default. */
static int64_t axis_said(const Match *m)
{
    const int axis = only_axis(m);
    return axis == m->x[0]->type->rank - 1 ? -1 : axis;
}

static Node *softmax(Build *b, const Match *m)
{
    const AxisAttr attr = { axis_said(m) };
    return CALL_ATTR(b, softmax, attr, m->x[0]);
}

static Node *log_softmax(Build *b, const Match *m)
{
    const LogSoftmaxAttr attr = { .axis = axis_said(m) };
    return CALL_ATTR(b, log_softmax, attr, m->x[0]);
}

static Node *swish(Build *b, const Match *m)
{
    const Tensor *t = node_constant(m->constant[0], 64);
    if (!t || tensor_elements(t) != 1 || t->type->rank > m->root->type->rank)
        return NULL;
    const AlphaAttr attr = { (float)tensor_get_f64(t, 0) };
    if (!is_no_f64(m) && (double)attr.alpha != tensor_get_f64(t, 0))
        return NULL;
    return CALL_ATTR(b, swish, attr, m->x[0]);
}

/* A factor or term has exactly the shape that was normalized. */
static bool spans_axes(const Match *m)
{
    const Node *norm = m->node[m->n_nodes - 1]->op == OP_cast ? m->node[m->n_nodes - 2] : m->node[m->n_nodes - 1];
    const Type *x = in(norm, 0)->type, *t = m->x[MATCH_LEAVES - 1]->type;
    const int64_t axis = ((const NormAttr *)norm->attr)->axis;
    const int first = (int)(axis < 0 ? axis + x->rank : axis);
    if (x->rank < 0 || t->rank != x->rank - first || t->dtype != m->root->type->dtype || !type_known(t))
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dims[i] != x->dims[first + i])
            return false;
    return true;
}

/* Widened, normalized in f32, narrowed and then scaled: one rounding less than that is ours. */
static bool goes_wide_and_back(const Match *m)
{
    return is_float_no_f64(m) && m->root->type == m->x[0]->type && spans_axes(m);
}

/* ---- spellings ---- */

#define KEPT(reduction, p) WITH(P(reduction, p, CONST), ReduceAttr, .keepdims = true)
#define MEAN(p)            KEPT(reduce_mean, p)
#define SQUARE2(p)         P(mul, p, p)
#define SQUAREP(p)         P(pow, p, EQ(2))
#define OFF                P(sub, X, MEAN(X))
#define ROOT(p)            P(sqrt, P(add, MEAN(p), CONST))

#define NORM_SPELLINGS(name, build, D, square, squared)                                                                \
    { name "-div-" square, ROUNDS, P(div, D, ROOT(squared(D))), NULL, build, normalizes },                             \
        { name "-reciprocal-" square, ROUNDS, P(mul, D, P(reciprocal, ROOT(squared(D)))), NULL, build, normalizes },   \
    {                                                                                                                  \
        name "-one-over-" square, ROUNDS, P(mul, D, P(div, EQ(1), ROOT(squared(D)))), NULL, build, normalizes          \
    }

#define HALF_SPELLINGS(name, become, GAUSS)                                                                            \
    { name "-half-last", ROUNDS, P(mul, P(mul, X, GAUSS), EQ(0.5)), become, NULL, NULL },                              \
        { name "-half-first", ROUNDS, P(mul, P(mul, X, EQ(0.5)), GAUSS), become, NULL, NULL },                         \
    {                                                                                                                  \
        name "-half-inside", ROUNDS, P(mul, X, P(mul, GAUSS, EQ(0.5))), become, NULL, NULL                             \
    }

#define ROOT_HALF   EQ(0.70710678118654752)
#define ROOT_TWO    EQ(1.41421356237309505)
#define TANH_SCALE  EQ(0.79788456080286536)
#define TANH_CUBIC  EQ(0.044715)
#define ERF_DIV     P(add, P(erf, P(div, X, ROOT_TWO)), EQ(1))
#define ERF_MUL     P(add, P(erf, P(mul, X, ROOT_HALF)), EQ(1))
#define ONE_TANH(p) P(add, P(tanh, p), EQ(1))
#define CUBIC(cube) ONE_TANH(P(mul, P(add, X, P(mul, cube, TANH_CUBIC)), TANH_SCALE))
#define FACTORED    ONE_TANH(P(mul, P(mul, X, TANH_SCALE), P(add, P(mul, P(mul, X, TANH_CUBIC), X), EQ(1))))
#define GELU_E      WITH(P(gelu, X), GeluAttr, .approximate = GELU_ERF)
#define GELU_T      WITH(P(gelu, X), GeluAttr, .approximate = GELU_TANH)
#define WIDENED     WITH(P(cast, X), CastAttr, .to = F32 + 1)
#define SHIFTED     P(sub, X, KEPT(reduce_max, X))

/* clang-format off */
static const Rule rules[] = {
    NORM_SPELLINGS("layer-norm", layer_norm, OFF, "pow", SQUAREP),
    NORM_SPELLINGS("layer-norm", layer_norm, OFF, "mul", SQUARE2),
    NORM_SPELLINGS("rms-norm", rms_norm, X, "pow", SQUAREP),
    NORM_SPELLINGS("rms-norm", rms_norm, X, "mul", SQUARE2),
    { "layer-norm-scale",  ROUNDS, P(mul, ONCE(P(layer_normalization, X, EQ(1))), U), LIKE(1, P(layer_normalization, X, U)),    NULL, spans_axes },
    { "layer-norm-bias",   ROUNDS, P(add, ONCE(P(layer_normalization, X, Y)), U),     LIKE(1, P(layer_normalization, X, Y, U)), NULL, spans_axes },
    { "rms-norm-scale",    ROUNDS, P(mul, ONCE(P(rms_normalization, X, EQ(1))), U),   LIKE(1, P(rms_normalization, X, U)),      NULL, spans_axes },
    { "rms-norm-narrow",   ROUNDS, P(mul, ONCE(P(cast, ONCE(P(rms_normalization, WIDENED, EQ(1))))), U),
                                                                                LIKE(2, P(rms_normalization, X, U)), NULL, goes_wide_and_back },
    HALF_SPELLINGS("gelu-erf-div",      GELU_E, ERF_DIV),
    HALF_SPELLINGS("gelu-erf-mul",      GELU_E, ERF_MUL),
    HALF_SPELLINGS("gelu-tanh-pow",     GELU_T, CUBIC(P(pow, X, EQ(3)))),
    HALF_SPELLINGS("gelu-tanh-mul",     GELU_T, CUBIC(P(mul, X, P(mul, X, X)))),
    HALF_SPELLINGS("gelu-tanh-factors", GELU_T, FACTORED),
    { "silu",              ROUNDS, P(mul, X, P(sigmoid, X)),                    P(swish, X),      NULL,    NULL    },
    { "swish-scaled",      ROUNDS, P(mul, X, P(sigmoid, P(mul, X, CONST))),     NULL,             swish,   NULL    },
    { "mish",              ROUNDS, P(mul, X, P(tanh, P(softplus, X))),          P(mish, X),       NULL,    NULL    },
    { "hard-sigmoid-clip", ROUNDS, P(div, P(clip, P(add, X, EQ(3)), EQ(0.0), EQ(6)), EQ(6)),
                     WITH(P(hard_sigmoid, X), SlopeAttr, .alpha = 1.0f / 6, .beta = 0.5f), NULL,    is_float_no_f64 },
    { "hard-swish-sigmoid", ROUNDS, P(mul, X, WITH(P(hard_sigmoid, X), SlopeAttr, .alpha = 1.0f / 6, .beta = 0.5f)),
                                                                                P(hard_swish, X), NULL,    is_float_no_f64 },
    { "hard-swish-clip",   ROUNDS, P(div, P(mul, X, P(clip, P(add, X, EQ(3)), EQ(0.0), EQ(6))), EQ(6)),
                                                                                P(hard_swish, X), NULL,    is_float  },
    { "softmax",           ROUNDS, P(div, P(exp, SHIFTED), KEPT(reduce_sum, P(exp, SHIFTED))),
                                                                                NULL,             softmax, softens },
    { "log-softmax",       ROUNDS, P(sub, SHIFTED, P(log, KEPT(reduce_sum, P(exp, SHIFTED)))),
                                                                                NULL,             log_softmax, softens },
};
/* clang-format on */

const Pass pass_raise_patterns = {
    .name = "raise-patterns", .needs = TYPED, .may = ROUNDS, .rules = rules, .n_rules = COUNT(rules)
};
