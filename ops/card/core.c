/* The structural words: they hold a graph together and have no arithmetic. */
#include "ir/role.h"
#include "ops/card/cards.h"

#define MARK_ATTRS(S, words)                                                                                           \
    { .name = "role", .kind = ATTR_ENUM, .offset = offsetof(S, mark.role), .choices = (words), .ours = true },         \
    {                                                                                                                  \
        .name = "of", .kind = ATTR_STR, .offset = offsetof(S, mark.of), .ours = true                                   \
    }
#define WORD(word, of, what) #word,

static const char *const state_words[] = { STATE_ROLES(WORD) NULL };
static const char *const input_words[] = { INPUT_ROLES(WORD) NULL };
static const AttrSpec state_attrs[] = { ATTR_OPTIONAL(StateAttr, value, PAYLOAD), MARK_ATTRS(StateAttr, state_words),
                                        ATTR_OURS(StateAttr, stored, STR, 0), ATTR_LAST };
static const AttrSpec input_attrs[] = { MARK_ATTRS(InputAttr, input_words), ATTR_LAST };
static const AttrSpec value_attrs[] = { ATTR_OPTIONAL(ValueAttr, value, PAYLOAD), ATTR_LAST };
static const AttrSpec part_attrs[] = { ATTR_REQUIRED(PartAttr, index, INT), ATTR_LAST };

static const Type *infer_value(Infer *q)
{
    const ValueAttr *at = q->attr;
    if (!at->value)
        return q->declared ? q->declared : infer_fail(q, "has no value");
    return at->value->type;
}

static const Type *infer_part(Infer *q)
{
    const int64_t index = ((const PartAttr *)q->attr)->index;
    const Type *t = q->in[0];
    if (!t || t->kind != TYPE_TUPLE)
        return infer_fail(q, "reads a tuple");
    if (index < 0 || index >= t->n_parts)
        return infer_fail(q, "index %" PRId64 " is outside the %d parts", index, t->n_parts);
    return t->parts[index];
}

static const Type *infer_tuple(Infer *q)
{
    const Type **parts = NEWS(q->scratch, const Type *, q->n_in + 1);
    for (int i = 0; i < q->n_in; i++)
        parts[i] = q->in[i] ? q->in[i] : type_none(q->types);
    return type_tuple(q->types, q->n_in, parts);
}

static const Type *infer_declared(Infer *q)
{
    return q->declared ? q->declared : infer_fail(q, "has no type of its own");
}

#define STRUCTURE .structural = true, .amp = { AMP_N, AMP_N, 0, REASON_NONE, NULL }, .quant = { .out = { QUANT_NEVER } }

const OpDef op_input = {
    .name = "input",
    STRUCTURE,
    .attrs = input_attrs,
    .infer = infer_declared,
    .brief = "An input of a graph or region.",
};

const OpDef op_state = {
    .name = "state",
    STRUCTURE,
    .attrs = state_attrs,
    .infer = infer_declared,
    .brief = "A value that lives from step to step; the graph returns its next value under the same name.",
};

const OpDef op_param = {
    .name = "param",
    STRUCTURE,
    .attrs = value_attrs,
    .infer = infer_value,
    .brief = "A tensor that came with the model, not yet chosen to be state or constant.",
};

const OpDef op_const = {
    .name = "const",
    STRUCTURE,
    .attrs = value_attrs,
    .infer = infer_value,
    .brief = "A constant.",
};

const OpDef op_return = {
    .name = "return",
    STRUCTURE,
    .max_in = -1,
    .infer = infer_declared,
    .brief = "The results of a graph.",
};

const OpDef op_tuple = {
    .name = "tuple",
    STRUCTURE,
    .max_in = -1,
    .infer = infer_tuple,
    .brief = "Several values as one.",
};

const OpDef op_part = {
    .name = "part",
    STRUCTURE,
    .min_in = 1,
    .max_in = 1,
    .attrs = part_attrs,
    .infer = infer_part,
    .brief = "One value of several.",
};

static const AttrSpec opaque_attrs[] = {
    ATTR_OPTIONAL(OpaqueAttr, op_type, STR),
    ATTR_OPTIONAL(OpaqueAttr, domain, STR),
    ATTR_LAST,
};

const OpDef op_opaque = {
    .name = "opaque",
    .max_in = -1,
    .max_out = -1,
    .n_regions = -1,
    .attrs = opaque_attrs,
    .infer = infer_declared,
    .structural = true,
    .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },
    .quant = { .out = { QUANT_FLOAT } },
    .brief = "An operator without a card: read, written and compared, never evaluated.",
};
