/* Tensors of hosts: taken as ours over the same memory, and shown. */
#ifndef API_HALL_TENSORS_H
#define API_HALL_TENSORS_H

#include "api/hall/context.h"
#include "ir/tensor.h"

/* Lets `t` be what a host gives as `name` (whose type is `wanted`, for messages; null: unknown).  What is on a device is
 * refused: DEVICE. */
Status tensor_take(qcc_context *cx, Types *types, const char *name, const char *wanted, const qcc_tensor *given,
                   Tensor *t);

/* OK where a host says how large its struct is; else USAGE, reported. */
Status tensor_wants_size(Diag *d, const char *name, const qcc_tensor *t);

/* Shows a tensor in a struct of the host's, as much as that knows of. */
void tensor_show(const Tensor *t, qcc_tensor *to);

/* The i-th of a list of structs, each as large as the first says. */
const qcc_tensor *tensor_at(const qcc_tensor *list, size_t i);

#endif
