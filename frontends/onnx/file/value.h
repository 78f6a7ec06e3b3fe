/* Values outside a model: the inputs and outputs of test data, one message a file. */
#ifndef FRONTENDS_ONNX_FILE_VALUE_H
#define FRONTENDS_ONNX_FILE_VALUE_H

#include "frontends/onnx/file/spine.h"
#include "ir/graph.h"

/* Reads a file as a TensorProto, SequenceProto or OptionalProto, as the declared type says (the file itself does not);
 * `name` is whose value it is, for messages, and may be null.  Strings are refused (UNSUPPORTED).  A 16-bit integer tensor is read as bit patterns where bf16 or f16 is declared. */
Status onnx_value_read(Ir *ir, Heap *heap, const char *path, const char *name, const Type *declared, Tensor **value);

#endif
