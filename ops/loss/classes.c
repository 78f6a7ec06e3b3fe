#include "ops/loss/classes.h"

#include "ops/norm/norm.h"

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

const Type *infer_class_loss(Infer *q, bool may_be_soft)
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

/* ---- reading a call ---- */

Node *loss_times(Build *b, Node *x, Node *y)
{
    return !x ? y : !y ? x : CALL(b, mul, x, y);
}

Node *loss_number(Build *b, const Classes *c, double v)
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
    Node *weight = loss_times(b, c->sample_weight, c->own_weight);
    c->weight = CALL(b, where, c->ignored, loss_number(b, c, 0), weight ? weight : loss_number(b, c, 1));
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

Classes loss_read_classes(Build *b, const Site *s, double smoothing)
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

Node *loss_sum_of_classes(Build *b, const Classes *c, Node *x)
{
    const int64_t axis = c->axis;
    return build_reduce(b, OP_reduce_sum, x, 1, &axis);
}

Node *loss_one_hot(Build *b, const Classes *c)
{
    return make_cast(b, CALL(b, equal, make_count(b, c->rank, c->axis, c->n), c->index), c->t);
}

/* ---- samples ---- */

Node *sample_class_loss(Build *b, Rng *rng, int variant, Op op)
{
    int64_t dims[MAX_RANK], target[MAX_RANK];
    const int rank = 1 + variant % 5;
    const DType dtype = sample_float(rng), other = rng_below(rng, 2) ? dtype : F32;
    const int axis = (int)rng_below(rng, rank);
    const bool soft = op == OP_cross_entropy && variant / 5 % 2;
    ClassLossAttr at = { .axis = rng_below(rng, 2) ? axis : axis - rank,
                         .ignore_index = rng_below(rng, 2) ? -100 : rng_range(rng, 0, 2),
                         .reduction = variant / 10 % 2 };
    if (op == OP_focal)
        at.gamma = (float)rng_range(rng, 0, 5) / 2;
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
