/* reshape, flatten, squeeze, unsqueeze: the same elements under another shape. */
#include "base/checked.h"
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/card/access.h"
#include "ops/move/move.h"

/* The same elements in the shape they had. */
static void adjoint_view(Build *b, const Site *s, Node **dx)
{
    const Type *x = s->in[0]->type;
    const ReshapeAttr at = { .allowzero = true };
    if (type_known(x)) {
        dx[0] = make_reshape(b, s->dout[0], x->rank, x->dims);
        return;
    }
    dx[0] = CALL_ATTR(b, reshape, at, s->dout[0], CALL(b, shape, s->in[0]));
    if (dx[0])
        dx[0]->type = x;
}

#define VIEW                                                                                                           \
    .eval = move_whole, .adjoint = adjoint_view, .open_adjoint = true, .differentiable = 1,                            \
    .access.kind = ACCESS_MOVE, .access.iterate = iterate_flat, .access.alias = { { 0, 0, ALIAS_VIEW } },              \
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },                                                                     \
    .quant = { .in = { QUANT_AGNOSTIC, QUANT_NEVER }, .out = { QUANT_AGNOSTIC }, .same_scale = true }

/* ---- reshape ---- */

static const AttrSpec reshape_attrs[] = { ATTR(ReshapeAttr, allowzero, BOOL, false), ATTR_LAST };

/* Multiplies up the dimensions that are known; counts the others. */
typedef struct Volume {
    int64_t n;
    int unknown;
} Volume;

static bool volume_add(Volume *v, int64_t dim)
{
    if (dim < 0) {
        v->unknown++;
        return true;
    }
    return checked_mul_i64(v->n, dim, &v->n);
}

/* The dimension -1 stands for.  Dimensions that a 0 copies cancel on both sides, so they need not be known. */
static bool resolve_rest(Infer *q, const Type *x, bool copies, int rank, const int64_t *want, int64_t *rest)
{
    Volume have = { 1, 0 }, given = { 1, 0 };
    bool fits = true;
    for (int i = 0; i < x->rank; i++)
        if (!(copies && i < rank && want[i] == 0))
            fits = fits && volume_add(&have, x->dims[i]);
    for (int i = 0; i < rank; i++)
        if (want[i] > 0 || (want[i] == 0 && !copies))
            fits = fits && volume_add(&given, want[i]);
    if (!fits)
        return infer_fail(q, "asks for more elements than can be counted"), false;
    *rest = DIM_UNKNOWN;
    if (given.n == 0)
        return infer_fail(q, "cannot tell what -1 stands for beside a dimension 0"), false;
    if (have.unknown)
        return true;
    if (have.n % given.n)
        return infer_fail(q, "%s does not divide into parts of %" PRId64, type_text(q->scratch, x), given.n), false;
    *rest = have.n / given.n;
    return true;
}

static const Type *reshape_to(Infer *q, const Type *x, int rank, const int64_t *want)
{
    const bool copies = !((const ReshapeAttr *)q->attr)->allowzero;
    int64_t dims[MAX_RANK];
    int rests = 0;
    for (int i = 0; i < rank; i++) {
        dims[i] = want[i];
        if (want[i] < -1)
            return infer_fail(q, "asks for a dimension %" PRId64, want[i]);
        rests += want[i] == -1;
        if (want[i] == 0 && copies) {
            if (x->rank >= 0 && i >= x->rank)
                return infer_fail(q, "copies dimension %d, which %s does not have", i, type_text(q->scratch, x));
            dims[i] = x->rank < 0 ? DIM_UNKNOWN : x->dims[i];
        }
    }
    if (rests > 1)
        return infer_fail(q, "has %d dimensions -1, at most one can be told", rests);
    if (rests && x->rank >= 0) {
        int64_t rest;
        if (!resolve_rest(q, x, copies, rank, want, &rest))
            return NULL;
        for (int i = 0; i < rank; i++)
            dims[i] = want[i] == -1 ? rest : dims[i];
    }
    const Type *y = infer_dims(q, x->dtype, rank, dims);
    const int64_t have = type_elements(x), get = y ? type_elements(y) : -1;
    if (have >= 0 && get >= 0 && have != get)
        return infer_fail(q, "makes %" PRId64 " elements out of %" PRId64 ": %s from %s", get, have,
                          type_text(q->scratch, y), type_text(q->scratch, x));
    return y;
}

static const Type *infer_reshape(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t rank, n;
    if (!x || !infer_list(q, 1, &rank))
        return NULL;
    const int64_t *want = infer_ints(q, 1, &n);
    if (!want)
        return rank < 0 ? type_unranked(q->types, x->dtype) : infer_unknown_dims(q, x->dtype, rank);
    if (n > MAX_RANK)
        return infer_fail(q, "asks for %" PRId64 " dimensions, more than the limit rank (%d)", n, MAX_RANK);
    return reshape_to(q, x, (int)n, want);
}

static Node *sample_reshape(Build *b, Rng *rng, int variant)
{
    enum { KINDS = 7 };
    static const struct {
        int from_rank, to_rank;
        int64_t from[4], to[4];
        bool allowzero;
    } kinds[KINDS] = {
        { 2, 3, { 6, 4 }, { 2, 3, 4 }, false },  { 3, 2, { 2, 3, 4 }, { 0, -1 }, false },
        { 1, 0, { 1 }, { 0 }, false },           { 0, 2, { 0 }, { 1, 1 }, false },
        { 2, 2, { 0, 3 }, { 7, 0 }, true },      { 4, 2, { 2, 1, 3, 2 }, { -1, 6 }, false },
        { 2, 3, { 0, 5 }, { 0, 5, -1 }, false },
    };
    const int k = variant % KINDS;
    const ReshapeAttr at = { kinds[k].allowzero };
    Node *x = sample_tensor(b, rng, sample_dtype(variant), kinds[k].from_rank, kinds[k].from, -3, 3);
    return CALL_ATTR(b, reshape, at, x, build_i64s(b, kinds[k].to_rank, kinds[k].to));
}

/* Whether an extent may hold a batch: it, or a multiple (batch times heads).  A batch of 1 is in everything. */
static bool may_hold(int64_t extent, int64_t batch)
{
    return batch == 1 ? extent == 1 : extent > 0 && extent % batch == 0;
}

/* Of the result's dimensions that share elements with that of the operand: the batch itself before a multiple. */
static bool reshape_extent(const Node *n, const Type *from, int axis, int64_t batch, StatedNumber *to)
{
    const Type *y = n->type;
    int64_t low = 1, first = 1;
    int best = -1;
    for (int i = 0; i < axis; i++)
        low *= from->dims[i];
    const int64_t high = low * from->dims[axis];
    for (int i = 0; i < y->rank; i++) {
        const int64_t last = first * y->dims[i];
        const bool shares = from->dims[axis] == 1 ? first == low : first < high && last > low;
        if (shares && may_hold(y->dims[i], batch) && (best < 0 || (y->dims[best] != batch && y->dims[i] == batch)))
            best = i;
        first = last;
    }
    *to = (StatedNumber){ 1, best };
    return best >= 0;
}

const OpDef op_reshape = {
    .name = "reshape",
    .min_in = 2,
    .max_in = 2,
    .attrs = reshape_attrs,
    .infer = infer_reshape,
    VIEW,
    .sample = sample_reshape,
    .n_variants = 21,
    .access.steer = 2,
    .access.shape = 2,
    .extent = reshape_extent,
    .onnx = { "Reshape", 25, NULL },
};

/* ---- flatten ---- */

typedef struct FlattenAttr {
    int64_t axis;
} FlattenAttr;

static const AttrSpec flatten_attrs[] = { ATTR(FlattenAttr, axis, INT, 1), ATTR_LAST };

static bool product(const int64_t *dims, int n, int64_t *out)
{
    Volume v = { 1, 0 };
    for (int i = 0; i < n; i++)
        if (!volume_add(&v, dims[i]))
            return false;
    *out = v.n == 0 ? 0 : v.unknown ? DIM_UNKNOWN : v.n;
    return true;
}

static const Type *infer_flatten(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t axis = ((const FlattenAttr *)q->attr)->axis, dims[2];
    if (!x)
        return NULL;
    if (x->rank < 0)
        return infer_unknown_dims(q, x->dtype, 2);
    if (axis < -x->rank || axis > x->rank)
        return infer_fail(q, "axis %" PRId64 " is outside [%d, %d]", axis, -x->rank, x->rank);
    axis += axis < 0 ? x->rank : 0;
    if (!product(x->dims, (int)axis, &dims[0]) || !product(x->dims + axis, x->rank - (int)axis, &dims[1]))
        return infer_fail(q, "has more elements than can be counted");
    return infer_dims(q, x->dtype, 2, dims);
}

static Node *sample_flatten(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    const int rank = variant % 6;
    sample_dims(rng, rank, 4, dims);
    const FlattenAttr at = { variant == 1 ? 1 : rng_range(rng, -rank, rank) };
    return CALL_ATTR(b, flatten, at, sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3));
}

const OpDef op_flatten = {
    .name = "flatten",
    .min_in = 1,
    .max_in = 1,
    .attrs = flatten_attrs,
    .infer = infer_flatten,
    VIEW,
    .sample = sample_flatten,
    .n_variants = 18,
    .onnx = { "Flatten", 25, NULL },
};

/* ---- squeeze ---- */

static const Type *squeeze_ones(Infer *q, const Type *x)
{
    int64_t dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] < 0)
            return type_unranked(q->types, x->dtype);
        if (x->dims[i] != 1)
            dims[rank++] = x->dims[i];
    }
    return type_tensor(q->types, x->dtype, rank, dims);
}

static const Type *squeeze_axes(Infer *q, const Type *x, const Axes *axes)
{
    bool gone[MAX_RANK] = { false };
    int64_t dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < axes->n; i++) {
        const int64_t dim = x->dims[axes->v[i]];
        gone[axes->v[i]] = true;
        if (!dims_fit(dim, 1))
            return infer_fail(q, "axis %d of %s is %" PRId64 " and not 1", axes->v[i], type_text(q->scratch, x), dim);
    }
    for (int i = 0; i < x->rank; i++)
        if (!gone[i])
            dims[rank++] = x->dims[i];
    return type_tensor(q->types, x->dtype, rank, dims);
}

static const Type *infer_squeeze(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t n;
    Axes axes;
    if (!x)
        return NULL;
    if (!infer_has(q, 1))
        return x->rank < 0 ? x : squeeze_ones(q, x);
    if (!infer_list(q, 1, &n))
        return NULL;
    if (x->rank < 0)
        return x;
    const int64_t *v = infer_ints(q, 1, &n);
    if (!v && n > x->rank)
        return infer_fail(q, "names %" PRId64 " axes of a tensor of rank %d", n, x->rank);
    if (!v)
        return n < 0 ? type_unranked(q->types, x->dtype) : infer_unknown_dims(q, x->dtype, x->rank - n);
    return infer_axes(q, v, n, x->rank, &axes) ? squeeze_axes(q, x, &axes) : NULL;
}

static Node *sample_squeeze(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], ones[MAX_RANK];
    int n = 0;
    const int rank = variant % 6;
    sample_dims(rng, rank, 3, dims);
    for (int i = 0; i < rank; i++) {
        if (rng_below(rng, 2))
            dims[i] = 1;
        if (dims[i] == 1 && rng_below(rng, 2))
            ones[n++] = rng_below(rng, 2) ? i : i - rank;
    }
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    if (variant % 3 == 0)
        return CALL(b, squeeze, x);
    if (variant % 3 == 1 && n == 1)
        return CALL(b, squeeze, x, sample_ints(b, I64, 0, NULL, ones));
    return CALL(b, squeeze, x, build_i64s(b, n, ones));
}

const OpDef op_squeeze = {
    .name = "squeeze",
    .min_in = 1,
    .max_in = 2,
    .infer = infer_squeeze,
    VIEW,
    .sample = sample_squeeze,
    .n_variants = 30,
    .access.steer = 2,
    .onnx = { "Squeeze", 25, NULL },
};

/* ---- unsqueeze ---- */

static const Type *infer_unsqueeze(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t n, dims[MAX_RANK];
    bool fresh[MAX_RANK] = { false };
    Axes axes;
    if (!x || !infer_list(q, 1, &n))
        return NULL;
    if (x->rank < 0 || n < 0)
        return type_unranked(q->types, x->dtype);
    if (n > MAX_RANK - x->rank)
        return infer_fail(q, "makes %" PRId64 " dimensions, more than the limit rank (%d)", x->rank + n, MAX_RANK);
    const int64_t *v = infer_ints(q, 1, &n);
    const int rank = x->rank + (int)n;
    if (!v)
        return infer_unknown_dims(q, x->dtype, rank);
    if (!infer_axes(q, v, n, rank, &axes))
        return NULL;
    for (int i = 0; i < axes.n; i++)
        fresh[axes.v[i]] = true;
    for (int i = 0, k = 0; i < rank; i++)
        dims[i] = fresh[i] ? 1 : x->dims[k++];
    return infer_dims(q, x->dtype, rank, dims);
}

static Node *sample_unsqueeze(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], axes[8];
    const int rank = variant % 6, n = (int)rng_range(rng, 0, 3);
    sample_dims(rng, rank, 4, dims);
    sample_order(rng, rank + n, axes);
    for (int i = 0; i < n; i++)
        axes[i] -= rng_below(rng, 2) ? rank + n : 0;
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    return CALL(b, unsqueeze, x, build_i64s(b, n, axes));
}

const OpDef op_unsqueeze = {
    .name = "unsqueeze",
    .min_in = 2,
    .max_in = 2,
    .infer = infer_unsqueeze,
    VIEW,
    .sample = sample_unsqueeze,
    .n_variants = 18,
    .access.steer = 2,
    .onnx = { "Unsqueeze", 25, NULL },
};

#undef VIEW
