/* Values in files, to and from tensors of a model. */
#ifndef API_MODEL_DATA_H
#define API_MODEL_DATA_H

#include "api/hall/out.h"
#include "api/model/model.h"

/* Reads a value: .npy, or an ONNX TensorProto (or sequence, optional) as the declared type, which may be null, says.
 * `name` is whose value it is, for messages, and may be null. */
Status data_read(Ir *ir, Heap *heap, const char *path, const char *name, const Type *declared, Tensor **value);

/* Writes a tensor as .npy; "-" is where results go. */
Status data_write(Out *results, const char *path, const Tensor *t);

#endif
