/* Between a tensor and the sequence of its parts: concat_from_sequence, split_to_sequence. */
#include "base/checked.h"
#include "ops/card/attrs.h"
#include "ops/card/shapes.h"
#include "ops/control/sequence.h"
#include "ops/move/move.h"

#define PARTS                                                                                                          \
    .access.kind = ACCESS_OPAQUE, .access.opaque = "a sequence is no tensor",                                          \
    .quant = { .in = { QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } }

/* ---- concat_from_sequence ---- */

static const AttrSpec concat_from_sequence_attrs[] = {
    ATTR_REQUIRED(SequenceConcatAttr, axis, INT),
    ATTR(SequenceConcatAttr, new_axis, BOOL, false),
    ATTR_LAST,
};

/* The extent along the axis of all items together; false after a complaint. */
static bool extent_of(Infer *q, const Tensor *s, int axis, bool fresh, int64_t *extent)
{
    const Type *first = s->n_items ? s->items[0]->type : NULL;
    *extent = fresh ? (int64_t)s->n_items : 0;
    for (size_t i = 0; i < s->n_items; i++) {
        const Type *t = s->items[i]->type;
        bool fits = t->rank == first->rank;
        for (int k = 0; fits && k < t->rank; k++)
            fits = (!fresh && k == axis) || t->dims[k] == first->dims[k];
        if (!fits)
            return infer_fail(q, "item %zu is %s, item 0 %s", i, type_text(q->scratch, t),
                              type_text(q->scratch, first)),
                   false;
        if (!fresh && !checked_add_i64(*extent, t->dims[axis], extent))
            return infer_fail(q, "makes axis %d too long", axis), false;
    }
    return true;
}

static const Type *infer_concat_from_sequence(Infer *q)
{
    const SequenceConcatAttr *at = q->attr;
    const Type *element = infer_sequence(q, 0);
    const Tensor *s = infer_sequence_value(q, 0);
    int64_t dims[MAX_RANK + 1], extent = DIM_UNKNOWN;
    int axis;
    if (!element)
        return NULL;
    if (s && !s->n_items)
        return infer_fail(q, "the sequence is empty");
    if (s)
        element = s->items[0]->type;
    if (element->kind != TYPE_TENSOR)
        return infer_fail(q, "needs a sequence of tensors, not of %s", type_text(q->scratch, element));
    if (element->rank < 0)
        return element;
    const int rank = element->rank + at->new_axis;
    if (!infer_axis(q, at->axis, rank, &axis) || (s && !extent_of(q, s, axis, at->new_axis, &extent)))
        return NULL;
    for (int i = 0, k = 0; i < rank; i++)
        dims[i] = at->new_axis && i == axis ? 0 : element->dims[k++];
    dims[axis] = extent;
    return infer_dims(q, element->dtype, rank, dims);
}

static Status eval_concat_from_sequence(Eval *e)
{
    const SequenceConcatAttr *at = e->attr;
    const Type *t = eval_type(e, 0);
    const int axis = axis_wrap(at->axis, t->rank);
    const int64_t outer = move_count(t->dims, 0, axis), inner = move_count(t->dims, axis + 1, t->rank);
    const int64_t row = t->dims[axis] * inner;
    const Raw y = raw_open(e, eval_out(e, 0));
    int64_t done = 0;
    for (size_t i = 0; i < e->in[0]->n_items; i++) {
        const Tensor *item = e->in[0]->items[i];
        const Raw x = raw_of(e, item);
        const int64_t part = (at->new_axis ? 1 : item->type->dims[axis]) * inner;
        Move m = { .size = x.size };
        move_axis(&m, outer, row, part);
        move_axis(&m, part, 1, 1);
        move_run(&m, y.data + (size_t)done * y.size, x.data);
        done += part;
    }
    raw_close(e->out[0], y);
    return OK;
}

static Node *sample_concat_from_sequence(Build *b, Rng *rng, int variant)
{
    Node *items[3];
    int64_t dims[MAX_RANK];
    const int rank = variant % 2 ? variant / 2 % 4 : 1 + variant / 2 % 3, n = 1 + (int)rng_below(rng, 3);
    const int axis = (int)rng_below(rng, rank + variant % 2);
    const SequenceConcatAttr at = { rng_below(rng, 2) ? axis : axis - rank - variant % 2, variant % 2 };
    sample_dims(rng, rank, 3, dims);
    for (int i = 0; i < n; i++) {
        if (!at.new_axis)
            sample_dims(rng, 1, 3, &dims[axis]);
        items[i] = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    }
    Node *s = build_node(b, OP_sequence_construct, NULL, n, items);
    return CALL_ATTR(b, concat_from_sequence, at, s);
}

const OpDef op_concat_from_sequence = {
    .name = "concat_from_sequence",
    .min_in = 1,
    .max_in = 1,
    .attrs = concat_from_sequence_attrs,
    .infer = infer_concat_from_sequence,
    .eval = eval_concat_from_sequence,
    .sample = sample_concat_from_sequence,
    .n_variants = 20,
    PARTS,
    .amp = { AMP_PW, AMP_PW, 0, REASON_NONE, NULL },
    .onnx = { "ConcatFromSequence", 11, NULL },
};

/* ---- split_to_sequence ---- */

static const AttrSpec split_to_sequence_attrs[] = {
    ATTR(SplitItemsAttr, axis, INT, 0),
    ATTR(SplitItemsAttr, keepdims, BOOL, true),
    ATTR_LAST,
};

/* The extent all parts have along the axis, ? where they differ or are not known; false after a complaint. */
static bool common_part(Infer *q, int64_t dim, int64_t *part)
{
    int64_t n, sum = 0;
    *part = 1;
    if (!infer_has(q, 1))
        return true;
    if (!infer_list(q, 1, &n))
        return false;
    const int64_t *v = infer_ints(q, 1, &n);
    const bool every = q->in[1]->rank == 0;
    *part = v && n ? v[0] : DIM_UNKNOWN;
    for (int64_t i = 0; v && i < n; i++) {
        if (v[i] < (every ? 1 : 0) || !checked_add_i64(sum, v[i], &sum))
            return infer_fail(q, "part %" PRId64 " has length %" PRId64, i, v[i]), false;
        *part = v[i] == *part ? *part : DIM_UNKNOWN;
    }
    if (every)
        *part = v && dim >= 0 && dim % v[0] == 0 ? v[0] : DIM_UNKNOWN;
    else if (v && !dims_fit(sum, dim))
        return infer_fail(q, "its parts are %" PRId64 " together, the axis is %" PRId64, sum, dim), false;
    return true;
}

static const Type *infer_split_to_sequence(Infer *q)
{
    const SplitItemsAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    int64_t dims[MAX_RANK], part;
    int axis = 0;
    if (!x || (x->rank >= 0 && !infer_axis(q, at->axis, x->rank, &axis)))
        return NULL;
    if (!common_part(q, x->rank < 0 ? DIM_UNKNOWN : x->dims[axis], &part))
        return NULL;
    if (x->rank < 0)
        return type_seq(q->types, x);
    const bool drop = !infer_has(q, 1) && !at->keepdims;
    for (int i = 0, k = 0; i < x->rank; i++)
        if (i != axis || !drop)
            dims[k++] = i == axis ? part : x->dims[i];
    return type_seq(q->types, type_tensor(q->types, x->dtype, x->rank - drop, dims));
}

/* How many parts there are; the length of part i. */
static int64_t count_parts(const Eval *e, int64_t dim)
{
    if (!eval_has(e, 1))
        return dim;
    if (e->in[1]->type->rank)
        return eval_elements(e, 1);
    const int64_t each = eval_int(e, 1, 0);
    return dim / each + (dim % each != 0);
}

static int64_t part_length(const Eval *e, int64_t dim, int64_t i)
{
    if (!eval_has(e, 1))
        return 1;
    if (e->in[1]->type->rank)
        return eval_int(e, 1, i);
    const int64_t each = eval_int(e, 1, 0), left = dim - i * each;
    return left < each ? left : each;
}

static Tensor *cut_part(Eval *e, Raw x, int axis, int64_t first, int64_t length)
{
    const SplitItemsAttr *at = e->attr;
    const Type *t = e->in[0]->type;
    const bool drop = !eval_has(e, 1) && !at->keepdims;
    int64_t dims[MAX_RANK];
    for (int i = 0, k = 0; i < t->rank; i++)
        if (i != axis || !drop)
            dims[k++] = i == axis ? length : t->dims[i];
    Tensor *part = tensor_alloc(eval_heap(e), type_tensor(&e->ir->types, t->dtype, t->rank - drop, dims));
    const int64_t outer = move_count(t->dims, 0, axis), inner = move_count(t->dims, axis + 1, t->rank);
    const Raw y = raw_open(e, part);
    Move m = { .size = x.size };
    move_axis(&m, outer, length * inner, t->dims[axis] * inner);
    move_axis(&m, length * inner, 1, 1);
    if (tensor_elements(part))
        move_run(&m, y.data, x.data + (size_t)(first * inner) * x.size);
    raw_close(part, y);
    return part;
}

static Status eval_split_to_sequence(Eval *e)
{
    const Type *t = e->in[0]->type;
    const int axis = axis_wrap(((const SplitItemsAttr *)e->attr)->axis, t->rank);
    const int64_t dim = t->dims[axis], n = count_parts(e, dim);
    const Raw x = raw_in(e, 0);
    Tensor **items = eval_scratch(e, (size_t)n, sizeof *items);
    int64_t first = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t length = part_length(e, dim, i);
        items[i] = cut_part(e, x, axis, first, length);
        first += length;
    }
    const Type *element = items_type(&e->ir->types, (size_t)n, items, eval_type(e, 0)->parts[0]);
    eval_give_group(e, 0, type_seq(&e->ir->types, element), (size_t)n, items);
    for (int64_t i = 0; i < n; i++)
        tensor_drop(eval_heap(e), items[i]);
    return OK;
}

static Node *sample_split_to_sequence(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], parts[3];
    const int rank = 1 + variant % 4, axis = (int)rng_below(rng, rank), n = 1 + (int)rng_below(rng, 3);
    const SplitItemsAttr at = { rng_below(rng, 2) ? axis : axis - rank, variant % 2 };
    sample_dims(rng, rank, 4, dims);
    if (variant % 3 == 0)
        return CALL_ATTR(b, split_to_sequence, at, sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3));
    if (variant % 3 == 1) {
        parts[0] = rng_range(rng, 1, 5);
        Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
        return CALL_ATTR(b, split_to_sequence, at, x, sample_ints(b, variant % 2 ? I64 : I32, 0, NULL, parts));
    }
    dims[axis] = 0;
    for (int i = 0; i < n; i++)
        dims[axis] += parts[i] = rng_below(rng, 4);
    Node *x = sample_tensor(b, rng, sample_dtype(variant), rank, dims, -3, 3);
    return CALL_ATTR(b, split_to_sequence, at, x, build_i64s(b, n, parts));
}

const OpDef op_split_to_sequence = {
    .name = "split_to_sequence",
    .min_in = 1,
    .max_in = 2,
    .attrs = split_to_sequence_attrs,
    .infer = infer_split_to_sequence,
    .eval = eval_split_to_sequence,
    .sample = sample_split_to_sequence,
    .n_variants = 30,
    PARTS,
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .onnx = { "SplitToSequence", 24, NULL },
};

#undef PARTS
