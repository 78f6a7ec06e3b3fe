/* --batch, --dim, --shape, --const and --opset as the importer takes them. */
#include <inttypes.h>
#include <string.h>

#include "api/model/data.h"
#include "api/model/model.h"
#include "base/number_text.h"

static Place on_option(Option o)
{
    Place p = ON_COMMAND_LINE;
    p.where = option_specs[o].name;
    return p;
}

/* The names of the inputs, for "did you mean". */
static size_t input_names(qcc_model *m, const char ***names)
{
    const Onnx__GraphProto *g = m->spine.model->graph;
    *names = NEWS(&m->cx->scratch, const char *, g->n_input + 1);
    for (size_t i = 0; i < g->n_input; i++)
        (*names)[i] = arena_copy(&m->cx->scratch, (const char *)g->input[i]->name.data, g->input[i]->name.len);
    return g->n_input;
}

static Status no_such(qcc_model *m, Option o, const char *what, const char *name, const char *const *names, size_t n)
{
    enum { MOST = 8 };
    const char *near = str_nearest(name, names, n);
    Message *msg =
        message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .where = option_specs[o].name, .byte = -1 },
                    "the model has no %s %s", what, name);
    if (near)
        message_try(msg, "%s", near);
    for (size_t i = 0; !near && i < n && i < MOST; i++)
        message_try(msg, "%s", names[i]);
    return message_send(msg);
}

/* Asked once for each option: a line may have as many as there are inputs. */
static Map set_of(qcc_model *m, const char *const *names, size_t n)
{
    Map set;
    map_open(&set, &m->cx->scratch);
    for (size_t i = 0; i < n; i++) {
        bool fresh;
        MapEntry *e = map_put(&set, names[i], &fresh);
        if (fresh)
            e->value.u = i;
    }
    return set;
}

static Status bad_number(qcc_model *m, Option o, const char *got)
{
    return fail_as(&m->cx->diag, USAGE, on_option(o), "wants %s with dimensions that are numbers: got '%s'",
                   option_specs[o].form, got);
}

/* The names of all symbolic dimensions of the inputs, each once. */
static size_t dim_names(qcc_model *m, const char ***names)
{
    const Onnx__GraphProto *g = m->spine.model->graph;
    Arena *a = &m->cx->scratch;
    size_t n = 0, cap = 0;
    Map seen;
    map_open(&seen, a);
    *names = NULL;
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__TypeProto *t = g->input[i]->type;
        if (!t || t->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !t->tensor_type->shape)
            continue;
        for (size_t k = 0; k < t->tensor_type->shape->n_dim; k++) {
            const Onnx__TensorShapeProto__Dimension *d = t->tensor_type->shape->dim[k];
            bool fresh = false;
            if (d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM || !d->dim_param.len)
                continue;
            const char *name = arena_copy(a, (const char *)d->dim_param.data, d->dim_param.len);
            map_put(&seen, name, &fresh);
            if (!fresh)
                continue;
            GROW(a, *names, n, cap);
            (*names)[n++] = name;
        }
    }
    return n;
}

static Status read_dims(qcc_model *m, Arena *arena, const CommandLine *line, ImportOptions *o)
{
    const char *pair, **names;
    const size_t n = dim_names(m, &names);
    const Map known = set_of(m, names, n);
    DimBinding *dims = NEWS(arena, DimBinding, option_given(line, OPT_dim) + 1);
    for (size_t at = 0; (pair = option_next(line, OPT_dim, &at));) {
        const char *value;
        DimBinding *b = &dims[o->n_dims];
        b->name = pair_split(arena, pair, &value);
        if (!i64_from_text(value, strlen(value), &b->value) || b->value < 0)
            return bad_number(m, OPT_dim, pair);
        if (!map_find(&known, b->name))
            return no_such(m, OPT_dim, "dimension", b->name, names, n);
        o->n_dims++;
    }
    o->dims = dims;
    return OK;
}

/* "x:32x3x224x224", the name being all before the last colon; "x:" is a scalar. */
static Status read_shape(qcc_model *m, Arena *arena, const char *text, ShapeBinding *b)
{
    const char *colon = strrchr(text, ':');
    if (!colon)
        return bad_number(m, OPT_shape, text);
    b->input = arena_copy(arena, text, (size_t)(colon - text));
    b->rank = 0;
    for (const char *p = colon + 1; *p;) {
        const size_t n = strcspn(p, "x");
        if (b->rank == MAX_RANK || !i64_from_text(p, n, &b->dims[b->rank]) || b->dims[b->rank] < 0)
            return bad_number(m, OPT_shape, text);
        b->rank++;
        p += n + (p[n] == 'x');
    }
    return OK;
}

static Status read_shapes(qcc_model *m, Arena *arena, const CommandLine *line, ImportOptions *o)
{
    const char *text, **names;
    const size_t n = input_names(m, &names);
    const Map known = set_of(m, names, n);
    ShapeBinding *shapes = NEWS(arena, ShapeBinding, option_given(line, OPT_shape) + 1);
    for (size_t at = 0; (text = option_next(line, OPT_shape, &at));) {
        ShapeBinding *b = &shapes[o->n_shapes++];
        TRY(read_shape(m, arena, text, b));
        if (!map_find(&known, b->input))
            return no_such(m, OPT_shape, "input", b->input, names, n);
    }
    o->shapes = shapes;
    return OK;
}

/* A container, or an element type that nothing here computes with, is not bound to the tensor of a file. */
static Status takes_value(qcc_model *m, size_t i, const char *name)
{
    const Type *type = onnx_type(&m->ir, m->spine.model->graph->input[i]->type);
    if (!type || (type->kind == TYPE_TENSOR && type->dtype != STRING))
        return OK;
    return fail_as(&m->cx->diag, UNSUPPORTED, on_option(OPT_constant), "input %s is %s: no constant of numbers", name,
                   type_text(&m->cx->scratch, type));
}

static Status read_values(qcc_model *m, Ir *ir, Arena *arena, Heap *heap, const CommandLine *line, ImportOptions *o)
{
    const char *pair, **names;
    const size_t n = input_names(m, &names);
    const Map known = set_of(m, names, n);
    ValueBinding *values = NEWS(arena, ValueBinding, option_given(line, OPT_constant) + 1);
    for (size_t at = 0; (pair = option_next(line, OPT_constant, &at));) {
        const char *path;
        Tensor *t;
        ValueBinding *b = &values[o->n_values++];
        b->input = pair_split(arena, pair, &path);
        const MapEntry *e = map_find(&known, b->input);
        if (!e)
            return no_such(m, OPT_constant, "input", b->input, names, n);
        TRY(takes_value(m, e->value.u, b->input));
        TRY(data_read(ir, heap, path, b->input, NULL, &t));
        b->value = t;
    }
    o->values = values;
    return OK;
}

Status bindings_read(qcc_model *m, Ir *ir, Arena *arena, Heap *heap, const CommandLine *line, ImportOptions *o)
{
    if (!m->spine.model->graph)
        return OK; /* the importer says so */
    o->batch = option_count(line, OPT_batch, 0);
    o->opset = option_count(line, OPT_opset, 0);
    TRY(read_dims(m, arena, line, o));
    TRY(read_shapes(m, arena, line, o));
    return read_values(m, ir, arena, heap, line, o);
}
