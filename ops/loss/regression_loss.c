/* mse, l1 and huber: how far x is from what is wanted, element by element, as PyTorch defines them.
 *
 *     mse(x, target, sample_weight)
 *
 * huber is d^2 / 2 up to delta and delta (|d| - delta / 2) beyond: c (|d| - c / 2) with c = min(|d|, delta). */
#include "ops/card/shapes.h"
#include "ops/loss/train_loss.h"
#include "ops/norm/norm.h"

static const AttrSpec sum_attrs[] = {
    ATTR_CHOICE(LossSumAttr, reduction, loss_reductions, LOSS_MEAN),
    ATTR_LAST,
};

static const AttrSpec huber_attrs[] = {
    ATTR(LossSumAttr, delta, FLOAT, 1),
    ATTR_CHOICE(LossSumAttr, reduction, loss_reductions, LOSS_MEAN),
    ATTR_LAST,
};

enum { X, TARGET, SAMPLE_WEIGHT };

static const Type *infer_regression(Infer *q)
{
    const Type *x = infer_floats(q, 0), *target = x ? infer_tensor(q, TARGET) : NULL;
    if (!target)
        return NULL;
    if (!type_agrees(x, type_with_dtype(q->types, target, x->dtype)))
        return infer_fail(q, "targets are %s for %s", type_text(q->scratch, target), type_text(q->scratch, x));
    return infer_sample_weight(q, SAMPLE_WEIGHT, x->rank, x->dims) ? infer_loss_scalar(q) : NULL;
}

static const Type *infer_huber(Infer *q)
{
    const LossSumAttr *at = q->attr;
    return at->delta > 0 ? infer_regression(q) : infer_fail(q, "delta is above 0, got %g", (double)at->delta);
}

/* The loss of each element, from its difference to the target. */
static Node *square(Build *b, Node *d, const Site *s)
{
    (void)s;
    return CALL(b, mul, d, d);
}

static Node *distance(Build *b, Node *d, const Site *s)
{
    (void)s;
    return CALL(b, abs, d);
}

static Node *delta_of(Build *b, Node *d, const Site *s)
{
    return b->status == OK ? build_scalar(b, d->type->dtype, (double)((const LossSumAttr *)s->attr)->delta) : NULL;
}

static Node *square_or_distance(Build *b, Node *d, const Site *s)
{
    Node *far = CALL(b, abs, d), *near = CALL(b, min, far, delta_of(b, d, s));
    Node *half = b->status == OK ? build_scalar(b, d->type->dtype, 0.5) : NULL;
    return CALL(b, mul, near, CALL(b, sub, far, CALL(b, mul, near, half)));
}

/* The derivative of that loss by the difference. */
static Node *square_slope(Build *b, Node *d, const Site *s)
{
    (void)s;
    return CALL(b, add, d, d);
}

static Node *distance_slope(Build *b, Node *d, const Site *s)
{
    (void)s;
    return CALL(b, sign, d);
}

static Node *square_or_distance_slope(Build *b, Node *d, const Site *s)
{
    Node *delta = delta_of(b, d, s);
    return CALL(b, clip, d, CALL(b, neg, delta), delta);
}

typedef Node *Elementwise(Build *b, Node *d, const Site *s);

static Node *difference(Build *b, const Site *s, DType t)
{
    return CALL(b, sub, make_cast(b, s->in[X], t), make_cast(b, s->in[TARGET], t));
}

static Node *expand_regression(Build *b, const Site *s, Elementwise *loses)
{
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[X]->type;
    const DType t = make_width(x->dtype);
    Node *each = loses(b, difference(b, s, t), s), *weight = loss_weight(b, s, SAMPLE_WEIGHT, t, x->rank, x->dims);
    if (weight)
        each = CALL(b, mul, each, weight);
    return loss_total(b, each, weight, ((const LossSumAttr *)s->attr)->reduction, type_elements(x));
}

static void adjoint_regression(Build *b, const Site *s, Node **dx, Elementwise *slope)
{
    const Type *x = s->in[X]->type;
    const DType t = make_width(x->dtype);
    Node *weight = loss_weight(b, s, SAMPLE_WEIGHT, t, x->rank, x->dims);
    Node *share = loss_share(b, s->dout[0], weight, ((const LossSumAttr *)s->attr)->reduction, type_elements(x));
    if (weight)
        share = CALL(b, mul, share, weight);
    Node *d = CALL(b, mul, slope(b, difference(b, s, t), s), share);
    if (s->want[X])
        dx[X] = d;
    if (s->want[TARGET])
        dx[TARGET] = CALL(b, neg, d);
}

static Node *sample_regression(Build *b, Rng *rng, int variant, Op op)
{
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    const DType dtype = sample_float(rng), other = rng_below(rng, 2) ? dtype : F32;
    const LossSumAttr at = { .reduction = variant / 6 % 2, .delta = variant % 4 ? 1 : 0.75f };
    sample_dims(rng, rank, 4, dims);
    Node *in[] = { sample_tensor(b, rng, dtype, rank, dims, -2, 2),
                   sample_tensor(b, rng, variant % 5 ? other : I32, rank, dims, -2, 2),
                   sample_loss_weight(b, rng, other, rank, dims) };
    return build_node(b, op, &at, in[2] ? 3 : 2, in);
}

#define REGRESSION_CARD(word, ask, attributes, loses, slope, sentence)                                                 \
    static Node *expand_##word(Build *b, const Site *s)                                                                \
    {                                                                                                                  \
        return expand_regression(b, s, loses);                                                                         \
    }                                                                                                                  \
    static void adjoint_##word(Build *b, const Site *s, Node **dx)                                                     \
    {                                                                                                                  \
        adjoint_regression(b, s, dx, slope);                                                                           \
    }                                                                                                                  \
    static Node *sample_##word(Build *b, Rng *rng, int variant)                                                        \
    {                                                                                                                  \
        return sample_regression(b, rng, variant, OP_##word);                                                          \
    }                                                                                                                  \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = 2,                                                                                                   \
        .max_in = 3,                                                                                                   \
        .attrs = attributes,                                                                                           \
        .infer = ask,                                                                                                  \
        .expand = expand_##word,                                                                                       \
        .adjoint = adjoint_##word,                                                                                     \
        .sample = sample_##word,                                                                                       \
        .n_variants = 48,                                                                                              \
        .differentiable = 1u << X | 1u << TARGET,                                                                      \
        .weight = 8,                                                                                                   \
        .access.kind = ACCESS_COMPOSITE,                                                                               \
        .amp = { AMP_FO, AMP_FO, 1u << SAMPLE_WEIGHT, REASON_PRECISION, NULL },                                        \
        .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },                                                    \
        .brief = sentence " operands: values, target, weights of samples.",                                            \
    }
REGRESSION_CARD(mse, infer_regression, sum_attrs, square, square_slope, "The mean of squared differences;");
REGRESSION_CARD(l1, infer_regression, sum_attrs, distance, distance_slope, "The mean of absolute differences;");
REGRESSION_CARD(huber, infer_huber, huber_attrs, square_or_distance, square_or_distance_slope,
                "Squared differences up to delta, absolute ones beyond, as PyTorch's huber_loss;");
#undef REGRESSION_CARD
