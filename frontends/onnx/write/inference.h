/* Nodes in training form, turned to inference. */
#ifndef FRONTENDS_ONNX_WRITE_INFERENCE_H
#define FRONTENDS_ONNX_WRITE_INFERENCE_H

#include "frontends/onnx/export.h"

/* What turns a main graph into inference form. */
typedef struct InferenceEdits {
    NodeEdit *nodes;
    size_t n_nodes, cap_nodes;
    const Onnx__TensorProto **without; /* initializers that nobody reads any more */
    size_t n_without, cap_without;
} InferenceEdits;

/* The edits that turn BatchNormalization and Dropout nodes of the main graph into inference form, what they alone read
 * with them; results and messages live in `arena`.  A node whose training results are read stays, with a warning. */
Status inference_edits(Spine *spine, Arena *arena, Diag *d, InferenceEdits *edits);

/* Adds those that make products with the noise of a dropout that was taken apart Identity nodes. */
void noise_edits(Spine *spine, Arena *arena, Diag *d, InferenceEdits *edits);

#endif
