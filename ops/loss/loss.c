/* negative_log_likelihood_loss and softmax_cross_entropy_loss.
 *
 * A target equal to ignore_index has weight and loss zero, whatever the scores there are. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/norm/norm.h"

static const char *const reductions[] = { "none", "sum", "mean", NULL };

static const AttrSpec loss_attrs[] = {
    ATTR(LossAttr, ignore_index, INT, (double)IGNORE_NONE),
    ATTR_CHOICE(LossAttr, reduction, reductions, REDUCTION_MEAN),
    ATTR_LAST,
};

/* Scores [N, C, d..] with targets [N, d..] and weights [C]; gives the type of the loss. */
static const Type *infer_loss(Infer *q)
{
    const LossAttr *at = q->attr;
    const Type *x = infer_floats(q, 2), *target = x ? infer_integers(q, 1) : NULL;
    if (!target || (infer_has(q, 2) && !infer_vector(q, 2, x->rank < 0 ? DIM_UNKNOWN : x->dims[1])))
        return NULL;
    const Type *each = type_with_dtype(q->types, target, x->dtype);
    if (x->rank >= 0) {
        int64_t dims[MAX_RANK] = { x->dims[0] };
        for (int i = 2; i < x->rank; i++)
            dims[i - 1] = x->dims[i];
        const Type *wanted = type_tensor(q->types, x->dtype, x->rank - 1, dims);
        if (!type_agrees(each, wanted))
            return infer_fail(q, "targets are %s for scores %s", type_text(q->scratch, target),
                              type_text(q->scratch, x));
        each = type_meet(q->types, each, wanted);
    }
    return at->reduction == REDUCTION_NONE ? each : type_scalar(q->types, x->dtype);
}

static const Type *infer_cross_entropy(Infer *q)
{
    const Type *loss = infer_loss(q);
    return loss ? infer_results(q, 2, (const Type *const[]){ loss, q->in[0] }) : NULL;
}

/* What the targets say, each of their shape. */
typedef struct Targets {
    Node *index;   /* class to look up; 0 where it is ignored */
    Node *ignored; /* null: nothing is */
    Node *weight;  /* null: 1 everywhere */
} Targets;

/* What picks weights: 0 where the target is ignored. */
static Targets read_targets(Build *b, const Site *s, DType t)
{
    const LossAttr *at = s->attr;
    const Type *target = s->in[1]->type;
    Targets a = { .index = build_cast(b, s->in[1], I64) };
    if (at->ignore_index != IGNORE_NONE) {
        a.ignored = CALL(b, equal, a.index, build_i64s(b, 1, &at->ignore_index));
        a.ignored = make_reshape(b, a.ignored, target->rank, target->dims);
        a.index = CALL(b, where, a.ignored, make_zeros(b, I64, 0, NULL), a.index);
    }
    if (site_in(s, 2))
        a.weight = make_gather(b, make_cast(b, s->in[2], t), a.index, 0);
    return a;
}

/* The weight of each target, 0 where it is ignored; null: all weigh 1. */
static Node *kept_weights(Build *b, const Targets *a, DType t)
{
    if (!a->ignored)
        return a->weight;
    return CALL(b, where, a->ignored, build_scalar(b, t, 0), a->weight ? a->weight : build_scalar(b, t, 1));
}

/* A value of the targets' shape [N, d..] as [N, 1, d..], which broadcasts with the scores [N, C, d..]. */
static Node *as_scores_shape(Build *b, const Site *s, Node *v)
{
    const Type *x = s->in[0]->type;
    int64_t dims[MAX_RANK] = { x->dims[0], 1 };
    for (int i = 2; i < x->rank; i++)
        dims[i] = x->dims[i];
    return make_reshape(b, v, x->rank, dims);
}

/* The loss of log-probabilities [N, C, d..]. */
static Node *build_likelihood(Build *b, const Site *s, DType t, Node *log_prob)
{
    const LossAttr *at = s->attr;
    const Type *target = s->in[1]->type;
    const Targets a = read_targets(b, s, t);
    Node *picked = make_gather_elements(b, log_prob, as_scores_shape(b, s, a.index), 1);
    Node *loss = CALL(b, neg, make_reshape(b, picked, target->rank, target->dims));
    if (a.weight)
        loss = CALL(b, mul, loss, a.weight);
    if (a.ignored)
        loss = CALL(b, where, a.ignored, build_scalar(b, t, 0), loss);
    if (at->reduction == REDUCTION_NONE)
        return loss;
    Node *weight = at->reduction == REDUCTION_MEAN ? kept_weights(b, &a, t) : NULL;
    if (at->reduction == REDUCTION_MEAN && !weight)
        return make_reduce_all(b, OP_reduce_mean, loss);
    Node *sum = make_reduce_all(b, OP_reduce_sum, loss);
    return at->reduction == REDUCTION_SUM ? sum : CALL(b, div, sum, make_reduce_all(b, OP_reduce_sum, weight));
}

/* What reaches each negated log-probability that was picked: of the targets' shape, or one for all. */
static Node *likelihood_share(Build *b, const Site *s, const Targets *a, DType t)
{
    const LossAttr *at = s->attr;
    Node *dy = s->dout[0], *weight = kept_weights(b, a, t);
    if (at->reduction == REDUCTION_MEAN) {
        const double n = (double)type_elements(s->in[1]->type);
        dy = CALL(b, div, dy, weight ? make_reduce_all(b, OP_reduce_sum, weight) : build_scalar(b, t, n));
    }
    return weight ? CALL(b, mul, dy, weight) : dy;
}

/* What the gradients of both losses are made of besides the scores: the gradient of each element's loss, and which class
 * is the target. */
typedef struct LossGradient {
    Node *share, *hit, *ignored; /* ignored: null or [N, 1, d..] */
} LossGradient;

static LossGradient back_from(Build *b, const Site *s, DType t)
{
    const Type *x = s->in[0]->type;
    const Targets a = read_targets(b, s, t);
    LossGradient back = { .share = likelihood_share(b, s, &a, t) };
    if (back.share && back.share->type->rank > 0)
        back.share = as_scores_shape(b, s, back.share);
    back.hit = CALL(b, equal, as_scores_shape(b, s, a.index), make_count(b, x->rank, 1, x->dims[1]));
    back.ignored = a.ignored ? as_scores_shape(b, s, a.ignored) : NULL;
    return back;
}

static Node *unless_ignored(Build *b, const LossGradient *back, Node *v)
{
    return back->ignored ? CALL(b, where, back->ignored, make_zero_like(b, v), v) : v;
}

static void adjoint_negative_log_likelihood_loss(Build *b, const Site *s, Node **dx)
{
    const DType t = s->in[0]->type->dtype;
    if (type_elements(s->in[0]->type) == 0)
        return;
    const LossGradient back = back_from(b, s, t);
    Node *share = unless_ignored(b, &back, CALL(b, neg, back.share));
    dx[0] = CALL(b, where, back.hit, share, build_scalar(b, t, 0));
}

/* share (softmax - hit), and through the log-probabilities where they are used. */
static void adjoint_softmax_cross_entropy_loss(Build *b, const Site *s, Node **dx)
{
    const DType t = s->in[0]->type->dtype;
    const int64_t classes = 1;
    if (type_elements(s->in[0]->type) == 0)
        return;
    Node *p = CALL(b, exp, s->n_out > 1 ? s->y[1] : make_log_softmax(b, s->in[0], 1));
    if (s->dout[0]) {
        const LossGradient back = back_from(b, s, t);
        Node *each = CALL(b, mul, back.share, CALL(b, sub, p, make_cast(b, back.hit, t)));
        dx[0] = unless_ignored(b, &back, each);
    }
    if (s->n_out > 1 && s->dout[1]) {
        Node *all = build_reduce(b, OP_reduce_sum, s->dout[1], 1, &classes);
        Node *through = CALL(b, sub, s->dout[1], CALL(b, mul, p, all));
        dx[0] = dx[0] ? CALL(b, add, dx[0], through) : through;
    }
}

/* With ignore_index the index 0 stands in for what is ignored: without classes there is nothing to look up. */
static bool has_classes(Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return false;
    const Type *x = s->in[0]->type;
    if (x->dims[1] == 0 && type_elements(s->in[1]->type) > 0)
        b->status = fail(b->graph->ir->diag, NOWHERE, "a loss over no classes has no meaning");
    return b->status == OK;
}

static Node *expand_negative_log_likelihood_loss(Build *b, const Site *s)
{
    if (!has_classes(b, s))
        return NULL;
    const DType own = s->in[0]->type->dtype, t = make_width(own);
    return make_cast(b, build_likelihood(b, s, t, make_cast(b, s->in[0], t)), own);
}

static Node *expand_softmax_cross_entropy_loss(Build *b, const Site *s)
{
    if (!has_classes(b, s))
        return NULL;
    const DType own = s->in[0]->type->dtype, t = make_width(own);
    Node *log_prob = make_log_softmax(b, make_cast(b, s->in[0], t), 1);
    Node *parts[] = { make_cast(b, build_likelihood(b, s, t, log_prob), own), make_cast(b, log_prob, own) };
    if (s->n_out == 1 || b->status != OK)
        return parts[0];
    return build_tuple(b, 2, parts);
}

static Node *sample_loss(Build *b, Rng *rng, int variant, Op op)
{
    int64_t dims[MAX_RANK], target[MAX_RANK];
    const int rank = 2 + variant % 4;
    const DType dtype = sample_float(rng);
    const LossAttr at = { .ignore_index = rng_below(rng, 2) ? IGNORE_NONE : rng_range(rng, 0, 2),
                          .reduction = variant / 4 % 3 };
    sample_dims(rng, rank, 4, dims);
    dims[1] = rng_range(rng, 1, 5);
    target[0] = dims[0];
    for (int i = 2; i < rank; i++)
        target[i - 1] = dims[i];
    Node *in[] = { sample_tensor(b, rng, dtype, rank, dims, -3, 0),
                   sample_tensor(b, rng, variant % 2 ? I64 : I32, rank - 1, target, 0, (double)dims[1] - 1),
                   rng_below(rng, 2) ? sample_tensor(b, rng, dtype, 1, dims + 1, 0.5, 2) : NULL };
    return build_node_n(b, op, &at, in[2] ? 3 : 2, in,
                        op == OP_softmax_cross_entropy_loss ? 1 + (int)rng_below(rng, 2) : 1);
}

#define LOSS_CARD(word, ask, n_results, opset, onnx_name)                                                              \
    static Node *sample_##word(Build *b, Rng *rng, int variant)                                                        \
    {                                                                                                                  \
        return sample_loss(b, rng, variant, OP_##word);                                                                \
    }                                                                                                                  \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = 2,                                                                                                   \
        .max_in = 3,                                                                                                   \
        .min_out = 1,                                                                                                  \
        .max_out = n_results,                                                                                          \
        .attrs = loss_attrs,                                                                                           \
        .infer = ask,                                                                                                  \
        .expand = expand_##word,                                                                                       \
        .adjoint = adjoint_##word,                                                                                     \
        .sample = sample_##word,                                                                                       \
        .n_variants = 48,                                                                                              \
        .differentiable = 1,                                                                                           \
        .weight = 12,                                                                                                  \
        .access.kind = ACCESS_COMPOSITE,                                                                               \
        .access.refuses = true,                                                                                        \
        .amp = { AMP_FO, AMP_FO, 4, REASON_PRECISION, NULL },                                                          \
        .quant = { .in = { QUANT_FLOAT, QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } },                          \
        .onnx = { onnx_name, opset, NULL },                                                                            \
    }
LOSS_CARD(negative_log_likelihood_loss, infer_loss, 1, 22, "NegativeLogLikelihoodLoss");
LOSS_CARD(softmax_cross_entropy_loss, infer_cross_entropy, 2, 13, "SoftmaxCrossEntropyLoss");
#undef LOSS_CARD
