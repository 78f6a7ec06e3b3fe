#include "api/model/fit.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/data/npy.h"

static Status no_such_value(qcc_model *m, const char *option, const char *what, const char *name, const Value *values,
                            size_t n)
{
    enum { MOST = 8 };
    const char **names = NEWS(&m->cx->scratch, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        names[i] = values[i].name;
    const char *near = str_nearest(name, names, n);
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .where = option, .byte = -1 },
                               "the model has no %s %s", what, name);
    if (near)
        message_try(msg, "%s", near);
    for (size_t i = 0; !near && i < n && i < MOST; i++)
        message_try(msg, "%s", names[i]);
    return message_send(msg);
}

static bool find(const Map *names, const char *name, size_t *at)
{
    const MapEntry *e = map_find(names, name);
    if (e)
        *at = e->value.u;
    return e;
}

Status find_input(qcc_model *m, const char *name, const char *option, size_t *i)
{
    return find(&m->input_names, name, i) ? OK : no_such_value(m, option, "input", name, m->inputs, m->n_inputs);
}

Status find_output(qcc_model *m, const char *name, const char *option, size_t *i)
{
    return find(&m->output_names, name, i) ? OK : no_such_value(m, option, "output", name, m->outputs, m->n_outputs);
}

static const char *numpy_name(Arena *a, DType t)
{
    static const char *const stem[] = { "bool", "int", "uint", "float", "str" };
    if (npy_ml_dtype(t))
        return arena_printf(a, "ml_dtypes.%s", npy_ml_dtype(t));
    const DTypeClass c = dtype_class(t);
    return c == CLASS_BOOL ? "numpy.bool_" : arena_printf(a, "numpy.%s%d", stem[c], dtype_bits(t));
}

/* A permutation that would make the shapes fit is worth saying. */
static const char *layout_that_fits(const Value *v, const Type *got)
{
    const bool converts = dtype_is_float(v->type->dtype) || got->dtype == v->type->dtype;
    if (got->rank != 4 || v->type->rank != 4 || !converts)
        return NULL;
    static const int from_nhwc[4] = { 0, 3, 1, 2 };
    for (int i = 0; i < 4; i++)
        if (v->type->dims[i] >= 0 && v->type->dims[i] != got->dims[from_nhwc[i]])
            return NULL;
    return ":layout=nhwc";
}

static bool only_batch_differs(const Type *want, const Type *got)
{
    if (want->dtype != got->dtype || want->rank < 1 || want->rank != got->rank)
        return false;
    for (int i = 1; i < want->rank; i++)
        if (want->dims[i] >= 0 && want->dims[i] != got->dims[i])
            return false;
    return true;
}

static Status does_not_fit(qcc_model *m, size_t i, const Tensor *value, const char *file)
{
    const Value *v = &m->inputs[i];
    Arena *a = &m->cx->scratch;
    Place place = { .file = file ? file : m->file, .byte = -1 };
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, INVALID, place, "%s does not fit input %s %s",
                               type_text(a, value->type), v->name, v->text);
    if (value->type->kind == TYPE_TENSOR && v->type->kind == TYPE_TENSOR) {
        const char *layout = layout_that_fits(v, value->type);
        if (layout && file)
            message_try(msg, "--input %s=%s%s", v->name, file, layout);
        else if (layout)
            message_try(msg, "x.transpose(0, 3, 1, 2): the data are channels-last");
        else if (file && dtype_is_float(v->type->dtype) && dtype_is_integer(value->type->dtype) &&
                 v->type->rank == value->type->rank)
            message_try(msg, "--input %s=%s:scale=1, or scale=1/255 for pictures", v->name, file);
        else if (only_batch_differs(v->type, value->type))
            message_try(msg, "--batch %" PRId64, value->type->dims[0]);
        else if (value->type->dtype != v->type->dtype && (v->type->rank < 0 || v->type->rank == value->type->rank))
            message_try(msg, "numpy.save(path, x.astype(%s))", numpy_name(a, v->type->dtype));
    }
    return message_send(msg);
}

typedef struct Size {
    int64_t n;
    const char *input;
    int axis;
} Size;

static Status fit_dims(qcc_model *m, size_t i, const Tensor *value, const char *file, Map *sizes)
{
    const Value *v = &m->inputs[i];
    for (int k = 0; k < v->type->rank; k++) {
        const int64_t n = value->type->dims[k];
        bool fresh;
        if (v->type->dims[k] >= 0 && v->type->dims[k] != n)
            return does_not_fit(m, i, value, file);
        if (v->type->dims[k] >= 0 || !v->dims[k])
            continue;
        MapEntry *e = map_put(sizes, v->dims[k], &fresh);
        if (fresh) {
            Size *s = NEW(sizes->arena, Size);
            *s = (Size){ n, v->name, k };
            e->value.p = s;
        }
        const Size *s = e->value.cp;
        if (s->n == n)
            continue;
        Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, INVALID, (Place){ .file = file, .byte = -1 },
                                   "dimension %s is %" PRId64 " in %s[%d] and %" PRId64 " in %s[%d]", v->dims[k], s->n,
                                   s->input, s->axis, n, v->name, k);
        return message_send(msg);
    }
    return OK;
}

Status fit_input(qcc_model *m, size_t i, const Tensor *value, const char *file, Map *sizes)
{
    const Type *want = m->inputs[i].type, *got = value->type;
    if (want->kind == TYPE_OPTIONAL && got->kind != TYPE_OPTIONAL)
        want = want->parts[0];
    if (want->kind != got->kind)
        return does_not_fit(m, i, value, file);
    if (want->kind != TYPE_TENSOR)
        return OK;
    if (want->dtype != got->dtype || (want->rank >= 0 && want->rank != got->rank))
        return does_not_fit(m, i, value, file);
    return want->rank >= 0 && m->inputs[i].type == want ? fit_dims(m, i, value, file, sizes) : OK;
}
