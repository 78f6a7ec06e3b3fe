/* What a file is, told by its first bytes. */
#ifndef API_MODEL_FILE_KIND_H
#define API_MODEL_FILE_KIND_H

#include "base/diag.h"

typedef enum FileKind { FILE_ONNX, FILE_TEXT } FileKind;

enum { KIND_BYTES = 512 }; /* enough to tell */

/* The kind of model that the first `n` bytes (at most KIND_BYTES are looked at) begin; files that are no model of ours
 * but well known get a message of their own. */
Status file_kind(Diag *d, const char *name, const void *bytes, size_t n, FileKind *kind);

#endif
