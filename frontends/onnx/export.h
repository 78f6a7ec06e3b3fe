/* The deployable model as the file's own bytes: what was not trained or edited stays exactly as it was. */
#ifndef FRONTENDS_ONNX_EXPORT_H
#define FRONTENDS_ONNX_EXPORT_H

#include "frontends/onnx/file/weight_file.h"
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
    bool reads;                /* nothing but what it reads differs */
} NodeEdit;

/* An initializer that the file does not have. */
typedef struct NewInitializer {
    const char *name;
    const Tensor *value;
} NewInitializer;

typedef struct ExportEdits {
    const WeightEdit *weights;
    size_t n_weights;
    const NodeEdit *nodes;
    size_t n_nodes;
    const NewInitializer *more; /* initializers to add */
    size_t n_more;
    const size_t *without; /* sparse initializers to leave out */
    size_t n_without;
    WeightFile *weight_file; /* what may lie beside the file that the sink fills; null: nothing */
} ExportEdits;

/* Writes the model of a spine with edits (null: none), in inference form: nodes that the file has in training form
 * (BatchNormalization, Dropout) are turned.  Without anything to change the bytes are those that were read.  Of a step
 * the model in front is written, as it was.
 *
 * External data stays where it is when the model goes to the folder it came from; elsewhere it goes into a file beside
 * the new one, as all large weights do of a model that would exceed 1.9 GiB. */
Status onnx_export(Spine *s, Diag *d, const ExportEdits *edits, const Sink *sink);

#endif
