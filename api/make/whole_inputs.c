#include "api/make/recipe.h"

/* Whether the file fixes (or leaves open) the first dimension of some input, of that name where one is given. */
static bool any_input(const qcc_step *s, const char *name, bool fixed)
{
    const Onnx__GraphProto *g = s->model->spine.model->graph;
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__TypeProto *t = g->input[i]->type;
        const bool has_first = t && t->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && t->tensor_type->shape &&
                               t->tensor_type->shape->n_dim;
        if (!has_first || (name && !str_is(str_of(g->input[i]->name), name)))
            continue;
        const Onnx__TensorShapeProto__Dimension *d = t->tensor_type->shape->dim[0];
        if ((d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) == fixed)
            return true;
    }
    return false;
}

/* Inputs that are no samples: their first dimension is no batch, even where it has the same size; where the file leaves
 * batches open, what it fixes is none. */
void step_find_whole(qcc_step *s, const Graph *g, int64_t batch)
{
    const bool open = any_input(s, NULL, false);
    const char **whole = NEWS(&s->arena, const char *, g->n_inputs + 1);
    size_t n = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Type *t = g->inputs[i]->type;
        if (g->inputs[i]->op == OP_input && (t->kind != TYPE_TENSOR || t->rank < 1 || t->dims[0] != batch ||
                                             (open && any_input(s, g->inputs[i]->name, true))))
            whole[n++] = g->inputs[i]->name;
    }
    s->recipe.whole = whole;
    s->recipe.n_whole = n;
}
