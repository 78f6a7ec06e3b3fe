/* cross_entropy and nll: losses over classes, as PyTorch defines them.
 *
 *     cross_entropy(logits, target, class_weight, sample_weight)      nll(log_prob, target, class_weight, sample_weight)
 *
 * Targets are classes (integers, of the logits' shape without the axis of classes) or, for cross_entropy, probabilities
 * (floats of the logits' shape).  A target equal to ignore_index has weight and loss zero, whatever the logits there
 * are; any other target outside of the classes is an error of the evaluation.  The mean over classes divides by the
 * sum of the weights of the targets, that over probabilities by the number (or weights) of samples.
 */
#include "ops/card/shapes.h"
#include "ops/loss/classes.h"
#include "ops/norm/norm.h"

static const AttrSpec cross_entropy_attrs[] = {
    ATTR(ClassLossAttr, axis, INT, 1),
    ATTR(ClassLossAttr, label_smoothing, FLOAT, 0),
    ATTR(ClassLossAttr, ignore_index, INT, -100),
    ATTR_CHOICE(ClassLossAttr, reduction, loss_reductions, LOSS_MEAN),
    ATTR_LAST,
};

static const AttrSpec nll_attrs[] = {
    ATTR(ClassLossAttr, axis, INT, 1),
    ATTR(ClassLossAttr, ignore_index, INT, -100),
    ATTR_CHOICE(ClassLossAttr, reduction, loss_reductions, LOSS_MEAN),
    ATTR_LAST,
};

/* ---- types ---- */

static const Type *infer_cross_entropy(Infer *q)
{
    return infer_class_loss(q, true);
}

static const Type *infer_nll(Infer *q)
{
    return infer_class_loss(q, false);
}

/* Label smoothing of a target distribution: (1 - s) x + s / n. */
static Node *smooth(Build *b, const Classes *c, Node *x)
{
    if (c->smoothing == 0)
        return x;
    return CALL(b, add, CALL(b, mul, x, loss_number(b, c, 1 - c->smoothing)),
                loss_number(b, c, c->smoothing / (double)c->n));
}

/* ---- the value ---- */

/* What each column loses by a class: minus its log-probability; with smoothing, a part of that of every class too. */
static Node *lost_by_class(Build *b, const Classes *c, Node *log_prob)
{
    Node *lost = loss_times(b, CALL(b, neg, make_gather_elements(b, log_prob, c->index, c->axis)), c->own_weight);
    if (c->smoothing != 0) {
        Node *all = CALL(b, neg, loss_sum_of_classes(b, c, loss_times(b, log_prob, c->class_weight)));
        lost = CALL(b, mul, lost, loss_number(b, c, 1 - c->smoothing));
        lost = CALL(b, add, lost, CALL(b, mul, all, loss_number(b, c, c->smoothing / (double)c->n)));
    }
    return CALL(b, where, c->ignored, loss_number(b, c, 0), loss_times(b, lost, c->sample_weight));
}

static Node *lost_by_probability(Build *b, const Classes *c, Node *log_prob, Node *target)
{
    Node *wanted = loss_times(b, smooth(b, c, make_cast(b, target, c->t)), c->class_weight);
    return loss_times(b, CALL(b, neg, loss_sum_of_classes(b, c, CALL(b, mul, log_prob, wanted))), c->sample_weight);
}

static Node *expand_cross_entropy(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Classes c = loss_read_classes(b, s, (double)((const ClassLossAttr *)s->attr)->label_smoothing);
    Node *log_prob = make_log_softmax(b, make_cast(b, s->in[LOGITS], c.t), c.axis);
    Node *lost = c.index ? lost_by_class(b, &c, log_prob) : lost_by_probability(b, &c, log_prob, s->in[TARGET]);
    return loss_total(b, lost, c.weight, c.reduction, c.positions);
}

static Node *expand_nll(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Classes c = loss_read_classes(b, s, 0);
    return loss_total(b, lost_by_class(b, &c, make_cast(b, s->in[LOGITS], c.t)), c.weight, c.reduction, c.positions);
}

/* ---- the gradient ---- */

/* softmax(x) - wanted, for each column its part of the loss: with wanted = the target, or what smoothing and weights of
 * classes make of it, in which case the probabilities count as often as the weights sum up to. */
static Node *slope_by_class(Build *b, const Classes *c, Node *prob, Node *share)
{
    Node *hit = loss_one_hot(b, c), *slope;
    if (c->smoothing == 0 || !c->class_weight) {
        slope = CALL(b, mul, CALL(b, sub, prob, smooth(b, c, hit)), loss_times(b, share, c->weight));
    } else {
        const double rest = c->smoothing / (double)c->n;
        Node *own = CALL(b, mul, c->own_weight, loss_number(b, c, 1 - c->smoothing));
        Node *others = CALL(b, mul, c->class_weight, loss_number(b, c, rest));
        Node *total = CALL(b, add, own, loss_sum_of_classes(b, c, others));
        Node *wanted = CALL(b, add, CALL(b, mul, own, hit), others);
        slope = CALL(b, mul, CALL(b, sub, CALL(b, mul, prob, total), wanted), loss_times(b, share, c->sample_weight));
    }
    return CALL(b, where, c->ignored, loss_number(b, c, 0), slope);
}

static void adjoint_cross_entropy(Build *b, const Site *s, Node **dx)
{
    const Classes c = loss_read_classes(b, s, (double)((const ClassLossAttr *)s->attr)->label_smoothing);
    Node *share = loss_share(b, s->dout[0], c.weight, c.reduction, c.positions);
    if (c.index) {
        if (s->want[LOGITS])
            dx[LOGITS] = slope_by_class(b, &c, make_softmax(b, s->in[LOGITS], c.axis), share);
        return;
    }
    share = loss_times(b, share, c.sample_weight);
    if (s->want[LOGITS]) {
        Node *wanted = loss_times(b, smooth(b, &c, make_cast(b, s->in[TARGET], c.t)), c.class_weight);
        Node *prob = make_softmax(b, s->in[LOGITS], c.axis);
        Node *slope = CALL(b, sub, CALL(b, mul, prob, loss_sum_of_classes(b, &c, wanted)), wanted);
        dx[LOGITS] = CALL(b, mul, slope, share);
    }
    if (s->want[TARGET]) {
        Node *lost = CALL(b, neg, make_log_softmax(b, s->in[LOGITS], c.axis));
        Node *factor = CALL(b, mul, share, loss_number(b, &c, 1 - c.smoothing));
        dx[TARGET] = CALL(b, mul, loss_times(b, lost, c.class_weight), factor);
    }
}

static void adjoint_nll(Build *b, const Site *s, Node **dx)
{
    const Classes c = loss_read_classes(b, s, 0);
    Node *share = CALL(b, mul, loss_share(b, s->dout[0], c.weight, c.reduction, c.positions), c.weight);
    if (s->want[LOGITS])
        dx[LOGITS] = CALL(b, neg, CALL(b, mul, loss_one_hot(b, &c), share));
}

/* ---- samples ---- */

static Node *sample_cross_entropy(Build *b, Rng *rng, int variant)
{
    return sample_class_loss(b, rng, variant, OP_cross_entropy);
}

static Node *sample_nll(Build *b, Rng *rng, int variant)
{
    return sample_class_loss(b, rng, variant, OP_nll);
}

const OpDef op_cross_entropy = {
    .name = "cross_entropy",
    CLASS_LOSS_CARD,
    .attrs = cross_entropy_attrs,
    .infer = infer_cross_entropy,
    .expand = expand_cross_entropy,
    .sample = sample_cross_entropy,
    .adjoint = adjoint_cross_entropy,
    .differentiable = 1u << LOGITS | 1u << TARGET,
    .weight = 14,
    .brief =
        "How far softmax(logits) is from the classes or probabilities that are wanted, as PyTorch's cross_entropy; "
        "operands: logits, target, weights of classes, weights of samples.",
};

const OpDef op_nll = {
    .name = "nll",
    CLASS_LOSS_CARD,
    .attrs = nll_attrs,
    .infer = infer_nll,
    .expand = expand_nll,
    .sample = sample_nll,
    .adjoint = adjoint_nll,
    .differentiable = 1u << LOGITS,
    .weight = 10,
    .brief = "The mean of minus the log-probabilities of the classes that are wanted, as PyTorch's nll_loss; operands: "
             "log-probabilities, target, weights of classes, weights of samples.",
};
