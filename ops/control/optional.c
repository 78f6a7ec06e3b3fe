/* optional, optional_get_element, optional_has_element: a value or none. */
#include "ops/card/shapes.h"
#include "ops/control/sequence.h"

#define OPTIONALS                                                                                                      \
    .access.kind = ACCESS_OPAQUE, .access.opaque = "an optional is no tensor",                                         \
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL }, .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } }

typedef struct OptionalAttr {
    const Type *type; /* of the element, where none is given */
} OptionalAttr;

static const AttrSpec optional_attrs[] = { ATTR_OPTIONAL(OptionalAttr, type, TYPE), ATTR_LAST };

static const Type *infer_optional(Infer *q)
{
    const Type *given = ((const OptionalAttr *)q->attr)->type;
    if (!infer_has(q, 0))
        return given ? type_optional(q->types, given) : infer_fail(q, "has neither an element nor its type");
    if (given && !type_agrees(given, q->in[0]))
        return infer_fail(q, "has an element %s where its type says %s", type_text(q->scratch, q->in[0]),
                          type_text(q->scratch, given));
    return type_optional(q->types, q->in[0]);
}

static Status eval_optional(Eval *e)
{
    const bool some = eval_has(e, 0);
    eval_give_group(e, 0, eval_type(e, 0), some, some ? (Tensor *const *)(uintptr_t)e->in : NULL);
    return OK;
}

static Node *sample_optional(Build *b, Rng *rng, int variant)
{
    Types *types = &b->graph->ir->types;
    const DType dtype = sample_dtype(variant);
    const Type *loose = type_unranked(types, dtype);
    int64_t dims[MAX_RANK];
    sample_dims(rng, variant % 4, 3, dims);
    Node *x = sample_tensor(b, rng, dtype, variant % 4, dims, -3, 3);
    Node *s = variant % 2 ? CALL(b, sequence_construct, x) : x;
    const OptionalAttr at = { variant % 2 ? type_seq(types, loose) : loose };
    if (variant % 3 == 0)
        return build_node(b, OP_optional, &at, 0, NULL);
    return variant % 3 == 1 ? CALL_ATTR(b, optional, at, s) : CALL(b, optional, s);
}

const OpDef op_optional = {
    .name = "optional",
    .max_in = 1,
    .attrs = optional_attrs,
    .infer = infer_optional,
    .eval = eval_optional,
    .sample = sample_optional,
    .n_variants = 12,
    OPTIONALS,
    .onnx = { "Optional", 28, NULL },
};

/* ---- optional_get_element ---- */

static const Type *infer_optional_get_element(Infer *q)
{
    if (!infer_has(q, 0))
        return infer_fail(q, "operand 0 is missing");
    return q->in[0]->kind == TYPE_OPTIONAL ? q->in[0]->parts[0] : q->in[0];
}

static Status eval_optional_get_element(Eval *e)
{
    const Tensor *x = e->in[0];
    if (x->type->kind != TYPE_OPTIONAL) {
        eval_give(e, 0, x);
        return OK;
    }
    if (!x->n_items)
        return eval_fail(e, "the optional is empty");
    eval_give(e, 0, x->items[0]);
    return OK;
}

/* An optional stops what reaches it; a tensor passes whole. */
static void adjoint_optional_get_element(Build *b, const Site *s, Node **dx)
{
    (void)b;
    if (s->want[0] && s->in[0]->type->kind == TYPE_TENSOR)
        dx[0] = s->dout[0];
}

static Node *sample_optional_get_element(Build *b, Rng *rng, int variant)
{
    int64_t dims[MAX_RANK];
    sample_dims(rng, variant % 4, 3, dims);
    Node *x = sample_tensor(b, rng, sample_dtype(variant), variant % 4, dims, -3, 3);
    Node *s = variant % 2 ? CALL(b, sequence_construct, x) : x;
    return CALL(b, optional_get_element, variant % 3 ? CALL(b, optional, s) : s);
}

const OpDef op_optional_get_element = {
    .name = "optional_get_element",
    .min_in = 1,
    .max_in = 1,
    .infer = infer_optional_get_element,
    .eval = eval_optional_get_element,
    .adjoint = adjoint_optional_get_element,
    .differentiable = 1,
    .sample = sample_optional_get_element,
    .n_variants = 12,
    OPTIONALS,
    .onnx = { "OptionalGetElement", 28, NULL },
};

/* ---- optional_has_element ---- */

static const Type *infer_optional_has_element(Infer *q)
{
    return type_scalar(q->types, BOOL);
}

static Status eval_optional_has_element(Eval *e)
{
    const bool some = eval_has(e, 0) && (e->in[0]->type->kind != TYPE_OPTIONAL || e->in[0]->n_items);
    tensor_set_i64(eval_out(e, 0), 0, some);
    return OK;
}

static Node *sample_optional_has_element(Build *b, Rng *rng, int variant)
{
    if (variant == 0)
        return build_node(b, OP_optional_has_element, NULL, 0, NULL);
    if (variant == 1)
        return build_node(b, OP_optional_has_element, NULL, 1, (Node *[]){ NULL });
    if (variant == 2)
        return CALL(b, optional_has_element, build_scalar(b, F32, 1));
    return CALL(b, optional_has_element, sample_optional(b, rng, variant));
}

const OpDef op_optional_has_element = {
    .name = "optional_has_element",
    .max_in = 1,
    .infer = infer_optional_has_element,
    .eval = eval_optional_has_element,
    .sample = sample_optional_has_element,
    .n_variants = 12,
    OPTIONALS,
    .onnx = { "OptionalHasElement", 28, NULL },
};

#undef OPTIONALS
