/* Types as the file states them, and as the caller binds them. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "frontends/onnx/read/importer.h"
#include "ops/card/schema.h"

static const Type *no_type(const char **why, const char *what)
{
    *why = what;
    return NULL;
}

/* Dimensions that are no numbers count as 1: what is known must be within the limit alone. */
static bool too_many_elements(const Ir *ir, int rank, const int64_t *dims)
{
    int64_t known[MAX_RANK], elements;
    for (int i = 0; i < rank; i++)
        known[i] = dims[i] < 0 ? 1 : dims[i];
    return !checked_product_i64(known, rank, ir->limits.elements, &elements);
}

static const Type *tensor_type_of(Ir *ir, const Onnx__TypeProto__Tensor *t, const char **why)
{
    DType dtype;
    int64_t dims[MAX_RANK];
    const bool ours = dtype_from_onnx(t->elem_type, &dtype); /* bits of a step, too, which ONNX has not */
    if (!ours && (t->elem_type <= ONNX_UNDEFINED || t->elem_type >= ONNX_TYPES))
        return no_type(why, arena_printf(ir->arena, "there is no element type %d", t->elem_type));
    if (!ours)
        return type_opaque(&ir->types, arena_printf(ir->arena, "tensor(element type %d)", t->elem_type));
    if (!t->shape)
        return type_unranked(&ir->types, dtype);
    if (t->shape->n_dim > MAX_RANK)
        return no_type(why, arena_printf(ir->arena, "%zu dimensions are more than the limit rank (%d)", t->shape->n_dim,
                                         MAX_RANK));
    for (size_t i = 0; i < t->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];
        const bool given = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dims[i] = given && d->dim_value >= 0 ? d->dim_value : DIM_UNKNOWN;
        if (dims[i] > ir->limits.dim)
            return no_type(why,
                           arena_printf(ir->arena, "dimension %zu, %" PRId64 ", exceeds the limit dim (%" PRId64 ")", i,
                                        dims[i], ir->limits.dim));
    }
    if (too_many_elements(ir, (int)t->shape->n_dim, dims))
        return no_type(why, arena_printf(ir->arena, "the number of elements exceeds the limit elements (%" PRId64 ")",
                                         ir->limits.elements));
    return type_tensor(&ir->types, dtype, (int)t->shape->n_dim, dims);
}

const Type *onnx_type(Ir *ir, const Onnx__TypeProto *proto)
{
    const char *why;
    return onnx_type_or(ir, proto, &why);
}

const Type *onnx_type_or(Ir *ir, const Onnx__TypeProto *proto, const char **why)
{
    enum { DEEPEST = 32 };
    TypeKind around[DEEPEST];
    int depth = 0;
    const Type *type = NULL;
    *why = "has no type";
    while (proto && !type) {
        if (depth == DEEPEST)
            return no_type(why, "types nest deeper than the limit type_nesting (32)");
        switch (proto->value_case) {
        case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
            type = tensor_type_of(ir, proto->tensor_type, why);
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
            return no_type(why, "its type says nothing");
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
    const MapEntry *e = name.n ? map_find_n(&im->dims, name.p, name.n) : NULL;
    if (e)
        return ((const DimBinding *)e->value.cp)->value;
    return batch ? im->options->batch : 0;
}

const Type *bound_type(Importer *im, const Onnx__ValueInfoProto *v, const Type *type, const char *name)
{
    const MapEntry *e = type->kind == TYPE_TENSOR ? map_find(&im->shapes, name) : NULL;
    const ShapeBinding *bound = e ? e->value.cp : NULL;
    if (bound)
        return type_tensor(&im->ir->types, type->dtype, bound->rank, bound->dims);
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
