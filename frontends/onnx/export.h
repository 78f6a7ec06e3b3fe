/* The deployable model as the file's own bytes: what was not trained or edited stays exactly as it was. */
#ifndef FRONTENDS_ONNX_EXPORT_H
#define FRONTENDS_ONNX_EXPORT_H

#include "frontends/onnx/spine.h"
#include "ir/tensor.h"

/* A new value for an initializer, or for the tensor of the Constant node whose output has that name. */
typedef struct WeightEdit {
    const char *name;
    const Tensor *value; /* of the type it has in the file */
} WeightEdit;

/* A node of the main graph in other words; null: the node is left out. */
typedef struct NodeEdit {
    size_t node;
    const Onnx__NodeProto *by; /* tensors among its attributes hold real bytes */
} NodeEdit;

typedef struct ExportEdits {
    const WeightEdit *weights;
    size_t n_weights;
    const NodeEdit *nodes;
    size_t n_nodes;
    Onnx__TensorProto *const *more; /* initializers to add, holding real bytes */
    size_t n_more;
} ExportEdits;

/* Writes the model of a spine with edits (null: none), in inference form: nodes that the file has in training form
 * (BatchNormalization, Dropout) are turned.  Without anything to change the bytes are those that were read. */
Status onnx_export(Spine *s, Diag *d, const ExportEdits *edits, const Sink *sink);

#endif
