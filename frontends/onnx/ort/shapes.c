/* Shapes that are computed: where at most one size of a Reshape is not a number, it needs none of what computes it. */
#include "frontends/onnx/ort/steps.h"

/* Whether dimension 0 of a value is that of `root`: nothing between them touches it. */
static bool keeps_first(Calls *g, const Val *v, const Val *root)
{
    while (v && v != root) {
        const Call *c = v->from;
        const Onnx__AttributeProto *perm = call_is(c, "Transpose") ? call_says(c, "perm") : NULL;
        const double *shape = call_is(c, "Reshape") ? val_numbers(g, call_in(c, 1)) : NULL;
        if (!(perm && perm->n_ints && perm->ints[0] == 0) && !(shape && c->ins[1]->n && shape[0] == 0))
            return false;
        v = call_in(c, 0);
    }
    return v != NULL;
}

/* Whether operand i of the Concat is the size of dimension i of what is reshaped: Shape, Gather, Unsqueeze. */
static bool is_own_size(Calls *g, const Val *size, const Val *reshaped, size_t i)
{
    double at;
    const Call *widened = size->from, *gather = call_is(widened, "Unsqueeze") ? call_from(widened, 0) : NULL;
    const Call *shape = call_is(gather, "Gather") ? call_from(gather, 0) : NULL;
    if (!call_is(shape, "Shape") || !val_is_one(g, call_in(gather, 1), &at) || at != (double)i)
        return false;
    return call_in(shape, 0) == reshaped || (i == 0 && keeps_first(g, reshaped, call_in(shape, 0)));
}

/* The shape as numbers: 0 for a dimension that stays, -1 for one that is open; null: more than one is. */
static const double *numbers_of(Calls *g, const Call *concat, const Val *reshaped, size_t *n)
{
    size_t open = 0, cap = 0;
    double *list = NULL;
    *n = 0;
    for (size_t i = 0; i < concat->n_ins; i++) {
        Val *v = call_in(concat, i);
        const double *known = val_numbers(g, v);
        for (size_t k = 0; k < (known ? v->n : 1); k++) {
            GROW(g->arena, list, *n, cap);
            list[*n] = known ? known[k] : v && is_own_size(g, v, reshaped, *n) ? 0 : -1;
            open += list[*n] == -1;
            ++*n;
        }
        if (!known && (!v || v->rank != 1 || v->dims[0] != 1 || !call_is(v->from, "Unsqueeze")))
            return NULL;
    }
    return open <= 1 ? list : NULL;
}

static bool is_known(const Val *v)
{
    bool known = v && v->rank >= 0;
    for (int i = 0; known && i < v->rank; i++)
        known = v->dims[i] >= 0;
    return known;
}

static bool reshapes(const Call *c)
{
    return (call_is(c, "Reshape") || call_is(c, "Squeeze") || call_is(c, "Unsqueeze")) && call_in(c, 0);
}

void ort_reshapes(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = n; i-- > 0;) {
        Call *c = list[i], *before = reshapes(c) ? call_from(c, 0) : NULL;
        if (!is_known(c->n_outs ? c->outs[0] : NULL))
            continue;
        while (reshapes(before) && val_only(before->outs[0])) {
            c->op = "Reshape";
            call_put(g, c, 0, before->ins[0]);
            call_remove(g, before);
            before = call_from(c, 0);
        }
    }
}

void ort_shapes(Calls *g)
{
    for (Call *c = g->first; c; c = c->next) {
        size_t n;
        const Call *concat = call_is(c, "Reshape") && call_in(c, 0) ? call_from(c, 1) : NULL;
        const double *numbers = call_is(concat, "Concat") ? numbers_of(g, concat, c->ins[0], &n) : NULL;
        if (!numbers)
            continue;
        Val *shape = val_new(g, NULL);
        shape->stored = true;
        shape->numbers = numbers;
        shape->n = n;
        call_put(g, c, 1, shape);
    }
    ort_unread(g);
}
