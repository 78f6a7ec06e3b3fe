/* Types as the file states them, and as the caller binds them. */
#include <string.h>

#include "frontends/onnx/importer.h"

static const Type *tensor_type_of(Ir *ir, const Onnx__TypeProto__Tensor *t)
{
    DType dtype;
    int64_t dims[MAX_RANK];
    if (!dtype_from_onnx(t->elem_type, &dtype))
        return type_opaque(&ir->types, arena_printf(ir->arena, "tensor(element type %d)", t->elem_type));
    if (!t->shape)
        return type_unranked(&ir->types, dtype);
    if (t->shape->n_dim > MAX_RANK)
        return NULL;
    for (size_t i = 0; i < t->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];
        const bool given = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims[i] = given && d->dim_value >= 0 ? d->dim_value : DIM_UNKNOWN;
        if (dims[i] > ir->limits.dim)
            return NULL;
    }
    return type_tensor(&ir->types, dtype, (int)t->shape->n_dim, dims);
}

const Type *onnx_type(Ir *ir, const Onnx__TypeProto *proto)
{
    enum { DEEPEST = 32 };
    TypeKind around[DEEPEST];
    int depth = 0;
    const Type *type = NULL;
    while (proto && !type) {
        if (depth == DEEPEST)
            return NULL;
        switch (proto->value_case) {
        case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
            type = tensor_type_of(ir, proto->tensor_type);
            if (!type)
                return NULL;
            break;
        case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
            around[depth++] = TYPE_SEQ;
            proto = proto->sequence_type->elem_type;
            break;
        case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
            around[depth++] = TYPE_OPTIONAL;
            proto = proto->optional_type->elem_type;
            break;
        case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
            type = type_opaque(&ir->types, "map");
            break;
        case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
            type = type_opaque(&ir->types, "sparse tensor");
            break;
        case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
            type = type_opaque(&ir->types, "opaque");
            break;
        default:
            return NULL;
        }
    }
    while (type && depth)
        type = around[--depth] == TYPE_SEQ ? type_seq(&ir->types, type) : type_optional(&ir->types, type);
    return type;
}

static int64_t bound_dim(const Importer *im, const Onnx__TensorShapeProto__Dimension *d, bool batch)
{
    const Str name =
        d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM ? str_of(d->dim_param) : str("");
    const ImportOptions *o = im->options;
    for (size_t i = 0; name.n && i < o->n_dims; i++)
        if (str_is(name, o->dims[i].name))
            return o->dims[i].value;
    return batch ? o->batch : 0;
}

const Type *bound_type(Importer *im, const Onnx__ValueInfoProto *v, const Type *type, const char *name)
{
    const ImportOptions *o = im->options;
    for (size_t i = 0; i < o->n_shapes; i++)
        if (strcmp(o->shapes[i].input, name) == 0 && type->kind == TYPE_TENSOR)
            return type_tensor(&im->ir->types, type->dtype, o->shapes[i].rank, o->shapes[i].dims);
    if (type->kind != TYPE_TENSOR || type->rank < 0 || !v->type->tensor_type->shape)
        return type;
    int64_t dims[MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *d = v->type->tensor_type->shape->dim[i];
        const int64_t bound = type->dims[i] < 0 ? bound_dim(im, d, i == 0) : 0;
        dims[i] = bound > 0 ? bound : type->dims[i];
    }
    return type_tensor(&im->ir->types, type->dtype, type->rank, dims);
}
