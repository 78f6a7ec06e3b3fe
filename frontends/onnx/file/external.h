/* Weights in files beside the model.
 *
 * What a model names is untrusted: the path is relative and stays beneath the model's folder, no part of it is a link,
 * what it ends at is a regular file with one name, and the range lies inside that file.  A file is opened for each read
 * and must be the one first seen.
 *
 * ONNX's `checksum` is the SHA-1 of the whole file.  Where a model has it, the file is read once from end to end before
 * the first of its tensors is, and compared; who reads no tensor reads none of the file. */
#ifndef FRONTENDS_ONNX_FILE_EXTERNAL_H
#define FRONTENDS_ONNX_FILE_EXTERNAL_H

#include "frontends/onnx/file/spine.h"

/* Checks that the file of an external tensor is there and holds `bytes` bytes for it, without reading them. */
Status external_check(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, uint64_t bytes);

/* Reads the `bytes` bytes of an external tensor. */
Status external_read(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, void *out, size_t bytes);

/* Reads n of its `bytes` bytes, from byte `at` on. */
Status external_read_part(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, uint64_t bytes, uint64_t at,
                          void *out, size_t n);

typedef enum OpenHow {
    OPEN_BENEATH,      /* as the kernel resolves it (openat2), by components where it cannot */
    OPEN_BY_COMPONENT, /* folder by folder, following nothing */
    OPEN_LINKED,       /* following links: the host's permission */
} OpenHow;

/* Opens a relative path for reading: a descriptor, or a negative errno. */
int open_beneath(int folder, const char *path, OpenHow how);

#endif
