#include "ops/loss/train_loss.h"

#include <string.h>

const char *const loss_reductions[] = { "mean", "sum", NULL };

static bool dims_agree(const Type *t, int rank, const int64_t *dims)
{
    if (t->rank != rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (!dims_fit(t->dims[i], dims[i]))
            return false;
    return true;
}

bool infer_sample_weight(Infer *q, int i, int rank, const int64_t *dims)
{
    if (!infer_has(q, i))
        return true;
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (!dtype_is_float(t->dtype))
        infer_fail(q, "weights of samples are floats, got %s", type_text(q->scratch, t));
    else if (t->rank < 0 || rank < 0 || dims_agree(t, rank, dims) || (rank > 0 && dims_agree(t, 1, dims)))
        return true;
    else
        infer_fail(q, "weights of samples are %s, wanted is one for each sample, or one for each target",
                   type_text(q->scratch, t));
    return false;
}

const Type *infer_loss_scalar(Infer *q)
{
    return type_scalar(q->types, make_width(q->in[0]->dtype));
}

Node *loss_weight(Build *b, const Site *s, int i, DType t, int rank, const int64_t *dims)
{
    Node *w = site_in(s, i);
    int64_t shape[MAX_RANK];
    if (!w)
        return NULL;
    const bool each = w->type->rank == rank;
    for (int d = 0; d < rank; d++)
        shape[d] = d == 0 || each ? dims[d] : 1;
    w = make_cast(b, w, t);
    return each ? w : make_reshape(b, w, rank, shape);
}

/* What a mean divides by when there are weights: their sum over all n terms. */
static Node *weight_sum(Build *b, Node *weight, int64_t n)
{
    const int64_t own = type_elements(weight->type);
    Node *sum = make_reduce_all(b, OP_reduce_sum, weight);
    return own == n || own <= 0 ? sum
                                : CALL(b, mul, sum, build_scalar(b, weight->type->dtype, (double)n / (double)own));
}

Node *loss_total(Build *b, Node *each, Node *weight, int reduction, int64_t n)
{
    if (reduction == LOSS_MEAN && !weight)
        return make_reduce_all(b, OP_reduce_mean, each);
    Node *sum = make_reduce_all(b, OP_reduce_sum, each);
    return reduction == LOSS_SUM || b->status != OK ? sum : CALL(b, div, sum, weight_sum(b, weight, n));
}

Node *loss_share(Build *b, Node *dy, Node *weight, int reduction, int64_t n)
{
    if (reduction == LOSS_SUM || b->status != OK)
        return dy;
    return CALL(b, div, dy, weight ? weight_sum(b, weight, n) : build_scalar(b, dy->type->dtype, (double)n));
}

Node *sample_loss_weight(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims)
{
    const int form = (int)rng_below(rng, 3);
    if (form == 0)
        return NULL;
    return sample_tensor(b, rng, dtype, form == 1 && rank > 0 ? 1 : rank, dims, 0.25, 2);
}
