/* From a model file to a graph in our vocabulary (fact UPGRADED). */
#ifndef FRONTENDS_ONNX_IMPORT_H
#define FRONTENDS_ONNX_IMPORT_H

#include "frontends/onnx/file/spine.h"
#include "ir/graph.h"

typedef struct DimBinding {
    const char *name;
    int64_t value;
} DimBinding;

typedef struct ShapeBinding {
    const char *input;
    int rank;
    int64_t dims[MAX_RANK];
} ShapeBinding;

typedef struct ValueBinding {
    const char *input;
    const Tensor *value;
} ValueBinding;

/* What the caller fixes before shapes are inferred. */
typedef struct ImportOptions {
    int64_t batch; /* of dimension 0 of inputs where it is symbolic; 0: leave it */
    const DimBinding *dims;
    size_t n_dims;
    const ShapeBinding *shapes;
    size_t n_shapes;
    const ValueBinding *values;
    size_t n_values;
    int64_t opset; /* stands in for a missing or wrong import of ai.onnx; 0: as the file says */
} ImportOptions;

/* Imports the model of a spine as graph @NAME of a fresh module; `options` may be null. */
Status onnx_import(Ir *ir, Arena *arena, Spine *spine, const ImportOptions *options, Module **module);

/* The type that a TypeProto states, `?` for what it leaves open; opaque for maps and sparse tensors, null for none. */
const Type *onnx_type(Ir *ir, const Onnx__TypeProto *proto);

/* The same; without a type, what is wrong with it. */
const Type *onnx_type_or(Ir *ir, const Onnx__TypeProto *proto, const char **why);

#endif
