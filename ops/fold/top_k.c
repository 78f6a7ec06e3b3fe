/* top_k: the largest or smallest elements of every lane, and where they were. */
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/order.h"
#include "ops/fold/fold_access.h"
#include "ops/fold/fold_kernels.h"

static const AttrSpec top_k_attrs[] = {
    ATTR(TopKAttr, axis, INT, -1),
    ATTR(TopKAttr, largest, BOOL, true),
    ATTR(TopKAttr, sorted, BOOL, true),
    ATTR_LAST,
};

static const Type *infer_top_k(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    int64_t dims[MAX_RANK], k = DIM_UNKNOWN;
    bool known;
    int axis;
    if (!x || !infer_one(q, 1, &known, &k))
        return NULL;
    if (known && k < 0)
        return infer_fail(q, "k is %" PRId64, k);
    if (x->rank < 0)
        return infer_results(q, 2, (const Type *[]){ x, type_unranked(q->types, I64) });
    if (!infer_axis(q, ((const TopKAttr *)q->attr)->axis, x->rank, &axis))
        return NULL;
    if (known && x->dims[axis] >= 0 && k > x->dims[axis])
        return infer_fail(q, "wants %" PRId64 " of %" PRId64 " elements", k, x->dims[axis]);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? (known ? k : DIM_UNKNOWN) : x->dims[i];
    return infer_results(
        q, 2,
        (const Type *[]){ type_tensor(q->types, x->dtype, x->rank, dims), type_tensor(q->types, I64, x->rank, dims) });
}

/* The k best of a lane so far: a heap whose root is the worst of them. */
typedef struct Best {
    const uint64_t *keys; /* of the lane: smaller is better */
    int64_t step;
    int64_t *heap;
    int64_t n;
} Best;

/* Of equal keys the lower index is better. */
static bool worse(const Best *b, int64_t i, int64_t j)
{
    const uint64_t x = b->keys[i * b->step], y = b->keys[j * b->step];
    return x != y ? x > y : i > j;
}

static void sink(Best *b, int64_t at, int64_t n)
{
    const int64_t moved = b->heap[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && worse(b, b->heap[child + 1], b->heap[child]))
            child++;
        if (!worse(b, b->heap[child], moved))
            break;
        b->heap[at] = b->heap[child];
        at = child;
    }
    b->heap[at] = moved;
}

/* Leaves the indices of the k best of n in b->heap, best first. */
static void choose(Best *b, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        b->heap[i] = i;
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        sink(b, i, k);
    for (int64_t i = k; i < n && k; i++)
        if (worse(b, b->heap[0], i)) {
            b->heap[0] = i;
            sink(b, 0, k);
        }
    for (int64_t left = k - 1; left > 0; left--) {
        const int64_t worst = b->heap[0];
        b->heap[0] = b->heap[left];
        b->heap[left] = worst;
        sink(b, 0, left);
    }
}

static Status eval_top_k(Eval *e)
{
    const TopKAttr *at = e->attr;
    const Type *x = e->in[0]->type;
    const int axis = axis_wrap(at->axis, x->rank);
    const int64_t n = x->dims[axis], k = eval_type(e, 0)->dims[axis];
    const int64_t outer = move_count(x->dims, 0, axis), inner = move_count(x->dims, axis + 1, x->rank);
    const Raw from = raw_in(e, 0), to = raw_open(e, eval_out(e, 0));
    int64_t *places = e->n_out > 1 ? eval_out(e, 1)->data : NULL;
    uint64_t *keys = order_keys(e, e->in[0]);
    Best b = { keys, inner, eval_scratch(e, (size_t)k, sizeof *b.heap), k };
    const int64_t all = eval_elements(e, 0);
    for (int64_t i = 0; at->largest && i < all; i++)
        keys[i] = ~keys[i];
    for (int64_t lane = 0; lane < outer * inner && k; lane++) {
        const int64_t first = lane / inner * n * inner + lane % inner, out = lane / inner * k * inner + lane % inner;
        b.keys = keys + first;
        choose(&b, n, k);
        for (int64_t i = 0; i < k; i++) {
            const int64_t source = first + b.heap[i] * inner, target = out + i * inner;
            raw_fill(to.data + (size_t)target * to.size, from.data + (size_t)source * from.size, 1, from.size);
            if (places)
                places[target] = b.heap[i];
        }
    }
    raw_close(e->out[0], to);
    return OK;
}

/* What reaches a value goes back to where it was. */
static void adjoint_top_k(Build *b, const Site *s, Node **dx)
{
    const TopKAttr *at = s->attr;
    const ScatterAttr put = { SCATTER_NONE, at->axis };
    const Type *x = s->in[0]->type;
    if (!s->want[0] || !s->dout[0])
        return;
    Node *places = s->n_out > 1 ? s->y[1] : build_part(b, build_node_n(b, OP_top_k, at, 2, s->in, 2), 1);
    Node *zeros = make_filled(b, x->dtype, 0, x);
    dx[0] = CALL_ATTR(b, scatter_elements, put, zeros, places, s->dout[0]);
}

/* Rounding keeps the order, except that it makes ties: where the indices are used, the operand stays wide. */
static AmpClass amp_top_k(const Node *n, DType target)
{
    (void)target;
    for (const Use *u = n->uses; u; u = u->next)
        if (u->user->op == OP_part && ((const PartAttr *)u->user->attr)->index == 1 && u->user->uses)
            return AMP_FI;
    return AMP_PM;
}

static Node *sample_top_k(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, I64, F16, U8, F64, I32, BF16, U64 };
    int64_t dims[MAX_RANK];
    const int rank = 1 + variant % 5, axis = (int)rng_below(rng, rank);
    const DType dtype = types[variant % (int)COUNT(types)];
    const TopKAttr at = { variant % 3 ? axis : axis - rank, variant % 2, variant % 4 != 3 };
    sample_dims(rng, rank, 5, dims);
    const int64_t k = rng_range(rng, 0, dims[axis]), one = 1;
    Node *ties = build_cast(b, sample_tensor(b, rng, I32, rank, dims, 0, 4), dtype);
    Node *ins[] = { rng_below(rng, 2) ? sample_tensor(b, rng, dtype, rank, dims, 0, 4) : ties,
                    sample_ints(b, I64, 1, &one, &k) };
    return build_node_n(b, OP_top_k, &at, 2, ins, 1 + variant % 2);
}

const OpDef op_top_k = {
    .name = "top_k",
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .attrs = top_k_attrs,
    .infer = infer_top_k,
    .eval = eval_top_k,
    .adjoint = adjoint_top_k,
    .sample = sample_top_k,
    .n_variants = 40,
    .differentiable = 1,
    .access.kind = ACCESS_FOLD,
    .access.iterate = iterate_top_k,
    .access.kernels = kernels_top_k,
    .amp = { AMP_C, AMP_C, 0, REASON_INDEX, amp_top_k },
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT, QUANT_NEVER } },
    .access.steer = 2,
    .onnx = { "TopK", 24, NULL },
};
