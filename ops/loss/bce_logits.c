/* bce_logits: binary cross entropy of sigmoid(x), element by element, as PyTorch's binary_cross_entropy_with_logits.
 *
 *     bce_logits(logits, target, pos_weight, sample_weight)
 *
 * With gamma (a focal loss) the term of y is times sigmoid(-x)^gamma, that of 1 - y times sigmoid(x)^gamma: each by how
 * far from learnt it is, as in torchvision's sigmoid_focal_loss.
 *
 * pos_weight y softplus(-x) + (1 - y) softplus(x): for targets in [0, 1] no term is negative, so nothing cancels, in
 * the value or in the gradient. */
#include "ops/card/shapes.h"
#include "ops/loss/train_loss.h"
#include "ops/norm/norm.h"

static const AttrSpec bce_logits_attrs[] = {
    ATTR(LossSumAttr, gamma, FLOAT, 0),
    ATTR_CHOICE(LossSumAttr, reduction, loss_reductions, LOSS_MEAN),
    ATTR_LAST,
};

enum { LOGITS, TARGET, POS_WEIGHT, SAMPLE_WEIGHT };

/* pos_weight broadcasts to the logits: one number, or one for each of their last dimensions. */
static bool infer_pos_weight(Infer *q, const Type *x)
{
    if (!infer_has(q, POS_WEIGHT))
        return true;
    const Type *w = infer_tensor(q, POS_WEIGHT);
    if (!w)
        return false;
    bool fits = dtype_is_float(w->dtype) && (x->rank < 0 || w->rank <= x->rank);
    for (int i = 1; fits && x->rank >= 0 && i <= w->rank; i++)
        fits = w->dims[w->rank - i] == 1 || dims_fit(w->dims[w->rank - i], x->dims[x->rank - i]);
    if (!fits)
        infer_fail(q, "pos_weight %s does not broadcast to %s", type_text(q->scratch, w), type_text(q->scratch, x));
    return fits;
}

static const Type *infer_bce_logits(Infer *q)
{
    const LossSumAttr *at = q->attr;
    if (!(at->gamma >= 0))
        return infer_fail(q, "gamma is 0 or more, got %g", (double)at->gamma);
    const Type *x = infer_floats(q, 0), *target = x ? infer_tensor(q, TARGET) : NULL;
    if (!target)
        return NULL;
    if (!type_agrees(x, type_with_dtype(q->types, target, x->dtype)))
        return infer_fail(q, "targets are %s for %s", type_text(q->scratch, target), type_text(q->scratch, x));
    if (!infer_pos_weight(q, x) || !infer_sample_weight(q, SAMPLE_WEIGHT, x->rank, x->dims))
        return NULL;
    return infer_loss_scalar(q);
}

/* sigmoid(x)^gamma times y; y itself where gamma is 0. */
static Node *focus(Build *b, const Site *s, Node *x, Node *y)
{
    const double gamma = (double)((const LossSumAttr *)s->attr)->gamma;
    if (gamma == 0 || b->status != OK)
        return y;
    return CALL(b, mul, CALL(b, pow, CALL(b, sigmoid, x), build_scalar(b, x->type->dtype, gamma)), y);
}

/* The loss where the target is 0: softplus(x), times sigmoid(x)^gamma. */
static Node *lost_by(Build *b, const Site *s, Node *x)
{
    return focus(b, s, x, CALL(b, softplus, x));
}

/* Its derivative: sigmoid(x) + gamma sigmoid(-x) softplus(x), times sigmoid(x)^gamma. */
static Node *slope_of(Build *b, const Site *s, Node *x)
{
    const double gamma = (double)((const LossSumAttr *)s->attr)->gamma;
    Node *slope = CALL(b, sigmoid, x);
    if (gamma == 0 || b->status != OK)
        return slope;
    Node *more = CALL(b, mul, CALL(b, sigmoid, CALL(b, neg, x)), CALL(b, softplus, x));
    return focus(b, s, x, CALL(b, add, slope, CALL(b, mul, more, build_scalar(b, x->type->dtype, gamma))));
}

static Node *expand_bce_logits(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Type *type = s->in[LOGITS]->type;
    const DType t = make_width(type->dtype);
    Node *x = make_cast(b, s->in[LOGITS], t), *y = make_cast(b, s->in[TARGET], t);
    Node *pos = y, *neg = CALL(b, sub, build_scalar(b, t, 1), y);
    if (site_in(s, POS_WEIGHT))
        pos = CALL(b, mul, y, make_cast(b, s->in[POS_WEIGHT], t));
    Node *each = CALL(b, add, CALL(b, mul, pos, lost_by(b, s, CALL(b, neg, x))), CALL(b, mul, neg, lost_by(b, s, x)));
    Node *weight = loss_weight(b, s, SAMPLE_WEIGHT, t, type->rank, type->dims);
    if (weight)
        each = CALL(b, mul, each, weight);
    return loss_total(b, each, weight, ((const LossSumAttr *)s->attr)->reduction, type_elements(type));
}

/* (1 - y) sigmoid(x) - pos_weight y sigmoid(-x); with gamma both terms are the derivatives that include its factor. */
static void adjoint_bce_logits(Build *b, const Site *s, Node **dx)
{
    const Type *type = s->in[LOGITS]->type;
    const DType t = make_width(type->dtype);
    Node *x = s->in[LOGITS], *y = make_cast(b, s->in[TARGET], t), *minus = CALL(b, neg, x);
    Node *pos_weight = site_in(s, POS_WEIGHT) ? make_cast(b, s->in[POS_WEIGHT], t) : NULL;
    Node *weight = loss_weight(b, s, SAMPLE_WEIGHT, t, type->rank, type->dims);
    Node *share = loss_share(b, s->dout[0], weight, ((const LossSumAttr *)s->attr)->reduction, type_elements(type));
    if (weight)
        share = CALL(b, mul, share, weight);
    if (s->want[LOGITS]) {
        Node *up = CALL(b, mul, CALL(b, sub, build_scalar(b, t, 1), y), slope_of(b, s, x));
        Node *down = CALL(b, mul, pos_weight ? CALL(b, mul, y, pos_weight) : y, slope_of(b, s, minus));
        dx[LOGITS] = CALL(b, mul, CALL(b, sub, up, down), share);
    }
    if (s->want[TARGET]) {
        Node *lost = lost_by(b, s, minus);
        lost = pos_weight ? CALL(b, mul, lost, pos_weight) : lost;
        dx[TARGET] = CALL(b, mul, CALL(b, sub, lost, lost_by(b, s, x)), share);
    }
}

static Node *sample_bce_logits(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    const DType dtype = sample_float(rng), other = rng_below(rng, 2) ? dtype : F32;
    const LossSumAttr at = { .reduction = variant / 6 % 2, .gamma = variant % 4 ? 0 : (float)rng_range(rng, 1, 5) / 2 };
    sample_dims(rng, rank, 4, dims);
    const int pos_rank = (int)rng_below(rng, (uint64_t)(rank < 2 ? rank : 2) + 1);
    Node *in[] = { sample_tensor(b, rng, dtype, rank, dims, -6, 6),
                   sample_tensor(b, rng, variant % 5 ? other : I32, rank, dims, 0, 1),
                   rng_below(rng, 2) ? sample_tensor(b, rng, other, pos_rank, dims + rank - pos_rank, 0.5, 2) : NULL,
                   sample_loss_weight(b, rng, other, rank, dims) };
    return build_node(b, OP_bce_logits, &at, in[3] ? 4 : in[2] ? 3 : 2, in);
}

const OpDef op_bce_logits = {
    .name = "bce_logits",
    .min_in = 2,
    .max_in = 4,
    .attrs = bce_logits_attrs,
    .infer = infer_bce_logits,
    .expand = expand_bce_logits,
    .adjoint = adjoint_bce_logits,
    .sample = sample_bce_logits,
    .n_variants = 48,
    .differentiable = 1u << LOGITS | 1u << TARGET,
    .weight = 16,
    .access.kind = ACCESS_COMPOSITE,
    .amp = { AMP_FO, AMP_FO, 1u << POS_WEIGHT | 1u << SAMPLE_WEIGHT, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief =
        "The binary cross entropy of sigmoid(logits), as PyTorch's binary_cross_entropy_with_logits, with gamma as "
        "torchvision's sigmoid_focal_loss; operands: logits, target, weights of positive targets, weights of samples.",
};
