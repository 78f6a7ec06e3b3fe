/* cross_entropy and nll: losses over classes, as PyTorch defines them.
 *
 *     cross_entropy(logits, target, class_weight, sample_weight)      nll(log_prob, target, class_weight, sample_weight)
 *
 * Targets are classes (integers, of the logits' shape without the axis of classes) or, for cross_entropy, probabilities
 * (floats of the logits' shape).  A target equal to ignore_index has weight and loss zero, whatever the logits there
 * are; any other target outside of the classes is an error of the evaluation.  The mean over classes divides by the
 * sum of the weights of the targets, that over probabilities by the number (or weights) of samples. */
#include "ops/loss/train_loss.h"
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

enum { LOGITS, TARGET, CLASS_WEIGHT, SAMPLE_WEIGHT };

/* ---- types ---- */

/* The shape of the logits without the axis of classes. */
static const Type *samples_of(Infer *q, const Type *x, int axis)
{
    int64_t dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dims[rank++] = x->dims[i];
    return type_tensor(q->types, x->dtype, rank, dims);
}

static bool target_fits(Infer *q, const Type *x, const Type *samples, bool soft)
{
    const Type *target = q->in[TARGET];
    if (x->rank < 0 || target->rank < 0)
        return true;
    if (type_agrees(type_with_dtype(q->types, target, x->dtype), soft ? x : samples))
        return true;
    infer_fail(q, "targets are %s for scores %s", type_text(q->scratch, target), type_text(q->scratch, x));
    return false;
}

static const Type *infer_class_loss(Infer *q, bool may_be_soft)
{
    const ClassLossAttr *at = q->attr;
    const Type *x = infer_floats(q, 1), *target = x ? infer_tensor(q, TARGET) : NULL, *samples = NULL;
    int axis = 0;
    if (!target)
        return NULL;
    const bool soft = may_be_soft && dtype_is_float(target->dtype);
    if (!soft && !infer_integers(q, TARGET))
        return NULL;
    if (at->label_smoothing < 0 || at->label_smoothing > 1)
        return infer_fail(q, "label_smoothing is in [0, 1], got %g", (double)at->label_smoothing);
    if (x->rank >= 0 && !infer_axis(q, at->axis, x->rank, &axis))
        return NULL;
    if (x->rank >= 0 && x->dims[axis] == 0)
        return infer_fail(q, "a loss over no classes has no meaning");
    samples = x->rank < 0 ? x : samples_of(q, x, axis);
    if (!target_fits(q, x, samples, soft) ||
        (infer_has(q, CLASS_WEIGHT) && !infer_vector(q, CLASS_WEIGHT, x->rank < 0 ? DIM_UNKNOWN : x->dims[axis])) ||
        !infer_sample_weight(q, SAMPLE_WEIGHT, samples->rank, samples->dims))
        return NULL;
    return infer_loss_scalar(q);
}

static const Type *infer_cross_entropy(Infer *q)
{
    return infer_class_loss(q, true);
}

static const Type *infer_nll(Infer *q)
{
    return infer_class_loss(q, false);
}

/* ---- what value and gradient have in common ---- */

/* A call in terms of columns: the shape of the logits with one element along the axis of classes. */
typedef struct Classes {
    DType t;
    int rank, axis;
    int64_t n, positions; /* classes, and columns */
    double smoothing;
    int reduction;
    int64_t column[MAX_RANK];
    Node *class_weight;  /* along the axis of classes; null: 1 */
    Node *sample_weight; /* of a column; null: 1 */
    /* of targets that are classes */
    Node *index;      /* a column, 0 for those to ignore; null: targets are probabilities */
    Node *ignored;    /* a column of bool */
    Node *own_weight; /* a column: the weight of the target's class; null: 1 */
    Node *weight;     /* what the mean divides by the sum of; null: 1 */
} Classes;

static Node *times(Build *b, Node *x, Node *y)
{
    return !x ? y : !y ? x : CALL(b, mul, x, y);
}

static Node *number(Build *b, const Classes *c, double v)
{
    return build_scalar(b, c->t, v);
}

/* A negative target is made an index that does not exist: no class is counted from the end. */
static void read_targets(Build *b, const Site *s, Classes *c)
{
    const ClassLossAttr *at = s->attr;
    Node *zero = make_zeros(b, I64, 0, NULL);
    Node *index = make_reshape(b, build_cast(b, s->in[TARGET], I64), c->rank, c->column);
    c->ignored = CALL(b, equal, index, build_i64s(b, 1, &at->ignore_index));
    index = CALL(b, where, CALL(b, less, index, zero), build_i64s(b, 1, &c->n), index);
    c->index = CALL(b, where, c->ignored, zero, index);
    if (c->class_weight)
        c->own_weight = make_gather(b, make_cast(b, s->in[CLASS_WEIGHT], c->t), c->index, 0);
    Node *weight = times(b, c->sample_weight, c->own_weight);
    c->weight = CALL(b, where, c->ignored, number(b, c, 0), weight ? weight : number(b, c, 1));
}

static void read_sample_weights(Build *b, const Site *s, Classes *c)
{
    Node *w = site_in(s, SAMPLE_WEIGHT);
    int64_t dims[MAX_RANK];
    if (!w)
        return;
    const bool each = w->type->rank == c->rank - 1;
    for (int i = 0, k = 0; i < c->rank; i++) /* the first dimension that is not the classes' counts samples */
        dims[i] = i != c->axis && (each || k++ == 0) ? c->column[i] : 1;
    c->sample_weight = make_reshape(b, make_cast(b, w, c->t), c->rank, dims);
}

static Classes read_classes(Build *b, const Site *s, double smoothing)
{
    const ClassLossAttr *at = s->attr;
    const Type *x = s->in[LOGITS]->type;
    const int axis = axis_wrap(at->axis, x->rank);
    int64_t along[MAX_RANK];
    Classes c = { .t = make_width(x->dtype), .rank = x->rank, .axis = axis, .n = x->dims[axis], .positions = 1 };
    c.smoothing = smoothing;
    c.reduction = at->reduction;
    for (int i = 0; i < x->rank; i++) {
        c.column[i] = i == axis ? 1 : x->dims[i];
        along[i] = i == axis ? c.n : 1;
        c.positions *= c.column[i];
    }
    if (site_in(s, CLASS_WEIGHT))
        c.class_weight = make_reshape(b, make_cast(b, s->in[CLASS_WEIGHT], c.t), c.rank, along);
    read_sample_weights(b, s, &c);
    c.weight = c.sample_weight;
    if (!dtype_is_float(s->in[TARGET]->type->dtype))
        read_targets(b, s, &c);
    return c;
}

static Node *sum_of_classes(Build *b, const Classes *c, Node *x)
{
    const int64_t axis = c->axis;
    return build_reduce(b, OP_reduce_sum, x, 1, &axis);
}

/* x moved towards the mean of the classes. */
static Node *smooth(Build *b, const Classes *c, Node *x)
{
    if (c->smoothing == 0)
        return x;
    return CALL(b, add, CALL(b, mul, x, number(b, c, 1 - c->smoothing)), number(b, c, c->smoothing / (double)c->n));
}

/* ---- the value ---- */

/* What each column loses by a class: minus its log-probability; with smoothing, a part of that of every class too. */
static Node *lost_by_class(Build *b, const Classes *c, Node *log_prob)
{
    Node *lost = times(b, CALL(b, neg, make_gather_elements(b, log_prob, c->index, c->axis)), c->own_weight);
    if (c->smoothing != 0) {
        Node *all = CALL(b, neg, sum_of_classes(b, c, times(b, log_prob, c->class_weight)));
        lost = CALL(b, mul, lost, number(b, c, 1 - c->smoothing));
        lost = CALL(b, add, lost, CALL(b, mul, all, number(b, c, c->smoothing / (double)c->n)));
    }
    return CALL(b, where, c->ignored, number(b, c, 0), times(b, lost, c->sample_weight));
}

static Node *lost_by_probability(Build *b, const Classes *c, Node *log_prob, Node *target)
{
    Node *wanted = times(b, smooth(b, c, make_cast(b, target, c->t)), c->class_weight);
    return times(b, CALL(b, neg, sum_of_classes(b, c, CALL(b, mul, log_prob, wanted))), c->sample_weight);
}

static Node *expand_cross_entropy(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Classes c = read_classes(b, s, (double)((const ClassLossAttr *)s->attr)->label_smoothing);
    Node *log_prob = make_log_softmax(b, make_cast(b, s->in[LOGITS], c.t), c.axis);
    Node *lost = c.index ? lost_by_class(b, &c, log_prob) : lost_by_probability(b, &c, log_prob, s->in[TARGET]);
    return loss_total(b, lost, c.weight, c.reduction, c.positions);
}

static Node *expand_nll(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return NULL;
    const Classes c = read_classes(b, s, 0);
    return loss_total(b, lost_by_class(b, &c, make_cast(b, s->in[LOGITS], c.t)), c.weight, c.reduction, c.positions);
}

/* ---- the gradient ---- */

/* 1 at the target's class, 0 elsewhere. */
static Node *one_hot(Build *b, const Classes *c)
{
    return make_cast(b, CALL(b, equal, make_count(b, c->rank, c->axis, c->n), c->index), c->t);
}

/* softmax(x) - wanted, for each column its part of the loss: with wanted = the target, or what smoothing and weights of
 * classes make of it, in which case the probabilities count as often as the weights sum up to. */
static Node *slope_by_class(Build *b, const Classes *c, Node *prob, Node *share)
{
    Node *hit = one_hot(b, c), *slope;
    if (c->smoothing == 0 || !c->class_weight) {
        slope = CALL(b, mul, CALL(b, sub, prob, smooth(b, c, hit)), times(b, share, c->weight));
    } else {
        const double rest = c->smoothing / (double)c->n;
        Node *own = CALL(b, mul, c->own_weight, number(b, c, 1 - c->smoothing));
        Node *others = CALL(b, mul, c->class_weight, number(b, c, rest));
        Node *total = CALL(b, add, own, sum_of_classes(b, c, others));
        Node *wanted = CALL(b, add, CALL(b, mul, own, hit), others);
        slope = CALL(b, mul, CALL(b, sub, CALL(b, mul, prob, total), wanted), times(b, share, c->sample_weight));
    }
    return CALL(b, where, c->ignored, number(b, c, 0), slope);
}

static void adjoint_cross_entropy(Build *b, const Site *s, Node **dx)
{
    const Classes c = read_classes(b, s, (double)((const ClassLossAttr *)s->attr)->label_smoothing);
    Node *share = loss_share(b, s->dout[0], c.weight, c.reduction, c.positions);
    if (c.index) {
        if (s->want[LOGITS])
            dx[LOGITS] = slope_by_class(b, &c, make_softmax(b, s->in[LOGITS], c.axis), share);
        return;
    }
    share = times(b, share, c.sample_weight);
    if (s->want[LOGITS]) {
        Node *wanted = times(b, smooth(b, &c, make_cast(b, s->in[TARGET], c.t)), c.class_weight);
        Node *prob = make_softmax(b, s->in[LOGITS], c.axis);
        Node *slope = CALL(b, sub, CALL(b, mul, prob, sum_of_classes(b, &c, wanted)), wanted);
        dx[LOGITS] = CALL(b, mul, slope, share);
    }
    if (s->want[TARGET]) {
        Node *lost = CALL(b, neg, make_log_softmax(b, s->in[LOGITS], c.axis));
        Node *factor = CALL(b, mul, share, number(b, &c, 1 - c.smoothing));
        dx[TARGET] = CALL(b, mul, times(b, lost, c.class_weight), factor);
    }
}

static void adjoint_nll(Build *b, const Site *s, Node **dx)
{
    const Classes c = read_classes(b, s, 0);
    Node *share = CALL(b, mul, loss_share(b, s->dout[0], c.weight, c.reduction, c.positions), c.weight);
    if (s->want[LOGITS])
        dx[LOGITS] = CALL(b, neg, CALL(b, mul, one_hot(b, &c), share));
}

/* ---- samples ---- */

static Node *sample_classes(Build *b, Rng *rng, int variant, Op op)
{
    int64_t dims[MAX_RANK], target[MAX_RANK];
    const int rank = 1 + variant % 5;
    const DType dtype = sample_float(rng), other = rng_below(rng, 2) ? dtype : F32;
    const int axis = (int)rng_below(rng, rank);
    const bool soft = op == OP_cross_entropy && variant / 5 % 2;
    ClassLossAttr at = { .axis = rng_below(rng, 2) ? axis : axis - rank,
                         .ignore_index = rng_below(rng, 2) ? -100 : rng_range(rng, 0, 2),
                         .reduction = variant / 10 % 2 };
    if (op == OP_cross_entropy)
        at.label_smoothing = rng_below(rng, 2) ? 0.125f : 0;
    sample_dims(rng, rank, 4, dims);
    dims[axis] = rng_range(rng, 1, 5);
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (i != axis)
            target[n++] = dims[i];
    Node *in[] = { sample_tensor(b, rng, dtype, rank, dims, -3, op == OP_nll ? 0 : 3),
                   soft ? sample_tensor(b, rng, other, rank, dims, 0, 1)
                        : sample_tensor(b, rng, variant % 2 ? I64 : I32, n, target, 0, (double)dims[axis] - 1),
                   rng_below(rng, 2) ? sample_tensor(b, rng, other, 1, dims + axis, 0.5, 2) : NULL,
                   sample_loss_weight(b, rng, other, n, target) };
    return build_node(b, op, &at, in[3] ? 4 : in[2] ? 3 : 2, in);
}

static Node *sample_cross_entropy(Build *b, Rng *rng, int variant)
{
    return sample_classes(b, rng, variant, OP_cross_entropy);
}

static Node *sample_nll(Build *b, Rng *rng, int variant)
{
    return sample_classes(b, rng, variant, OP_nll);
}

#define CARD                                                                                                           \
    .min_in = 2, .max_in = 4, .n_variants = 60, .fuse = FUSE_OPAQUE,                                                   \
    .amp = { AMP_FO, AMP_FO, 1u << CLASS_WEIGHT | 1u << SAMPLE_WEIGHT, REASON_PRECISION, NULL },                       \
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER, QUANT_FLOAT }, .out = QUANT_FLOAT }

const OpDef op_cross_entropy = {
    .name = "cross_entropy",
    CARD,
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
    CARD,
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
