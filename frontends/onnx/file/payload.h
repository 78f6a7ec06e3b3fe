/* The elements of a TensorProto, wherever the file keeps them. */
#ifndef FRONTENDS_ONNX_FILE_PAYLOAD_H
#define FRONTENDS_ONNX_FILE_PAYLOAD_H

#include "frontends/onnx/file/spine.h"
#include "ir/tensor.h"

typedef struct TensorInfo {
    int dtype; /* ONNX's number */
    int rank;
    const int64_t *dims;
    int64_t elements;
    size_t bytes; /* dense: little-endian, 4- and 2-bit elements packed, lowest bits first; strings as Str */
} TensorInfo;

/* What a tensor declares: a known element type and a shape whose size is within limits.  `where` names the tensor in
 * messages ("initializer w"). */
Status tensor_info(const Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, TensorInfo *info);

/* Checks that what is stored can be what is declared, in exactly one place, without reading it: after this a buffer of
 * info->bytes is worth allocating. */
Status tensor_check(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, const TensorInfo *info);

/* Checks and reads all elements into `out`, which has info.bytes bytes; the text of strings lives with the spine. */
Status tensor_read(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, void *out, size_t bytes);

/* A checked tensor as a payload that is read on first use, in `arena`; the type is its own or, for reading bit
 * patterns, one of the same size.  Spine, message and `where` must outlive it. */
Payload *payload_of_proto(Spine *s, Arena *arena, const Type *type, const Onnx__TensorProto *t, const char *where);

#endif
