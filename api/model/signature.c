#include <inttypes.h>
#include <string.h>

#include "api/model/model.h"

const char *value_dim(Arena *arena, const Value *v, int i)
{
    if (v->type->dims[i] >= 0)
        return arena_printf(arena, "%" PRId64, v->type->dims[i]);
    return v->dims[i] ? v->dims[i] : "?";
}

static const char *value_text(Arena *arena, const Value *v)
{
    if (v->type->kind != TYPE_TENSOR || v->type->rank < 0)
        return type_text(arena, v->type);
    Text t;
    text_open(&t, arena);
    text_printf(&t, "%s[", dtype_name(v->type->dtype));
    for (int i = 0; i < v->type->rank; i++) {
        const char *dim = value_dim(arena, v, i);
        text_add(&t, i ? "," : "");
        text_escape(&t, dim, strlen(dim), 64);
    }
    text_char(&t, ']');
    return text_get(&t);
}

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *v)
{
    if (!v || !v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return NULL;
    return v->type->tensor_type->shape;
}

/* Names of the dimensions that have no number. */
static void name_dims(qcc_model *m, Value *v, const Onnx__TensorShapeProto *shape)
{
    if (!shape || v->type->kind != TYPE_TENSOR || v->type->rank < 0 || (size_t)v->type->rank != shape->n_dim)
        return;
    for (int i = 0; i < v->type->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && d->dim_param.len)
            v->dims[i] = arena_copy(&m->arena, (const char *)d->dim_param.data, d->dim_param.len);
    }
}

static Map infos_of(qcc_model *m, size_t n, Onnx__ValueInfoProto *const *infos)
{
    Map map;
    map_open(&map, &m->arena);
    for (size_t i = 0; i < n; i++)
        if (infos[i]->name.len)
            map_put_n(&map, (const char *)infos[i]->name.data, infos[i]->name.len, NULL)->value.p = infos[i];
    return map;
}

static void fill_value(qcc_model *m, Value *v, const char *name, const Type *type, const Map *infos)
{
    const MapEntry *e = infos && name ? map_find(infos, name) : NULL;
    *v = (Value){ .name = name ? name : "", .type = type };
    if (e) { /* what the file says of an output may be more than could be inferred */
        const Type *declared = onnx_type(&m->ir, ((const Onnx__ValueInfoProto *)e->value.cp)->type);
        if (declared && type->kind == TYPE_OPAQUE)
            v->type = declared;
        else if (declared && type_agrees(type, declared))
            v->type = type_meet(&m->ir.types, type, declared);
        name_dims(m, v, shape_of(e->value.cp));
    }
    v->text = value_text(&m->arena, v);
}

static void index_names(Map *map, Arena *arena, const Value *values, size_t n)
{
    map_open(map, arena);
    for (size_t i = 0; i < n; i++) {
        bool fresh;
        MapEntry *e = map_put(map, values[i].name, &fresh);
        if (fresh)
            e->value.u = i;
    }
}

Status model_signature(qcc_model *m)
{
    const Graph *g = m->graph;
    Map in, out;
    const bool spine = m->has_spine;
    if (spine) {
        const Onnx__GraphProto *p = m->spine.model->graph;
        in = infos_of(m, p->n_input, p->input);
        out = infos_of(m, p->n_output, p->output);
    }
    m->inputs = NEWS(&m->arena, Value, g->n_inputs + 1);
    m->n_inputs = 0;
    for (size_t i = 0; i < g->n_inputs; i++)
        fill_value(m, &m->inputs[m->n_inputs++], g->inputs[i]->name, g->inputs[i]->type, spine ? &in : NULL);
    m->n_outputs = (size_t)graph_n_results(g);
    m->outputs = NEWS(&m->arena, Value, m->n_outputs + 1);
    for (size_t i = 0; i < m->n_outputs; i++) {
        const Node *r = graph_result(g, (int)i);
        fill_value(m, &m->outputs[i], graph_result_name(g, (int)i), r ? r->type : type_none(&m->ir.types),
                   spine ? &out : NULL);
    }
    index_names(&m->input_names, &m->arena, m->inputs, m->n_inputs);
    index_names(&m->output_names, &m->arena, m->outputs, m->n_outputs);
    m->results = NEWS(&m->arena, Tensor *, m->n_outputs + 1);
    return OK;
}

/* ---- for the host ---- */

bool value_tell(const Value *v, qcc_value_info *info)
{
    if (info->size < sizeof info->size)
        return false;
    qcc_value_info all = { .size = info->size < sizeof all ? info->size : sizeof all,
                           .name = v->name,
                           .type = v->text,
                           .shape = { .size = sizeof all.shape, .dtype = QCC_STRING, .rank = -1 } };
    const Type *type = v->type->kind == TYPE_TENSOR ? v->type : NULL;
    if (type) {
        all.shape.dtype = (qcc_dtype)type->dtype;
        all.shape.rank = type->rank;
    }
    for (int i = 0; type && i < type->rank; i++)
        all.shape.dims[i] = type->dims[i];
    memcpy(info, &all, all.size);
    return true;
}

size_t qcc_n_inputs(const qcc_model *model)
{
    return model ? model->n_inputs : 0;
}

size_t qcc_n_outputs(const qcc_model *model)
{
    return model ? model->n_outputs : 0;
}

qcc_status qcc_input(const qcc_model *model, size_t i, qcc_value_info *info)
{
    if (!model || !info || i >= model->n_inputs)
        return QCC_USAGE;
    return value_tell(&model->inputs[i], info) ? QCC_OK : QCC_USAGE;
}

qcc_status qcc_output(const qcc_model *model, size_t i, qcc_value_info *info)
{
    if (!model || !info || i >= model->n_outputs)
        return QCC_USAGE;
    return value_tell(&model->outputs[i], info) ? QCC_OK : QCC_USAGE;
}
