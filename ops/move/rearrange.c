/* Moves by position inside one tensor: trilu, reverse_sequence, tensor_scatter, bit_cast. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"
#include "ops/move/move_kernels.h"

/* ---- trilu ---- */

static const AttrSpec trilu_attrs[] = { ATTR(TriluAttr, upper, BOOL, true), ATTR_LAST };

static const Type *infer_trilu(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    bool known;
    int64_t k;
    if (!x || (infer_has(q, 1) && !infer_one(q, 1, &known, &k)))
        return NULL;
    if (x->rank >= 0 && x->rank < 2)
        return infer_fail(q, "needs matrices, not %s", type_text(q->scratch, x));
    return x;
}

static Status eval_trilu(Eval *e)
{
    const Type *t = eval_type(e, 0);
    const int64_t rows = t->dims[t->rank - 2], columns = t->dims[t->rank - 1];
    const bool upper = ((const TriluAttr *)e->attr)->upper;
    int64_t k = eval_has(e, 1) ? eval_int(e, 1, 0) : 0;
    k = k < -rows ? -rows : k > columns ? columns : k;
    const Raw x = raw_in(e, 0), y = raw_open(e, eval_out(e, 0));
    const int64_t n = columns ? tensor_elements(e->out[0]) / columns : 0;
    for (int64_t r = 0; r < n; r++) {
        int64_t edge = r % rows + k + !upper; /* the first kept, or the first dropped */
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        const int64_t first = upper ? edge : 0, kept = upper ? columns - edge : edge;
        char *row = y.data + (size_t)(r * columns) * y.size;
        raw_zero(row, columns, y.size);
        memcpy(row + (size_t)first * y.size, x.data + (size_t)(r * columns + first) * x.size, (size_t)kept * x.size);
    }
    raw_close(e->out[0], y);
    return OK;
}

/* The gradient is the same triangle of the result's gradient. */
static void adjoint_trilu(Build *b, const Site *s, Node **dx)
{
    dx[0] = build_node(b, OP_trilu, s->attr, 2, (Node *[]){ s->dout[0], site_in(s, 1) });
}

static Node *sample_trilu(Build *b, Rng *rng, int variant)
{
    static const int64_t far[] = { INT64_MIN, INT64_MAX };
    const TriluAttr at = { variant % 2 };
    int64_t dims[MAX_RANK], k = variant % 7 ? rng_range(rng, -5, 5) : far[rng_below(rng, 2)];
    const int rank = 2 + variant % 4;
    sample_dims(rng, rank, 4, dims);
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    return variant % 3 ? CALL_ATTR(b, trilu, at, x, sample_ints(b, I64, 0, NULL, &k)) : CALL_ATTR(b, trilu, at, x);
}

const OpDef op_trilu = {
    .name = "trilu",
    .min_in = 1,
    .max_in = 2,
    .attrs = trilu_attrs,
    .infer = infer_trilu,
    .eval = eval_trilu,
    .access.kernels = kernels_trilu,
    .adjoint = adjoint_trilu,
    .open_adjoint = true,
    .sample = sample_trilu,
    .n_variants = 28,
    .differentiable = 1,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_trilu,
    .access.alias = { { 0, 0, ALIAS_OVER } },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 2,
    .onnx = { "Trilu", 14, NULL },
};

/* ---- reverse_sequence ---- */

typedef struct ReverseAttr {
    int64_t batch_axis, time_axis;
} ReverseAttr;

static const AttrSpec reverse_attrs[] = {
    ATTR(ReverseAttr, batch_axis, INT, 1),
    ATTR(ReverseAttr, time_axis, INT, 0),
    ATTR_LAST,
};

static const Type *infer_reverse_sequence(Infer *q)
{
    const ReverseAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    int64_t n;
    if (!x || !infer_list(q, 1, &n))
        return NULL;
    if (!(at->batch_axis == 0 && at->time_axis == 1) && !(at->batch_axis == 1 && at->time_axis == 0))
        return infer_fail(q, "batch_axis %" PRId64 " and time_axis %" PRId64 " must be 0 and 1 or 1 and 0",
                          at->batch_axis, at->time_axis);
    if (x->rank >= 0 && x->rank < 2)
        return infer_fail(q, "needs rank 2 or more, not %s", type_text(q->scratch, x));
    if (x->rank >= 0 && !dims_fit(n, x->dims[at->batch_axis]))
        return infer_fail(q, "has %" PRId64 " lengths for a batch of %" PRId64, n, x->dims[at->batch_axis]);
    return x;
}

static Status eval_reverse_sequence(Eval *e)
{
    const ReverseAttr *at = e->attr;
    const Type *t = eval_type(e, 0);
    const int64_t inner = move_count(t->dims, 2, t->rank), batch = t->dims[at->batch_axis],
                  time = t->dims[at->time_axis];
    const int64_t batch_step = at->batch_axis ? inner : time * inner, time_step = at->time_axis ? inner : batch * inner;
    const Raw x = raw_in(e, 0), y = raw_open(e, eval_out(e, 0));
    for (int64_t b = 0; b < batch; b++) {
        const int64_t n = eval_int(e, 1, b);
        if (n < 0 || n > time)
            return eval_fail(e, "length %" PRId64 " at position %" PRId64 " is outside [0, %" PRId64 "]", n, b, time);
        for (int64_t i = 0; i < time; i++) {
            const int64_t from = b * batch_step + (i < n ? n - 1 - i : i) * time_step;
            memcpy(y.data + (size_t)(b * batch_step + i * time_step) * y.size, x.data + (size_t)from * x.size,
                   (size_t)inner * x.size);
        }
    }
    raw_close(e->out[0], y);
    return OK;
}

/* Reversing is its own inverse, so the gradient is reversed the same way. */
static void adjoint_reverse_sequence(Build *b, const Site *s, Node **dx)
{
    dx[0] = build_node(b, OP_reverse_sequence, s->attr, 2, (Node *[]){ s->dout[0], s->in[1] });
}

static Node *sample_reverse_sequence(Build *b, Rng *rng, int variant)
{
    const ReverseAttr at = { variant % 2, !(variant % 2) };
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant % 4;
    sample_dims(rng, rank, 4, dims);
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    Node *lengths = sample_indices(b, rng, I64, 1, &dims[at.batch_axis], 0, dims[at.time_axis]);
    return CALL_ATTR(b, reverse_sequence, at, x, lengths);
}

const OpDef op_reverse_sequence = {
    .name = "reverse_sequence",
    .min_in = 2,
    .max_in = 2,
    .attrs = reverse_attrs,
    .infer = infer_reverse_sequence,
    .eval = eval_reverse_sequence,
    .adjoint = adjoint_reverse_sequence,
    .sample = sample_reverse_sequence,
    .n_variants = 16,
    .differentiable = 1,
    .access.kind = ACCESS_GATHER,
    .access.refuses = true,
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 2,
    .onnx = { "ReverseSequence", 28, NULL },
};

/* ---- tensor_scatter ---- */

typedef struct TensorScatterAttr {
    int64_t axis;
    int mode;
} TensorScatterAttr;

enum { CACHE_LINEAR, CACHE_CIRCULAR };
static const char *const cache_modes[] = { "linear", "circular", NULL };

static const AttrSpec tensor_scatter_attrs[] = {
    ATTR(TensorScatterAttr, axis, INT, -2),
    ATTR_CHOICE(TensorScatterAttr, mode, cache_modes, CACHE_LINEAR),
    ATTR_LAST,
};

static const Type *infer_tensor_scatter(Infer *q)
{
    const Type *x = infer_tensor(q, 0), *u = infer_tensor(q, 1);
    int64_t n = DIM_UNKNOWN;
    int axis;
    if (!x || !u || !infer_same_dtype(q, 0, 1) || (infer_has(q, 2) && !infer_list(q, 2, &n)))
        return NULL;
    if (x->rank < 0 || u->rank < 0)
        return x;
    if (x->rank != u->rank)
        return infer_fail(q, "updates a tensor of rank %d by one of rank %d", x->rank, u->rank);
    if (!infer_axis(q, ((const TensorScatterAttr *)q->attr)->axis, x->rank, &axis))
        return NULL;
    if (axis == 0)
        return infer_fail(q, "axis 0 is the batch");
    if (!dims_fit(n, x->dims[0]))
        return infer_fail(q, "has %" PRId64 " write indices for a batch of %" PRId64, n, x->dims[0]);
    for (int i = 0; i < x->rank; i++)
        if (i != axis ? !dims_fit(x->dims[i], u->dims[i]) : x->dims[i] >= 0 && u->dims[i] > x->dims[i])
            return infer_fail(q, "update %s does not fit %s in dimension %d", type_text(q->scratch, u),
                              type_text(q->scratch, x), i);
    return x;
}

static Status eval_tensor_scatter(Eval *e)
{
    const TensorScatterAttr *at = e->attr;
    const Type *t = eval_type(e, 0);
    const int axis = axis_wrap(at->axis, t->rank);
    const int64_t most = t->dims[axis], n = e->in[1]->type->dims[axis];
    const int64_t outer = move_count(t->dims, 0, axis), inner = move_count(t->dims, axis + 1, t->rank);
    TRY(move_whole(e));
    if (!eval_elements(e, 1))
        return OK;
    const Raw y = raw_of(e, e->out[0]), u = raw_in(e, 1);
    const size_t bytes = (size_t)inner * y.size;
    for (int64_t o = 0; o < outer; o++) {
        const int64_t batch = o / (outer / t->dims[0]), first = eval_has(e, 2) ? eval_int(e, 2, batch) : 0;
        if (first < 0 || (at->mode == CACHE_LINEAR && first > most - n))
            return eval_fail(
                e, "write index %" PRId64 " at position %" PRId64 " leaves no room for %" PRId64 " of %" PRId64, first,
                batch, n, most);
        for (int64_t i = 0; i < n; i++) {
            const int64_t to = (first % most + i) % most;
            const int64_t slot = at->mode == CACHE_LINEAR ? first + i : to;
            memcpy(y.data + (size_t)(o * most + slot) * bytes, u.data + (size_t)(o * n + i) * bytes, bytes);
        }
    }
    raw_close(e->out[0], y);
    return OK;
}

/* The slots that the updates went to: each stands alone, as updates are no longer than the axis. */
static void adjoint_tensor_scatter(Build *b, const Site *s, Node **dx)
{
    const TensorScatterAttr *at = s->attr;
    const Type *x = s->in[0]->type, *u = s->in[1]->type;
    const int axis = axis_wrap(at->axis, x->rank);
    Node *first = site_in(s, 2);
    if (s->want[0])
        dx[0] = first ? CALL_ATTR(b, tensor_scatter, *at, s->dout[0], make_filled(b, u->dtype, 0, u), first)
                      : CALL_ATTR(b, tensor_scatter, *at, s->dout[0], make_filled(b, u->dtype, 0, u));
    if (!s->want[1])
        return;
    int64_t batch[MAX_RANK] = { x->dims[0] };
    for (int i = 1; i < x->rank; i++)
        batch[i] = 1;
    Node *slot = make_count(b, x->rank, axis, u->dims[axis]);
    if (first)
        slot = CALL(b, add, slot, make_reshape(b, build_cast(b, first, I64), x->rank, batch));
    if (first && at->mode == CACHE_CIRCULAR)
        slot = CALL(b, mod, slot, build_scalar(b, I64, (double)x->dims[axis]));
    dx[1] = make_gather_elements(b, s->dout[0], make_expand(b, slot, u->rank, u->dims), axis);
}

static Node *sample_tensor_scatter(Build *b, Rng *rng, int variant)
{
    const int rank = 3 + variant % 2, axis = variant % 3 == 2 ? 1 : rank - 2;
    const TensorScatterAttr at = { variant % 3 ? axis : axis - rank, variant % 2 };
    int64_t dims[MAX_RANK];
    sample_dims(rng, rank, 4, dims);
    dims[axis] = rng_range(rng, 1, 6);
    const int64_t most = dims[axis], n = rng_range(rng, 0, most);
    Node *past = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    dims[axis] = n;
    Node *update = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    if (variant % 4 == 3)
        return CALL_ATTR(b, tensor_scatter, at, past, update);
    Node *where = sample_indices(b, rng, I64, 1, dims, 0, at.mode == CACHE_LINEAR ? most - n : 3 * most);
    return CALL_ATTR(b, tensor_scatter, at, past, update, where);
}

const OpDef op_tensor_scatter = {
    .name = "tensor_scatter",
    .min_in = 2,
    .max_in = 3,
    .attrs = tensor_scatter_attrs,
    .infer = infer_tensor_scatter,
    .eval = eval_tensor_scatter,
    .adjoint = adjoint_tensor_scatter,
    .sample = sample_tensor_scatter,
    .n_variants = 24,
    .differentiable = 1u << 0 | 1u << 1,
    .access.kind = ACCESS_SCATTER,
    .access.alias = { { 0, 0, ALIAS_OVER } },
    .access.refuses = true,
    .amp = { AMP_PW, AMP_PW, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 4,
    .onnx = { "TensorScatter", 24, NULL },
};

/* ---- bit_cast ---- */

typedef struct BitCastAttr {
    int to;
} BitCastAttr;

static const AttrSpec bit_cast_attrs[] = { ATTR_REQUIRED(BitCastAttr, to, DTYPE), ATTR_LAST };

static const Type *infer_bit_cast(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    DType to;
    if (!x)
        return NULL;
    if (!attr_dtype(((const BitCastAttr *)q->attr)->to, &to))
        return infer_fail(q, "does not say to which type");
    if (dtype_bits(to) != dtype_bits(x->dtype) || to == STRING || x->dtype == STRING)
        return infer_fail(q, "cannot read %s as %s: the widths must be equal", dtype_name(x->dtype), dtype_name(to));
    return type_with_dtype(q->types, x, to);
}

static Node *sample_bit_cast(Build *b, Rng *rng, int variant)
{
    static const DType pairs[][2] = { { F32, I32 }, { I64, F64 }, { U16, BF16 }, { I8, U8 },        { I4, F4E2M1 },
                                      { F16, I16 }, { U2, I2 },   { BOOL, U8 },  { F6E2M3, F6E3M2 } };
    const int k = variant % (int)COUNT(pairs);
    int64_t dims[MAX_RANK];
    sample_dims(rng, variant % 6, 4, dims);
    const BitCastAttr at = { (int)pairs[k][1] + 1 };
    return CALL_ATTR(b, bit_cast, at, sample_tensor(b, rng, pairs[k][0], variant % 6, dims, -2, 3));
}

const OpDef op_bit_cast = {
    .name = "bit_cast",
    .min_in = 1,
    .max_in = 1,
    .attrs = bit_cast_attrs,
    .infer = infer_bit_cast,
    .eval = move_whole,
    .sample = sample_bit_cast,
    .n_variants = 24,
    .access.kind = ACCESS_MOVE,
    .access.iterate = iterate_flat,
    .access.alias = { { 0, 0, ALIAS_VIEW } },
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "BitCast", 26, NULL },
};
