#include "ops/machine/strings.h"

/* Sequences and optionals hold what their innermost element is. */
static bool holds_strings(const Type *t)
{
    while (t->kind == TYPE_SEQ || t->kind == TYPE_OPTIONAL)
        t = t->parts[0];
    return t->kind == TYPE_TENSOR && t->dtype == STRING;
}

/* The words for a place stay in the memory of the model: they are made where something is wrong, and only there. */
static Place place_of(const Eval *e)
{
    return e->node ? node_place(e->node) : NOWHERE;
}

Status refuse_strings(Eval *e)
{
    for (int i = 0; i < e->n_in; i++)
        if (e->in[i] && holds_strings(e->in[i]->type))
            return fail_as(e->ir->diag, UNSUPPORTED, place_of(e),
                           "%s reads strings (operand %d), which are not computed with", e->def->name, i);
    for (int i = 0; i < e->n_out; i++)
        if (holds_strings(eval_type(e, i)))
            return fail_as(e->ir->diag, UNSUPPORTED, place_of(e),
                           "%s makes strings (result %d), which are not computed with", e->def->name, i);
    return OK;
}
