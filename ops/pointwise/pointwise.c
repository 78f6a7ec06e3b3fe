/* The cards of the elementwise ops: the table of ops/rows.def, and the few whose types or classes are their own. */
#include "ops/card/attrs.h"
#include "ops/card/cards.h"
#include "ops/card/row.h"

/* ---- attributes; their order gives the expressions' a and b ---- */

typedef struct SeluAttr {
    float alpha, gamma;
} SeluAttr;

typedef struct ShrinkAttr {
    float bias, lambd;
} ShrinkAttr;

typedef struct ModAttr {
    bool fmod;
} ModAttr;

typedef struct BitShiftAttr {
    int direction;
} BitShiftAttr;

typedef struct IsInfAttr {
    bool detect_negative, detect_positive;
} IsInfAttr;

static const char *const gelu_modes[] = { "none", "tanh", NULL };
static const char *const level_kinds[] = { "dynamic8", "unsigned8", "dynamic4", "linear4", NULL };
static const char *const directions[] = { "LEFT", "RIGHT", NULL };

static const AttrSpec leaky_relu_attrs[] = { ATTR(AlphaAttr, alpha, FLOAT, 0.01f), ATTR_LAST };
static const AttrSpec thresholded_relu_attrs[] = { ATTR(AlphaAttr, alpha, FLOAT, 1), ATTR_LAST };
static const AttrSpec elu_attrs[] = { ATTR(AlphaAttr, alpha, FLOAT, 1), ATTR_LAST };
static const AttrSpec celu_attrs[] = { ATTR(AlphaAttr, alpha, FLOAT, 1), ATTR_LAST };
static const AttrSpec swish_attrs[] = { ATTR(AlphaAttr, alpha, FLOAT, 1), ATTR_LAST };
static const AttrSpec selu_attrs[] = {
    ATTR(SeluAttr, alpha, FLOAT, 1.67326319217681884765625),
    ATTR(SeluAttr, gamma, FLOAT, 1.05070102214813232421875),
    ATTR_LAST,
};
static const AttrSpec hard_sigmoid_attrs[] = {
    ATTR(SlopeAttr, alpha, FLOAT, 0.2f),
    ATTR(SlopeAttr, beta, FLOAT, 0.5f),
    ATTR_LAST,
};
static const AttrSpec gelu_attrs[] = { ATTR_CHOICE(GeluAttr, approximate, gelu_modes, 0), ATTR_LAST };
static const AttrSpec shrink_attrs[] = {
    ATTR(ShrinkAttr, bias, FLOAT, 0),
    ATTR(ShrinkAttr, lambd, FLOAT, 0.5f),
    ATTR_LAST,
};
static const AttrSpec mod_attrs[] = { ATTR(ModAttr, fmod, BOOL, false), ATTR_LAST };
static const AttrSpec levels_attrs[] = { ATTR_CHOICE(LevelsAttr, levels, level_kinds, LEVELS_DYNAMIC8), ATTR_LAST };
static const AttrSpec bit_shift_attrs[] = {
    { .name = "direction",
      .kind = ATTR_ENUM,
      .offset = offsetof(BitShiftAttr, direction),
      .choices = directions,
      .required = true },
    ATTR_LAST,
};
static const AttrSpec is_inf_attrs[] = {
    ATTR(IsInfAttr, detect_negative, BOOL, true),
    ATTR(IsInfAttr, detect_positive, BOOL, true),
    ATTR_LAST,
};

/* ---- types that are not simply all alike ---- */

/* The exponent has a type of its own. */
static const Type *infer_pow(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *y = infer_tensor(q, 1);
    if (!x || !y)
        return NULL;
    if (dtype_class(x->dtype) == CLASS_BOOL || dtype_class(y->dtype) == CLASS_BOOL || x->dtype == STRING ||
        y->dtype == STRING)
        return infer_fail(q, "does not take %s to the power of %s", dtype_name(x->dtype), dtype_name(y->dtype));
    return infer_broadcast(q, 0, x->dtype);
}

/* Broadcasting goes one way: what the other operands say must fit into operand 0. */
static const Type *infer_one_way(Infer *q)
{
    const Type *t = infer_row(q);
    if (!t || type_agrees(t, q->in[0]))
        return t ? q->in[0] : NULL;
    return infer_fail(q, "operands do not broadcast into %s", type_text(q->scratch, q->in[0]));
}

static const Type *infer_p_relu(Infer *q)
{
    return infer_tensor(q, 1) ? infer_one_way(q) : NULL;
}

static const Type *infer_clip(Infer *q)
{
    for (int i = 1; i < q->n_in; i++) {
        if (!infer_has(q, i))
            continue;
        const Type *t = infer_tensor(q, i);
        if (!t)
            return NULL;
        if (t->rank > 0 && type_elements(t) >= 0 && type_elements(t) != 1)
            return infer_fail(q, "operand %d must be one number, not %s", i, type_text(q->scratch, t));
    }
    if (!infer_row(q))
        return NULL;
    return q->in[0];
}

static const Type *infer_where(Infer *q)
{
    const Type *c = infer_tensor(q, 0);
    if (!c)
        return NULL;
    if (c->dtype != BOOL)
        return infer_fail(q, "its condition must be bool, not %s", dtype_name(c->dtype));
    return infer_row(q);
}

/* ---- mixed precision ---- */

/* Mixed precision asks about the graph as it was before amp_casts were put in: they are looked through. */
static const Node *behind_casts(const Node *x)
{
    while (x && x->op == OP_amp_cast)
        x = in(x, 0);
    return x;
}

/* Powers of what lies within a few units stay there. */
static bool is_bounded(const Node *x)
{
    x = behind_casts(x);
    return x && op_of(x)->amp.bounded;
}

/* By the exponent: 1 moves data, a square and inverse roots spread the range, a root is benign. */
static AmpClass amp_pow(const Node *n, DType target)
{
    enum { SMALL = 64 };
    const Tensor *y = in(n, 1) ? node_constant(in(n, 1), SMALL) : NULL;
    if (!y || tensor_elements(y) != 1)
        return AMP_F;
    const double e = tensor_get_f64(y, 0);
    if (e == 1)
        return AMP_P;
    if (e == 0.5)
        return AMP_E;
    if (e == 2 || e == 3)
        return target == F16 && !is_bounded(in(n, 0)) ? AMP_EX : AMP_E;
    return e == -1 || e == -0.5 ? (target == F16 ? AMP_EX : AMP_E) : AMP_F;
}

/* A square spreads the range. */
static AmpClass amp_mul(const Node *n, DType target)
{
    const bool square = behind_casts(in(n, 0)) == behind_casts(in(n, 1));
    return target == F16 && square && !is_bounded(in(n, 0)) ? AMP_EX : AMP_W;
}

static bool divides(const Node *x)
{
    for (const Use *u = x->uses; u; u = u->next)
        if (u->user->op == OP_reciprocal || (u->user->op == OP_div && u == &u->user->in[1]) ||
            (u->user->op == OP_amp_cast && divides(u->user)))
            return true;
    return false;
}

/* What divides by a root divides by whatever rounding leaves of it. */
static AmpClass amp_sqrt(const Node *n, DType target)
{
    (void)target;
    return divides(n) ? AMP_FI : AMP_E;
}

/* Long sums grow beyond their terms. */
static AmpClass amp_sum(const Node *n, DType target)
{
    enum { FEW = 4 };
    (void)target;
    return n->n_in > FEW ? AMP_FO : AMP_W;
}

/* ---- the table ---- */

#define KINDS_F     ROW_F
#define KINDS_R     (ROW_F | ROW_R)
#define KINDS_FI    (ROW_F | ROW_I)
#define KINDS_FIU   (ROW_F | ROW_I | ROW_U)
#define KINDS_FIUBS (ROW_F | ROW_I | ROW_U | ROW_B | ROW_S)
#define KINDS_IU    (ROW_I | ROW_U)
#define KINDS_B     ROW_B

#define QUANT_OF_TABLE                                                                                                 \
    {                                                                                                                  \
        .in = { QUANT_TABLE }, .out = { QUANT_TABLE }                                                                  \
    }
#define QUANT_OF_FLOAT                                                                                                 \
    {                                                                                                                  \
        .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT }                                                                  \
    }
#define QUANT_OF_INPUT                                                                                                 \
    {                                                                                                                  \
        .in = { QUANT_INPUT }, .out = { QUANT_INPUT }                                                                  \
    }
#define QUANT_OF_NEVER                                                                                                 \
    {                                                                                                                  \
        .in = { QUANT_NEVER }, .out = { QUANT_NEVER }                                                                  \
    }
#define QUANT_OF_COMPARE                                                                                               \
    {                                                                                                                  \
        .in = { QUANT_FLOAT }, .out = { QUANT_NEVER }                                                                  \
    }
#define QUANT_OF_PASS                                                                                                  \
    {                                                                                                                  \
        .in = { QUANT_AGNOSTIC }, .out = { QUANT_AGNOSTIC }, .same_scale = true                                        \
    }
#define QUANT_OF_SELECT                                                                                                \
    {                                                                                                                  \
        .in = { QUANT_NEVER, QUANT_AGNOSTIC }, .out = { QUANT_AGNOSTIC }, .same_scale = true                           \
    }

#define SAMPLE(id, lo, hi)                                                                                             \
    static Node *sample_##id(Build *b, Rng *rng, int variant)                                                          \
    {                                                                                                                  \
        return sample_row(b, rng, variant, OP_##id, lo, hi);                                                           \
    }
#define ROW(id, least, n, kinds, value, back, attrs, lo, hi, ...)  SAMPLE(id, lo, hi)
#define PICK(id, least, n, kinds, value, back, attrs, lo, hi, ...) SAMPLE(id, lo, hi)
#define FOLD(id, least, n, kinds, value, back, attrs, lo, hi, ...) SAMPLE(id, lo, hi)
#define TEST(id, least, n, kinds, value, back, attrs, lo, hi, ...) SAMPLE(id, lo, hi)
#include "ops/rows.def"

/* Quoted here, where the expression is not yet expanded. */
#define VALUE(id, reads, types, text, lead, fold, test)                                                                \
    static const Row row_##id = { text, ROW_##id, reads, KINDS_##types, lead, fold, test };
#define ROW(id, least, n, kinds, value, ...)  VALUE(id, n, kinds, #value, 0, false, false)
#define PICK(id, least, n, kinds, value, ...) VALUE(id, n, kinds, #value, 1, false, false)
#define FOLD(id, least, n, kinds, value, ...) VALUE(id, n, kinds, #value, 0, true, false)
#define TEST(id, least, n, kinds, value, ...) VALUE(id, n, kinds, #value, 0, false, true)
#include "ops/rows.def"

/* The last columns continue the list of fields. */
#define CARD(id, least, most, attributes, diff, narrow16, narrowb16, why, quantized, cost, types, onnx_name, ...)      \
    const OpDef op_##id = { .name = #id,                                                                               \
                            .min_in = least,                                                                           \
                            .max_in = most,                                                                            \
                            .attrs = attributes,                                                                       \
                            .infer = types,                                                                            \
                            .row = &row_##id,                                                                          \
                            .sample = sample_##id,                                                                     \
                            .n_variants = 28,                                                                          \
                            .adjoint = (diff) ? adjoint_##id : NULL,                                                   \
                            .differentiable = diff,                                                                    \
                            .weight = cost,                                                                            \
                            .access.kind = ACCESS_ROW,                                                                 \
                            .amp.f16 = AMP_##narrow16,                                                                 \
                            .amp.bf16 = AMP_##narrowb16,                                                               \
                            .amp.reason = REASON_##why,                                                                \
                            .quant = QUANT_OF_##quantized,                                                             \
                            .onnx.op = onnx_name,                                                                      \
                            .onnx.since = __VA_ARGS__ };
#define ROW(id, least, n, kinds, value, back, attrs, lo, hi, ...)  CARD(id, least, n, attrs, __VA_ARGS__)
#define PICK(id, least, n, kinds, value, back, attrs, lo, hi, ...) CARD(id, least, n, attrs, __VA_ARGS__)
#define FOLD(id, least, n, kinds, value, back, attrs, lo, hi, ...) CARD(id, least, -1, attrs, __VA_ARGS__)
#define TEST(id, least, n, kinds, value, back, attrs, lo, hi, ...) CARD(id, least, n, attrs, __VA_ARGS__)
#include "ops/rows.def"
