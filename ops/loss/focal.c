/* focal: cross entropy of classes that weighs what is classified well less, as Lin et al. define it.
 *
 *     focal(logits, target, class_weight, sample_weight)
 *
 * Each term of cross_entropy is times (1 - p)^gamma, p being the probability of its class; with gamma = 0 it is
 * cross_entropy. */
#include "ops/loss/classes.h"
#include "ops/norm/norm.h"

static const AttrSpec focal_attrs[] = {
    ATTR(ClassLossAttr, axis, INT, 1),
    ATTR(ClassLossAttr, gamma, FLOAT, 2),
    ATTR(ClassLossAttr, ignore_index, INT, -100),
    ATTR_CHOICE(ClassLossAttr, reduction, loss_reductions, LOSS_MEAN),
    ATTR_LAST,
};

static const Type *infer_focal(Infer *q)
{
    const ClassLossAttr *at = q->attr;
    return at->gamma >= 0 ? infer_class_loss(q, false) : infer_fail(q, "gamma is 0 or more, got %g", (double)at->gamma);
}

/* The columns of a focal loss: all from p, the probability of the class that is wanted. */
typedef struct Focus {
    Node *prob, *hit; /* of every class; 1 at the target's */
    Node *p, *rest;   /* p and 1 - p, the sum of the others: nothing cancels */
    Node *rise;       /* -log p / (1 - p), which is 1 where p is: by its series there */
    Node *factor;     /* (1 - p)^gamma */
} Focus;

static Focus focus_on(Build *b, const Site *s, const Classes *c)
{
    const double near = 0x1p-12;
    Node *x = make_cast(b, s->in[LOGITS], c->t);
    Focus f = { .prob = make_softmax(b, x, c->axis), .hit = loss_one_hot(b, c) };
    Node *own = CALL(b, mul, f.prob, f.hit);
    f.p = loss_sum_of_classes(b, c, own);
    f.rest = loss_sum_of_classes(b, c, CALL(b, sub, f.prob, own));
    Node *log_prob = make_log_softmax(b, x, c->axis);
    Node *log_p = make_gather_elements(b, log_prob, c->index, c->axis), *least = loss_number(b, c, near);
    Node *series = CALL(b, add, CALL(b, mul, f.rest, loss_number(b, c, 1.0 / 3)), loss_number(b, c, 0.5));
    series = CALL(b, add, CALL(b, mul, f.rest, series), loss_number(b, c, 1));
    Node *ratio = CALL(b, div, CALL(b, neg, log_p), CALL(b, max, f.rest, least));
    f.rise = CALL(b, where, CALL(b, less, f.rest, least), series, ratio);
    f.factor = CALL(b, pow, f.rest, loss_number(b, c, (double)((const ClassLossAttr *)s->attr)->gamma));
    return f;
}

static Node *expand_focal(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Classes c = loss_read_classes(b, s, 0);
    const Focus f = focus_on(b, s, &c);
    Node *lost = CALL(b, mul, CALL(b, mul, f.factor, CALL(b, mul, f.rest, f.rise)), c.weight);
    return loss_total(b, CALL(b, where, c.ignored, loss_number(b, &c, 0), lost), c.weight, c.reduction, c.positions);
}

/* (prob - hit) (1 - p)^gamma (1 + gamma p rise) */
static void adjoint_focal(Build *b, const Site *s, Node **dx)
{
    const Classes c = loss_read_classes(b, s, 0);
    const Focus f = focus_on(b, s, &c);
    Node *share = loss_share(b, s->dout[0], c.weight, c.reduction, c.positions);
    Node *bend =
        CALL(b, mul, CALL(b, mul, f.p, f.rise), loss_number(b, &c, (double)((const ClassLossAttr *)s->attr)->gamma));
    Node *column = CALL(b, mul, f.factor, CALL(b, add, bend, loss_number(b, &c, 1)));
    Node *slope = CALL(b, mul, CALL(b, sub, f.prob, f.hit), CALL(b, mul, column, CALL(b, mul, share, c.weight)));
    if (s->want[LOGITS])
        dx[LOGITS] = CALL(b, where, c.ignored, loss_number(b, &c, 0), slope);
}

static Node *sample_focal(Build *b, Rng *rng, int variant)
{
    return sample_class_loss(b, rng, variant, OP_focal);
}

const OpDef op_focal = {
    .name = "focal",
    CLASS_LOSS_CARD,
    .attrs = focal_attrs,
    .infer = infer_focal,
    .expand = expand_focal,
    .sample = sample_focal,
    .adjoint = adjoint_focal,
    .differentiable = 1u << LOGITS,
    .weight = 20,
    .brief =
        "The cross entropy of classes, each sample's times (1 - p)^gamma where p is the probability of its class: what "
        "is learnt counts less; operands: logits, target, weights of classes, weights of samples.",
};
