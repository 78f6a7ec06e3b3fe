#include "ops/card/shapes.h"

#include "base/checked.h"

const Type *infer_dims(Infer *q, DType dtype, int64_t rank, const int64_t *dims)
{
    const Limits *most = &q->ir->limits;
    int64_t n = 1;
    if (rank > MAX_RANK)
        return infer_fail(q, "its result has %" PRId64 " dimensions, more than the limit rank (%d)", rank, MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (dims[i] > most->dim)
            return infer_fail(q, "its result has a dimension %" PRId64 ", more than the limit dim (%" PRId64 ")",
                              dims[i], most->dim);
        if (dims[i] > 0 && (!checked_mul_i64(n, dims[i], &n) || n > most->elements))
            return infer_fail(q, "its result has more elements than the limit elements (%" PRId64 ")", most->elements);
    }
    return type_tensor(q->types, dtype, (int)rank, dims);
}

const Type *infer_unknown_dims(Infer *q, DType dtype, int64_t rank)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < MAX_RANK; i++)
        dims[i] = DIM_UNKNOWN;
    return infer_dims(q, dtype, rank, dims);
}

bool infer_axes(Infer *q, const int64_t *v, int64_t n, int rank, Axes *out)
{
    bool seen[MAX_RANK] = { false };
    if (n > rank) {
        infer_fail(q, "names %" PRId64 " axes of a tensor of rank %d", n, rank);
        return false;
    }
    out->n = (int)n;
    for (int i = 0; i < n; i++) {
        if (!infer_axis(q, v[i], rank, &out->v[i]))
            return false;
        if (seen[out->v[i]]) {
            infer_fail(q, "names axis %d twice", out->v[i]);
            return false;
        }
        seen[out->v[i]] = true;
    }
    return true;
}

const Type *infer_integers(Infer *q, int i)
{
    const Type *t = infer_tensor(q, i);
    if (t && !dtype_is_integer(t->dtype))
        return infer_fail(q, "operand %d must hold integers, not %s", i, dtype_name(t->dtype));
    return t;
}

bool infer_list(Infer *q, int i, int64_t *n)
{
    const Type *t = infer_integers(q, i);
    if (!t)
        return false;
    if (t->rank > 1) {
        infer_fail(q, "operand %d must be a list, not %s", i, type_text(q->scratch, t));
        return false;
    }
    *n = t->rank < 0 ? -1 : t->rank == 0 ? 1 : t->dims[0];
    return true;
}

bool infer_one(Infer *q, int i, bool *known, int64_t *v)
{
    const Type *t = infer_integers(q, i);
    int64_t n;
    if (!t)
        return false;
    if (!dims_fit(type_elements(t), 1)) {
        infer_fail(q, "operand %d must be one number, not %s", i, type_text(q->scratch, t));
        return false;
    }
    const int64_t *list = infer_ints(q, i, &n);
    *known = list != NULL && n == 1;
    if (*known)
        *v = list[0];
    return true;
}

bool infer_same_dtype(Infer *q, int a, int b)
{
    if (q->in[a]->dtype == q->in[b]->dtype)
        return true;
    infer_fail(q, "operands %d and %d must have one element type, not %s and %s", a, b, dtype_name(q->in[a]->dtype),
               dtype_name(q->in[b]->dtype));
    return false;
}

Node *sample_ints(Build *b, DType dtype, int rank, const int64_t *dims, const int64_t *v)
{
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dtype, rank, dims));
    const int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++)
        tensor_set_i64(t, i, v[i]);
    return build_const(b, t);
}

Node *sample_indices(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims, int64_t lo, int64_t hi)
{
    return sample_tensor(b, rng, dtype, rank, dims, (double)lo, (double)hi);
}

DType sample_dtype(int i)
{
    static const DType types[] = { F32, I64, F16, U8, I4, F64, BOOL, BF16, I32, U2, F8E4M3, U16 };
    return types[i % (int)COUNT(types)];
}

void sample_full_dims(Rng *rng, int rank, int64_t most, int64_t *dims)
{
    for (int i = 0; i < rank; i++)
        dims[i] = rng_range(rng, 1, most);
}

void sample_order(Rng *rng, int n, int64_t *order)
{
    for (int i = 0; i < n; i++) {
        const int k = (int)rng_below(rng, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

bool infer_vector(Infer *q, int i, int64_t n)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (dtype_is_float(t->dtype) && type_agrees(t, type_vector(q->types, t->dtype, n)))
        return true;
    infer_fail(q, "operand %d is %s, wanted are %" PRId64 " floats", i, type_text(q->scratch, t), n);
    return false;
}

const Type *infer_floats(Infer *q, int least)
{
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    if (!dtype_is_float(x->dtype))
        return infer_fail(q, "needs floats, got %s", type_text(q->scratch, x));
    if (x->rank >= 0 && x->rank < least)
        return infer_fail(q, "needs at least %d dimensions, got %d", least, x->rank);
    return x;
}

DType sample_float(Rng *rng)
{
    static const DType types[] = { F32, F32, F64, F16, BF16 };
    return types[rng_below(rng, (int64_t)COUNT(types))];
}
