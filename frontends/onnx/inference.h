/* Nodes in training form, turned to inference. */
#ifndef FRONTENDS_ONNX_INFERENCE_H
#define FRONTENDS_ONNX_INFERENCE_H

#include "frontends/onnx/export.h"

/* The edits that turn BatchNormalization and Dropout nodes of the main graph into inference form; results and messages
 * live in `arena`.  A node whose training results are read stays, with a warning. */
Status inference_edits(Spine *spine, Arena *arena, Diag *d, NodeEdit **edits, size_t *n);

#endif
