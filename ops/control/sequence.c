/* Sequences of tensors: made, read, changed.  They are values like all others: an insertion gives a new sequence, whose
 * items are shared with the old one. */
#include "ops/control/sequence.h"

#include "ops/card/shapes.h"
#include "ops/move/move.h"

const Type *infer_sequence(Infer *q, int i)
{
    if (!infer_has(q, i))
        return infer_fail(q, "operand %d is missing", i);
    if (q->in[i]->kind != TYPE_SEQ)
        return infer_fail(q, "operand %d must be a sequence, not %s", i, type_text(q->scratch, q->in[i]));
    return q->in[i]->parts[0];
}

const Tensor *infer_sequence_value(const Infer *q, int i)
{
    const Tensor *t = infer_has(q, i) ? infer_known(q, i) : NULL;
    return t && t->type->kind == TYPE_SEQ ? t : NULL;
}

void eval_give_group(Eval *e, int i, const Type *type, size_t n, Tensor *const *items)
{
    Tensor *group = tensor_group(eval_heap(e), type, n, items);
    eval_give(e, i, group);
    tensor_drop(eval_heap(e), group);
}

const Type *items_type(Types *types, size_t n, Tensor *const *items, const Type *none)
{
    const Type *t = n ? items[0]->type : none;
    for (size_t i = 1; i < n && t; i++)
        t = type_join(types, t, items[i]->type);
    return t;
}

#define SEQUENCES                                                                                                      \
    .access.kind = ACCESS_OPAQUE, .access.opaque = "a sequence is no tensor",                                          \
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },                                                                     \
    .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } }

/* A position in a sequence of n items, or of one more place; false after a complaint. */
static bool position(Eval *e, int i, int64_t n, int64_t *at)
{
    const int64_t given = eval_int(e, i, 0);
    *at = given;
    if (index_wrap(at, n))
        return true;
    (void)eval_fail(e, "position %" PRId64 " is outside [%" PRId64 ", %" PRId64 ")", given, -n, n);
    return false;
}

/* ---- sequence_construct ---- */

static const Type *infer_sequence_construct(Infer *q)
{
    const Type *element = infer_tensor(q, 0);
    for (int i = 0; i < q->n_in; i++) {
        const Type *x = infer_tensor(q, i);
        if (!x || !infer_same_dtype(q, 0, i))
            return NULL;
        element = type_join(q->types, element, x);
    }
    return type_seq(q->types, element);
}

static Status eval_sequence_construct(Eval *e)
{
    eval_give_group(e, 0, eval_type(e, 0), (size_t)e->n_in, (Tensor *const *)(uintptr_t)e->in);
    return OK;
}

/* A sequence of up to `most` small tensors, some of equal shapes. */
static Node *sample_sequence(Build *b, Rng *rng, DType dtype, int rank, int least, int most)
{
    Node *items[4];
    int64_t dims[MAX_RANK];
    const int n = (int)rng_range(rng, least, most);
    const bool equal = rng_below(rng, 2);
    sample_dims(rng, rank, 3, dims);
    for (int i = 0; i < n; i++) {
        if (!equal)
            sample_dims(rng, rank, 3, dims);
        items[i] = sample_tensor(b, rng, dtype, rank, dims, -3, 3);
    }
    return build_node(b, OP_sequence_construct, NULL, n, items);
}

static Node *sample_sequence_construct(Build *b, Rng *rng, int variant)
{
    return sample_sequence(b, rng, sample_dtype(variant), variant % 4, 1, 4);
}

const OpDef op_sequence_construct = {
    .name = "sequence_construct",
    .min_in = 1,
    .max_in = -1,
    .infer = infer_sequence_construct,
    .eval = eval_sequence_construct,
    .sample = sample_sequence_construct,
    .n_variants = 12,
    SEQUENCES,
    .onnx = { "SequenceConstruct", 11, NULL },
};

/* ---- sequence_empty ---- */

typedef struct EmptyAttr {
    int dtype;
} EmptyAttr;

static const AttrSpec sequence_empty_attrs[] = { ATTR_OPTIONAL(EmptyAttr, dtype, DTYPE), ATTR_LAST };

static const Type *infer_sequence_empty(Infer *q)
{
    DType dtype = F32;
    attr_dtype(((const EmptyAttr *)q->attr)->dtype, &dtype);
    return type_seq(q->types, type_unranked(q->types, dtype));
}

static Status eval_sequence_empty(Eval *e)
{
    eval_give_group(e, 0, eval_type(e, 0), 0, NULL);
    return OK;
}

static Node *sample_sequence_empty(Build *b, Rng *rng, int variant)
{
    (void)rng;
    const EmptyAttr at = { variant ? (int)sample_dtype(variant) + 1 : 0 };
    return build_node(b, OP_sequence_empty, &at, 0, NULL);
}

const OpDef op_sequence_empty = {
    .name = "sequence_empty",
    .attrs = sequence_empty_attrs,
    .infer = infer_sequence_empty,
    .eval = eval_sequence_empty,
    .sample = sample_sequence_empty,
    .n_variants = 4,
    SEQUENCES,
    .onnx = { "SequenceEmpty", 11, NULL },
};

/* ---- sequence_at ---- */

static const Type *infer_sequence_at(Infer *q)
{
    const Type *element = infer_sequence(q, 0);
    int64_t at;
    bool known;
    if (!element || !infer_one(q, 1, &known, &at))
        return NULL;
    const Tensor *s = infer_sequence_value(q, 0);
    return s && known && index_wrap(&at, (int64_t)s->n_items) ? s->items[at]->type : element;
}

static Status eval_sequence_at(Eval *e)
{
    int64_t at;
    if (!position(e, 1, (int64_t)e->in[0]->n_items, &at))
        return INVALID;
    eval_give(e, 0, e->in[0]->items[at]);
    return OK;
}

static Node *sample_position(Build *b, Rng *rng, int variant, int64_t n)
{
    const int64_t at = rng_range(rng, -n, n - 1), one = 1;
    return sample_ints(b, variant % 2 ? I64 : I32, variant % 3 == 0, &one, &at);
}

static Node *sample_sequence_at(Build *b, Rng *rng, int variant)
{
    Node *s = sample_sequence(b, rng, sample_dtype(variant), variant % 3, 3, 3);
    return CALL(b, sequence_at, s, sample_position(b, rng, variant, 3));
}

const OpDef op_sequence_at = {
    .name = "sequence_at",
    .min_in = 2,
    .max_in = 2,
    .infer = infer_sequence_at,
    .eval = eval_sequence_at,
    .sample = sample_sequence_at,
    .n_variants = 12,
    SEQUENCES,
    .onnx = { "SequenceAt", 11, NULL },
};

/* ---- sequence_insert ---- */

static const Type *infer_sequence_insert(Infer *q)
{
    const Type *element = infer_sequence(q, 0), *x = infer_tensor(q, 1);
    int64_t at;
    bool known;
    if (!element || !x || (infer_has(q, 2) && !infer_one(q, 2, &known, &at)))
        return NULL;
    const Tensor *s = infer_sequence_value(q, 0);
    const bool dtypes = element->kind == TYPE_TENSOR && element->dtype == x->dtype;
    const Type *joined = !dtypes ? NULL : s && !s->n_items ? x : type_join(q->types, element, x);
    if (!joined)
        return infer_fail(q, "inserts %s into %s", type_text(q->scratch, x), type_text(q->scratch, q->in[0]));
    return type_seq(q->types, joined);
}

static Status eval_sequence_insert(Eval *e)
{
    const Tensor *s = e->in[0];
    const size_t n = s->n_items;
    int64_t at = (int64_t)n;
    if (eval_has(e, 2) && eval_int(e, 2, 0) != at && !position(e, 2, (int64_t)n, &at))
        return INVALID;
    const Tensor **items = eval_scratch(e, n + 1, sizeof *items);
    for (size_t i = 0; i <= n; i++)
        items[i] = (int64_t)i == at ? e->in[1] : s->items[(int64_t)i < at ? i : i - 1];
    eval_give_group(e, 0, eval_type(e, 0), n + 1, (Tensor *const *)(uintptr_t)items);
    return OK;
}

static Node *sample_sequence_insert(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK], at = rng_range(rng, -2, 2);
    const DType dtype = variant % 4 ? sample_dtype(variant) : F32;
    Node *s = variant % 4 ? sample_sequence(b, rng, dtype, variant % 3, 2, 2)
                          : build_node(b, OP_sequence_empty, NULL, 0, NULL);
    sample_dims(rng, variant % 3, 3, dims);
    Node *x = sample_tensor(b, rng, dtype, variant % 3, dims, -3, 3);
    return variant % 4 && variant % 5 ? CALL(b, sequence_insert, s, x, sample_ints(b, I64, 0, NULL, &at))
                                      : CALL(b, sequence_insert, s, x);
}

const OpDef op_sequence_insert = {
    .name = "sequence_insert",
    .min_in = 2,
    .max_in = 3,
    .infer = infer_sequence_insert,
    .eval = eval_sequence_insert,
    .sample = sample_sequence_insert,
    .n_variants = 16,
    SEQUENCES,
    .onnx = { "SequenceInsert", 11, NULL },
};

/* ---- sequence_erase ---- */

static const Type *infer_sequence_erase(Infer *q)
{
    int64_t at;
    bool known;
    if (!infer_sequence(q, 0) || (infer_has(q, 1) && !infer_one(q, 1, &known, &at)))
        return NULL;
    return q->in[0];
}

static Status eval_sequence_erase(Eval *e)
{
    const Tensor *s = e->in[0];
    int64_t at = (int64_t)s->n_items - 1;
    if (!s->n_items)
        return eval_fail(e, "the sequence is empty");
    if (eval_has(e, 1) && !position(e, 1, (int64_t)s->n_items, &at))
        return INVALID;
    Tensor **items = eval_scratch(e, s->n_items, sizeof *items);
    for (size_t i = 0; i + 1 < s->n_items; i++)
        items[i] = s->items[(int64_t)i < at ? i : i + 1];
    eval_give_group(e, 0, eval_type(e, 0), s->n_items - 1, items);
    return OK;
}

static Node *sample_sequence_erase(Build *b, Rng *rng, int variant)
{
    Node *s = sample_sequence(b, rng, sample_dtype(variant), variant % 3, 2, 2);
    return variant % 3 ? CALL(b, sequence_erase, s, sample_position(b, rng, variant, 2)) : CALL(b, sequence_erase, s);
}

const OpDef op_sequence_erase = {
    .name = "sequence_erase",
    .min_in = 1,
    .max_in = 2,
    .infer = infer_sequence_erase,
    .eval = eval_sequence_erase,
    .sample = sample_sequence_erase,
    .n_variants = 12,
    SEQUENCES,
    .onnx = { "SequenceErase", 11, NULL },
};

/* ---- sequence_length ---- */

static const Type *infer_sequence_length(Infer *q)
{
    return infer_sequence(q, 0) ? type_scalar(q->types, I64) : NULL;
}

static Status eval_sequence_length(Eval *e)
{
    tensor_set_i64(eval_out(e, 0), 0, (int64_t)e->in[0]->n_items);
    return OK;
}

static Node *sample_sequence_length(Build *b, Rng *rng, int variant)
{
    return CALL(b, sequence_length, sample_sequence(b, rng, sample_dtype(variant), variant % 3, 1, 4));
}

const OpDef op_sequence_length = {
    .name = "sequence_length",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_sequence_length,
    .eval = eval_sequence_length,
    .sample = sample_sequence_length,
    .n_variants = 6,
    SEQUENCES,
    .onnx = { "SequenceLength", 11, NULL },
};

#undef SEQUENCES
