/* Whether a table may give a node a class: what is to be of a narrow type has to take one. */
#include "passes/amp/table.h"

static bool has_bit(uint32_t bits, int i)
{
    return bits >> (i < 31 ? i : 31) & 1;
}

/* What mixed precision widens and narrows. */
static bool is_ours(const Type *t, DType narrow)
{
    return t->kind == TYPE_TENSOR && (t->dtype == F32 || t->dtype == narrow);
}

/* A tensor that is none of the floats between which it chooses. */
static bool is_foreign(const Type *t, DType narrow)
{
    return t->kind != TYPE_TENSOR || (dtype_is_float(t->dtype) && !is_ours(t, narrow));
}

/* Whether what goes in and out are tensors that it may choose for, and others that are no floats.  What a body gives to
 * an operator that reads it in its own way keeps its type. */
static bool is_plain(const Node *n, DType narrow)
{
    const Node *owner = n->graph->owner;
    bool plain = n->n_regions == 0 && !(owner && op_of(owner)->body.keeps_types);
    for (int i = 0; i < n->n_in; i++)
        plain = plain && (!in(n, i) || !is_foreign(in(n, i)->type, narrow));
    for (int i = 0; i < type_results(n->type); i++)
        plain = plain && !is_foreign(type_result(n->type, i), narrow);
    return plain;
}

/* Results as they have to be: narrow, but for those that stay wide. */
static bool results_fit(const Node *n, const Type *type, const AmpRole *role, DType narrow)
{
    for (int i = 0; i < type_results(n->type); i++)
        if (is_ours(type_result(n->type, i), narrow) &&
            type_result(type, i)->dtype != (has_bit(role->wide_out, i) ? F32 : narrow))
            return false;
    return true;
}

/* The attributes without what insertion may have written into them: types of results. */
static const void *attr_of_model(const Node *n, Arena *scratch)
{
    const AttrSpec *specs = op_of(n)->attrs;
    void *attr = n->attr ? attrs_copy(scratch, specs, n->attr) : NULL;
    for (const AttrSpec *s = specs; attr && s && s->kind != ATTR_END; s++)
        if (s->ours && s->kind == ATTR_DTYPE)
            *(int *)attr_at(s, attr) = 0;
    return attr;
}

enum { LARGEST_SHOWN = 1 << 20 };

/* Asks the card to infer the call with its operands narrow, except for those that stay wide. */
static bool takes_narrow(const Node *n, const AmpRole *role, DType narrow, Arena *scratch)
{
    Ir *ir = n->graph->ir;
    const Type **types = NEWS(scratch, const Type *, n->n_in + 1);
    const Tensor **values = NEWS(scratch, const Tensor *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++) {
        types[i] = in(n, i) ? in(n, i)->type : NULL;
        values[i] = types[i] && !is_ours(types[i], narrow) ? node_constant(in(n, i), LARGEST_SHOWN) : NULL;
        if (types[i] && is_ours(types[i], narrow))
            types[i] = type_with_dtype(&ir->types, types[i], has_bit(role->wide, i) ? F32 : narrow);
    }
    Infer q = { .ir = ir,
                .types = &ir->types,
                .def = op_of(n),
                .attr = attr_of_model(n, scratch),
                .n_in = n->n_in,
                .in = types,
                .value = values,
                .n_out = type_results(n->type),
                .scratch = scratch };
    const Type *type = op_of(n)->infer(&q);
    return type && type_results(type) == type_results(n->type) && results_fit(n, type, role, narrow);
}

bool amp_class_fits(const Node *n, const AmpRole *role, DType narrow, Arena *scratch)
{
    const AmpClass c = role->class;
    const bool moves = c == AMP_P || c == AMP_PW || c == AMP_PM;
    return is_plain(n, narrow) && ((c != AMP_T && !moves) || takes_narrow(n, role, narrow, scratch));
}
